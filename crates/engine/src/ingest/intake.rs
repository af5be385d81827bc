//! The thread beside the generator's that has a run's messages taken: a consumer that is there before the first of them, and
//! the wait until each is accounted for.

use super::account::{IngestStage, MessageBalance};
use super::agent_counts::AgentCounts;
use super::consumer::{Both, Consumed, Consumer, ConsumerError, SaveCounts};
use super::figures::{
    COMMITS, COUNTED, DEAD_LETTERED, DECODE_TIME, FIRST_INSERT, IMBALANCES, INSERT_TIME, LAG, PUBLISH_TIME,
    RECEIVE_TIME, SAVE_TIME, SAVED, TOTAL_TIME, UNACKNOWLEDGED, UNPUBLISHED, UNSETTLED,
};
use super::ingested::{Classic, FirstAndLast, Ingested};
use crate::run::coordinator_message::{ConsumerEnd, CoordinatorMessage, ThreadReport};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;
use weir_clients::PublishTimes;
use weir_metrics::common::{DUPLICATE, LOST, MEDIA, ON_TIME, PLANNED, PLAYED, PLAYING, STARTED, UNITS};
use weir_metrics::{Counter, Moment, Recorder, Schema};
use weir_shard::clock;

/// How often the counts are looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Makes a consumer; none if it was interrupted before the consumer was there.
pub type MakeConsumer =
    dyn FnOnce(&Arc<AtomicBool>) -> Result<Option<Box<dyn Consumer + Send>>, ConsumerError> + Send;

/// A workload that saves, ready to be started.
pub struct Consuming {
    /// Makes the consumer.
    pub make: Box<MakeConsumer>,
    /// What it is to take.
    pub messages: Messages,
}

impl Consuming {
    /// The same with the consumer there; none if it was interrupted before.
    ///
    /// # Errors
    /// Where it stands, and why.
    pub fn ready(self, interrupt: &Arc<AtomicBool>) -> Result<Option<Self>, ConsumerError> {
        let consumer = (self.make)(interrupt)?;
        Ok(consumer.map(|consumer| Self { make: Box::new(|_| Ok(Some(consumer))), ..self }))
    }
}

/// Which of a run's messages a consumer takes.
#[derive(Clone, Debug)]
pub enum Share {
    /// All of them.
    Whole,
    /// Those that come to this agent, until its coordinator says that it is over.
    Part,
    /// All of them, of which agents take theirs: here they are counted together.
    Agents(Arc<AgentCounts>),
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
    /// Which of them are taken here.
    pub share: Share,
    /// How many ingesters take them here.
    pub ingesters: u64,
    /// What the client identifiers of ingesters at agents begin with; empty of another's consumer.
    pub name: String,
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
enum WaitOutcome {
    Over,
    Stuck(ConsumerError),
}

struct Intake {
    messages: Messages,
    config: IntakeConfig,
    origin: Moment,
    length: Duration,
    second: u32,
    before: SaveCounts,
}

/// Works until all is counted, or the run is over.
pub(crate) fn run(consuming: Consuming, config: IntakeConfig) {
    let Consuming { make, messages } = consuming;
    let mut consumer = match make(&config.interrupt) {
        Ok(Some(consumer)) => consumer,
        Ok(None) => return,
        Err(trouble) => return drop(config.ready.send(Err(trouble))),
    };
    // A run that is gone needs no consumer.
    let begun = config.ready.send(Ok(())).ok().and_then(|()| config.begin.recv().ok());
    let Some((origin, length)) = begun else { return consumer.leave() };
    consumer.begin(origin);
    let before = SaveCounts::default();
    Intake { messages, config, origin, length, second: 0, before }.work(consumer);
}

impl Intake {
    fn work(mut self, consumer: Box<dyn Consumer + Send>) {
        let waited = self.wait(&*consumer);
        let (own, lags) = (consumer.own(), consumer.take_lags());
        let end = match waited {
            WaitOutcome::Stuck(trouble) => {
                consumer.leave();
                ConsumerEnd::Failed(trouble)
            }
            WaitOutcome::Over => match consumer.end() {
                Ok(consumed) => ConsumerEnd::Over(Box::new(self.ingested(&consumed))),
                Err(trouble) => ConsumerEnd::Failed(trouble),
            },
        };
        self.report(own, lags, Some(end));
    }

    /// Waits until all is counted: what was published is acknowledged, or will not be; what was received is settled; and
    /// nothing has come for as long as it takes to believe that nothing will.
    fn wait(&mut self, consumer: &dyn Consumer) -> WaitOutcome {
        let Messages { settle, timeout, publishers, count, .. } = self.messages;
        let times = self.messages.times.clone();
        let end = self.origin + self.length;
        let share = self.messages.share.clone();
        let (mut before, mut moved) = (None, clock::now());
        let mut unacknowledged = false;
        loop {
            let now = clock::now();
            if self.config.stop.load(Relaxed) {
                return WaitOutcome::Over;
            }
            let (sent, acknowledged) = match &share {
                Share::Agents(agents) => {
                    let (published, acknowledged, _) = agents.published();
                    (published, acknowledged)
                }
                _ => (times.sent.events(), times.acknowledged.events()),
            };
            let ended = publishers > 0 && times.ended.load(Relaxed) >= publishers;
            let planned = count.filter(|_| now < end).unwrap_or(sent);
            // What is sent at agents is known once a second, and what is acknowledged later still.
            let is_told_late = matches!(share, Share::Agents(_));
            let all_is_sent = is_told_late && count.is_some() && sent >= planned;
            let published = now >= end || ended || unacknowledged || all_is_sent;
            if sent >= planned && (published || count.is_some()) {
                consumer.published();
            }
            let counted = consumer.counted();
            if now >= self.origin + Duration::from_secs(u64::from(self.second) + 1) {
                self.report(consumer.own(), consumer.take_lags(), None);
            }
            let state = Some((sent, counted, acknowledged));
            if state != before {
                (before, moved) = (state, now);
            }
            if consumer.has_ended() {
                return WaitOutcome::Over;
            }
            if matches!(share, Share::Part) {
                std::thread::sleep(POLL_INTERVAL);
                continue;
            }
            let quiet = now.since(moved);
            if published && sent < planned && quiet >= settle {
                // The publishers have failed, and their failures say why.
                return WaitOutcome::Over;
            }
            let SaveCounts { delivered, settled, duplicate, .. } = counted;
            let stands_still = delivered.is_none_or(|delivered| delivered == settled);
            // All is sent; what is not acknowledged by now will not be.
            unacknowledged |= count.is_some() && sent >= planned && stands_still && quiet >= settle;
            if published {
                let distinct = settled.saturating_sub(duplicate);
                let enough = distinct >= sent && sent >= planned;
                let patience = if enough && (!is_told_late || count.is_some()) {
                    settle / 10
                } else {
                    consumer.patience(settle, timeout)
                };
                // More than the publishers sent comes from others, and may never end.
                let too_many = publishers > 0 && distinct > sent;
                let nobody = publishers == 0 && !is_told_late;
                if stands_still && delivered.is_some() && (too_many || quiet >= patience || nobody) {
                    return WaitOutcome::Over;
                }
            }
            let longest = consumer.longest(timeout);
            if quiet >= longest && (publishers > 0 || now >= end) {
                return WaitOutcome::Stuck(stuck(consumer, counted, sent, planned, longest));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// What was counted.
    fn ingested(&self, consumed: &Consumed) -> Ingested {
        let Messages { times, count, broker, acknowledges, publishers, share, .. } = &self.messages;
        let (published, acknowledged, payload_bytes) = match share {
            Share::Agents(agents) => agents.published(),
            _ => (times.sent.events(), times.acknowledgements.load(Relaxed), times.bytes.load(Relaxed)),
        };
        let account = MessageBalance {
            // What other programs published is unknown: what came counts as what they sent.
            planned: count.unwrap_or(if *publishers == 0 { consumed.received } else { published }),
            published: if *publishers == 0 {
                consumed.received.saturating_sub(consumed.duplicate)
            } else {
                published
            },
            acknowledged,
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
            let (begin, _) = match share {
                // Agents have second 0 in common.
                Share::Whole => sent.or(consumed.receipts)?,
                Share::Part | Share::Agents(_) => (self.origin, self.origin),
            };
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
            payload_bytes,
            table_bytes: consumed.table_bytes,
            durability: consumed.durability.clone(),
            remarks: consumed
                .drop_cause
                .iter()
                .filter(|_| account.lost > 0)
                .chain(&consumed.remarks)
                .cloned()
                .collect(),
        }
    }

    /// Hands out a second's figures, and the last one's with what became of all.
    fn report(&mut self, counted: SaveCounts, lags: Vec<Duration>, end: Option<ConsumerEnd>) {
        let mut figures: Vec<Recorder> =
            self.config.schemas.iter().map(|schema| Recorder::new(*schema)).collect();
        let own = &mut figures[usize::from(self.messages.workload)];
        let last = end.is_some();
        let ingesters = match self.messages.share {
            // Theirs are counted there.
            Share::Agents(_) => 0,
            Share::Whole | Share::Part => self.messages.ingesters,
        };
        if self.second == 0 {
            [PLANNED, STARTED, ON_TIME, PLAYED].into_iter().for_each(|counter| own.count(counter, ingesters));
        }
        own.set(PLAYING, if last { 0 } else { ingesters });
        lags.into_iter().for_each(|lag| own.record(LAG, lag.as_micros() as u64));
        let of = |now: u64, before: u64| now.saturating_sub(before);
        let (now, before) = (counted, std::mem::replace(&mut self.before, counted));
        match &end {
            // The counts at the end are exact, and include what earlier seconds reported.
            Some(ConsumerEnd::Over(ingested)) => put(own, ingested, before, &self.messages.share),
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
            tracks: Vec::new(),
            client_records: Vec::new(),
            consumer_end: end.map(|end| (self.messages.workload, end)),
            last,
        };
        self.second += 1;
        // A coordinator that is gone needs no report.
        let _ = self.config.reports.send(CoordinatorMessage::Thread(report));
    }
}

/// The final counts of all messages, less what earlier seconds reported, here or at agents.
fn put(own: &mut Recorder, ingested: &Ingested, before: SaveCounts, share: &Share) {
    let account = ingested.account;
    let (before, commits) = match share {
        Share::Agents(agents) => (before.plus(&agents.counted()), agents.work().commits),
        Share::Whole | Share::Part => (before, 0),
    };
    let settled = account.saved + account.dead_lettered + account.duplicate;
    for (counter, number, told) in [
        (UNITS, account.received, before.delivered.unwrap_or_default()),
        (SAVED, account.saved, before.saved),
        (DEAD_LETTERED, account.dead_lettered, before.dead_lettered),
        (DUPLICATE, account.duplicate, before.duplicate),
        (COMMITS, ingested.commits, commits),
    ] {
        own.count(counter, number.saturating_sub(told));
    }
    let of_part = [DECODE_TIME, SAVE_TIME];
    for (counter, seconds) in times(ingested) {
        let is_told_here = match share {
            Share::Whole => true,
            Share::Part => of_part.contains(&counter),
            Share::Agents(_) => !of_part.contains(&counter),
        };
        if is_told_here {
            own.count(counter, (seconds.unwrap_or_default() * 1e6).round() as u64);
        }
    }
    if matches!(share, Share::Part) {
        // Whether all comes out even is known where all is counted.
        return;
    }
    for (counter, number) in [
        (LOST, account.lost),
        (COUNTED, account.counted),
        (UNPUBLISHED, account.planned.saturating_sub(account.published)),
        (UNACKNOWLEDGED, account.published.saturating_sub(account.acknowledged)),
        (UNSETTLED, account.received.saturating_sub(settled)),
        (IMBALANCES, ingested.imbalances.len() as u64),
    ] {
        own.count(counter, number);
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
    counted: SaveCounts,
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
