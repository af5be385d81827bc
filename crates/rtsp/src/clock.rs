//! RTP timestamps of a track as the milliseconds of one stream, in the order in which frames are decoded.

use std::time::Duration;

/// The most pictures that stand between a picture's place in the stream and on the screen: H.264 allows 16 (ITU-T H.264 section
/// A.3.1, MaxDpbFrames).
const MOST_REORDERED: usize = 16;

/// A timestamp that is further away than this from the one before it has jumped: pictures are reordered within fractions of a second.
const JUMP: i64 = 2_000_000;

/// The clock of one track.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrackClock {
    rate: u32,
    last: Option<u32>,
    ticks: i64,
    /// When its first packet came, after the stream's first, in milliseconds: RTP timestamps of two tracks have nothing in common.
    offset: i64,
}

impl TrackClock {
    pub(crate) fn new(rate: u32) -> Self {
        Self { rate: rate.max(1), last: None, ticks: 0, offset: 0 }
    }

    /// The media time of a timestamp, in ticks since the first. `since` is how long ago the first packet of the stream came.
    pub(crate) fn ticks(&mut self, timestamp: u32, since: Duration) -> i64 {
        match self.last.replace(timestamp) {
            Some(last) => self.ticks += i64::from(timestamp.wrapping_sub(last) as i32),
            None => self.offset = since.as_millis() as i64,
        }
        self.ticks
    }

    /// Ticks as milliseconds of the stream, modulo 2³².
    pub(crate) fn millis(&self, ticks: i64) -> u32 {
        (self.offset + ticks.saturating_mul(1_000) / i64::from(self.rate)) as u32
    }

    /// The difference of two media times, in milliseconds.
    pub(crate) fn span(&self, ticks: i64) -> i32 {
        (ticks.saturating_mul(1_000) / i64::from(self.rate)).clamp(i32::MIN.into(), i32::MAX.into()) as i32
    }

    /// How far apart timestamps are that jump, in ticks.
    pub(crate) fn jump(&self) -> i64 {
        JUMP * i64::from(self.rate) / 1_000_000
    }
}

/// Decode times out of presentation times, which alone RTP has: the k-th picture of a stream is decoded at the k-th of its
/// times, in their order, as many pictures earlier as any picture is late. How many that is shows within the first pictures that
/// are not shown in the order of decoding; of a stream without such pictures both times are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct DecodeOrder {
    /// Times that are not given out, in their order.
    waiting: Vec<i64>,
    depth: usize,
    last: Option<i64>,
}

impl DecodeOrder {
    /// The decode time of the next picture.
    pub(crate) fn place(&mut self, shown: i64, jump: i64) -> i64 {
        if self.last.is_some_and(|last| (shown - last).abs() > jump) {
            (self.waiting, self.last) = (Vec::new(), None);
        }
        let at = self.waiting.partition_point(|waiting| *waiting <= shown);
        self.waiting.insert(at, shown);
        let Some(last) = self.last else {
            self.last = Some(shown);
            self.waiting.clear();
            return shown;
        };
        // It would be shown before what is decoded: pictures are shown later than was known.
        if shown < last && self.depth < MOST_REORDERED {
            self.depth += 1;
        }
        let time = if self.waiting.len() > self.depth { self.waiting.remove(0).max(last) } else { last };
        self.waiting.truncate(MOST_REORDERED);
        self.last = Some(time);
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(shown: impl IntoIterator<Item = i64>) -> Vec<i64> {
        let mut order = DecodeOrder::default();
        shown.into_iter().map(|it| order.place(it, 100)).collect()
    }

    #[test]
    fn timestamps_wrap_and_tracks_begin_when_they_come() {
        let mut clock = TrackClock::new(90_000);
        let at = |clock: &mut TrackClock, timestamp| {
            let ticks = clock.ticks(timestamp, Duration::from_millis(40));
            clock.millis(ticks)
        };
        assert_eq!(at(&mut clock, u32::MAX - 3_599), 40);
        assert_eq!(at(&mut clock, 0), 80);
        assert_eq!(at(&mut clock, u32::MAX - 1_799), 60);
    }

    #[test]
    fn pictures_in_order_are_decoded_when_they_are_shown() {
        assert_eq!(placed((0..5).map(|it| it * 4)), [0, 4, 8, 12, 16]);
    }

    #[test]
    fn pictures_out_of_order_are_decoded_one_after_the_other() {
        // I P b b P b b, and a pyramid.
        for group in [&[3, 1, 2][..], &[4, 2, 1, 3]] {
            let length = group.len() as i64;
            let shown = (0..20).flat_map(|it| group.iter().map(move |at| it * length + at));
            let placed = placed([0].into_iter().chain(shown));
            let steps: Vec<i64> = placed.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert!(steps.iter().all(|step| *step >= 0), "{steps:?}");
            assert!(steps[8..].iter().all(|step| *step == 1), "{steps:?}");
        }
    }

    #[test]
    fn a_gap_is_a_gap_and_a_jump_begins_again() {
        assert_eq!(placed([0, 1, 2, 5, 6]), [0, 1, 2, 5, 6]);
        assert_eq!(placed([0, 1, 1_000, 1_001, 3]), [0, 1, 1_000, 1_001, 3]);
    }
}
