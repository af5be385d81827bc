//! A series: every variant of a scenario, run as often as it says, interleaved. Values only: which runs there are and what
//! they come to; the binary runs them.

mod figures;
mod summary;

pub use figures::SeriesFigure;
pub use summary::{
    Counted, Difference, Ending, FEWEST_PAIRS, LAYOUT, RunFailure, SeriesFacts, SeriesRun, SeriesSummary,
    VariantComparison, VariantSummary, VariantThreshold,
};
