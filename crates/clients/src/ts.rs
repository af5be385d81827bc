//! MPEG-TS over HTTP: viewers that send one GET and judge the body packet by packet.

mod container;
mod fetch;
mod figures;
pub mod mirakurun;
mod play;
mod request;
mod workload;

pub use fetch::FetchError;
pub use mirakurun::{DiscoveryError, MirakurunOptions};
pub use workload::play;

#[cfg(any(test, feature = "fuzz"))]
pub(crate) use request::redirected;

use crate::column::{Column, ColumnUnit};
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
pub const SCHEMES: &[Scheme] =
    &[Scheme { name: "http", port: 80, secure: false }, Scheme { name: "https", port: 443, secure: true }];

/// The table by channel: that of the classic measurement, and what it lacks.
pub const COLUMNS: &[Column] = &[
    Column::sum("media", "#BYTES", ColumnUnit::Bytes).by_channel(),
    Column::sum("units", "#PACKETS", ColumnUnit::Count).by_channel(),
    Column::sum("ts.aribts_drops", "#DROPS", ColumnUnit::Count).by_channel(),
    Column::sum("ts.lost_packets", "Lost at least", ColumnUnit::Count).by_channel(),
    Column::sum("ts.lost_estimate", "Lost about", ColumnUnit::Count).by_channel(),
    Column::sum("ts.gap_events", "Gaps", ColumnUnit::Count).by_channel(),
    Column::sum("ts.transport_errors", "TEI", ColumnUnit::Count).by_channel(),
    Column::sum("ts.scrambled_packets", "TSC", ColumnUnit::Count).by_channel(),
    Column::sum("ts.resyncs", "Resyncs", ColumnUnit::Count).by_channel(),
    Column::sum("ts.pcr_discontinuities", "PCR jumps", ColumnUnit::Count).by_channel(),
];

/// What their viewers are asked by default: a packet that is missing shows.
pub const WHOLE: &str = "ts.lost_packets == 0";

/// Their figures.
pub const SCHEMA: weir_metrics::Schema = weir_metrics::Schema::new(figures::FIGURES);
