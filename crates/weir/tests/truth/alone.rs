//! Tests that measure time or CPU, or use all of it, and those that stand in one file with them.
//!
//! They follow each other in the order in which tests are begun: each of them has the machine for itself, and what else runs
//! comes to its end for them once and not for each.

mod chromium;
mod churn;
mod compare;
mod latency;
mod processor;
mod republish;
mod stalls;
mod verdict;
