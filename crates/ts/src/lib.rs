#![doc = include_str!("../README.md")]

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
mod missing;
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
