//! What every viewer measures on the frames that it receives, whatever the protocol: playout, drift, the source's rate.

use crate::drift::Drift;
use crate::playout::{Change, Playout};
use crate::timeline::{Timeline, Track};
use std::ops::RangeInclusive;
use std::time::Duration;
use weir_metrics::common::{
    AHEAD, BURST, DRIFT, FRAMES_AHEAD, RECOVERY, SOURCE, SOURCE_FRAMES, SOURCE_TIME, STALL_LENGTH, STALLED,
    STALLED_VIEWERS, STALLS, TIMESTAMP_JUMP, TIMESTAMP_JUMPS,
};
use weir_metrics::{Moment, Recorder};

/// Bytes that one read of a crowd client may wait for.
const BATCH: RangeInclusive<usize> = 4 * 1024..=64 * 1024;

/// The upper bound for a stream that has more than [`BATCH`] in [`SHORTEST_CYCLE`]. With a quarter more, one read of the
/// shard's 256 KiB still takes it all.
const LARGEST_BATCH: usize = 192 * 1024;

/// About how often a crowd client of a fast stream reads.
const SHORTEST_CYCLE: Duration = Duration::from_millis(100);

/// A client that does not play yet leaves at least this many bytes in the kernel before it reads; with a smaller low-water mark
/// it reads at every event.
const SMALLEST_SHARE: usize = 1_024;

/// A stream's rate is not estimated from less media time than this, in microseconds: five frames at 25 a second.
const SHORTEST_SAMPLE: i64 = 200_000;

/// A crowd client that runs dry within this time does not look before that moment: a look is not worth its cost then.
const SHORTEST_WAIT: Duration = Duration::from_millis(250);

/// The length of stream that a batch holds.
const CYCLE: Duration = Duration::from_secs(2);

/// Crowd clients read and look at moments that are multiples of this, many at once: each wake-up of an idle
/// thread costs as much as several reads.
const TICK: Duration = weir_shard::TICK.saturating_mul(2);

/// This many clients with consecutive numbers read at the same moment if they share a thread. The server has just
/// written the same pages for each of them, so only the first read pays for the cache misses.
const TOGETHER: u32 = 16;

/// If a stream's batches fill so fast that fewer ticks than this lie between two reads, the batches alone set the pace.
const FEWEST_TICKS: u32 = 5;

/// How often a client that does not play reads what waits, and books the time of a stall that lasts.
const IDLE_READ: Duration = Duration::from_secs(1);

/// How often the rate of a stream without pictures is estimated, in microseconds of its media time; with pictures it is once
/// a group of pictures.
const SOUND_PIECE: i64 = 1_000_000;

/// A stream is silent that brings no frame for this long; one of less than eight frames a second, for four frames.
const SILENCE: Duration = Duration::from_millis(500);

/// How a viewer reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// At every event, or later if it is known when each thing came: arrival times are exact, and drift is recorded.
    Witness,
    /// In batches of up to two seconds: bytes, frames and stalls are exact, arrival times are not.
    Crowd,
}

/// The playback of one viewer. Its client passes in every frame, the end of every read and every deadline that passed;
/// the model records startup, stalls, drift and the source's rate.
///
/// A crowd client's batch waits in the kernel, where the model cannot see its frames. Before the model would stall,
/// [`Self::handle_timeout`] therefore asks how many bytes wait. The largest frame so far is subtracted from them, and the
/// rest is converted to time at a third over the stream's mean rate: for that long the model certainly plays on. If that
/// is not long, or nothing came since the last look, the client reads. Only if nothing was there does the model stall, as
/// of the moment at which it ran dry. A client that fills its buffer, at the start or in a stall, repeatedly waits for a
/// quarter of what it lacks, and in the end for each frame. So it starts to play with the right frame, unless frames are
/// then four times as small as before, and a server that falls behind does not make its viewers expensive.
///
/// Without more, the viewers of one stream would read in step: all at once, and then none for two seconds. Each viewer
/// therefore reads at moments of its own, up to three quarters of a batch apart, which it shares only with the
/// `TOGETHER` clients of its block of numbers (see `next_own`). What waits has to last until the next of them.
#[derive(Clone, Copy, Debug)]
pub struct PlaybackModel {
    reading: Reading,
    timeline: Timeline,
    playout: Playout,
    drift: Drift,
    /// Media time of the first frame, in microseconds of the timeline.
    origin: Option<i64>,
    /// Furthest media time since the first frame, in microseconds.
    media: i64,
    /// Bytes of frames since the first, that one included.
    bytes: u64,
    /// Bytes of the first frame. It usually is a keyframe, which is too large to estimate a bit rate from.
    first: u32,
    /// Bytes of the largest frame.
    largest: u32,
    has_pictures: bool,
    /// Video frames since the first, that one included.
    frames: u64,
    /// Media time where the present group of pictures began.
    group: Option<i64>,
    /// Media time, bytes and frames that are in the source's rate, the first frame apart: it has no time before it.
    measured: (i64, u64, u64),
    batch: usize,
    /// The offset of its own moments within the time between two of them, in parts of 2³².
    phase: u32,
    /// The next of its own moments.
    own: Option<Moment>,
    /// The last read that brought a frame.
    last_read: Moment,
    /// The last read or look, whether it brought any or not.
    looked: Moment,
    /// For how long what waits in the kernel is certainly enough.
    covered: Duration,
    read_brought_frames: bool,
    pulling: bool,
    stalled_booked: Moment,
    /// When the first frame came.
    began: Moment,
    /// How much more media than time has come since the first frame, at the most, in microseconds.
    lead: i64,
    /// Whether it is in `stalled_viewers`, which counts viewers.
    has_stalled: bool,
    /// Arrival of the last frame.
    last_frame: Moment,
    /// The last frame before a silence behind which nothing could be shown yet.
    silent_since: Option<Moment>,
}

/// How a frame goes on from the one before it.
#[derive(Clone, Copy, Debug)]
pub struct Continuation {
    /// Its timestamp does not go on from the one before.
    pub jumps: bool,
    /// A decoder can begin with it.
    pub begins: bool,
}

/// One frame, as a viewer sees it.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedFrame {
    /// Its track.
    pub track: Track,
    /// Its decode timestamp, on the clock of the viewer's timeline.
    pub timestamp: u64,
    /// Its length, in bytes.
    pub bytes: u32,
    /// Whether a group of pictures begins here.
    pub keyframe: bool,
}

impl PlaybackModel {
    /// The viewer of this number, which begins to play with the read of `now`.
    pub fn new(reading: Reading, number: u32, timeline: Timeline, playout: Playout, now: Moment) -> Self {
        Self {
            reading,
            timeline,
            playout,
            drift: Drift::default(),
            origin: None,
            media: 0,
            bytes: 0,
            first: 0,
            largest: 0,
            has_pictures: false,
            frames: 0,
            group: None,
            measured: (0, 0, 0),
            batch: 1,
            // Steps of the golden ratio: however many viewers there are, they are spread evenly.
            phase: (number / TOGETHER).wrapping_mul(0x9E37_79B9),
            own: None,
            last_read: now,
            looked: now,
            covered: Duration::ZERO,
            read_brought_frames: false,
            pulling: false,
            stalled_booked: now,
            began: now,
            lead: 0,
            has_stalled: false,
            last_frame: now,
            silent_since: None,
        }
    }

    /// A frame came in the read of `now`.
    #[inline]
    pub fn frame(&mut self, now: Moment, frame: ReceivedFrame, recorder: &mut Recorder) {
        // Within one read the arrival of each frame is not known: it came after the read before.
        let position = self.timeline.place(frame.track, frame.timestamp, now.since(self.last_read));
        let media = position.media - *self.origin.get_or_insert(position.media);
        if self.bytes == 0 {
            self.began = now;
            self.first = frame.bytes;
            self.measured = (0, u64::from(frame.bytes), u64::from(frame.track == Track::Video));
        }
        self.largest = self.largest.max(frame.bytes);
        if let Some(jump) = position.jump {
            recorder.count(TIMESTAMP_JUMPS, 1);
            recorder.record_signed(TIMESTAMP_JUMP, jump);
            self.group = None;
        }
        if self.reading == Reading::Witness {
            let begins = frame.keyframe && frame.track == Track::Video || !self.has_pictures;
            self.came(now, || Continuation { jumps: position.jump.is_some(), begins }, recorder);
        }
        self.read_brought_frames = true;
        self.has_pictures |= frame.track == Track::Video;
        if frame.keyframe && frame.track == Track::Video || !self.has_pictures {
            self.group_boundary(media);
        }
        self.bytes += u64::from(frame.bytes);
        self.frames += u64::from(frame.track == Track::Video);
        self.media = self.media.max(media);
        if self.reading == Reading::Witness && (frame.track == Track::Video || !self.has_pictures) {
            self.record_drift(now, media, recorder);
        }
    }

    /// The read of `now` brought `bytes` of a stream that keeps its own clock, up to this media time in microseconds. Such a stream has no frames: it is measured in pieces, as one without pictures. Its first
    /// bytes, which lead up to the time at which counting begins, are in no rate. `frames` is how many frames the source has
    /// in that time.
    #[inline]
    pub fn progress(&mut self, now: Moment, media: i64, bytes: u32, frames: u64, recorder: &mut Recorder) {
        let media = match self.origin {
            Some(origin) => {
                self.frames += frames;
                self.bytes += u64::from(bytes);
                media - origin
            }
            None => {
                self.began = now;
                self.origin = Some(media);
                0
            }
        };
        self.largest = self.largest.max(bytes);
        self.read_brought_frames = true;
        self.group_boundary(media);
        self.media = self.media.max(media);
        if self.reading == Reading::Witness {
            self.record_drift(now, media, recorder);
        }
    }

    /// A frame came at `now`, or media of a stream without frames: whether the viewer was without any before it, and can show this.
    /// [`Self::frame`] calls it itself. Where a server was silent and goes on, each frame can be shown; another publication can
    /// from its first keyframe on. What the frame is, is asked only where that matters.
    #[inline]
    pub fn came(
        &mut self,
        now: Moment,
        continuation: impl FnOnce() -> Continuation,
        recorder: &mut Recorder,
    ) {
        let before = std::mem::replace(&mut self.last_frame, now);
        if self.silent_since.is_some() || now.since(before) >= SILENCE {
            self.recover(now, before, continuation(), recorder);
        }
    }

    fn recover(&mut self, now: Moment, before: Moment, came: Continuation, recorder: &mut Recorder) {
        let interval = Duration::from_micros(self.media.max(0) as u64 / self.frames.max(1));
        let interval = if self.frames > 0 { interval } else { Duration::ZERO };
        // After one picture it is not known how far apart they are.
        let is_known = self.frames == 0 || self.media > 0;
        let is_silence = self.bytes > 0 && is_known && now.since(before) >= SILENCE.max(4 * interval);
        let goes_on = self.silent_since.is_none() && !came.jumps;
        self.silent_since = self.silent_since.or_else(|| is_silence.then_some(before));
        if (came.begins || goes_on)
            && let Some(since) = self.silent_since.take()
        {
            recorder.record(RECOVERY, now.since(since).as_micros() as u64);
        }
    }

    fn record_drift(&mut self, now: Moment, media: i64, recorder: &mut Recorder) {
        if let Some(drift) = self.drift.arrive(now, media) {
            recorder.record_signed(DRIFT, drift);
        }
        if let Some(burst) = self.drift.take_burst() {
            recorder.record(BURST, burst);
        }
    }

    /// The read of `now` has ended; `empty` if it was a [pull](weir_shard::Context::pull) that found nothing.
    pub fn end_of_read(&mut self, now: Moment, empty: bool, recorder: &mut Recorder) {
        // What came in this read was here before the model ran dry, unless a pull found nothing then.
        let arrival = self.playout.runs_dry().map_or(now, |dry| dry.min(now));
        let media = Duration::from_micros(self.media.max(0) as u64);
        if let Some(change) = self.playout.receive(arrival, media) {
            self.book(change, now, recorder);
        }
        if std::mem::take(&mut self.pulling)
            && empty
            && let Some(change) = self.playout.handle_timeout(now)
        {
            self.book(change, now, recorder);
        }
        self.measure_source(now, recorder);
        self.looked = now;
        self.covered = Duration::ZERO;
        self.own = self.next_own(now);
        if std::mem::take(&mut self.read_brought_frames) {
            self.last_read = now;
        }
    }

    /// The moment of [`Self::poll_timeout`] passed. `unread` is how many bytes wait in the kernel, if the model
    /// [asks](Self::asks) for it. Returns whether they must be read now; then [`Self::end_of_read`] follows even if nothing waited.
    pub fn handle_timeout(&mut self, now: Moment, unread: usize, recorder: &mut Recorder) -> bool {
        if self.reading == Reading::Witness
            && let Some(drift) = self.drift.handle_timeout(now)
        {
            recorder.record_signed(DRIFT, drift);
        }
        if self.playout.stalled_since().is_some() && self.stalled_booked + IDLE_READ <= now {
            self.book_stalled(now, recorder);
        }
        self.pulling |= self.own.take_if(|at| *at <= now).is_some();
        self.pulling = self.pulling || self.looks(now) && !self.is_covered(now, unread);
        self.pulling
    }

    /// Whether [`Self::handle_timeout`] looks at `now` how many bytes wait: to ask costs a system call.
    pub fn asks(&self, now: Moment) -> bool {
        self.reading == Reading::Crowd && self.own.is_none_or(|own| own > now) && self.looks(now)
    }

    fn looks(&self, now: Moment) -> bool {
        self.next_look().is_some_and(|look| look <= now)
    }

    /// The next of its own moments, but not before a quarter of the time between two of them: the client has just read.
    ///
    /// Moments are computed from the clock and not from the last read, so that all clients of a block arrive at the same
    /// ones without knowing of each other: the clock is divided into spans of `between`, and the block's `phase` says where
    /// in each span its moment lies. `between` must be the same for all of them. Each client estimates the stream's rate from
    /// what it has read itself, so estimates differ a little; the number of ticks is rounded down to three binary digits,
    /// which makes nearly all of them agree.
    fn next_own(&self, now: Moment) -> Option<Moment> {
        if self.reading == Reading::Witness || self.playout.runs_dry().is_none() {
            return None;
        }
        let ticks = (self.span_of(self.batch_now() * 3 / 4).as_nanos() / TICK.as_nanos()) as u32;
        if ticks < FEWEST_TICKS {
            return None;
        }
        let rounding = ticks.ilog2() - 2;
        let ticks = ticks >> rounding << rounding;
        let between = (TICK * ticks).as_nanos() as u64;
        let phase = (u64::from(self.phase) * u64::from(ticks)) >> 32;
        let phase = phase * TICK.as_nanos() as u64;
        let earliest = now.as_nanos() + between / 4;
        let past = (earliest + between - phase) % between;
        Some(Moment::from_nanos(earliest + between - past))
    }

    /// Whether what waits surely is enough to play for a while longer.
    fn is_covered(&mut self, now: Moment, unread: usize) -> bool {
        let Some(dry) = self.playout.runs_dry().filter(|_| self.reading == Reading::Crowd) else {
            return false;
        };
        if unread >= self.batch {
            return false;
        }
        let before = self.covered;
        self.covered = self.span_of(unread.saturating_sub(self.largest as usize)) * 3 / 4;
        self.looked = now;
        let dry = dry + self.covered;
        self.covered > before && (dry.since(now) > SHORTEST_WAIT || self.own.is_some_and(|own| own <= dry))
    }

    /// When to call [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Moment> {
        let stalled = self.playout.stalled_since().map(|_| self.stalled_booked + IDLE_READ);
        let drift = if self.reading == Reading::Witness { self.drift.poll_timeout() } else { None };
        [self.next_look(), self.own, stalled, drift].into_iter().flatten().min()
    }

    /// When to look what waits: before the model runs dry.
    fn next_look(&self) -> Option<Moment> {
        let Some(dry) = self.playout.runs_dry() else {
            // The last bytes of a server may be too few to reach the low-water mark.
            return (self.reading == Reading::Crowd).then(|| self.looked + IDLE_READ);
        };
        let dry = dry + self.covered;
        if self.reading == Reading::Witness || dry.since(self.looked) <= SHORTEST_WAIT {
            return Some(dry);
        }
        Some(on_tick(dry))
    }

    /// How many bytes the next read should wait for.
    pub fn batch(&self) -> usize {
        if self.reading == Reading::Witness {
            return 1;
        }
        let Some(lacks) = self.playout.lacks() else {
            // Its own moments and looks come first, unless the stream has become faster.
            return self.batch + self.batch / 4;
        };
        let share = if self.media < SHORTEST_SAMPLE { 0 } else { self.bytes_in(lacks / 4) };
        if share < SMALLEST_SHARE { 1 } else { share }
    }

    /// The viewer stops; a stall that lasts ends here.
    pub fn leave(&mut self, now: Moment, recorder: &mut Recorder) {
        if let Some(since) = self.playout.stalled_since() {
            self.book(Change::Resumed(since), now, recorder);
        }
    }

    fn book(&mut self, change: Change, now: Moment, recorder: &mut Recorder) {
        match change {
            Change::Started => self.size_batch(),
            Change::Stalled(since) => {
                recorder.count(STALLS, 1);
                let before = std::mem::replace(&mut self.has_stalled, true);
                recorder.count(STALLED_VIEWERS, u64::from(!before));
                self.stalled_booked = since;
            }
            Change::Resumed(since) => {
                self.book_stalled(now, recorder);
                recorder.record(STALL_LENGTH, now.since(since).as_micros() as u64);
            }
        }
    }

    fn book_stalled(&mut self, now: Moment, recorder: &mut Recorder) {
        recorder.count(STALLED, now.since(self.stalled_booked).as_micros() as u64);
        self.stalled_booked = now;
    }

    /// Books what came since the last read, and how much media time it makes. Both belong to the same seconds, so that what
    /// is expected of a window has as many keyframes in it as what came.
    fn measure_source(&mut self, now: Moment, recorder: &mut Recorder) {
        let (media, bytes, frames) = self.measured;
        if self.media > media {
            let (step, came, shown) = (self.media - media, self.bytes - bytes, self.frames - frames);
            let ahead = self.came_ahead(now, step);
            recorder.count(AHEAD, share(came, ahead, step));
            recorder.count(FRAMES_AHEAD, share(shown, ahead, step));
            recorder.count(SOURCE, came);
            recorder.count(SOURCE_TIME, step as u64);
            recorder.count(SOURCE_FRAMES, shown);
            self.measured = (self.media, self.bytes, self.frames);
        }
    }

    /// Of media that moved media time on by `step`, how much came faster than the clock: what a server keeps and sends
    /// to a new viewer at once. Whoever reads in batches has read all that had come by `now`. A server that catches up
    /// gets no further ahead than it was before it fell behind, so that this is no part of it.
    fn came_ahead(&mut self, now: Moment, step: i64) -> i64 {
        let lead = self.media - now.since(self.began).as_micros() as i64;
        let grown = (lead - self.lead).clamp(0, step);
        self.lead = self.lead.max(lead);
        grown
    }

    /// A group of pictures ends and the next begins at `media`: a moment to look at the rate.
    fn group_boundary(&mut self, media: i64) {
        if let Some(began) = self.group {
            if !self.has_pictures && media < began + SOUND_PIECE {
                return;
            }
            if media > began {
                self.size_batch();
            }
        }
        self.group = Some(media);
    }

    /// Makes a batch about two seconds of the stream within its bounds, if it is far from that. Three quarters of it are
    /// more than a player's buffer holds on a live edge: there it looks once between two reads.
    fn size_batch(&mut self) {
        let batch = self.batch_now();
        if batch * 3 < self.batch * 2 || batch * 2 > self.batch * 3 {
            self.batch = batch;
        }
    }

    /// A batch by the stream's mean rate so far.
    fn batch_now(&self) -> usize {
        let most = self.bytes_in(SHORTEST_CYCLE).clamp(*BATCH.end(), LARGEST_BATCH);
        self.bytes_in(CYCLE).clamp(*BATCH.start(), most)
    }

    /// Bytes after the first frame, which the rate is guessed from.
    fn sample(&self) -> u64 {
        self.bytes.saturating_sub(u64::from(self.first)).max(1)
    }

    /// The bytes that the stream had in this much media time.
    fn bytes_in(&self, span: Duration) -> usize {
        let media = self.media.max(1) as u64;
        let bytes = self.sample().saturating_mul(span.as_micros() as u64) / media;
        bytes.min(LARGEST_BATCH as u64) as usize
    }

    /// The media time that the stream took for this many bytes.
    fn span_of(&self, bytes: usize) -> Duration {
        Duration::from_micros(self.media.max(0) as u64 * bytes as u64 / self.sample())
    }
}

/// The last tick up to a moment.
fn on_tick(at: Moment) -> Moment {
    at - Duration::from_nanos(at.as_nanos() % TICK.as_nanos() as u64)
}

/// Of so much in `step` of media time, what is in `part` of it, to the nearest.
fn share(all: u64, part: i64, step: i64) -> u64 {
    let (part, step) = (part as u128, step as u128);
    ((u128::from(all) * part + step / 2) / step) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_metrics::Schema;

    /// A frame on its way: when it arrives, and what it is.
    type Arrival = (Moment, ReceivedFrame);

    /// A viewer and what its kernel holds for it.
    struct Reader {
        playback: PlaybackModel,
        waiting: Vec<Arrival>,
        recorder: Recorder,
        reads: Vec<Moment>,
    }

    impl Reader {
        /// Drives a viewer as a shard does: arrivals first, then deadlines.
        fn run(reading: Reading, number: u32, arrivals: &[Arrival], end: Moment) -> Self {
            let second = Duration::from_secs(1);
            let playout = Playout::new(second, second / 2);
            let mut reader = Self {
                playback: PlaybackModel::new(
                    reading,
                    number,
                    Timeline::new(1_000, 32),
                    playout,
                    arrivals[0].0,
                ),
                waiting: Vec::new(),
                recorder: Recorder::new(Schema::new(&[])),
                reads: Vec::new(),
            };
            for &(now, seen) in arrivals {
                reader.pass_until(now);
                reader.waiting.push((now, seen));
                reader.wake(now);
            }
            reader.pass_until(end);
            reader.read(end);
            reader.playback.leave(end, &mut reader.recorder);
            reader
        }

        /// What arrives after `from` and up to `to`, when everything is read: the edge of a window. Says how many bytes
        /// came, and takes what was recorded.
        fn window(&mut self, arrivals: &[Arrival], from: Moment, to: Moment) -> (u64, Recorder) {
            let mut bytes = 0;
            for &(now, seen) in arrivals.iter().filter(|(at, _)| from < *at && *at <= to) {
                bytes += u64::from(seen.bytes);
                self.pass_until(now);
                self.waiting.push((now, seen));
                self.wake(now);
            }
            self.pass_until(to);
            self.read(to);
            (bytes, self.recorder.take())
        }

        /// All deadlines before `now`.
        fn pass_until(&mut self, now: Moment) {
            while let Some(next) = self.playback.poll_timeout().filter(|next| *next < now) {
                if self.playback.handle_timeout(next, self.unread(), &mut self.recorder) {
                    self.read(next);
                }
                self.wake(next);
            }
        }

        /// The kernel says that enough waits.
        fn wake(&mut self, now: Moment) {
            let bytes = self.unread();
            if bytes > 0 && bytes >= self.playback.batch() {
                self.read(now);
            }
        }

        fn unread(&self) -> usize {
            self.waiting.iter().map(|(_, seen)| seen.bytes as usize).sum()
        }

        fn read(&mut self, now: Moment) {
            let waiting = std::mem::take(&mut self.waiting);
            let empty = waiting.is_empty();
            if !empty {
                self.reads.push(now);
            }
            for (_, seen) in waiting {
                self.playback.frame(now, seen, &mut self.recorder);
            }
            self.playback.end_of_read(now, empty, &mut self.recorder);
        }
    }

    /// Frames of 40 ms from a moment on, every twenty-fifth a keyframe, with timestamps from 0; the first of them is number
    /// `first` of its group.
    fn publication(begin_millis: u64, frames: u64, first: u64) -> Vec<Arrival> {
        let frame = |number: u64| {
            let keyframe = (number + first).is_multiple_of(25);
            let seen = ReceivedFrame { track: Track::Video, timestamp: 40 * number, bytes: 1_000, keyframe };
            (Moment::default() + Duration::from_millis(begin_millis + 40 * number), seen)
        };
        (0..frames).map(frame).collect()
    }

    /// The times without frames that a witness saw, in milliseconds.
    fn recoveries(arrivals: &[Arrival]) -> Vec<u64> {
        let end = arrivals.last().unwrap().0;
        let reader = Reader::run(Reading::Witness, 0, arrivals, end);
        let histogram = reader.recorder.spread(RECOVERY);
        let values = histogram.iter_recorded().map(|value| (value.value_iterated_to() + 500) / 1_000);
        values.collect()
    }

    #[test]
    fn a_publisher_that_comes_again_ends_a_silence_with_its_first_keyframe() {
        let first = publication(0, 50, 0);
        // The last frame came at 1,960 ms.
        assert_eq!(recoveries(&[first.clone(), publication(3_000, 50, 0)].concat()), [1_040]);
        // It begins with the last five of a group of pictures.
        assert_eq!(recoveries(&[first.clone(), publication(3_000, 50, 20)].concat()), [1_240]);
        // Too short to be a silence, and too few frames to be missed.
        assert_eq!(recoveries(&[first.clone(), publication(2_400, 50, 0)].concat()), [0; 0]);
        assert_eq!(recoveries(&first), [0; 0]);
    }

    #[test]
    fn a_keyframe_after_a_second_silence_ends_the_first() {
        // One frame of the new publication, and then nothing for 600 ms up to its first keyframe.
        let mut again = publication(3_000, 50, 20);
        again.drain(1..5);
        for (at, _) in &mut again[1..] {
            *at = *at + Duration::from_millis(400);
        }
        assert_eq!(recoveries(&[publication(0, 50, 0), again].concat()), [1_640]);
    }

    #[test]
    fn a_server_that_falls_silent_and_goes_on_shows_the_next_frame() {
        let mut frames = publication(0, 100, 0);
        for (at, _) in &mut frames[60..] {
            *at = *at + Duration::from_millis(700);
        }
        assert_eq!(recoveries(&frames), [740]);
    }

    #[test]
    fn one_frame_a_second_is_no_silence() {
        let slow = |(at, seen): Arrival| {
            let at = Moment::from_nanos(at.as_nanos() * 25);
            (at, ReceivedFrame { timestamp: seen.timestamp * 25, ..seen })
        };
        let frames: Vec<_> = publication(0, 20, 0).into_iter().map(slow).collect();
        assert_eq!(recoveries(&frames[1..]), [0; 0]);
    }

    /// Frames of 40 ms, each held for some time, in order.
    fn arrivals(delays: &[u16], sizes: &[u32]) -> Vec<Arrival> {
        let mut arrivals = Vec::new();
        let mut now = Moment::default();
        for (frame, delay) in delays.iter().enumerate() {
            let due = Moment::from_nanos((frame as u64 * 40 + 1_000) * 1_000_000);
            now = now.max(due + Duration::from_millis(u64::from(*delay)));
            let seen = ReceivedFrame {
                track: Track::Video,
                timestamp: frame as u64 * 40,
                bytes: sizes[frame % sizes.len()],
                keyframe: frame % 50 == 0,
            };
            arrivals.push((now, seen));
        }
        arrivals
    }

    proptest! {
        #[test]
        fn batches_find_the_stalls_that_single_reads_find(
            // Now and then a frame is held for up to 4 s, and those behind it with it.
            delays in prop::collection::vec(prop_oneof![30 => 0u16..30, 1 => 0u16..4_000], 100..800),
            sizes in prop::collection::vec(2_000u32..6_000, 1..60),
            number in any::<u32>(),
        ) {
            let arrivals = arrivals(&delays, &sizes);
            let end = arrivals[arrivals.len() - 1].0 + Duration::from_secs(5);
            let witness = Reader::run(Reading::Witness, number, &arrivals, end);
            let crowd = Reader::run(Reading::Crowd, number, &arrivals, end);
            for figure in [STALLS, STALLED, STALLED_VIEWERS, SOURCE, SOURCE_FRAMES, SOURCE_TIME, TIMESTAMP_JUMPS] {
                prop_assert_eq!(witness.recorder.counter(figure), crowd.recorder.counter(figure));
            }
            prop_assert_eq!(witness.recorder.spread(STALL_LENGTH), crowd.recorder.spread(STALL_LENGTH));
            prop_assert!(witness.recorder.counter(STALLS) > 0, "nothing comes for the last five seconds");
            prop_assert_eq!(witness.recorder.counter(STALLED_VIEWERS), 1, "however often it stalled");
            prop_assert!(crowd.reads.len() <= witness.reads.len());
        }
    }

    proptest! {
        #[test]
        fn what_came_by_the_clock_is_what_came_less_what_a_server_sent_at_once(
            // Frames of 40 ms that a server has kept, how late each of the others is, and how long the viewer stays.
            kept in 1usize..100,
            delays in prop::collection::vec(0u64..20, 1..30),
            sizes in prop::collection::vec(900u32..1_100, 1..60),
            stays in 500u64..6_000,
            number in any::<u32>(),
        ) {
            let start = Moment::from_nanos(7_000_000_000);
            let end = start + Duration::from_millis(stays);
            let late = (kept..).map(|frame| ((frame - kept) as u64 + 1) * 40 + delays[frame % delays.len()]);
            let times = std::iter::repeat_n(0, kept).chain(late).enumerate();
            let arrivals: Vec<Arrival> = times
                .map(|(frame, at)| {
                    let frame = ReceivedFrame {
                        track: Track::Video,
                        timestamp: frame as u64 * 40,
                        bytes: sizes[frame % sizes.len()],
                        keyframe: frame % 50 == 0,
                    };
                    (frame, start + Duration::from_millis(at))
                })
                .map(|(frame, at)| (at, frame))
                .take_while(|(at, _)| *at < end)
                .collect();
            for reading in [Reading::Witness, Reading::Crowd] {
                let reader = Reader::run(reading, number, &arrivals, end);
                let came = (reader.playback.bytes - u64::from(reader.playback.first)) as f64;
                let by_the_clock = came - reader.recorder.counter(AHEAD) as f64;
                // 25 frames of 1,000 bytes a second, one of them more or less, and a tenth for sizes that repeat.
                let expected = 25.0 * stays as f64;
                prop_assert!((by_the_clock - expected).abs() <= 2_500.0 + expected / 10.0, "{reading:?}: {by_the_clock} of {expected}");
                let frames = (reader.playback.frames - 1) as f64 - reader.recorder.counter(FRAMES_AHEAD) as f64;
                prop_assert!((frames - expected / 1e3).abs() <= 2.5, "{reading:?}: {frames} of {}", expected / 1e3);
            }
        }

        #[test]
        fn a_server_that_catches_up_sends_nothing_ahead(
            // Now and then a frame is held for up to 4 s, and those behind it with it.
            delays in prop::collection::vec(prop_oneof![30 => Just(0u16), 1 => 0u16..4_000], 100..400),
            number in any::<u32>(),
        ) {
            let arrivals = arrivals(&delays, &[1_000]);
            for reading in [Reading::Witness, Reading::Crowd] {
                let reader = Reader::run(reading, number, &arrivals, arrivals[arrivals.len() - 1].0);
                // If the first frame is the one that is held, those behind it come before their time.
                let held = if delays[0] == 0 { 0 } else { u64::from(delays[0]) / 40 + 1 };
                prop_assert!(reader.recorder.counter(AHEAD) <= held * 1_000, "{reading:?}");
            }
        }
    }

    /// A keyframe is as much as a second of the rest, so that by whole groups a window of 3 s has 20 % too much or too
    /// little.
    #[test]
    fn a_viewer_that_keeps_up_gets_what_is_expected_of_it_in_any_window() {
        let sizes: Vec<u32> = (0..50).map(|frame| if frame == 0 { 25_000 } else { 1_000 }).collect();
        let arrivals = arrivals(&[7; 600], &sizes);
        let second = Duration::from_secs(1);
        for reading in [Reading::Witness, Reading::Crowd] {
            for length in [1, 2, 3, 5, 7] {
                let playout = Playout::new(second, second / 2);
                let start = arrivals[0].0;
                let mut reader = Reader {
                    playback: PlaybackModel::new(reading, 5, Timeline::new(1_000, 32), playout, start),
                    waiting: Vec::new(),
                    recorder: Recorder::new(Schema::new(&[])),
                    reads: Vec::new(),
                };
                let mut from = start + Duration::from_millis(2_990);
                reader.window(&arrivals, Moment::default(), from);
                for _ in 0..3 {
                    let (bytes, figures) = reader.window(&arrivals, from, from + second * length);
                    let expected = figures.counter(SOURCE) as f64 * 1e6 / figures.counter(SOURCE_TIME) as f64
                        * f64::from(length);
                    let ratio = bytes as f64 / expected;
                    assert!((0.999..=1.001).contains(&ratio), "{reading:?}, {length} s: {ratio}");
                    from = from + second * length;
                }
            }
        }
    }

    #[test]
    fn neighbours_read_together_and_others_at_other_times() {
        let sizes: Vec<u32> =
            (0..50).map(|frame| if frame == 0 { 9_000 } else { 700 + frame % 7 * 100 }).collect();
        let arrivals = arrivals(&[0; 500], &sizes);
        let (settled, end) = (arrivals[0].0 + Duration::from_secs(8), arrivals[499].0);
        let late = |number: u32| {
            // They come one after another.
            let from = number as usize % 100;
            let reads = Reader::run(Reading::Crowd, number, &arrivals[from..], end).reads;
            reads.into_iter().filter(|at| settled < *at && *at < end).collect::<Vec<_>>()
        };
        assert!((9..=10).contains(&late(0).len()), "in 12 s, once in 1.28 s: {:?}", late(0));
        assert!((1..TOGETHER).all(|number| late(number) == late(0)));
        let mut phases: Vec<_> = (0..16).map(|block| late(block * TOGETHER)[0]).collect();
        phases.sort_unstable();
        let most_at_once = phases.chunk_by(|a, b| a == b).map(<[Moment]>::len).max();
        assert!(most_at_once <= Some(2), "{phases:?}");
    }

    #[test]
    fn a_batch_is_about_two_seconds_of_the_stream() {
        for (size, expected) in
            [(50, 4_096), (1_160, 58_000), (12_000, 65_536), (40_000, 100_000), (400_000, 196_608)]
        {
            let reader = Reader::run(
                Reading::Crowd,
                0,
                &arrivals(&[0; 200], &[size]),
                Moment::from_nanos(9_000_000_000),
            );
            let batch = reader.playback.batch as f64 / f64::from(expected);
            assert!((0.65..=1.5).contains(&batch), "{size}: {}", reader.playback.batch);
        }
    }
}
