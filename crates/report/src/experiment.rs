//! An experiment with encodings of records, in every format that a run has.

use crate::digest::{LINE, several};
use crate::document::{Badge, Cell, Column, Document, Fact, Grid, Part, Section, Tone};
use crate::json::published;
use crate::quantity::{NOTHING, bit_rate, bytes, count, moment, seconds, span};
use crate::quote::quote;
use crate::stages::{state_tone, state_word};
use crate::surroundings;
use crate::text::Text;
use std::io;
use weir_engine::experiment::{
    Account, Beside, Comparison, EncodingSummary, Ending, ExperimentSummary, MEASURES, Measured, Measurement,
    Repetition, Stretch, title,
};
use weir_metrics::Estimate;

/// Writes an experiment in the format of this name, one of [`crate::FORMATS`]; as text in the manner of `text`.
///
/// # Errors
/// `out` does not take it, or there is no such format.
pub fn write_experiment(
    summary: &ExperimentSummary,
    format: &str,
    text: &Text,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    match format {
        "text" => text.write_document(&document(summary), out),
        "markdown" => crate::markdown::write_document(&document(summary), out),
        "html" => crate::html::write_document(document(summary), &summary.run.id, out),
        "json" => {
            serde_json::to_writer_pretty(&mut *out, summary)?;
            out.write_all(b"\n")
        }
        "csv" => write_csv(summary, out),
        "junit" => crate::junit::write_experiment(summary, out),
        other => Err(io::Error::other(format!("there is no format '{other}'"))),
    }
}

/// The JSON Schema of an experiment's summary (draft 2020-12), made from the types: `docs/experiment.schema.json`.
pub fn experiment_schema() -> String {
    published(schemars::schema_for!(ExperimentSummary), "weir experiment")
}

fn document(summary: &ExperimentSummary) -> Document {
    let rate = |bps| {
        let (number, unit) = bit_rate(bps);
        format!("{number} {unit}")
    };
    let mut sections = vec![Section::new(
        "Experiment",
        vec![Part::Facts(facts(summary)), Part::Grid(times(&summary.alone))],
    )];
    sections.extend(difference("Difference", &summary.alone));
    sections.push(Section::new("Account", vec![Part::Grid(accounts(&summary.alone))]));
    if let Some(Beside { carried, measurement }) = &summary.background {
        let facts = vec![
            Fact::new("Conclusion", measurement.conclusion.clone()),
            Fact::new("Sent", rate(carried.sent_bps)),
            Fact::new("Received", rate(carried.received_bps)),
        ];
        let parts = vec![Part::Facts(facts), Part::Grid(times(measurement))];
        sections.push(Section::new("Beside background load", parts));
        sections.extend(difference("Difference beside background load", measurement));
        let parts = vec![Part::Grid(accounts(measurement))];
        sections.push(Section::new("Account beside background load", parts));
    }
    if !summary.repetitions.is_empty() {
        sections.push(Section::new("Repetitions", vec![Part::Grid(lines(summary))]));
    }
    if !summary.thresholds.is_empty() {
        let facts = summary.thresholds.iter().map(|it| {
            let value = it.value.map_or_else(|| NOTHING.to_owned(), |value| format!("{value}"));
            let (word, tone) = if it.passed { ("passed", Tone::Good) } else { ("failed", Tone::Bad) };
            Fact::new(quote(&it.expression, LINE), format!("{word}: {value}")).tone(tone)
        });
        sections.push(Section::new("Thresholds", vec![Part::Facts(facts.collect())]));
    }
    if !summary.warnings.is_empty() {
        let facts = summary
            .warnings
            .iter()
            .map(|text| Fact::new("warning", quote(text, 1_000)).tone(Tone::Doubtful))
            .collect();
        sections.push(Section::new("Warnings", vec![Part::Facts(facts)]));
    }
    sections.push(Section::new("Stages", vec![Part::Grid(stages(summary))]).detail());
    sections.extend(surroundings::sections(&summary.run));
    Document {
        title: format!("weir {} · {}", quote(&summary.run.weir_version, 40), quote(&summary.run.name, LINE)),
        badges: badges(summary),
        sections,
    }
}

fn badges(summary: &ExperimentSummary) -> Vec<Badge> {
    let badge = |text: String, tone| Badge { text, tone };
    let mut badges = vec![badge(state_word(summary.verdict).to_owned(), state_tone(summary.verdict))];
    let failed = summary.thresholds.iter().filter(|it| !it.passed).count();
    if failed > 0 {
        badges.push(badge(format!("{} failed", several(failed as u64, "threshold")), Tone::Bad));
    }
    match &summary.ending {
        Ending::Completed => {}
        Ending::Running => badges.push(badge("not at its end".to_owned(), Tone::Doubtful)),
        Ending::Interrupted => badges.push(badge("interrupted".to_owned(), Tone::Doubtful)),
        Ending::Failed(_) => badges.push(badge("failed".to_owned(), Tone::Bad)),
    }
    badges
}

fn facts(summary: &ExperimentSummary) -> Vec<Fact> {
    let (run, spec) = (&summary.run, &summary.experiment);
    let mut facts = vec![
        Fact::new("Started", format!("{} UTC", moment(run.started_at_seconds, ' '))),
        match &summary.ending {
            Ending::Completed => Fact::new("Outcome", format!("completed in {}", span(run.duration_seconds))),
            Ending::Running => {
                Fact::new("Outcome", "not at its end: figures cover what was measured".to_owned())
            }
            Ending::Interrupted => Fact::new(
                "Outcome",
                "interrupted: figures cover the repetitions that were complete".to_owned(),
            )
            .tone(Tone::Doubtful),
            Ending::Failed(words) => Fact::new("Outcome", quote(words, 1_000)).tone(Tone::Bad),
        },
        Fact::new("Publish", quote(&spec.publish, LINE)),
        match (&spec.probe, &spec.save) {
            (Some(probe), _) => Fact::new("Consumer", format!("another's, asked at {}", quote(probe, LINE))),
            (None, save) => Fact::new("Save", quote(save.as_deref().unwrap_or_default(), LINE)),
        },
        Fact::new("Durability", durability(summary)),
        Fact::new("Schema", quote(&spec.schema.display().to_string(), LINE)),
    ];
    let repetitions: Vec<_> = summary
        .alone
        .encodings
        .iter()
        .map(|it| format!("{} of {}", several(it.repetitions, "repetition"), title(&it.encoding)))
        .collect();
    facts.push(Fact::new("Measured", format!("{}, by turns", repetitions.join(" and "))));
    facts.push(Fact::new("Conclusion", summary.alone.conclusion.clone()));
    facts.push(Fact::new("Definitions", "docs/method.md, section 29"));
    facts
}

/// What a commit was worth when it was counted: it decides what saving costs.
fn durability(summary: &ExperimentSummary) -> &'static str {
    let spec = &summary.experiment;
    let is_sqlite = spec.save.as_deref().is_some_and(|save| save.starts_with("sqlite:"));
    match spec.durability.as_deref() {
        _ if spec.save.is_none() => "another's own affair",
        None | Some("full") => "full: each commit was on the disk when it was counted",
        Some("off") if is_sqlite => "off: a crash of the machine could have damaged the file",
        Some(_) => "less than full: a crash of the machine could have taken the last commits",
    }
}

fn difference(title: &str, measurement: &Measurement) -> Option<Section> {
    let comparison = measurement.comparison.as_ref()?;
    Some(Section::new(title, vec![Part::Grid(differences(comparison))]))
}

fn titles(measurement: &Measurement) -> impl Iterator<Item = &str> {
    measurement.encodings.iter().map(|it| title(&it.encoding))
}

/// A time with its interval, one column an encoding.
fn times(measurement: &Measurement) -> Grid {
    let mut columns = vec![Column::word("Time")];
    for title in titles(measurement) {
        columns.push(Column::number(title.to_owned()));
        columns.push(Column::number("95% confidence").narrow("95%"));
        columns.push(Column::number("Records/s"));
    }
    let find = |encoding: &EncodingSummary, name: &str| -> Option<Measured> {
        encoding.times.iter().find(|it| it.name == name).cloned()
    };
    let rows = MEASURES.iter().map(|measure| {
        let mut row = vec![Cell::text(measure.title)];
        for encoding in &measurement.encodings {
            let found = find(encoding, measure.name);
            let cell = |text: Option<String>| text.map_or_else(Cell::nothing, Cell::text);
            row.push(cell(found.as_ref().map(|it| seconds(it.mean_seconds))));
            row.push(cell(found.as_ref().and_then(|it| it.seconds).map(|it| interval(&it))));
            let rate = found.as_ref().and_then(|it| it.records_per_second);
            row.push(cell(rate.map(|rate| count(rate.round() as u64))));
        }
        row
    });
    Grid { caption: "Times, in the mean of the repetitions".to_owned(), columns, rows: rows.collect() }
}

fn interval(estimate: &Estimate) -> String {
    format!("{} to {}", seconds(estimate.low), seconds(estimate.high))
}

fn differences(comparison: &Comparison) -> Grid {
    let (base, other) = (title(&comparison.base), title(&comparison.other));
    let columns = vec![
        Column::word("Time"),
        Column::number(format!("{other} − {base}")),
        Column::number("95% confidence").narrow("95%"),
        Column::number(format!("{other} ÷ {base}")),
        Column::number("95% confidence").narrow("95%"),
        Column::word("Told apart").narrow("Apart"),
    ];
    let rows = comparison.differences.iter().map(|it| {
        let title = MEASURES.iter().find(|measure| measure.name == it.name).map_or(&*it.name, |it| it.title);
        let ratio = it.ratio;
        let cell = |text: Option<String>| text.map_or_else(Cell::nothing, Cell::text);
        vec![
            Cell::text(title),
            Cell::text(seconds(it.seconds.mean)),
            Cell::text(interval(&it.seconds)),
            cell(ratio.map(|it| format!("{:.2}", it.mean))),
            cell(ratio.map(|it| format!("{:.2} to {:.2}", it.low, it.high))),
            Cell::text(if it.ratio.is_some_and(|it| it.excludes(1.0)) { "yes" } else { "no" }),
        ]
    });
    let pairs = several(comparison.pairs, "pair");
    Grid { caption: format!("Differences over {pairs}"), columns, rows: rows.collect() }
}

fn accounts(measurement: &Measurement) -> Grid {
    let names =
        ["Published", "Acknowledged", "Received", "Lost", "Saved", "Dead-lettered", "Duplicate", "Counted"];
    let mut columns = vec![Column::word("Encoding")];
    columns.extend(names.map(Column::number));
    columns.push(Column::number("Bytes a payload").narrow("Payload"));
    columns.push(Column::number("Bytes a row").narrow("Row"));
    let rows = measurement.encodings.iter().map(|it| {
        let Account {
            published, acknowledged, received, lost, saved, dead_lettered, duplicate, counted, ..
        } = it.account;
        let mut row = vec![Cell::text(title(&it.encoding).to_owned())];
        let numbers = [published, acknowledged, received, lost, saved, dead_lettered, duplicate, counted];
        row.extend(names.iter().zip(numbers).map(|(name, number)| {
            let bad = ["Lost", "Dead-lettered"].contains(name) && number > 0;
            Cell::text(count(number)).tone(if bad { Tone::Bad } else { Tone::Plain })
        }));
        row.push(Cell::text(bytes(it.payload_bytes)));
        // Of somebody else's table nobody may know.
        row.push(if it.row_bytes > 0.0 { Cell::text(bytes(it.row_bytes)) } else { Cell::nothing() });
        row
    });
    let caption = "Messages of all repetitions: published = received − duplicate + lost, received = saved + dead-lettered + \
                   duplicate, saved = counted in the table";
    Grid { caption: caption.to_owned(), columns, rows: rows.collect() }
}

/// The line of the original measurement, one row a repetition.
fn lines(summary: &ExperimentSummary) -> Grid {
    let mut columns = vec![Column::number("Repetition").narrow("No.")];
    let mut conditions = Vec::new();
    for (beside, measurement) in [false, true].into_iter().zip(summary.measurements()) {
        for encoding in &measurement.encodings {
            let title = title(&encoding.encoding);
            columns.push(match beside {
                false => Column::number(title.to_owned()),
                true => {
                    Column::number(format!("{title}, beside load")).narrow(format!("{title},\nbeside load"))
                }
            });
            conditions.push((beside, &encoding.encoding));
        }
    }
    let last = summary.repetitions.iter().map(|it| it.repetition).max().unwrap_or(0);
    let rows = (1..=last).map(|number| {
        let of = |(beside, encoding): &(bool, &String)| {
            let found = summary.repetitions.iter().find(|it| {
                it.repetition == number && it.encoding == **encoding && it.background.is_some() == *beside
            });
            found.map_or_else(Cell::nothing, |it| {
                let tone = if it.imbalances.is_empty() { Tone::Plain } else { Tone::Bad };
                Cell::text(it.classic_line()).tone(tone)
            })
        };
        std::iter::once(Cell::text(number.to_string())).chain(conditions.iter().map(of)).collect()
    });
    let caption = "[code, rows, last insert − first insert in ms]";
    Grid { caption: caption.to_owned(), columns, rows: rows.collect() }
}

/// First and last of each stage, one row a repetition and encoding.
fn stages(summary: &ExperimentSummary) -> Grid {
    let mut columns = vec![Column::number("Repetition").narrow("No."), Column::word("Encoding")];
    columns.extend(STAGES.map(|(title, _)| Column::number(title)));
    let rows = summary.repetitions.iter().map(|it| {
        let mut row = vec![Cell::text(it.repetition.to_string()), Cell::text(condition(it))];
        row.extend(STAGES.map(|(_, of)| {
            of(it).map_or_else(Cell::nothing, |it| {
                Cell::pair(seconds(it.first_seconds), seconds(it.last_seconds))
            })
        }));
        row
    });
    let caption = "First and last of each stage, since the first message was published";
    Grid { caption: caption.to_owned(), columns, rows: rows.collect() }
}

/// What was measured in a repetition.
fn condition(repetition: &Repetition) -> String {
    let beside = if repetition.background.is_some() { ", beside load" } else { "" };
    format!("{}{beside}", title(&repetition.encoding))
}

type OfRepetition = fn(&Repetition) -> Option<Stretch>;

const STAGES: [(&str, OfRepetition); 5] = [
    ("Publish", |it| it.publish),
    ("Acknowledge", |it| it.acknowledge),
    ("Receive", |it| it.receive),
    ("Decode", |it| it.decode),
    ("Commit", |it| it.commit),
];

/// One row a repetition and encoding.
fn write_csv(summary: &ExperimentSummary, out: &mut dyn io::Write) -> io::Result<()> {
    let mut writer = ::csv::WriterBuilder::new().terminator(::csv::Terminator::CRLF).from_writer(out);
    let mut columns: Vec<String> = [
        "run",
        "repetition",
        "encoding",
        "background_bps",
        "code",
        "rows",
        "milliseconds",
        "planned",
        "published",
        "acknowledged",
        "received",
        "lost",
        "saved",
        "dead_lettered",
        "duplicate",
        "counted",
        "counted_dead",
        "imbalances",
        "commits",
        "payload_bytes",
        "table_bytes",
        "decode_seconds",
        "save_seconds",
    ]
    .map(str::to_owned)
    .to_vec();
    for (title, _) in STAGES {
        let name = title.to_lowercase();
        columns.extend([format!("{name}_first_seconds"), format!("{name}_last_seconds")]);
    }
    writer.write_record(&columns)?;
    for it in &summary.repetitions {
        let account = &it.account;
        let numbers = [
            it.classic.1,
            it.classic.2,
            account.planned,
            account.published,
            account.acknowledged,
            account.received,
            account.lost,
            account.saved,
            account.dead_lettered,
            account.duplicate,
            account.counted,
            account.counted_dead,
            it.imbalances.len() as u64,
            it.commits,
            it.payload_bytes,
            it.table_bytes,
        ];
        let mut row = vec![summary.run.id.clone(), it.repetition.to_string(), it.encoding.clone()];
        row.push(it.background.map(|it| format!("{:.0}", it.sent_bps + it.received_bps)).unwrap_or_default());
        let text = |seconds: Option<f64>| seconds.map(|it| format!("{it:.9}")).unwrap_or_default();
        row.push(it.classic.0.to_string());
        row.extend(numbers.map(|number| number.to_string()));
        row.extend([it.decode_seconds, it.save_seconds].map(text));
        for (_, of) in STAGES {
            let stretch = of(it);
            row.push(text(stretch.map(|it| it.first_seconds)));
            row.push(text(stretch.map(|it| it.last_seconds)));
        }
        writer.write_record(&row)?;
    }
    writer.flush()
}
