//! Runs and searches that were made up.

use crate::capacity::Evidence;
use crate::table::{SearchedCapacity, TableRun};
use std::collections::BTreeMap;
use weir_engine::summary::{Outcome, ThresholdResult, VerdictState};

pub(super) fn run(variant: &str, repetition: u32) -> TableRun {
    TableRun {
        variant: variant.to_owned(),
        repetition,
        directory: String::new(),
        started_at_seconds: 0.0,
        outcome: Outcome::Completed,
        unanswered: false,
        verdict: VerdictState::Valid,
        reason: None,
        warnings: Vec::new(),
        thresholds: Vec::new(),
        figures: BTreeMap::new(),
        cpu_percent_per_client: None,
        busiest_thread: None,
        classic: None,
        capacity: None,
        unlike_before: Vec::new(),
    }
}

pub(super) fn search(variant: &str, lower: u32, upper: Option<u32>, evidence: Evidence) -> TableRun {
    let is_sure = evidence != Evidence::Undecided;
    let capacity = SearchedCapacity {
        evidence,
        lower: Some(lower),
        upper,
        lower_is_sure: is_sure,
        upper_is_sure: is_sure && upper.is_some(),
        needed_seconds: None,
    };
    TableRun { capacity: Some(capacity), ..run(variant, 1) }
}

pub(super) fn failing(expression: &str, fails: bool) -> ThresholdResult {
    ThresholdResult {
        expression: expression.to_owned(),
        value: Some(1.0),
        passed: !fails,
        default: false,
        place: None,
        words: None,
    }
}
