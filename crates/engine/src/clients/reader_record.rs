//! What one client left behind.

use crate::record::event::EventLine;
use weir_metrics::Failure;

/// What one client said when it ended.
#[derive(Clone, Debug)]
pub(crate) struct ReaderRecord {
    pub(crate) channel: u32,
    pub(crate) client: u32,
    /// `None` for one that never read.
    pub(crate) since: Option<f64>,
    pub(crate) until: f64,
    pub(crate) failure: Option<Failure>,
    pub(crate) numbers: Vec<Option<f64>>,
}

impl ReaderRecord {
    /// What an event says, if it is what a client left behind.
    pub(crate) fn of(event: &EventLine) -> Option<Self> {
        let EventLine::Account { at_seconds, client, channel, since_seconds, failure, numbers, .. } = event
        else {
            return None;
        };
        Some(Self {
            channel: *channel,
            client: *client,
            since: *since_seconds,
            until: *at_seconds,
            failure: *failure,
            numbers: numbers.clone(),
        })
    }
}
