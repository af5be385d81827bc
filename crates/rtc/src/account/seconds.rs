//! Frames and bytes of each second, those of none included.

use std::time::Duration;

use weir_metrics::Moment;

/// The least and the most of a quantity in any second, and the total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerSecond {
    /// The least of any whole second.
    pub least: u64,
    /// The most of any whole second.
    pub most: u64,
    /// The total of all whole seconds.
    pub total: u64,
}

/// The seconds since a beginning. A second that is not over is not in any figure.
#[derive(Clone, Copy, Debug)]
pub struct Seconds {
    /// When the second under way ends.
    end: Moment,
    frames_now: u64,
    bytes_now: u64,
    seconds: u64,
    silent: u64,
    frames: PerSecond,
    bytes: PerSecond,
}

impl Seconds {
    pub(super) fn new(start: Moment) -> Self {
        Self {
            end: start + Duration::from_secs(1),
            frames_now: 0,
            bytes_now: 0,
            seconds: 0,
            silent: 0,
            frames: PerSecond::default(),
            bytes: PerSecond::default(),
        }
    }

    #[inline]
    pub(super) fn count(&mut self, now: Moment, frames: u64, bytes: u64) {
        if now >= self.end {
            self.pass(now);
        }
        self.frames_now += frames;
        self.bytes_now += bytes;
    }

    /// Ends the seconds that are over.
    #[cold]
    pub(super) fn pass(&mut self, now: Moment) {
        while now >= self.end {
            let (frames, bytes) = (std::mem::take(&mut self.frames_now), std::mem::take(&mut self.bytes_now));
            let first = self.seconds == 0;
            for (all, this) in [(&mut self.frames, frames), (&mut self.bytes, bytes)] {
                all.least = if first { this } else { all.least.min(this) };
                all.most = all.most.max(this);
                all.total += this;
            }
            self.silent += u64::from(frames == 0);
            self.seconds += 1;
            self.end = self.end + Duration::from_secs(1);
        }
    }

    /// Whole seconds.
    pub fn seconds(&self) -> u64 {
        self.seconds
    }

    /// Whole seconds without a frame.
    pub fn silent_seconds(&self) -> u64 {
        self.silent
    }

    /// Frames a second, counted when their first packet came; `None` before a second is over.
    pub fn frames(&self) -> Option<PerSecond> {
        (self.seconds > 0).then_some(self.frames)
    }

    /// Bytes a second, whole packets with their headers; `None` before a second is over.
    pub fn bytes(&self) -> Option<PerSecond> {
        (self.seconds > 0).then_some(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_silent_seconds_stay_in_the_minimum() {
        let at = |millis: u64| Moment::from_nanos(millis * 1_000_000);
        let mut seconds = Seconds::new(at(500));
        assert_eq!(seconds.frames(), None);
        for millis in (500..2_500).chain(5_500..6_700).step_by(100) {
            seconds.count(at(millis), 1, 1000);
        }
        assert_eq!((seconds.seconds(), seconds.silent_seconds()), (6, 3));
        assert_eq!(seconds.frames(), Some(PerSecond { least: 0, most: 10, total: 30 }));
        assert_eq!(seconds.bytes(), Some(PerSecond { least: 0, most: 10_000, total: 30_000 }));
        seconds.pass(at(8_499));
        assert_eq!(seconds.frames(), Some(PerSecond { least: 0, most: 10, total: 32 }));
    }
}
