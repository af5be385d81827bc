//! Where the load of a run is made.

use weir_engine::plan::Segment;

/// Which generators make the load of what is prepared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Generators {
    /// This machine, all of it.
    Here,
    /// This machine, a part of it.
    Part(Segment),
    /// Agents, whose machines have limits of their own.
    Elsewhere,
}
