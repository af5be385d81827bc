//! A run, from scenario to summary.
//!
//! [`scenario`] → [`plan`] → shards of clients → intervals → [`fold`] → [`summary`] with its
//! verdict. The plan, the fold, the thresholds and the verdict are functions of values; [`run`]
//! starts threads and [`record`] writes the run directory. Nothing here prints, and nothing names
//! a protocol.

mod channel;
mod crew;
pub mod fold;
pub mod messaging;
pub mod plan;
pub mod record;
mod remark;
pub mod run;
pub mod scenario;
pub mod summary;
pub mod threshold;
mod verdict;

pub use remark::RemarkLine;
