//! Tests that need a quiet machine or all of it, and those that stand in one file with them.
//!
//! Their module comes first in the alphabet, in which tests are begun: nothing else runs then, so that nothing has to come to its
//! end for them. [`quiet`](crate::support::quiet) is for a small load whose times are measured, [`alone`](crate::support::alone) for one
//! that takes every core.

mod capacity;
mod chromium;
mod churn;
mod compare;
mod hls_js;
mod interruptions;
mod latency;
mod machine;
mod probe;
mod processor;
mod readme;
mod republish;
mod stalls;
mod verdict;
