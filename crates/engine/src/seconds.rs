//! Functions of what each second of a run brought: how much media, in bursts or evenly, when viewers got nothing, whether the
//! server was in one state. No clock, no file.

pub(crate) mod arrivals;
pub(crate) mod bursts;
pub(crate) mod edges;
pub(crate) mod outage;
pub mod startup_map;
pub(crate) mod steadiness;
pub(crate) mod totals;
