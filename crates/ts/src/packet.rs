//! One transport stream packet: its header, its adaptation field, its payload (ISO/IEC 13818-1 section 2.4.3).
//!
//! A [`Packet`] is a view of 188 bytes of the caller's. It knows nothing of the packets around it.

/// Length of a transport stream packet in bytes (section 2.4.1).
pub const PACKET_LENGTH: usize = 188;

/// The first byte of every packet (section 2.4.3.3).
pub const SYNC_BYTE: u8 = 0x47;

/// How many packet identifiers there are: they have 13 bits.
pub const PID_COUNT: usize = 0x2000;

/// Packet identifiers with a fixed meaning (section 2.4.3.3 table 2-3, ETSI EN 300 468 table 1).
pub mod pid {
    /// The program association table.
    pub const PAT: u16 = 0x0000;
    /// The conditional access table.
    pub const CAT: u16 = 0x0001;
    /// The network information table.
    pub const NIT: u16 = 0x0010;
    /// The service description and bouquet association tables.
    pub const SDT: u16 = 0x0011;
    /// The event information table.
    pub const EIT: u16 = 0x0012;
    /// The time and date, and time offset tables.
    pub const TDT: u16 = 0x0014;
    /// Null packets.
    pub const NULL: u16 = 0x1FFF;
}

/// The four bytes that every packet begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header(pub u32);

impl Header {
    /// `transport_error_indicator`: at least one bit of the packet is wrong.
    pub fn transport_error(self) -> bool {
        self.0 & 0x80_0000 != 0
    }

    /// `payload_unit_start_indicator`: a PES packet or a section begins here.
    pub fn payload_unit_start(self) -> bool {
        self.0 & 0x40_0000 != 0
    }

    /// The packet identifier, 13 bits.
    pub fn pid(self) -> u16 {
        (self.0 >> 8 & 0x1FFF) as u16
    }

    /// `transport_scrambling_control`: 0 clear, 2 even key, 3 odd key, 1 reserved (ETSI EN 300 468 annex).
    pub fn scrambling_control(self) -> u8 {
        (self.0 >> 6 & 3) as u8
    }

    /// An adaptation field follows.
    pub fn has_adaptation_field(self) -> bool {
        self.0 & 0x20 != 0
    }

    /// A payload follows, at the end of the packet.
    pub fn has_payload(self) -> bool {
        self.0 & 0x10 != 0
    }

    /// `adaptation_field_control` is 00, which is reserved: decoders discard such a packet.
    pub fn is_reserved(self) -> bool {
        self.0 & 0x30 == 0
    }

    /// The continuity counter, four bits.
    pub fn continuity_counter(self) -> u8 {
        (self.0 & 0x0F) as u8
    }
}

/// One packet, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a>(&'a [u8; PACKET_LENGTH]);

impl<'a> Packet<'a> {
    /// The packet in these bytes, whatever they hold.
    pub fn new(bytes: &'a [u8; PACKET_LENGTH]) -> Self {
        Self(bytes)
    }

    /// The packet that begins at `at`; `None` when `bytes` ends before it does.
    #[inline]
    pub fn at(bytes: &'a [u8], at: usize) -> Option<Self> {
        bytes.get(at..)?.first_chunk().map(Self)
    }

    /// All of its bytes.
    pub fn bytes(self) -> &'a [u8; PACKET_LENGTH] {
        self.0
    }

    /// Its first four bytes.
    #[inline]
    pub fn header(self) -> Header {
        let [a, b, c, d, ..] = *self.0;
        Header(u32::from_be_bytes([a, b, c, d]))
    }

    /// The adaptation field; `None` when there is none, or when its length is not one that section 2.4.3.5 allows
    /// (up to 182 bytes before a payload, 183 without one; encoders that write less without a payload are accepted).
    #[inline]
    pub fn adaptation_field(self) -> Option<AdaptationField<'a>> {
        let header = self.header();
        let longest = if header.has_payload() { 182 } else { 183 };
        let length = usize::from(self.0[4]);
        (header.has_adaptation_field() && length <= longest).then(|| AdaptationField(&self.0[5..5 + length]))
    }

    /// The payload; empty when there is none or when the adaptation field leaves no room for it.
    #[inline]
    pub fn payload(self) -> &'a [u8] {
        let header = self.header();
        if !header.has_payload() {
            return &[];
        }
        let start = if header.has_adaptation_field() { 5 + usize::from(self.0[4]) } else { 4 };
        self.0.get(start..).unwrap_or(&[])
    }

    /// Whether this is a repetition of `original` as section 2.4.3.3 allows it: every byte is the same, except
    /// those of the program clock reference.
    pub fn repeats(self, original: Packet<'_>) -> bool {
        const PCR: std::ops::Range<usize> = 6..12;
        let pcr = |packet: Packet<'_>| packet.adaptation_field().is_some_and(|field| field.pcr().is_some());
        let (this, that) = (self.0, original.0);
        if pcr(self) && pcr(original) {
            this[..PCR.start] == that[..PCR.start] && this[PCR.end..] == that[PCR.end..]
        } else {
            this == that
        }
    }
}

/// What follows `adaptation_field_length` (section 2.4.3.4).
#[derive(Clone, Copy, Debug)]
pub struct AdaptationField<'a>(&'a [u8]);

impl AdaptationField<'_> {
    fn flag(self, mask: u8) -> bool {
        self.0.first().is_some_and(|flags| flags & mask != 0)
    }

    /// `discontinuity_indicator`: the continuity counter, or with a PCR the time base, may jump here.
    pub fn discontinuity(self) -> bool {
        self.flag(0x80)
    }

    /// `random_access_indicator`: decoding can begin here.
    pub fn random_access(self) -> bool {
        self.flag(0x40)
    }

    /// The program clock reference.
    pub fn pcr(self) -> Option<Pcr> {
        if !self.flag(0x10) {
            return None;
        }
        self.0.get(1..)?.first_chunk().map(Pcr::read)
    }
}

/// A program clock reference: 27 MHz ticks modulo [`Pcr::WRAP`] (section 2.4.3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pcr(u64);

impl Pcr {
    /// Where the count begins again: 2³³ ticks of 90 kHz, about 26.5 hours.
    pub const WRAP: u64 = 300 << 33;

    /// The reference of this many 27 MHz ticks, brought below [`Pcr::WRAP`].
    pub fn new(ticks: u64) -> Self {
        Self(ticks % Self::WRAP)
    }

    /// 27 MHz ticks.
    pub fn ticks(self) -> u64 {
        self.0
    }

    /// From the six bytes of the adaptation field.
    pub fn read(bytes: &[u8; 6]) -> Self {
        let [a, b, c, d, e, f] = bytes.map(u64::from);
        let base = a << 25 | b << 17 | c << 9 | d << 1 | e >> 7;
        let extension = (e & 1) << 8 | f;
        Self::new(base * 300 + extension)
    }

    /// As the six bytes of the adaptation field; reserved bits are set.
    pub fn write(self) -> [u8; 6] {
        let (base, extension) = (self.0 / 300, self.0 % 300);
        let bits = base << 15 | 0x3F << 9 | extension;
        let [_, _, bytes @ ..] = bits.to_be_bytes();
        bytes
    }

    /// Ticks from `earlier` to this, the short way round: negative when this lies before it.
    pub fn since(self, earlier: Pcr) -> i64 {
        let ahead = (self.0 + Self::WRAP - earlier.0) % Self::WRAP;
        if ahead > Self::WRAP / 2 { ahead as i64 - Self::WRAP as i64 } else { ahead as i64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_reference_survives_its_six_bytes() {
        for ticks in [0, 1, 299, 300, 27_000_000, Pcr::WRAP - 1] {
            assert_eq!(Pcr::read(&Pcr::new(ticks).write()).ticks(), ticks);
        }
    }

    #[test]
    fn the_clock_goes_on_over_its_wrap() {
        assert_eq!(Pcr::new(5).since(Pcr::new(Pcr::WRAP - 5)), 10);
        assert_eq!(Pcr::new(Pcr::WRAP - 5).since(Pcr::new(5)), -10);
    }

    #[test]
    fn an_adaptation_field_that_does_not_fit_is_none() {
        let mut bytes = [0; PACKET_LENGTH];
        bytes[..6].copy_from_slice(&[0x47, 0x01, 0x00, 0x30, 183, 0x80]);
        assert!(Packet::new(&bytes).adaptation_field().is_none());
        bytes[4] = 182;
        assert!(Packet::new(&bytes).adaptation_field().is_some_and(AdaptationField::discontinuity));
        assert_eq!(Packet::new(&bytes).payload().len(), 1);
    }
}
