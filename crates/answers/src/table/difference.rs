//! A judgement: how two kinds of rows differ, column by column.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_metrics::{Better, Estimate};

/// A variant against another, or a side of a comparison against the base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantComparison {
    /// The one that it is compared with.
    pub base: String,
    /// The other.
    pub other: String,
    /// Pairs of runs that were made next to each other, if runs were compared in pairs.
    pub pairs: Option<u64>,
    /// One entry each of the figures that both have.
    pub differences: Vec<Difference>,
}

/// How a figure differs between two groups of runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The figure's name.
    pub figure: String,
    /// Runs of the group that has fewer, or pairs.
    pub runs: u64,
    /// The mean of the base's runs, from which the difference is counted: geometric where there is a ratio.
    pub base: f64,
    /// The same mean of the other's runs.
    pub other: f64,
    /// The other's mean less the base's, or that of the differences of all pairs. None with fewer than two runs a group.
    pub difference: Option<Estimate>,
    /// The ratio of the geometric means; none if a value is not above 0.
    pub ratio: Option<Estimate>,
    /// The probability of such a difference between runs that are the same in truth, corrected for the number of figures. None
    /// where the judgement rests on the interval alone, where all values are equal, or with fewer than four runs a group. In a history it is
    /// a share of random orders, not corrected.
    pub p: Option<f64>,
    /// What is found.
    pub finding: Finding,
}

/// What is found of a figure, or of a variant among others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// No other variant is better.
    Best,
    /// It changed, and for the better.
    Better,
    /// It changed, and for the worse; or it is worse than the best variant.
    Worse,
    /// It changed, and is neither better nor worse for that.
    Different,
    /// All values are equal, or the interval of the change lies within the margin and there are six runs a side.
    Same,
    /// Neither a difference nor its absence is certain.
    Undecided,
    /// It fails a threshold in most of its counted runs: it is neither the best nor a rival of it.
    Fails,
    /// Too little is known to say: fewer than four runs a group, or bounds that were not confirmed.
    Unknown,
}

impl Finding {
    /// What a change comes to, of a figure that is better one way, or neither.
    pub(crate) fn of_change(better: Option<Better>, rises: bool) -> Self {
        match better {
            None => Self::Different,
            Some(better) if (better == Better::Higher) == rises => Self::Better,
            Some(_) => Self::Worse,
        }
    }

    /// Whether it is that there is a difference.
    pub fn is_different(self) -> bool {
        matches!(self, Self::Better | Self::Worse | Self::Different)
    }
}
