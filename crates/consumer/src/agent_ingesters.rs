//! Ingesters at agents, as the coordinator of the run sees them: what they counted is added up, the tables are asked what is in
//! them, and the session of an ingester whose agent was lost is taken over here, so that what the broker holds for it is saved.

use crate::attendant::{Attendant, Say};
use crate::ingester::{Ingester, MakeIngester};
use crate::ingesters::{CountedTables, started, together};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use weir_engine::ingest::{
    AgentCounts, Consumed, Consumer, ConsumerError, IngestStage, MakeConsumer, RowStore, SaveCounts,
};
use weir_metrics::{Moment, several};
use weir_shard::clock;

/// How long agents may take to end their parts after they were told to.
const END_WITHIN: Duration = Duration::from_secs(20);

/// How often it is looked whether they have.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Those at agents, and those that took over here.
struct AgentIngesters {
    make: Box<MakeIngester>,
    agents: Arc<AgentCounts>,
    /// Ingesters of this process, in the place of those that were lost.
    successors: RefCell<Vec<Ingester>>,
    /// Why one that should have taken over could not begin.
    trouble: RefCell<Option<ConsumerError>>,
    tables: CountedTables,
    /// How the tables are called.
    place: String,
    /// When second 0 of the run began, which agents' times are told by.
    origin: Moment,
}

/// Makes the tables ready, and what counts for all agents. `say` takes what is waited for, every ten seconds.
pub fn agent_ingesters(
    make: Box<MakeIngester>,
    empty: bool,
    agents: Arc<AgentCounts>,
    say: Say,
) -> Box<MakeConsumer> {
    Box::new(move |interrupt| {
        let (settings, decode) = make(0).map_err(|words| ConsumerError::new(IngestStage::Ingest, words))?;
        let attendant = Attendant::new(interrupt.clone(), say);
        let tables = match CountedTables::open(&settings, &decode, empty, attendant) {
            Err(_) if interrupt.load(Relaxed) => return Ok(None),
            tables => tables?,
        };
        let place = settings.destination.to_string();
        Ok(Some(Box::new(AgentIngesters {
            make,
            agents,
            successors: RefCell::default(),
            trouble: RefCell::default(),
            tables,
            place,
            origin: clock::now(),
        })))
    })
}

impl Consumer for AgentIngesters {
    fn begin(&mut self, origin: Moment) {
        self.origin = origin;
    }

    fn counted(&self) -> SaveCounts {
        for number in self.agents.take_lost() {
            match started(&*self.make, number) {
                Ok(successor) => self.successors.borrow_mut().push(successor),
                Err(error) => *self.trouble.borrow_mut() = Some(error),
            }
        }
        self.agents.counted().plus(&self.own())
    }

    fn own(&self) -> SaveCounts {
        let none = SaveCounts { delivered: Some(0), ..SaveCounts::default() };
        self.successors.borrow().iter().fold(none, |sum, it| sum.plus(&it.counted()))
    }

    fn take_lags(&self) -> Vec<Duration> {
        self.successors.borrow().iter().flat_map(Ingester::take_lags).collect()
    }

    fn has_ended(&self) -> bool {
        self.agents.have_ended()
            || self.trouble.borrow().is_some()
            || self.successors.borrow().iter().any(Ingester::has_ended)
    }

    fn last_line(&self) -> Option<String> {
        self.successors.borrow().iter().find_map(Ingester::last_line)
    }

    fn end(self: Box<Self>) -> Result<Consumed, ConsumerError> {
        self.agents.ask_for_end();
        let began = clock::now();
        while !self.agents.have_ended() && clock::now().since(began) < END_WITHIN {
            std::thread::sleep(POLL_INTERVAL);
        }
        // Those that were lost only now.
        self.counted();
        let Self { agents, successors, trouble, tables, place, origin, .. } = *self;
        if let Some(error) = trouble.into_inner() {
            return Err(error);
        }
        let successors = successors.into_inner();
        let took_over = successors.len() as u64;
        successors.iter().for_each(Ingester::tell_to_stop);
        let own = successors.into_iter().map(Ingester::end).collect::<Result<Vec<_>, _>>()?;
        let (counted, work) = (agents.counted(), agents.work());
        let [receipts, decodings, commits] = work.spans_since(origin);
        let theirs = Consumed {
            received: counted.delivered.unwrap_or_default(),
            saved: counted.saved,
            dead_lettered: counted.dead_lettered,
            duplicate: counted.duplicate,
            transactions: work.commits,
            decode_seconds: Some(work.decode.as_secs_f64()),
            save_seconds: Some(work.save.as_secs_f64()),
            receipts,
            decodings,
            commits,
            ..Consumed::nothing(RowStore::Own(place))
        };
        let consumed = tables.count(together(std::iter::once(theirs).chain(own)))?;
        Ok(if work.losses == 0 { consumed } else { by_the_tables(consumed, work.losses, took_over) })
    }

    fn leave(self: Box<Self>) {
        let _ = self.end();
    }
}

/// What a lost agent had committed and not reported any more is in the tables, and in nobody's counts.
fn by_the_tables(consumed: Consumed, losses: u64, took_over: u64) -> Consumed {
    let Consumed { counted, counted_dead, saved, dead_lettered, duplicate, .. } = consumed;
    let unreported = (counted + counted_dead).saturating_sub(saved + dead_lettered);
    let mut remarks = consumed.remarks;
    remarks.push(format!(
        "the sessions of {} of {} were taken over here; {} that had been saved and not reported are counted by the table",
        several(took_over, "ingester"),
        several(losses, "lost agent"),
        several(unreported, "message"),
    ));
    Consumed {
        saved: counted,
        dead_lettered: counted_dead,
        received: counted + counted_dead + duplicate,
        remarks,
        ..consumed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_lost_agent_did_not_report_any_more_is_counted_by_the_table() {
        let consumed = Consumed {
            received: 70,
            saved: 60,
            counted: 90,
            counted_dead: 3,
            dead_lettered: 2,
            duplicate: 5,
            ..Consumed::nothing(RowStore::Own("t".to_owned()))
        };
        let sum = by_the_tables(consumed, 1, 2);
        assert_eq!((sum.saved, sum.dead_lettered, sum.received), (90, 3, 98));
        assert!(sum.remarks[0].contains("31 messages that had been saved"), "{:?}", sum.remarks);
    }
}
