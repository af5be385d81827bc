//! A topic as an ingester knows it: its partitions, how far each was looked at, and what lies there.

use super::failed::RequestFailure;
use super::newest_records::{GENERATION, NewestRecords};
use super::record_mark::identity_in;
use super::session::{Leaders, Session, check};
use std::time::{Duration, Instant};
use weir_kafka::{BatchError, Budget, EARLIEST, ErrorCode, FetchPartition, LATEST, Malformed, read_batches};

/// Records that are read back at the start, spread over the partitions; and of one partition at least.
const LOOK_BACK: i64 = GENERATION as i64;
const LEAST: i64 = 10_000;

/// `max.message.bytes` of a topic of which nothing is said (`TopicConfig`).
const USUAL_LIMIT: usize = 1_048_588;

/// How long is read at once. What is left after that is read by the next attempt, which goes on where this one was; in between it is
/// looked at whether all is to end.
const READING: Duration = Duration::from_secs(600);

/// How often nothing may come of what is there to be read.
const MOST_EMPTY_READS: u32 = 20;

/// A partition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Partition {
    /// The broker that leads it.
    pub(super) leader: i32,
    /// Up to here it is known what lies there; `None` before the first look.
    pub(super) position: Option<i64>,
    /// The number of the next record of this producer.
    pub(super) sequence: i32,
}

/// Bytes of a batch of records, at most. Beside the topic's setting there is what its refusals tell: a segment of the log may be
/// smaller (`segment.bytes`), and a broker looks once more at a batch that it has compressed in its own way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    configured: usize,
    /// As far as refusals of several records at once tell.
    several: usize,
    /// As far as refusals of one record tell.
    single: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { configured: USUAL_LIMIT, several: usize::MAX, single: usize::MAX }
    }
}

impl Limits {
    /// Takes the topic's setting, if it is known.
    pub(super) fn set_configured(&mut self, bytes: Option<usize>) {
        self.configured = bytes.unwrap_or(self.configured);
    }

    /// Of records that may go in two batches as well as in one.
    pub(super) fn of_batch(&self) -> usize {
        self.of_record().min(self.several)
    }

    /// Of one record alone.
    pub(super) fn of_record(&self) -> usize {
        self.configured.min(self.single)
    }

    /// Notes that a batch was refused. Halves come to what fits after a few attempts, which one byte less at a time would not; a record
    /// that cannot be cut is refused as it is.
    pub(super) fn refuse(&mut self, records: i32, bytes: usize, may_be_cut: bool) {
        match (records, may_be_cut) {
            (1, false) => self.single = self.single.min(bytes.saturating_sub(1)),
            (1, true) => self.single = self.single.min(bytes / 2),
            _ => self.several = self.several.min(bytes / 2),
        }
    }
}

/// A topic.
#[derive(Debug)]
pub(super) struct Topic {
    pub(super) name: String,
    pub(super) partitions: Vec<Partition>,
    pub(super) limits: Limits,
    pub(super) seen: NewestRecords,
}

impl Topic {
    pub(super) fn new(name: String) -> Self {
        Self { name, partitions: Vec::new(), limits: Limits::default(), seen: NewestRecords::default() }
    }

    /// Notes who leads the partitions, and how many there are.
    pub(super) fn settle(&mut self, leaders: &[i32]) {
        self.partitions.resize(leaders.len(), Partition { leader: 0, position: None, sequence: 0 });
        for (partition, leader) in self.partitions.iter_mut().zip(leaders) {
            partition.leader = *leader;
        }
    }

    /// The partitions by the brokers that lead them.
    pub(super) fn leaders(&self) -> Leaders {
        let mut leaders = Leaders::new();
        for (number, partition) in (0..).zip(&self.partitions) {
            leaders.entry(partition.leader).or_default().push(number);
        }
        leaders
    }

    /// Begins again with a producer of which nothing has been appended.
    pub(super) fn forget_sequences(&mut self) {
        self.partitions.iter_mut().for_each(|partition| partition.sequence = 0);
    }

    /// Up to where it is known what lies in the partitions.
    pub(super) fn positions(&self) -> Vec<Option<i64>> {
        self.partitions.iter().map(|partition| partition.position).collect()
    }

    /// Forgets what lies there.
    pub(super) fn forget_records(&mut self) {
        self.seen.clear();
        self.partitions.iter_mut().for_each(|partition| partition.position = None);
    }

    /// How many records there are: all that lies between the ends of its partitions.
    pub(super) fn count(&self, session: &mut Session) -> Result<u64, RequestFailure> {
        let leaders = self.leaders();
        let mut sum = |time| {
            let offsets = session.offsets(&self.name, &leaders, time)?;
            // Offsets are a server's, and may be any number.
            Ok::<i128, RequestFailure>(offsets.iter().map(|(_, offset)| i128::from(*offset)).sum())
        };
        Ok((sum(LATEST)? - sum(EARLIEST)?).clamp(0, u64::MAX.into()) as u64)
    }

    /// Reads what others have written since the last look: another ingester of this topic, the one before this, or an attempt of this
    /// one whose answer was lost. Costs one small question a broker if that is nothing.
    pub(super) fn catch_up(&mut self, session: &mut Session) -> Result<(), RequestFailure> {
        let leaders = self.leaders();
        let mut ends = vec![0; self.partitions.len()];
        for (partition, offset) in session.offsets(&self.name, &leaders, LATEST)? {
            if let Some(end) = ends.get_mut(partition as usize) {
                *end = offset;
            }
        }
        if self.partitions.iter().any(|partition| partition.position.is_none()) {
            self.begin(session, &leaders, &ends)?;
        }
        // A topic that was deleted and created again ends before.
        for (partition, end) in self.partitions.iter_mut().zip(&ends) {
            partition.position = partition.position.map(|position| position.min(*end));
        }
        let (mut in_vain, began) = (0, Instant::now());
        loop {
            let mut behind = std::collections::BTreeMap::<i32, Vec<FetchPartition>>::new();
            for ((number, partition), end) in (0..).zip(&self.partitions).zip(&ends) {
                if let Some(offset) = partition.position.filter(|position| position < end) {
                    behind
                        .entry(partition.leader)
                        .or_default()
                        .push(FetchPartition { partition: number, offset });
                }
            }
            if behind.is_empty() {
                return Ok(());
            }
            if began.elapsed() > READING {
                let words = format!("topic {}: not all of what is there was read in {READING:?}", self.name);
                return Err(RequestFailure::Away(words));
            }
            let mut read = false;
            for (leader, partitions) in behind {
                read |= self.read(session, leader, &partitions)?;
            }
            // What was there is given up by now: what is left of it is read, or it would not be recognised.
            if self.partitions.iter().any(|partition| partition.position.is_none()) {
                self.begin(session, &leaders, &ends)?;
            }
            in_vain = if read { 0 } else { in_vain + 1 };
            if in_vain == MOST_EMPTY_READS {
                return Err(RequestFailure::Away(format!(
                    "topic {}: what is there cannot be read",
                    self.name
                )));
            }
        }
    }

    /// Where the first look begins.
    fn begin(
        &mut self,
        session: &mut Session,
        leaders: &Leaders,
        ends: &[i64],
    ) -> Result<(), RequestFailure> {
        let share = (LOOK_BACK / ends.len().max(1) as i64).max(LEAST);
        for (number, earliest) in session.offsets(&self.name, leaders, EARLIEST)? {
            if let Some(partition) = self.partitions.get_mut(number as usize)
                && let Some(end) = ends.get(number as usize)
            {
                partition.position.get_or_insert(earliest.max(end.saturating_sub(share)));
            }
        }
        if self.partitions.iter().any(|partition| partition.position.is_none()) {
            return Err(RequestFailure::Away(format!("no answer on all partitions of topic {}", self.name)));
        }
        Ok(())
    }

    /// Reads once from partitions of one leader; `false` if nothing came. A partition that has lost what was next has no position then.
    fn read(
        &mut self,
        session: &mut Session,
        leader: i32,
        partitions: &[FetchPartition],
    ) -> Result<bool, RequestFailure> {
        // What is compressed beyond it is left for the next time.
        let (mut read, mut budget) = (false, Budget::default());
        for fetched in session.fetch(&self.name, leader, partitions)? {
            let Some(partition) = self.partitions.get_mut(fetched.partition as usize) else { continue };
            if fetched.error == ErrorCode::OFFSET_OUT_OF_RANGE {
                partition.position = None;
                continue;
            }
            check(&self.name, fetched.partition, fetched.error)?;
            let from = partition.position.unwrap_or(0);
            let seen = &mut self.seen;
            let next = read_batches(&fetched.records, &mut budget, |record| {
                if record.offset >= from
                    && let Some((identity, hash)) = identity_in(record)
                {
                    seen.insert(identity, hash);
                }
            });
            let next = next.map_err(|error| of_batch(&self.name, fetched.partition, error))?;
            if let Some(next) = next.filter(|next| *next > from) {
                partition.position = Some(next);
                read = true;
            }
        }
        Ok(read)
    }
}

/// What cannot be read. A checksum may be another's for what happened on the way; what is wrong under the right one lies there like this.
fn of_batch(topic: &str, partition: i32, error: BatchError) -> RequestFailure {
    let words = format!("topic {topic}, partition {partition}: {error}");
    match error.reason {
        Malformed::Checksum => RequestFailure::Away(words),
        _ => RequestFailure::Unfit(format!("{words}; name another topic")),
    }
}
