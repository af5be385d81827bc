//! What became of a run's messages: the account of each, and the stages that they went through.

use crate::document::{Cell, Column, Fact, Grid, Part, Tone, columns};
use crate::quantity::{bytes, count, seconds};
use weir_engine::ingest::{FirstAndLast, Ingested, MessageBalance};
use weir_engine::summary::WorkloadSummary;

type OfMessages = fn(&Ingested) -> Option<FirstAndLast>;

const STAGES: [(&str, OfMessages); 5] = [
    ("Publish", |it| it.publish),
    ("Acknowledge", |it| it.acknowledge),
    ("Receive", |it| it.receive),
    ("Decode", |it| it.decode),
    ("Commit", |it| it.commit),
];

/// What a workload that saves messages has to say.
pub(crate) fn parts(workload: &WorkloadSummary) -> Vec<Part> {
    let Some(ingested) = &workload.ingested else {
        let words = "not counted to its end: the warnings say why";
        return vec![Part::Facts(vec![Fact::new("Account", words).tone(Tone::Bad)])];
    };
    let mut facts = vec![Fact::new(
        "Classic",
        format!("{} code, rows, last insert − first insert in ms", ingested.classic),
    )];
    facts.extend(ingested.durability.as_ref().map(|words| Fact::new("Durability", words.clone())));
    let busy = |time: Option<f64>| time.map_or_else(|| "unknown".to_owned(), seconds);
    facts.push(Fact::new(
        "Busy",
        format!(
            "decoding {}, saving {} in {} commits",
            busy(ingested.decode_seconds),
            busy(ingested.save_seconds),
            count(ingested.commits)
        ),
    ));
    vec![Part::Facts(facts), Part::Grid(account(ingested)), Part::Grid(stages(ingested))]
}

fn account(ingested: &Ingested) -> Grid {
    let names =
        ["Published", "Acknowledged", "Received", "Lost", "Saved", "Dead-lettered", "Duplicate", "Counted"];
    let mut columns: Vec<_> = names.map(Column::number).into();
    columns.push(Column::number("Bytes a payload").narrow("Payload"));
    columns.push(Column::number("Bytes a row").narrow("Row"));
    let MessageBalance {
        published,
        acknowledged,
        received,
        lost,
        saved,
        dead_lettered,
        duplicate,
        counted,
        ..
    } = ingested.account;
    let numbers = [published, acknowledged, received, lost, saved, dead_lettered, duplicate, counted];
    let mut row: Vec<_> = names
        .iter()
        .zip(numbers)
        .map(|(name, number)| {
            let bad = ["Lost", "Dead-lettered"].contains(name) && number > 0;
            Cell::text(count(number)).tone(if bad { Tone::Bad } else { Tone::Plain })
        })
        .collect();
    // Unknown for a table or messages of another program.
    for (sum, number) in [(ingested.payload_bytes, published), (ingested.table_bytes, counted)] {
        let is_known = sum > 0 && number > 0;
        row.push(if is_known { Cell::text(bytes(sum as f64 / number as f64)) } else { Cell::nothing() });
    }
    let caption = "Messages: published = received − duplicate + lost, received = saved + dead-lettered + duplicate, saved = \
                   counted in the table";
    Grid { caption: caption.to_owned(), columns, rows: vec![row] }
}

fn stages(ingested: &Ingested) -> Grid {
    let columns = columns![word "Stage", number "First", number "Last", number "Last − first" / "Length"];
    let rows = STAGES.iter().filter_map(|(title, of)| {
        let span = of(ingested)?;
        let times = [span.first_seconds, span.last_seconds, span.seconds()];
        Some(std::iter::once(Cell::text(*title)).chain(times.map(|time| Cell::text(seconds(time)))).collect())
    });
    let caption = match ingested.publish {
        Some(_) => "First and last of each stage, since the first message was published",
        None => "First and last of each stage, since the first message came, or since second 0 of agents",
    };
    Grid { caption: caption.to_owned(), columns, rows: rows.collect() }
}
