//! What a level came to over several seconds: enough for its mean and its highest.

use crate::{Merge, Unit};
use serde::{Deserialize, Serialize};

/// A level over the seconds of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Its values at the end of each second, added up.
    pub sum: u64,
    /// The highest of them.
    pub max: u64,
}

/// The same in a line, in the figure's unit.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct LevelLine {
    pub(crate) sum: f64,
    pub(crate) max: f64,
}

impl Level {
    /// Over one second.
    pub(crate) fn of(value: u64) -> Self {
        Self { sum: value, max: value }
    }

    /// Over these seconds, and those after them.
    pub(crate) fn then(self, later: Self) -> Self {
        Self { sum: self.sum.saturating_add(later.sum), max: self.max.max(later.max) }
    }

    /// Of two groups of clients together, over the same seconds.
    pub(crate) fn beside(self, other: Self, merge: Merge) -> Self {
        Self { sum: merge.of(self.sum, other.sum), max: merge.of(self.max, other.max) }
    }

    pub(crate) fn line(self, unit: Unit) -> LevelLine {
        LevelLine { sum: self.sum as f64 * unit.scale(), max: self.max as f64 * unit.scale() }
    }
}
