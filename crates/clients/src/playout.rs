//! The modelled player: a buffer of media that fills as media arrives and drains with the clock.

use std::time::Duration;
use weir_metrics::Moment;

/// A player that starts when `start` of media is buffered, stalls when none is left, and plays on when
/// `resume` is buffered again.
///
/// It is a function of its inputs. Whether its client reads at every event or in large batches makes
/// no difference, as long as the client reads whatever waits before it lets time pass [`Self::runs_dry`].
#[derive(Clone, Copy, Debug)]
pub struct Playout {
    /// All in microseconds.
    start: u64,
    resume: u64,
    /// Media received since the first frame.
    received: u64,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Has not begun to play.
    Filling,
    /// Plays, from `from` on: what has been shown is the time since `epoch`.
    Playing { epoch: Moment, from: u64 },
    /// Ran dry when this much had been shown, which was all that had come.
    Stalled { since: Moment, shown: u64 },
}

/// What became of the player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It began to play.
    Started,
    /// It ran dry at this moment.
    Stalled(Moment),
    /// It plays again, having been stalled since this moment.
    Resumed(Moment),
}

impl Playout {
    /// A player with an empty buffer.
    pub fn new(start: Duration, resume: Duration) -> Self {
        Self { start: micros(start), resume: micros(resume), received: 0, state: State::Filling }
    }

    /// Notes that media up to `media` (since the first frame) had come by `now`. If the player ran
    /// dry before, [`Self::handle_timeout`] must have been called first.
    pub fn receive(&mut self, now: Moment, media: Duration) -> Option<Change> {
        self.received = self.received.max(micros(media));
        match self.state {
            State::Filling if self.received >= self.start => {
                self.state = State::Playing { epoch: now, from: 0 };
                Some(Change::Started)
            }
            State::Stalled { since, shown }
                if self.received >= shown + self.resume && self.received > shown =>
            {
                self.state = State::Playing { epoch: now - Duration::from_micros(shown), from: shown };
                Some(Change::Resumed(since))
            }
            _ => None,
        }
    }

    /// Some of what was to be buffered before it begins, this much, does not come: it begins with what is left.
    pub fn begin_with_less(&mut self, now: Moment, missed: Duration) -> Option<Change> {
        let State::Filling = self.state else { return None };
        self.start = self.start.saturating_sub(micros(missed));
        let has_enough = self.received > 0 && self.received >= self.start;
        has_enough.then(|| {
            self.state = State::Playing { epoch: now, from: 0 };
            Change::Started
        })
    }

    /// Takes note that nothing more had come by `now`.
    pub fn handle_timeout(&mut self, now: Moment) -> Option<Change> {
        let dry = self.runs_dry().filter(|dry| *dry <= now)?;
        self.state = State::Stalled { since: dry, shown: self.received };
        Some(Change::Stalled(dry))
    }

    /// One track of the media has ended at `media`, whatever the other has brought beyond it: the player runs dry there, or has
    /// before `now`. What comes of that track makes it whole again, by [`Self::receive`].
    pub fn end_track(&mut self, now: Moment, media: Duration) -> Option<Change> {
        let State::Playing { from, .. } = self.state else { return None };
        self.received = micros(media).clamp(from.min(self.received), self.received);
        // What comes at the very moment is in time.
        let dry = self.runs_dry().filter(|dry| *dry < now)?;
        self.state = State::Stalled { since: dry, shown: self.received };
        Some(Change::Stalled(dry))
    }

    /// Whether it has begun to play, at some time.
    pub fn has_begun(&self) -> bool {
        !matches!(self.state, State::Filling)
    }

    /// The media that it buffers before it begins.
    pub fn buffer(&self) -> Duration {
        Duration::from_micros(self.start)
    }

    /// When the player runs dry if nothing comes; `None` while it does not play.
    pub fn runs_dry(&self) -> Option<Moment> {
        match self.state {
            State::Playing { epoch, .. } => Some(epoch + Duration::from_micros(self.received)),
            State::Filling | State::Stalled { .. } => None,
        }
    }

    /// How much media it lacks before it plays, or plays on; `None` while it plays.
    pub fn lacks(&self) -> Option<Duration> {
        let lacks = match self.state {
            State::Filling => self.start.saturating_sub(self.received),
            State::Stalled { shown, .. } => (shown + self.resume).saturating_sub(self.received),
            State::Playing { .. } => return None,
        };
        Some(Duration::from_micros(lacks))
    }

    /// Since when it has waited for media, if it does.
    pub fn stalled_since(&self) -> Option<Moment> {
        match self.state {
            State::Stalled { since, .. } => Some(since),
            State::Filling | State::Playing { .. } => None,
        }
    }
}

fn micros(span: Duration) -> u64 {
    span.as_micros() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Moment {
        Moment::from_nanos(milliseconds * 1_000_000)
    }

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    /// Plays a list of (arrival, media received) to the end of time, letting it pass in between.
    fn stalls(start: u64, resume: u64, arrivals: &[(u64, u64)]) -> Vec<(u64, Option<u64>)> {
        let mut playout = Playout::new(ms(start), ms(resume));
        let mut stalls: Vec<(u64, Option<u64>)> = Vec::new();
        let mut note = |change: Option<Change>, now: u64| match change {
            Some(Change::Stalled(since)) => stalls.push((since.as_nanos() / 1_000_000, None)),
            Some(Change::Resumed(_)) => stalls.last_mut().unwrap().1 = Some(now),
            Some(Change::Started) | None => {}
        };
        for &(arrival, media) in arrivals {
            // What comes at the very moment is in time.
            note(playout.handle_timeout(at(arrival) - Duration::from_nanos(1)), arrival);
            note(playout.receive(at(arrival), ms(media)), arrival);
        }
        note(playout.handle_timeout(at(1_000_000)), 1_000_000);
        stalls
    }

    /// Name, start, resume, (arrival, media received), (stalled since, until).
    type Case<'a> = (&'a str, u64, u64, &'a [(u64, u64)], &'a [(u64, u64)]);

    #[test]
    fn a_player_begins_with_what_is_left_of_its_buffer_and_never_with_nothing() {
        let mut playout = Playout::new(ms(6_000), Duration::ZERO);
        assert_eq!(playout.begin_with_less(at(0), ms(2_000)), None);
        assert_eq!(playout.receive(at(1), ms(2_000)), None);
        assert_eq!(playout.begin_with_less(at(2), ms(2_000)), Some(Change::Started));
        assert_eq!(playout.runs_dry(), Some(at(2_002)));
        // It plays: what is missed now is missed when it has shown what it has.
        assert_eq!(playout.begin_with_less(at(3), ms(2_000)), None);
        let mut empty = Playout::new(ms(2_000), Duration::ZERO);
        assert_eq!(empty.begin_with_less(at(0), ms(4_000)), None);
        assert_eq!(empty.receive(at(1), ms(500)), Some(Change::Started));
    }

    #[test]
    fn a_player_stalls_when_it_has_shown_all_it_got() {
        const NEVER: u64 = 0;
        let cases: &[Case<'_>] = &[
            ("never enough to start", 1_000, 1_000, &[(0, 0), (500, 900)], &[]),
            (
                "starts with 1 s, runs out at its end",
                1_000,
                1_000,
                &[(0, 0), (1_000, 1_000)],
                &[(2_000, NEVER)],
            ),
            (
                "arrives just in time",
                1_000,
                1_000,
                &[(0, 1_000), (1_000, 2_000), (2_000, 3_000)],
                &[(3_000, NEVER)],
            ),
            (
                "half a second late, resumes when 1 s is there",
                1_000,
                1_000,
                &[(0, 1_000), (1_500, 1_500), (2_000, 2_000)],
                &[(1_000, 2_000), (3_000, NEVER)],
            ),
            (
                "a smaller rebuffer resumes earlier",
                1_000,
                400,
                &[(0, 1_000), (1_500, 1_500), (2_000, 2_000)],
                &[(1_000, 1_500), (2_500, NEVER)],
            ),
            ("a burst at the start lasts", 1_000, 1_000, &[(0, 5_000), (4_999, 6_000)], &[(6_000, NEVER)]),
        ];
        for (name, start, resume, arrivals, expected) in cases {
            let expected: Vec<_> =
                expected.iter().map(|&(since, until)| (since, (until != NEVER).then_some(until))).collect();
            assert_eq!(stalls(*start, *resume, arrivals), expected, "{name}");
        }
    }

    #[test]
    fn a_buffer_of_nothing_starts_at_once_and_resumes_with_the_next_frame() {
        assert_eq!(stalls(0, 0, &[(0, 0), (40, 40), (80, 80)]), [(0, Some(40)), (120, None)]);
    }
}
