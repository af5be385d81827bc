//! Kafka's protocol, as much of it as a producer needs that reads back what it wrote. Bytes in, values out; it has no socket
//! and no clock.
//!
//! | module | what | where it is written down |
//! |---|---|---|
//! | `message` | requests and answers, framed | Kafka protocol guide, "Protocol Request Formats" |
//! | `cluster` | versions, brokers, topics, their settings | "The Messages": ApiVersions, Metadata, CreateTopics, DescribeConfigs |
//! | `log` | offsets, and what lies between them | ListOffsets, Fetch, DeleteRecords |
//! | `sasl` | logins, and how long they hold | SaslHandshake, SaslAuthenticate; RFC 4616 |
//! | `scram` | a login that does not send the password | RFC 5802, RFC 7677 |
//! | `produce` | producers and what they append | InitProducerId, Produce |
//! | `record_batch` | records as they lie in a log, magic 2 | "Record Batch", "Record" |
//! | `compression` | records that are compressed | "Record Batch"; LZ4 Frame Format Description |
//! | `partitioner` | which partition a key belongs to | the Java client's `BuiltInPartitioner` |
//!
//! Each request has the one version that is spoken: all of them are without tagged fields, and Kafka 2.4 to 4.x have them.
//! Memory that an answer takes is bounded by its own bytes, and of what was compressed in it by a [`Budget`].

mod bytes;
mod cluster;
mod compression;
mod error_code;
mod log;
mod message;
mod partitioner;
mod produce;
mod record_batch;
mod sasl;
mod scram;

pub use bytes::{Input, Malformed, Output};
pub use cluster::{
    ApiVersions, Broker, Configs, CreateTopics, CreatedTopic, DescribeConfigs, Metadata, MetadataRequest,
    NewTopic, PartitionLeader, TopicMetadata, VersionRange, Versions,
};
pub use compression::Budget;
pub use error_code::ErrorCode;
pub use log::{
    DeleteRecords, Deleted, EARLIEST, Fetch, FetchPartition, Fetched, FetchedPartition, LATEST, ListOffsets,
    PartitionOffset,
};
pub use message::{CLIENT_ID, Request, Response, answer, request};
pub use partitioner::partition_of;
pub use produce::{Appended, InitProducerId, Produce, ProducerId, TopicBatches};
pub use record_batch::{BatchError, Record, RecordBatch, RecordRef, checksum, read_batches};
pub use sasl::{Authenticated, Mechanism, Mechanisms, SaslAuthenticate, SaslHandshake, plain};
pub use scram::{Challenge, Scram, ScramError, ScramHash, ServerSignature};
