//! What one read brings to a subscriber.

use super::super::connection_answer::ConnectionAnswer;
use super::super::figures::{DELIVERED_AGAIN, EXCESS, LOWER_QOS, PINGS, RETAINED, UNMARKED};
use super::super::refusal;
use super::{Group, SharedOptions};
use weir_metrics::common::{
    DUPLICATE, LATENCY, MEDIA, NEGATIVE_LATENCIES, REORDERED, STAMPED, UNITS, WALL_LATENCIES,
};
use weir_metrics::{Moment, Recorder};
use weir_mqtt::delivery::Arrival;
use weir_mqtt::mark::{Clocks, Mark};
use weir_mqtt::packet::Suback;
use weir_mqtt::{ClientEvent, Publish, Version};

/// What one read brings: added up here, written into the shard's recorder once.
#[derive(Default)]
pub(super) struct ReadTotals {
    pub(super) media: u64,
    pub(super) units: u64,
    pub(super) stamped: u64,
    pub(super) unmarked: u64,
    pub(super) duplicate: u64,
    pub(super) reordered: u64,
    pub(super) retained: u64,
    pub(super) dup: u64,
    pub(super) walls: u64,
    pub(super) negatives: u64,
    pub(super) excess: u64,
    pub(super) pings: u64,
    pub(super) connection: ConnectionAnswer,
    /// Whether the broker has taken the subscription.
    pub(super) granted: bool,
    /// When the read was, if messages have the retain flag that they were published with.
    pub(super) as_published: Option<Moment>,
}

impl ReadTotals {
    /// A message came, of which `shared` subscribers may each have some.
    #[inline]
    pub(super) fn message(
        &mut self,
        publish: &Publish<'_>,
        mark: Option<Mark>,
        here: &Clocks,
        shared: bool,
        group: &mut Group,
        recorder: &mut Recorder,
    ) {
        self.units += 1;
        self.dup += u64::from(publish.dup);
        // One that keeps its flag is new if it was sent since the subscription was granted (MQTT 5 section 3.3.1.3).
        let is_new = |mark: &Mark| {
            let subscribed =
                self.as_published.zip(group.since).map(|(now, since)| now.since(since).as_micros());
            subscribed.is_some_and(|micros| i128::from(here.since(&mark.sent).micros) <= micros as i128)
        };
        if publish.retain && !mark.as_ref().is_some_and(is_new) {
            // It may be from any time.
            self.retained += 1;
            return;
        }
        let Some(mark) = mark else {
            self.unmarked += 1;
            return;
        };
        self.stamped += 1;
        let latency = here.since(&mark.sent);
        recorder.record_signed(LATENCY, latency.micros);
        self.negatives += u64::from(latency.micros < 0);
        self.walls += u64::from(!latency.one_clock);
        let since = group.since;
        let number = mark.sequence_number;
        // All messages of a publisher that began after the subscription should come.
        let first =
            || if since.is_some_and(|since| mark.began_after(since.as_nanos(), here)) { 0 } else { number };
        match group.deliveries.take(mark.publisher, number, first) {
            Some(Arrival::Ahead { missing }) => group.missing += missing,
            Some(Arrival::Late) => {
                group.missing = group.missing.saturating_sub(1);
                // Between those that share a subscription there is no order.
                self.reordered += u64::from(!shared);
            }
            Some(Arrival::Again) => self.duplicate += 1,
            // It was on its way when the subscription was granted.
            Some(Arrival::Early) => {}
            None => self.unmarked += 1,
        }
        if mark.last {
            group.deliveries.end(mark.publisher);
        }
    }

    /// The broker has answered SUBSCRIBE.
    pub(super) fn granted(
        &mut self,
        suback: &Suback<'_>,
        options: &SharedOptions,
        now: Moment,
        group: &mut Group,
        recorder: &mut Recorder,
    ) {
        for reason in suback.reasons.iter() {
            if reason.is_error() {
                self.connection.refused =
                    Some(refusal::of_subscription(reason, &suback.properties, options.version));
                return;
            }
            recorder.count(LOWER_QOS, u64::from(reason.code() < options.subscription.qos.bits()));
        }
        group.since.get_or_insert(now);
        self.granted = true;
    }

    /// Whatever else the broker said.
    #[cold]
    pub(super) fn on_event(&mut self, event: &ClientEvent<'_>, version: Version) {
        match event {
            ClientEvent::Excess { .. } => self.excess += 1,
            ClientEvent::Pong => self.pings += 1,
            other => self.connection.on_event(other, version),
        }
    }

    /// Writes it into the shard's recorder.
    pub(super) fn book(&self, recorder: &mut Recorder) {
        for (figure, value) in [
            (UNITS, self.units),
            (MEDIA, self.media),
            (STAMPED, self.stamped),
            (UNMARKED, self.unmarked),
            (DUPLICATE, self.duplicate),
            (REORDERED, self.reordered),
            (RETAINED, self.retained),
            (DELIVERED_AGAIN, self.dup),
            (WALL_LATENCIES, self.walls),
            (NEGATIVE_LATENCIES, self.negatives),
            (EXCESS, self.excess),
            (PINGS, self.pings),
        ] {
            recorder.count(figure, value);
        }
    }
}
