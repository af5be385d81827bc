//! When publishers sent and were acknowledged, first and last: for whoever measures a stretch between the two.

use weir_metrics::Stretch;

/// Moments that publishers leave here while they publish.
#[derive(Debug, Default)]
pub struct PublishTimes {
    /// Messages were handed to the link, one by one.
    pub sent: Stretch,
    /// Reads brought last acknowledgements of messages of QoS 1 and 2.
    pub acknowledged: Stretch,
}
