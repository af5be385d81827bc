//! What a cluster is: the versions that a broker speaks, its brokers, its topics with their leaders, and settings of topics.

use crate::bytes::{Input, Malformed, Output, put_array, put_bool, put_i16, put_i32, put_text};
use crate::error_code::ErrorCode;
use crate::message::{Request, Response};
use crate::sasl::BEFORE_LOGIN;

/// ApiVersions: what the broker speaks. Every broker answers it, before a login as well.
#[derive(Clone, Copy, Debug)]
pub struct ApiVersions;

/// Versions of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionRange {
    /// The API key.
    pub key: i16,
    /// The lowest version.
    pub lowest: i16,
    /// The highest version.
    pub highest: i16,
}

/// The answer to [`ApiVersions`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versions {
    /// Whether it was answered.
    pub error: ErrorCode,
    /// What the broker speaks.
    pub ranges: Vec<VersionRange>,
}

impl Versions {
    /// Whether the broker speaks the version of a request that is spoken here.
    pub fn has<R: Request>(&self) -> bool {
        self.ranges.iter().any(|it| it.key == R::KEY && (it.lowest..=it.highest).contains(&R::VERSION))
    }
}

impl Request for ApiVersions {
    const KEY: i16 = 18;
    const VERSION: i16 = 0;
    type Response = Versions;
    const LONGEST_ANSWER: usize = BEFORE_LOGIN;

    fn put(&self, _out: &mut Output) {}
}

impl Response for Versions {
    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let error = ErrorCode(input.i16()?);
        let ranges =
            input.array(|it| Ok(VersionRange { key: it.i16()?, lowest: it.i16()?, highest: it.i16()? }))?;
        Ok(Self { error, ranges })
    }
}

/// Metadata: brokers, and the leaders of topics. A topic that is not there is not created by asking for it.
#[derive(Clone, Debug)]
pub struct MetadataRequest<'a> {
    /// The topics.
    pub topics: &'a [&'a str],
}

/// A broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broker {
    /// Its number.
    pub id: i32,
    /// The host as the cluster names it to clients (`advertised.listeners`).
    pub host: String,
    /// The port.
    pub port: i32,
}

/// The leader of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionLeader {
    /// Whether there is one.
    pub error: ErrorCode,
    /// The partition's number.
    pub partition: i32,
    /// The broker that leads it; −1 for none.
    pub leader: i32,
}

/// A topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicMetadata {
    /// Whether it is there.
    pub error: ErrorCode,
    /// Its name.
    pub name: String,
    /// Its partitions, in any order.
    pub partitions: Vec<PartitionLeader>,
}

/// The answer to [`MetadataRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Brokers of the cluster.
    pub brokers: Vec<Broker>,
    /// The broker that creates topics; −1 for none.
    pub controller: i32,
    /// The topics that were asked for.
    pub topics: Vec<TopicMetadata>,
}

impl Request for MetadataRequest<'_> {
    const KEY: i16 = 3;
    const VERSION: i16 = 5;
    type Response = Metadata;

    fn put(&self, out: &mut Output) {
        put_array(self.topics, out, |name, out| put_text(name, out));
        // allow_auto_topic_creation
        put_bool(false, out);
    }
}

impl Response for Metadata {
    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let _throttle = input.i32()?;
        let brokers = input.array(|it| {
            let broker = Broker { id: it.i32()?, host: it.text()?, port: it.i32()? };
            let _rack = it.nullable_text()?;
            Ok(broker)
        })?;
        let _cluster = input.nullable_text()?;
        let controller = input.i32()?;
        let topics = input.array(|it| {
            let (error, name, _internal) = (ErrorCode(it.i16()?), it.text()?, it.i8()?);
            let partitions = it.array(|it| {
                let leader =
                    PartitionLeader { error: ErrorCode(it.i16()?), partition: it.i32()?, leader: it.i32()? };
                // Replicas, those in sync, those that are offline.
                for _ in 0..3 {
                    it.array(Input::i32)?;
                }
                Ok(leader)
            })?;
            Ok(TopicMetadata { error, name, partitions })
        })?;
        Ok(Self { brokers, controller, topics })
    }
}

/// A topic to be created, with as many partitions and copies as the cluster gives one of which nothing is said
/// (`num.partitions`, `default.replication.factor`; KIP-464).
#[derive(Clone, Copy, Debug)]
pub struct NewTopic<'a> {
    /// Its name.
    pub name: &'a str,
}

/// CreateTopics.
#[derive(Clone, Debug)]
pub struct CreateTopics<'a> {
    /// The topics.
    pub topics: &'a [NewTopic<'a>],
    /// How long the broker may wait until they are there, in milliseconds.
    pub timeout: i32,
}

/// What became of a topic that was to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedTopic {
    /// Its name.
    pub name: String,
    /// Whether it was created.
    pub error: ErrorCode,
    /// What the broker says about that.
    pub words: Option<String>,
}

impl Request for CreateTopics<'_> {
    const KEY: i16 = 19;
    const VERSION: i16 = 4;
    type Response = Vec<CreatedTopic>;

    fn put(&self, out: &mut Output) {
        put_array(self.topics, out, |topic, out| {
            put_text(topic.name, out);
            put_i32(-1, out);
            put_i16(-1, out);
            // Assignments of replicas, settings.
            put_i32(0, out);
            put_i32(0, out);
        });
        put_i32(self.timeout, out);
        // validate_only
        put_bool(false, out);
    }
}

impl Response for Vec<CreatedTopic> {
    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let _throttle = input.i32()?;
        input.array(|it| {
            Ok(CreatedTopic { name: it.text()?, error: ErrorCode(it.i16()?), words: it.nullable_text()? })
        })
    }
}

/// DescribeConfigs of one topic.
#[derive(Clone, Debug)]
pub struct DescribeConfigs<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The settings that are asked for.
    pub keys: &'a [&'a str],
}

/// The answer to [`DescribeConfigs`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configs {
    /// Whether it was answered.
    pub error: ErrorCode,
    /// Settings and their values.
    pub values: Vec<(String, String)>,
}

impl Configs {
    /// The value of a setting.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.values.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}

impl Request for DescribeConfigs<'_> {
    const KEY: i16 = 32;
    const VERSION: i16 = 1;
    type Response = Configs;

    fn put(&self, out: &mut Output) {
        put_i32(1, out);
        // A topic (`ConfigResource.Type`).
        out.push(2);
        put_text(self.topic, out);
        put_array(self.keys, out, |key, out| put_text(key, out));
        // include_synonyms
        put_bool(false, out);
    }
}

impl Response for Configs {
    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let _throttle = input.i32()?;
        let resources = input.array(|it| {
            let error = ErrorCode(it.i16()?);
            let (_words, _kind, _name) = (it.nullable_text()?, it.i8()?, it.text()?);
            let values = it.array(|it| {
                let (name, value) = (it.text()?, it.nullable_text()?);
                // Whether it is read-only, where it comes from, whether it is secret.
                let _ = (it.i8()?, it.i8()?, it.i8()?);
                it.array(|it| Ok((it.text()?, it.nullable_text()?, it.i8()?)))?;
                Ok((name, value.unwrap_or_default()))
            })?;
            Ok(Self { error, values })
        })?;
        resources.into_iter().next().ok_or(Malformed::Short)
    }
}
