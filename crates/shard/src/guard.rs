//! When an accepted link ends because its peer does not go on: one rule for all listeners.

use crate::session::Progress;
use crate::sys::AcknowledgedBytes;
use crate::timer::Deadline;
use std::time::Duration;
use weir_metrics::Moment;

/// How long the peers of accepted links may take. Clients, which open links, have deadlines of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// From the connection, TLS included, to [`Context::established`], and from [`Context::await_request`] to that. After
    /// [`Context::answered`]: from the moment at which the peer has last taken something of the answer. What it has taken
    /// is looked at once in this time, so that a peer that reads on and then falls silent is ended after twice this at
    /// the latest.
    ///
    /// [`Context::established`]: crate::Context::established
    /// [`Context::await_request`]: crate::Context::await_request
    /// [`Context::answered`]: crate::Context::answered
    pub request: Duration,
    /// While the peer neither sends a byte nor acknowledges one. A link ends after this, and at twice this at the latest:
    /// what was acknowledged is looked at once in this time.
    pub idle: Duration,
}

impl Default for Deadlines {
    /// 15 seconds and ten minutes.
    fn default() -> Self {
        Self { request: Duration::from_secs(15), idle: Duration::from_secs(600) }
    }
}

/// What is known of an accepted link.
#[derive(Debug)]
pub(crate) struct Guard {
    pub(crate) deadline: Deadline,
    limits: Deadlines,
    phase: GuardPhase,
    /// When the peer last sent something.
    heard: Moment,
    /// What it had acknowledged when that was looked at.
    acknowledged: u64,
    /// How long it may be silent while nothing waits for it, where it was promised more than the limit.
    silence: Duration,
    /// When the link was last looked at.
    looked: Moment,
    /// Whether something waited for it then, and it had taken nothing.
    waited: bool,
}

/// What the peer of a link has taken of what it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SendProgress {
    pub(crate) acknowledged: AcknowledgedBytes,
    /// Whether more waits for it than the kernel keeps.
    pub(crate) waits: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GuardPhase {
    /// The peer has to say what it wants, since then.
    Asked(Moment),
    /// The peer has to take an answer, and then to say what else it wants. It has last taken something then.
    Answered(Moment),
    Established,
}

/// What becomes of a link whose deadline has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeadlineOutcome {
    /// Look again then.
    GoesOn(Moment),
    /// The peer has not said what it wants.
    NoRequest(Duration),
    /// The peer is silent for too long.
    Idle(Duration),
}

impl Guard {
    /// Of a link that was accepted now.
    pub(crate) fn new(limits: Deadlines, now: Moment) -> Self {
        Self {
            deadline: Deadline::default(),
            limits,
            phase: GuardPhase::Asked(now),
            heard: now,
            acknowledged: 0,
            silence: Duration::ZERO,
            looked: now,
            waited: false,
        }
    }

    /// Bytes came.
    #[inline]
    pub(crate) fn on_input(&mut self, now: Moment) {
        self.heard = now;
    }

    /// The peer may be silent for this long at least, as long as it takes what it is sent: one that does not would keep a
    /// queue of messages in memory for all that time.
    pub(crate) fn allow_silence(&mut self, span: Duration) {
        self.silence = span;
    }

    /// The longest silence of a peer that nothing waits for.
    fn longest_silence(&self) -> Duration {
        self.limits.idle.max(self.silence)
    }

    /// The session says where its peer stands; when to look at the link.
    pub(crate) fn settle(&mut self, progress: Progress, now: Moment) -> Moment {
        match (progress, self.phase) {
            (Progress::AwaitsRequest, _) => self.phase = GuardPhase::Asked(now),
            (Progress::Answered, _) => self.phase = GuardPhase::Answered(now),
            (Progress::Established, GuardPhase::Established) => {}
            (Progress::Established, _) => (self.phase, self.heard) = (GuardPhase::Established, now),
        }
        self.poll_timeout()
    }

    /// When to look at the link.
    pub(crate) fn poll_timeout(&self) -> Moment {
        match self.phase {
            GuardPhase::Asked(since) | GuardPhase::Answered(since) => since + self.limits.request,
            GuardPhase::Established => {
                let look = self.heard.max(self.looked) + self.limits.idle;
                look.min(self.heard + self.longest_silence())
            }
        }
    }

    /// Looks at the link.
    pub(crate) fn judge(&mut self, now: Moment, taken: impl FnOnce() -> SendProgress) -> DeadlineOutcome {
        let next = self.poll_timeout();
        if next > now {
            return DeadlineOutcome::GoesOn(next);
        }
        if let GuardPhase::Asked(_) = self.phase {
            return DeadlineOutcome::NoRequest(self.limits.request);
        }
        let SendProgress { acknowledged: AcknowledgedBytes { bytes, ago }, waits } = taken();
        let takes = std::mem::replace(&mut self.acknowledged, bytes) != bytes;
        // Not now: it may have been right behind the last look.
        let last = now - ago;
        match &mut self.phase {
            GuardPhase::Answered(since) if takes => *since = last.max(*since),
            GuardPhase::Established if takes => self.heard = last.max(self.heard),
            _ => {}
        }
        let has_waited = std::mem::replace(&mut self.waited, waits && !takes);
        self.looked = now;
        match self.phase {
            GuardPhase::Established if waits && has_waited && !takes => {
                DeadlineOutcome::Idle(self.limits.idle)
            }
            GuardPhase::Established if now >= self.heard + self.longest_silence() => {
                DeadlineOutcome::Idle(self.longest_silence())
            }
            GuardPhase::Asked(_) | GuardPhase::Answered(_) if self.poll_timeout() <= now => {
                DeadlineOutcome::NoRequest(self.limits.request)
            }
            _ => DeadlineOutcome::GoesOn(self.poll_timeout()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Deadlines = Deadlines { request: Duration::from_secs(15), idle: Duration::from_secs(600) };

    fn second(n: u64) -> Moment {
        Moment::from_nanos(n * 1_000_000_000)
    }

    fn taken(bytes: u64, seconds_ago: u64) -> SendProgress {
        let acknowledged = AcknowledgedBytes { bytes, ago: Duration::from_secs(seconds_ago) };
        SendProgress { acknowledged, waits: false }
    }

    #[test]
    fn who_says_nothing_of_use_is_let_go_however_much_it_sends() {
        let mut guard = Guard::new(LIMITS, second(0));
        for n in 0..15 {
            guard.on_input(second(n));
            assert_eq!(guard.judge(second(n), || taken(n, 0)), DeadlineOutcome::GoesOn(second(15)));
        }
        assert_eq!(guard.judge(second(15), || taken(15, 0)), DeadlineOutcome::NoRequest(LIMITS.request));
    }

    #[test]
    fn a_request_ends_one_deadline_and_the_next_one_begins_it_again() {
        let mut guard = Guard::new(LIMITS, second(0));
        assert_eq!(guard.settle(Progress::Established, second(10)), second(610));
        assert_eq!(
            guard.settle(Progress::Established, second(20)),
            second(610),
            "saying it twice is no sign of life"
        );
        assert_eq!(guard.settle(Progress::AwaitsRequest, second(30)), second(45));
        assert_eq!(guard.settle(Progress::AwaitsRequest, second(40)), second(55));
        assert_eq!(guard.judge(second(55), || taken(0, 0)), DeadlineOutcome::NoRequest(LIMITS.request));
    }

    #[test]
    fn who_neither_sends_nor_acknowledges_is_idle() {
        let mut guard = Guard::new(LIMITS, second(0));
        guard.settle(Progress::Established, second(0));
        guard.on_input(second(100));
        assert_eq!(guard.judge(second(600), || taken(0, 0)), DeadlineOutcome::GoesOn(second(700)));
        assert_eq!(
            guard.judge(second(700), || taken(5_000, 0)),
            DeadlineOutcome::GoesOn(second(1_300)),
            "a viewer takes what it is sent"
        );
        assert_eq!(guard.judge(second(1_300), || taken(5_000, 0)), DeadlineOutcome::Idle(LIMITS.idle));
    }

    /// A peer that was promised a silence of an hour and a half.
    fn promised() -> Guard {
        let mut guard = Guard::new(LIMITS, second(0));
        guard.allow_silence(Duration::from_secs(5_400));
        assert_eq!(guard.poll_timeout(), second(15), "it has to ask for something all the same");
        assert_eq!(guard.settle(Progress::Established, second(0)), second(600));
        guard
    }

    #[test]
    fn who_may_be_silent_for_longer_is_let_go_after_that() {
        let mut guard = promised();
        for n in 1..=8 {
            assert_eq!(
                guard.judge(second(600 * n), || taken(0, 0)),
                DeadlineOutcome::GoesOn(second(600 * (n + 1)))
            );
        }
        assert_eq!(
            guard.judge(second(5_400), || taken(0, 0)),
            DeadlineOutcome::Idle(Duration::from_secs(5_400))
        );
        // A promise of less than all have takes nothing away.
        let mut guard = Guard::new(LIMITS, second(0));
        guard.allow_silence(Duration::from_secs(10));
        assert_eq!(guard.settle(Progress::Established, second(0)), second(600));
    }

    #[test]
    fn who_may_be_silent_for_longer_takes_what_waits_for_it_in_the_usual_time() {
        let waiting = |bytes| SendProgress { waits: true, ..taken(bytes, 0) };
        let mut guard = promised();
        assert_eq!(guard.judge(second(600), || taken(0, 0)), DeadlineOutcome::GoesOn(second(1_200)));
        assert_eq!(guard.judge(second(1_200), || waiting(0)), DeadlineOutcome::GoesOn(second(1_800)));
        assert_eq!(
            guard.judge(second(1_800), || waiting(1)),
            DeadlineOutcome::GoesOn(second(2_400)),
            "it takes some"
        );
        assert_eq!(guard.judge(second(2_400), || waiting(1)), DeadlineOutcome::GoesOn(second(3_000)));
        assert_eq!(guard.judge(second(3_000), || waiting(1)), DeadlineOutcome::Idle(LIMITS.idle));
    }

    #[test]
    fn who_reads_its_answer_slowly_has_time_to_ask_when_it_has_read_it() {
        let mut guard = Guard::new(LIMITS, second(0));
        assert_eq!(guard.settle(Progress::Answered, second(10)), second(25));
        assert_eq!(guard.judge(second(25), || taken(5_000, 1)), DeadlineOutcome::GoesOn(second(39)));
        assert_eq!(guard.judge(second(39), || taken(9_000, 4)), DeadlineOutcome::GoesOn(second(50)));
        assert_eq!(guard.judge(second(50), || taken(9_000, 0)), DeadlineOutcome::NoRequest(LIMITS.request));
    }

    #[test]
    fn who_has_read_its_answer_at_once_has_no_longer_than_that_to_ask() {
        let mut guard = Guard::new(LIMITS, second(0));
        guard.settle(Progress::Answered, second(10));
        assert_eq!(guard.judge(second(25), || taken(5_000, 15)), DeadlineOutcome::NoRequest(LIMITS.request));
        // A peer that has not sent a request at all has no longer, although it acknowledges a TLS handshake.
        let mut guard = Guard::new(LIMITS, second(0));
        assert_eq!(guard.judge(second(15), || taken(5_000, 0)), DeadlineOutcome::NoRequest(LIMITS.request));
    }
}
