//! A topic as an ingester knows it: its partitions, how far each was looked at, and what lies there.

use super::attempt::identity_in;
use super::failed::Failed;
use super::seen::{GENERATION, Seen};
use super::session::{Leaders, Session, check};
use weir_kafka::{Budget, EARLIEST, ErrorCode, FetchPartition, LATEST, Malformed, read_batches};

/// Records that are read back at the start, spread over the partitions; and of one partition at least.
const LOOK_BACK: i64 = GENERATION as i64;
const LEAST: i64 = 10_000;

/// `max.message.bytes` of a topic of which nothing is said (`TopicConfig`).
const USUAL_LIMIT: usize = 1_048_588;

/// How often nothing may come of what is there to be read.
const PATIENCE: u32 = 20;

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

/// A topic.
#[derive(Debug)]
pub(super) struct Topic {
    pub(super) name: String,
    pub(super) partitions: Vec<Partition>,
    /// Bytes of a batch of records, at most.
    pub(super) limit: usize,
    pub(super) seen: Seen,
}

impl Topic {
    pub(super) fn new(name: String) -> Self {
        Self { name, partitions: Vec::new(), limit: USUAL_LIMIT, seen: Seen::default() }
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

    /// Forgets what lies there.
    pub(super) fn forget_records(&mut self) {
        self.seen.clear();
        self.partitions.iter_mut().for_each(|partition| partition.position = None);
    }

    /// How many records there are: all that lies between the ends of its partitions.
    pub(super) fn count(&self, session: &mut Session) -> Result<u64, Failed> {
        let leaders = self.leaders();
        let mut sum = |time| {
            let offsets = session.offsets(&self.name, &leaders, time)?;
            // Offsets are a server's, and may be any number.
            Ok::<i128, Failed>(offsets.iter().map(|(_, offset)| i128::from(*offset)).sum())
        };
        Ok((sum(LATEST)? - sum(EARLIEST)?).clamp(0, u64::MAX.into()) as u64)
    }

    /// Reads what others have written since the last look: another ingester of this topic, the one before this, or an attempt of this
    /// one whose answer was lost. Costs one small question a broker if that is nothing.
    pub(super) fn catch_up(&mut self, session: &mut Session) -> Result<(), Failed> {
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
        let mut in_vain = 0;
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
            let mut read = false;
            for (leader, partitions) in behind {
                read |= self.read(session, leader, &partitions, &ends)?;
            }
            in_vain = if read { 0 } else { in_vain + 1 };
            if in_vain == PATIENCE {
                return Err(Failed::Away(format!("topic {}: what is there cannot be read", self.name)));
            }
        }
    }

    /// Where the first look begins.
    fn begin(&mut self, session: &mut Session, leaders: &Leaders, ends: &[i64]) -> Result<(), Failed> {
        let share = (LOOK_BACK / ends.len().max(1) as i64).max(LEAST);
        for (number, earliest) in session.offsets(&self.name, leaders, EARLIEST)? {
            if let Some(partition) = self.partitions.get_mut(number as usize)
                && let Some(end) = ends.get(number as usize)
            {
                partition.position.get_or_insert(earliest.max(end.saturating_sub(share)));
            }
        }
        Ok(())
    }

    /// Reads once from partitions of one leader; `false` if nothing came.
    fn read(
        &mut self,
        session: &mut Session,
        leader: i32,
        partitions: &[FetchPartition],
        ends: &[i64],
    ) -> Result<bool, Failed> {
        // What is compressed beyond it is left for the next time.
        let (mut read, mut budget) = (false, Budget::default());
        for fetched in session.fetch(&self.name, leader, partitions)? {
            let Some(partition) = self.partitions.get_mut(fetched.partition as usize) else { continue };
            if fetched.error == ErrorCode::OFFSET_OUT_OF_RANGE {
                // What was there is given up by now.
                partition.position = ends.get(fetched.partition as usize).copied();
                read = true;
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
            let next = next.map_err(|error| {
                let words = format!("topic {}, partition {}: {error}", self.name, fetched.partition);
                match error {
                    Malformed::TooLarge => Failed::Unfit(format!("{words}; name another topic")),
                    _ => Failed::Away(words),
                }
            })?;
            if let Some(next) = next.filter(|next| *next > from) {
                partition.position = Some(next);
                read = true;
            }
        }
        Ok(read)
    }
}
