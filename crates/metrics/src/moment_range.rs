//! When something happened first and last, to measure what lies between the two.

use crate::Moment;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The first moment of something and the last, of all threads that note it.
#[derive(Debug)]
pub struct MomentRange {
    first: AtomicU64,
    last: AtomicU64,
    events: AtomicU64,
}

impl Default for MomentRange {
    fn default() -> Self {
        Self { first: AtomicU64::new(u64::MAX), last: AtomicU64::new(0), events: AtomicU64::new(0) }
    }
}

impl MomentRange {
    /// It happened now.
    #[inline]
    pub fn note(&self, now: Moment) {
        let nanos = now.as_nanos();
        self.events.fetch_add(1, Relaxed);
        if nanos < self.first.load(Relaxed) {
            self.first.fetch_min(nanos, Relaxed);
        }
        if nanos > self.last.load(Relaxed) {
            self.last.fetch_max(nanos, Relaxed);
        }
    }

    /// How often it was noted.
    pub fn events(&self) -> u64 {
        self.events.load(Relaxed)
    }

    /// When it happened first, and when last; `None` if it never did.
    pub fn get(&self) -> Option<(Moment, Moment)> {
        let (first, last) = (self.first.load(Relaxed), self.last.load(Relaxed));
        (first <= last).then(|| (Moment::from_nanos(first), Moment::from_nanos(last)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_from_the_first_to_the_last_in_any_order() {
        let stretch = MomentRange::default();
        assert_eq!(stretch.get(), None);
        for nanos in [7, 3, 9, 5] {
            stretch.note(Moment::from_nanos(nanos));
        }
        assert_eq!(stretch.get(), Some((Moment::from_nanos(3), Moment::from_nanos(9))));
        assert_eq!(stretch.events(), 4);
    }
}
