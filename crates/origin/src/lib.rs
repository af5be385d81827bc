#![doc = include_str!("../README.md")]

mod bulk;
mod burn;
mod config;
mod counted;
mod counts;
mod error;
pub mod fault;
mod foreign;
mod forward;
mod g711;
#[cfg(any(test, feature = "fuzz"))]
#[doc(hidden)]
pub mod harness;
mod hls;
mod http;
mod mirakurun;
mod mqtt;
mod origin;
mod origin_thread;
mod pictures;
mod policy;
mod protocol_states;
mod publisher;
mod registry;
mod rtc;
mod rtmp;
mod rtsp;
mod server;
mod srt;
mod stream;
mod tuner;
mod viewer;
mod worker;

pub use config::{ANY_PORT, Listen, OriginConfig};
pub use counts::{BulkCounts, Counts, DepartedViewers, StreamCounts, UnitCounts, ViewerCounts};
pub use error::OriginError;
pub use fault::LinkEnd;
pub use fault::{Effect, Fault, ParseFaultError};
pub use foreign::{FrameMessage, StreamMessage, StreamState, StreamViewer};
pub use forward::ForwardTrouble;
pub use hls::{HlsSettings, SegmentContainer, SegmentKey, UnknownSegmentKey};
pub use http::{HttpConnection, HttpLink, HttpRefusal, Responder};
pub use mqtt::MessageCounts;
pub use origin::Origin;
pub use origin_thread::StartThread;
pub use policy::{Departure, MissingStream, Patience};
pub use rtc::{Counts as RtcCounts, IntakeCounts};
pub use rtsp::RtspCounts;
pub use server::{Accept, BULK, HLS, HTTP, MQTT, RTC, RTMP, RTSP, SRT, Server, Sessions};
pub use stream::{History, Kind};
pub use tuner::{ChannelType, Material, MaterialError, Service, Tuners};
pub use weir_rtc::signalling::oven::IceServer;
pub use weir_shard::tls::Identity;
pub use worker::{Post, Worker};
