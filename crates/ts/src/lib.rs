//! MPEG transport streams, sans-IO: an analyser, a muxer, and a loop over a stored stream.
//!
//! Nothing here knows a socket, a clock, a runtime or a log. The only time is the stream's own, taken from its program
//! clock references.
//!
//! | module | what it does | where it is written down |
//! |---|---|---|
//! | [`Analyser`] | counts what is wrong with a stream, and says what it is | ISO/IEC 13818-1 section 2.4, ETSI TR 101 290 section 5.2, ETSI EN 300 468, ARIB STD-B10 and STD-B24 |
//! | [`mux`] | writes a stream of H.264 and AAC, at a constant bit rate or as it comes | the same |
//! | [`remux`] | plays a stored stream over and over without a break | the same |
//! | [`packet`] | one packet, its adaptation field, its clock reference | ISO/IEC 13818-1 sections 2.4.3.2 to 2.4.3.5 |
//! | [`pes`] | the beginning of a PES packet | section 2.4.3.6 |
//!
//! [`Counts`] holds every total as a plain integer: two readings subtract, those of two streams add.

pub mod mux;
pub mod packet;
pub mod pes;
pub mod remux;

mod alignment;
mod analyser;
mod clock;
mod continuity;
mod counts;
mod elementary;
mod finding;
mod losses;
mod options;
mod psi;
mod record;
mod report;
mod scan;
mod section;
mod stream_clock;
mod stream_type;
mod tables;
mod text;
mod units;

pub use alignment::PacketSize;
pub use analyser::Analyser;
pub use clock::{PcrFigures, StreamTime, TICKS_PER_SECOND};
pub use counts::{Counts, Indicator, PidCounts, Priority};
pub use elementary::{ElementaryPiece, ElementaryStreams};
pub use finding::{Finding, FindingKind};
pub use options::Options;
pub use record::Mark;
pub use report::{PidKind, PidReport, Report};
pub use section::crc;
pub use stream_type::Codec;
pub use tables::{Component, Program, Service};
pub use text::TextCoding;
pub use units::UnitTimes;
