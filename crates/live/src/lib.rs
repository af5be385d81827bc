//! Under way.

mod board;
mod buckets;
mod encode;
mod family;

pub use board::{Board, Origin, Reading};
pub use family::{Label, PREFIX, metric_name};
