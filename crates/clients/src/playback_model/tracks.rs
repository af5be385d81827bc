//! Whether one of a stream's two tracks has run out while the other goes on.

use crate::timeline::Track;
use std::time::Duration;

/// However often its frames come, a track that brings none for no longer than this has not run out: where nobody speaks,
/// Opus sends one frame in 400 ms (RFC 6716 section 2.1.9), and the first such pause follows frames of 20 ms.
const SHORTEST_ABSENCE: i64 = 1_000_000;

/// A track with fewer intervals is not judged: how often its frames come is not known yet.
const FEWEST_INTERVALS: u8 = 8;

/// A track lags when the stream has gone on by more than this many of its longest intervals since its last frame: of sources
/// whose frames come when something moves, the next pause may be longer than any before it.
const INTERVALS: i64 = 3;

/// Where the frames of both tracks of a stream stand in its media time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tracks {
    ends: [End; 2],
    /// The stream has a clock beside its frames, which a track may lag even if it is the only one.
    has_clock: bool,
}

/// The last frame of a track, and the intervals between its frames, in milliseconds: each viewer has two of these.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    /// The stream's media time when its last frame came. That is its own timestamp or less than the other track's, so that
    /// tracks which are always apart, as in a multiplex with buffers of different length, do not lag.
    at: u32,
    /// The most that the stream went on between two of its frames.
    longest: u32,
    /// Frames, if they are counted.
    frames: u8,
}

/// A track of a stream that keeps its own clock, in microseconds of that.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TrackEnd {
    /// When its last frame began.
    pub(crate) at: i64,
    /// The longest time between two of its frames.
    pub(crate) longest: i64,
    /// When that began.
    pub(crate) longest_from: i64,
    /// How many frames there were.
    pub(crate) frames: u64,
}

impl Tracks {
    /// A frame of `track` came and moved the stream's media time from `before` to `now`, in microseconds. Where the track ended, if it
    /// had run out until then for a player with this buffer.
    #[inline]
    pub(super) fn take(&mut self, track: Track, (before, now): (i64, i64), buffer: Duration) -> Option<i64> {
        let came_back = self.lags(track, before, buffer).then(|| self.ends[track as usize].micros());
        // A step that neither track has filled is a pause of both, or a track that begins at a time of its own.
        if now - before > SHORTEST_ABSENCE {
            self.ends.iter_mut().for_each(|end| end.at = end.at.saturating_add(millis(now - before)));
        }
        let (now, end) = (millis(now), &mut self.ends[track as usize]);
        if end.frames > 0 {
            end.longest = end.longest.max(now.saturating_sub(end.at));
        }
        (end.at, end.frames) = (now, end.frames.saturating_add(1));
        came_back
    }

    /// Both tracks of a stream that keeps its own clock, as they stand after a piece of it. The gap of one that had run out, and has come
    /// back in that piece: from where to where.
    pub(super) fn set(&mut self, tracks: [TrackEnd; 2], buffer: Duration) -> Option<(i64, i64)> {
        let before = self.ends;
        self.has_clock = true;
        self.ends = tracks.map(|track| End {
            at: millis(track.at),
            longest: millis(track.longest),
            frames: track.frames.min(u8::MAX.into()) as u8,
        });
        before.iter().zip(tracks).find_map(|(before, track)| {
            // A gap that is long enough is longer than all before it.
            let (from, to) = (track.longest_from, track.longest_from + track.longest);
            let is_new = millis(track.longest) > before.longest;
            let was = End { at: millis(from), ..*before };
            (is_new && was.has_run_out(to, buffer)).then_some((from, to))
        })
    }

    /// The track that has run out while the other goes on, and where it ended, of a stream that stands at `now`.
    #[inline]
    pub(super) fn absent(&self, now: i64, buffer: Duration) -> Option<(Track, i64)> {
        let lagging =
            [Track::Video, Track::Audio].into_iter().find(|track| self.lags(*track, now, buffer))?;
        Some((lagging, self.ends[lagging as usize].micros()))
    }

    #[inline]
    fn lags(&self, track: Track, now: i64, buffer: Duration) -> bool {
        let (end, other) = (&self.ends[track as usize], &self.ends[1 - track as usize]);
        end.has_run_out(now, buffer) && (self.has_clock || other.frames > 0 && !other.is_overdue(now, buffer))
    }
}

impl End {
    fn micros(&self) -> i64 {
        i64::from(self.at) * 1_000
    }

    fn has_run_out(&self, now: i64, buffer: Duration) -> bool {
        self.frames > FEWEST_INTERVALS && self.is_overdue(now, buffer)
    }

    fn is_overdue(&self, now: i64, buffer: Duration) -> bool {
        let patience = SHORTEST_ABSENCE.max(buffer.as_micros() as i64);
        now - self.micros() > patience + INTERVALS * i64::from(self.longest) * 1_000
    }
}

/// Media time in milliseconds; what lies before the first frame has none.
fn millis(micros: i64) -> u32 {
    u32::try_from(micros.max(0) / 1_000).unwrap_or(u32::MAX)
}
