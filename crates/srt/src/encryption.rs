//! Encryption of payloads: AES in counter mode, with keys that are wrapped by a passphrase (draft-sharabayko-srt-01, section 6).

use crate::sequence::SequenceNumber;
use aes::cipher::{InnerIvInit, KeyInit, StreamCipher};
use aes::{Aes128, Aes192, Aes256};
use aes_kw::{KwAes128, KwAes192, KwAes256};
use aws_lc_rs::pbkdf2::{PBKDF2_HMAC_SHA1, derive};
use ctr::{Ctr128BE, CtrCore};
use std::fmt;
use std::num::NonZeroU32;
use std::sync::{Arc, OnceLock};

/// Section 6.1.4: "a number of iterations (2048)".
const ITERATIONS: NonZeroU32 = NonZeroU32::new(2_048).unwrap();
/// Bytes of a salt: "The only valid length of salt defined is 128 bits" (section 3.2.2).
const SALT: usize = 16;
/// Bytes that a wrap has beside its keys.
const WRAP_OVERHEAD: usize = 8;
/// Version 1 and packet type 2, then the signature "HAI" (section 3.2.2).
const BEGINNING: [u8; 3] = [0x12, 0x20, 0x29];
/// Cipher AES-CTR.
const CIPHER_CTR: u8 = 2;
/// Stream encapsulation MPEG-TS/SRT.
const ENCAPSULATION: u8 = 2;

/// The even key, as KK has it.
pub(crate) const EVEN: u8 = 1;
/// The odd key.
pub(crate) const ODD: u8 = 2;

/// A passphrase that no peer takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a passphrase of SRT has 10 to 79 bytes; this one has {0}")]
pub struct PassphraseError(usize);

/// What both sides know. Never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Passphrase(Vec<u8>);

impl Passphrase {
    /// Takes one.
    ///
    /// # Errors
    /// libsrt takes 10 to 79 bytes (SRTO_PASSPHRASE).
    pub fn new(text: &str) -> Result<Self, PassphraseError> {
        if (10..=79).contains(&text.len()) {
            Ok(Self(text.as_bytes().to_vec()))
        } else {
            Err(PassphraseError(text.len()))
        }
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase")
    }
}

/// How long keys are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyLength {
    /// AES-128.
    #[default]
    Aes128,
    /// AES-192.
    Aes192,
    /// AES-256.
    Aes256,
}

impl KeyLength {
    /// In bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Aes128 => 16,
            Self::Aes192 => 24,
            Self::Aes256 => 32,
        }
    }

    /// The one that has this many bytes.
    pub const fn of_bytes(bytes: usize) -> Option<Self> {
        match bytes {
            16 => Some(Self::Aes128),
            24 => Some(Self::Aes192),
            32 => Some(Self::Aes256),
            _ => None,
        }
    }

    /// In the Encryption Field of a handshake (table 2).
    pub(crate) const fn field(self) -> u16 {
        self.bytes() as u16 / 8
    }
}

/// What was made of a passphrase: it takes 2,048 hashes, and so connections of one caller share salt and key encrypting key. Each has a
/// stream encrypting key of its own.
#[derive(Clone, Default)]
pub struct DerivedKey(Arc<OnceLock<KeyEncryptingKey>>);

/// Salt, length and key.
type KeyEncryptingKey = ([u8; SALT], KeyLength, Vec<u8>);

impl fmt::Debug for DerivedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DerivedKey")
    }
}

impl PartialEq for DerivedKey {
    /// It follows from the passphrase.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for DerivedKey {}

/// How a connection is encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encryption {
    /// What both sides know.
    pub passphrase: Passphrase,
    /// How long the keys are; a listener takes what its caller has.
    pub key_length: KeyLength,
    /// Packets that are sent with one key (SRTO_KMREFRESHRATE).
    pub refresh_after: u32,
    /// How many packets before its first use a key is announced (SRTO_KMPREANNOUNCE).
    pub announce_before: u32,
    /// What callers have made of the passphrase.
    pub derived: DerivedKey,
}

impl Encryption {
    /// Makes of the passphrase what callers need, so that no connection waits for it. Whether the system has random numbers.
    pub fn prepare(&self) -> bool {
        self.key_encrypting_key().is_some()
    }

    fn key_encrypting_key(&self) -> Option<KeyEncryptingKey> {
        if let Some(known) = self.derived.0.get().filter(|(_, length, _)| *length == self.key_length) {
            return Some(known.clone());
        }
        let mut salt = [0; SALT];
        aws_lc_rs::rand::fill(&mut salt).ok()?;
        let made = (salt, self.key_length, key_encrypting_key(&self.passphrase, &salt, self.key_length));
        Some(self.derived.0.get_or_init(|| made.clone()).clone())
            .filter(|it| it.1 == self.key_length)
            .or(Some(made))
    }

    /// With libsrt's defaults: 2²⁴ packets with one key, the next announced 4,096 packets before.
    pub fn new(passphrase: Passphrase) -> Self {
        Self {
            passphrase,
            key_length: KeyLength::default(),
            refresh_after: 0x100_0000,
            announce_before: 0x1000,
            derived: DerivedKey::default(),
        }
    }
}

/// Why key material was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyMaterialError {
    /// It makes no sense, or is of a kind that is not supported.
    Malformed,
    /// It was wrapped with another passphrase.
    BadSecret,
}

/// One key, ready to encrypt.
#[derive(Clone)]
enum StreamKey {
    Aes128(Box<Aes128>),
    Aes192(Box<Aes192>),
    Aes256(Box<Aes256>),
}

impl StreamKey {
    fn new(bytes: &[u8]) -> Option<Self> {
        Some(match KeyLength::of_bytes(bytes.len())? {
            KeyLength::Aes128 => Self::Aes128(Box::new(Aes128::new_from_slice(bytes).ok()?)),
            KeyLength::Aes192 => Self::Aes192(Box::new(Aes192::new_from_slice(bytes).ok()?)),
            KeyLength::Aes256 => Self::Aes256(Box::new(Aes256::new_from_slice(bytes).ok()?)),
        })
    }

    fn apply(&self, counter: &[u8; 16], bytes: &mut [u8]) {
        fn with<C>(cipher: &C, counter: &[u8; 16], bytes: &mut [u8])
        where
            C: aes::cipher::BlockCipherEncrypt
                + aes::cipher::BlockSizeUser<BlockSize = aes::cipher::consts::U16>,
        {
            let core = CtrCore::inner_iv_init(cipher, &(*counter).into());
            Ctr128BE::<&C>::from_core(core).apply_keystream(bytes);
        }
        match self {
            Self::Aes128(cipher) => with(&**cipher, counter, bytes),
            Self::Aes192(cipher) => with(&**cipher, counter, bytes),
            Self::Aes256(cipher) => with(&**cipher, counter, bytes),
        }
    }
}

/// The keys of one direction.
#[derive(Clone)]
pub(crate) struct Keys {
    length: KeyLength,
    salt: [u8; SALT],
    kek: Vec<u8>,
    /// The even and the odd one, as they are and ready to use.
    keys: [Option<(Vec<u8>, StreamKey)>; 2],
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys")
    }
}

impl Keys {
    /// New ones, of which the even one is in use. `None` where the system has no random numbers.
    pub(crate) fn generate(encryption: &Encryption) -> Option<Self> {
        let (salt, length, kek) = encryption.key_encrypting_key()?;
        let mut keys = Self { length, salt, kek, keys: [None, None] };
        keys.renew(EVEN)?;
        Some(keys)
    }

    /// Makes a new key in the place of the one that `key` names.
    pub(crate) fn renew(&mut self, key: u8) -> Option<()> {
        let mut bytes = vec![0; self.length.bytes()];
        aws_lc_rs::rand::fill(&mut bytes).ok()?;
        let ready = StreamKey::new(&bytes)?;
        self.keys[usize::from(key != EVEN)] = Some((bytes, ready));
        Some(())
    }

    /// Reads what a peer says of its keys.
    pub(crate) fn read(message: &[u8], passphrase: &Passphrase) -> Result<Self, KeyMaterialError> {
        let (salt, length, flags, wrap) = parse(message)?;
        let kek = key_encrypting_key(passphrase, &salt, length);
        let mut keys = Self { length, salt, kek, keys: [None, None] };
        keys.unwrap(flags, wrap)?;
        Ok(keys)
    }

    /// Takes the keys that a peer announces for later. How many are new. Salt and length stay: each other salt would cost
    /// 2,048 hashes.
    pub(crate) fn refresh(&mut self, message: &[u8]) -> Result<u64, KeyMaterialError> {
        let (salt, length, flags, wrap) = parse(message)?;
        if (salt, length) != (self.salt, self.length) {
            return Err(KeyMaterialError::Malformed);
        }
        self.unwrap(flags, wrap)
    }

    fn unwrap(&mut self, flags: u8, wrap: &[u8]) -> Result<u64, KeyMaterialError> {
        let mut buffer = [0; 2 * 32];
        let bytes = unwrap_key(&self.kek, wrap, &mut buffer).ok_or(KeyMaterialError::BadSecret)?;
        let mut parts = bytes.chunks_exact(self.length.bytes());
        let mut new = 0;
        for (place, flag) in [EVEN, ODD].into_iter().enumerate() {
            if flags & flag == 0 {
                continue;
            }
            let part = parts.next().ok_or(KeyMaterialError::Malformed)?;
            if self.keys[place].as_ref().is_none_or(|(known, _)| known != part) {
                let ready = StreamKey::new(part).ok_or(KeyMaterialError::Malformed)?;
                self.keys[place] = Some((part.to_vec(), ready));
                new += 1;
            }
        }
        Ok(new)
    }

    /// Appends a key material message with all keys that there are.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut plain = Vec::with_capacity(64);
        let mut flags = 0;
        for (key, flag) in self.keys.iter().zip([EVEN, ODD]) {
            if let Some((bytes, _)) = key {
                plain.extend_from_slice(bytes);
                flags |= flag;
            }
        }
        out.extend(BEGINNING);
        out.extend([flags, 0, 0, 0, 0, CIPHER_CTR, 0, ENCAPSULATION, 0, 0, 0]);
        out.extend([(SALT / 4) as u8, (self.length.bytes() / 4) as u8]);
        out.extend(self.salt);
        wrap_key(&self.kek, &plain, out);
    }

    pub(crate) fn length(&self) -> KeyLength {
        self.length
    }

    /// Whether this one of the two is there.
    pub(crate) fn has(&self, key: u8) -> bool {
        self.keys[usize::from(key != EVEN)].is_some()
    }

    /// Encrypts or decrypts the payload of a packet with one of the keys. Whether there is such a key.
    pub(crate) fn apply(&self, key: u8, number: SequenceNumber, payload: &mut [u8]) -> bool {
        let place = match key {
            EVEN => 0,
            ODD => 1,
            _ => return false,
        };
        let Some((_, ready)) = &self.keys[place] else { return false };
        //= draft-sharabayko-srt-01, section 6.1.2
        //# The upper 112 bits of this sequence are XORed with an Initialization Vector (IV)
        //# to produce a unique counter for each crypto block.
        let mut counter = [0; 16];
        counter[..14].copy_from_slice(&self.salt[..14]);
        for (byte, of_number) in counter[10..14].iter_mut().zip(number.value().to_be_bytes()) {
            *byte ^= of_number;
        }
        ready.apply(&counter, payload);
        true
    }
}

/// Salt, length of a key, which keys there are, and their wrap.
type KeyMaterial<'a> = ([u8; SALT], KeyLength, u8, &'a [u8]);

/// Reads a key material message.
fn parse(message: &[u8]) -> Result<KeyMaterial<'_>, KeyMaterialError> {
    let malformed = KeyMaterialError::Malformed;
    let (head, rest) = message.split_first_chunk::<16>().ok_or(malformed)?;
    let (salt, wrap) = rest.split_first_chunk::<SALT>().ok_or(malformed)?;
    let flags = head[3] & 0b11;
    let length = KeyLength::of_bytes(usize::from(head[15]) * 4).ok_or(malformed)?;
    let is_known = head.starts_with(&BEGINNING)
        && head[8] == CIPHER_CTR
        && head[9] == 0
        && usize::from(head[14]) * 4 == SALT
        && flags != 0;
    //= draft-sharabayko-srt-01, section 3.2.2
    //# the size of the wrap field is ((n * KLen) + 8) bytes.
    let expected = flags.count_ones() as usize * length.bytes() + WRAP_OVERHEAD;
    // Extensions are padded to whole words, which these lengths are.
    if !is_known || wrap.len() != expected {
        return Err(malformed);
    }
    Ok((*salt, length, flags, wrap))
}

fn key_encrypting_key(passphrase: &Passphrase, salt: &[u8; SALT], length: KeyLength) -> Vec<u8> {
    let mut kek = vec![0; length.bytes()];
    //= draft-sharabayko-srt-01, section 6.2.1
    //# KEK = PBKDF2(passphrase, LSB(64,Salt), Iter, KLen)
    derive(PBKDF2_HMAC_SHA1, ITERATIONS, &salt[SALT - 8..], &passphrase.0, &mut kek);
    kek
}

fn wrap_key(kek: &[u8], plain: &[u8], out: &mut Vec<u8>) {
    let mut buffer = [0; 2 * 32 + WRAP_OVERHEAD];
    let wrapped = match kek.len() {
        16 => KwAes128::new_from_slice(kek)
            .ok()
            .and_then(|it| it.wrap_key(plain, &mut buffer).ok().map(<[u8]>::len)),
        24 => KwAes192::new_from_slice(kek)
            .ok()
            .and_then(|it| it.wrap_key(plain, &mut buffer).ok().map(<[u8]>::len)),
        _ => KwAes256::new_from_slice(kek)
            .ok()
            .and_then(|it| it.wrap_key(plain, &mut buffer).ok().map(<[u8]>::len)),
    };
    // One or two keys of a known length are always wrapped.
    out.extend_from_slice(&buffer[..wrapped.unwrap_or(0)]);
}

fn unwrap_key<'a>(kek: &[u8], wrap: &[u8], buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    match kek.len() {
        16 => KwAes128::new_from_slice(kek).ok()?.unwrap_key(wrap, buffer).ok(),
        24 => KwAes192::new_from_slice(kek).ok()?.unwrap_key(wrap, buffer).ok(),
        _ => KwAes256::new_from_slice(kek).ok()?.unwrap_key(wrap, buffer).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encryption(key_length: KeyLength) -> Encryption {
        Encryption { key_length, ..Encryption::new(Passphrase::new("correct horse").unwrap()) }
    }

    #[test]
    fn keys_reach_the_peer_that_knows_the_passphrase_and_no_other() {
        for length in [KeyLength::Aes128, KeyLength::Aes192, KeyLength::Aes256] {
            let mut ours = Keys::generate(&encryption(length)).unwrap();
            let mut message = Vec::new();
            ours.write(&mut message);
            assert_eq!(message.len(), 16 + 16 + length.bytes() + 8);
            let theirs = Keys::read(&message, &encryption(length).passphrase).unwrap();
            let number = SequenceNumber::new(0x1234_5678);
            let mut payload = b"seven bytes and more than one block".to_vec();
            assert!(ours.apply(EVEN, number, &mut payload) && payload[..5] != *b"seven");
            assert!(theirs.apply(EVEN, number, &mut payload) && payload[..5] == *b"seven");
            assert!(!theirs.apply(ODD, number, &mut payload) && !theirs.apply(3, number, &mut payload));
            let other = Passphrase::new("incorrect horse").unwrap();
            assert_eq!(Keys::read(&message, &other).unwrap_err(), KeyMaterialError::BadSecret);
            let mut theirs = theirs;
            ours.renew(ODD).unwrap();
            message.clear();
            ours.write(&mut message);
            assert_eq!((theirs.refresh(&message), theirs.refresh(&message)), (Ok(1), Ok(0)));
            assert!(theirs.apply(ODD, number, &mut payload));
        }
    }

    #[test]
    fn key_material_that_makes_no_sense_is_refused() {
        let ours = Keys::generate(&encryption(KeyLength::Aes128)).unwrap();
        let mut message = Vec::new();
        ours.write(&mut message);
        for (at, value) in [(0, 0), (1, 1), (3, 0), (3, 3), (8, 4), (9, 1), (14, 0), (15, 5)] {
            let mut wrong = message.clone();
            wrong[at] = value;
            let read = Keys::read(&wrong, &encryption(KeyLength::Aes128).passphrase);
            assert_eq!(read.unwrap_err(), KeyMaterialError::Malformed, "byte {at}");
        }
    }

    #[test]
    fn no_secret_is_shown() {
        assert_eq!(format!("{:?}", encryption(KeyLength::Aes128).passphrase), "Passphrase");
        assert_eq!(Passphrase::new("short").unwrap_err(), PassphraseError(5));
    }
}
