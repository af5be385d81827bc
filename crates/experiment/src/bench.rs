//! One repetition: tables emptied, a consumer there, everything published, everything counted.

use crate::consumer::{Both, Consumed, Consumer, elsewhere, strangers};
use crate::ingester::Ingester;
use crate::publisher::{self, Published};
use crate::setup::{Encoding, Saving, Setup, Taking};
use crate::streams::{Background, Streams};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_clients::{PublishTimes, Qos};
use weir_engine::experiment::{Account, Classic, Repetition, Stage, Stretch};
use weir_ingest::StoreError;
use weir_metrics::Moment;
use weir_shard::clock;

/// How often the counts are looked at.
const LOOK: Duration = Duration::from_millis(2);

/// What one that has its own patience is waited for beyond it.
const GRACE: Duration = Duration::from_secs(15);

/// An experiment that could not go on: where it stands, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {words}", .stage.name())]
pub struct Trouble {
    /// Where.
    pub stage: Stage,
    /// One line for people.
    pub words: String,
    /// Whether the scenario lacks something that was asked for, a password, and nothing is wrong with who asked.
    pub is_of_scenario: bool,
}

impl Trouble {
    pub(crate) fn new(stage: Stage, words: impl Into<String>) -> Self {
        Self { stage, words: words.into(), is_of_scenario: false }
    }

    pub(crate) fn of_store(stage: Stage, error: &StoreError) -> Self {
        Self { is_of_scenario: matches!(error, StoreError::Locked(_)), ..Self::new(stage, error.to_string()) }
    }
}

/// How far a repetition has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Messages published.
    pub published: u64,
    /// Records saved, dead letters and duplicates included.
    pub settled: u64,
}

/// Makes repetitions.
#[derive(Debug)]
pub struct Bench<'a> {
    setup: &'a Setup,
    /// Tells the sessions of one experiment from those of another.
    name: String,
}

/// How the waiting for a repetition ended.
enum Waited {
    /// All is counted that will come.
    Over,
    /// By Ctrl-C.
    Interrupted,
    /// Nothing moves, or something has failed.
    Stuck(Trouble),
}

impl<'a> Bench<'a> {
    /// For all repetitions of an experiment.
    pub fn new(setup: &'a Setup) -> Self {
        Self { setup, name: format!("weir-{:x}-{:x}", std::process::id(), clock::wall_nanos() / 1_000) }
    }

    /// Measures once, beside bulk streams if there are to be any. `None` if `interrupt` was set before all was counted.
    /// `progress` is called all the while.
    ///
    /// # Errors
    /// A broker, a database or a far end of streams that cannot be reached, refuses, or stands still.
    pub fn measure(
        &self,
        encoding: Encoding,
        repetition: u32,
        background: Option<&Background>,
        interrupt: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Option<Repetition>, Trouble> {
        let of_streams = |words: String| Trouble::new(Stage::Background, words);
        let streams = background.map(Streams::start).transpose().map_err(of_streams)?;
        let measured = self.measure_alone(encoding, repetition, interrupt, progress);
        let carried = streams.map(Streams::end).transpose().map_err(of_streams);
        let Some(repetition) = measured? else { return Ok(None) };
        Ok(Some(Repetition { background: carried?, ..repetition }))
    }

    fn measure_alone(
        &self,
        encoding: Encoding,
        repetition: u32,
        interrupt: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Option<Repetition>, Trouble> {
        let setup = self.setup;
        let at_publish = |words: String| Trouble::new(Stage::Publish, words);
        let times = Arc::new(PublishTimes::default());
        let workload =
            publisher::workload(setup, encoding, &times).map_err(|error| at_publish(error.to_string()))?;
        let Some(consumer) = self.consumer(encoding, repetition, interrupt)? else { return Ok(None) };
        let stop = Arc::new(AtomicBool::new(false));
        let halt = stop.clone();
        let thread = std::thread::Builder::new()
            .name("weir-publish".to_owned())
            .spawn(move || publisher::publish(&*workload, &halt))
            .map_err(|error| at_publish(error.to_string()))?;
        let waited = self.wait(&thread, &*consumer, &times, &stop, interrupt, progress);
        stop.store(true, Relaxed);
        let mut published = thread.join().unwrap_or_default();
        let failure = published.failure.take().map(|words| format!("{}: {words}", setup.broker(encoding)));
        let ended = match (waited, failure) {
            (Waited::Interrupted, _) => Some(Ok(None)),
            (Waited::Stuck(trouble), _) => Some(Err(trouble)),
            (Waited::Over, Some(words)) => Some(Err(at_publish(words))),
            (Waited::Over, None) => None,
        };
        if let Some(ended) = ended {
            consumer.leave();
            return ended;
        }
        let consumed = consumer.end()?;
        Ok(Some(self.repetition(encoding, repetition, &published, &times, consumed)))
    }

    /// Whoever takes the messages, ready for them. `None` if `interrupt` was set before it was.
    fn consumer(
        &self,
        encoding: Encoding,
        repetition: u32,
        interrupt: &AtomicBool,
    ) -> Result<Option<Box<dyn Consumer>>, Trouble> {
        match &self.setup.taking {
            Taking::Ingest(saving) => {
                let ingester = self.ingester(saving, encoding, repetition, interrupt)?;
                Ok(ingester.map(|it| Box::new(it) as Box<dyn Consumer>))
            }
            Taking::Probe(probe) => probe.start(encoding, self.setup.count, self.setup.timeout).map(Some),
        }
    }

    /// An ingester to whose subscription the broker has consented.
    fn ingester(
        &self,
        saving: &Saving,
        encoding: Encoding,
        repetition: u32,
        interrupt: &AtomicBool,
    ) -> Result<Option<Ingester>, Trouble> {
        let client_id = format!("{}-{}-{repetition}", self.name, encoding.name());
        let ingester = Ingester::start(self.setup, saving, encoding, client_id)?;
        let began = clock::now();
        // One that has ended says why at its end.
        while !ingester.is_subscribed() && !ingester.has_ended() {
            if interrupt.load(Relaxed) {
                Box::new(ingester).leave();
                return Ok(None);
            }
            if clock::now().since(began) > self.setup.timeout {
                let broker = self.setup.broker(encoding);
                Box::new(ingester).leave();
                let words = format!("{broker} did not grant the subscription in time");
                return Err(Trouble::new(Stage::Broker, words));
            }
            std::thread::sleep(LOOK);
        }
        if ingester.has_ended() {
            Box::new(ingester).end()?;
            let words = format!("{} ended the session", self.setup.broker(encoding));
            return Err(Trouble::new(Stage::Broker, words));
        }
        Ok(Some(ingester))
    }

    /// What was counted.
    fn repetition(
        &self,
        encoding: Encoding,
        repetition: u32,
        published: &Published,
        times: &PublishTimes,
        consumed: Consumed,
    ) -> Repetition {
        let setup = self.setup;
        let account = Account {
            planned: setup.count,
            published: published.sent,
            acknowledged: published.acknowledged,
            received: consumed.received,
            saved: consumed.saved,
            dead_lettered: consumed.dead_lettered,
            duplicate: consumed.duplicate,
            counted: consumed.counted,
            counted_dead: consumed.counted_dead,
            lost: 0,
        }
        .settled();
        let broker = setup.broker(encoding);
        let mut imbalances = account.unpublished(setup.qos != Qos::AtMostOnce, &broker);
        match &setup.taking {
            Taking::Ingest(saving) => {
                imbalances.extend(strangers(consumed.publishers, consumed.unmarked, &broker));
                imbalances.extend(account.unsettled(&broker, &saving.destination(encoding).to_string()));
            }
            Taking::Probe(probe) => {
                imbalances.extend(elsewhere(account.published, account.counted, &probe.name(encoding)));
            }
        }
        let sent = times.sent.get();
        let since = |stretch: Both| {
            let (begin, _) = sent?;
            let (first, last) = stretch?;
            let seconds = |at: Moment| at.since(begin).as_secs_f64();
            Some(Stretch { first_seconds: seconds(first), last_seconds: seconds(last) })
        };
        let code = if consumed.code == 0 { i64::from(!imbalances.is_empty()) } else { consumed.code };
        Repetition {
            repetition,
            encoding: encoding.name().to_owned(),
            background: None,
            classic: Classic(code, consumed.saved, consumed.milliseconds),
            account,
            imbalances,
            publish: since(sent),
            acknowledge: since(times.acknowledged.get()),
            receive: since(consumed.receipts),
            decode: since(consumed.decodings),
            commit: since(consumed.commits),
            decode_seconds: consumed.decode_seconds,
            save_seconds: consumed.save_seconds,
            commits: consumed.transactions,
            payload_bytes: published.payload_bytes,
            table_bytes: consumed.table_bytes,
            remarks: consumed.remarks,
        }
    }

    /// Waits until all is counted: what was published is acknowledged, or will not be; what was received is settled; and
    /// nothing has come for as long as it takes to believe that nothing will.
    fn wait(
        &self,
        publisher: &JoinHandle<Published>,
        consumer: &dyn Consumer,
        times: &PublishTimes,
        stop_publishing: &AtomicBool,
        interrupt: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Waited {
        let Setup { count, settle, timeout, .. } = *self.setup;
        // Somebody else's consumer may have a wait of its own, of the same length.
        let timeout = if matches!(self.setup.taking, Taking::Probe(_)) { timeout + GRACE } else { timeout };
        let mut before = Progress::default();
        let mut heard = 0;
        let mut moved = clock::now();
        loop {
            let published = publisher.is_finished();
            if published && times.sent.events() >= count {
                consumer.published();
            }
            // What is settled is read first: it is never more than what was delivered by then.
            let settled = consumer.settled();
            let delivered = consumer.delivered();
            let now = Progress { published: times.sent.events(), settled };
            let heard_now = delivered.unwrap_or_default().wrapping_add(times.acknowledged.events());
            if now != before || heard_now != heard {
                (before, heard, moved) = (now, heard_now, clock::now());
            }
            progress(now);
            if interrupt.load(Relaxed) {
                return Waited::Interrupted;
            }
            if consumer.has_ended() {
                return Waited::Over;
            }
            let quiet = clock::now().since(moved);
            if published && now.published < count && quiet >= settle {
                // It has failed, and says why at its end.
                return Waited::Over;
            }
            let stands_still = delivered.is_none_or(|delivered| settled == delivered);
            if published {
                let distinct = consumer.distinct();
                let enough = distinct >= now.published && now.published >= count;
                let patience =
                    if enough { settle / 10 } else { consumer.patience(settle, self.setup.timeout) };
                // More than there can be is somebody else's, and may go on for ever.
                let too_many = distinct > now.published;
                if delivered.is_some() && stands_still && (too_many || quiet >= patience) {
                    return Waited::Over;
                }
            } else if now.published >= count && stands_still && quiet >= settle {
                // All is sent; what is not acknowledged by now will not be.
                stop_publishing.store(true, Relaxed);
            }
            if quiet >= timeout {
                return Waited::Stuck(self.stuck(consumer, now, delivered, timeout));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Who does not move.
    fn stuck(
        &self,
        consumer: &dyn Consumer,
        progress: Progress,
        delivered: Option<u64>,
        waited: Duration,
    ) -> Trouble {
        let Progress { published, settled } = progress;
        let seconds = waited.as_secs_f64();
        let (stage, what) = match delivered {
            _ if published < self.setup.count => {
                let count = self.setup.count;
                (Stage::Publish, format!("the broker took {published} of {count} messages"))
            }
            Some(delivered) => {
                let wait = delivered.saturating_sub(settled);
                (Stage::Table, format!("{wait} messages wait to be saved"))
            }
            None => (Stage::Consumer, "its probe has not answered".to_owned()),
        };
        let last = consumer.last_line().map(|line| format!("; {line}")).unwrap_or_default();
        Trouble::new(stage, format!("{what}, and nothing has moved for {seconds} s{last}"))
    }
}
