//! What a client of a broker does when its link breaks: [`Reconnection`], for those failures that a broker may get over, and
//! links that break on purpose. Knows no link and no packet: times and failures.

use super::outage::Outages;
use crate::client_state::ClientPhase;
use crate::reconnect::{Attempt, RECONNECT_TIMEOUT, Reconnection, may_pass};
use std::sync::Arc;
use std::time::Duration;
use weir_metrics::{Failure, Moment};
use weir_mqtt::ReasonCode;
use weir_shard::Endpoint;

/// The errors about a broker that does not answer CONNECT, and about one that closes the link without a reason.
pub(super) const NO_CONSENT: &str = "the broker did not consent in time";
pub(super) const CLOSED: &str = "the broker closed the link";

/// Whether and how a client connects again.
#[derive(Debug)]
pub(super) struct Reconnecting {
    attempts: Reconnection,
    /// Whether the first connection is tried again as well.
    from_the_first: bool,
    /// When links break on purpose, if they do, and when this one does.
    outages: Option<Arc<Outages>>,
    breaks: Option<Moment>,
}

/// What a client has to do now.
#[derive(Debug)]
pub(super) enum Turn {
    /// To connect.
    Connect(Endpoint),
    /// To let go of a link on which the broker does not consent.
    LetGo,
    /// To break its link off.
    Break,
}

impl Reconnecting {
    /// Of a client that has a link, or makes its first.
    pub(super) fn new(endpoint: Option<Endpoint>, client: u32) -> Self {
        let attempts = Reconnection::new(endpoint, client);
        Self { attempts, from_the_first: false, outages: None, breaks: None }
    }

    /// The same for the first connection as well, if it is to be.
    pub(super) fn retrying_the_first(self, from_the_first: bool) -> Self {
        Self { from_the_first, ..self }
    }

    /// Whether a client in this phase connects again when its link fails.
    pub(super) fn is_for(&self, phase: ClientPhase) -> bool {
        phase == ClientPhase::Playing || phase < ClientPhase::Playing && self.from_the_first
    }

    /// The same with links that break.
    pub(super) fn breaking(self, outages: Option<Arc<Outages>>) -> Self {
        Self { outages, ..self }
    }

    /// The broker has consented for the first time.
    pub(super) fn begin(&mut self, now: Moment) {
        self.breaks = self.outages.as_ref().map(|outages| outages.next(now));
    }

    /// Whether there is no connection.
    pub(super) fn is_away(&self) -> bool {
        self.attempts.is_away()
    }

    /// There is a link again.
    pub(super) fn connected(&mut self) {
        self.attempts.connected();
    }

    /// Whether there is a link to send on.
    pub(super) fn has_link(&self) -> bool {
        self.attempts.has_link()
    }

    /// The connection, or an attempt at one, has failed. Whether there will be another attempt.
    pub(super) fn lost(&mut self, failure: Failure, words: &str, now: Moment) -> bool {
        may_pass(failure) && self.attempts.lost(failure, words, RECONNECT_TIMEOUT, now)
    }

    /// When to call [`Self::turn`].
    pub(super) fn deadline(&self) -> Option<Moment> {
        if self.is_away() { self.attempts.deadline() } else { self.breaks }
    }

    /// Time passed. A broker may take `timeout` to consent.
    pub(super) fn turn(&mut self, now: Moment, timeout: Duration) -> Option<Turn> {
        if !self.is_away() {
            return self.breaks.take_if(|at| *at <= now).map(|_| Turn::Break);
        }
        Some(match self.attempts.attempt(now, timeout)? {
            Attempt::Connect(endpoint) => Turn::Connect(endpoint),
            Attempt::LetGo => Turn::LetGo,
        })
    }

    /// The broker has consented: how long the client was away.
    pub(super) fn back(&mut self, now: Moment) -> Duration {
        self.begin(now);
        self.attempts.back(now)
    }

    /// Whether it is away, and no attempt to come back has failed so far.
    pub(super) fn is_first_attempt(&self) -> bool {
        self.attempts.is_first_attempt()
    }

    /// Why the client is away, if it is.
    pub(super) fn why(&self) -> Option<(Failure, String)> {
        self.attempts.why()
    }

    /// As what a client fails that will not connect again: what broke its link says more than that its broker is still
    /// away, and a refusal says more than both.
    pub(super) fn verdict(&self, failure: Failure, words: &str) -> (Failure, String) {
        self.why().filter(|_| may_pass(failure)).unwrap_or_else(|| (failure, words.to_owned()))
    }
}

/// Whether a client that is sent away for this reason may come back (MQTT 5 section 3.14.2.1).
pub(super) fn may_return(reason: ReasonCode) -> bool {
    matches!(
        reason,
        ReasonCode::Success
            | ReasonCode::UnspecifiedError
            | ReasonCode::ImplementationError
            | ReasonCode::ServerBusy
            | ReasonCode::ServerShuttingDown
            | ReasonCode::KeepAliveTimeout
            | ReasonCode::AdministrativeAction
            | ReasonCode::ConnectionRateExceeded
            | ReasonCode::MaximumConnectTime
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconnect::{FIRST, LONGEST};
    use std::net::SocketAddr;

    const TIMEOUT: Duration = Duration::from_secs(10);

    fn endpoint() -> Endpoint {
        Endpoint::tcp(SocketAddr::from(([127, 0, 0, 1], 1883)))
    }

    #[test]
    fn attempts_come_at_times_that_double_and_end_after_a_minute() {
        let mut reconnecting = Reconnecting::new(Some(endpoint()), 7);
        let start = Moment::from_nanos(5_000_000_000);
        let (mut now, mut waits) = (start, Vec::new());
        while reconnecting.lost(Failure::ConnectionRefused, "refused", now) {
            let at = reconnecting.deadline().unwrap();
            waits.push(at.since(now));
            assert!(reconnecting.turn(now, TIMEOUT).is_none());
            now = at;
            assert!(matches!(reconnecting.turn(now, TIMEOUT), Some(Turn::Connect(_))));
        }
        for (attempt, wait) in (0..).zip(&waits) {
            let longest = FIRST.saturating_mul(1 << u32::min(attempt, 16)).min(LONGEST);
            assert!(longest / 2 <= *wait && *wait <= longest, "{waits:?}");
        }
        let length = now.since(start);
        assert!(length >= RECONNECT_TIMEOUT && length < RECONNECT_TIMEOUT + LONGEST, "{length:?}");
        let (failure, words) = reconnecting.why().unwrap();
        assert_eq!(failure, Failure::ConnectionRefused);
        assert_eq!(reconnecting.verdict(Failure::ConnectTimeout, "x"), (failure, words.clone()));
        assert_eq!(reconnecting.verdict(Failure::Unauthorized, "x").0, Failure::Unauthorized);
        assert_eq!(words, format!("refused; no connection again in {} attempts", waits.len()));
    }

    #[test]
    fn a_client_that_never_played_tries_again_if_it_is_to() {
        let reconnecting =
            |from_the_first| Reconnecting::new(Some(endpoint()), 0).retrying_the_first(from_the_first);
        for phase in [ClientPhase::Connecting, ClientPhase::Handshaking, ClientPhase::Requesting] {
            assert!(reconnecting(true).is_for(phase) && !reconnecting(false).is_for(phase), "{phase:?}");
        }
        assert!(
            reconnecting(false).is_for(ClientPhase::Playing) && !reconnecting(true).is_for(ClientPhase::Over)
        );
    }

    #[test]
    fn a_broker_that_takes_the_link_and_says_nothing_is_left_after_the_timeout() {
        let mut reconnecting = Reconnecting::new(Some(endpoint()), 0);
        let now = Moment::from_nanos(1);
        assert!(reconnecting.lost(Failure::Reset, "", now) && reconnecting.is_away());
        let now = reconnecting.deadline().unwrap();
        assert!(matches!(reconnecting.turn(now, TIMEOUT), Some(Turn::Connect(_))));
        assert_eq!(reconnecting.deadline(), Some(now + TIMEOUT));
        assert!(matches!(reconnecting.turn(now + TIMEOUT, TIMEOUT), Some(Turn::LetGo)));
        assert!(reconnecting.lost(Failure::HandshakeTimeout, "", now + TIMEOUT));
        assert!(reconnecting.back(now + TIMEOUT) > TIMEOUT && !reconnecting.is_away());
    }

    #[test]
    fn what_will_not_be_over_soon_ends_a_client_and_so_does_everything_if_it_is_not_to_reconnect() {
        let now = Moment::from_nanos(1);
        let mut reconnecting = Reconnecting::new(Some(endpoint()), 0);
        for failure in [Failure::Unauthorized, Failure::MalformedInput, Failure::OutOfPorts] {
            assert!(!reconnecting.lost(failure, "", now), "{failure:?}");
        }
        assert!(!Reconnecting::new(None, 0).lost(Failure::Reset, "", now));
        assert!(may_return(ReasonCode::ServerShuttingDown) && !may_return(ReasonCode::SessionTakenOver));
    }
}
