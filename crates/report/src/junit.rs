//! For a build server: outcome, verdict and thresholds as test cases.

use crate::capacity::lines::capacity_line;
use crate::measured::measured;
use crate::quantity::{TIE, moment};
use crate::quote::{LINE, quote};
use crate::stages::state_word;
use crate::sweep::lines::sweep_line;
use askama::Template;
use std::io;
use weir_answers::capacity::{CapacitySummary, Evidence};
use weir_answers::series::{Ending, SeriesSummary};
use weir_answers::sweep::SweepSummary;
use weir_answers::table::Finding;
use weir_engine::summary::{Outcome, RunFacts, Summary, VerdictState};

/// A run as JUnit's XML.
pub(crate) fn write(summary: &Summary, out: &mut dyn io::Write) -> io::Result<()> {
    Suite::of(summary).write_into(out)?;
    out.write_all(b"\n")
}

#[derive(Template)]
#[template(path = "junit.xml")]
struct Suite {
    name: String,
    time: String,
    timestamp: String,
    hostname: String,
    properties: Vec<(String, String)>,
    cases: Vec<Case>,
    failures: usize,
    errors: usize,
}

#[derive(Debug)]
struct Case {
    class: &'static str,
    name: String,
    result: CaseResult,
    message: String,
    /// Lines for people.
    text: String,
}

/// A threshold fails; what keeps the run from being judged is broken.
#[derive(Debug)]
enum CaseResult {
    Passed,
    Failed(&'static str),
    Broken(&'static str),
}

impl Case {
    /// Whether it passed with something to say.
    fn is_remarked(&self) -> bool {
        matches!(self.result, CaseResult::Passed) && !self.text.is_empty()
    }
}

impl Suite {
    fn of(summary: &Summary) -> Self {
        let run = &summary.run;
        let mut cases = vec![outcome(&summary.outcome), verdict(summary)];
        cases.extend(summary.thresholds.iter().map(|threshold| Case {
            class: "weir.threshold",
            name: quote(&threshold.expression, LINE),
            result: if threshold.passed { CaseResult::Passed } else { CaseResult::Failed("threshold") },
            message: format!(
                "measured {}{}",
                measured(summary, threshold).replace(TIE, " "),
                if threshold.default { "; asked by default" } else { "" }
            ),
            text: String::new(),
        }));
        let mut suite = Self::new(run, &summary.layout, cases);
        let tags = run.tags.iter();
        suite
            .properties
            .extend(tags.map(|(key, value)| (format!("tag.{}", quote(key, 60)), quote(value, LINE))));
        suite
    }

    fn new(run: &RunFacts, layout: &str, cases: Vec<Case>) -> Self {
        let count = |test: fn(&CaseResult) -> bool| cases.iter().filter(|case| test(&case.result)).count();
        Self {
            name: quote(&run.name, LINE),
            time: format!("{:.3}", run.duration_seconds),
            timestamp: moment(run.started_at_seconds, 'T'),
            hostname: quote(&run.environment.hostname, 80),
            failures: count(|result| matches!(result, CaseResult::Failed(_))),
            errors: count(|result| matches!(result, CaseResult::Broken(_))),
            properties: vec![
                ("run".to_owned(), quote(&run.id, LINE)),
                ("weir_version".to_owned(), quote(&run.weir_version, LINE)),
                ("seed".to_owned(), run.seed.to_string()),
                ("layout".to_owned(), quote(layout, LINE)),
            ],
            cases,
        }
    }
}

/// A series: its ending, its verdict, and each threshold of each variant as test cases.
pub(crate) fn write_series(summary: &SeriesSummary, out: &mut dyn io::Write) -> io::Result<()> {
    let mut cases = vec![ending(&summary.ending)];
    cases.extend(
        summary.table.runs.iter().map(|run| Case {
            name: format!("run {}", quote(&run.directory, LINE)),
            ..outcome(&run.outcome)
        }),
    );
    let result = match summary.verdict {
        VerdictState::Invalid => CaseResult::Broken("invalid"),
        VerdictState::NothingMeasured => CaseResult::Broken("nothing_measured"),
        VerdictState::Valid | VerdictState::Degraded => CaseResult::Passed,
    };
    let name = "the load generator was not the bottleneck".to_owned();
    let text = summary.warnings.iter().map(|it| quote(it, 1_000)).collect::<Vec<_>>().join("\n");
    cases.push(Case {
        class: "weir.verdict",
        name,
        result,
        message: state_word(summary.verdict).to_owned(),
        text,
    });
    cases.extend(thresholds(summary));
    write_suite(&summary.run, &summary.layout, cases, out)
}

/// Each threshold of each variant.
fn thresholds(summary: &SeriesSummary) -> impl Iterator<Item = Case> {
    let each =
        summary.variants.iter().flat_map(|variant| variant.thresholds.iter().map(move |it| (variant, it)));
    each.map(|(variant, it)| Case {
        class: "weir.threshold",
        name: format!("{}: {}", quote(&variant.name, LINE), quote(&it.expression, LINE)),
        result: if it.passed == it.runs { CaseResult::Passed } else { CaseResult::Failed("threshold") },
        message: format!("held in {} of {} runs", it.passed, it.runs),
        text: String::new(),
    })
}

/// A search: its ending, and whether anything was learnt.
pub(crate) fn write_capacity(summary: &CapacitySummary, out: &mut dyn io::Write) -> io::Result<()> {
    let result = match summary.answer.evidence {
        Evidence::Void => CaseResult::Broken("void"),
        _ => CaseResult::Passed,
    };
    let answer = Case {
        class: "weir.capacity",
        name: "there is a result about the target".to_owned(),
        result,
        message: capacity_line(summary).replace(TIE, " "),
        text: String::new(),
    };
    write_suite(&summary.run, &summary.layout, vec![ending(&summary.ending), answer], out)
}

/// A sweep: its ending, whether a best variant was found and anything was learnt of each, and the thresholds of its runs.
pub(crate) fn write_sweep(summary: &SweepSummary, out: &mut dyn io::Write) -> io::Result<()> {
    let variants = summary.series.variants.iter().map(|variant| Case {
        class: "weir.sweep",
        name: format!("there is a result for {}", quote(&variant.name, LINE)),
        result: if variant.counted > 0 { CaseResult::Passed } else { CaseResult::Broken("void") },
        message: format!("{} of {} in the figures", variant.counted, variant.runs),
        text: String::new(),
    });
    let answer = Case {
        class: "weir.sweep",
        name: "a best variant is found".to_owned(),
        result: match summary.standing(Finding::Best).next() {
            Some(_) => CaseResult::Passed,
            None => CaseResult::Broken("no_best"),
        },
        message: sweep_line(summary).replace(TIE, " "),
        text: String::new(),
    };
    let thresholds = thresholds(&summary.series);
    let cases =
        [ending(&summary.series.ending), answer].into_iter().chain(variants).chain(thresholds).collect();
    write_suite(&summary.series.run, &summary.series.layout, cases, out)
}

fn ending(ending: &Ending) -> Case {
    let (result, message) = match ending {
        Ending::Completed => (CaseResult::Passed, "completed".to_owned()),
        Ending::Running | Ending::Interrupted => {
            (CaseResult::Broken("interrupted"), "interrupted before its end".to_owned())
        }
        Ending::Failed(failure) => (CaseResult::Failed("failed"), quote(&failure.words, LINE)),
    };
    Case { class: "weir.run", name: "runs to its end".to_owned(), result, message, text: String::new() }
}

fn write_suite(run: &RunFacts, layout: &str, cases: Vec<Case>, out: &mut dyn io::Write) -> io::Result<()> {
    Suite::new(run, layout, cases).write_into(out)?;
    out.write_all(b"\n")
}

fn outcome(outcome: &Outcome) -> Case {
    let (result, message) = match outcome {
        Outcome::Completed => (CaseResult::Passed, "completed".to_owned()),
        Outcome::Interrupted => {
            (CaseResult::Broken("interrupted"), "interrupted before the plan's end".to_owned())
        }
        Outcome::TargetDied => {
            (CaseResult::Failed("target_died"), "all processes of the watched target were gone".to_owned())
        }
        Outcome::NobodyLeft => (CaseResult::Failed("nobody_left"), "every client had failed".to_owned()),
        Outcome::Running => (CaseResult::Broken("running"), "the run still goes on".to_owned()),
        Outcome::AgentLost => (CaseResult::Broken("agent_lost"), "an agent was lost".to_owned()),
        Outcome::Aborted(by) => {
            (CaseResult::Failed("aborted"), format!("aborted by the threshold {}", quote(by, LINE)))
        }
    };
    Case {
        class: "weir.run",
        name: "runs to the plan's end".to_owned(),
        result,
        message,
        text: String::new(),
    }
}

fn verdict(summary: &Summary) -> Case {
    let state = summary.verdict.state;
    let reason = |reason: &weir_engine::summary::Reason| {
        format!(
            "{}: {} Remedy: {}",
            state_word(reason.state),
            quote(&reason.text, 500),
            quote(&reason.remedy, 500)
        )
    };
    let waived = summary.verdict.waived.iter().map(|it| format!("waived: {}", reason(it)));
    let failed: Vec<_> =
        summary.thresholds.iter().filter(|it| !it.passed).map(|it| quote(&it.expression, LINE)).collect();
    // Whether the run counts and whether the target passed are two questions.
    let failed = match state {
        VerdictState::Invalid if !failed.is_empty() => {
            format!("; thresholds that failed: {}", failed.join(", "))
        }
        _ => String::new(),
    };
    Case {
        class: "weir.verdict",
        name: "the load generator was not the bottleneck".to_owned(),
        result: match state {
            VerdictState::Invalid => CaseResult::Broken("invalid"),
            VerdictState::NothingMeasured => CaseResult::Broken("nothing_measured"),
            VerdictState::Valid | VerdictState::Degraded => CaseResult::Passed,
        },
        message: format!("{}{failed}", state_word(state)),
        text: summary.verdict.reasons.iter().map(reason).chain(waived).collect::<Vec<_>>().join("\n"),
    }
}
