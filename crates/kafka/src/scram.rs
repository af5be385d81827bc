//! SCRAM: a login in which each side proves that it knows the password, and neither sends it (RFC 5802, without channel binding).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256, Sha512};
use std::ops::RangeInclusive;

/// Rounds of hashing that a server may ask for. RFC 7677 section 4 wants 4096 at least, Kafka's own tools make no more than 16,384
/// (`ScramMechanism`), and a million take about a second.
const ITERATIONS: RangeInclusive<u32> = 4_096..=1_000_000;

/// What the first message begins with: no channel binding, no other identity (`gs2-header`).
const HEADER: &str = "n,,";

/// A login that failed for the server's messages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScramError {
    /// A message that is not what RFC 5802 section 7 has in its place.
    #[error("its message of the login is malformed")]
    Malformed,
    /// The nonce does not begin with the client's: the message belongs to another login.
    #[error("its message belongs to another login")]
    Nonce,
    /// Too few rounds, with which a stolen message gives the password away, or enough to take the client's time.
    #[error(
        "it asks for {0} rounds of hashing the password; weir takes {least} to {most}",
        least = ITERATIONS.start(),
        most = ITERATIONS.end()
    )]
    Iterations(u32),
    /// The server does not know the password: it is not the one that keeps the user.
    #[error("it does not prove that it knows the password, and may be another's server")]
    Signature,
    /// The server's `e=`, which is one of the words of RFC 5802 section 7, or its own.
    #[error("it refuses the login ({0})")]
    Refused(String),
}

/// The hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScramHash {
    /// SHA-256 (RFC 7677).
    Sha256,
    /// SHA-512.
    Sha512,
}

/// A login of a client.
#[derive(Clone)]
pub struct Scram<'a> {
    hash: ScramHash,
    password: &'a str,
    nonce: &'a str,
    /// `client-first-message-bare`
    first: String,
}

/// What a server asks for (`server-first-message`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge<'a> {
    text: &'a str,
    nonce: &'a str,
    salt: Vec<u8>,
    iterations: u32,
}

/// What a server that knows the password says at the end (`server-final-message`).
#[derive(Clone)]
pub struct ServerSignature(Vec<u8>);

impl<'a> Scram<'a> {
    /// A login with a nonce of printable characters without commas that was never used before. User and password are taken as they
    /// are: Kafka does not prepare them by SASLprep either (`ScramFormatter.normalize`).
    pub fn new(hash: ScramHash, user: &str, password: &'a str, nonce: &'a str) -> Self {
        let user = user.replace('=', "=3D").replace(',', "=2C");
        Self { hash, password, nonce, first: format!("n={user},r={nonce}") }
    }

    /// The first message.
    pub fn first_message(&self) -> String {
        format!("{HEADER}{}", self.first)
    }

    /// The answer to what the server asks for, and what it has to say to that.
    ///
    /// # Errors
    /// It asks for what no server may.
    pub fn last_message(&self, challenge: &[u8]) -> Result<(String, ServerSignature), ScramError> {
        let challenge = Challenge::read(challenge, self.nonce)?;
        let last = format!("c={},r={}", STANDARD.encode(HEADER), challenge.nonce);
        let message = format!("{},{},{last}", self.first, challenge.text);
        let (proof, signature) = match self.hash {
            ScramHash::Sha256 => proofs::<Hmac<Sha256>, Sha256>(self.password, &challenge, &message),
            ScramHash::Sha512 => proofs::<Hmac<Sha512>, Sha512>(self.password, &challenge, &message),
        };
        Ok((format!("{last},p={}", STANDARD.encode(proof)), ServerSignature(signature)))
    }
}

impl<'a> Challenge<'a> {
    /// Reads the message of a server to whom a client has sent this nonce.
    ///
    /// # Errors
    /// Malformed, or parameters that a client must refuse.
    pub fn read(bytes: &'a [u8], client_nonce: &str) -> Result<Self, ScramError> {
        let text = std::str::from_utf8(bytes).map_err(|_| ScramError::Malformed)?;
        let mut attributes = text.split(',');
        let mut next =
            |name: &str| attributes.next().and_then(|it| it.strip_prefix(name)).ok_or(ScramError::Malformed);
        let (nonce, salt, iterations) = (next("r=")?, next("s=")?, next("i=")?);
        // The server adds to it, so that neither side alone decides on what is proved.
        if nonce.strip_prefix(client_nonce).is_none_or(str::is_empty) {
            return Err(ScramError::Nonce);
        }
        let salt = STANDARD.decode(salt).map_err(|_| ScramError::Malformed)?;
        let iterations = iterations.parse().map_err(|_| ScramError::Malformed)?;
        if !ITERATIONS.contains(&iterations) {
            return Err(ScramError::Iterations(iterations));
        }
        Ok(Self { text, nonce, salt, iterations })
    }
}

impl ServerSignature {
    /// Checks the last message of the server.
    ///
    /// # Errors
    /// It does not know the password, or refuses the client's.
    pub fn check(&self, last: &[u8]) -> Result<(), ScramError> {
        let text = std::str::from_utf8(last).map_err(|_| ScramError::Malformed)?;
        let attribute = text.split(',').next().unwrap_or_default();
        if let Some(words) = attribute.strip_prefix("e=") {
            return Err(ScramError::Refused(words.to_owned()));
        }
        let signature = attribute.strip_prefix("v=").ok_or(ScramError::Malformed)?;
        let signature = STANDARD.decode(signature).map_err(|_| ScramError::Malformed)?;
        // Takes the same time wherever they differ.
        let difference = signature.iter().zip(&self.0).fold(0, |sum, (a, b)| sum | (a ^ b));
        if signature.len() == self.0.len() && difference == 0 { Ok(()) } else { Err(ScramError::Signature) }
    }
}

/// `ClientProof` and `ServerSignature` (RFC 5802 section 3).
fn proofs<M: Mac + KeyInit + Clone, H: Digest>(
    password: &str,
    challenge: &Challenge<'_>,
    message: &str,
) -> (Vec<u8>, Vec<u8>) {
    let salted = salted::<M>(password, &challenge.salt, challenge.iterations);
    let client_key = mac::<M>(&salted, b"Client Key");
    let mut proof = mac::<M>(&H::digest(&client_key), message.as_bytes());
    proof.iter_mut().zip(&client_key).for_each(|(byte, key)| *byte ^= key);
    let server_key = mac::<M>(&salted, b"Server Key");
    (proof, mac::<M>(&server_key, message.as_bytes()))
}

/// `Hi`: PBKDF2 with one block (RFC 5802 section 2.2).
fn salted<M: Mac + KeyInit + Clone>(password: &str, salt: &[u8], iterations: u32) -> Vec<u8> {
    let keyed = keyed::<M>(password.as_bytes());
    let mut mac = keyed.clone();
    mac.update(salt);
    mac.update(&1_u32.to_be_bytes());
    let mut last = mac.finalize().into_bytes();
    let mut sum = last.to_vec();
    for _ in 1..iterations {
        let mut mac = keyed.clone();
        mac.update(&last);
        last = mac.finalize().into_bytes();
        sum.iter_mut().zip(&last).for_each(|(sum, byte)| *sum ^= byte);
    }
    sum
}

fn mac<M: Mac + KeyInit>(key: &[u8], message: &[u8]) -> Vec<u8> {
    keyed::<M>(key).chain_update(message).finalize().into_bytes().to_vec()
}

fn keyed<M: Mac + KeyInit>(key: &[u8]) -> M {
    <M as KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: &str = "rOprNGfwEbeRWgbNEkqO";
    const CHALLENGE: &str =
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";

    /// The example of RFC 7677 section 3.
    #[test]
    fn the_example_of_the_standard_logs_in() {
        let scram = Scram::new(ScramHash::Sha256, "user", "pencil", NONCE);
        assert_eq!(scram.first_message(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let (last, signature) = scram.last_message(CHALLENGE.as_bytes()).unwrap();
        assert_eq!(
            last,
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        let of_server = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
        assert_eq!(signature.check(of_server.as_bytes()), Ok(()));
        for (last, error) in [
            ("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G8=", ScramError::Signature),
            ("v=", ScramError::Signature),
            ("v=6rri", ScramError::Signature),
            ("v=?", ScramError::Malformed),
            ("", ScramError::Malformed),
            ("e=invalid-proof", ScramError::Refused("invalid-proof".to_owned())),
        ] {
            assert_eq!(signature.check(last.as_bytes()), Err(error), "{last}");
        }
    }

    #[test]
    fn a_name_has_no_commas_of_its_own() {
        let scram = Scram::new(ScramHash::Sha512, "a=b,c", "", "x");
        assert_eq!(scram.first_message(), "n,,n=a=3Db=2Cc,r=x");
    }

    #[test]
    fn what_no_server_may_ask_for_is_refused_before_anything_is_hashed() {
        for (text, error) in [
            ("r=other,s=AAAA,i=4096", ScramError::Nonce),
            ("r=mine,s=AAAA,i=4096", ScramError::Nonce),
            ("r=mine+,s=AAAA,i=4095", ScramError::Iterations(4_095)),
            ("r=mine+,s=AAAA,i=1000001", ScramError::Iterations(1_000_001)),
            ("r=mine+,s=AAAA,i=-1", ScramError::Malformed),
            ("r=mine+,s=AAAA", ScramError::Malformed),
            ("r=mine+,s=A,i=4096", ScramError::Malformed),
            // An extension that must be understood (`reserved-mext`).
            ("m=x,r=mine+,s=AAAA,i=4096", ScramError::Malformed),
        ] {
            assert_eq!(Challenge::read(text.as_bytes(), "mine"), Err(error), "{text}");
        }
        assert!(Challenge::read(b"r=mine+,s=AAAA,i=4096,x=y", "mine").is_ok());
    }
}
