//! Appending: a producer with a number of its own, whose batches a broker appends once, however often they are sent (KIP-98,
//! "Idempotent Producer Guarantees").

use crate::bytes::{Input, Malformed, Output, put_array, put_bytes, put_i16, put_i32, put_text};
use crate::error_code::ErrorCode;
use crate::message::{Request, Response};
use std::sync::Arc;

/// InitProducerId without a transactional id: a number that no other producer has.
#[derive(Clone, Copy, Debug)]
pub struct InitProducerId;

/// A producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerId {
    /// Whether there is one.
    pub error: ErrorCode,
    /// Its number.
    pub id: i64,
    /// How often the number was given out.
    pub epoch: i16,
}

impl Request for InitProducerId {
    const KEY: i16 = 22;
    const VERSION: i16 = 1;
    type Response = ProducerId;

    fn put(&self, out: &mut Output) {
        // No transactional id, and so no time-out of a transaction.
        put_i16(-1, out);
        put_i32(i32::MAX, out);
    }
}

impl Response for ProducerId {
    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let _throttle = input.i32()?;
        Ok(Self { error: ErrorCode(input.i16()?), id: input.i64()?, epoch: input.i16()? })
    }
}

/// Batches for partitions of a topic: one each.
#[derive(Clone, Debug)]
pub struct TopicBatches<'a> {
    /// The topic.
    pub topic: &'a str,
    /// Partitions and what is appended to them.
    pub batches: Vec<(i32, &'a [u8])>,
}

/// Produce with `acks=all`: the answer comes when all replicas in sync have the records.
#[derive(Clone, Debug)]
pub struct Produce<'a> {
    /// What goes where, all led by the broker that is asked.
    pub topics: &'a [TopicBatches<'a>],
    /// How long the broker may wait for the replicas, in milliseconds.
    pub timeout: i32,
}

/// What became of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendResult {
    /// The topic, one text for all its partitions.
    pub topic: Arc<str>,
    /// The partition.
    pub partition: i32,
    /// Whether it was appended.
    pub error: ErrorCode,
    /// The offset of its first record.
    pub offset: i64,
}

impl Request for Produce<'_> {
    const KEY: i16 = 0;
    const VERSION: i16 = 7;
    type Response = Vec<AppendResult>;

    fn put(&self, out: &mut Output) {
        // No transactional id; acks=all.
        put_i16(-1, out);
        put_i16(-1, out);
        put_i32(self.timeout, out);
        put_array(self.topics, out, |topic, out| {
            put_text(topic.topic, out);
            put_array(&topic.batches, out, |(partition, batch), out| {
                put_i32(*partition, out);
                put_bytes(batch, out);
            });
        });
    }
}

impl Response for Vec<AppendResult> {
    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let topics = input.array(|it| {
            let topic = Arc::<str>::from(it.text()?);
            it.array(|it| {
                let (partition, error, offset) = (it.i32()?, ErrorCode(it.i16()?), it.i64()?);
                let (_append_time, _log_start) = (it.i64()?, it.i64()?);
                Ok(AppendResult { topic: topic.clone(), partition, error, offset })
            })
        })?;
        let _throttle = input.i32()?;
        Ok(topics.into_iter().flatten().collect())
    }
}
