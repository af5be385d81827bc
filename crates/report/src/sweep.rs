//! A sweep, in every format that a run has: one table, one picture, and which variant is best.

pub(crate) mod lines;

use self::lines::{bounds, figure, short, sweep_line};
use crate::document::{Badge, Cell, Column, Document, Fact, Grid, Part, Section, Tone};
use crate::heat_map::heat_map;
use crate::intervals::{IntervalRow, intervals};
use crate::picture::Picture;
use crate::quantity::{NOTHING, moment, percent, span};
use crate::quote::{LINE, quote};
use crate::report::Findings;
use crate::table::{RunColumn, confidence, finding_tone, finding_word, scaled, text};
use crate::{series, surroundings, table};
use std::io;
use weir_answers::capacity::Evidence;
use weir_answers::series::Ending;
use weir_answers::sweep::{Rank, SweepSummary};
use weir_answers::table::{Finding, SearchedCapacity, TableRun, VariantSummary};
use weir_engine::scenario::Order;
use weir_engine::summary::units::FigureUnit;

impl Findings for SweepSummary {
    const NOUN: &'static str = "a sweep";

    fn document(&self) -> Document {
        let mut parts = vec![Part::Facts(facts(self)), Part::Grid(variants(self))];
        parts.extend(plane(self).map(Part::Grid));
        let mut sections = vec![Section::new("Sweep", parts)];
        if self.ranked.is_capacity() {
            if !self.series.table.runs.is_empty() {
                sections.push(Section::new("Searches", vec![Part::Grid(searches(self))]));
            }
            sections.extend(surroundings::sections(&self.series.run));
        } else {
            sections.extend(series::sections(&self.series, None));
        }
        let run = &self.series.run;
        Document {
            title: format!("weir {} · {}", quote(&run.weir_version, 40), quote(&run.name, LINE)),
            badges: badges(self),
            sections,
        }
    }

    fn subject(&self) -> String {
        self.series.run.id.clone()
    }

    fn pictures(&self) -> Vec<Picture> {
        let (scale, units) = scaled(self.ranked.unit);
        let rows: Vec<_> = self
            .series
            .variants
            .iter()
            .filter_map(|variant| {
                let value = variant.value?;
                Some(IntervalRow {
                    name: quote(&variant.name, 40),
                    mean: value.mean * scale,
                    low: value.low.map(|low| low * scale),
                    high: value.high.map(|high| high * scale),
                    value: short(self, variant),
                    standing: standing_word(variant),
                    class: match standing(variant) {
                        Finding::Best => "best",
                        Finding::Undecided => "alike",
                        Finding::Worse | Finding::Fails => "worse",
                        _ => "unknown",
                    },
                })
            })
            .collect();
        let of_intervals = intervals(&self.ranked.title, units, f64::INFINITY, &rows);
        let of_plane = heat_map(self, |variant| short(self, variant), standing_word);
        of_intervals.into_iter().chain(of_plane).collect()
    }

    /// One row a cell.
    fn write_csv(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let mut writer = crate::csv::writer(out);
        writer.write_record([
            "sweep",
            "cell",
            "variant",
            "repetition",
            "counted",
            "answer",
            "lower",
            "upper",
            "cpu_percent_per_client",
            "busiest_thread",
            "busiest_thread_percent",
        ])?;
        for search in &self.series.table.runs {
            let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
            let bound = |of: fn(&SearchedCapacity) -> Option<u32>| {
                search.capacity.as_ref().and_then(of).map_or_else(String::new, |bound| bound.to_string())
            };
            writer.write_record([
                &quote(&self.series.run.id, LINE),
                &quote(&search.directory, LINE),
                &quote(&search.variant, LINE),
                &search.repetition.to_string(),
                &u8::from(search.is_counted()).to_string(),
                &search.capacity.map_or_else(String::new, |_| evidence(search).to_owned()),
                &bound(|it| it.lower),
                &bound(|it| it.upper),
                &number(search.cpu_percent_per_client),
                &search.busiest_thread.as_ref().map_or_else(String::new, |it| quote(&it.name, 40)),
                &number(search.busiest_thread.as_ref().map(|it| it.cpu_percent)),
            ])?;
        }
        writer.flush()
    }

    fn write_junit(&self, out: &mut dyn io::Write) -> io::Result<()> {
        crate::junit::write_sweep(self, out)
    }
}

fn standing(variant: &VariantSummary) -> Finding {
    variant.standing.unwrap_or(Finding::Unknown)
}

fn standing_word(variant: &VariantSummary) -> &'static str {
    match standing(variant) {
        Finding::Undecided => "not distinguishable",
        finding => finding_word(finding),
    }
}

fn badges(summary: &SweepSummary) -> Vec<Badge> {
    let is_whole = summary.series.variants.iter().all(|it| it.value.is_some());
    let complete = || match is_whole {
        true => Badge::new("complete", Tone::Good),
        false => Badge::new("incomplete", Tone::Doubtful),
    };
    let ending = Badge::of_ending(&summary.series.ending).unwrap_or_else(complete);
    std::iter::once(ending).chain(Badge::of_thresholds(&summary.series)).collect()
}

fn facts(summary: &SweepSummary) -> Vec<Fact> {
    let series = &summary.series;
    let has_best = summary.standing(Finding::Best).next().is_some();
    let tone = match series.ending {
        _ if has_best => Tone::Good,
        Ending::Running => Tone::Doubtful,
        _ => Tone::Bad,
    };
    let mut facts = vec![Fact::new("Answer", sweep_line(summary)).tone(tone)];
    if let Ending::Failed(failure) = &series.ending {
        facts.push(Fact::new("Outcome", quote(&failure.words, 1_000)).tone(Tone::Bad));
    }
    let order = match series.order {
        Order::Random => "in a random order that the seed decides",
        Order::Interleaved => "interleaved",
        Order::Sequential => "one variant after the other",
    };
    let (one, many) = if summary.ranked.is_capacity() { ("search", "searches") } else { ("run", "runs") };
    let each = format!("{} {}", series.repeat, if series.repeat == 1 { one } else { many });
    facts.push(Fact::new(
        "Made",
        format!("{each} of each variant, {order}; {} in all", span(series.run.duration_seconds)),
    ));
    if summary.ranked.is_capacity() {
        facts.push(Fact::new("Started", format!("{} UTC", moment(series.run.started_at_seconds, ' '))));
    }
    for run in series.table.runs.iter().filter(|run| !run.is_counted()) {
        let why = quote(&run.why_not_counted(), LINE);
        let line = format!("{} is not in the figures: {why}", quote(&run.directory, LINE));
        facts.push(Fact::new("warning", line).tone(Tone::Doubtful));
    }
    facts.push(Fact::new("Definitions", "docs/method/answers.md"));
    facts
}

/// One row a variant.
fn variants(summary: &SweepSummary) -> Grid {
    let keys: Vec<&String> = summary.dimensions.iter().map(|dimension| &dimension.key).collect();
    let is_capacity = summary.ranked.is_capacity();
    let mut columns = vec![Column::word("Variant")];
    columns.extend(keys.iter().map(|key| Column::number(quote(key, 40))));
    let mut title = summary.ranked.title.clone();
    if let Some(first) = title.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    columns.push(Column::number(quote(&title, LINE)));
    if !is_capacity {
        columns.push(confidence());
    }
    columns.push(Column::word("Standing"));
    let shows_cpu = summary.ranked.by != Rank::CpuPerClient;
    if shows_cpu {
        columns.push(Column::number("CPU a client").narrow("CPU"));
    }
    columns.push(Column::number("Busiest thread").narrow("Thread"));
    columns.push(Column::number(if is_capacity { "Searches" } else { "Runs" }));
    let rows = summary.series.variants.iter().map(|variant| {
        let mut row = vec![Cell::text(quote(&variant.name, 40))];
        row.extend(keys.iter().map(|key| {
            variant.values.get(*key).map_or_else(Cell::nothing, |value| Cell::text(quote(value, 40)))
        }));
        row.push(Cell::text(short(summary, variant)));
        if !is_capacity {
            let ends = variant.value.and_then(|value| Some((value.low?, value.high?)));
            let say = |end| figure(summary.ranked.unit, end);
            row.push(text(ends.map(|(low, high)| format!("{} to {}", say(low), say(high)))));
        }
        row.push(Cell::text(standing_word(variant)).tone(finding_tone(standing(variant))));
        if shows_cpu {
            let cpu = variant.cpu_percent_per_client;
            row.push(text(cpu.map(|it| figure(FigureUnit::Percent, it))));
        }
        let thread = variant.busiest_thread.as_ref();
        row.push(text(thread.map(|it| format!("{} {}", quote(&it.name, 40), percent(it.cpu_percent)))));
        row.push(if variant.counted == variant.runs {
            Cell::text(variant.runs.to_string())
        } else {
            Cell::share(variant.counted.to_string(), variant.runs.to_string())
        });
        row
    });
    let caption = if is_capacity {
        format!(
            "What each variant carries: {}; CPU in percent of one core, at the largest load that was carried",
            summary.ranked.title
        )
    } else {
        "Variants, in the mean of their runs; CPU in percent of one core".to_owned()
    };
    Grid { caption, columns, rows: rows.collect() }
}

/// Two dimensions as a plane, if the variants span one.
fn plane(summary: &SweepSummary) -> Option<Grid> {
    let [down, across] = &summary.dimensions[..] else { return None };
    let mut columns = vec![Column::word(quote(&down.key, 40))];
    columns.extend(across.values.iter().map(|value| Column::number(quote(value, 40))));
    let rows = down.values.iter().map(|first| {
        let cells = across.values.iter().map(|second| {
            summary.at(first, second).map_or_else(Cell::nothing, |variant| {
                Cell::text(short(summary, variant)).tone(finding_tone(standing(variant)))
            })
        });
        [Cell::text(quote(first, 40))].into_iter().chain(cells).collect()
    });
    let caption =
        format!("{}: {} across, {} down", summary.ranked.title, quote(&across.key, 40), quote(&down.key, 40));
    Some(Grid { caption, columns, rows: rows.collect() })
}

/// One row a search.
fn searches(summary: &SweepSummary) -> Grid {
    let capacity = |search: &TableRun| {
        let ends = |it: SearchedCapacity| bounds(it.lower.map(f64::from), it.upper.map(f64::from));
        Cell::text(search.capacity.map_or_else(|| NOTHING.to_owned(), ends))
    };
    let columns = [
        RunColumn::Directory("Search"),
        RunColumn::Repetition,
        RunColumn::Own(Column::word("Answer"), &|search| Cell::text(evidence(search))),
        RunColumn::Own(Column::number("Capacity"), &capacity),
    ];
    let caption = "One row a search, in the order in which they were made; each has a directory of its own";
    table::runs(caption, &summary.series.table.runs, &columns)
}

fn evidence(search: &TableRun) -> &'static str {
    match search.capacity.map(|it| it.evidence) {
        Some(Evidence::Found) => "found",
        Some(Evidence::AtLeast) => "at least",
        Some(Evidence::AtMost) => "at most",
        Some(Evidence::Undecided) => "undecided",
        Some(Evidence::Void) => "void",
        None => NOTHING,
    }
}
