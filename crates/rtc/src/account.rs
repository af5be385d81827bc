//! What arrived of one track, what is missing, and when: from headers alone, or with what decryption adds.
//!
//! [`Track`] takes each packet once. Its totals are plain integers, true at every moment; what comes late takes back
//! what was counted as lost.

mod arrival;
mod drift;
mod frame_time;
mod frames;
mod freezes;
mod gaps;
mod jitter;
mod keyframes;
mod padding;
mod sent;
mod sequence;
mod track;

pub use arrival::{Arrival, Hints};
pub use drift::Drift;
pub use frames::FrameCounts;
pub use freezes::Freezes;
pub use gaps::GapLengths;
pub use keyframes::Keyframes;
pub use sent::{ReceivedTotals, Sent};
pub use sequence::{Loss, MAX_DROPOUT, MAX_MISORDER};
pub use track::{Kind, Track, TrackCounts, TrackSettings};
