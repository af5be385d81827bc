//! What the clients of one server came to, beside what all clients of a workload did.

use crate::seconds::totals;
use crate::summary::ServerSummary;
use weir_metrics::common::{FAILED, MEDIA, PLANNED, PLAYED, PLAYING, STARTUP};
use weir_metrics::{Interval, Recorder, Schema, Unit};

/// The figures of the clients of one server, added up over a run.
#[derive(Debug)]
pub(crate) struct ServerTotals {
    figures: Recorder,
    /// Seconds in which its clients played or published, added up over them.
    client_seconds: u64,
}

impl ServerTotals {
    pub(crate) fn new(schema: Schema) -> Self {
        Self { figures: Recorder::new(schema), client_seconds: 0 }
    }

    pub(crate) fn add(&mut self, interval: &Interval) {
        self.figures.append(&interval.figures);
        self.client_seconds = self.client_seconds.saturating_add(interval.level_of(PLAYING).sum);
    }

    pub(crate) fn figures(&self) -> &Recorder {
        &self.figures
    }

    pub(crate) fn summary(&self, server: &str) -> ServerSummary {
        let count = |counter| self.figures.counter(counter);
        let startup = self.figures.spread(STARTUP);
        let client_rate = count(MEDIA) as f64 * 8.0 / self.client_seconds as f64;
        ServerSummary {
            server: server.to_owned(),
            planned: count(PLANNED),
            played: count(PLAYED),
            failed: count(FAILED),
            media_bytes: count(MEDIA),
            client_bit_rate_bps: (self.client_seconds > 0).then_some(client_rate),
            startup: (!startup.is_empty()).then(|| totals::of_histogram(startup, Unit::Micros.scale())),
        }
    }
}
