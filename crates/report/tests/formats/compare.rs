//! What a comparison of runs and their history say, in each format, and what is refused.

use crate::fixture;
use std::collections::BTreeMap;
use weir_answers::compare::{ComparedRun, Comparison, ComparisonError, Options, Side};
use weir_answers::history::History;
use weir_engine::record::RunHead;
use weir_engine::scenario::{OneOrMany, Scenario, WorkloadSpec};
use weir_engine::summary::{self, VerdictState};
use weir_report::{COMPARISON_FORMATS, Report, Text};

/// A run of which the target needed `factor` of its CPU, and no two are the same.
fn run(side: &str, number: u32, factor: f64) -> ComparedRun {
    let mut summary = fixture::steps();
    let jitter = |of: u32| 1.0 + f64::from(number * 7 % of) * 0.002;
    summary.run.started_at_seconds += f64::from(number) * 3_600.0;
    summary.run.tags = BTreeMap::from([("branch".to_owned(), "main".to_owned())]);
    let stages = &mut summary.workloads[0].stages;
    stages.truncate(1);
    for target in &mut stages[0].targets {
        target.cpu_percent *= factor * jitter(5);
    }
    stages[0].actual_bps *= jitter(3);
    for figure in stages[0].figures.0.values_mut() {
        if let summary::Value::Spread(spread) = &mut figure.value {
            spread.p50 *= jitter(4);
            spread.p99 *= 1.0 + f64::from(number * 5 % 7) * 0.1;
        }
    }
    let workload = WorkloadSpec {
        play: OneOrMany(vec!["rtmp://127.0.0.1:1935/live/stream".to_owned()]),
        clients: Some(500),
        ..WorkloadSpec::default()
    };
    let scenario = Scenario { workloads: vec![workload], ..Scenario::default() };
    let head =
        RunHead { run: summary.run.clone(), origin_ns: 0, scenario, workloads: Vec::new(), segment: None };
    let name = format!("{side}/{number:03}");
    ComparedRun { name, repetition: None, head, summary }
}

fn side(name: &str, runs: u32, factor: f64) -> Side {
    let runs = (0..runs).map(|number| run(name, number, factor)).collect();
    Side { name: name.to_owned(), series: None, runs, left_out: Vec::new() }
}

fn options() -> Options {
    Options {
        margin: 0.02,
        anyway: false,
        figures: Vec::new(),
        limits: vec!["cpu > +10%".parse().unwrap(), "startup.p50 > +5ms".parse().unwrap()],
    }
}

fn comparison(runs: u32) -> Comparison {
    Comparison::new(&[side("yesterday", runs, 1.0), side("today", runs, 1.2)], &options()).unwrap()
}

fn written(comparison: &Comparison, format: &str, text: &Text) -> String {
    let mut bytes = Vec::new();
    comparison.write(format, text, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_comparison_as_text_on_terminals_of_any_width_and_for_a_pull_request() {
    for width in [80, 40] {
        let text = written(&comparison(6), "text", &Text { width, ..Text::default() });
        assert!(text.lines().all(|line| line.chars().count() <= usize::from(width)), "{text}");
        insta::assert_snapshot!(format!("compare_{width}"), text);
    }
    insta::assert_snapshot!("compare_markdown", written(&comparison(6), "markdown", &Text::default()));
}

#[test]
fn few_runs_are_shown_with_what_they_cannot_show() {
    let text = written(&comparison(3), "text", &Text::default());
    assert!(text.contains("too few runs to tell") && !text.contains("95%"), "{text}");
    let four = written(&comparison(4), "text", &Text::default());
    assert!(four.contains("worse") && four.contains("6 runs a side") && !four.contains("95%  "), "{four}");
}

#[test]
fn the_page_has_the_seconds_of_both_sides_over_each_other() {
    let page = written(&comparison(4), "html", &Text::default());
    assert!(page.matches("<svg").count() >= 4 && page.contains("the base is dashed"), "{page}");
    assert!(page.contains("class=\"range\""), "from the lowest run to the highest");
    // Intervals take six runs.
    let changes = "id=\"plot-change-of-";
    assert!(!page.contains(changes));
    let page = written(&comparison(6), "html", &Text::default());
    assert!(page.find(changes).unwrap() < page.find("id=\"plot-playing").unwrap(), "the answer comes first");
    assert!(page.contains("<g class=\"worse\">"), "{page}");
}

#[test]
fn sides_of_one_name_are_two_sides() {
    let comparison = Comparison::new(&[side("today", 4, 1.0), side("today", 4, 1.2)], &options()).unwrap();
    let of = |variant: &str| comparison.table.runs.iter().filter(|run| run.variant == variant).count();
    assert_eq!((of("today"), of("today (2)")), (4, 4));
    assert_eq!((&*comparison.comparisons[0].base, &*comparison.comparisons[0].other), ("today", "today (2)"));
    let text = written(&comparison, "text", &Text::default());
    assert!(text.contains("B against A"), "{text}");
}

#[test]
fn the_order_of_the_runs_changes_nothing() {
    let (mut base, other) = (side("yesterday", 6, 1.0), side("today", 6, 1.2));
    let there = Comparison::new(&[base.clone(), other.clone()], &options()).unwrap();
    base.runs.rotate_left(2);
    let turned = Comparison::new(&[base, other], &options()).unwrap();
    assert_eq!(there.comparisons, turned.comparisons);
    assert_eq!(there.variants[0].figures, turned.variants[0].figures);
}

#[test]
fn what_is_not_alike_is_refused_with_every_key() {
    let base = side("yesterday", 4, 1.0);
    let refused = |change: fn(&mut ComparedRun)| {
        let mut other = side("today", 4, 1.0);
        change(&mut other.runs[2]);
        match Comparison::new(&[base.clone(), other.clone()], &options()) {
            Err(ComparisonError::Unlike(unlike)) => {
                let anyway = Options { anyway: true, ..options() };
                let anyway = Comparison::new(&[base.clone(), other], &anyway).unwrap();
                assert_eq!(anyway.unlike, unlike);
                assert!(written(&anyway, "text", &Text::default()).contains("not alike"));
                unlike.into_iter().map(|it| it.key).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(|run| run.head.scenario.workloads[0].clients = Some(501)), ["workloads[0].clients"]);
    assert_eq!(refused(|run| run.head.scenario.shards = Some(2)), ["shards"]);
    assert_eq!(refused(|run| run.head.run.weir_version = "9".to_owned()), ["weir_version"]);
    assert_eq!(
        refused(|run| run.head.run.environment.hostname = "other".to_owned()),
        ["environment.hostname"]
    );
    assert_eq!(refused(|run| run.summary.verdict.state = VerdictState::Invalid), ["verdict"]);
    assert_eq!(
        refused(|run| run.head.scenario.workloads[0].play.0[0] = "rtmps://127.0.0.1/live/stream".to_owned()),
        ["workloads[0].play[0]"]
    );
}

#[test]
fn interfaces_of_containers_come_and_go_without_making_runs_unlike() {
    let side = |name: &str, interfaces: &[(&str, u64)]| {
        let mut side = side(name, 4, 1.0);
        for run in &mut side.runs {
            let speeds = interfaces.iter().map(|(name, bits_per_second)| weir_observe::InterfaceSpeed {
                name: (*name).to_owned(),
                bits_per_second: *bits_per_second,
            });
            run.head.run.environment.interfaces = speeds.collect();
        }
        side
    };
    let base = side("yesterday", &[("eth0", 1_000_000_000), ("veth5c1f", 10_000_000_000)]);
    let renamed = side("today", &[("eth0", 1_000_000_000), ("veth77ab", 10_000_000_000), ("veth77ac", 1)]);
    assert!(Comparison::new(&[base.clone(), renamed], &options()).is_ok());
    let slower = side("today", &[("eth0", 100_000_000)]);
    let refused = Comparison::new(&[base, slower], &options()).unwrap_err().to_string();
    assert!(refused.contains("environment.interfaces.eth0: 1000000000, in today"), "{refused}");
}

#[test]
fn one_sentence_says_first_what_a_comparison_comes_to() {
    let sentence = |runs, factor| {
        let sides = [side("yesterday", runs, 1.0), side("today", runs, factor)];
        let text = written(&Comparison::new(&sides, &options()).unwrap(), "markdown", &Text::default());
        text.lines().find(|line| line.contains("Answer")).unwrap().to_owned()
    };
    assert!(sentence(6, 1.2).contains("B is worse: CPU of nginx +20.0% (20% → 24%)"), "{}", sentence(6, 1.2));
    assert!(sentence(6, 0.8).contains("B is better: CPU of nginx −20.0%"), "{}", sentence(6, 0.8));
    assert!(sentence(6, 1.0).contains("no difference between A and B is shown; 2 figures undecided"));
    assert!(
        sentence(3, 1.2).contains("cannot say whether B differs from A: give 4 runs a side"),
        "{}",
        sentence(3, 1.2)
    );
}

#[test]
fn another_bit_rate_of_the_source_is_refused_unless_the_run_publishes_it_itself() {
    let changed = |publishes: bool| {
        let (mut base, mut other) = (side("yesterday", 4, 1.0), side("today", 4, 1.0));
        for run in &mut other.runs {
            let stage = &mut run.summary.workloads[0].stages[0];
            stage.expected_bps = stage.expected_bps.map(|bps| bps * 1.2);
        }
        for run in base.runs.iter_mut().chain(&mut other.runs).filter(|_| publishes) {
            let publish = OneOrMany(vec!["rtmp://127.0.0.1:1935/live/stream".to_owned()]);
            run.head.scenario.workloads.push(WorkloadSpec { publish, ..WorkloadSpec::default() });
        }
        Comparison::new(&[base, other], &options()).map_err(|error| error.to_string())
    };
    assert!(changed(false).unwrap_err().contains("workloads[0].stages[0].source: 485 kbps, in today"));
    assert!(changed(true).is_ok());
}

#[test]
fn another_server_is_what_is_compared() {
    let mut other = side("today", 4, 1.0);
    for run in &mut other.runs {
        run.head.scenario.workloads[0].play.0[0] = "rtmp://192.0.2.9/app/stream".to_owned();
        run.head.scenario.tags.insert("branch".to_owned(), "new".to_owned());
        run.head.scenario.seed = 7;
    }
    let comparison = Comparison::new(&[side("yesterday", 4, 1.0), other], &options()).unwrap();
    let [subject] = &comparison.subject[..] else { panic!("{:?}", comparison.subject) };
    assert_eq!((&subject.key[..], &subject.other[..]), ("workloads[0].play", "rtmp://192.0.2.9/app/stream"));
}

#[test]
fn what_is_asked_for_and_is_not_there_is_named() {
    let sides = [side("yesterday", 2, 1.0), side("today", 2, 1.0)];
    let said = |options: Options| Comparison::new(&sides, &options).unwrap_err().to_string();
    let figures = vec!["startup.p98".to_owned()];
    assert!(said(Options { figures, ..options() }).contains("did you mean 'startup.p9"));
    let limits = vec!["startup.p99 > +1mbps".parse().unwrap()];
    assert!(said(Options { limits, ..options() }).contains("is in another unit"));
    let one = Comparison::new(&sides[..1], &options()).unwrap_err().to_string();
    assert!(one.contains("there is one side only, yesterday"), "{one}");
}

fn history(runs: u32) -> History {
    let runs = (0..runs).map(|number| {
        let mut run = run("runs", number, if number < runs / 2 { 1.0 } else { 1.3 });
        if number >= runs / 2 {
            run.head.run.environment.kernel = "Linux 7.1".to_owned();
        }
        run
    });
    let tags = BTreeMap::from([("branch".to_owned(), "main".to_owned())]);
    History::new("nginx-rtmp-steps", &tags, runs.collect(), &[]).unwrap()
}

#[test]
fn a_history_says_since_when_and_what_was_new_then() {
    let mut bytes = Vec::new();
    history(16).write("text", &Text::default(), &mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!("history_80", text);
    // Runs come an hour after each other: sixteen end on the next day, twelve on the same.
    let page = |runs: u32| {
        let mut page = Vec::new();
        history(runs).write("html", &Text::default(), &mut page).unwrap();
        String::from_utf8(page).unwrap()
    };
    let (two_days, one_day) = (page(16), page(12));
    assert!(two_days.matches("<svg").count() >= 5);
    assert!(two_days.contains(">2026-11-21</text>") && two_days.contains(">2026-11-22</text>"), "{two_days}");
    assert!(one_day.contains(">11:46:02</text>") && one_day.contains(">22:46:02</text>"), "{one_day}");
    let mut few = Vec::new();
    history(5).write("text", &Text::default(), &mut few).unwrap();
    assert!(String::from_utf8(few).unwrap().contains("too few runs to tell"));
    assert!(History::new("n", &BTreeMap::new(), Vec::new(), &[]).is_err());
}

#[test]
fn every_format_has_both_and_json_follows_the_published_schemas() {
    for format in COMPARISON_FORMATS {
        assert!(written(&comparison(6), format, &Text::default()).len() > 500, "{format}");
    }
    assert!(comparison(2).write("csv", &Text::default(), &mut Vec::new()).is_err());
    fixture::schema::follows("compare", written(&comparison(6), "json", &Text::default()).as_bytes());
    let mut json = Vec::new();
    history(12).write("json", &Text::default(), &mut json).unwrap();
    fixture::schema::follows("history", &json);
}
