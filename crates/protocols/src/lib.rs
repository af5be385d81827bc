#![doc = include_str!("../README.md")]

pub mod asked;
mod bulk;
mod comeback;
mod content;
mod given;
mod group;
mod hls;
mod http;
mod http_flv;
mod keys;
mod link;

mod mirakurun;
mod mpegts;
pub mod mqtt;
mod protocol;
mod rtmp;
mod rtsp;
mod secret;
mod served_stream;
mod srt;
mod table;
mod unfilled;
mod viewer;
mod webrtc;

#[cfg(any(test, feature = "fuzz"))]
#[doc(hidden)]
pub use hls::harness;

pub use given::Given;
pub use group::Group;
pub use keys::{add_to_schema, declared};
pub use link::is_narrow;
pub use protocol::{
    Circumstances, Excess, Load, Make, Making, Output, OwnExcess, Play, Protocol, Publish, RunContext, Serve,
    Verb,
};
pub use secret::first_line;
pub use served_stream::{ServedStream, StreamSource};
pub use srt::passphrase as srt_passphrase;
pub use table::{
    PROTOCOLS, check_templates, columns_of, datagrams, given_up, groups_of, has_messages, is_udp, of_scheme,
    of_url, own_excesses, play, publish, schema_of, schemes, warnings,
};
pub use unfilled::Unfilled;
pub use viewer::{are_decoded, buffer};
