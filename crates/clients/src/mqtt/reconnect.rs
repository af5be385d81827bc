//! When a client whose link broke tries again, and when it gives up. Knows no link and no packet: times and failures.

use super::outage::Outages;
use crate::client_state::ClientPhase;
use std::sync::Arc;
use std::time::Duration;
use weir_metrics::{Failure, Moment};
use weir_mqtt::ReasonCode;
use weir_shard::Endpoint;

/// The first wait, and the longest; each is twice the one before. A broker that is started again listens within a few
/// hundred milliseconds; one that takes long is not to be asked by thousands all the time.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

/// How long a client tries. Brokers that read gigabytes of persistence at their start take most of a minute.
const PATIENCE: Duration = Duration::from_secs(60);

/// The errors about a broker that does not answer CONNECT, and about one that closes the link without a reason.
pub(super) const NO_CONSENT: &str = "the broker did not consent in time";
pub(super) const CLOSED: &str = "the broker closed the link";

/// Whether and how a client connects again.
#[derive(Debug)]
pub(super) struct Reconnecting {
    /// Where to; `None` if it is not to.
    endpoint: Option<Endpoint>,
    /// The client's number: clients wait for different times, so that not all come at once.
    client: u32,
    away: Option<Away>,
    /// Whether the first connection is tried again as well.
    from_the_first: bool,
    /// When links break on purpose, if they do, and when this one does.
    outages: Option<Arc<Outages>>,
    breaks: Option<Moment>,
}

#[derive(Debug)]
struct Away {
    since: Moment,
    /// Why the link broke.
    failure: Failure,
    words: String,
    attempts: u32,
    step: Step,
    /// Whether there is a link again, on which the broker has not consented yet.
    linked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Until then.
    Waiting(Moment),
    /// Until then the broker must have consented.
    Trying(Moment),
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
        Self { endpoint, client, away: None, from_the_first: false, outages: None, breaks: None }
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
        self.away.is_some()
    }

    /// There is a link again.
    pub(super) fn connected(&mut self) {
        if let Some(away) = &mut self.away {
            away.linked = true;
        }
    }

    /// Whether there is a link to send on.
    pub(super) fn has_link(&self) -> bool {
        self.away.as_ref().is_none_or(|away| away.linked)
    }

    /// The connection, or an attempt at one, has failed. Whether there will be another attempt.
    pub(super) fn lost(&mut self, failure: Failure, words: &str, now: Moment) -> bool {
        if self.endpoint.is_none() || !may_pass(failure) {
            return false;
        }
        let away = self.away.get_or_insert_with(|| Away {
            since: now,
            failure,
            words: words.to_owned(),
            attempts: 0,
            step: Step::Waiting(now),
            linked: false,
        });
        if now.since(away.since) >= PATIENCE {
            return false;
        }
        away.step = Step::Waiting(now + wait(away.attempts, self.client));
        away.attempts += 1;
        away.linked = false;
        true
    }

    /// When to call [`Self::turn`].
    pub(super) fn deadline(&self) -> Option<Moment> {
        match &self.away {
            Some(Away { step: Step::Waiting(until) | Step::Trying(until), .. }) => Some(*until),
            None => self.breaks,
        }
    }

    /// Time passed. A broker may take `timeout` to consent.
    pub(super) fn turn(&mut self, now: Moment, timeout: Duration) -> Option<Turn> {
        let Some(away) = &mut self.away else {
            return self.breaks.take_if(|at| *at <= now).map(|_| Turn::Break);
        };
        match away.step {
            Step::Waiting(until) if until <= now => {
                away.step = Step::Trying(now + timeout);
                self.endpoint.clone().map(Turn::Connect)
            }
            Step::Trying(until) if until <= now => Some(Turn::LetGo),
            Step::Waiting(_) | Step::Trying(_) => None,
        }
    }

    /// The broker has consented: how long the client was away.
    pub(super) fn back(&mut self, now: Moment) -> Duration {
        self.begin(now);
        self.away.take().map_or(Duration::ZERO, |away| now.since(away.since))
    }

    /// Why the client is away, if it is.
    pub(super) fn why(&self) -> Option<(Failure, String)> {
        self.away.as_ref().map(|away| {
            let again = format!("no connection again in {} attempts", away.attempts);
            let colon = if away.words.is_empty() { "" } else { "; " };
            (away.failure, format!("{}{colon}{again}", away.words))
        })
    }

    /// As what a client fails that will not connect again: what broke its link says more than that its broker is still
    /// away, and a refusal says more than both.
    pub(super) fn verdict(&self, failure: Failure, words: &str) -> (Failure, String) {
        self.why().filter(|_| may_pass(failure)).unwrap_or_else(|| (failure, words.to_owned()))
    }
}

/// Between half of a time that doubles and all of it, the same in each run.
fn wait(attempts: u32, client: u32) -> Duration {
    let longest = FIRST.saturating_mul(1 << attempts.min(16)).min(LONGEST);
    let mixed = client.wrapping_add(attempts).wrapping_mul(0x9E37_79B9) >> 16;
    longest / 2 + (longest / 2).mul_f64(f64::from(mixed) / 65_536.0)
}

/// Whether what a client met may be over soon: its broker, or the way to it, is gone. What the two do not agree on will
/// not be.
fn may_pass(failure: Failure) -> bool {
    matches!(
        failure,
        Failure::ClosedByPeer
            | Failure::Reset
            | Failure::ConnectionRefused
            | Failure::Unreachable
            | Failure::ConnectTimeout
            | Failure::HandshakeTimeout
            | Failure::PingTimeout
            | Failure::SendTimeout
            | Failure::Unavailable
            | Failure::Disconnected
    )
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
        assert!(length >= PATIENCE && length < PATIENCE + LONGEST, "{length:?}");
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
