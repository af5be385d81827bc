//! What a client remembers from one connection to the next (MQTT 5 section 4.1).

use super::flight::{Awaits, Flight};
use crate::packet::{PacketId, PacketKind};
use crate::{Qos, ReasonCode};
use std::collections::VecDeque;

/// The session state of a client: messages in flight both ways, by their identifiers.
#[derive(Clone, Debug, Default)]
pub struct Session {
    pub(super) flight: Flight,
    /// Messages of QoS 2 that came and are not released yet, by identifier, in its order. They are part of the session (section
    /// 4.1), so that they outlive a connection: what came once is not handed out a second time when it comes again.
    received: Vec<ReceivedMessage>,
    /// Messages of QoS 1 that came, and that the caller has not acknowledged.
    unanswered: usize,
    /// What has to be sent again, in order.
    pub(super) resend: VecDeque<Resend>,
    /// Tokens of messages that the server never acknowledged, and whose session it has lost.
    lost: Vec<u64>,
    /// Whether a server has accepted it once.
    begun: bool,
    resumed: bool,
}

/// A message that is to be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resend {
    /// Its identifier.
    pub packet_id: PacketId,
    /// The caller's name for it.
    pub token: u64,
    /// Its quality of service.
    pub qos: Qos,
}

/// A message of QoS 2 that came and is not released.
#[derive(Clone, Copy, Debug)]
struct ReceivedMessage {
    id: PacketId,
    answer: Answer,
    /// Whether it came on this connection. PUBREC answers a PUBLISH: what the server has not sent again is not answered.
    is_here: bool,
}

/// How far the answer to a message of QoS 2 has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// The caller has the message, and is not done with it.
    Awaited,
    /// The caller is done with it, and the server has not sent it again since.
    Ready,
    /// PUBREC was sent.
    Sent,
}

/// Whether a message came for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    Fresh,
    Repeated {
        /// Whether the caller had settled it while the server could not be told.
        settled: bool,
    },
}

impl Session {
    /// One in which nothing has happened.
    pub fn new() -> Self {
        Self::default()
    }

    /// One that may have begun before this process did: a server that still has it does nothing wrong, and nothing
    /// is known to be in flight.
    pub fn continued() -> Self {
        Self { begun: true, ..Self::default() }
    }

    /// Messages that were sent and wait for an acknowledgement.
    pub fn in_flight(&self) -> u16 {
        self.flight.publishes()
    }

    /// Hands out the tokens of messages that were never acknowledged, in the order of sending, after the server has
    /// lost their session.
    pub fn lost(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.lost)
    }

    /// Whether no server has accepted it yet.
    pub(super) fn is_new(&self) -> bool {
        !self.begun
    }

    pub(super) fn was_resumed(&self) -> bool {
        self.resumed
    }

    pub(super) fn begin(&mut self) {
        self.begun = true;
    }

    /// Starts a new session, as Clean Start asks for (MQTT-3.1.2-4).
    pub(super) fn clear(&mut self) {
        self.lose();
        self.begun = false;
    }

    /// The server has none of it (MQTT-3.2.2-5).
    pub(super) fn lose(&mut self) {
        // What was released has come; only that it came once is no longer sure.
        let waiting = self.flight.waiting(|awaits| matches!(awaits, Awaits::Puback | Awaits::Pubrec));
        self.lost.extend(waiting.into_iter().map(|(_, token)| token));
        self.flight = Flight::default();
        self.received.clear();
        self.resend.clear();
        self.unanswered = 0;
        self.resumed = false;
    }

    /// The connection is over.
    pub(super) fn disconnect(&mut self) {
        // Requests are not part of the session. Messages that came are, until a server says that it has none of it.
        let requests =
            self.flight.waiting(|awaits| matches!(awaits, Awaits::Suback(_) | Awaits::Unsuback(_)));
        requests.into_iter().for_each(|(id, _)| self.flight.end(id));
        self.received.iter_mut().for_each(|message| message.is_here = false);
        self.unanswered = 0;
        self.resend.clear();
    }

    /// The server has kept it: lists what is to be sent again (MQTT-4.4.0-1), and says what is to be released again.
    pub(super) fn resume(&mut self) -> Vec<PacketId> {
        self.disconnect();
        self.resumed = true;
        let messages = self.flight.waiting(|awaits| matches!(awaits, Awaits::Puback | Awaits::Pubrec));
        let flight = &self.flight;
        self.resend = messages
            .into_iter()
            .map(|(packet_id, token)| {
                let once = flight.awaited(packet_id, Awaits::Pubrec).is_some();
                Resend { packet_id, token, qos: if once { Qos::ExactlyOnce } else { Qos::AtLeastOnce } }
            })
            .collect();
        let released = self.flight.waiting(|awaits| awaits == Awaits::Pubcomp);
        released.into_iter().map(|(id, _)| id).collect()
    }

    /// A message of QoS 1 or 2 came.
    #[inline]
    pub(super) fn arrive(&mut self, qos: Qos, id: PacketId) -> Arrival {
        if qos != Qos::ExactlyOnce {
            self.unanswered += 1;
            return Arrival::Fresh;
        }
        match self.position(id) {
            Ok(position) => {
                let message = &mut self.received[position];
                message.is_here = true;
                Arrival::Repeated { settled: message.answer == Answer::Ready }
            }
            Err(position) => {
                let message = ReceivedMessage { id, answer: Answer::Awaited, is_here: true };
                self.received.insert(position, message);
                Arrival::Fresh
            }
        }
    }

    /// Messages that came, and of which the server does not know that they are done with.
    #[inline]
    pub(super) fn unacknowledged(&self) -> usize {
        self.unanswered + self.received.len()
    }

    /// Whether a message of QoS 2 came that is not answered.
    pub(super) fn waits_for_caller(&self, id: PacketId) -> bool {
        self.position(id).is_ok_and(|position| self.received[position].answer == Answer::Awaited)
    }

    /// The caller is done with a message that came by an earlier connection of this session. Says whether it waits for PUBREC now:
    /// the server has sent it again.
    pub(super) fn settle(&mut self, id: PacketId) -> bool {
        let Ok(position) = self.position(id) else { return false };
        let message = &mut self.received[position];
        if message.answer == Answer::Awaited {
            message.answer = Answer::Ready;
        }
        message.is_here && message.answer == Answer::Ready
    }

    /// A message of QoS 2 has not come whole.
    pub(super) fn forget(&mut self, id: PacketId) {
        self.received.retain(|message| message.id != id);
    }

    /// Books the answer to a message, and says which packet it is.
    #[inline]
    pub(super) fn answer(&mut self, id: PacketId, reason: ReasonCode) -> PacketKind {
        match self.position(id) {
            Ok(position) => {
                if reason.is_error() {
                    self.received.remove(position);
                } else {
                    self.received[position].answer = Answer::Sent;
                }
                PacketKind::Pubrec
            }
            Err(_) => {
                self.unanswered = self.unanswered.saturating_sub(1);
                PacketKind::Puback
            }
        }
    }

    /// A message of QoS 2 is released; says whether it was there.
    pub(super) fn release(&mut self, id: PacketId) -> bool {
        let position = self.position(id);
        if let Ok(position) = position {
            self.received.remove(position);
        }
        position.is_ok()
    }

    pub(super) fn memory(&self) -> usize {
        self.flight.memory()
            + self.received.capacity() * size_of::<ReceivedMessage>()
            + self.resend.capacity() * size_of::<Resend>()
            + self.lost.capacity() * size_of::<u64>()
    }

    #[inline]
    fn position(&self, id: PacketId) -> Result<usize, usize> {
        self.received.binary_search_by_key(&id, |message| message.id)
    }
}
