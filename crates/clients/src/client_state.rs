//! The state of a client, the same for every protocol: phases, deadlines, one end.

use crate::shard_recorder::{Ending, ON_TIME, PlannedStart, ShardRecorder};
use std::num::NonZeroU16;
use std::sync::LazyLock;
use std::time::Duration;
use tracing::debug;
use weir_metrics::common::{
    ACTIVE, AWAY, AWAY_TIME, CONNECT, CONNECTED, EXITS_BEFORE_START, FIRST_BYTE, FIRST_FRAME, HANDSHAKE,
    KEYFRAME_WAITS, KEYFRAME_WAITS_OVER, LEFT_AWAY, PLAYED, REQUEST, START_LAG, STARTED, STARTUP, STARVED,
    STARVING,
};
use weir_metrics::{Failure, Moment, Recorder, Spread};
use weir_setting::named;

/// What is said of a client that was let in and waited for media.
static NO_MEDIA: LazyLock<String> = LazyLock::new(|| {
    named(
        "the server accepted, but sent no media within {timeout}: perhaps this stream is not being published",
    )
});

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

/// How many of its timeouts a viewer waits for a keyframe while media comes. Encoders put as much as 250 pictures between two
/// (x264's own default): 50 s at five a second.
const TIMEOUTS_TO_A_KEYFRAME: u8 = 6;

/// How many of them are excused where keyframes may be farther apart than is known: no viewer has had two and one has come to another viewer,
/// or those that were seen were close to each other and none has.
const TIMEOUTS_PASSED_BY: u32 = 2;

/// How much longer than keyframes were apart a wait for one may last: they come late as well as pictures do.
const KEYFRAME_TOLERANCE: Duration = Duration::from_secs(1);

/// By how much a viewer must have joined before another one's keyframe to have missed it. The crowd reads two seconds of a stream at once, so
/// that a keyframe is seen as much later than it came.
const PASSED_BY_TOLERANCE: Duration = Duration::from_secs(3);

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

/// In milliseconds: 2^16 of them are nearly nine minutes, longer than a client waits for a keyframe.
const KEYFRAME_CLOCK: u32 = 8;

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
    wait: KeyframeWait,
    /// How often it was asked whether it waits on.
    waited_on: u8,
    /// When media last came while it waited; once it plays, when its last keyframe did.
    last_came: Moment,
    /// That keyframe's time on the stream's own clock in steps of [`KEYFRAME_CLOCK`], modulo 2^16 of them: of each of thousands of
    /// clients there are two bytes.
    last_keyframe: Option<NonZeroU16>,
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

/// Where a viewer stands whom media reaches in the middle of a group of pictures. How far apart keyframes are is the source's
/// doing, so that such a wait is not held against the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyframeWait {
    /// It needs none: no time of its start is excused.
    Unexcused,
    /// It would wait, and no media has come yet.
    Ahead,
    /// It waits.
    Waits,
    /// It waits longer than keyframes were apart, or has had one that it could not begin with.
    Overlong,
    /// It has had one.
    Over,
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
            wait: KeyframeWait::Unexcused,
            waited_on: 0,
            last_came: now,
            last_keyframe: None,
            has_starved: false,
            found_nothing: false,
        }
    }

    /// The same, of a viewer that begins wherever the stream is, and whose server may have no keyframe for it.
    pub fn waiting_for_keyframes(mut self) -> Self {
        self.wait_for_keyframes();
        self
    }

    /// It turns out to be such a viewer before any media has come.
    pub(crate) fn wait_for_keyframes(&mut self) {
        if self.wait == KeyframeWait::Unexcused {
            self.wait = KeyframeWait::Ahead;
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
        match phase {
            ClientPhase::Opening => self.begin_to_wait(now, shard),
            _ if plays => {
                if self.wait != KeyframeWait::Unexcused {
                    shard.keyframe_came(self.planned, now);
                }
                self.end_wait(KeyframeWait::Over, now, shard);
                (self.last_came, self.last_keyframe) = (now, None);
            }
            _ => {}
        }
        if !self.is_away() {
            self.book(plays, shard.of(self.planned), now);
            if plays {
                shard.note_startup(self.planned, now.since(self.planned.at));
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

    /// The first media has come, and no keyframe before it.
    fn begin_to_wait(&mut self, now: Moment, shard: &mut ShardRecorder) {
        if self.wait == KeyframeWait::Unexcused {
            return;
        }
        let waited = self.wait == KeyframeWait::Waits;
        (self.wait, self.waited_on, self.last_came) = (KeyframeWait::Waits, 0, now);
        // One that has played before is away until it plays again.
        if !waited && !self.is_away() {
            shard.of(self.planned).count(KEYFRAME_WAITS, 1);
            shard.shift_waiting(self.planned, 1, now);
        }
    }

    /// The wait is over, or no longer excused.
    fn end_wait(&mut self, after: KeyframeWait, now: Moment, shard: &mut ShardRecorder) {
        if self.is_excused() {
            shard.of(self.planned).count(KEYFRAME_WAITS_OVER, 1);
            shard.shift_waiting(self.planned, -1, now);
        }
        if self.wait != KeyframeWait::Unexcused {
            self.wait = after;
        }
    }

    /// Whether media has come, but no keyframe, to it or to another viewer of what it plays, for as long as a keyframe is waited for.
    pub(crate) fn has_waited_in_vain(&self, now: Moment, shard: &ShardRecorder) -> bool {
        let is_over =
            self.timeout_began + self.longest_wait() <= now && now < self.last_came + self.timeouts.media;
        self.waits() && is_over && shard.since_keyframe(self.planned, now).is_none()
    }

    /// It has played since `first`, and will not get a picture: what it waited for is no keyframe to others.
    pub(crate) fn play_without_pictures(&mut self, first: Moment, now: Moment, shard: &mut ShardRecorder) {
        self.end_wait(KeyframeWait::Over, now, shard);
        self.wait = KeyframeWait::Unexcused;
        self.reach(ClientPhase::Playing, first, shard);
        self.fed(now, shard);
    }

    /// Whether its wait for a keyframe is excused.
    pub fn is_excused(&self) -> bool {
        self.wait == KeyframeWait::Waits && !self.is_away()
    }

    /// Its deadline has passed, and what has come lacks a keyframe only: whether it waits on. It does while media comes, for
    /// some timeouts; once it has waited for longer than keyframes are apart elsewhere, it is held against the server.
    pub(crate) fn waits_on(&mut self, now: Moment, shard: &mut ShardRecorder) -> bool {
        let timeout = self.timeouts.media;
        let is_next = self.timeout_began + timeout * (u32::from(self.waited_on) + 1) <= now;
        if !self.waits() || self.last_came + timeout <= now || !is_next {
            return false;
        }
        self.waited_on += 1;
        if self.waited_on >= TIMEOUTS_TO_A_KEYFRAME {
            return false;
        }
        if self.is_overlong(now, shard) {
            self.end_wait(KeyframeWait::Overlong, now, shard);
        }
        true
    }

    /// Whether it has waited for longer than the source can be the reason. Where no viewer has had two keyframes, how far they are
    /// apart is unknown: then the end of a run says no more than its middle, unless a keyframe has come to another viewer since this
    /// one joined.
    fn is_overlong(&self, now: Moment, shard: &ShardRecorder) -> bool {
        let waited = now.since(self.phase_began);
        let is_passed_by = || {
            let ago = shard.since_keyframe(self.planned, now);
            ago.is_some_and(|ago| ago + PASSED_BY_TOLERANCE < waited)
        };
        let passed_by = self.timeouts.media * TIMEOUTS_PASSED_BY;
        let excuse = match shard.keyframe_interval(self.planned) {
            Some(interval) if is_passed_by() => interval,
            // Those that were seen may have been a change of scene, and closer than others: viewers may leave before any has seen two that are
            // not.
            Some(interval) => interval.max(passed_by),
            None if is_passed_by() => passed_by,
            None => self.longest_wait(),
        };
        waited > excuse + KEYFRAME_TOLERANCE
    }

    /// Whether a keyframe with which it cannot begin, and that comes now, is one that it waited for: of the first moments the part of one may
    /// be all that was left to come.
    pub(crate) fn waited_for_keyframe(&self, now: Moment) -> bool {
        self.waits() && now.since(self.phase_began) > KEYFRAME_TOLERANCE
    }

    /// It cannot begin with a keyframe that it waited for: what it lacks is not the source's doing from here on.
    pub(crate) fn miss_keyframe(&mut self, now: Moment, shard: &mut ShardRecorder) {
        if self.waits() {
            self.end_wait(KeyframeWait::Overlong, now, shard);
        }
    }

    /// A keyframe of what it plays was read, with this time on the stream's own clock in milliseconds: how long after the
    /// last one is known of the stream on its thread. Reads may be seconds apart, and servers send what they have kept of a
    /// stream at once, so that the moments of reads alone may be too close to each other.
    pub(crate) fn note_keyframe(&mut self, now: Moment, media_time: u32, shard: &mut ShardRecorder) {
        shard.keyframe_came(self.planned, now);
        let read_before = std::mem::replace(&mut self.last_came, now);
        let read_as = (media_time / KEYFRAME_CLOCK) as u16;
        // Where it began is no keyframe if it began with sound.
        let Some(before) = self.last_keyframe.replace(NonZeroU16::new(read_as).unwrap_or(NonZeroU16::MIN))
        else {
            return;
        };
        let steps = u32::from(read_as.wrapping_sub(before.get()));
        let in_media = Duration::from_millis(u64::from(steps * KEYFRAME_CLOCK));
        // A clock that has jumped says nothing.
        let in_media = if in_media > self.longest_wait() { Duration::ZERO } else { in_media };
        shard.note_keyframe_interval(self.planned, in_media.max(now.since(read_before)));
    }

    /// For how long it waits for a keyframe while media comes.
    fn longest_wait(&self) -> Duration {
        self.timeouts.media * u32::from(TIMEOUTS_TO_A_KEYFRAME)
    }

    /// Whether media reaches it, excused or not, and no keyframe has.
    fn waits(&self) -> bool {
        self.phase == ClientPhase::Opening
            && matches!(self.wait, KeyframeWait::Waits | KeyframeWait::Overlong)
    }

    /// Media came in the read of `now`: a viewer that plays needs more of it from here on, and one that starved plays
    /// again.
    #[inline]
    pub fn fed(&mut self, now: Moment, shard: &mut ShardRecorder) {
        if self.phase == ClientPhase::Opening {
            self.last_came = now;
        }
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
        if matches!(self.wait, KeyframeWait::Over | KeyframeWait::Overlong) {
            self.wait = KeyframeWait::Ahead;
        }
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
            ClientPhase::Opening if self.waits() => {
                let next = self.timeout_began + self.timeouts.media * (u32::from(self.waited_on) + 1);
                return Some(next.min(self.last_came + self.timeouts.media));
            }
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
            ClientPhase::Waiting => (Failure::NoMedia, &NO_MEDIA),
            ClientPhase::Opening | ClientPhase::Playing | ClientPhase::Over => {
                (Failure::NoMedia, "media came, but no decodable frame in time")
            }
        }
    }

    /// Books the failure, with the peer's words; a client that is over takes no notice.
    pub fn fail(&mut self, failure: Failure, words: &str, now: Moment, shard: &mut ShardRecorder) {
        self.end_wait(KeyframeWait::Over, now, shard);
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
        let patience = shard.patience(self.planned).map(|patience| patience.min(self.timeouts.media));
        let exits = !self.has_begun() && patience.is_some_and(|patience| stayed < patience);
        if exits || self.waits() && self.is_overlong(now, shard) {
            // One that exits is left out once.
            self.end_wait(KeyframeWait::Over, now, shard);
        }
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
        // A wait that its planned end cuts short was not over.
        if self.is_excused() {
            shard.shift_waiting(self.planned, -1, now);
            self.wait = KeyframeWait::Over;
        }
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
mod tests;
