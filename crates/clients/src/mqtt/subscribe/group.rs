//! What came and what is missing, of one subscriber or of all that share a subscription. Knows no packet: what is granted, cut
//! and left.

use crate::mqtt::published::{Lacking, Published};
use crate::target::Target;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_metrics::Moment;
use weir_mqtt::delivery::DeliveryTracker;
use weir_mqtt::topic::Filter;

/// The shared subscriptions of a run, whichever of its workloads their members are of.
#[derive(Debug, Default)]
pub struct SharedSubscriptions(Mutex<HashMap<SharedSubscription, Arc<Mutex<Group>>>>);

/// A shared subscription: host, port, filter.
type SharedSubscription = (String, u16, String);

/// What came, of one subscriber or of all that share a subscription.
#[derive(Debug, Default)]
pub(in crate::mqtt) struct Group {
    pub(super) deliveries: DeliveryTracker,
    pub(super) missing: u64,
    /// When the first was subscribed.
    pub(super) since: Option<Moment>,
    /// Whether all publishers of the run are followed from then on.
    complete: bool,
    members: u32,
    /// Whether a member has left, or is about to.
    closed: bool,
    /// Whether its subscription ended with a link that the run cut.
    interrupted: bool,
}

/// Where deliveries are tracked. Subscribers that share a subscription share a tracker, which each locks once a read.
pub(super) enum Following {
    Alone(Box<Group>),
    Shared(Arc<Mutex<Group>>),
}

/// What a group follows: the publishers of the run, and which of them by broker and filters.
#[derive(Clone, Copy)]
pub(super) struct PublisherFilter<'a> {
    pub(super) published: Option<&'a Published>,
    pub(super) broker: SocketAddr,
    pub(super) filters: &'a [String],
}

impl SharedSubscriptions {
    /// That of a filter at a target, if it is shared. Brokers share for clients of 3.1.1 too, whose standard has no word for it.
    pub(in crate::mqtt) fn find(&self, target: &Target, filter: &str) -> Option<Arc<Mutex<Group>>> {
        Filter::parse(filter).ok().filter(|filter| filter.share.is_some())?;
        let key = (target.host.clone(), target.port, filter.to_owned());
        let mut groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(groups.entry(key).or_default()))
    }
}

impl Following {
    pub(super) fn of(group: Option<Arc<Mutex<Group>>>) -> Self {
        group.map_or_else(|| Self::Alone(Box::default()), Self::Shared)
    }
}

pub(super) fn lock(group: &Mutex<Group>) -> MutexGuard<'_, Group> {
    group.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Group {
    /// A subscription was granted, to one that may be a member already. `resumed`: in a session that may have had it before.
    pub(super) fn grant(&mut self, is_member: &mut bool, resumed: bool, followed: PublisherFilter<'_>) {
        let is_new = !std::mem::replace(is_member, true);
        self.members += u32::from(is_new);
        let begins = is_new && self.members == 1 || std::mem::take(&mut self.interrupted);
        if begins
            && !resumed
            && let Some(published) = followed.published
        {
            published.subscribe(followed.broker, followed.filters, &mut self.deliveries);
            self.complete = true;
        }
    }

    /// The run has cut the link of its only member, and the session with it: what is published until that has subscribed again need
    /// not come.
    pub(super) fn interrupt(&mut self) {
        (self.since, self.complete, self.interrupted) = (None, false, true);
        self.deliveries.interrupt();
    }

    /// The same of one of several, which is no member until it has subscribed again. What was on its way to it, and not to the others,
    /// shows in nothing: nothing that is missing counts.
    pub(super) fn cut(&mut self) {
        self.members -= 1;
        (self.deliveries, self.missing, self.closed) = (DeliveryTracker::closed(), 0, true);
        if self.members == 0 {
            *self = Self::default();
        }
    }

    /// A member of a shared subscription is told to leave. Which later messages are on their way to it when it is gone is unknown, so
    /// of publishers that go on only those up to now are followed.
    pub(super) fn close(&mut self, followed: PublisherFilter<'_>) {
        if !std::mem::replace(&mut self.closed, true) {
            let PublisherFilter { broker, filters, .. } = followed;
            let close =
                |published: &Published, complete, it: &mut _| published.close(broker, filters, complete, it);
            match followed.published {
                Some(published) => close(published, self.complete, &mut self.deliveries),
                None => close(&Published::default(), false, &mut self.deliveries),
            }
        }
    }

    /// A member is gone. What never came, and how many publishers' ends are unknown, if it was the last one.
    pub(super) fn leave(&mut self, followed: PublisherFilter<'_>) -> Option<(u64, Lacking)> {
        self.members -= 1;
        if self.members > 0 {
            return None;
        }
        let lacking = self.lacking(followed);
        let lost = self.missing.saturating_sub(lacking.excused) + lacking.behind;
        // The next one begins a subscription of its own.
        *self = Self::default();
        Some((lost, lacking))
    }

    /// Whether something that should come has not come yet: of what the publishers of this run have published, and if it is shared of
    /// what others got a later one of.
    pub(super) fn waits(&mut self, is_shared: bool, followed: PublisherFilter<'_>) -> bool {
        if followed.published.is_none() && !is_shared {
            return false;
        }
        let lacking = self.lacking(followed);
        lacking.behind + lacking.stopping > 0 || is_shared && self.missing > lacking.excused
    }

    /// What has not come of publishers of this run, and whose ends are not known.
    fn lacking(&mut self, PublisherFilter { published, broker, filters }: PublisherFilter<'_>) -> Lacking {
        match published {
            Some(published) => published.lacking(broker, filters, self.complete, &mut self.deliveries),
            None => Published::default().lacking(broker, filters, false, &mut self.deliveries),
        }
    }
}
