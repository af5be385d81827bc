//! A run measures a server whose every doing is known, and must come to exactly that.
//!
//! The server is weir's own origin, whose counts and scripted faults are the truth, or another's. What the command line adds is
//! tested with the program, in `weir`. A missing part fails the test.

mod support;

mod churn;
mod codec_losses;
mod codecs;
mod counts;
mod departures;
mod drops;
mod endings;
mod hls;
mod hls_origin;
mod http_flv;
mod jumps;
mod mirakurun;
mod mqtt;
mod mqtt_subscribers;
mod narrow_link;
mod nginx;
mod refusals;
mod relay;
mod rtc;
mod rtsp;
mod rtsp_by_udp;
mod rtsp_origin;
mod rtsp_servers;
mod scenarios;
mod shaka;
mod thresholds;
mod tls;
#[path = "../../../clients/tests/bench/transport.rs"]
mod transport;
mod ts;
mod whep;
mod whip;
