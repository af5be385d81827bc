//! When a client whose link broke tries again, and when it gives up: the same for all protocols. Knows no link and no packet:
//! times and failures.

use std::time::Duration;
use weir_metrics::{Failure, Moment};
use weir_shard::Endpoint;

/// The first wait, and the longest; each is twice the one before. A server that is started again listens within a few
/// hundred milliseconds; one that takes long is not to be asked by thousands all the time.
pub(crate) const FIRST: Duration = Duration::from_millis(100);
pub(crate) const LONGEST: Duration = Duration::from_secs(5);

/// How long a client tries. Brokers that read gigabytes of persistence at their start take most of a minute.
pub(crate) const RECONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// How long clients try to come back when their link is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Return {
    /// After any loss that may be over soon; none: they fail.
    pub after_loss: Option<Duration>,
    /// When the server said that the stream has ended, if that is another time.
    pub after_end: Option<Duration>,
}

impl Return {
    /// After any loss, for a minute.
    pub const USUAL: Self = Self { after_loss: Some(RECONNECT_TIMEOUT), after_end: None };

    /// Whether any loss may be come back from.
    pub(crate) fn is_asked_for(self) -> bool {
        self.after_loss.is_some() || self.after_end.is_some()
    }

    /// How long to try after this loss of a client that has played.
    fn patience(self, failure: Failure) -> Option<Duration> {
        match failure {
            Failure::StreamEnded => self.after_end.max(self.after_loss),
            _ if may_pass(failure) => self.after_loss,
            _ => None,
        }
    }
}

/// The attempts of one client to have its link again.
#[derive(Debug)]
pub(crate) struct Reconnection {
    /// Where to; `None` if it is not to.
    endpoint: Option<Endpoint>,
    /// The client's number: clients wait for different times, so that not all come at once.
    client: u32,
    away: Option<Away>,
}

#[derive(Debug)]
struct Away {
    since: Moment,
    patience: Duration,
    /// Why the link broke.
    failure: Failure,
    words: String,
    attempts: u32,
    step: Step,
    /// Whether there is a link again, on which the server has not consented yet.
    linked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Until then.
    Waiting(Moment),
    /// Until then the server must have consented.
    Trying(Moment),
}

/// What a client has to do now.
#[derive(Debug)]
pub(crate) enum Attempt {
    /// To connect.
    Connect(Endpoint),
    /// To let go of a link on which the server does not consent.
    LetGo,
}

impl Reconnection {
    /// Of a client that has a link, or makes its first.
    pub(crate) fn new(endpoint: Option<Endpoint>, client: u32) -> Self {
        Self { endpoint, client, away: None }
    }

    /// Whether there is no connection.
    pub(crate) fn is_away(&self) -> bool {
        self.away.is_some()
    }

    /// Whether there is nothing to do but to wait for the next attempt.
    pub(crate) fn waits(&self) -> bool {
        matches!(self.away, Some(Away { step: Step::Waiting(_), .. }))
    }

    /// Whether it is away, and no attempt has failed so far.
    pub(crate) fn is_first_attempt(&self) -> bool {
        self.away.as_ref().is_some_and(|away| away.attempts == 1)
    }

    /// There is a link again.
    pub(crate) fn connected(&mut self) {
        if let Some(away) = &mut self.away {
            away.linked = true;
        }
    }

    /// Whether there is a link to send on.
    pub(crate) fn has_link(&self) -> bool {
        self.away.as_ref().is_none_or(|away| away.linked)
    }

    /// The connection, or an attempt at one, has failed. Whether there will be another attempt, no later than `patience`
    /// after the connection was lost.
    pub(crate) fn lost(&mut self, failure: Failure, words: &str, patience: Duration, now: Moment) -> bool {
        if self.endpoint.is_none() {
            return false;
        }
        let away = self.away.get_or_insert_with(|| Away {
            since: now,
            patience,
            failure,
            words: words.to_owned(),
            attempts: 0,
            step: Step::Waiting(now),
            linked: false,
        });
        if now.since(away.since) >= away.patience {
            return false;
        }
        away.step = Step::Waiting(now + wait(away.attempts, self.client));
        away.attempts += 1;
        away.linked = false;
        true
    }

    /// When to call [`Self::attempt`].
    pub(crate) fn deadline(&self) -> Option<Moment> {
        let Away { step: Step::Waiting(until) | Step::Trying(until), .. } = self.away.as_ref()?;
        Some(*until)
    }

    /// Time passed. A server may take `timeout` to consent.
    pub(crate) fn attempt(&mut self, now: Moment, timeout: Duration) -> Option<Attempt> {
        let away = self.away.as_mut()?;
        match away.step {
            Step::Waiting(until) if until <= now => {
                away.step = Step::Trying(now + timeout);
                self.endpoint.clone().map(Attempt::Connect)
            }
            Step::Trying(until) if until <= now => Some(Attempt::LetGo),
            Step::Waiting(_) | Step::Trying(_) => None,
        }
    }

    /// The server has consented: how long the client was away.
    pub(crate) fn back(&mut self, now: Moment) -> Duration {
        self.away.take().map_or(Duration::ZERO, |away| now.since(away.since))
    }

    /// Why the client is away, if it is.
    pub(crate) fn why(&self) -> Option<(Failure, String)> {
        self.away.as_ref().map(|away| {
            let again = format!("no connection again in {} attempts", away.attempts);
            let colon = if away.words.is_empty() { "" } else { "; " };
            (away.failure, format!("{}{colon}{again}", away.words))
        })
    }
}

/// A client of streams that comes back: what [`Reconnection`] does, and for what.
#[derive(Debug)]
pub(crate) struct Comeback {
    pub(crate) attempts: Reconnection,
    returns: Return,
}

impl Comeback {
    /// A client of this number that comes back to `endpoint`.
    pub(crate) fn new(endpoint: Endpoint, client: u32, returns: Return) -> Self {
        Self { attempts: Reconnection::new(Some(endpoint), client), returns }
    }

    /// The link, or an attempt at another, has failed. Whether there will be another attempt. While the server or its publisher is away it
    /// may refuse whatever is asked for.
    pub(crate) fn lost(&mut self, failure: Failure, words: &str, now: Moment) -> bool {
        let patience = match self.attempts.is_away() {
            true => may_pass_meanwhile(failure).then_some(Duration::ZERO),
            false => self.returns.patience(failure),
        };
        patience.is_some_and(|patience| self.attempts.lost(failure, words, patience, now))
    }

    /// As what a client fails that does not come back: what broke its link says more than that its server is still away, and
    /// a refusal that lasts says more than both.
    pub(crate) fn verdict(&self, failure: Failure, words: &str) -> (Failure, String) {
        self.attempts
            .why()
            .filter(|_| may_pass_meanwhile(failure))
            .unwrap_or_else(|| (failure, words.to_owned()))
    }
}

/// Between half of a time that doubles and all of it, the same in each run.
fn wait(attempts: u32, client: u32) -> Duration {
    let longest = FIRST.saturating_mul(1 << attempts.min(16)).min(LONGEST);
    let mixed = client.wrapping_add(attempts).wrapping_mul(0x9E37_79B9) >> 16;
    longest / 2 + (longest / 2).mul_f64(f64::from(mixed) / 65_536.0)
}

/// Whether what a client met may be over soon: its server, or the way to it, is gone. What the two do not agree on will
/// not be.
pub(crate) fn may_pass(failure: Failure) -> bool {
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
            | Failure::PathLost
    )
}

/// Whether an attempt that failed so may be followed by one that does not: a server that has just begun knows no stream yet,
/// and one that lost a publisher may hold its name for a while.
fn may_pass_meanwhile(failure: Failure) -> bool {
    may_pass(failure)
        || matches!(
            failure,
            Failure::StreamEnded
                | Failure::StreamNotFound
                | Failure::Rejected
                | Failure::RequestTimeout
                | Failure::NoMedia
                | Failure::IceTimeout
                | Failure::DtlsTimeout
        )
}
