//! How far apart the pictures of a stream are, by their decoding times, and where those jump.

use super::JUMP;
use weir_clients::FrameInterval;

/// Usual steps that are remembered: two minutes of 30 pictures a second.
const REMEMBERED: u64 = 4_096;

/// The longest step that is taken for one from a picture to the next, where none is known yet, in microseconds.
const LONGEST_STEP: i64 = 10_000_000;

#[derive(Debug, Default)]
pub(super) struct FrameRate {
    interval: FrameInterval,
    /// Steps that were about as long as is usual, and their sum in microseconds: the mean of timestamps in whole milliseconds.
    count: u64,
    sum: u64,
    /// The longest step that was no jump.
    longest: i64,
}

impl FrameRate {
    /// A picture came this many microseconds behind the one before it. Whether that is a jump.
    pub(super) fn step(&mut self, step: i64) -> bool {
        let usual = if self.longest > 0 { self.longest.saturating_add(JUMP) } else { LONGEST_STEP };
        let has_jumped = step < -JUMP || step > usual;
        if has_jumped {
            return true;
        }
        self.longest = self.longest.max(step);
        let Ok(step) = u64::try_from(step) else { return false };
        self.interval.picture(step as i64);
        let usual = u64::from(self.interval.usual());
        if 2 * step > usual && 2 * step < 3 * usual {
            self.count += 1;
            self.sum += step;
        }
        // The source has changed its rate for good: from 30 to 25, from 60 to 50. Timestamps in whole milliseconds are off by less.
        if self.count > 0 && (self.sum / self.count).abs_diff(usual) > usual / 16 {
            (self.count, self.sum) = (1, usual);
        }
        if self.count == REMEMBERED {
            (self.count, self.sum) = (self.count / 2, self.sum / 2);
        }
        false
    }

    /// The mean time from one picture to the next, in microseconds, as long as it is nearly always the same.
    pub(super) fn mean(&self) -> Option<f64> {
        self.interval
            .is_known()
            .then(|| self.sum as f64 / self.count.max(1) as f64)
            .filter(|mean| *mean > 0.0)
    }
}
