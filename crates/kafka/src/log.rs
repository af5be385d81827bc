//! The log of a partition: where it begins and ends, what lies in it, and how its beginning is given up.

use crate::bytes::{Input, Malformed, Output, put_array, put_i32, put_i64, put_text};
use crate::error_code::ErrorCode;
use crate::message::{Request, Response};

/// In the place of a time in [`ListOffsets`]: the end of a log, behind its last record.
pub const LATEST: i64 = -1;

/// The first record that is there.
pub const EARLIEST: i64 = -2;

/// Who asks: a client, no replica.
const NO_REPLICA: i32 = -1;

/// An offset of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionOffset {
    /// The partition.
    pub partition: i32,
    /// Whether it was found; of a request, nothing.
    pub error: ErrorCode,
    /// The offset.
    pub offset: i64,
}

/// ListOffsets of partitions of one topic, all led by the broker that is asked.
#[derive(Clone, Debug)]
pub struct ListOffsets<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The partitions.
    pub partitions: &'a [i32],
    /// [`LATEST`], [`EARLIEST`], or the first record at or after this time in milliseconds since 1970.
    pub time: i64,
}

impl Request for ListOffsets<'_> {
    const KEY: i16 = 2;
    const VERSION: i16 = 2;
    type Response = Vec<PartitionOffset>;

    fn put(&self, out: &mut Output) {
        put_i32(NO_REPLICA, out);
        // Not only what is committed by a transaction.
        out.push(0);
        put_i32(1, out);
        put_text(self.topic, out);
        put_array(self.partitions, out, |partition, out| {
            put_i32(*partition, out);
            put_i64(self.time, out);
        });
    }
}

/// Of all topics of an answer: one topic is asked about.
fn of_topics<T>(
    input: &mut Input<'_>,
    mut element: impl FnMut(&mut Input<'_>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let topics = input.array(|it| {
        let _name = it.text()?;
        it.array(&mut element)
    })?;
    Ok(topics.into_iter().flatten().collect())
}

impl Response for Vec<PartitionOffset> {
    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let _throttle = input.i32()?;
        of_topics(input, |it| {
            let (partition, error, _time) = (it.i32()?, ErrorCode(it.i16()?), it.i64()?);
            Ok(PartitionOffset { partition, error, offset: it.i64()? })
        })
    }
}

/// From where on a partition is read.
#[derive(Clone, Copy, Debug)]
pub struct FetchPartition {
    /// The partition.
    pub partition: i32,
    /// The first offset.
    pub offset: i64,
}

/// Fetch from partitions of one topic, all led by the broker that is asked.
#[derive(Clone, Debug)]
pub struct Fetch<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The partitions.
    pub partitions: &'a [FetchPartition],
    /// Bytes of the answer and of each partition in it, at most; one batch of records comes even if it is larger.
    pub max_bytes: i32,
    /// How long the broker may wait for the first byte, in milliseconds.
    pub max_wait: i32,
}

/// The answer to [`Fetch`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchResponse {
    /// Whether it was answered.
    pub error: ErrorCode,
    /// The partitions.
    pub partitions: Vec<FetchedPartition>,
}

/// What a partition has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedPartition {
    /// The partition.
    pub partition: i32,
    /// Whether it could be read.
    pub error: ErrorCode,
    /// Batches of records, the last of which may be cut off, and the first of which may begin before the offset that was asked for.
    pub records: Vec<u8>,
}

impl Request for Fetch<'_> {
    const KEY: i16 = 1;
    // Brokers before 4.0 answer an older one with an error if the topic is compressed by zstd (KIP-110).
    const VERSION: i16 = 10;
    type Response = FetchResponse;
    // What is fetched at once, and one batch of records, which may be as large as a message.
    const LONGEST_ANSWER: usize = 128 << 20;

    fn put(&self, out: &mut Output) {
        put_i32(NO_REPLICA, out);
        put_i32(self.max_wait, out);
        // min_bytes
        put_i32(1, out);
        put_i32(self.max_bytes, out);
        out.push(0);
        // No session of fetches (KIP-227): its identifier, and the epoch that stands for none.
        put_i32(0, out);
        put_i32(-1, out);
        put_i32(1, out);
        put_text(self.topic, out);
        put_array(self.partitions, out, |it, out| {
            put_i32(it.partition, out);
            // The leader's epoch is not known (KIP-320).
            put_i32(-1, out);
            put_i64(it.offset, out);
            // Where a replica's log starts; this is not a replica.
            put_i64(-1, out);
            put_i32(self.max_bytes, out);
        });
        // Partitions that a session leaves out from here on.
        put_i32(0, out);
    }
}

impl Response for FetchResponse {
    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let (_throttle, error, _session) = (input.i32()?, ErrorCode(input.i16()?), input.i32()?);
        let partitions = of_topics(input, |it| {
            let (partition, error) = (it.i32()?, ErrorCode(it.i16()?));
            let (_high_watermark, _last_stable, _log_start) = (it.i64()?, it.i64()?, it.i64()?);
            // Transactions that were aborted.
            it.array(|it| Ok((it.i64()?, it.i64()?)))?;
            Ok(FetchedPartition { partition, error, records: it.bytes()?.to_vec() })
        })?;
        Ok(Self { error, partitions })
    }
}

/// DeleteRecords: gives up all records of partitions of one topic, all led by the broker that is asked.
#[derive(Clone, Debug)]
pub struct DeleteRecords<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The partitions.
    pub partitions: &'a [i32],
    /// How long the broker may take, in milliseconds.
    pub timeout: i32,
}

/// What became of the records of a partition: `offset` is the first that is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletedPartition(pub PartitionOffset);

impl Request for DeleteRecords<'_> {
    const KEY: i16 = 21;
    const VERSION: i16 = 0;
    type Response = Vec<DeletedPartition>;

    fn put(&self, out: &mut Output) {
        put_i32(1, out);
        put_text(self.topic, out);
        put_array(self.partitions, out, |partition, out| {
            put_i32(*partition, out);
            // Up to the high watermark.
            put_i64(-1, out);
        });
        put_i32(self.timeout, out);
    }
}

impl Response for Vec<DeletedPartition> {
    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let _throttle = input.i32()?;
        of_topics(input, |it| {
            let (partition, offset) = (it.i32()?, it.i64()?);
            Ok(DeletedPartition(PartitionOffset { partition, offset, error: ErrorCode(it.i16()?) }))
        })
    }
}
