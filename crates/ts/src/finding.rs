//! What was found wrong, and where: the first of each kind; the rest is counted only.

use std::fmt;

use crate::clock::StreamTime;
use crate::packet::Pcr;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $({ $($(#[$field_doc:meta])* $field:ident: $type:ty),* $(,)? })?: $remedy:literal,)*) => {
        /// What is wrong.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum FindingKind {
            $($(#[$doc])* $kind $({ $($(#[$field_doc])* $field: $type),* })?,)*
        }

        impl FindingKind {
            pub(crate) const COUNT: usize = [$(stringify!($kind)),*].len();

            /// The kind's number, for counting.
            pub(crate) fn index(&self) -> usize {
                let names = [$(stringify!($kind)),*];
                names.iter().position(|&name| name == self.name()).unwrap_or(0)
            }

            /// The kind's name.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$kind { .. } => stringify!($kind),)* }
            }

            /// What to do about it.
            pub fn remedy(&self) -> &'static str {
                match self { $(Self::$kind { .. } => $remedy,)* }
            }
        }
    };
}

kinds! {
    /// A continuity counter has left packets out.
    Gap {
        /// The counter that was due.
        expected: u8,
        /// The counter that came.
        found: u8,
        /// How many are missing at the least; 0 where the counter is wrong, and nothing is missing.
        lost: u8,
    }: "look where packets are dropped: tuner, socket buffers, or a reader that is too slow",
    /// A counter repeats, and it is no repetition that the standard allows.
    IllegalDuplicate {
        /// The counter.
        counter: u8,
    }: "see to the sender: it repeats packets, and not as it may",
    /// `transport_error_indicator`.
    TransportError: "see to the signal: the demodulator could not correct the packet",
    /// The payload is scrambled; reported once for each PID that becomes so.
    Scrambled {
        /// `transport_scrambling_control`.
        control: u8,
    }: "see to the descrambler and its card, or ask the server for a decoded stream",
    /// The adaptation field cannot be as long as it says, or is of a reserved kind.
    MalformedPacket: "see to the multiplexer",
    /// Alignment was lost.
    LostAlignment: "look where bytes are dropped: a reader that is too slow, or a chunk that is not a multiple of 188",
    /// Alignment was found in another place.
    Resync {
        /// Bytes that belong to no packet.
        skipped: u64,
    }: "look where bytes are dropped or put in between packets",
    /// A wrong byte in place of one sync byte.
    SyncByte: "see to the transmission: bytes are damaged on the way",
    /// The stream ended inside a packet.
    TruncatedEnd {
        /// Bytes of the packet that came.
        bytes: u64,
    }: "see whether the connection was closed, or the recording ended, in the middle of a packet",
    /// A section's CRC is wrong.
    Crc {
        /// The table it belongs to.
        table_id: u8,
    }: "see whether packets are lost or damaged on this PID",
    /// No PAT for over 0.5 s.
    PatMissing: "see whether packets of PID 0 are lost, or sent too seldom",
    /// Another table than the PAT on PID 0, or a scrambled one.
    PatWrong: "see to the multiplexer: PID 0 carries the PAT only, in clear",
    /// No PMT for over 0.5 s on a PID that the PAT names.
    PmtMissing: "see whether packets of this PID are lost, sent too seldom, or the PAT names a program that is gone",
    /// A scrambled PMT.
    PmtScrambled: "see to the multiplexer: a PMT is sent in clear",
    /// A table with other contents than before, under the version that it had before.
    VersionKept {
        /// The table.
        table_id: u8,
    }: "see to the multiplexer: a table that changes gets the next version_number, by which players know that it did",
    /// A PID that a PMT names did not occur.
    PidMissing: "see whether the component has ended, or its packets are filtered out",
    /// Too long from one clock reference to the next.
    PcrLate {
        /// 27 MHz ticks.
        interval: u64,
    }: "see to the multiplexer, or to packets lost on the PID of the clock",
    /// A clock reference outside 0 … 100 ms after the one before it.
    PcrOutOfRange {
        /// 27 MHz ticks.
        step: i64,
    }: "see whether packets are lost in bulk, or whether a splice is not announced",
    /// The clock jumps by more than the packets between explain.
    PcrJump {
        /// 27 MHz ticks beyond what the packets would have taken.
        by: i64,
    }: "see whether packets are lost in bulk, or whether a splice is not announced",
    /// A clock reference off the constant rate of the stream.
    PcrInaccurate {
        /// By how much.
        nanoseconds: f64,
    }: "see whether packets are missing before it, or to the jitter of the multiplexer",
    /// Too long from one presentation time to the next.
    PtsLate: "see whether pictures or frames are lost, or sent too seldom",
    /// Presentation times jump against the clock.
    PtsJump {
        /// 90 kHz ticks beyond what the clock says.
        by: i64,
    }: "see whether packets are lost in bulk, or to the encoder's time stamps",
    /// Scrambled packets, and no CAT.
    CatMissing: "see whether PID 1 is filtered out; without it nothing can be descrambled",
    /// Another table than the CAT on PID 1.
    CatWrong: "see to the multiplexer: PID 1 carries the CAT only",
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = |ticks: i64| ticks as f64 / 27_000.0;
        match *self {
            Self::Gap { expected, found, lost: 0 } => {
                write!(f, "counter {found} in place of {expected}: miscounted, nothing is missing")
            }
            Self::Gap { expected, found, lost } => {
                write!(f, "counter {found} in place of {expected}: at least {lost} packets are missing")
            }
            Self::IllegalDuplicate { counter } => {
                write!(f, "counter {counter} repeats, not as a duplicate may")
            }
            Self::TransportError => f.write_str("the packet is marked as damaged"),
            Self::Scrambled { control } => write!(f, "scrambled from here on (control {control})"),
            Self::MalformedPacket => f.write_str("an adaptation field that cannot be"),
            Self::LostAlignment => f.write_str("no sync byte where packets were due"),
            Self::Resync { skipped } => write!(f, "packets begin again after {skipped} bytes"),
            Self::SyncByte => f.write_str("a wrong byte in place of the sync byte"),
            Self::TruncatedEnd { bytes } => write!(f, "the stream ends after {bytes} bytes of a packet"),
            Self::Crc { table_id } => write!(f, "a section of table {table_id:#04x} has a wrong CRC"),
            Self::PatMissing => f.write_str("no PAT for over 0.5 s"),
            Self::PatWrong => f.write_str("PID 0 carries something else than a clear PAT"),
            Self::PmtMissing => f.write_str("no PMT for over 0.5 s"),
            Self::PmtScrambled => f.write_str("the PMT is scrambled"),
            Self::VersionKept { table_id } => {
                write!(f, "table {table_id:#04x} changes and keeps its version number")
            }
            Self::PidMissing => f.write_str("a PID that the PMT names does not occur"),
            Self::PcrLate { interval } => {
                write!(f, "{:.1} ms without a clock reference", milliseconds(interval as i64))
            }
            Self::PcrOutOfRange { step } => {
                write!(f, "the clock goes on by {:.1} ms, allowed are 0 to 100", milliseconds(step))
            }
            Self::PcrJump { by } => write!(f, "the clock jumps by {:.1} ms, unannounced", milliseconds(by)),
            Self::PcrInaccurate { nanoseconds } => write!(f, "the clock is {nanoseconds:.0} ns off the rate"),
            Self::PtsLate => f.write_str("no presentation time for over 0.7 s"),
            Self::PtsJump { by } => {
                write!(f, "presentation times jump by {:.1} ms against the clock", by as f64 / 90.0)
            }
            Self::CatMissing => f.write_str("scrambled packets, and no CAT for 0.5 s"),
            Self::CatWrong => f.write_str("PID 1 carries something else than a CAT"),
        }
    }
}

/// One thing that is wrong, and where.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    /// What is wrong.
    pub kind: FindingKind,
    /// How many packets came before it.
    pub packet: u64,
    /// How many bytes came before its packet.
    pub byte: u64,
    /// On which PID; `None` when it is about the whole stream.
    pub pid: Option<u16>,
    /// Time since the first clock reference; `None` before that.
    pub time: Option<StreamTime>,
    /// The program clock itself at this place: where several readers of one stream can tell that they saw the same.
    pub pcr: Option<Pcr>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "packet {}", self.packet)?;
        if let Some(pid) = self.pid {
            write!(f, ", PID {pid:#06x}")?;
        }
        if let Some(time) = self.time {
            write!(f, ", {:.3} s", time.as_seconds())?;
        }
        write!(f, ": {}", self.kind)
    }
}

/// The first findings of each kind.
#[derive(Clone, Debug)]
pub(crate) struct Findings {
    kept: Vec<Finding>,
    seen: [u32; FindingKind::COUNT],
    limit: u32,
}

impl Findings {
    pub(crate) fn new(limit: u32) -> Self {
        Self { kept: Vec::new(), seen: [0; FindingKind::COUNT], limit }
    }

    /// Whether the next finding of this kind is kept; cheaper than making it up in vain.
    pub(crate) fn wants(&self, kind: &FindingKind) -> bool {
        self.seen[kind.index()] < self.limit
    }

    pub(crate) fn push(&mut self, finding: Finding) {
        self.seen[finding.kind.index()] += 1;
        self.kept.push(finding);
    }

    pub(crate) fn kept(&self) -> &[Finding] {
        &self.kept
    }
}
