//! MPEG-TS over HTTP: viewers that send one GET and judge the body packet by packet.

mod body;
mod fetch;
mod figures;
mod head;
pub(crate) mod mirakurun;
mod play;
mod redirect;
mod request;
mod workload;

pub use fetch::FetchError;
pub use mirakurun::{DiscoveryError, MirakurunOptions};
pub(crate) use workload::play;

use crate::target::{Credentials, Scheme};

/// What only HTTP has.
#[derive(Clone, Debug, Default)]
pub struct HttpOptions {
    /// User and password for URLs that name none, percent-encoded as in a URL.
    pub credentials: Option<Credentials>,
    /// More fields of the request, by name. Values are one line each.
    pub fields: Vec<(&'static str, String)>,
}

/// The schemes of its viewers.
pub(crate) const SCHEMES: &[Scheme] =
    &[Scheme { name: "http", port: 80, secure: false }, Scheme { name: "https", port: 443, secure: true }];

/// The table by channel: that of the classic measurement, and what it lacks.
pub(crate) const COLUMNS: &[(&str, &str)] = &[
    ("media", "#BYTES"),
    ("units", "#PACKETS"),
    ("ts.aribts_drops", "#DROPS"),
    ("ts.lost_packets", "Lost"),
    ("ts.gap_events", "Gaps"),
    ("ts.transport_errors", "TEI"),
    ("ts.scrambled_packets", "TSC"),
    ("ts.resyncs", "Resyncs"),
    ("ts.pcr_discontinuities", "PCR jumps"),
];

/// Their figures.
pub(crate) const SCHEMA: weir_metrics::Schema = weir_metrics::Schema::new(figures::FIGURES);
