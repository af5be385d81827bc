//! How the variants of a sweep stand to each other: which is best, and whether the numbers carry that.

use super::ranked::Ranked;
use crate::table::{
    Contrast, FEWEST_FOR_DIFFERENCE, Finding, RankedValue, TableRun, Values, VariantSummary, pairs,
};

/// The position of the best variant of those that fail nothing: of capacities the one whose lower bound is the largest.
pub(super) fn best(variants: &[VariantSummary], ranked: &Ranked) -> Option<usize> {
    let is_capacity = ranked.is_capacity();
    let value = |variant: &VariantSummary| {
        let value = variant.value?;
        if is_capacity { value.low.filter(|low| *low > 0.0) } else { Some(value.mean) }
    };
    let known = variants.iter().enumerate().filter(|(_, variant)| variant.failed().is_empty());
    let known = known.filter_map(|(at, variant)| Some((at, value(variant)?)));
    let better =
        |best: (usize, f64), it: (usize, f64)| if ranked.is_better(it.1, best.1) { it } else { best };
    known.reduce(better).map(|(at, _)| at)
}

/// Whether there is a variant that the best one is better than, or as good as: alone it is best of nothing.
pub(super) fn has_rival(
    best: usize,
    variants: &[VariantSummary],
    standings: &[Finding],
    ranked: &Ranked,
) -> bool {
    if ranked.is_capacity() {
        return variants.iter().enumerate().any(|(at, it)| at != best && it.value.is_some());
    }
    let is_known = |it: &Finding| matches!(it, Finding::Undecided | Finding::Worse | Finding::Fails);
    variants[best].counted >= FEWEST_FOR_DIFFERENCE as u64 && standings.iter().any(is_known)
}

/// Whether another variant may carry more, by all that is known of both, so that the numbers name no best.
pub(super) fn may_be_beaten(
    best: usize,
    variants: &[VariantSummary],
    standings: &[Finding],
    ranked: &Ranked,
) -> bool {
    let Some(of_best) = variants[best].value.filter(|_| ranked.is_capacity()) else {
        return false;
    };
    let is_open = |at: usize, other: RankedValue| {
        let is_below = other.high.is_some_and(|high| other.is_sure || Some(high) <= of_best.low);
        at != best && standings[at] != Finding::Worse && !(of_best.low_is_sure && is_below)
    };
    let others = variants.iter().enumerate().filter(|(_, it)| it.failed().is_empty());
    others.filter_map(|(at, it)| Some((at, it.value?))).any(|(at, value)| is_open(at, value))
}

/// How a variant stands to the best one.
pub(super) fn against(
    best: &VariantSummary,
    other: &VariantSummary,
    ranked: &Ranked,
    runs: &[TableRun],
) -> Finding {
    let (Some(of_best), Some(of_other)) = (best.value, other.value) else { return Finding::Unknown };
    if ranked.is_capacity() {
        let carries_nothing = of_other.is_sure && of_other.low == Some(0.0);
        return match (of_other.high, of_best.low) {
            // The best one carried more than the least that was asked of this one, for however short a time.
            (Some(high), Some(low)) if carries_nothing && high <= low => Finding::Worse,
            // What it did not carry, the best one did.
            (Some(high), Some(low)) if high <= low && of_best.low_is_sure && of_other.high_is_sure => {
                Finding::Worse
            }
            _ if !of_best.is_sure || !of_other.is_sure => Finding::Unknown,
            _ => Finding::Undecided,
        };
    }
    let pairs = pairs(&best.name, &other.name, runs);
    let values = pairs.into_iter().filter_map(|(best, other)| Some((ranked.of(best)?, ranked.of(other)?)));
    let values = Values::Pairs(values.collect());
    if values.fewest() < FEWEST_FOR_DIFFERENCE {
        return Finding::Unknown;
    }
    match Contrast::of(&values).map(|contrast| contrast.difference) {
        // The best has the best mean of all its runs; in those that both have it may be the other way round.
        Some(difference) if difference.excludes(0.0) && ranked.is_better(0.0, difference.mean) => {
            Finding::Worse
        }
        Some(_) => Finding::Undecided,
        None => Finding::Unknown,
    }
}
