//! The state of a client, the same for every protocol: phases, deadlines, one end.

use crate::shard_recorder::{Ending, ON_TIME, PlannedStart, ShardRecorder};
use std::time::Duration;
use tracing::debug;
use weir_metrics::common::{
    ACTIVE, AWAY, AWAY_TIME, CONNECT, CONNECTED, EXITS_BEFORE_START, FIRST_BYTE, FIRST_FRAME, HANDSHAKE,
    LEFT_AWAY, PLAYED, REQUEST, START_LAG, STARTED, STARTUP, STARVED, STARVING,
};
use weir_metrics::{Failure, Moment, Recorder, Spread};

/// How far a client has come. Each phase but the last has a deadline and a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClientPhase {
    /// Waits for its link.
    Connecting,
    /// Speaks the protocol's handshake.
    Handshaking,
    /// Waits for the server's consent.
    Requesting,
    /// Waits for the first media unit.
    Waiting,
    /// Waits for the first decodable frame.
    Opening,
    /// Plays, or publishes.
    Playing,
    /// Is over; nothing is recorded any more.
    Over,
}

/// The words for a stream that came, and that no decoder can begin with.
pub(crate) fn undecodable(missing: &str) -> String {
    format!("media came, and no decoder can begin with it: without {missing}")
}

/// Longest stay in each phase before playing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the link is established.
    pub connect: Duration,
    /// Until the handshake is done.
    pub handshake: Duration,
    /// Until the server consents.
    pub request: Duration,
    /// From consent to the first decodable frame, and then without any media.
    pub media: Duration,
}

impl Timeouts {
    /// The same for every phase.
    pub const fn all(timeout: Duration) -> Self {
        Self { connect: timeout, handshake: timeout, request: timeout, media: timeout }
    }
}

/// Where one client stands; books phases and its one end in the shard's recorder.
#[derive(Clone, Copy, Debug)]
pub struct ClientState {
    planned: PlannedStart,
    began: Moment,
    phase: ClientPhase,
    phase_began: Moment,
    /// When the present timeout began: one covers waiting and opening.
    timeout_began: Moment,
    timeouts: Timeouts,
    supply: Supply,
    /// Whether it is in `starved`, which counts clients.
    has_starved: bool,
    /// Whether the last read found nothing.
    found_nothing: bool,
}

/// Whether a client that plays gets media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Supply {
    /// It needs none: a publisher, or a subscriber to messages that come when they come.
    Unneeded,
    /// Last at this moment.
    Fed(Moment),
    /// None for the timeout: it does not play until some comes.
    Starving,
    /// It has played, and has had no link since then: it is looking for another, and nothing of its way there is booked as a start.
    Cut(Moment),
}

impl ClientState {
    /// A client whose link is being opened `now`.
    pub fn begin(planned: PlannedStart, timeouts: Timeouts, now: Moment, shard: &mut ShardRecorder) -> Self {
        let recorder = shard.of(planned);
        recorder.count(STARTED, 1);
        recorder.record(START_LAG, micros(now, planned.at));
        recorder.shift(ACTIVE, 1);
        Self {
            planned,
            began: now,
            phase: ClientPhase::Connecting,
            phase_began: now,
            timeout_began: now,
            timeouts,
            supply: Supply::Unneeded,
            has_starved: false,
            found_nothing: false,
        }
    }

    /// The start that it was planned for.
    pub fn planned(&self) -> PlannedStart {
        self.planned
    }

    /// How far it has come.
    pub fn phase(&self) -> ClientPhase {
        self.phase
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.phase == ClientPhase::Over
    }

    /// Enters the next phase, if `phase` lies ahead; phases in between took no time. Books the
    /// time of those that ended, and the whole startup on the way into [`ClientPhase::Playing`].
    pub fn reach(&mut self, phase: ClientPhase, now: Moment, shard: &mut ShardRecorder) {
        if phase <= self.phase {
            return;
        }
        let plays = phase == ClientPhase::Playing;
        if !self.is_away() {
            self.book(plays, shard.of(self.planned), now);
            if plays {
                shard.shift_playing(self.planned, 1, now);
            }
        } else if plays {
            self.resume(now, shard);
        }
        if (self.phase, phase) != (ClientPhase::Waiting, ClientPhase::Opening) {
            self.timeout_began = now;
        }
        let (client, after) = (self.planned.number(), now.since(self.planned.at));
        debug!(target: "client", client, ?after, "{}", phase.name());
        self.phase = phase;
        self.phase_began = now;
    }

    /// Books the time of the phase that ends, and the whole startup if the next is [`ClientPhase::Playing`].
    fn book(&self, plays: bool, recorder: &mut Recorder, now: Moment) {
        // The connect phase counts from the planned start: a late generator does not flatter a server.
        let since = if self.phase == ClientPhase::Connecting { self.planned.at } else { self.phase_began };
        if let Some(spread) = self.phase.spread() {
            recorder.record(spread, micros(now, since));
        }
        if self.phase == ClientPhase::Connecting {
            recorder.count(CONNECTED, 1);
        }
        if plays {
            recorder.count(PLAYED, 1);
            recorder.record(STARTUP, micros(now, self.planned.at));
        }
    }

    /// Media came in the read of `now`: a viewer that plays needs more of it from here on, and one that starved plays
    /// again.
    #[inline]
    pub fn fed(&mut self, now: Moment, shard: &mut ShardRecorder) {
        if self.phase == ClientPhase::Playing {
            if self.supply == Supply::Starving {
                self.shift_starving(-1, now, shard);
            }
            self.supply = Supply::Fed(now);
        }
    }

    /// A read of `now` has ended; `empty` if nothing waited. A hungry viewer starves once two reads in a row found nothing:
    /// after a long pause of weir itself the first may bring a part of a frame only, and a pull of TLS ends with an empty
    /// one whatever it brought.
    pub fn end_of_read(&mut self, empty: bool, now: Moment, shard: &mut ShardRecorder) {
        if std::mem::replace(&mut self.found_nothing, empty) && empty {
            self.starve(now, shard);
        }
    }

    /// Takes note that nothing more waits unread at `now`. A viewer that has got no media for its timeout does not play
    /// any more: it starves until some comes.
    pub fn starve(&mut self, now: Moment, shard: &mut ShardRecorder) {
        if self.is_hungry(now) {
            self.supply = Supply::Starving;
            self.shift_starving(1, now, shard);
            let before = std::mem::replace(&mut self.has_starved, true);
            shard.of(self.planned).count(STARVED, u64::from(!before));
        }
    }

    /// Whether a viewer that plays has got no media for its timeout, unless some waits unread.
    pub fn is_hungry(&self, now: Moment) -> bool {
        self.phase == ClientPhase::Playing && self.deadline().is_some_and(|deadline| deadline <= now)
    }

    fn shift_starving(&self, by: i64, now: Moment, shard: &mut ShardRecorder) {
        shard.of(self.planned).shift(STARVING, by);
        shard.shift_playing(self.planned, -by, now);
    }

    /// A client that plays has lost its link, and is looking for another: it is not counted as playing.
    pub fn pause(&mut self, now: Moment, shard: &mut ShardRecorder) {
        if self.phase == ClientPhase::Playing && !self.is_away() {
            self.stop_playing(now, shard);
            self.supply = Supply::Cut(now);
            shard.cut_off(self.planned, now);
        }
    }

    /// The link of a client that never played has failed, and another is tried from this moment on: what it is waiting for has all of its
    /// time again.
    pub fn try_again_at(&mut self, at: Moment) {
        self.timeout_began = at;
    }

    /// The same of a client that makes its way through all phases again as soon as it has a link; one that had begun to does so
    /// once more.
    pub(crate) fn begin_again(&mut self, now: Moment, shard: &mut ShardRecorder) {
        self.pause(now, shard);
        self.attempt(now);
    }

    /// Another link is being established.
    pub(crate) fn attempt(&mut self, now: Moment) {
        (self.phase, self.phase_began, self.timeout_began) = (ClientPhase::Connecting, now, now);
    }

    /// Whether it has played, and lost its link since.
    pub fn is_away(&self) -> bool {
        matches!(self.supply, Supply::Cut(_))
    }

    /// Whether its player runs: it plays, or would if it had not lost its link.
    pub fn has_begun(&self) -> bool {
        self.is_away() || self.phase == ClientPhase::Playing
    }

    /// The client has a link again, and plays.
    pub fn resume(&mut self, now: Moment, shard: &mut ShardRecorder) {
        if let Supply::Cut(since) = self.supply {
            self.supply = Supply::Unneeded;
            shard.shift_playing(self.planned, 1, now);
            shard.returned(self.planned, now);
            let recorder = shard.of(self.planned);
            recorder.record(AWAY_TIME, micros(now, since));
            recorder.shift(AWAY, -1);
        }
    }

    /// When the present phase has lasted too long, or a viewer has got no media for too long; `None` when it may last.
    pub fn deadline(&self) -> Option<Moment> {
        let limit = match self.phase {
            ClientPhase::Connecting => self.timeouts.connect,
            ClientPhase::Handshaking => self.timeouts.handshake,
            ClientPhase::Requesting => self.timeouts.request,
            ClientPhase::Waiting | ClientPhase::Opening => self.timeouts.media,
            ClientPhase::Playing => {
                let Supply::Fed(last) = self.supply else { return None };
                return Some(last + self.timeouts.media);
            }
            ClientPhase::Over => return None,
        };
        Some(self.timeout_began + limit)
    }

    /// The failure to book when [`Self::deadline`] has passed, with its words.
    pub fn overdue(&self) -> (Failure, &'static str) {
        match self.phase {
            ClientPhase::Connecting => (Failure::ConnectTimeout, "the link was not established in time"),
            ClientPhase::Handshaking => (Failure::HandshakeTimeout, "the handshake did not end in time"),
            ClientPhase::Requesting => {
                (Failure::RequestTimeout, "the server did not answer the request in time")
            }
            ClientPhase::Waiting => (
                Failure::NoMedia,
                "the server accepted, but sent no media within --timeout: perhaps this stream is not being published",
            ),
            ClientPhase::Opening | ClientPhase::Playing | ClientPhase::Over => {
                (Failure::NoMedia, "media came, but no decodable frame in time")
            }
        }
    }

    /// Books the failure, with the peer's words; a client that is over takes no notice.
    pub fn fail(&mut self, failure: Failure, words: &str, now: Moment, shard: &mut ShardRecorder) {
        if self.leave(now, shard) {
            // The words may hold the stream's key, which is known further up alone.
            debug!(target: "client", client = self.planned.number(), failure = failure.key(), "failed");
            shard.failure(now, self.planned, failure, words);
            shard.end(self.planned, Ending::Failed(failure));
        }
    }

    /// Books the planned end of a client: on time or late if it plays. One that is still on its
    /// way when it must stop has failed as soon as its phase is overdue, and not before; it is
    /// booked as on time or late too.
    ///
    /// One that is replaced after a life, and leaves before it plays and before anybody could be blamed for that, is an exit
    /// before start (CTA-2066).
    pub fn finish(&mut self, now: Moment, shard: &mut ShardRecorder) {
        let was_away = self.is_away();
        let stayed = now.since(self.planned.at);
        let patience = self.planned.turn.patience().map(|patience| patience.min(self.timeouts.media));
        let exits = !self.has_begun() && patience.is_some_and(|patience| stayed < patience);
        if self.leave(now, shard) {
            shard.of(self.planned).count(EXITS_BEFORE_START, u64::from(exits));
            shard.of(self.planned).count(LEFT_AWAY, u64::from(was_away));
            debug!(target: "client", client = self.planned.number(), "ends as planned");
            let late = self.began > self.planned.at + ON_TIME;
            shard.end(self.planned, if late { Ending::Late } else { Ending::OnTime });
        }
    }

    fn leave(&mut self, now: Moment, shard: &mut ShardRecorder) -> bool {
        if self.phase == ClientPhase::Over {
            return false;
        }
        shard.of(self.planned).shift(ACTIVE, -1);
        self.stop_playing(now, shard);
        self.phase = ClientPhase::Over;
        true
    }

    /// Takes it out of the level that it is in.
    fn stop_playing(&self, now: Moment, shard: &mut ShardRecorder) {
        match self.supply {
            Supply::Cut(_) => shard.of(self.planned).shift(AWAY, -1),
            _ if self.phase != ClientPhase::Playing => {}
            Supply::Starving => shard.of(self.planned).shift(STARVING, -1),
            Supply::Unneeded | Supply::Fed(_) => shard.shift_playing(self.planned, -1, now),
        }
    }
}

impl ClientPhase {
    /// The phase's name in the log of a client.
    const fn name(self) -> &'static str {
        match self {
            Self::Connecting => "connects",
            Self::Handshaking => "connected, begins the handshake",
            Self::Requesting => "asks for its stream",
            Self::Waiting => "accepted, waits for media",
            Self::Opening => "gets media, waits for a frame to begin with",
            Self::Playing => "plays or publishes",
            Self::Over => "is over",
        }
    }

    fn spread(self) -> Option<Spread> {
        Some(match self {
            Self::Connecting => CONNECT,
            Self::Handshaking => HANDSHAKE,
            Self::Requesting => REQUEST,
            Self::Waiting => FIRST_BYTE,
            Self::Opening => FIRST_FRAME,
            Self::Playing | Self::Over => return None,
        })
    }
}

fn micros(now: Moment, since: Moment) -> u64 {
    now.since(since).as_micros() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard_recorder::Turn;
    use weir_metrics::Schema;
    use weir_metrics::common::{CUT_OFF, PLAYED_TIME, PLAYING, RETURNED};

    const SECOND: Duration = Duration::from_secs(1);

    fn begin(late: Duration) -> (ClientState, ShardRecorder, Moment) {
        let mut shard = ShardRecorder::new([Schema::new(&[])]).keeping_endings();
        let at = Moment::from_nanos(7_000_000_000);
        let planned = PlannedStart { client: 0, workload: 0, cell: 0, at, turn: Turn::default() };
        let state = ClientState::begin(planned, Timeouts::all(10 * SECOND), at + late, &mut shard);
        (state, shard, at)
    }

    #[test]
    fn one_timeout_covers_the_way_from_consent_to_the_first_frame() {
        let (mut state, mut shard, start) = begin(Duration::ZERO);
        state.reach(ClientPhase::Waiting, start + SECOND, &mut shard);
        state.reach(ClientPhase::Opening, start + 5 * SECOND, &mut shard);
        assert_eq!(state.deadline(), Some(start + 11 * SECOND));
        state.reach(ClientPhase::Playing, start + 6 * SECOND, &mut shard);
        assert_eq!(state.deadline(), None);
    }

    #[test]
    fn a_viewer_without_media_does_not_play_until_some_comes() {
        let (mut state, mut shard, start) = begin(Duration::ZERO);
        let planned = state.planned();
        let levels = |shard: &mut ShardRecorder| {
            let figures = shard.of(planned);
            (figures.gauge(PLAYING), figures.gauge(STARVING), figures.counter(STARVED))
        };
        state.reach(ClientPhase::Playing, start + SECOND, &mut shard);
        assert_eq!(state.deadline(), None, "nobody said that it needs media");
        state.fed(start + 2 * SECOND, &mut shard);
        assert_eq!(state.deadline(), Some(start + 12 * SECOND));
        state.starve(start + 11 * SECOND, &mut shard);
        assert_eq!(levels(&mut shard), (1, 0, 0));
        state.starve(start + 12 * SECOND, &mut shard);
        state.starve(start + 30 * SECOND, &mut shard);
        assert_eq!((levels(&mut shard), state.deadline()), ((0, 1, 1), None));
        state.fed(start + 31 * SECOND, &mut shard);
        assert_eq!((levels(&mut shard), state.deadline()), ((1, 0, 1), Some(start + 41 * SECOND)));
        state.starve(start + 41 * SECOND, &mut shard);
        assert_eq!(levels(&mut shard), (0, 1, 1), "it is one client, however often it starves");
        state.finish(start + 42 * SECOND, &mut shard);
        assert_eq!(levels(&mut shard), (0, 0, 1));
    }

    #[test]
    fn a_client_without_a_link_does_not_play_and_returns_once() {
        let (mut state, mut shard, start) = begin(Duration::ZERO);
        let planned = state.planned();
        state.pause(start, &mut shard);
        state.reach(ClientPhase::Playing, start, &mut shard);
        state.pause(start + SECOND / 2, &mut shard);
        state.pause(start + SECOND, &mut shard);
        let figures = shard.of(planned);
        assert_eq!((figures.gauge(PLAYING), figures.counter(CUT_OFF), figures.counter(RETURNED)), (0, 1, 0));
        state.resume(start + SECOND, &mut shard);
        state.resume(start + 2 * SECOND, &mut shard);
        let figures = shard.of(planned);
        assert_eq!((figures.gauge(PLAYING), figures.counter(CUT_OFF), figures.counter(RETURNED)), (1, 1, 1));
        let latest = shard.latest()[0];
        assert_eq!((latest.cut_off, latest.returned), (Some(start + SECOND / 2), Some(start + SECOND)));
        state.pause(start + 2 * SECOND, &mut shard);
        state.finish(start + 3 * SECOND, &mut shard);
        let figures = shard.of(planned);
        assert_eq!((figures.counter(LEFT_AWAY), figures.counter(RETURNED)), (1, 1));
    }

    #[test]
    fn a_client_that_makes_all_of_its_way_again_has_started_once() {
        let (mut state, mut shard, start) = begin(Duration::ZERO);
        let planned = state.planned();
        state.reach(ClientPhase::Playing, start + SECOND, &mut shard);
        state.fed(start + SECOND, &mut shard);
        state.starve(start + 11 * SECOND, &mut shard);
        for attempt in [12, 13] {
            state.begin_again(start + attempt * SECOND, &mut shard);
            let figures = shard.of(planned);
            let levels = [PLAYING, STARVING, AWAY, ACTIVE].map(|level| figures.gauge(level));
            assert_eq!((levels, figures.counter(CUT_OFF)), ([0, 0, 1, 1], 1));
            assert!(state.is_away() && state.has_begun());
        }
        state.attempt(start + 14 * SECOND);
        assert_eq!(state.deadline(), Some(start + 24 * SECOND));
        state.reach(ClientPhase::Opening, start + 15 * SECOND, &mut shard);
        state.reach(ClientPhase::Playing, start + 16 * SECOND, &mut shard);
        let figures = shard.of(planned);
        assert_eq!([PLAYING, AWAY].map(|level| figures.gauge(level)), [1, 0]);
        assert_eq!([PLAYED, CONNECTED, RETURNED].map(|count| figures.counter(count)), [1, 1, 1]);
        assert_eq!([STARTUP, CONNECT, FIRST_FRAME].map(|spread| figures.spread(spread).len()), [1, 1, 0]);
        assert!(figures.spread(AWAY_TIME).max() >= 3_900_000);
        state.begin_again(start + 17 * SECOND, &mut shard);
        state.fail(Failure::Reset, "", start + 18 * SECOND, &mut shard);
        assert_eq!([PLAYING, AWAY, ACTIVE].map(|level| shard.of(planned).gauge(level)), [0; 3]);
    }

    #[test]
    fn the_time_that_clients_played_is_known_however_seconds_cut_it() {
        let (mut state, mut shard, start) = begin(Duration::ZERO);
        let planned = state.planned();
        let ms = Duration::from_millis;
        let second = |shard: &mut ShardRecorder, end: Moment| {
            shard.book_played(end);
            shard.take_figures().remove(0).counter(PLAYED_TIME)
        };
        state.reach(ClientPhase::Playing, start + ms(300), &mut shard);
        assert_eq!(second(&mut shard, start + SECOND), 700_000);
        assert_eq!(second(&mut shard, start + 2 * SECOND), 1_000_000);
        state.pause(start + ms(2_250), &mut shard);
        state.resume(start + ms(2_500), &mut shard);
        assert_eq!(second(&mut shard, start + 3 * SECOND), 750_000);
        // It leaves within a second: at the second's end it does not play.
        state.finish(start + ms(3_800), &mut shard);
        assert_eq!(shard.of(planned).gauge(PLAYING), 0);
        assert_eq!(second(&mut shard, start + 4 * SECOND), 800_000);
        assert_eq!(second(&mut shard, start + 5 * SECOND), 0);
    }

    #[test]
    fn who_leaves_by_plan_before_it_played_exits_before_start_unless_it_was_given_time() {
        let exits = |mean_life: Option<Duration>, stayed: Duration, plays: bool| {
            let (mut state, mut shard, start) = begin(Duration::ZERO);
            state.planned.turn = Turn { number: 3, mean_life };
            if plays {
                state.reach(ClientPhase::Playing, start, &mut shard);
            }
            state.finish(start + stayed, &mut shard);
            let planned = state.planned();
            assert_eq!(shard.take_ended(), [(planned, Ending::OnTime)], "it is no failure in any case");
            shard.of(planned).counter(EXITS_BEFORE_START)
        };
        let ms = Duration::from_millis;
        assert_eq!(exits(Some(4 * SECOND), ms(1_999), false), 1);
        assert_eq!(
            exits(Some(4 * SECOND), ms(2_000), false),
            0,
            "half a life without a frame is the target's"
        );
        assert_eq!(exits(Some(4 * SECOND), SECOND, true), 0);
        assert_eq!(exits(None, SECOND, false), 0, "nobody was to follow it");
        // No longer than the timeout, by which it has failed.
        assert_eq!(exits(Some(60 * SECOND), ms(9_999), false), 1);
        assert_eq!(exits(Some(60 * SECOND), 10 * SECOND, false), 0);
    }

    #[test]
    fn a_late_start_counts_against_the_generator_and_not_for_the_server() {
        let (mut state, mut shard, start) = begin(SECOND);
        state.reach(ClientPhase::Handshaking, start + 2 * SECOND, &mut shard);
        state.finish(start + 3 * SECOND, &mut shard);
        state.fail(Failure::Reset, "too late to tell", start + 3 * SECOND, &mut shard);
        assert_eq!(shard.take_ended(), [(state.planned(), Ending::Late)]);
        let figures = shard.take_figures().remove(0);
        assert_eq!(
            (figures.spread(CONNECT).max() / 100_000, figures.spread(START_LAG).max() / 10_000),
            (20, 100)
        );
        assert_eq!((figures.gauge(ACTIVE), figures.counter(weir_metrics::common::FAILED)), (0, 0));
    }
}
