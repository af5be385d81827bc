#![doc = include_str!("../README.md")]

pub mod common;
mod counted;
mod estimate;
mod failure;
mod figure;
mod figure_group;
mod first_frame;

mod histogram;
mod interval;
mod level;
mod moment;
mod moment_range;
mod recorder;
mod signed;
mod units;

pub use counted::{grouped, several, several_of};
pub use estimate::Estimate;
pub use failure::{Failure, Side};
pub use figure::{Better, Counter, Figure, Gauge, Kind, Merge, Schema, Signed, Spread, Unit};
pub use figure_group::FigureGroup;
pub use first_frame::FirstFrame;
pub use hdrhistogram::Histogram;
pub use interval::{Interval, IntervalKey};
pub use level::Level;
pub use moment::Moment;
pub use moment_range::MomentRange;
pub use recorder::Recorder;
pub use signed::SignedHistogram;
pub use units::{
    BitRate, Measure, ParseUnitError, Quantity, Ratio, parse_bytes, parse_duration, parse_quantity,
    parse_rate,
};
