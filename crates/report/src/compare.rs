//! A comparison of runs, as text, Markdown, JSON and a page.

mod answer;
mod pictures;

use crate::document::{Badge, Cell, Column, Document, Fact, Grid, Part, Section, Tone, columns};
use crate::picture::Picture;
use crate::quantity::{NOTHING, in_figure_unit, moment, several, share};
use crate::quote::{LINE, quote};
use crate::report::Findings;
use crate::surroundings;
use weir_answers::compare::{
    Change, Comparison, Contest, FEWEST_FOR_DIFFERENCE, FEWEST_FOR_INTERVAL, Finding, LimitFinding,
    LimitResult, SideSummary, Unlike,
};
use weir_answers::series::SeriesFigure;
use weir_metrics::Estimate;

/// The formats of a comparison.
pub const COMPARISON_FORMATS: [&str; 4] = ["text", "markdown", "json", "html"];

impl Findings for Comparison {
    const NOUN: &'static str = "a comparison";

    fn document(&self) -> Document {
        let mut sections = vec![Section::new("Comparison", vec![Part::Facts(facts(self))])];
        for contest in &self.contests {
            let title = format!("{} against {}", side_name(self, &contest.side), letter(0));
            let parts = vec![Part::Grid(changes(self, contest))];
            sections.push(Section::new(title, parts));
        }
        if !self.limits.is_empty() {
            let limits = self.limits.iter().map(|it| limit(self, it)).collect();
            sections.push(Section::new("Limits", vec![Part::Facts(limits)]));
        }
        let doubts = doubts(self);
        if !doubts.is_empty() {
            sections.push(Section::new("Warnings", vec![Part::Facts(doubts)]));
        }
        sections.push(Section::new("Runs", vec![Part::Grid(runs(self))]).detail());
        sections.extend(surroundings::sections(&self.run).into_iter().map(Section::detail));
        Document {
            title: format!("weir {} · compare", quote(&self.run.weir_version, 40)),
            badges: badges(self),
            sections,
        }
    }

    fn subject(&self) -> String {
        names(self)
    }

    fn pictures(&self) -> Vec<Picture> {
        pictures::pictures(self)
    }

    fn pictures_note(&self) -> &'static str {
        "Over time each line is the mean of the runs of a side, shaded from the lowest run to the highest; the base is dashed."
    }
}

fn names(comparison: &Comparison) -> String {
    comparison.sides.iter().map(|side| side.name.as_str()).collect::<Vec<_>>().join(" · ")
}

/// The letter of a side: names may be as long as paths are.
fn letter(position: usize) -> String {
    char::from_u32('A' as u32 + position as u32)
        .filter(char::is_ascii_uppercase)
        .map_or_else(|| format!("side {}", position + 1), String::from)
}

fn side_name(comparison: &Comparison, name: &str) -> String {
    letter(comparison.sides.iter().position(|side| side.name == name).unwrap_or(0))
}

fn found(comparison: &Comparison, finding: Finding) -> usize {
    let changes = comparison.contests.iter().flat_map(|it| &it.changes);
    changes.filter(|it| it.finding == Some(finding)).count()
}

fn badges(comparison: &Comparison) -> Vec<Badge> {
    let mut badges = Vec::new();
    let regressions = comparison.limits.iter().filter(|it| it.finding == LimitFinding::Regression).count();
    if regressions > 0 {
        badges.push(Badge::new(several(regressions as u64, "regression"), Tone::Bad));
    }
    if comparison.fewest_runs() < FEWEST_FOR_DIFFERENCE {
        badges.push(Badge::new("too few runs to tell", Tone::Doubtful));
    } else {
        use Finding::{Better, Different, Same, Undecided, Worse};
        for finding in [Worse, Better, Different, Same, Undecided] {
            let count = found(comparison, finding);
            if count > 0 {
                badges.push(Badge::new(format!("{count} {}", finding_word(finding)), finding_tone(finding)));
            }
        }
    }
    if !comparison.unlike.is_empty() {
        badges.push(Badge::new("not alike", Tone::Bad));
    }
    badges
}

pub(crate) fn finding_word(finding: Finding) -> &'static str {
    match finding {
        Finding::Better => "better",
        Finding::Worse => "worse",
        Finding::Different => "different",
        Finding::Same => "same",
        Finding::Undecided => "undecided",
    }
}

fn facts(comparison: &Comparison) -> Vec<Fact> {
    let answer = |contest| Fact::new("Answer", answer::answer(comparison, contest));
    let mut facts: Vec<Fact> = comparison.contests.iter().map(answer).collect();
    facts.extend(comparison.sides.iter().enumerate().map(|(position, side)| {
        let words = format!("{}: {}", quote(&side.name, LINE), several(side.runs.len() as u64, "run"));
        Fact::new(letter(position), format!("{words}{}", span_of(side)))
    }));
    let fewest = comparison.fewest_runs();
    let judged = if fewest < FEWEST_FOR_DIFFERENCE {
        let runs = several(fewest as u64, "run");
        let words = format!(
            "nothing: two runs of the same server differ as well, and {runs} a side cannot show by how much. {FEWEST_FOR_DIFFERENCE} runs a side show a difference, {FEWEST_FOR_INTERVAL} an interval"
        );
        Fact::new("Judged", words).tone(Tone::Doubtful)
    } else {
        let more = if fewest < FEWEST_FOR_INTERVAL {
            format!("; {FEWEST_FOR_INTERVAL} runs a side would show an interval")
        } else {
            String::new()
        };
        let comparisons = several(comparison.compared, "comparison");
        let margin = share(comparison.margin);
        Fact::new(
            "Judged",
            format!("at 95 % confidence, corrected for {comparisons}; \"same\" is within ±{margin}{more}"),
        )
    };
    facts.push(judged);
    facts.extend(comparison.subject.iter().map(|it| unlike("differs", it)));
    facts.push(Fact::new("Definitions", "docs/method/answers.md"));
    facts
}

fn span_of(side: &SideSummary) -> String {
    let mut starts: Vec<f64> = side.runs.iter().map(|run| run.started_at_seconds).collect();
    starts.sort_by(f64::total_cmp);
    match starts[..] {
        [] => String::new(),
        [only] => format!(", {} UTC", moment(only, ' ')),
        [first, .., last] => format!(", {} to {} UTC", moment(first, ' '), moment(last, ' ')),
    }
}

fn unlike(label: &str, it: &Unlike) -> Fact {
    let of = |text: &str| quote(text, 200);
    Fact::new(label, format!("{}: {}, in {} {}", of(&it.key), of(&it.base), of(&it.run), of(&it.other)))
}

fn doubts(comparison: &Comparison) -> Vec<Fact> {
    let unlike = comparison.unlike.iter().map(|it| unlike("not alike", it).tone(Tone::Bad));
    unlike.chain(comparison.warnings.iter().map(|it| Fact::warning(it))).collect()
}

fn changes(comparison: &Comparison, contest: &Contest) -> Grid {
    let has_intervals = contest.changes.iter().any(|it| it.runs >= FEWEST_FOR_INTERVAL as u64);
    let mut columns = vec![
        Column::word("Figure"),
        Column::number(letter(0)),
        Column::number(side_name(comparison, &contest.side)),
        Column::number("Change"),
    ];
    if has_intervals {
        columns.push(Column::number("95% confidence").narrow("95%"));
    }
    columns.push(Column::word("Finding"));
    let rows = contest.changes.iter().filter_map(|it| {
        let figure = comparison.figures.iter().find(|figure| figure.name == it.figure)?;
        let value = |value| Cell::text(in_figure_unit(figure.unit, value));
        let mut row = vec![
            Cell::text(quote(figure.title.as_ref().unwrap_or(&figure.name), LINE)),
            value(it.base),
            value(it.other),
            Cell::text(change(figure, it)),
        ];
        if has_intervals {
            row.push(interval(figure, it));
        }
        let told = |finding| Cell::text(finding_word(finding)).tone(finding_tone(finding));
        row.push(it.finding.map_or_else(Cell::nothing, told));
        Some(row)
    });
    let pairs = if contest.paired { ", in pairs that were run next to each other" } else { "" };
    Grid {
        caption: format!(
            "Means of the runs of a side, geometric where the change is in percent; a percentile is that of each run{pairs}"
        ),
        columns,
        rows: rows.collect(),
    }
}

pub(crate) fn finding_tone(finding: Finding) -> Tone {
    match finding {
        Finding::Better => Tone::Good,
        Finding::Worse => Tone::Bad,
        Finding::Different | Finding::Same | Finding::Undecided => Tone::Plain,
    }
}

/// `+12.3%`, or the difference where there is no ratio.
fn change(figure: &SeriesFigure, change: &Change) -> String {
    match (change.ratio, change.difference) {
        (Some(ratio), _) => relative(ratio.mean),
        (None, Some(difference)) => signed(figure, difference.mean),
        (None, None) => NOTHING.to_owned(),
    }
}

fn interval(figure: &SeriesFigure, change: &Change) -> Cell {
    if change.runs < FEWEST_FOR_INTERVAL as u64 {
        return Cell::nothing();
    }
    let of = |it: Estimate, say: &dyn Fn(f64) -> String| {
        Cell::text(format!("{} to {}", say(it.low), say(it.high)))
    };
    match (change.ratio, change.difference) {
        (Some(ratio), _) => of(ratio, &relative),
        (None, Some(difference)) => of(difference, &|value| signed(figure, value)),
        (None, None) => Cell::nothing(),
    }
}

/// A ratio as a change in percent.
pub(crate) fn relative(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    let digits = if percent.abs() < 99.95 { 1 } else { 0 };
    let rounded = format!("{:.digits$}", percent.abs());
    let sign = match percent {
        _ if rounded.chars().all(|it| matches!(it, '0' | '.')) => "",
        p if p < 0.0 => "−",
        _ => "+",
    };
    format!("{sign}{rounded}%")
}

fn signed(figure: &SeriesFigure, value: f64) -> String {
    let plus = if value > 0.0 { "+" } else { "" };
    format!("{plus}{}", in_figure_unit(figure.unit, value))
}

fn limit(comparison: &Comparison, result: &LimitResult) -> Fact {
    let side = side_name(comparison, &result.side);
    let label = format!("{}: {}", side, quote(&result.expression, LINE));
    let figure = quote(&result.figure, LINE);
    match &result.finding {
        LimitFinding::Regression => {
            Fact::new(label, format!("regression: the interval of {figure} lies wholly beyond it"))
                .tone(Tone::Bad)
        }
        LimitFinding::Held => {
            Fact::new(label, format!("no regression of {figure} is shown")).tone(Tone::Good)
        }
        LimitFinding::NotJudged(why) => {
            Fact::new(label, format!("not judged: {figure}: {}", quote(why, LINE))).tone(Tone::Doubtful)
        }
    }
}

fn runs(comparison: &Comparison) -> Grid {
    let rows = comparison.sides.iter().enumerate().flat_map(|(position, side)| {
        side.runs.iter().map(move |run| {
            vec![
                Cell::text(letter(position)),
                Cell::text(quote(&run.directory, LINE)),
                Cell::text(moment(run.started_at_seconds, ' ')),
                Cell::text(crate::stages::state_word(run.verdict))
                    .tone(crate::stages::state_tone(run.verdict)),
            ]
        })
    });
    Grid {
        caption: "One row a run".to_owned(),
        columns: columns![word "Side", word "Run", word "Started, UTC", word "Verdict"],
        rows: rows.collect(),
    }
}
