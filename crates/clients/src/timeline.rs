//! The media time of a stream whose timestamps wrap, jump, and come on two tracks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A track of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Track {
    /// Pictures.
    Video,
    /// Sound.
    Audio,
}

/// Turns the timestamps of one stream into a media time that has no wraps and no jumps.
///
/// A timestamp is taken for a jump when it lies more than a second further ahead of its track's last one
/// than time has passed, or more than 250 ms behind it. Media time goes on after a jump as if it had not
/// happened (one usual step later); its size is reported. Both tracks jumping is one jump.
#[derive(Clone, Copy, Debug)]
pub struct Timeline {
    hertz: u32,
    bits: u32,
    tracks: [Mark; 2],
}

/// The last timestamp of a track.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    timestamp: u64,
    /// The same in ticks of media time.
    media: i64,
    /// The last step, in ticks: the usual one.
    step: i32,
    /// Whether there is one.
    is_set: bool,
}

/// Where a timestamp lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Media time since an origin of the timeline's choice, in microseconds.
    pub media: i64,
    /// Size of the jump before this timestamp, in microseconds, if there was one.
    pub jump: Option<i64>,
}

impl Timeline {
    /// Timestamps of `bits` bits that count `hertz` ticks a second.
    pub const fn new(hertz: u32, bits: u32) -> Self {
        const NONE: Mark = Mark { timestamp: 0, media: 0, step: 0, is_set: false };
        Self { hertz, bits, tracks: [NONE; 2] }
    }

    /// The same stream on another link, whose timestamps have nothing to do with those before: media time goes on one usual step
    /// later, and that is no jump.
    pub(crate) fn begin_again(&mut self) {
        self.tracks.iter_mut().for_each(|mark| mark.is_set = false);
    }

    /// Endpoints a timestamp that came at most `passed` after the one before it.
    #[inline]
    pub fn place(&mut self, track: Track, timestamp: u64, passed: Duration) -> Position {
        let other = self.mark(1 - track as usize);
        let mut jump = None;
        let mark = match (self.mark(track as usize), other) {
            (Some(last), other) => {
                let step = self.difference(timestamp, last.timestamp);
                if self.is_step(step, passed) {
                    Mark {
                        timestamp,
                        media: last.media + step,
                        step: i32::try_from(step).unwrap_or(last.step),
                        is_set: true,
                    }
                } else {
                    // The other track may have jumped the same way already, or gone on while this one paused: go where it went.
                    let apart = other.map(|other| (other.media, self.difference(timestamp, other.timestamp)));
                    let is_along = |media: i64, apart: i64| {
                        self.is_near(apart) || self.is_near(media + apart - last.media)
                    };
                    let media = match apart.filter(|(media, apart)| is_along(*media, *apart)) {
                        Some((media, apart)) => media + apart,
                        None => {
                            let usual = i64::from(last.step);
                            jump = Some(self.micros(step - usual));
                            last.media + usual
                        }
                    };
                    Mark { timestamp, media, step: last.step, is_set: true }
                }
            }
            (None, Some(other)) => {
                let apart = self.difference(timestamp, other.timestamp);
                // Tracks of one stream start together, whatever their timestamps say.
                let apart = if self.is_near(apart / 10) { apart } else { 0 };
                Mark { timestamp, media: other.media + apart, step: 0, is_set: true }
            }
            (None, None) => {
                let media = self.tracks.iter().map(|mark| mark.media + i64::from(mark.step)).max();
                Mark { timestamp, media: media.unwrap_or_default(), step: 0, is_set: true }
            }
        };
        self.tracks[track as usize] = mark;
        Position { media: self.micros(mark.media), jump }
    }

    /// Media time of the last timestamp of a track, in microseconds; none before the first.
    #[inline]
    pub fn last(&self, track: Track) -> Option<i64> {
        self.mark(track as usize).map(|mark| self.micros(mark.media))
    }

    fn mark(&self, track: usize) -> Option<Mark> {
        Some(self.tracks[track]).filter(|mark| mark.is_set)
    }

    /// `later − earlier` on a counter that wraps.
    fn difference(&self, later: u64, earlier: u64) -> i64 {
        let shift = 64 - self.bits;
        (later.wrapping_sub(earlier) << shift) as i64 >> shift
    }

    fn is_step(&self, step: i64, passed: Duration) -> bool {
        let second = i64::from(self.hertz);
        let passed = passed.as_millis() as i64 * second / 1_000;
        -second / 4 <= step && step <= second + passed
    }

    fn is_near(&self, ticks: i64) -> bool {
        ticks.abs() <= i64::from(self.hertz)
    }

    fn micros(&self, ticks: i64) -> i64 {
        ticks.saturating_mul(1_000_000) / i64::from(self.hertz)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Track::{Audio, Video};

    const SHORT: Duration = Duration::from_millis(40);

    fn rtmp() -> Timeline {
        Timeline::new(1_000, 32)
    }

    #[test]
    fn another_link_goes_on_where_the_one_before_has_stopped() {
        let mut timeline = rtmp();
        for at in 0..10 {
            timeline.place(Video, 5_000 + at * 40, SHORT);
            timeline.place(Audio, 5_000 + at * 40, SHORT);
        }
        timeline.begin_again();
        assert_eq!((timeline.last(Video), timeline.last(Audio)), (None, None));
        assert_eq!(timeline.place(Video, 70, SHORT), Position { media: 400_000, jump: None });
        assert_eq!(timeline.place(Audio, 50, SHORT), Position { media: 380_000, jump: None });
        assert_eq!(timeline.place(Video, 110, SHORT), Position { media: 440_000, jump: None });
    }

    #[test]
    fn a_wrap_is_no_jump() {
        let mut timeline = rtmp();
        let start = u64::from(u32::MAX) - 100;
        timeline.place(Video, start, SHORT);
        let position = timeline.place(Video, (start + 140) & u64::from(u32::MAX), SHORT);
        assert_eq!(position, Position { media: 140_000, jump: None });
        let mut timeline = Timeline::new(90_000, 33);
        timeline.place(Video, (1 << 33) - 1_800, SHORT);
        assert_eq!(timeline.place(Video, 1_800, SHORT), Position { media: 40_000, jump: None });
    }

    #[test]
    fn a_jump_has_its_exact_size_and_is_counted_once_for_both_tracks() {
        for size in [-7_000i64, 5_000, 3_600_000] {
            let mut timeline = rtmp();
            let mut jumps = Vec::new();
            let mut last = 0;
            for frame in 0..100i64 {
                let offset = if frame >= 50 { size } else { 0 };
                for (track, at) in [(Video, frame * 40), (Audio, frame * 40 + 13)] {
                    let position = timeline.place(track, (100_000 + at + offset) as u64, SHORT);
                    jumps.extend(position.jump);
                    last = position.media;
                }
            }
            assert_eq!((jumps, last), (vec![size * 1_000], 99 * 40_000 + 13_000));
        }
    }

    #[test]
    fn a_pause_of_the_source_is_no_jump() {
        let mut timeline = rtmp();
        timeline.place(Video, 0, SHORT);
        let position = timeline.place(Video, 5_040, Duration::from_secs(5));
        assert_eq!(position, Position { media: 5_040_000, jump: None });
    }

    #[test]
    fn a_track_that_comes_back_is_where_the_other_has_gone() {
        let mut timeline = rtmp();
        timeline.place(Video, 0, SHORT);
        (0..300).for_each(|frame| assert_eq!(timeline.place(Audio, frame * 20, SHORT).jump, None));
        assert_eq!(timeline.place(Video, 6_000, SHORT), Position { media: 6_000_000, jump: None });
        assert_eq!(timeline.place(Audio, 6_000, SHORT), Position { media: 6_000_000, jump: None });
    }

    #[test]
    fn a_step_back_within_reordering_is_no_jump() {
        let mut timeline = rtmp();
        timeline.place(Video, 1_000, SHORT);
        assert_eq!(timeline.place(Video, 920, SHORT), Position { media: -80_000, jump: None });
    }

    #[test]
    fn tracks_that_start_far_apart_start_together() {
        let mut timeline = rtmp();
        timeline.place(Video, 1_000_000, SHORT);
        assert_eq!(timeline.place(Audio, 0, SHORT), Position { media: 0, jump: None });
        assert_eq!(timeline.place(Audio, 23, SHORT), Position { media: 23_000, jump: None });
    }
}
