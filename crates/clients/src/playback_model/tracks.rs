//! Whether one of a stream's two tracks has run out while the other goes on.

use crate::timeline::Track;

/// However often its frames come, a track that brings none for no longer than this has not run out: where nobody speaks,
/// Opus sends one frame in 400 ms (RFC 6716 section 2.1.9), and the first such pause follows frames of 20 ms.
const SHORTEST_ABSENCE: i64 = 1_000_000;

/// A track with fewer intervals is not judged: how often its frames come is not known yet.
const FEWEST_INTERVALS: u32 = 8;

/// A track lags when the stream has gone on by more than this many of its longest intervals since its last frame: of sources
/// whose frames come when something moves, the next pause may be longer than any before it.
const INTERVALS: i64 = 3;

/// Where the frames of both tracks of a stream stand in its media time, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tracks {
    /// What a track may lag besides, by the player's buffer.
    patience: i64,
    /// The stream has a clock beside its frames, which a track may lag even if it is the only one.
    has_clock: bool,
    ends: [TrackEnd; 2],
}

/// The last frame of a track, and the intervals between its frames.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TrackEnd {
    /// The stream's media time when its last frame came. That is its own timestamp or less than the other track's, so that
    /// tracks which are always apart, as in a multiplex with buffers of different length, do not lag.
    pub(crate) at: i64,
    /// The most that the stream went on between two of its frames, and the earlier of the two.
    pub(crate) longest: i64,
    /// See `longest`.
    pub(crate) longest_from: i64,
    /// How many intervals there were.
    pub(crate) intervals: u32,
    /// Whether a frame has come.
    pub(crate) has_come: bool,
}

impl Tracks {
    /// Tracks of which no frame has come, for a player with this buffer, in microseconds.
    pub(super) fn new(buffer: i64) -> Self {
        Self { patience: buffer.max(SHORTEST_ABSENCE), has_clock: false, ends: [TrackEnd::default(); 2] }
    }

    /// A frame of `track` came and moved the stream's media time from `before` to `now`. Where the track ended, if it had
    /// run out until then.
    #[inline]
    pub(super) fn take(&mut self, track: Track, before: i64, now: i64) -> Option<i64> {
        let came_back = self.lags(track, before).then(|| self.ends[track as usize].at);
        // A step that neither track has filled is a pause of both, or a track that begins at a time of its own.
        if now - before > SHORTEST_ABSENCE {
            self.ends.iter_mut().for_each(|end| end.at += now - before);
        }
        let end = &mut self.ends[track as usize];
        if end.has_come {
            if now - end.at > end.longest {
                (end.longest, end.longest_from) = (now - end.at, end.at);
            }
            end.intervals = end.intervals.saturating_add(1);
        }
        (end.at, end.has_come) = (now, true);
        came_back
    }

    /// Both tracks of a stream that keeps its own clock, as they stand after a piece of it. The gap of one that had run out, and has come
    /// back in that piece: from where to where.
    pub(super) fn set(&mut self, ends: [TrackEnd; 2]) -> Option<(i64, i64)> {
        let before = std::mem::replace(&mut self.ends, ends);
        self.has_clock = true;
        before.iter().zip(&self.ends).find_map(|(before, end)| {
            // A gap that is long enough is longer than all before it.
            let (from, to) = (end.longest_from, end.longest_from + end.longest);
            let is_new = end.longest > before.longest;
            (is_new && self.has_run_out(&TrackEnd { at: from, ..*before }, to)).then_some((from, to))
        })
    }

    /// The track that has run out while the other goes on, and where it ended, of a stream that stands at `now`.
    #[inline]
    pub(super) fn absent(&self, now: i64) -> Option<(Track, i64)> {
        let lagging = [Track::Video, Track::Audio].into_iter().find(|track| self.lags(*track, now))?;
        Some((lagging, self.ends[lagging as usize].at))
    }

    #[inline]
    fn lags(&self, track: Track, now: i64) -> bool {
        let (end, other) = (&self.ends[track as usize], &self.ends[1 - track as usize]);
        self.has_run_out(end, now) && (self.has_clock || other.has_come && !self.is_overdue(other, now))
    }

    fn has_run_out(&self, end: &TrackEnd, now: i64) -> bool {
        self.is_overdue(end, now) && end.intervals >= FEWEST_INTERVALS
    }

    fn is_overdue(&self, end: &TrackEnd, now: i64) -> bool {
        now - end.at > self.patience + INTERVALS * end.longest
    }
}
