//! What MQTT subscribers are asked by default, by what is known of their scenario.

use super::{Connection, Messages, acknowledged, connects_only};
use crate::given::Given;
use crate::protocol::{Circumstances, Load};
use weir_clients::mqtt::{self, Arrivals};

/// Of messages at random times one is expected where this many come on average: e^-14 is one in a million.
const RANDOM_MESSAGES: u32 = 14;

/// What was acknowledged at QoS 1 and 2 is to arrive, where it is known what that is.
pub(super) fn of_subscribers(given: &Given, of: &Circumstances<'_>) -> Vec<&'static str> {
    let is_asked = acknowledged(given) && !connects_only(given) && is_loss_the_brokers(given, of);
    if is_asked { vec!["lost == 0"] } else { Vec::new() }
}

/// Whether what these subscribers miss is the broker's doing, whatever it is.
fn is_loss_the_brokers(given: &Given, of: &Circumstances<'_>) -> bool {
    // A link that the run cuts takes messages of QoS 0 with it, and no broker keeps them for a subscriber that is away.
    let lost_with_links = |publisher: &&Given| {
        // What it takes of QoS 1 and 2 only the publisher's own process knows.
        let is_unknown = of.is_distributed && breaks(publisher) && !keeps_session(publisher);
        is_unknown || (breaks(publisher) || breaks(given)) && !acknowledged(publisher)
    };
    // What goes to other members: those of other processes are not seen, and which messages were on their way to one that leaves, or whose
    // session ends, is unknown.
    let is_shared = of.urls.iter().any(|url| mqtt::is_shared(url));
    let is_share_unknown = of.is_distributed || of.members_leave || breaks(given) && !keeps_session(given);
    !(of.restarts || of.publishers.iter().any(lost_with_links) || is_shared && is_share_unknown)
}

/// How many messages these publishers must have sent, for one to have come to these subscribers; none if it need not come.
pub(super) fn least_published(subscribers: &Load<'_>, publishers: &Load<'_>) -> Option<u32> {
    let filters = subscribers.given.texts("filter");
    let matches =
        |url: &String| publishers.urls.iter().all(|topic| mqtt::always_matches(url, filters, topic));
    if !subscribers.urls.iter().all(matches) || connects_only(subscribers.given) {
        return None;
    }
    let messages: Messages = publishers.given.read().ok()?;
    // The second one, since the first may be due a moment before the time begins.
    let least = if messages.arrivals == Arrivals::Even { 2 } else { RANDOM_MESSAGES };
    // Those that wait for a client that does not come may begin when subscribers have left.
    (!messages.wait_before_publishing).then_some(least)
}

/// Looked up and not parsed: a large scenario asks this of each pair of its workloads.
fn breaks(given: &Given) -> bool {
    !given.texts("break_every").is_empty()
}

fn keeps_session(given: &Given) -> bool {
    given.read::<Connection>().is_ok_and(|it| it.connect.session.is_some_and(|span| !span.is_zero()))
}
