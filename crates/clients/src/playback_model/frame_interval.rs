//! How far apart the pictures of a source are, by their timestamps, as long as that is nearly always the same.

/// With fewer intervals it is not known.
const FEWEST: u16 = 8;

/// One interval in this many may be another than usual: pictures that were left out on the way. Where more are, the source's own
/// rate varies, or nobody can say that it does not.
const SHARE_OF_OTHERS: u16 = 10;

/// The mean of the usual intervals is of about this many: timestamps in milliseconds alternate between two of them.
const SMOOTHED: u16 = 64;

/// Counts are halved when they come to this many, about ten seconds: a source that changes its rate for good is one of another
/// rate, and its pictures were not left out.
const REMEMBERED: u16 = 256;

/// The usual time between two pictures.
#[derive(Clone, Copy, Debug, Default)]
pub struct FrameInterval {
    /// In microseconds.
    usual: u32,
    /// Intervals that were within a half of the usual one, and others.
    usual_count: u16,
    other_count: u16,
    /// Pictures that have not come although their time has passed, and are counted as the source's.
    counted: u32,
}

impl FrameInterval {
    /// A picture came this many microseconds behind the one before it. How many of the source's it stands for: itself and those
    /// that were left out before it, less those that were counted when their time had passed; none as long as the interval is not known.
    #[inline]
    pub fn picture(&mut self, step: i64) -> i32 {
        let Ok(step) = u32::try_from(step) else { return 0 };
        if self.usual_count + self.other_count >= REMEMBERED {
            (self.usual_count, self.other_count) = (self.usual_count / 2, self.other_count / 2);
        }
        let (twice, usual) = (u64::from(step) * 2, u64::from(self.usual));
        let of_source = if twice > usual && twice < 3 * usual {
            self.usual_count += 1;
            let weight = i32::from(self.usual_count.min(SMOOTHED));
            let more = (step.cast_signed() - self.usual.cast_signed()) / weight;
            self.usual = self.usual.saturating_add_signed(more);
            1
        } else {
            self.other_count += 1;
            if self.other_count > self.usual_count {
                let others = self.usual_count + self.other_count - 1;
                (self.usual, self.usual_count, self.other_count) = (step, 1, others);
            }
            self.in_span(step.into()).max(1)
        };
        let counted = self.counted.min(of_source);
        self.counted -= counted;
        if self.is_known() { (of_source - counted).min(1 << 20).cast_signed() } else { 0 }
    }

    /// No picture has come for this long by the media time of the stream, and none is on its way with the other track. How many of
    /// the source's lie in that, beside those that were counted before.
    pub(super) fn passed(&mut self, span: i64) -> i32 {
        let in_span = self.in_span(span.max(0) as u64);
        let more = in_span.saturating_sub(self.counted);
        self.counted += more;
        more.min(1 << 20).cast_signed()
    }

    /// The usual time between two pictures, in microseconds.
    pub fn usual(&self) -> u32 {
        self.usual
    }

    /// Whether it is the same nearly always.
    pub fn is_known(&self) -> bool {
        self.usual_count >= FEWEST && self.other_count <= self.usual_count / SHARE_OF_OTHERS
    }

    fn in_span(&self, span: u64) -> u32 {
        let usual = u64::from(self.usual.max(1));
        if self.is_known() { u32::try_from((span + usual / 2) / usual).unwrap_or(u32::MAX) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pictures at these times, in milliseconds: how many of the source's they stand for, and whether its rate is known.
    fn of_source(times: impl IntoIterator<Item = i64>) -> (i32, bool) {
        let (mut interval, mut frames, mut before) = (FrameInterval::default(), 0, None);
        for at in times {
            if let Some(before) = before.replace(at) {
                frames += interval.picture((at - before) * 1_000);
            }
        }
        (frames, interval.is_known())
    }

    /// Those before the interval is known: the first, and seven intervals.
    const UNKNOWN: i32 = 8;

    #[test]
    fn pictures_that_were_left_out_are_counted_where_the_rate_is_constant() {
        let ntsc = |number: i64| number * 1_001 / 30;
        assert_eq!(of_source((0..900).map(ntsc)), (900 - UNKNOWN, true));
        assert_eq!(of_source((0..900).filter(|number| number % 50 != 49).map(ntsc)), (899 - UNKNOWN, true));
        let gap = |number: &i64| !(400..600).contains(number);
        assert_eq!(of_source((0..900).filter(gap).map(ntsc)), (900 - UNKNOWN, true));
    }

    #[test]
    fn a_rate_that_varies_is_not_known() {
        assert!(!of_source((0..900).filter(|number| number % 3 != 0).map(|number| number * 40)).1);
        assert!(!of_source((0..100).map(|number| number * number)).1);
        assert_eq!(of_source([0, 40, 5_000, 10_000]), (0, false));
    }

    #[test]
    fn a_source_that_halves_its_rate_leaves_nothing_out_for_long() {
        let times =
            (0..9_000).map(|number| number * 33).chain((0..9_000).map(|number| 9_000 * 33 + number * 66));
        let (frames, is_known) = of_source(times);
        assert!(is_known && frames < 18_040, "{frames}");
    }

    #[test]
    fn pictures_that_stay_away_are_counted_once() {
        let mut interval = FrameInterval::default();
        (0..10).for_each(|_| assert!(interval.picture(40_000) <= 1));
        assert_eq!(
            (interval.passed(1_000_000), interval.passed(1_000_000), interval.passed(2_000_000)),
            (25, 0, 25)
        );
        assert_eq!(interval.picture(4_000_000), 50);
        // They were held back, and come after all.
        assert_eq!(interval.passed(400_000), 10);
        let late: i32 = (0..20).map(|_| interval.picture(40_000)).sum();
        assert_eq!(late, 10);
    }
}
