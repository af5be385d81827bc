//! The histograms that figures are kept in.

use hdrhistogram::Histogram;

/// An empty histogram of three significant digits that grows as needed.
pub(crate) fn empty_histogram() -> Histogram<u64> {
    Histogram::new(3).expect("three significant digits are within 0 to 5")
}
