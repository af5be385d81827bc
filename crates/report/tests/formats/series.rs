//! What a series' report says, in each format.

use crate::fixture;
use std::collections::BTreeMap;
use weir_answers::series::{Ending, SeriesFacts, SeriesSummary};
use weir_answers::table::{Finding, Table, TableRun};
use weir_engine::scenario::{Order, Variant};
use weir_engine::summary::VerdictState;
use weir_report::{FORMATS, Report, Text, series_line};

/// Repetitions of a run whose second variant needs a tenth less CPU, one of them not to be believed.
fn summary(repetitions: u32) -> SeriesSummary {
    let steps = fixture::steps();
    let mut table = Table::default();
    for repetition in 1..=repetitions {
        for (variant, factor) in [("default", 1.0), ("large", 0.9)] {
            let directory = format!("{:03}-{variant}", table.runs.len() + 1);
            let (mut run, figures) = TableRun::new(variant, repetition, directory, &steps);
            for (name, value) in &mut run.figures {
                // Not two runs are the same.
                *value *= 1.0 + f64::from(repetition % 3) * 0.01;
                if name.contains("cpu.") {
                    *value *= factor;
                }
            }
            table.add(run, figures);
        }
    }
    if let Some(run) = table.runs.get_mut(2) {
        (run.verdict, run.reason) =
            (VerdictState::Invalid, Some("weir's thread was at its limit".to_owned()));
    }
    let variant = |name: &str, size: &str| Variant {
        name: name.to_owned(),
        values: BTreeMap::from([("chunk_size".to_owned(), size.to_owned())]),
        ..Variant::default()
    };
    let facts = SeriesFacts {
        run: steps.run,
        variants: vec![variant("default", "4096"), variant("large", "60000")],
        repeat: repetitions,
        order: Order::Interleaved,
    };
    SeriesSummary::new(&facts, &table, Ending::Completed)
}

fn written(summary: &SeriesSummary, format: &str, text: &Text) -> String {
    let mut bytes = Vec::new();
    summary.write(format, text, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_series_as_text_on_terminals_of_any_width() {
    for width in [100, 40] {
        let text = written(&summary(6), "text", &Text { width, ..Text::default() });
        assert!(text.lines().all(|line| line.chars().count() <= usize::from(width)), "{text}");
        insta::assert_snapshot!(format!("series_{width}"), text);
    }
}

#[test]
fn a_series_of_a_few_runs_tells_nothing_apart() {
    let text = written(&summary(2), "text", &Text::default());
    assert!(!text.contains(" yes") && text.contains("1 of 2 of default in the figures"), "{text}");
    let line = series_line(&summary(2)).unwrap();
    let expected =
        "too few runs to tell large from default (1 of each; four tell a difference: write `repeat: 4`)";
    assert_eq!(line, expected);
}

#[test]
fn the_answer_is_one_line_that_says_which_variant_is_better_by_what() {
    let mut summary = summary(6);
    let line = |summary: &SeriesSummary| series_line(summary).unwrap();
    let found = line(&summary);
    // A figure of each stage is said once, and not a stage at a time.
    let said = "large is better than default: CPU of nginx up to ×0.90 in 5 of 5 stages (5 of ";
    assert!(found.starts_with(said), "{found}");
    // The same the other way round, of one figure and a threshold.
    let worse = &mut summary.comparisons[0].differences;
    worse.retain(|it| it.figure == "1.cpu.nginx");
    worse[0].difference.as_mut().unwrap().mean = 2.0;
    (worse[0].ratio, worse[0].finding) = (None, Finding::Worse);
    summary.variants[1].thresholds[0].passed = 1;
    assert_eq!(
        line(&summary),
        "large is worse than default: stage 1: CPU of nginx +2.0% (1 of 1 figure differs, 1 may by chance); \
         large fails startup.p99 in 5 of 6 runs"
    );
    summary.comparisons[0].differences[0].finding = Finding::Undecided;
    assert!(line(&summary).starts_with("nothing tells large from default (1 figure alike)"));
    summary.comparisons.clear();
    assert_eq!(series_line(&summary), None, "one variant has nothing to be better than");
}

#[test]
fn a_series_that_has_just_begun_says_so_and_not_that_nothing_was_measured() {
    let mut begun = summary(0);
    begun.ending = Ending::Running;
    let text = written(&begun, "text", &Text::default());
    assert!(text.starts_with("weir 0.1.0 · nginx-rtmp-steps · no run yet"), "{text}");
    let mut interrupted = summary(1);
    interrupted.variants[1].counted = 0;
    interrupted.ending = Ending::Interrupted;
    let head = written(&interrupted, "text", &Text::default());
    assert!(head.starts_with("weir 0.1.0 · nginx-rtmp-steps · incomplete, interrupted"), "{head}");
    assert!(!text.contains("nothing measured") && series_line(&begun).is_none(), "{text}");
}

#[test]
fn every_format_has_it_and_json_follows_the_published_schema() {
    let summary = summary(6);
    for format in FORMATS.iter().filter(|format| **format != "clients") {
        assert!(written(&summary, format, &Text::default()).len() > 500, "{format}");
    }
    assert!(summary.write("clients", &Text::default(), &mut Vec::new()).is_err());
    let json = written(&summary, "json", &Text::default());
    fixture::schema::follows("series", json.as_bytes());
    let again: SeriesSummary = serde_json::from_str(&json).unwrap();
    assert_eq!(written(&again, "json", &Text::default()), json, "what is written is read again");
}
