//! For how long a thread did not read what came.

use std::time::Duration;

/// A turn that takes less is part of the loop's ordinary work: the kernel's own tick is up to 10 ms long.
const LATE: Duration = Duration::from_millis(10);

/// Times that a thread slept beyond what was due, and turns of its loop that took long: nothing is read meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// The longest of them.
    pub longest: Duration,
    /// All of 10 ms and more together.
    pub late: Duration,
}

impl Lag {
    #[inline]
    pub(crate) fn add(&mut self, time: Duration) {
        self.longest = self.longest.max(time);
        if time >= LATE {
            self.late += time;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_turns_add_up_and_ordinary_ones_do_not() {
        let mut lag = Lag::default();
        for millis in [9, 40, 1, 40, 9, 25, 9, 0] {
            lag.add(Duration::from_millis(millis));
        }
        assert_eq!(lag, Lag { longest: Duration::from_millis(40), late: Duration::from_millis(105) });
    }
}
