//! What every test needs: runs of scenarios, and a stream to play.
//!
//! Nothing here knows what a test expects, except what holds for every run: see [`Run::check`].

mod air;
mod clip;
mod packager;
mod run;

pub(crate) use air::{Air, Publishing, air, config};
pub(crate) use clip::{CODECS, clip};
pub(crate) use packager::packager;
pub(crate) use run::{Run, count, measure, play, publish, recompute, recomputed_as, refusal, start};
