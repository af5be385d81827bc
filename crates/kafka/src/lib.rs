#![doc = include_str!("../README.md")]

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
    DeleteRecords, DeletedPartition, EARLIEST, Fetch, FetchPartition, FetchResponse, FetchedPartition,
    LATEST, ListOffsets, PartitionOffset,
};
pub use message::{CLIENT_ID, Request, Response, answer, request};
pub use partitioner::partition_of;
pub use produce::{AppendResult, InitProducerId, Produce, ProducerId, TopicBatches};
pub use record_batch::{BatchError, Record, RecordBatch, RecordRef, checksum, read_batches};
pub use sasl::{Mechanism, Mechanisms, SaslAuthenticate, SaslHandshake, SaslResponse, plain};
pub use scram::{Challenge, Scram, ScramError, ScramHash, ServerSignature};
