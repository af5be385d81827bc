//! weir measures a server whose every doing is known, and must report exactly that.
//!
//! The server is weir's own origin, whose counts and scripted faults are the truth, or another's: nginx with
//! its RTMP module, ffmpeg, a socket that never answers. A missing part fails the test.

mod support;

mod a_quiet_machine;
mod adaptation;
mod agents;
mod aiortc;
mod background;
mod best_setting;
mod brokers;
mod capacity;
mod check;
mod chromium;
mod churn;
mod codec;
mod dashboard;
mod decoding;
mod departures;
mod dialogue;
mod endings;
mod exactly_once;
mod first_steps;
mod full_sockets;
mod guide;
mod http_flv;
mod ingest;
mod ingest_kills;
mod ingest_runs;
mod ingest_troubles;
mod interruptions;
mod keyframes;
mod live_page;
mod machine;
mod mirakurun;
mod mqtt;
mod output;
mod package;
mod pion;
mod places;
mod postgresql_tls;
mod probe;
mod push;
mod registry;
mod restarts;
mod scenarios;
mod secrets;
mod series;
mod srt;
mod terminal;
mod tls;
mod tools;
#[path = "../../../clients/tests/bench/transport.rs"]
mod transport;
mod ts;
mod usage;
mod whep;
