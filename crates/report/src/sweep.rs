//! A sweep, in every format that a run has: one table, one picture, and which variant is best.

pub(crate) mod lines;

use self::lines::{bounds, figure, is_capacity, short, sweep_line};

use crate::document::{Badge, Cell, Column, Document, Fact, Grid, Part, Section, Tone, columns};
use crate::heat_map::heat_map;
use crate::intervals::{IntervalRow, intervals};
use crate::picture::Picture;
use crate::quantity::{BIT_RATE, BYTES, COUNT, NOTHING, PERCENT, SECONDS, Units, moment, percent, span};
use crate::quote::{LINE, quote};
use crate::report::Findings;
use crate::{series, surroundings};
use std::io;
use weir_answers::capacity::Evidence;
use weir_answers::series::Ending;
use weir_answers::sweep::{Rank, Standing, SweepCell, SweepSummary, SweepValue};
use weir_engine::scenario::Order;
use weir_engine::units::FigureUnit;

impl Findings for SweepSummary {
    const NOUN: &'static str = "a sweep";

    fn document(&self) -> Document {
        let mut parts = vec![Part::Facts(facts(self)), Part::Grid(variants(self))];
        parts.extend(plane(self).map(Part::Grid));
        let mut sections = vec![Section::new("Sweep", parts)];
        match &self.series {
            Some(of_runs) => sections.extend(series::sections(of_runs, None)),
            None => {
                if !self.cells.is_empty() {
                    sections.push(Section::new("Searches", vec![Part::Grid(searches(self))]));
                }
                sections.extend(surroundings::sections(&self.run));
            }
        }
        Document {
            title: format!("weir {} · {}", quote(&self.run.weir_version, 40), quote(&self.run.name, LINE)),
            badges: badges(self),
            sections,
        }
    }

    fn subject(&self) -> String {
        self.run.id.clone()
    }

    fn pictures(&self) -> Vec<Picture> {
        let rows: Vec<_> = self
            .variants
            .iter()
            .filter_map(|variant| {
                let value = variant.value?;
                Some(IntervalRow {
                    name: quote(&variant.name, 40),
                    mean: value.mean,
                    low: value.low,
                    high: value.high,
                    value: short(self, variant),
                    standing: standing_word(variant.standing),
                    class: match variant.standing {
                        Standing::Best => "best",
                        Standing::Alike => "alike",
                        Standing::Worse | Standing::Fails => "worse",
                        Standing::Unknown => "unknown",
                    },
                })
            })
            .collect();
        let of_intervals = intervals(&self.ranked.title, units(self.ranked.unit), f64::INFINITY, &rows);
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
        for cell in &self.cells {
            let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
            let bound = |of: fn(&weir_answers::sweep::CellCapacity) -> Option<u32>| {
                cell.capacity.as_ref().and_then(of).map_or_else(String::new, |bound| bound.to_string())
            };
            writer.write_record([
                &quote(&self.run.id, LINE),
                &quote(&cell.directory, LINE),
                &quote(&cell.variant, LINE),
                &cell.repetition.to_string(),
                &u8::from(cell.counted).to_string(),
                &cell.capacity.map_or_else(String::new, |_| evidence(cell).to_owned()),
                &bound(|it| it.lower),
                &bound(|it| it.upper),
                &number(cell.cpu_percent_per_client),
                &cell.busiest_thread.as_ref().map_or_else(String::new, |it| quote(&it.name, 40)),
                &number(cell.busiest_thread.as_ref().map(|it| it.cpu_percent)),
            ])?;
        }
        writer.flush()
    }

    fn write_junit(&self, out: &mut dyn io::Write) -> io::Result<()> {
        crate::junit::write_sweep(self, out)
    }
}

fn standing_word(standing: Standing) -> &'static str {
    match standing {
        Standing::Best => "best",
        Standing::Alike => "not distinguishable",
        Standing::Worse => "worse",
        Standing::Fails => "fails",
        Standing::Unknown => "too little known",
    }
}

fn standing_tone(standing: Standing) -> Tone {
    match standing {
        Standing::Best => Tone::Good,
        Standing::Alike => Tone::Plain,
        Standing::Worse | Standing::Fails => Tone::Bad,
        Standing::Unknown => Tone::Doubtful,
    }
}

fn badges(summary: &SweepSummary) -> Vec<Badge> {
    let is_whole = summary.variants.iter().all(|it| it.value.is_some());
    let complete = || match is_whole {
        true => Badge::new("complete", Tone::Good),
        false => Badge::new("incomplete", Tone::Doubtful),
    };
    let ending = Badge::of_ending(&summary.ending).unwrap_or_else(complete);
    std::iter::once(ending).chain(summary.series.as_ref().and_then(Badge::of_thresholds)).collect()
}

fn facts(summary: &SweepSummary) -> Vec<Fact> {
    let has_best = summary.standing(Standing::Best).next().is_some();
    let tone = match summary.ending {
        _ if has_best => Tone::Good,
        Ending::Running => Tone::Doubtful,
        _ => Tone::Bad,
    };
    let mut facts = vec![Fact::new("Answer", sweep_line(summary)).tone(tone)];
    if let Ending::Failed(failure) = &summary.ending {
        facts.push(Fact::new("Outcome", quote(&failure.words, 1_000)).tone(Tone::Bad));
    }
    let order = match summary.order {
        Order::Random => "in a random order that the seed decides",
        Order::Interleaved => "interleaved",
        Order::Sequential => "one variant after the other",
    };
    let (one, many) = if is_capacity(summary) { ("search", "searches") } else { ("run", "runs") };
    let each = format!("{} {}", summary.repeat, if summary.repeat == 1 { one } else { many });
    facts.push(Fact::new(
        "Made",
        format!("{each} of each variant, {order}; {} in all", span(summary.run.duration_seconds)),
    ));
    if is_capacity(summary) {
        facts.push(Fact::new("Started", format!("{} UTC", moment(summary.run.started_at_seconds, ' '))));
    }
    let left_out = summary.cells.iter().filter_map(|cell| Some((cell, cell.reason.as_deref()?)));
    for (cell, reason) in left_out {
        let line = format!("{} is not in the figures: {}", quote(&cell.directory, LINE), quote(reason, LINE));
        facts.push(Fact::new("warning", line).tone(Tone::Doubtful));
    }
    facts.push(Fact::new("Definitions", "docs/method/answers.md"));
    facts
}

/// One row a variant.
fn variants(summary: &SweepSummary) -> Grid {
    let keys: Vec<&String> = summary.dimensions.iter().map(|dimension| &dimension.key).collect();
    let is_capacity = is_capacity(summary);
    let mut columns = vec![Column::word("Variant")];
    columns.extend(keys.iter().map(|key| Column::number(quote(key, 40))));
    let mut title = summary.ranked.title.clone();
    if let Some(first) = title.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    columns.push(Column::number(quote(&title, LINE)));
    if !is_capacity {
        columns.push(Column::number("95% confidence").narrow("95%"));
    }
    columns.push(Column::word("Standing"));
    let shows_cpu = summary.ranked.by != Rank::CpuPerClient;
    if shows_cpu {
        columns.push(Column::number("CPU a client").narrow("CPU"));
    }
    columns.push(Column::number("Busiest thread").narrow("Thread"));
    columns.push(Column::number(if is_capacity { "Searches" } else { "Runs" }));
    let rows = summary.variants.iter().map(|variant| {
        let mut row = vec![Cell::text(quote(&variant.name, 40))];
        row.extend(keys.iter().map(|key| {
            variant.values.get(*key).map_or_else(Cell::nothing, |value| Cell::text(quote(value, 40)))
        }));
        row.push(Cell::text(short(summary, variant)));
        if !is_capacity {
            let ends = variant.value.and_then(|value| Some((value.low?, value.high?)));
            row.push(ends.map_or_else(Cell::nothing, |(low, high)| {
                Cell::text(format!(
                    "{} to {}",
                    figure(summary.ranked.unit, low),
                    figure(summary.ranked.unit, high)
                ))
            }));
        }
        row.push(Cell::text(standing_word(variant.standing)).tone(standing_tone(variant.standing)));
        if shows_cpu {
            let cpu = variant.cpu_percent_per_client;
            row.push(cpu.map_or_else(Cell::nothing, |it| Cell::text(figure(FigureUnit::Percent, it))));
        }
        row.push(variant.busiest_thread.as_ref().map_or_else(Cell::nothing, |it| {
            Cell::text(format!("{} {}", quote(&it.name, 40), percent(it.cpu_percent)))
        }));
        row.push(if variant.counted == variant.cells {
            Cell::text(variant.cells.to_string())
        } else {
            Cell::share(variant.counted.to_string(), variant.cells.to_string())
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
                Cell::text(short(summary, variant)).tone(standing_tone(variant.standing))
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
    let rows = summary.cells.iter().map(|cell| {
        vec![
            Cell::text(quote(&cell.directory, LINE)),
            Cell::text(cell.repetition.to_string()),
            Cell::text(evidence(cell)),
            Cell::text(cell.capacity.map_or_else(
                || NOTHING.to_owned(),
                |it| {
                    bounds(SweepValue {
                        mean: 0.0,
                        low: it.lower.map(f64::from),
                        high: it.upper.map(f64::from),
                        is_sure: true,
                        low_is_sure: true,
                        high_is_sure: true,
                    })
                },
            )),
        ]
    });
    Grid {
        caption: "One row a search, in the order in which they were made; each has a directory of its own"
            .to_owned(),
        columns: columns![word "Search", number "Repetition" / "Rep.", word "Answer", number "Capacity"],
        rows: rows.collect(),
    }
}

fn evidence(cell: &SweepCell) -> &'static str {
    match cell.capacity.map(|it| it.evidence) {
        Some(Evidence::Found) => "found",
        Some(Evidence::AtLeast) => "at least",
        Some(Evidence::AtMost) => "at most",
        Some(Evidence::Undecided) => "undecided",
        Some(Evidence::Void) => "void",
        None => NOTHING,
    }
}

fn units(unit: FigureUnit) -> Units {
    match unit {
        FigureUnit::Count | FigureUnit::Ratio => COUNT,
        FigureUnit::Bytes => BYTES,
        FigureUnit::Seconds => SECONDS,
        FigureUnit::BitsPerSecond => BIT_RATE,
        FigureUnit::Percent => PERCENT,
    }
}
