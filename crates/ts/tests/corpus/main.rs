//! The fault corpus: streams with one fault each, and for each what every counter must say.
//!
//! The expected values follow from ISO/IEC 13818-1 and TR 101 290, not from the analyser.

mod base;
mod counterparts;
mod faults;
mod losses;
mod muxers;
mod sparse_clock;
mod splits;
