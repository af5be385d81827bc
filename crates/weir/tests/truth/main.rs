//! weir measures a server whose every doing is known, and must report exactly that.
//!
//! The server is weir's own origin, whose counts and scripted faults are the truth, or another's: nginx with
//! its RTMP module, ffmpeg, a socket that never answers. A missing part fails the test.

mod support;

mod check;
mod counts;
mod departures;
mod drops;
mod endings;
mod interruptions;
mod jumps;
mod latency;
mod mirakurun;
mod mqtt;
mod nginx;
mod output;
mod places;
mod processor;
mod scenarios;
mod secrets;
mod stalls;
mod thresholds;
mod tls;
mod tools;
#[path = "../../../clients/tests/bench/transport.rs"]
mod transport;
mod ts;
mod usage;
mod verdict;
