//! What every viewer measures on the frames that it receives, whatever the protocol: playout, drift, the source's rate.

mod crowd;
mod frame_interval;
mod tracks;

pub use self::frame_interval::FrameInterval;
use self::tracks::Tracks;
use crate::drift::Drift;
use crate::playout::{Change, Playout};
use crate::stall_recorder::StallRecorder;
use crate::timeline::{Timeline, Track};
use std::time::Duration;
use weir_metrics::common::{
    AHEAD, ARRIVAL_GAP, BURST, DRIFT, EDGE_AGE, EDGE_PICTURE_AGE, FRAMES_AHEAD, RECOVERY, SOURCE,
    SOURCE_FRAME_TIME, SOURCE_FRAMES, SOURCE_TIME, TIMESTAMP_JUMP, TIMESTAMP_JUMPS, WITHOUT_PICTURES,
    WITHOUT_SOUND,
};
use weir_metrics::{Moment, Recorder};

pub(crate) use self::tracks::TrackEnd;

/// This many clients with consecutive numbers read at the same moment if they share a thread. The server has just
/// written the same pages for each of them, so only the first read pays for the cache misses.
const TOGETHER: u32 = 16;

/// How often a client that does not play reads what waits.
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
    /// The same of the furthest picture.
    picture: i64,
    /// Bytes of frames since the first, that one included.
    bytes: u64,
    /// Bytes of the first frame. It usually is a keyframe, which is too large to estimate a bit rate from.
    first: u32,
    /// Bytes of the largest frame.
    largest: u32,
    has_pictures: bool,
    tracks: Tracks,
    /// The track for which it is stalled.
    absent: Option<Track>,
    /// Video frames since the first, that one included.
    frames: u64,
    /// How far apart pictures are, and how many of the source's are not booked yet.
    interval: FrameInterval,
    of_source: i32,
    /// Of a stream that keeps its own clock: media time in which they are known, in microseconds.
    framed: u32,
    /// Media time where the present group of pictures began.
    group: Option<i64>,
    /// Media time, bytes and frames that are in the source's rate, the first frame apart: it has no time before it.
    measured: (i64, u64, u64),
    batch: u32,
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
    stalls: StallRecorder,
    /// When the first frame came.
    began: Moment,
    /// How much more media than time has come since the first frame, at the most, in microseconds.
    lead: i64,
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

/// Frames that a source has in some media time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceFrames {
    /// How many.
    pub count: u64,
    /// In how much of that time they are known, in microseconds.
    pub micros: u64,
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
            picture: 0,
            bytes: 0,
            first: 0,
            largest: 0,
            has_pictures: false,
            tracks: Tracks::default(),
            absent: None,
            frames: 0,
            interval: FrameInterval::default(),
            of_source: 0,
            framed: 0,
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
            stalls: StallRecorder::default(),
            began: now,
            lead: 0,
            last_frame: now,
            silent_since: None,
        }
    }

    /// The viewer plays again, with what the read of `now` brings: it has another link in the place of one that it had lost. Media time goes
    /// on where it had stopped, and what a server keeps for new viewers comes faster than the clock again.
    pub fn come_back(&mut self, now: Moment) {
        self.timeline.begin_again();
        self.drift.begin_again();
        (self.began, self.lead, self.group) = (now - micros(self.media), 0, None);
    }

    /// The clock of a stream that keeps its own has jumped: how long there was nothing, and where live is since then, it no longer says.
    pub(crate) fn jumped(&mut self) {
        self.drift.begin_again();
    }

    /// A frame came in the read of `now`.
    #[inline]
    pub fn frame(&mut self, now: Moment, frame: ReceivedFrame, recorder: &mut Recorder) {
        let picture = self.timeline.last(Track::Video);
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
            // How long there was nothing, and where live is since then, timestamps no longer say.
            self.drift.begin_again();
        }
        if self.reading == Reading::Witness {
            let begins = frame.keyframe && frame.track == Track::Video || !self.has_pictures;
            self.came(now, || Continuation { jumps: position.jump.is_some(), begins }, recorder);
        }
        self.read_brought_frames = true;
        if frame.track == Track::Video {
            if let Some(picture) = picture.filter(|_| position.jump.is_none()) {
                self.of_source += self.interval.picture(position.media - picture);
            }
            self.has_pictures = true;
        }
        if frame.keyframe && frame.track == Track::Video || !self.has_pictures {
            self.group_boundary(media);
        }
        self.bytes += u64::from(frame.bytes);
        self.frames += u64::from(frame.track == Track::Video);
        if frame.track == Track::Video {
            self.picture = self.picture.max(media);
        }
        let (before, media_now) = (self.media, self.media.max(media));
        if let Some(end) = self.tracks.take(frame.track, (before, media_now), self.playout.buffer()) {
            self.track_returned(now, (end, before), recorder);
        }
        self.media = media_now;
        if self.reading == Reading::Witness && (frame.track == Track::Video || !self.has_pictures) {
            self.record_drift(now, media, recorder);
        }
    }

    /// The read of `now` brought `bytes` of a stream that keeps its own clock, up to this media time in microseconds. Such a stream has no frames: it is measured in pieces, as one without pictures. Its first
    /// bytes, which lead up to the time at which counting begins, are in no rate. `frames` is what the source has
    /// in that time.
    #[inline]
    pub fn progress(
        &mut self,
        now: Moment,
        media: i64,
        bytes: u32,
        frames: SourceFrames,
        recorder: &mut Recorder,
    ) {
        let media = match self.origin {
            Some(origin) => {
                self.frames += frames.count;
                self.framed = self.framed.saturating_add(u32::try_from(frames.micros).unwrap_or(u32::MAX));
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
        if frames.count > 0 {
            self.picture = self.media;
        }
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

    /// Both tracks of a stream that keeps its own clock, behind [`Self::progress`]; their times are on that clock.
    pub(crate) fn set_tracks(&mut self, now: Moment, mut ends: [TrackEnd; 2], recorder: &mut Recorder) {
        let Some(origin) = self.origin else { return };
        for end in &mut ends {
            (end.at, end.longest_from) = (end.at - origin, end.longest_from - origin);
        }
        if let Some(gap) = self.tracks.set(ends, self.playout.buffer()) {
            self.track_returned(now, gap, recorder);
        }
    }

    /// In the read of `now` a track has gone on that had run out, `from` and `to` these media times.
    #[cold]
    fn track_returned(&mut self, now: Moment, (from, to): (i64, i64), recorder: &mut Recorder) {
        // Before it came what the other track has brought. Within the batch of a crowd client that was when as much time as media
        // had passed since the read before.
        let passed = micros(to - self.measured.0);
        let came = if self.reading == Reading::Witness { now } else { now.min(self.last_read + passed) };
        let changes = [self.playout.end_track(came, micros(from)), self.playout.receive(came, micros(to))];
        for change in changes.into_iter().flatten() {
            self.book(change, came, recorder);
        }
    }

    /// Judges the tracks when a read has ended: a player that has had both stalls when either runs out. The track for which it
    /// stalls from now on, and when its last frame came.
    fn judge_tracks(&mut self, now: Moment, recorder: &mut Recorder) -> Option<(Track, Moment)> {
        let absent = self.tracks.absent(self.media, self.playout.buffer());
        if let Some((_, end)) = absent
            && let Some(change) = self.playout.end_track(now, micros(end))
        {
            self.book(change, now, recorder);
        }
        let absent = absent.filter(|_| self.playout.stalled_since().is_some());
        let before = self.set_absent(absent.map(|(track, _)| track), recorder);
        // The other track has gone on at the pace of the clock since then.
        let ended = absent.filter(|(track, _)| before != Some(*track));
        ended.map(|(track, end)| (track, now - micros(self.media - end)))
    }

    /// Changes the track for which it is stalled; the one before.
    fn set_absent(&mut self, absent: Option<Track>, recorder: &mut Recorder) -> Option<Track> {
        let before = std::mem::replace(&mut self.absent, absent);
        if absent != before {
            let gauge = |track| if track == Track::Video { WITHOUT_PICTURES } else { WITHOUT_SOUND };
            before.into_iter().for_each(|track| recorder.shift(gauge(track), -1));
            absent.into_iter().for_each(|track| recorder.shift(gauge(track), 1));
        }
        before
    }

    /// The read of `now` has ended; `empty` if it was a [pull](weir_shard::Context::pull) that found nothing. Says which track the
    /// viewer stalls for from now on although the other goes on, and when its last frame came.
    pub fn end_of_read(
        &mut self,
        now: Moment,
        empty: bool,
        recorder: &mut Recorder,
    ) -> Option<(Track, Moment)> {
        // What came in this read was here before the model ran dry, unless a pull found nothing then.
        let arrival = self.playout.runs_dry().map_or(now, |dry| dry.min(now));
        // While a track is absent, what the other brings makes nothing whole; to begin, it is enough.
        let end = self.tracks.absent(self.media, self.playout.buffer()).filter(|_| self.playout.has_begun());
        let media = end.map_or(self.media, |(_, end)| end);
        if let Some(change) = self.playout.receive(arrival, micros(media)) {
            self.book(change, now, recorder);
        }
        let ended = self.judge_tracks(now, recorder);
        if std::mem::take(&mut self.pulling)
            && empty
            && let Some(change) = self.playout.handle_timeout(now)
        {
            self.book(change, now, recorder);
        }
        if self.is_stalled_unbooked(now) {
            self.stalls.book(now, recorder);
        }
        self.measure_source(now, recorder);
        self.looked = now;
        self.covered = Duration::ZERO;
        self.own = self.next_own(now);
        if std::mem::take(&mut self.read_brought_frames) {
            if self.reading == Reading::Witness {
                recorder.record(ARRIVAL_GAP, now.since(self.last_read).as_micros() as u64);
            }
            self.last_read = now;
        }
        ended
    }

    /// A stretch that is judged begins or ends `at` this moment, and all that had come was read. Records how long ago the newest media
    /// came, and the newest picture: what is counted on both sides of the edge meets there, and not at the edge. `arrived` is when
    /// the link's newest bytes came, where the kernel knows that; otherwise each read is dated by what it brought.
    pub fn edge(&mut self, at: Moment, arrived: Option<Moment>, recorder: &mut Recorder) {
        if self.origin.is_none() {
            return;
        }
        let age = at.micros_since(arrived.unwrap_or(self.last_read));
        recorder.record_signed(EDGE_AGE, age);
        if self.frames > 0 {
            // Sound and pictures take turns: what came last may be a sound, some time behind the last picture.
            recorder.record_signed(EDGE_PICTURE_AGE, age + self.media - self.picture);
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
        if self.is_stalled_unbooked(now) {
            // The track that a client of the crowd waits for may have come and not been read.
            if self.absent.is_some() { self.pulling = true } else { self.stalls.book(now, recorder) }
        }
        self.pulling |= self.own.take_if(|at| *at <= now).is_some();
        self.pulling = self.pulling || self.looks(now) && !self.is_covered(now, unread);
        self.pulling
    }

    /// When to call [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Moment> {
        let stalled = self.playout.stalled_since().map(|_| self.stalls.due());
        let drift = if self.reading == Reading::Witness { self.drift.poll_timeout() } else { None };
        [self.next_look(), self.own, stalled, drift].into_iter().flatten().min()
    }

    /// The viewer stops; a stall that lasts ends here.
    pub fn leave(&mut self, now: Moment, recorder: &mut Recorder) {
        if let Some(since) = self.playout.stalled_since() {
            self.book(Change::Resumed(since), now, recorder);
        }
        self.set_absent(None, recorder);
    }

    fn book(&mut self, change: Change, now: Moment, recorder: &mut Recorder) {
        if change == Change::Started {
            self.size_batch();
        }
        self.stalls.change(change, now, recorder);
    }

    /// Whether a second of a stall is to be booked.
    fn is_stalled_unbooked(&self, now: Moment) -> bool {
        self.playout.stalled_since().is_some() && self.stalls.due() <= now
    }

    /// Books what came since the last read, and how much media time it makes. Both belong to the same seconds, so that what
    /// is expected of a window has as many keyframes in it as what came.
    fn measure_source(&mut self, now: Moment, recorder: &mut Recorder) {
        let (media, bytes, frames) = self.measured;
        if self.bytes == bytes {
            return;
        }
        // A frame beside one that came before it moves no time on, and has come all the same.
        let (step, came, shown) = (self.media - media, self.bytes - bytes, self.frames - frames);
        if step > 0 {
            let ahead = self.came_ahead(now, step);
            recorder.count(AHEAD, share(came, ahead, step));
            recorder.count(FRAMES_AHEAD, share(shown, ahead, step));
            recorder.count(SOURCE_TIME, step as u64);
        }
        recorder.count(SOURCE, came);
        self.measure_frames(shown, recorder);
        self.measured = (self.media, self.bytes, self.frames);
    }

    /// Books the frames that the source has in the media time that has passed, of which this many came: where its rate is constant, also
    /// those that did not.
    fn measure_frames(&mut self, came: u64, recorder: &mut Recorder) {
        // Of a stream that keeps its own clock they were the source's frames already.
        if !self.has_pictures {
            recorder.count(SOURCE_FRAMES, came);
            recorder.count(SOURCE_FRAME_TIME, std::mem::take(&mut self.framed).into());
            return;
        }
        if let Some((Track::Video, _)) = self.tracks.absent(self.media, self.playout.buffer())
            && let (Some(picture), Some(origin)) = (self.timeline.last(Track::Video), self.origin)
        {
            self.of_source += self.interval.passed(self.media + origin - picture);
        }
        // Of pictures that come late it may be less than none: they were counted when their time had passed.
        let frames = self.of_source.max(0);
        self.of_source -= frames;
        recorder.count(SOURCE_FRAMES, frames as u64);
        recorder.count(SOURCE_FRAME_TIME, frames as u64 * u64::from(self.interval.usual()));
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
}

/// Media time as a span; what lies before the first frame has none.
fn micros(media: i64) -> Duration {
    Duration::from_micros(media.max(0) as u64)
}

/// Of so much in `step` of media time, what is in `part` of it, to the nearest.
fn share(all: u64, part: i64, step: i64) -> u64 {
    let (part, step) = (part as u128, step as u128);
    ((u128::from(all) * part + step / 2) / step) as u64
}

#[cfg(test)]
mod tests;
