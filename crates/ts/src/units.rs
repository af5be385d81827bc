//! When the units of one kind of elementary stream began, by the stream's clock.

use crate::clock::StreamTime;

/// PES packets of all pictures, or of all sound, of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitTimes {
    /// How many have begun since the program maps have such a stream.
    pub units: u64,
    /// When the last of them began.
    pub last: StreamTime,
    /// The longest time between two of them, in ticks of 27 MHz.
    pub longest: u64,
    /// When that began.
    pub longest_from: StreamTime,
}

impl UnitTimes {
    pub(crate) fn begin(&mut self, now: StreamTime) {
        let interval = now.0.saturating_sub(self.last.0);
        if self.units > 0 && interval > self.longest {
            (self.longest, self.longest_from) = (interval, self.last);
        }
        (self.last, self.units) = (now, self.units + 1);
    }

    /// Until `now` nothing was known of the time.
    pub(crate) fn begin_watching(&mut self, now: StreamTime) {
        *self = Self { units: self.units.min(1), last: now, ..Self::default() };
    }
}
