//! `docs/method` defines every figure, failure and check that the code has.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;
use weir_metrics::{Failure, Figure};

const CLIENTS: &str = include_str!("../../../docs/method/clients.md");
const VERDICT: &str = include_str!("../../../docs/method/verdict.md");

/// All pages, one after the other.
static METHOD: LazyLock<String> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/method");
    let files = folder.read_dir().expect("docs/method").map(|entry| entry.expect("an entry").path());
    let pages = files.filter(|path| path.extension().is_some_and(|it| it == "md"));
    pages.map(|path| std::fs::read_to_string(path).expect("a page")).collect()
});

/// What stands below a heading, up to the next of its level.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let rest = page.split(&format!("\n## {heading}\n")).nth(1);
    rest.unwrap_or_else(|| panic!("no section {heading}")).split("\n## ").next().unwrap_or_default()
}

/// A name stands on the page as code.
fn is_defined(name: &str) -> bool {
    METHOD.contains(&format!("`{name}`"))
}

/// The texts between `before` and the next quotation mark.
fn quoted_after<'a>(source: &'a str, before: &'a str) -> BTreeSet<&'a str> {
    let found: BTreeSet<&str> =
        source.split(before).skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(!found.is_empty(), "{before:?} is not in the source any more; this test looks for it");
    found
}

fn assert_all_defined<'a>(what: &str, names: impl IntoIterator<Item = &'a str>) {
    let missing: Vec<_> = names.into_iter().filter(|name| !is_defined(name)).collect();
    assert!(missing.is_empty(), "{what} that docs/method does not define: {missing:?}");
}

fn names(figures: impl Iterator<Item = &'static Figure>) -> Vec<&'static str> {
    figures.map(|figure| figure.name).collect()
}

#[test]
fn every_common_figure_is_defined() {
    assert_all_defined("figures", names(weir_metrics::common::FIGURES.iter()));
}

#[test]
fn every_figure_of_each_protocol_is_defined() {
    for protocol in weir_protocols::schemes() {
        let schema = weir_protocols::schema_of(protocol).expect("a protocol that weir speaks");
        assert_all_defined(protocol, names(schema.figures()));
    }
}

#[test]
fn every_figure_of_a_workload_that_saves_is_defined() {
    assert_all_defined("figures", names(weir_engine::ingest::SCHEMA.figures()));
}

#[test]
fn every_failure_is_defined_with_its_side() {
    for failure in Failure::ALL {
        let side = format!("{:?}", failure.side()).to_lowercase();
        let row = format!("| `{}` | {side} |", failure.key());
        assert!(METHOD.contains(&row), "docs/method has no row '{row}'");
    }
}

#[test]
fn no_failure_is_defined_that_the_code_does_not_have() {
    let rows = section(CLIENTS, "Failures").lines().filter_map(|row| row.strip_prefix("| `"));
    let defined: Vec<_> = rows.filter_map(|row| row.split('`').next()).collect();
    let known: Vec<_> = Failure::ALL.iter().map(|failure| failure.key()).collect();
    assert_eq!(defined, known);
}

#[test]
fn every_check_of_the_verdict_is_defined() {
    assert_all_defined("checks", weir_engine::checks::CHECKS.iter().copied());
}

/// The names of statistics are private to the engine: they are read off its source.
#[test]
fn every_statistic_and_ratio_of_a_threshold_is_defined() {
    let source = include_str!("../src/threshold.rs");
    let start = source.find("const STATISTICS").expect("the table of statistics");
    let table = &source[start..start + source[start..].find("];").expect("a table ends")];
    let statistics = quoted_after(table, "(\"");
    assert_all_defined("statistics", statistics.into_iter().filter(|name| *name != "ratio"));
    for ratio in weir_engine::threshold::FigureRatio::ALL {
        assert_all_defined("ratios", [format!("{}.ratio", ratio.name()).as_str()]);
    }
}

#[test]
fn the_examples_of_thresholds_are_thresholds() {
    let schemas = [weir_protocols::schema_of("rtmp").expect("weir speaks RTMP")];
    let block = section(VERDICT, "Thresholds").split("```").nth(3).expect("the block of examples");
    let examples: Vec<&str> =
        block.split("  ").map(str::trim).flat_map(str::lines).filter(|text| !text.is_empty()).collect();
    assert!(examples.len() >= 8, "{examples:?}");
    for text in examples {
        let threshold: weir_engine::threshold::Threshold = text.parse().unwrap();
        threshold.check(&schemas).unwrap();
    }
}
