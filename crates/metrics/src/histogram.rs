//! The histograms that figures are kept in.

use hdrhistogram::Histogram;
use std::sync::LazyLock;

/// What an unfilled histogram is read as.
static EMPTY: LazyLock<Histogram<u64>> = LazyLock::new(empty_histogram);

/// An empty histogram of three significant digits that grows as needed.
pub(crate) fn empty_histogram() -> Histogram<u64> {
    Histogram::new(3).expect("three significant digits are within 0 to 5")
}

/// A histogram that is allocated with its first value: most figures of most stages never have one, and an empty histogram of three
/// digits is 16 KiB.
#[derive(Clone, Debug, Default)]
pub(crate) struct FilledHistogram(Option<Box<Histogram<u64>>>);

impl FilledHistogram {
    /// The values so far.
    pub(crate) fn get(&self) -> &Histogram<u64> {
        self.0.as_deref().unwrap_or(&EMPTY)
    }

    /// Counts one value.
    #[inline]
    pub(crate) fn record(&mut self, value: u64) {
        let histogram = self.filled();
        // Grows to any u64; the fallback is for a value that the crate cannot place.
        if histogram.record(value).is_err() {
            histogram.saturating_record(value);
        }
    }

    /// Adds another's counts. Both resize themselves, so that this cannot fail.
    pub(crate) fn add(&mut self, other: &Self) {
        if !other.get().is_empty() {
            self.filled()
                .add(other.get())
                .expect("auto-resizing histograms of the same precision always add");
        }
    }

    #[inline]
    fn filled(&mut self) -> &mut Histogram<u64> {
        self.0.get_or_insert_with(|| Box::new(empty_histogram()))
    }
}

impl From<Histogram<u64>> for FilledHistogram {
    fn from(histogram: Histogram<u64>) -> Self {
        Self((!histogram.is_empty()).then(|| Box::new(histogram)))
    }
}
