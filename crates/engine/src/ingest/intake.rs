//! The thread beside the generator's that has a run's messages taken: a consumer that is there before the first of them, and
//! the wait until each is accounted for.

use super::account::{IngestStage, MessageBalance};
use super::consumer::{Both, Consumed, Consumer, ConsumerError, Counted};
use super::figures::{
    COMMITS, COUNTED, DEAD_LETTERED, DECODE_TIME, FIRST_INSERT, IMBALANCES, INSERT_TIME, PUBLISH_TIME,
    RECEIVE_TIME, SAVE_TIME, SAVED, TOTAL_TIME, UNACKNOWLEDGED, UNPUBLISHED, UNSETTLED,
};
use super::ingested::{Classic, FirstAndLast, Ingested};
use crate::coordinator_message::{ConsumerEnd, CoordinatorMessage, ThreadReport};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;
use weir_clients::PublishTimes;
use weir_metrics::common::{DUPLICATE, LOST, MEDIA, ON_TIME, PLANNED, PLAYED, PLAYING, UNITS};
use weir_metrics::{Counter, Moment, Recorder, Schema};
use weir_shard::clock;

/// How often the counts are looked at.
const LOOK: Duration = Duration::from_millis(2);

/// Makes a consumer; none if it was interrupted before the consumer was there.
pub type MakeConsumer = dyn FnOnce(&AtomicBool) -> Result<Option<Box<dyn Consumer>>, ConsumerError> + Send;

/// A workload that saves, ready to be started.
pub struct Consuming {
    /// Makes the consumer.
    pub make: Box<MakeConsumer>,
    /// What it is to take.
    pub messages: Messages,
}

/// What is known of a run's messages.
#[derive(Clone, Debug)]
pub struct Messages {
    /// Position of the workload that saves them.
    pub workload: u16,
    /// Where the run's publishers leave what they sent.
    pub times: Arc<PublishTimes>,
    /// How many publishers the run has.
    pub publishers: u64,
    /// Messages that they are to publish, if all of them have a count.
    pub count: Option<u64>,
    /// Whether the broker acknowledges what they send.
    pub acknowledges: bool,
    /// The broker as it is called in messages.
    pub broker: String,
    /// How long nothing may come before what is missing is lost.
    pub settle: Duration,
    /// How long nothing may move.
    pub timeout: Duration,
}

/// What the thread shares with the run.
pub(crate) struct IntakeConfig {
    /// One a workload of the run.
    pub(crate) schemas: Vec<Schema>,
    /// Set when the run must end now.
    pub(crate) stop: Arc<AtomicBool>,
    /// Set by Ctrl-C.
    pub(crate) interrupt: Arc<AtomicBool>,
    /// Where intervals go.
    pub(crate) reports: Sender<CoordinatorMessage>,
    /// Number among the threads of the run.
    pub(crate) number: usize,
    /// Receives once whether the consumer is there.
    pub(crate) ready: Sender<Result<(), ConsumerError>>,
    /// Brings the beginning of second 0, and the length of the plan.
    pub(crate) begin: Receiver<(Moment, Duration)>,
}

/// How the waiting ended.
enum Waited {
    Over,
    Stuck(ConsumerError),
}

struct Intake {
    messages: Messages,
    config: IntakeConfig,
    origin: Moment,
    length: Duration,
    second: u32,
    before: Counted,
}

/// Works until all is counted, or the run is over.
pub(crate) fn run(consuming: Consuming, config: IntakeConfig) {
    let Consuming { make, messages } = consuming;
    let consumer = match make(&config.interrupt) {
        Ok(Some(consumer)) => consumer,
        Ok(None) => return,
        Err(trouble) => return drop(config.ready.send(Err(trouble))),
    };
    // A run that is gone needs no consumer.
    let begun = config.ready.send(Ok(())).ok().and_then(|()| config.begin.recv().ok());
    let Some((origin, length)) = begun else { return consumer.leave() };
    let before = Counted::default();
    Intake { messages, config, origin, length, second: 0, before }.work(consumer);
}

impl Intake {
    fn work(mut self, consumer: Box<dyn Consumer>) {
        let waited = self.wait(&*consumer);
        let last = consumer.counted();
        let end = match waited {
            Waited::Stuck(trouble) => {
                consumer.leave();
                ConsumerEnd::Failed(trouble)
            }
            Waited::Over => match consumer.end() {
                Ok(consumed) => ConsumerEnd::Over(Box::new(self.ingested(&consumed))),
                Err(trouble) => ConsumerEnd::Failed(trouble),
            },
        };
        self.report(last, Some(end));
    }

    /// Waits until all is counted: what was published is acknowledged, or will not be; what was received is settled; and
    /// nothing has come for as long as it takes to believe that nothing will.
    fn wait(&mut self, consumer: &dyn Consumer) -> Waited {
        let Messages { settle, timeout, publishers, count, .. } = self.messages;
        let times = self.messages.times.clone();
        let end = self.origin + self.length;
        let (mut before, mut moved) = (None, clock::now());
        let mut unacknowledged = false;
        loop {
            let now = clock::now();
            if self.config.stop.load(Relaxed) {
                return Waited::Over;
            }
            let sent = times.sent.events();
            let ended = publishers > 0 && times.ended.load(Relaxed) >= publishers;
            let published = now >= end || ended || unacknowledged;
            let planned = count.filter(|_| now < end).unwrap_or(sent);
            if sent >= planned && (published || count.is_some()) {
                consumer.published();
            }
            let counted = consumer.counted();
            if now >= self.origin + Duration::from_secs(u64::from(self.second) + 1) {
                self.report(counted, None);
            }
            let state = Some((sent, counted, times.acknowledged.events()));
            if state != before {
                (before, moved) = (state, now);
            }
            if consumer.has_ended() {
                return Waited::Over;
            }
            let quiet = now.since(moved);
            if published && sent < planned && quiet >= settle {
                // The publishers have failed, and their failures say why.
                return Waited::Over;
            }
            let Counted { delivered, settled, duplicate, .. } = counted;
            let stands_still = delivered.is_none_or(|delivered| delivered == settled);
            // All is sent; what is not acknowledged by now will not be.
            unacknowledged |= count.is_some() && sent >= planned && stands_still && quiet >= settle;
            if published {
                let distinct = settled.saturating_sub(duplicate);
                let enough = distinct >= sent && sent >= planned;
                let patience = if enough { settle / 10 } else { consumer.patience(settle, timeout) };
                // More than the publishers sent comes from others, and may never end.
                let too_many = publishers > 0 && distinct > sent;
                if stands_still && delivered.is_some() && (too_many || quiet >= patience || publishers == 0) {
                    return Waited::Over;
                }
            }
            let longest = consumer.longest(timeout);
            if quiet >= longest && (publishers > 0 || now >= end) {
                return Waited::Stuck(stuck(consumer, counted, sent, planned, longest));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// What was counted.
    fn ingested(&self, consumed: &Consumed) -> Ingested {
        let Messages { times, count, broker, acknowledges, publishers, .. } = &self.messages;
        let published = times.sent.events();
        let account = MessageBalance {
            // What other programs published is unknown: what came counts as what they sent.
            planned: count.unwrap_or(if *publishers == 0 { consumed.received } else { published }),
            published: if *publishers == 0 {
                consumed.received.saturating_sub(consumed.duplicate)
            } else {
                published
            },
            acknowledged: times.acknowledgements.load(Relaxed),
            received: consumed.received,
            saved: consumed.saved,
            dead_lettered: consumed.dead_lettered,
            duplicate: consumed.duplicate,
            counted: consumed.counted,
            counted_dead: consumed.counted_dead,
            lost: 0,
        }
        .settled();
        let mut imbalances = account.unpublished(*acknowledges && *publishers > 0, broker);
        let heard = if *publishers == 0 { u64::MAX } else { *publishers };
        imbalances.extend(consumed.imbalances(&account, heard, broker));
        let sent = times.sent.get();
        let since = |span: Both| {
            let (begin, _) = sent.or(consumed.receipts)?;
            let (first, last) = span?;
            let seconds = |at: Moment| at.since(begin).as_secs_f64();
            Some(FirstAndLast { first_seconds: seconds(first), last_seconds: seconds(last) })
        };
        let code = if consumed.code == 0 { i64::from(!imbalances.is_empty()) } else { consumed.code };
        Ingested {
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
            payload_bytes: times.bytes.load(Relaxed),
            table_bytes: consumed.table_bytes,
            durability: consumed.durability.clone(),
            remarks: consumed.remarks.clone(),
        }
    }

    /// Hands out a second's figures, and the last one's with what became of all.
    fn report(&mut self, counted: Counted, end: Option<ConsumerEnd>) {
        let mut figures: Vec<Recorder> =
            self.config.schemas.iter().map(|schema| Recorder::new(*schema)).collect();
        let own = &mut figures[usize::from(self.messages.workload)];
        let last = end.is_some();
        if self.second == 0 {
            [PLANNED, ON_TIME, PLAYED].into_iter().for_each(|counter| own.count(counter, 1));
        }
        own.set(PLAYING, u64::from(!last));
        let of = |now: u64, before: u64| now.saturating_sub(before);
        let (now, before) = (counted, std::mem::replace(&mut self.before, counted));
        match &end {
            // The counts at the end are exact, and include what earlier seconds reported.
            Some(ConsumerEnd::Over(ingested)) => put(own, ingested, before),
            _ => {
                own.count(UNITS, of(now.delivered.unwrap_or_default(), before.delivered.unwrap_or_default()));
                own.count(SAVED, of(now.saved, before.saved));
                own.count(DEAD_LETTERED, of(now.dead_lettered, before.dead_lettered));
                own.count(DUPLICATE, of(now.duplicate, before.duplicate));
            }
        }
        own.count(MEDIA, of(now.bytes, before.bytes));
        let report = ThreadReport {
            shard: self.config.number,
            second: self.second,
            figures,
            failures: Vec::new(),
            deserted: last,
            gaps: Vec::new(),
            client_records: Vec::new(),
            consumer_end: end.map(|end| (self.messages.workload, end)),
            last,
        };
        self.second += 1;
        // A coordinator that is gone needs no report.
        let _ = self.config.reports.send(CoordinatorMessage::Thread(report));
    }
}

/// The final counts of all messages, less what earlier seconds reported.
fn put(own: &mut Recorder, ingested: &Ingested, before: Counted) {
    let account = ingested.account;
    for (counter, number, told) in [
        (UNITS, account.received, before.delivered.unwrap_or_default()),
        (SAVED, account.saved, before.saved),
        (DEAD_LETTERED, account.dead_lettered, before.dead_lettered),
        (DUPLICATE, account.duplicate, before.duplicate),
        (LOST, account.lost, 0),
        (COUNTED, account.counted, 0),
        (COMMITS, ingested.commits, 0),
        (UNPUBLISHED, account.planned.saturating_sub(account.published), 0),
        (UNACKNOWLEDGED, account.published.saturating_sub(account.acknowledged), 0),
        (
            UNSETTLED,
            account.received.saturating_sub(account.saved + account.dead_lettered + account.duplicate),
            0,
        ),
        (IMBALANCES, ingested.imbalances.len() as u64, 0),
    ] {
        own.count(counter, number.saturating_sub(told));
    }
    for (counter, seconds) in times(ingested) {
        own.count(counter, (seconds.unwrap_or_default() * 1e6).round() as u64);
    }
}

/// The times of what became of the messages.
fn times(ingested: &Ingested) -> [(Counter, Option<f64>); 7] {
    let length = |span: &Option<FirstAndLast>| span.map(|span| span.seconds());
    [
        (PUBLISH_TIME, length(&ingested.publish)),
        (RECEIVE_TIME, length(&ingested.receive)),
        (DECODE_TIME, ingested.decode_seconds),
        (SAVE_TIME, ingested.save_seconds),
        (INSERT_TIME, length(&ingested.commit)),
        (TOTAL_TIME, ingested.commit.map(|span| span.last_seconds)),
        (FIRST_INSERT, ingested.commit.map(|span| span.first_seconds)),
    ]
}

/// Stages whose counts have not changed for as long as the patience lasts.
fn stuck(
    consumer: &dyn Consumer,
    counted: Counted,
    sent: u64,
    planned: u64,
    waited: Duration,
) -> ConsumerError {
    let seconds = waited.as_secs_f64();
    let (stage, what) = match counted.delivered {
        _ if sent < planned => {
            (IngestStage::Publish, format!("the broker took {sent} of {planned} messages"))
        }
        Some(delivered) => {
            let wait = delivered.saturating_sub(counted.settled);
            (IngestStage::Table, format!("{wait} messages wait to be saved"))
        }
        None => (IngestStage::Consumer, "its probe has not answered".to_owned()),
    };
    let last = consumer.last_line().map(|line| format!("; {line}")).unwrap_or_default();
    ConsumerError::new(stage, format!("{what}, and nothing has moved for {seconds} s{last}"))
}
