//! Is it better: the runs of two sides or more, figure by figure. A run is one observation, whatever it consists of: its seconds
//! and its clients depend on each other. Values only; the runner reads run directories.

mod alike;
mod limit;
mod side;
#[cfg(test)]
mod simulation;
mod summary;

pub use alike::Unlike;
pub(crate) use alike::changed_between;
pub use limit::{ChangeLimit, LimitError, LimitFinding, LimitResult};
pub use side::{ComparedRun, SeriesRef, Side};
pub use summary::{Comparison, ComparisonError, Course, LAYOUT, Options};

/// Runs a side from which on an interval is shown.
pub const FEWEST_FOR_INTERVAL: usize = 6;

/// The share of figures, equal in truth, of which at least one may be called different.
const LEVEL: f64 = 0.05;
