//! A source's time from one frame to the next, as its pictures are shown: by their time stamps, in whatever order they come.

/// The farthest that a picture is sent before its turn: `max_num_reorder_frames` of H.264 (Annex E.2.1).
const MOST_REORDERED: usize = 16;

/// One interval in this many may be another than usual. Where more are, the source has frames when it has something new to show.
const SHARE_OF_OTHERS: u16 = 10;

/// Counts of intervals are halved when they come to this many, so that a source which changes its rate for good is soon one of another.
const REMEMBERED: u16 = 256;

/// The smoothed time between frames, in ticks of the source's clock.
#[derive(Clone, Debug, Default)]
pub(super) struct FrameTime {
    /// 0 while it is not known.
    ticks: u32,
    /// Intervals that were within a half of the smoothed one, and others.
    usual: u16,
    others: u16,
    /// Ticks of the pauses so far, modulo 2³²: the source had no frames in them.
    paused: u32,
    /// The last frame whose turn has come.
    last: Option<u32>,
    /// Frames that have not been shown yet, in order: as many as are known to be sent before their turn. Without B-frames it
    /// is empty.
    early: Vec<u32>,
    depth: u8,
    /// Intervals that teach nothing: a frame between two of them was shown before its turn was known.
    skipped: u8,
}

impl FrameTime {
    /// The frame with this time stamp came; `follows` the one before it without a gap. Over `most` ticks from one to the next are a pause.
    pub(super) fn frame(&mut self, timestamp: u32, follows: bool, most: u32) {
        if !follows {
            self.last = None;
            self.early.clear();
        }
        let is_behind = |this: u32, other: u32| (this.wrapping_sub(other) as i32) < 0;
        if self.last.is_some_and(|last| is_behind(timestamp, last)) {
            // Its turn was before that of one which is gone: from here on one more waits, and what was learnt is of another
            // order.
            if usize::from(self.depth) < MOST_REORDERED {
                self.depth += 1;
                (self.ticks, self.last, self.skipped) = (0, None, 2);
            }
            return;
        }
        let at = self.early.partition_point(|early| is_behind(*early, timestamp));
        self.early.insert(at, timestamp);
        if self.early.len() > usize::from(self.depth) {
            let shown = self.early.remove(0);
            if let Some(last) = self.last.replace(shown) {
                self.learn(shown.wrapping_sub(last), most);
            }
        }
    }

    fn learn(&mut self, ticks: u32, most: u32) {
        if self.skipped > 0 {
            self.skipped -= 1;
            return;
        }
        if ticks == 0 {
            return;
        }
        if self.usual + self.others >= REMEMBERED {
            (self.usual, self.others) = (self.usual / 2, self.others / 2);
        }
        let (twice, smoothed) = (u64::from(ticks) * 2, u64::from(self.ticks));
        let is_usual = self.ticks == 0 || twice > smoothed && twice < 3 * smoothed;
        *if is_usual { &mut self.usual } else { &mut self.others } += 1;
        if ticks > most {
            self.paused = self.paused.wrapping_add(ticks.saturating_sub(self.ticks));
            return;
        }
        if ticks == self.ticks {
            return;
        }
        self.ticks = match self.ticks {
            0 => ticks,
            known => ((u64::from(known) * 7 + u64::from(ticks)) / 8) as u32,
        };
    }

    /// The sequence begins again. How far pictures are out of order is not asked again.
    pub(super) fn restart(&mut self) {
        self.last = None;
        self.early.clear();
    }

    /// `None` before two frames were shown one behind the other.
    pub(super) fn ticks(&self) -> Option<u32> {
        (self.ticks > 0).then_some(self.ticks)
    }

    /// Whether nearly all frames were as far apart.
    pub(super) fn is_steady(&self) -> bool {
        self.others <= 1 || self.others <= self.usual / SHARE_OF_OTHERS
    }

    /// How long the source had no frame, in ticks modulo 2³²: beyond the time of one frame, in intervals that are pauses.
    pub(super) fn paused(&self) -> u32 {
        self.paused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: u32 = 180_000;

    /// Learns from groups of pictures in the order of decoding, of `frame` ticks each.
    fn learn(group: &[u32], groups: u32, frame: u32, origin: u32) -> Option<u32> {
        let mut time = FrameTime::default();
        for at in 0..groups {
            for picture in group {
                time.frame(origin.wrapping_add((at * group.len() as u32 + picture) * frame), true, MOST);
            }
        }
        time.ticks()
    }

    #[test]
    fn frames_are_as_far_apart_as_they_are_shown_in_whatever_order_they_are_sent() {
        for group in [
            &[0, 1, 2, 3, 4, 5, 6, 7][..],
            &[0, 3, 1, 2, 6, 4, 5, 7],
            &[0, 4, 2, 1, 3, 7, 6, 5],
            // A pyramid of eight, and as far out of order as H.264 may be.
            &[0, 8, 4, 2, 1, 3, 6, 5, 7],
            &[0, 16, 8, 4, 2, 1, 3, 6, 5, 7, 12, 10, 9, 11, 14, 13, 15],
        ] {
            // Time stamps wrap meanwhile.
            assert_eq!(learn(group, 40, 3_000, u32::MAX - 100_000), Some(3_000), "{group:?}");
        }
    }

    #[test]
    fn a_gap_and_a_pause_teach_nothing() {
        let mut time = FrameTime::default();
        for (timestamp, follows) in
            [(0, false), (3_000, true), (6_000, true), (15_000, false), (18_000, true)]
        {
            time.frame(timestamp, follows, MOST);
        }
        time.frame(18_000 + MOST + 1, true, MOST);
        assert_eq!(time.ticks(), Some(3_000));
        time.restart();
        time.frame(7, true, MOST);
        assert_eq!(time.ticks(), Some(3_000));
    }

    #[test]
    fn a_source_that_shows_what_is_new_has_no_steady_rate_and_pauses() {
        let mut time = FrameTime::default();
        let mut at = 0_u32;
        let mut show = |time: &mut FrameTime, step: u32, count: u32| {
            for _ in 0..count {
                time.frame(at, true, MOST);
                at += step;
            }
        };
        show(&mut time, 3_000, 300);
        assert!(time.is_steady());
        // A slide of five seconds.
        show(&mut time, 450_000, 1);
        show(&mut time, 3_000, 300);
        assert_eq!((time.ticks(), time.paused(), time.is_steady()), (Some(3_000), 447_000, true));
        // A rate for good is another rate.
        show(&mut time, 6_000, 250);
        assert!(time.is_steady() && (5_950..=6_000).contains(&time.ticks().unwrap()), "{:?}", time.ticks());
        for _ in 0..20 {
            show(&mut time, 3_000, 10);
            show(&mut time, 90_000, 2);
        }
        assert!(!time.is_steady());
    }

    #[test]
    fn what_is_held_is_bounded_whatever_is_sent() {
        let mut time = FrameTime::default();
        for number in 0..10_000_u32 {
            time.frame(number.wrapping_mul(0x9E37_79B9), true, MOST);
            assert!(time.early.len() <= MOST_REORDERED);
        }
    }
}
