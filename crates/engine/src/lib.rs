//! A run, from scenario to summary.
//!
//! scenario → [`plan`] → shards of clients → intervals → [`summary`] with its verdict. The plan,
//! the fold and the verdict are functions of values; the shell around them starts threads and
//! writes the run directory. Nothing here prints, and nothing names a protocol.

pub mod plan;
pub mod summary;
