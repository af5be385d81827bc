//! What publishers sent and had acknowledged, and when: read by the consumer of their messages in the same run.

use std::sync::atomic::AtomicU64;
use weir_metrics::MomentRange;

/// What publishers leave here while they publish.
#[derive(Debug, Default)]
pub struct PublishTimes {
    /// Messages were handed to the link, one by one.
    pub sent: MomentRange,
    /// Reads brought last acknowledgements of messages of QoS 1 and 2.
    pub acknowledged: MomentRange,
    /// Messages that were acknowledged without an error.
    pub acknowledgements: AtomicU64,
    /// Bytes of the payloads that were sent.
    pub bytes: AtomicU64,
    /// Publishers that have ended, whatever came of them.
    pub ended: AtomicU64,
}
