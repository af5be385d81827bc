//! What the report of a sweep says, in each format.

use crate::fixture;
use std::collections::BTreeMap;
use weir_answers::capacity::Evidence;
use weir_answers::series::{Ending, SeriesFacts};
use weir_answers::sweep::{Ranked, SweepFacts, SweepSummary};
use weir_answers::table::{BusiestThread, SearchedCapacity, Table, TableRun};
use weir_engine::scenario::{LoadKind, Order, Variant};
use weir_engine::summary::{Outcome, Summary, ThresholdResult, VerdictState};
use weir_report::{FORMATS, Report, Text, sweep_line};

fn variants() -> Vec<Variant> {
    let of = |workers: &str, chunk: &str| Variant {
        name: format!("workers-{workers}-chunk-{chunk}"),
        values: BTreeMap::from([
            ("workers".to_owned(), workers.to_owned()),
            ("chunk".to_owned(), chunk.to_owned()),
        ]),
        ..Variant::default()
    };
    vec![of("1", "4096"), of("1", "60000"), of("2", "4096"), of("2", "60000")]
}

fn summary(
    variants: &[Variant],
    ranked: Ranked,
    repeat: u32,
    runs: &[TableRun],
    ending: Ending,
) -> SweepSummary {
    let run = fixture::steps().run;
    let series = SeriesFacts { run, variants: variants.to_vec(), repeat, order: Order::Random };
    let table = Table { runs: runs.to_vec(), ..Table::default() };
    SweepSummary::new(&SweepFacts { series, ranked }, &table, ending)
}

/// Of searches for viewers, of the first `count` variants.
fn of_searches(count: usize, searches: &[TableRun]) -> SweepSummary {
    let ranked = Ranked::by_capacity(LoadKind::Clients, "viewers");
    summary(&variants()[..count], ranked, 1, searches, Ending::Completed)
}

fn search(at: usize, lower: Option<u32>, upper: Option<u32>, evidence: Evidence) -> TableRun {
    let name = variants()[at].name.clone();
    TableRun {
        directory: format!("{:03}-{name}", at + 1),
        variant: name,
        repetition: 1,
        started_at_seconds: 0.0,
        outcome: Outcome::Completed,
        verdict: VerdictState::Valid,
        warnings: Vec::new(),
        thresholds: Vec::new(),
        classic: None,
        unlike_before: Vec::new(),
        reason: (evidence == Evidence::Void)
            .then(|| "generator_thread: weir's thread was at its limit".to_owned()),
        capacity: Some(SearchedCapacity {
            evidence,
            lower,
            upper,
            lower_is_sure: evidence != Evidence::Undecided && lower.is_some(),
            upper_is_sure: evidence != Evidence::Undecided && upper.is_some(),
            needed_seconds: (evidence == Evidence::Undecided).then_some(1_500),
        }),
        cpu_percent_per_client: lower.map(|lower| 99.0 / f64::from(lower)),
        busiest_thread: lower.map(|_| BusiestThread { name: "nginx".to_owned(), cpu_percent: 98.7 }),
        figures: BTreeMap::new(),
        unanswered: false,
    }
}

/// Two settings of which the second, the cheaper one, fails a threshold in all runs, and the first is counted in `counted`.
fn failing(counted: u32) -> SweepSummary {
    let threshold = |expression: &str, passed| ThresholdResult {
        expression: expression.to_owned(),
        value: None,
        passed,
        default: false,
        place: None,
        words: None,
    };
    let mut runs = Vec::new();
    for (repetition, at) in (1..=4).flat_map(|repetition| [(repetition, 0), (repetition, 1)]) {
        let mut run = search(at, None, None, Evidence::Void);
        let is_counted = at == 1 || repetition <= counted;
        (run.capacity, run.repetition) = (None, repetition);
        run.verdict = if is_counted { VerdictState::Valid } else { VerdictState::Invalid };
        run.cpu_percent_per_client = Some(if at == 0 { 0.040 } else { 0.036 });
        run.thresholds = ["played.ratio >= 99%", "startup.p99 < 3s"].map(|it| threshold(it, at == 0)).into();
        runs.push(run);
    }
    summary(&variants()[..2], Ranked::by_cpu_per_client(), 4, &runs, Ending::Completed)
}

#[test]
fn a_run_whose_target_died_is_left_out_for_that_and_not_for_what_made_it_doubtful() {
    let mut summary = fixture::invalid();
    summary.verdict.state = VerdictState::Degraded;
    assert!(!summary.verdict.reasons.is_empty());
    let run = |summary: &Summary| TableRun::new("a", 1, "001-a".to_owned(), summary).0;
    summary.outcome = Outcome::TargetDied;
    let died = run(&summary);
    assert_eq!((died.is_counted(), &*died.why_not_counted()), (false, "the target died"));
    summary.outcome = Outcome::Completed;
    assert!(run(&summary).is_counted());
}

#[test]
fn what_fails_is_said_and_is_no_best() {
    let said = |counted| sweep_line(&failing(counted)).replace('\u{a0}', " ");
    let fails = "workers-1-chunk-60000 fails played.ratio in 4 of 4 runs, and 1 other threshold";
    assert_eq!(said(4), format!("best: workers-1-chunk-4096 (0.040 % CPU a client); {fails}"));
    assert_eq!(
        said(1),
        format!(
            "too few runs to tell (1; four tell a difference): workers-1-chunk-4096 (0.040 % CPU a client); {fails}"
        )
    );
}

#[test]
fn one_of_a_kind_is_in_the_singular() {
    let ranked = Ranked::by_capacity(LoadKind::Arrivals, "viewers a second");
    let runs = [search(0, Some(1), None, Evidence::AtLeast), search(1, None, Some(1), Evidence::AtMost)];
    let line = sweep_line(&summary(&variants()[..2], ranked, 1, &runs, Ending::Completed));
    assert!(line.starts_with("best: workers-1-chunk-4096 (at least 1 viewer a second)"), "{line}");
}

#[test]
fn a_search_that_carries_nothing_is_worse_and_one_that_was_interrupted_keeps_what_it_has() {
    let of = |searches: &[TableRun]| sweep_line(&of_searches(2, searches));
    let (carried, nothing) =
        (search(0, Some(10), Some(12), Evidence::Undecided), search(1, None, Some(1), Evidence::AtMost));
    assert_eq!(
        of(&[carried.clone(), nothing.clone()]),
        "best: workers-1-chunk-4096 (10 to 12 viewers); worse: workers-1-chunk-60000 (less than 1)"
    );
    assert_eq!(
        of(&[carried]),
        "cannot tell which is best: give it a larger `budget`, about 25 min; workers-1-chunk-4096 (10 to 12 viewers), workers-1-chunk-60000 (–)"
    );
    assert!(
        of(&[nothing.clone(), TableRun { variant: variants()[0].name.clone(), ..nothing }])
            .starts_with("no variant carries anything: ")
    );
}

/// Four settings of a server; the generator was the limit of one.
fn searches() -> SweepSummary {
    let searches = [
        search(2, Some(3_420), Some(3_590), Evidence::Found),
        search(0, Some(1_700), Some(1_785), Evidence::Found),
        search(3, Some(3_350), Some(3_500), Evidence::Found),
        search(1, None, None, Evidence::Void),
    ];
    of_searches(4, &searches)
}

/// Runs of the same settings, of which those with one worker need more CPU.
fn runs() -> SweepSummary {
    let steps = fixture::steps();
    let mut table = Table::default();
    for repetition in 1..=5 {
        for (at, variant) in variants().into_iter().enumerate() {
            let directory = format!("{:03}-{}", table.runs.len() + 1, variant.name);
            let (mut run, figures) = TableRun::new(&variant.name, repetition, directory, &steps);
            let wobble = 1.0 + f64::from(repetition * (at as u32 + 2) % 5) * 0.01;
            run.cpu_percent_per_client = Some(if at < 2 { 0.058 } else { 0.029 } * wobble);
            table.add(run, figures);
        }
    }
    let series = SeriesFacts { run: steps.run, variants: variants(), repeat: 5, order: Order::Random };
    let facts = SweepFacts { series, ranked: Ranked::by_cpu_per_client() };
    SweepSummary::new(&facts, &table, Ending::Completed)
}

fn written(summary: &SweepSummary, format: &str, text: &Text) -> String {
    let mut bytes = Vec::new();
    summary.write(format, text, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_sweep_as_text_on_terminals_of_any_width() {
    for width in [100, 40] {
        let text = written(&searches(), "text", &Text { width, ..Text::default() });
        assert!(text.lines().all(|line| line.chars().count() <= usize::from(width)), "{text}");
        insta::assert_snapshot!(format!("sweep_{width}"), text);
    }
}

#[test]
fn a_sweep_as_markdown() {
    insta::assert_snapshot!("sweep_markdown", written(&searches(), "markdown", &Text::default()));
}

#[test]
fn runs_are_ranked_and_their_figures_stand_below() {
    let text = written(&runs(), "text", &Text::default());
    let (first, _) = text.split_once("\nSeries").unwrap();
    insta::assert_snapshot!("sweep_of_runs", first);
}

#[test]
fn the_answer_names_the_best_those_alike_and_those_that_are_worse() {
    let expected = "best: workers-2-chunk-4096 (3,420 to 3,590 viewers); not distinguishable from it: \
        workers-2-chunk-60000 (3,350 to 3,500); worse: workers-1-chunk-4096 (1,700 to 1,785); \
        too little is known of: workers-1-chunk-60000 (–)";
    assert_eq!(sweep_line(&searches()), expected);
    // One that may carry more than it was given time to show leaves no best.
    let mut runs = searches().series.table.runs;
    let open = search(3, Some(3_350), Some(6_700), Evidence::Undecided);
    let place = runs.iter().position(|run| run.variant == open.variant).unwrap();
    runs[place] = open;
    assert_eq!(
        sweep_line(&of_searches(4, &runs)),
        "cannot tell which is best: give it a larger `budget`, about 25 min; \
        workers-1-chunk-60000 (–), workers-2-chunk-4096 (3,420 to 3,590 viewers), \
        workers-2-chunk-60000 (3,350 to 6,700 viewers)"
    );
    let made = |ranked, ending| summary(&variants(), ranked, 1, &[], ending);
    let nothing = made(Ranked::by_cpu_per_client(), Ending::Completed);
    assert_eq!(sweep_line(&nothing), "no result for any variant");
    let mut valueless = failing(4);
    valueless.series.variants.iter_mut().for_each(|it| {
        it.thresholds.clear();
        it.value = None;
    });
    assert!(sweep_line(&valueless).starts_with("no run has a value of CPU a client: make them longer"));
    let begun = made(Ranked::by_cpu_per_client(), Ending::Running);
    assert_eq!(sweep_line(&begun), "it is swept; no run has come to its end yet");
    let searching = made(Ranked::by_capacity(LoadKind::Clients, "viewers"), Ending::Running);
    assert_eq!(sweep_line(&searching), "it is swept; no search has come to its end yet");
}

#[test]
fn every_format_has_it_and_json_follows_the_published_schema() {
    for summary in [searches(), runs()] {
        for format in FORMATS.iter().filter(|format| **format != "clients") {
            assert!(written(&summary, format, &Text::default()).len() > 300, "{format}");
        }
        // The intervals, and the plane.
        let page = written(&summary, "html", &Text::default());
        assert_eq!(page.matches("<svg").count(), 2);
        if let Some(folder) = std::env::var_os("WEIR_PAGES") {
            let name = if summary.ranked.is_capacity() { "searches.html" } else { "runs.html" };
            std::fs::write(std::path::Path::new(&folder).join(name), page).unwrap();
        }
        let json = written(&summary, "json", &Text::default());
        fixture::schema::follows("sweep", json.as_bytes());
        let again: SweepSummary = serde_json::from_str(&json).unwrap();
        assert_eq!(written(&again, "json", &Text::default()), json, "what is written is read again");
    }
    assert!(searches().write("clients", &Text::default(), &mut Vec::new()).is_err());
}
