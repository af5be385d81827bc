//! A comparison of runs, as text, Markdown, JSON and a page.

mod answer;
mod pictures;

use crate::document::{Badge, Cell, Column, Document, Fact, Grid, Part, Section, Tone};
use crate::picture::Picture;
use crate::quantity::{moment, several, share};
use crate::quote::{LINE, quote};
use crate::report::Findings;
use crate::table::{DifferenceColumn, RunColumn, finding_tone, finding_word};
use crate::{surroundings, table};
use weir_answers::compare::{Comparison, FEWEST_FOR_INTERVAL, LimitFinding, LimitResult, Unlike};
use weir_answers::table::{FEWEST_FOR_DIFFERENCE, Finding, TableRun, VariantComparison, VariantSummary};

/// The formats of a comparison.
pub const COMPARISON_FORMATS: [&str; 4] = ["text", "markdown", "json", "html"];

impl Findings for Comparison {
    const NOUN: &'static str = "a comparison";

    fn document(&self) -> Document {
        let mut sections = vec![Section::new("Comparison", vec![Part::Facts(facts(self))])];
        for comparison in &self.comparisons {
            let title = format!("{} against {}", side_name(self, &comparison.other), letter(0));
            let parts = vec![Part::Grid(differences(self, comparison))];
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
    comparison.variants.iter().map(|side| side.name.as_str()).collect::<Vec<_>>().join(" · ")
}

/// The letter of a side: names may be as long as paths are.
fn letter(position: usize) -> String {
    char::from_u32('A' as u32 + position as u32)
        .filter(char::is_ascii_uppercase)
        .map_or_else(|| format!("side {}", position + 1), String::from)
}

fn side_name(comparison: &Comparison, name: &str) -> String {
    letter(comparison.variants.iter().position(|side| side.name == name).unwrap_or(0))
}

fn found(comparison: &Comparison, finding: Finding) -> usize {
    let differences = comparison.comparisons.iter().flat_map(|it| &it.differences);
    differences.filter(|it| it.finding == finding).count()
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

fn facts(comparison: &Comparison) -> Vec<Fact> {
    let answer = |it| Fact::new("Answer", answer::answer(comparison, it));
    let mut facts: Vec<Fact> = comparison.comparisons.iter().map(answer).collect();
    facts.extend(comparison.variants.iter().enumerate().map(|(position, side)| {
        let words = format!("{}: {}", quote(&side.name, LINE), several(side.runs, "run"));
        Fact::new(letter(position), format!("{words}{}", span_of(comparison, side)))
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

fn span_of(comparison: &Comparison, side: &VariantSummary) -> String {
    let runs = comparison.table.runs.iter().filter(|run| run.variant == side.name);
    let mut starts: Vec<f64> = runs.map(|run| run.started_at_seconds).collect();
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

fn differences(whole: &Comparison, comparison: &VariantComparison) -> Grid {
    use DifferenceColumn::{Base, Change, ChangeInterval, Figure, Finding, Other};
    let has_intervals = comparison.differences.iter().any(|it| it.runs >= FEWEST_FOR_INTERVAL as u64);
    let mut columns = vec![Figure, Base(letter(0)), Other(side_name(whole, &comparison.other)), Change];
    columns.extend(has_intervals.then_some(ChangeInterval));
    columns.push(Finding);
    let rows = comparison
        .differences
        .iter()
        .filter_map(|it| Some((Vec::new(), whole.table.figure(&it.figure)?, it)));
    let pairs = if comparison.pairs.is_some() { ", in pairs that were run next to each other" } else { "" };
    let caption = format!(
        "Means of the runs of a side, geometric where the change is in percent; a percentile is that of each run{pairs}"
    );
    table::differences(caption, Vec::new(), rows, &columns)
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
    let side = |run: &TableRun| Cell::text(side_name(comparison, &run.variant));
    let columns = [
        RunColumn::Own(Column::word("Side"), &side),
        RunColumn::Directory("Run"),
        RunColumn::Started,
        RunColumn::Verdict,
    ];
    table::runs("One row a run", &comparison.table.runs, &columns)
}
