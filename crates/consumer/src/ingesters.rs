//! weir's own ingesters beside publishers: one, or several that share a subscription, all of this process.

use crate::attendant::{AFTER_INTERRUPT, Attendant, Say};
use crate::ingester::{Ingester, MakeIngester, of_table};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use weir_engine::ingest::{
    Both, Consumed, Consumer, ConsumerError, IngestStage, MakeConsumer, RowStore, SaveCounts,
};
use weir_ingest::{Contents, Decode, Destination, Durability, IngestSettings, Loader};
use weir_shard::clock;

/// How often it is asked whether subscriptions were granted.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Who looks after the tables that ingesters save into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tables {
    /// This process: it makes them, empties them if they are to be, and counts their rows.
    Here {
        /// What is in them is gone before the first message.
        empty: bool,
    },
    /// The coordinator of the agent that this process is.
    AtCoordinator,
}

/// The tables, and what was in them before.
pub(crate) struct CountedTables {
    tables: Loader,
    before: Contents,
    durability: &'static str,
    attendant: Attendant,
}

impl CountedTables {
    /// Makes them ready for an ingester of these settings.
    pub(crate) fn open(
        settings: &IngestSettings,
        decode: &Decode,
        empty: bool,
        attendant: Attendant,
    ) -> Result<Self, ConsumerError> {
        let loader = || Loader::new(&settings.destination, &settings.table, decode, settings.durability);
        let tables = loader();
        let before = {
            // Parquet's directory has one user at a time: what empties it is gone before the ingester comes.
            let mut tables = loader();
            let contents = attendant.wait(Duration::ZERO, |waiting| {
                let made = if empty { tables.empty(waiting) } else { tables.open(waiting) };
                made.and_then(|()| tables.contents(waiting))
            });
            contents.map_err(|error| of_table(&error))?
        };
        let durability = match settings.durability {
            Durability::Full if matches!(settings.destination, Destination::Kafka(_)) => {
                "full: all replicas in sync had each record when it was counted"
            }
            Durability::Full => "full: each commit was on the disk when it was counted",
            Durability::Off if matches!(settings.destination, Destination::Sqlite(_)) => {
                "off: a crash of the machine could have damaged the file"
            }
            _ => "less than full: a crash of the machine could have taken the last commits",
        };
        Ok(Self { tables, before, durability, attendant })
    }

    /// Puts what they hold more than before beside what was counted.
    pub(crate) fn count(mut self, consumed: Consumed) -> Result<Consumed, ConsumerError> {
        let tables = &mut self.tables;
        let contents = self.attendant.wait(AFTER_INTERRUPT, |waiting| {
            tables.open(waiting)?;
            tables.contents(waiting)
        });
        let contents = contents.map_err(|error| of_table(&error))?;
        Ok(Consumed {
            counted: contents.rows.saturating_sub(self.before.rows),
            counted_dead: contents.dead.saturating_sub(self.before.dead),
            table_bytes: contents.bytes.saturating_sub(self.before.bytes),
            durability: Some(self.durability.to_owned()),
            ..consumed
        })
    }
}

/// What several ingesters counted, as one. Each hears nearly all publishers, so that the most that one heard are all.
pub(crate) fn together(parts: impl IntoIterator<Item = Consumed>) -> Consumed {
    let span = |a: Both, b: Both| match (a, b) {
        (Some((first, last)), Some((other_first, other_last))) => {
            Some((first.min(other_first), last.max(other_last)))
        }
        (a, b) => a.or(b),
    };
    let seconds = |a: Option<f64>, b: Option<f64>| Some(a.unwrap_or_default() + b.unwrap_or_default());
    let sum = parts.into_iter().reduce(|sum, mut part| Consumed {
        received: sum.received + part.received,
        saved: sum.saved + part.saved,
        dead_lettered: sum.dead_lettered + part.dead_lettered,
        duplicate: sum.duplicate + part.duplicate,
        publishers: sum.publishers.max(part.publishers),
        unmarked: sum.unmarked + part.unmarked,
        receipts: span(sum.receipts, part.receipts),
        decodings: span(sum.decodings, part.decodings),
        commits: span(sum.commits, part.commits),
        decode_seconds: seconds(sum.decode_seconds, part.decode_seconds),
        save_seconds: seconds(sum.save_seconds, part.save_seconds),
        transactions: sum.transactions + part.transactions,
        remarks: sum.remarks.iter().cloned().chain(part.remarks.drain(..)).collect(),
        ..sum
    });
    let sum = sum.unwrap_or_else(|| Consumed::nothing(RowStore::Own(String::new())));
    let milliseconds = sum.commits.map_or(0, |(first, last)| last.since(first).as_millis() as u64);
    Consumed { milliseconds, ..sum }
}

/// Starts an ingester.
pub(crate) fn started(make: &MakeIngester, number: u32) -> Result<Ingester, ConsumerError> {
    let (settings, decode) = make(number).map_err(|words| ConsumerError::new(IngestStage::Ingest, words))?;
    Ingester::start(settings, decode)
}

/// Ingesters of this process.
struct Ingesters {
    each: Vec<Ingester>,
    tables: Option<CountedTables>,
}

/// Makes ingesters with these numbers, to whose subscriptions the broker has consented within `timeout`. Their sessions
/// should end with them. `say` takes what is waited for, every ten seconds.
pub fn ingesters(
    make: Box<MakeIngester>,
    numbers: Vec<u32>,
    tables: Tables,
    timeout: Duration,
    say: Say,
) -> Box<MakeConsumer> {
    Box::new(move |interrupt| {
        let tables = match tables {
            Tables::Here { empty } => {
                let first = numbers.first().copied().unwrap_or_default();
                let made = make(first).map_err(|words| ConsumerError::new(IngestStage::Ingest, words));
                let (settings, decode) = made?;
                let attendant = Attendant::new(interrupt.clone(), say);
                match CountedTables::open(&settings, &decode, empty, attendant) {
                    Err(_) if interrupt.load(Relaxed) => return Ok(None),
                    tables => Some(tables?),
                }
            }
            Tables::AtCoordinator => None,
        };
        let each = numbers.iter().map(|number| started(&*make, *number)).collect::<Result<Vec<_>, _>>()?;
        let ingesters = Box::new(Ingesters { each, tables });
        let began = clock::now();
        while let Some(waiting) = ingesters.each.iter().find(|it| !it.is_subscribed() && !it.has_ended()) {
            if interrupt.load(Relaxed) {
                ingesters.leave();
                return Ok(None);
            }
            if clock::now().since(began) > timeout {
                let words = format!("{} did not grant the subscription in time", waiting.broker());
                ingesters.leave();
                return Err(ConsumerError::new(IngestStage::Broker, words));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        if let Some(broker) = ingesters.each.iter().find(|it| it.has_ended()).map(|it| it.broker().to_owned())
        {
            // One that has ended says why.
            ingesters.end()?;
            return Err(ConsumerError::new(IngestStage::Broker, format!("{broker} ended the session")));
        }
        Ok(Some(ingesters))
    })
}

impl Consumer for Ingesters {
    fn counted(&self) -> SaveCounts {
        let none = SaveCounts { delivered: Some(0), ..SaveCounts::default() };
        self.each.iter().fold(none, |sum, it| sum.plus(&it.counted()))
    }

    fn take_lags(&self) -> Vec<Duration> {
        self.each.iter().flat_map(Ingester::take_lags).collect()
    }

    fn has_ended(&self) -> bool {
        // One that has ended by itself cannot go on, and the others do not do its work.
        self.each.iter().any(Ingester::has_ended)
    }

    fn last_line(&self) -> Option<String> {
        self.each.iter().find_map(Ingester::last_line)
    }

    fn end(self: Box<Self>) -> Result<Consumed, ConsumerError> {
        let Self { each, tables } = *self;
        each.iter().for_each(Ingester::tell_to_stop);
        let parts = each.into_iter().map(Ingester::end).collect::<Result<Vec<_>, _>>()?;
        let consumed = together(parts);
        match tables {
            Some(tables) => tables.count(consumed),
            // What is in the tables is counted where all is.
            None => {
                Ok(Consumed { counted: consumed.saved, counted_dead: consumed.dead_lettered, ..consumed })
            }
        }
    }

    fn leave(self: Box<Self>) {
        let _ = self.end();
    }
}
