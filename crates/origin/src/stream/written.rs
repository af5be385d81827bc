//! What one write takes, and what it came to.

use crate::counts::UnitCounts;

/// Packets that one write takes at most. The kernel's own limit is 1,024 slices (`IOV_MAX`).
pub(crate) const BATCH: usize = 128;

/// What a write came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteOutcome {
    /// How many of the packets are under way, the one that was cut included.
    pub(crate) packets: usize,
    /// Bytes that the link took.
    pub(crate) bytes: usize,
    /// The units whose last byte the link took now.
    pub(crate) sent: UnitCounts,
    /// Whether the link took everything.
    pub(crate) whole: bool,
}
