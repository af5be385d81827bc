#![doc = include_str!("../README.md")]

pub mod bulk;
mod client_session;
mod client_shard;
mod client_state;
mod column;
mod cookie_jar;
mod decoding;
mod drift;
mod endpoints;
mod flv_viewer;
#[cfg(any(test, feature = "fuzz"))]
#[doc(hidden)]
pub mod harness;
mod host_clock;
mod http_answer;
mod http_connection;
mod http_get;
mod http_links;
mod http_request;
mod keyframe_intervals;
mod material;
pub mod mqtt;
mod options;
mod parameter_sets;
mod playback_model;
mod playout;
mod reconnect;
mod redirect;
mod resolve;
pub mod rtc;
pub mod rtmp;
pub mod rtsp;
mod sequence;
mod shard_recorder;
mod stall_recorder;
mod stamp_scanner;
mod startup_times;
mod suggest;
mod target;
mod timeline;
mod track_format;
pub mod ts;
mod workload;
mod workload_error;

pub use bulk::BulkOptions;
pub use client_session::{ClientSession, End, Stop};
pub use client_shard::ClientShard;
pub use client_state::{ClientPhase, ClientState, Timeouts};
pub use column::{Column, ColumnPosition, ColumnUnit, Statistic};
pub use decoding::{Decoders, decoder_processes, forbid_decoding};
pub use drift::Drift;
pub use endpoints::{EndpointFinder, Endpoints};
pub use flv_viewer::{FlvBody, FlvFigures, FlvViewer};
pub use host_clock::{HostClock, follow_wall_clock};
pub use http_answer::{Answer, Piece};
pub use http_connection::{EndedLink, HttpConnection, LinkEnd};
pub use http_get::{HttpGet, Step, refusal};
pub use http_links::HttpVersion;
pub use http_request::{HttpOptions, Request};
pub use material::{Material, MaterialError, MaterialOptions};
pub use mqtt::{
    Filling, FillingError, Framing, MqttOptions, MqttSource, MqttVersion, PublishTimes, Published, Qos,
    RecordFormat, Will,
};
pub use options::{PlayOptions, PublishOptions};
pub use playback_model::{Continuation, FrameInterval, PlaybackModel, Reading, ReceivedFrame, SourceFrames};
pub use playout::{Change, Playout};
pub use reconnect::Return;
pub use redirect::Redirects;
pub use resolve::{Resolve, UnknownResolve};
pub use rtc::RtcOptions;
pub use rtmp::RtmpOptions;
pub use rtsp::{RtspTransport, UnknownTransport};
pub use sequence::{Finding, Sequence};
pub use shard_recorder::{
    ClientFailure, ClientRecord, Ending, Gap, Latest, ON_TIME, PlannedStart, ShardRecorder, Turn,
};
pub use stall_recorder::StallRecorder;
pub use stamp_scanner::StampScanner;
pub use suggest::meant;
pub use target::{
    Credentials, Link, Password, Placeholders, Scheme, Target, TargetError, check_templates, expand,
    scheme_of,
};
pub use timeline::{Position, Timeline, Track};
pub use track_format::{MOST_TRACKS, TrackFormat};
pub use ts::{DiscoveryError, FetchError, MirakurunOptions, TsViewer};
pub use weir_address::{KeyNumbers, SecretUrl, shown};
pub use weir_media::{AudioCodec, FrameRate, UnknownAudioCodec};
pub use weir_metrics::BitRate;
pub use weir_web::GivenFields;
pub use workload::{NewClient, ServerVersion, Workload};
pub use workload_error::WorkloadError;
