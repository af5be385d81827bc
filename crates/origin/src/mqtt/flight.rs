//! Messages of QoS 1 and 2 that were sent to one client and are not acknowledged for good (MQTT 5 section 4.3).

use super::delivery::Delivery;
use std::collections::HashMap;
use weir_mqtt::{PacketId, Qos};

/// What was sent to one client, by its packet identifiers.
#[derive(Debug, Default)]
pub(super) struct Flight {
    sent: HashMap<PacketId, Sent>,
    last_id: u16,
    /// How many were sent so far.
    order: u64,
}

/// A message that was sent.
#[derive(Debug)]
struct Sent {
    order: u64,
    awaits: Awaits,
    /// The message, for a session that is to be sent it again.
    kept: Option<Delivery>,
}

/// The packet that a message waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaits {
    Puback,
    Pubrec,
    Pubcomp,
}

/// What is to be sent again on another connection (MQTT-4.4.0-1).
#[derive(Debug)]
pub(super) enum Again {
    /// The message, with DUP.
    Publish(Delivery),
    /// PUBREL: the client has it.
    Pubrel,
}

/// What an acknowledgement has done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AckOutcome {
    /// It is of nothing that was sent, or of another kind than that waits for.
    Unknown,
    /// The client has a message of QoS 2, or is not to be sent it, which is not kept any longer. Its length in bytes.
    Received(usize),
    /// The exchange is over, and the identifier free again. Bytes that are not kept any longer.
    Over(usize),
}

impl Flight {
    pub(super) fn len(&self) -> usize {
        self.sent.len()
    }

    /// Bytes that are taken beside those of the messages.
    pub(super) fn memory(&self) -> usize {
        self.sent.capacity() * size_of::<(PacketId, Sent)>()
    }

    /// A message goes out. It is kept to be sent again if `keeps`.
    pub(super) fn begin(&mut self, delivery: &Delivery, keeps: bool) -> PacketId {
        let id = self.free_id();
        let awaits = if delivery.qos == Qos::ExactlyOnce { Awaits::Pubrec } else { Awaits::Puback };
        self.sent.insert(id, Sent { order: self.order, awaits, kept: keeps.then(|| delivery.clone()) });
        self.order += 1;
        id
    }

    /// PUBACK came.
    pub(super) fn on_puback(&mut self, id: PacketId) -> AckOutcome {
        self.end(id, Awaits::Puback)
    }

    /// PUBREC came; one with an error ends the exchange (MQTT 5 section 4.3.3).
    pub(super) fn on_pubrec(&mut self, id: PacketId, is_error: bool) -> AckOutcome {
        match self.sent.get_mut(&id) {
            Some(sent) if sent.awaits == Awaits::Pubrec && !is_error => {
                sent.awaits = Awaits::Pubcomp;
                AckOutcome::Received(weight(sent.kept.take().as_ref()))
            }
            // It came again.
            Some(sent) if sent.awaits == Awaits::Pubcomp && !is_error => AckOutcome::Received(0),
            Some(_) => self.end(id, Awaits::Pubrec),
            None => AckOutcome::Unknown,
        }
    }

    /// PUBCOMP came.
    pub(super) fn on_pubcomp(&mut self, id: PacketId) -> AckOutcome {
        self.end(id, Awaits::Pubcomp)
    }

    /// A message was too large for its client, whose exchange is over without an acknowledgement.
    pub(super) fn discard(&mut self, id: PacketId) -> AckOutcome {
        let sent = self.sent.remove(&id);
        AckOutcome::Received(weight(sent.and_then(|sent| sent.kept).as_ref()))
    }

    /// What is to be sent again, in the order in which it was sent first (MQTT-4.6.0-1).
    pub(super) fn unacknowledged(&self) -> Vec<PacketId> {
        let mut ids: Vec<_> = self.sent.iter().map(|(id, sent)| (sent.order, *id)).collect();
        ids.sort_unstable();
        ids.into_iter().map(|(_, id)| id).collect()
    }

    /// What of a message is to be sent again; nothing if it was acknowledged meanwhile.
    pub(super) fn again(&self, id: PacketId) -> Option<Again> {
        let sent = self.sent.get(&id)?;
        match &sent.kept {
            Some(delivery) => Some(Again::Publish(delivery.clone())),
            None => (sent.awaits == Awaits::Pubcomp).then_some(Again::Pubrel),
        }
    }

    fn end(&mut self, id: PacketId, awaits: Awaits) -> AckOutcome {
        match self.sent.get(&id) {
            Some(sent) if sent.awaits == awaits => {
                AckOutcome::Over(weight(self.sent.remove(&id).and_then(|sent| sent.kept).as_ref()))
            }
            _ => AckOutcome::Unknown,
        }
    }

    /// No more are in flight than a window, which is much less than there are identifiers.
    fn free_id(&mut self) -> PacketId {
        loop {
            self.last_id = self.last_id.checked_add(1).unwrap_or(1);
            if let Some(id) = PacketId::new(self.last_id).filter(|id| !self.sent.contains_key(id)) {
                return id;
            }
        }
    }
}

/// Bytes that are kept for a message.
fn weight(kept: Option<&Delivery>) -> usize {
    kept.map_or(0, |delivery| delivery.publication.weight())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mqtt::publication::Publication;
    use std::sync::Arc;
    use weir_mqtt::Publish;

    fn delivery(qos: Qos) -> Delivery {
        let publication = Arc::new(Publication::of(&Publish::new("a", b"x")));
        Delivery { publication, qos, retain: false, identifier: None }
    }

    #[test]
    fn what_is_sent_again_is_what_was_not_acknowledged_in_its_order() {
        let mut flight = Flight::default();
        let [one, two, three, four] =
            [Qos::AtLeastOnce, Qos::ExactlyOnce, Qos::ExactlyOnce, Qos::AtLeastOnce]
                .map(|qos| flight.begin(&delivery(qos), true));
        let weight = delivery(Qos::AtLeastOnce).publication.weight();
        assert_eq!(flight.on_puback(one), AckOutcome::Over(weight));
        assert_eq!(flight.on_pubrec(two, false), AckOutcome::Received(weight));
        assert_eq!(flight.on_pubrec(two, false), AckOutcome::Received(0));
        assert_eq!(flight.unacknowledged(), [two, three, four]);
        assert!(matches!(flight.again(two), Some(Again::Pubrel)));
        assert!(matches!(flight.again(three), Some(Again::Publish(_))) && flight.again(one).is_none());
        // Acknowledgements of another kind, and twice.
        assert_eq!(flight.on_pubcomp(three), AckOutcome::Unknown);
        assert_eq!(flight.on_puback(three), AckOutcome::Unknown);
        assert_eq!(flight.on_pubcomp(two), AckOutcome::Over(0));
        assert_eq!(flight.on_pubrec(two, false), AckOutcome::Unknown);
        assert_eq!(flight.on_pubrec(three, true), AckOutcome::Over(weight));
        assert_eq!(flight.on_puback(four), AckOutcome::Over(weight));
        assert_eq!(flight.len(), 0);
    }

    #[test]
    fn an_identifier_is_used_again_when_it_is_free() {
        let mut flight = Flight::default();
        let held = flight.begin(&delivery(Qos::AtLeastOnce), false);
        for _ in 0..70_000 {
            let id = flight.begin(&delivery(Qos::AtLeastOnce), false);
            assert!(id != held && flight.on_puback(id) == AckOutcome::Over(0));
        }
        assert!(flight.again(held).is_none(), "it was not kept");
    }
}
