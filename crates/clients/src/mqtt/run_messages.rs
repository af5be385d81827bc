//! What the MQTT clients of one run share.

use super::published::Published;
use super::start_gate::StartGate;
use super::subscribe::SharedSubscriptions;
use super::times::PublishTimes;
use std::sync::Arc;

/// What the publishers and subscribers of one run know of each other.
#[derive(Clone, Debug, Default)]
pub struct RunMessages {
    /// What has been published, for subscribers to hold against what came.
    pub published: Arc<Published>,
    /// What those that share a subscription have received.
    pub shared_subscriptions: Arc<SharedSubscriptions>,
    /// Whether other processes make parts of the run.
    pub is_part: bool,
    /// Where clients wait for each other before the first message.
    pub start_gate: Arc<StartGate>,
    /// Where publishers record when they sent their first and their last message, if the run measures that.
    pub times: Option<Arc<PublishTimes>>,
}
