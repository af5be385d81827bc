//! Kafka: a row is a record of a topic, a dead letter one of `TOPIC_dead`.
//!
//! A log has no index. What lies in it is known by reading: the newest records when it is opened, then what others have
//! written before each batch of one's own. A batch is produced with `acks=all` by a producer with a number, and if the
//! answer is lost, the same bytes are sent again, which a broker appends once. There are no transactions: a reader with the
//! settings of Kafka's own clients would see what was aborted, and count it.

mod access;
mod attempt;
mod cluster;
mod connection;
mod failed;
mod link;
mod login;
mod newest_records;
mod record_mark;
#[cfg(test)]
mod scripted;
mod session;
#[cfg(test)]
mod tests;
mod topic;

pub use cluster::Cluster;

use self::attempt::{BatchRounds, Packing, Rejection, TooLarge};
use self::failed::RequestFailure;
use self::newest_records::{Generation, Novelty};
use self::session::Session;
use self::topic::Topic;
use super::json_row;
use super::{Contents, Part, SaveOutcome, Saved, Store};
use crate::batch::{Batch, DeadLetter};
use crate::column::Table;
use crate::decode::Decode;
use crate::error::StoreError;
use crate::rows::Cell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use weir_kafka::{ErrorCode, ProducerId, TopicBatches};

/// How long a cluster that has just started, or a topic that was just created, may take to be ready.
const SETTLING: Duration = Duration::from_secs(10);
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(50);

/// The two topics.
const ROWS: usize = 0;
const DEAD: usize = 1;

/// A topic of rows with that of its dead letters.
pub(crate) struct Kafka {
    cluster: Cluster,
    table: Table,
    /// Whether a value is a payload as it came. A schema of one field of bytes that is called `payload` looks the same, and means the
    /// same.
    is_raw: bool,
    topics: [Topic; 2],
    producer: Option<ProducerId>,
    session: Option<Session>,
    /// What was wrong when there was no session.
    away: Option<StoreError>,
    /// What was sent, and is not known to be there.
    attempt: Option<Attempt>,
}

/// A part of a batch on its way.
struct Attempt {
    part: Part,
    rounds: BatchRounds,
    /// BatchRounds that are known to be there. Of each partition only one batch is ever sent again: a broker knows the last five of a
    /// producer, and refuses those from before.
    done: usize,
    generations: [Generation; 2],
    /// The numbers of the next records, by partition.
    sequences: [Vec<i32>; 2],
    /// Up to where it is known what lies in the partitions, once this is known to be there. The topics have it with the records of
    /// this attempt and not before: of an attempt that is given up, what was appended is read back.
    positions: [Vec<Option<i64>>; 2],
    saved: Saved,
}

impl Kafka {
    pub(crate) fn new(cluster: Cluster, table: Table) -> Self {
        let cluster = if cluster.topic().is_some() { cluster } else { cluster.with_topic(&table.name) };
        let name = cluster.topic().unwrap_or_default().to_owned();
        let dead = format!("{name}_dead");
        let is_raw = table.columns == Decode::raw().columns();
        let topics = [name, dead].map(Topic::new);
        Self { cluster, table, is_raw, topics, producer: None, session: None, away: None, attempt: None }
    }

    /// What an error is to who saves.
    fn sort(&self, failed: RequestFailure) -> StoreError {
        let cluster = &self.cluster;
        match failed {
            RequestFailure::Away(words) => StoreError::Unavailable(format!("{cluster}: {words}")),
            RequestFailure::Closed => StoreError::Unavailable(format!("{cluster}: {}", failed::CLOSED)),
            RequestFailure::AccessDenied(words) => StoreError::AccessDenied(format!("{cluster}: {words}")),
            RequestFailure::Unfit(words) => StoreError::Unfit(format!("{cluster}: {words}")),
            RequestFailure::Refused(what, code) => {
                let words = format!("{cluster}: {what}: {code}");
                match code {
                    ErrorCode::TOPIC_AUTHORIZATION_FAILED | ErrorCode::CLUSTER_AUTHORIZATION_FAILED => {
                        StoreError::Unfit(format!("{words}; {}", self.permission()))
                    }
                    ErrorCode::INVALID_TOPIC_EXCEPTION
                    | ErrorCode::INVALID_TIMESTAMP
                    | ErrorCode::INVALID_RECORD
                    | ErrorCode::POLICY_VIOLATION => StoreError::Unfit(words),
                    _ => StoreError::Unavailable(words),
                }
            }
        }
    }

    /// What gives the user the rights that are needed, on both topics.
    fn permission(&self) -> String {
        format!(
            "allow it: kafka-acls.sh --add --allow-principal User:{} --operation Read --operation Write --operation Create \
             --operation DescribeConfigs --topic {} --resource-pattern-type prefixed",
            self.cluster.user().unwrap_or("ANONYMOUS"),
            self.topics[ROWS].name
        )
    }

    /// Connects, and does so again while the cluster is only not ready yet: it has just started, or its topics are new.
    fn begin(&mut self) -> Result<(), RequestFailure> {
        let began = Instant::now();
        loop {
            match self.connect() {
                Err(RequestFailure::Refused(_, code))
                    if code.is_transient() && began.elapsed() < SETTLING =>
                {
                    std::thread::sleep(BETWEEN_ATTEMPTS);
                }
                outcome => return outcome,
            }
        }
    }

    /// Finds the topics or creates them, and reads what lies there.
    fn connect(&mut self) -> Result<(), RequestFailure> {
        self.session = None;
        let mut session = Session::open(&self.cluster)?;
        let [rows, dead] = &self.topics;
        let leaders = session.leaders([&rows.name, &dead.name], true)?;
        for (topic, leaders) in self.topics.iter_mut().zip(leaders) {
            topic.settle(&leaders);
            topic.limits.set_configured(session.limit(&topic.name)?);
        }
        self.producer(&mut session)?;
        for topic in &mut self.topics {
            topic.catch_up(&mut session)?;
        }
        self.session = Some(session);
        Ok(())
    }

    /// The producer, a new one if there is none.
    fn producer(&mut self, session: &mut Session) -> Result<ProducerId, RequestFailure> {
        if let Some(producer) = self.producer {
            return Ok(producer);
        }
        let producer = session.producer()?;
        self.topics.iter_mut().for_each(Topic::forget_sequences);
        Ok(*self.producer.insert(producer))
    }

    /// Puts into batches what of a part is not there yet.
    fn pack(&self, batch: &Batch, part: &Part, producer: ProducerId) -> Result<Attempt, StoreError> {
        let (mut saved, mut rounds) = (Saved::default(), BatchRounds::default());
        let [rows, dead] = &self.topics;
        let mut packing = Packing::new(ROWS, rows, producer, &mut rounds);
        let mut json = String::new();
        for row in part.rows.clone() {
            let mut cells = batch.cells(row);
            let value = match (self.is_raw, cells.next()) {
                (true, Some(Cell::Bytes(payload))) => payload,
                _ => {
                    json.clear();
                    json_row::write(&self.table.columns, batch.cells(row), &mut json);
                    json.as_bytes()
                }
            };
            let added = packing.add(&batch.source(row), value, None);
            let novelty = added.map_err(|TooLarge { size, limit }| {
                StoreError::Refused(format!(
                    "a record of {size} bytes; topic {} takes {limit} (max.message.bytes, segment.bytes)",
                    rows.name
                ))
            })?;
            saved.count(outcome(novelty), true);
        }
        let (new_rows, row_sequences) = packing.finish();
        let mut packing = Packing::new(DEAD, dead, producer, &mut rounds);
        for DeadLetter { source, reason, payload, size } in batch.dead_letters(part.dead.clone()) {
            let rejection = Rejection { reason, size };
            // What is too large is cut.
            if let Ok(novelty) = packing.add(&source, payload, Some(rejection)) {
                saved.count(outcome(novelty), false);
            }
        }
        let (new_dead, dead_sequences) = packing.finish();
        Ok(Attempt {
            part: part.clone(),
            rounds,
            done: 0,
            generations: [new_rows, new_dead],
            sequences: [row_sequences, dead_sequences],
            positions: self.topics.each_ref().map(Topic::positions),
            saved,
        })
    }

    /// Appends what was packed. What was appended before, by the same bytes, is not appended again.
    fn append(&mut self, session: &mut Session, attempt: &mut Attempt) -> Result<(), RequestFailure> {
        while let Some(round) = attempt.rounds.0.get(attempt.done) {
            let mut by_leader = BTreeMap::<i32, Vec<TopicBatches<'_>>>::new();
            let names = self.topics.each_ref().map(|topic| topic.name.clone());
            for sealed in round {
                let Some(partition) = self.topics[sealed.topic].partitions.get(sealed.partition) else {
                    return Err(RequestFailure::Away("a topic has fewer partitions than before".to_owned()));
                };
                let topics = by_leader.entry(partition.leader).or_default();
                let batch = (sealed.partition as i32, &*sealed.bytes);
                let name = names[sealed.topic].as_str();
                match topics.iter_mut().find(|topic| topic.topic == name) {
                    Some(topic) => topic.batches.push(batch),
                    None => topics.push(TopicBatches { topic: name, batches: vec![batch] }),
                }
            }
            let appended = session.produce(&by_leader)?;
            let mut failed = None;
            for sealed in round {
                let topic = &mut self.topics[sealed.topic];
                let answer = appended
                    .iter()
                    .find(|it| *it.topic == *topic.name && it.partition as usize == sealed.partition);
                let Some(answer) = answer else {
                    return Err(RequestFailure::Away(format!("no answer on topic {}", topic.name)));
                };
                let position = attempt.positions[sealed.topic].get_mut(sealed.partition);
                match (answer.error, position) {
                    // PeerGone else wrote in between: what lies there is known.
                    (ErrorCode::NONE, Some(position)) if *position == Some(answer.offset) => {
                        *position = Some(answer.offset.saturating_add(sealed.records.into()));
                    }
                    (ErrorCode::NONE | ErrorCode::DUPLICATE_SEQUENCE_NUMBER, _) => {}
                    (ErrorCode::MESSAGE_TOO_LARGE | ErrorCode::RECORD_LIST_TOO_LARGE, _) => {
                        topic.limits.refuse(sealed.records, sealed.bytes.len(), sealed.topic == DEAD);
                        failed = Some((sealed, answer.error));
                    }
                    (error, _) => failed = Some((sealed, error)),
                }
            }
            if let Some((sealed, error)) = failed {
                session::check(&self.topics[sealed.topic].name, sealed.partition as i32, error)?;
            }
            attempt.done += 1;
        }
        Ok(())
    }

    fn write(&mut self, session: &mut Session, batch: &Batch, part: &Part) -> Result<Saved, StoreError> {
        let mut attempt = match self.attempt.take() {
            Some(mut attempt)
                if part.again && attempt.part.rows == part.rows && attempt.part.dead == part.dead =>
            {
                // What was appended is read by now.
                attempt.positions = self.topics.each_ref().map(Topic::positions);
                attempt
            }
            other => {
                if other.is_some() {
                    // Its numbers may be used.
                    self.producer = None;
                }
                let producer = self.producer(session).map_err(|failed| self.sort(failed))?;
                for (topic, is_wanted) in
                    self.topics.iter_mut().zip([!part.rows.is_empty(), !part.dead.is_empty()])
                {
                    if is_wanted && let Err(failed) = topic.catch_up(session) {
                        return Err(self.sort(failed));
                    }
                }
                self.pack(batch, part, producer)?
            }
        };
        if let Err(failed) = self.append(session, &mut attempt) {
            if is_end_of_producer(&failed) {
                self.producer = None;
            } else {
                self.attempt = Some(attempt);
            }
            return Err(self.sort(failed));
        }
        let known = attempt.generations.into_iter().zip(attempt.sequences).zip(attempt.positions);
        for (topic, ((generation, sequences), positions)) in self.topics.iter_mut().zip(known) {
            topic.seen.absorb(generation);
            let known = sequences.into_iter().zip(positions);
            for (partition, (sequence, position)) in topic.partitions.iter_mut().zip(known) {
                (partition.sequence, partition.position) = (sequence, position);
            }
        }
        Ok(attempt.saved)
    }

    fn not_connected(&self) -> StoreError {
        let unknown = || StoreError::Unavailable(format!("{}: not connected", self.cluster));
        self.away.clone().unwrap_or_else(unknown)
    }

    /// Gives up all records.
    fn empty(&mut self) -> Result<(), RequestFailure> {
        let mut session = Session::open(&self.cluster)?;
        let [rows, dead] = &self.topics;
        let leaders = session.leaders([&rows.name, &dead.name], false)?;
        for (topic, leaders) in self.topics.iter_mut().zip(leaders) {
            topic.settle(&leaders);
            session.delete_records(&topic.name, &topic.leaders())?;
            topic.forget_records();
        }
        Ok(())
    }
}

/// Whether the same bytes can never be appended any more: another attempt is packed again, after what is there was read.
fn is_end_of_producer(failed: &RequestFailure) -> bool {
    matches!(
        failed,
        RequestFailure::Refused(
            _,
            ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER
                | ErrorCode::INVALID_PRODUCER_EPOCH
                | ErrorCode::UNKNOWN_PRODUCER_ID
                | ErrorCode::MESSAGE_TOO_LARGE
                | ErrorCode::RECORD_LIST_TOO_LARGE
        )
    )
}

fn outcome(novelty: Novelty) -> SaveOutcome {
    match novelty {
        Novelty::New => SaveOutcome::Kept,
        Novelty::Conflict => SaveOutcome::KeptBeside,
        Novelty::Known => SaveOutcome::Duplicate,
    }
}

impl Store for Kafka {
    fn open(&mut self) -> Result<(), StoreError> {
        let opened = self.begin().map_err(|failed| self.sort(failed));
        self.away = opened.clone().err();
        opened
    }

    fn save(&mut self, batch: &Batch, part: &Part) -> Result<Saved, StoreError> {
        let Some(mut session) = self.session.take() else { return Err(self.not_connected()) };
        let outcome = self.write(&mut session, batch, part);
        // After any other failure an answer to this question may still come, and would be taken for that to the next.
        if matches!(outcome, Ok(_) | Err(StoreError::Refused(_))) {
            self.session = Some(session);
        }
        outcome
    }

    fn clear(&mut self) -> Result<(), StoreError> {
        self.empty().map_err(|failed| self.sort(failed))
    }

    fn contents(&mut self) -> Result<Contents, StoreError> {
        let Some(session) = &mut self.session else { return Err(self.not_connected()) };
        let [rows, dead] = &self.topics;
        let counted = rows.count(session).and_then(|rows| Ok((rows, dead.count(session)?)));
        let (rows, dead) = counted.map_err(|failed| self.sort(failed))?;
        Ok(Contents { rows, dead, bytes: 0 })
    }

    fn name(&self) -> String {
        self.cluster.to_string()
    }
}
