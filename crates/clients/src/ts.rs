//! MPEG-TS over HTTP: viewers that send one GET and judge the body packet by packet.

mod beginning;
mod container;
mod decoded;
mod fetch;
mod figures;
pub mod mirakurun;
mod play;
mod viewer;
mod workload;

pub use crate::http_request::{SCHEMES, http_scheme};
pub use fetch::FetchError;
pub use figures::FIGURES;
pub use mirakurun::{DiscoveryError, MirakurunOptions};
pub use viewer::TsViewer;
pub use workload::play;

use crate::column::{Column, ColumnUnit};

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

/// Places at which continuity broke, and those of which only the least loss is known: two of [`SCHEMA`].
pub const GAP_EVENTS: weir_metrics::Counter = figures::GAP_EVENTS;
/// See [`GAP_EVENTS`].
pub const LOST_UNKNOWN: weir_metrics::Counter = figures::LOST_UNKNOWN;

/// Their figures.
pub const SCHEMA: weir_metrics::Schema = weir_metrics::Schema::new(FIGURES);
