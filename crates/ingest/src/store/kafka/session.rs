//! Connections to the brokers of a cluster: each question goes to the broker that can answer it.

use super::access::Access;
use super::cluster::Cluster;
use super::connection::Connection;
use super::failed::{RequestFailure, one_line};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use weir_kafka::{
    AppendResult, CreateTopics, DeleteRecords, DescribeConfigs, ErrorCode, Fetch, FetchPartition,
    FetchedPartition, InitProducerId, ListOffsets, Metadata, MetadataRequest, NewTopic, PartitionOffset,
    Produce, ProducerId, Request, TopicBatches, TopicMetadata,
};

/// How long a broker may wait for its replicas.
const REPLICAS: i32 = 30_000;

/// Bytes that are fetched at once.
const FETCHED: i32 = 8 << 20;

/// What a broker calls a cluster that has no controller, and a partition without a leader.
const NOBODY: i32 = -1;

/// Partitions of a topic and the brokers that lead them.
pub(super) type Leaders = BTreeMap<i32, Vec<i32>>;

/// Connections to a cluster.
pub(super) struct Session {
    access: Arc<Access>,
    first: Connection,
    brokers: HashMap<i32, (String, u16)>,
    connections: HashMap<i32, Connection>,
}

impl Session {
    /// Connects to the first broker of a URL that answers.
    pub(super) fn open(cluster: &Cluster) -> Result<Self, RequestFailure> {
        let access = Access::of(cluster)?;
        let mut last = RequestFailure::Away(String::new());
        for (host, port) in &cluster.brokers {
            match Connection::open(host, *port, &access, None) {
                Ok(first) => {
                    return Ok(Self { access, first, brokers: HashMap::new(), connections: HashMap::new() });
                }
                Err(failed) if cluster.brokers.len() == 1 => last = failed,
                Err(failed) => last = failed.at(format_args!("{host}:{port}")),
            }
            // Another broker of the cluster would say the same.
            if !matches!(last, RequestFailure::Away(_) | RequestFailure::Closed) {
                break;
            }
        }
        Err(last)
    }

    fn ask_first<R: Request>(&mut self, question: &R) -> Result<R::Response, RequestFailure> {
        self.first.ask(question).map_err(|failed| failed.at(&self.first.name))
    }

    /// The connection to a broker.
    fn broker(&mut self, id: i32) -> Result<&mut Connection, RequestFailure> {
        if !self.connections.contains_key(&id) {
            let Some((host, port)) = self.brokers.get(&id) else {
                return Err(RequestFailure::Away(format!("the cluster does not name its broker {id}")));
            };
            let opened = Connection::open(host, *port, &self.access, self.first.mechanism);
            let connection = opened.map_err(|failed| {
                let place = format!("{}:{port}", one_line(host));
                failed.at(format_args!("broker {id}, which the cluster calls {place} (advertised.listeners)"))
            })?;
            self.connections.insert(id, connection);
        }
        self.connections.get_mut(&id).ok_or_else(|| RequestFailure::Away(format!("broker {id}")))
    }

    fn ask<R: Request>(&mut self, id: i32, question: &R) -> Result<R::Response, RequestFailure> {
        let broker = self.broker(id)?;
        broker.ask(question).map_err(|failed| failed.at(&broker.name))
    }

    fn metadata(&mut self, topics: &[&str]) -> Result<Metadata, RequestFailure> {
        let metadata = self.ask_first(&MetadataRequest { topics })?;
        let brokers = metadata.brokers.iter().map(|it| (it.id, (it.host.clone(), it.port as u16)));
        self.brokers = brokers.collect();
        Ok(metadata)
    }

    /// The leaders of topics, by partition; one that is not there is created if `create`, and has them soon; else it has none.
    pub(super) fn leaders<const N: usize>(
        &mut self,
        topics: [&str; N],
        create: bool,
    ) -> Result<[Vec<i32>; N], RequestFailure> {
        let metadata = self.metadata(&topics)?;
        let is_missing = |topic: &&TopicMetadata| topic.error == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
        let is_asked = |topic: &&TopicMetadata| topics.contains(&&*topic.name);
        let missing = metadata.topics.iter().filter(is_asked).filter(is_missing);
        let missing: Vec<_> = missing.map(|topic| NewTopic { name: &topic.name }).collect();
        if create && let Some(first) = missing.first() {
            self.create(&missing, metadata.controller)?;
            return Err(RequestFailure::Refused(
                format!("topic {}", first.name),
                ErrorCode::LEADER_NOT_AVAILABLE,
            ));
        }
        let mut all = [const { Vec::new() }; N];
        for (name, leaders) in topics.iter().zip(&mut all) {
            let Some(topic) = metadata.topics.iter().find(|topic| topic.name == *name) else {
                return Err(RequestFailure::Away(format!("no answer on topic {name}")));
            };
            if !is_missing(&topic) {
                *leaders = leaders_of(topic)?;
            }
        }
        Ok(all)
    }

    fn create(&mut self, topics: &[NewTopic<'_>], controller: i32) -> Result<(), RequestFailure> {
        let question = CreateTopics { topics, timeout: REPLICAS };
        let created =
            if controller == NOBODY { self.ask_first(&question)? } else { self.ask(controller, &question)? };
        for topic in created {
            // Another ingester may have been faster.
            if !topic.error.is_none() && topic.error != ErrorCode::TOPIC_ALREADY_EXISTS {
                let name = one_line(&topic.name);
                let words = topic.words.map(|words| format!(" ({})", one_line(&words))).unwrap_or_default();
                let what = format!(
                    "there is no topic {name}, and it cannot be created; create it (kafka-topics.sh --create --topic \
                     {name}), or name another{words}"
                );
                return Err(RequestFailure::Refused(what, topic.error));
            }
        }
        Ok(())
    }

    /// Bytes that a topic takes as one batch of records, by its settings; `None` if the user may append and not read these.
    pub(super) fn limit(&mut self, topic: &str) -> Result<Option<usize>, RequestFailure> {
        const LIMIT: &str = "max.message.bytes";
        let configs = self.ask_first(&DescribeConfigs { topic, keys: &[LIMIT] })?;
        let limit = configs.get(LIMIT).filter(|_| configs.error.is_none());
        Ok(limit.and_then(|value| value.parse().ok()))
    }

    /// A producer of which nothing has been appended.
    pub(super) fn producer(&mut self) -> Result<ProducerId, RequestFailure> {
        let producer = self.ask_first(&InitProducerId)?;
        if producer.error.is_none() {
            return Ok(producer);
        }
        Err(RequestFailure::Refused("a number for the producer".to_owned(), producer.error))
    }

    /// Offsets of all partitions of a topic, which are as many as `partitions`.
    pub(super) fn offsets(
        &mut self,
        topic: &str,
        leaders: &Leaders,
        time: i64,
    ) -> Result<Vec<(i32, i64)>, RequestFailure> {
        let mut offsets = Vec::new();
        for (leader, partitions) in leaders {
            for PartitionOffset { partition, error, offset } in
                self.ask(*leader, &ListOffsets { topic, partitions, time })?
            {
                check(topic, partition, error)?;
                offsets.push((partition, offset));
            }
        }
        Ok(offsets)
    }

    pub(super) fn fetch(
        &mut self,
        topic: &str,
        leader: i32,
        partitions: &[FetchPartition],
    ) -> Result<Vec<FetchedPartition>, RequestFailure> {
        let fetched = self.ask(leader, &Fetch { topic, partitions, max_bytes: FETCHED, max_wait: 500 })?;
        if fetched.error.is_none() {
            return Ok(fetched.partitions);
        }
        Err(RequestFailure::Refused(format!("topic {topic}"), fetched.error))
    }

    /// Gives up all records of a topic.
    pub(super) fn delete_records(&mut self, topic: &str, leaders: &Leaders) -> Result<(), RequestFailure> {
        for (leader, partitions) in leaders {
            for deleted in self.ask(*leader, &DeleteRecords { topic, partitions, timeout: REPLICAS })? {
                check(topic, deleted.0.partition, deleted.0.error)?;
            }
        }
        Ok(())
    }

    /// Appends one batch to each of these partitions; all leaders work at once.
    pub(super) fn produce(
        &mut self,
        by_leader: &BTreeMap<i32, Vec<TopicBatches<'_>>>,
    ) -> Result<Vec<AppendResult>, RequestFailure> {
        for (leader, topics) in by_leader {
            let broker = self.broker(*leader)?;
            let sent = broker.send(&Produce { topics, timeout: REPLICAS });
            sent.map_err(|failed| failed.at(&broker.name))?;
        }
        let mut appended = Vec::new();
        for leader in by_leader.keys() {
            let broker = self.broker(*leader)?;
            let answer = broker.receive::<Produce<'_>>();
            appended.extend(answer.map_err(|failed| failed.at(&broker.name))?);
        }
        Ok(appended)
    }
}

/// The leaders of a topic's partitions.
fn leaders_of(topic: &TopicMetadata) -> Result<Vec<i32>, RequestFailure> {
    let refused = |code| Err(RequestFailure::Refused(format!("topic {}", topic.name), code));
    if !topic.error.is_none() {
        return refused(topic.error);
    }
    let mut leaders = vec![NOBODY; topic.partitions.len()];
    for partition in &topic.partitions {
        let number = usize::try_from(partition.partition).ok();
        if let Some(leader) = number.and_then(|number| leaders.get_mut(number)) {
            *leader = partition.leader;
        }
    }
    if leaders.is_empty() || leaders.contains(&NOBODY) {
        return refused(ErrorCode::LEADER_NOT_AVAILABLE);
    }
    Ok(leaders)
}

/// What a broker says of a partition.
pub(super) fn check(topic: &str, partition: i32, error: ErrorCode) -> Result<(), RequestFailure> {
    if error.is_none() {
        Ok(())
    } else {
        Err(RequestFailure::Refused(format!("partition {partition} of topic {topic}"), error))
    }
}
