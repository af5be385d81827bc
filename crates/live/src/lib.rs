//! What a run shows while it goes on, from one listener: a page that grows, and metrics for Prometheus.
//!
//! | module | what | where it is written down |
//! |---|---|---|
//! | `listener` | the thread with its event loop, beside the run | |
//! | `site` | what connections share: token, names, tabs, which connection makes room | |
//! | `connection` | one connection: a request, a tab | RFC 9112 |
//! | `page` | the body in parts, and what a tab has not seen of it | HTML, section 9.2 (server-sent events) |
//! | `board` | what is known: cumulative figures, the run's facts | |
//! | `family` | metrics as values; the name of a figure | Prometheus' naming practices |
//! | `buckets` | classic and native histograms out of HDR ones | Prometheus' specification of native histograms |
//! | `encode` | text and OpenMetrics | by `prometheus-client` |
//! | `protobuf` | native histograms | `metrics.proto` of Prometheus' client model |
//! | `remote_write` | the same metrics as a request | Prometheus remote write 1.0 |
//! | `pusher` | the thread that sends these requests | |
//!
//! The run leaves values here and never waits: a tab that does not read is sent the latest when it does, connections are
//! bounded, and each has to go on in its time. Nothing here knows a run, a summary or a protocol.

mod board;
mod buckets;
mod connection;
mod encode;
mod family;
mod listener;
mod page;
mod protobuf;
mod pusher;
mod remote_write;
mod site;

pub use board::{Board, Origin, Reading};
pub use family::{Label, PREFIX, metric_name};
pub use listener::{ListenError, Listener};
pub use page::Part;
pub use pusher::{Push, Pusher};
pub use site::Look;
