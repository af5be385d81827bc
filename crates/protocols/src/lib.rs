//! The protocols that weir speaks: one [`Protocol`] value each, in one table.
//!
//! Code that needs to know what a URL's scheme means (the command line, a scenario, its JSON Schema, refusals, reports)
//! iterates [`PROTOCOLS`] and names no protocol. An option is declared once, as a field of a [`clap::Args`]
//! struct in the module of its protocol, and is both a flag of the command line and a key of a workload: `--keep-alive`
//! and `keep_alive`. A protocol is added by a folder here and a row of the table.

pub mod asked;
mod bulk;
mod comeback;
mod content;
mod given;
mod group;
mod http;
mod http_flv;
mod keys;
mod lack;
mod mirakurun;
mod mpegts;
pub mod mqtt;
mod protocol;
mod rtmp;
mod secret;
mod table;
mod viewer;
mod webrtc;

pub use given::Given;
pub use group::Group;
pub use keys::{add_to_schema, declared};
pub use lack::Lack;
pub use protocol::{Excess, Make, Making, Output, Play, Protocol, Publish, RunContext, Serve, Verb};
pub use secret::first_line;
pub use table::{
    PROTOCOLS, columns_of, groups_of, has_messages, of_scheme, of_url, play, publish, schema_of, schemes,
    warnings,
};
pub use viewer::{are_decoded, buffer};
