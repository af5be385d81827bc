//! What a batch of rows is in Kafka: records for partitions, in the very bytes that are sent again if the answer is lost.

use super::newest_records::{Generation, Novelty};
use super::record_mark::{PAYLOAD_HASH, PUBLISHER, RECORD, SEQUENCE_NUMBER, identity_of};
use super::topic::Topic;
use crate::batch::RowSource;
use std::fmt::Write;
use weir_kafka::{ProducerId, Record, RecordBatch, partition_of};

/// A batch of records that is to be appended to a partition.
pub(super) struct SealedBatch {
    /// Of the two topics, which one.
    pub(super) topic: usize,
    pub(super) partition: usize,
    pub(super) records: i32,
    pub(super) bytes: Vec<u8>,
}

/// Batches on their way, in rounds: each round has one batch a partition at most, as a request may.
#[derive(Default)]
pub(super) struct BatchRounds(pub(super) Vec<Vec<SealedBatch>>);

/// Records of one topic that are being put into batches.
pub(super) struct Packing<'a> {
    index: usize,
    topic: &'a Topic,
    producer: ProducerId,
    partitions: Vec<PartitionRecords>,
    rounds: &'a mut BatchRounds,
    texts: Texts,
    /// Those of this batch.
    pub(super) generation: Generation,
}

/// What of a partition is packed.
struct PartitionRecords {
    batch: RecordBatch,
    /// The number of its first record.
    sequence: i32,
    sealed: usize,
}

/// Headers as texts, in memory that is used again.
#[derive(Default)]
struct Texts {
    publisher: String,
    sequence_number: String,
    record: String,
    received: String,
    hash: String,
    size: String,
}

/// A record that is larger than its topic takes: bytes that it has, and that there may be.
pub(super) struct TooLarge {
    pub(super) size: usize,
    pub(super) limit: usize,
}

/// What a dead letter has beside.
#[derive(Clone, Copy)]
pub(super) struct Rejection<'a> {
    pub(super) reason: &'a str,
    pub(super) size: u64,
}

impl<'a> Packing<'a> {
    pub(super) fn new(
        index: usize,
        topic: &'a Topic,
        producer: ProducerId,
        rounds: &'a mut BatchRounds,
    ) -> Self {
        let packed = |sequence| PartitionRecords { batch: RecordBatch::default(), sequence, sealed: 0 };
        let partitions = topic.partitions.iter().map(|it| packed(it.sequence)).collect();
        let (texts, generation) = (Texts::default(), Generation::default());
        Self { index, topic, producer, partitions, rounds, texts, generation }
    }

    /// Adds a record, unless it is there.
    ///
    /// # Errors
    /// It is too large. The value of a dead letter is cut instead.
    pub(super) fn add(
        &mut self,
        source: &RowSource<'_>,
        value: &[u8],
        rejection: Option<Rejection<'_>>,
    ) -> Result<Novelty, TooLarge> {
        let identity = identity_of(source);
        let novelty = match identity {
            Some((identity, hash)) => self.topic.seen.find(&self.generation, identity, hash),
            // What has no mark is never taken for a repetition.
            None => Novelty::New,
        };
        if novelty == Novelty::Known {
            return Ok(novelty);
        }
        self.texts.fill(source, rejection);
        let headers = self.texts.headers(source, novelty, rejection);
        let key = if source.origin.is_some() { &self.texts.publisher } else { source.topic };
        let mut record =
            Record { time: source.received / 1_000, key: key.as_bytes(), value, headers: &headers };
        let partition = partition_of(record.key, self.partitions.len());
        let packed = &mut self.partitions[partition];
        if packed.batch.size_with(&record) > self.topic.limits.of_batch() {
            packed.seal(self.index, partition, self.producer, self.rounds);
            let limit = self.topic.limits.of_record();
            let size = packed.batch.size_with(&record);
            if size > limit {
                if rejection.is_none() {
                    return Err(TooLarge { size, limit });
                }
                record.value = &value[..value.len().saturating_sub(size - limit)];
            }
        }
        packed.batch.push(&record);
        if let Some((identity, hash)) = identity {
            self.generation.insert(identity, hash);
        }
        Ok(novelty)
    }

    /// Ends it; returns what is new, and the numbers that the next records of the partitions have.
    pub(super) fn finish(mut self) -> (Generation, Vec<i32>) {
        for (partition, packed) in self.partitions.iter_mut().enumerate() {
            packed.seal(self.index, partition, self.producer, self.rounds);
        }
        (self.generation, self.partitions.iter().map(|packed| packed.sequence).collect())
    }
}

impl PartitionRecords {
    /// Ends the batch, if there is something in it.
    fn seal(&mut self, topic: usize, partition: usize, producer: ProducerId, rounds: &mut BatchRounds) {
        if self.batch.is_empty() {
            return;
        }
        let batch = std::mem::take(&mut self.batch);
        let records = batch.len();
        let bytes = batch.finish(producer, self.sequence);
        // Behind the highest number comes 0 (`DefaultRecordBatch.incrementSequence`).
        self.sequence = (i64::from(self.sequence) + i64::from(records)) as i32 & i32::MAX;
        if rounds.0.len() <= self.sealed {
            rounds.0.push(Vec::new());
        }
        rounds.0[self.sealed].push(SealedBatch { topic, partition, records, bytes });
        self.sealed += 1;
    }
}

impl Texts {
    fn fill(&mut self, source: &RowSource<'_>, rejection: Option<Rejection<'_>>) {
        let Self { publisher, sequence_number, record, received, hash, size } = self;
        for text in [&mut *publisher, sequence_number, record, received, hash, size] {
            text.clear();
        }
        // Writing to memory does not fail.
        let _ = write!(record, "{}", source.record);
        let _ = write!(received, "{}", source.received);
        if let Some(origin) = source.origin {
            let _ = write!(publisher, "{}", origin.publisher);
            let _ = write!(sequence_number, "{}", origin.sequence_number);
        }
        if let Some(known) = &source.hash {
            for digit in known.0.iter().flat_map(|byte| [byte >> 4, byte & 0xF]) {
                hash.push(char::from_digit(digit.into(), 16).unwrap_or('0'));
            }
        }
        if let Some(rejection) = rejection {
            let _ = write!(size, "{}", rejection.size);
        }
    }

    /// The headers of a record: what other stores have as columns, by the same names.
    fn headers<'a>(
        &'a self,
        source: &RowSource<'a>,
        novelty: Novelty,
        rejection: Option<Rejection<'a>>,
    ) -> Vec<(&'static str, &'a [u8])> {
        let mut headers: Vec<(&str, &[u8])> = Vec::with_capacity(9);
        headers.push(("topic", source.topic.as_bytes()));
        if source.origin.is_some() {
            headers.push((PUBLISHER, self.publisher.as_bytes()));
            headers.push((SEQUENCE_NUMBER, self.sequence_number.as_bytes()));
        }
        headers.push((RECORD, self.record.as_bytes()));
        headers.push(("received", self.received.as_bytes()));
        if source.hash.is_some() {
            headers.push((PAYLOAD_HASH, self.hash.as_bytes()));
        }
        if novelty == Novelty::Conflict {
            headers.push(("conflict", b"true"));
        }
        if let Some(rejection) = rejection {
            headers.push(("reason", rejection.reason.as_bytes()));
            headers.push(("size", self.size.as_bytes()));
        }
        headers
    }
}

#[cfg(test)]
mod tests {
    use super::super::record_mark::identity_in;
    use super::*;
    use crate::inbound::Origin;
    use crate::payload_hash::PayloadHash;
    use weir_kafka::{Budget, ErrorCode, read_batches};

    const PRODUCER: ProducerId = ProducerId { error: ErrorCode::NONE, id: 1, epoch: 0 };

    fn topic(limit: usize) -> Topic {
        let mut topic = Topic::new("t".to_owned());
        topic.limits.set_configured(Some(limit));
        topic.settle(&[1, 1]);
        topic
    }

    fn source(sequence_number: u64) -> RowSource<'static> {
        let origin = Some(Origin { publisher: 9, sequence_number });
        let hash = Some(PayloadHash::of(b"p", 0));
        RowSource { topic: "a/b", origin, record: 3, received: 5_000_001, hash }
    }

    #[test]
    fn what_is_packed_is_recognised_when_it_is_read_back() {
        let (topic, mut rounds) = (topic(1_000), BatchRounds::default());
        let mut packing = Packing::new(0, &topic, PRODUCER, &mut rounds);
        let novelty = |packing: &mut Packing<'_>, number| packing.add(&source(number), b"value", None).ok();
        assert_eq!(novelty(&mut packing, 7), Some(Novelty::New));
        assert_eq!(novelty(&mut packing, 7), Some(Novelty::Known));
        assert_eq!(novelty(&mut packing, 8), Some(Novelty::New));
        let (_, sequences) = packing.finish();
        // A publisher has one partition.
        assert_eq!(sequences.iter().sum::<i32>(), 2);
        let sealed = &rounds.0[0][0];
        let mut found = Vec::new();
        let mut budget = Budget::default();
        read_batches(&sealed.bytes, &mut budget, |record| found.extend(identity_in(record))).unwrap();
        let hash = PayloadHash::of(b"p", 0);
        assert_eq!((found, sealed.records), (vec![((9, 7, 3), hash), ((9, 8, 3), hash)], 2));
    }

    #[test]
    fn batches_are_no_larger_than_the_topic_takes_and_a_dead_letter_is_cut() {
        let (topic, mut rounds) = (topic(500), BatchRounds::default());
        let mut packing = Packing::new(0, &topic, PRODUCER, &mut rounds);
        for number in 0..5 {
            assert!(packing.add(&source(number), &[7; 200], None).is_ok());
        }
        let Err(TooLarge { size, limit }) = packing.add(&source(9), &[7; 600], None) else { panic!() };
        assert!(size > limit && limit == 500);
        let rejection = Some(Rejection { reason: "why", size: 600 });
        assert!(packing.add(&source(9), &[7; 600], rejection).is_ok());
        packing.finish();
        let sealed: Vec<_> = rounds.0.iter().flatten().collect();
        assert!(sealed.iter().all(|it| it.bytes.len() <= 500) && sealed.len() > 5, "{}", sealed.len());
        // A request has one batch of a partition.
        assert!(rounds.0.iter().all(|round| round.len() == 1));
    }
}
