//! `weir doctor`: what this machine can generate, what stands in the way, and how many machines like it a load needs.

mod ceiling;
mod limits;
mod loopback;
mod sizing;

pub use ceiling::ceiling;
pub use limits::{Change, apply, changes, head, limits};
pub use sizing::{plan, size};

use crate::{ErrorKind, RunError};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What a measurement of the doctor needs of its caller.
pub struct Consultation<'a> {
    /// weir's own program, which serves what is measured.
    pub program: &'a Path,
    /// What ends it early.
    pub interrupt: &'a Arc<AtomicBool>,
    /// Takes a line for the person who asked.
    pub say: &'a mut dyn FnMut(&str) -> Result<(), RunError>,
}

/// What an interrupted measurement comes to.
fn interrupted() -> RunError {
    RunError::new(ErrorKind::Interrupted, "interrupted before anything was found")
}
