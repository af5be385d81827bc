//! Groups of MQTT publishers and subscribers.

use super::options::MqttOptions;
use super::publish::{self, Publisher};
use super::subscribe::{self, Group, Subscriber, TopicFilter};
use super::topic::{self, Topic};
use super::{SCHEMA, SCHEMES};
use crate::endpoints::{EndpointFinder, Endpoints};
use crate::host_clock::HostClock;
use crate::options::{PlayOptions, PublishOptions};
use crate::shard_recorder::{PlannedStart, ShardRecorder, Turn};
use crate::target::{Credentials, Target};
use crate::workload::{NewClient, Workload};
use crate::workload_error::WorkloadError;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use weir_metrics::Moment;
use weir_mqtt::client::WillOptions;
use weir_mqtt::topic::Filter;
use weir_mqtt::{ClientOptions, PropertyBuffer, Qos, Version};
use weir_shard::Endpoint;
use weir_shard::tls::ClientTls;

/// What is asked for at one target.
struct Request {
    target: Target,
    credentials: Option<Credentials>,
}

/// A shared subscription: host, port, filter.
type Shared = (String, u16, String);

/// What CONNECT says, but for the client's own name.
struct SessionSettings {
    base: ClientOptions,
    prefix: String,
}

/// Subscribers to these URLs. Resolves names, so it may take a while.
///
/// # Errors
/// A URL that leads nowhere, TLS settings that cannot be made, or what CONNECT has no room for.
pub fn play(urls: &[String], options: &PlayOptions, mqtt: &MqttOptions) -> Result<Workload, WorkloadError> {
    let endpoints = endpoints("play", urls, &options.tls, mqtt)?;
    for target in &endpoints.targets {
        topic::filter(target, 0)?;
    }
    let settings = SessionSettings::new("sub", mqtt)?;
    let common = Arc::new(subscribe::SharedOptions {
        timeouts: options.timeouts,
        qos: mqtt.qos,
        version: mqtt.version,
        clock: HostClock::read(),
        keeps_session: mqtt.session.is_some(),
        linger: mqtt.linger,
        published: mqtt.published.clone(),
    });
    let (version, reconnect) = (mqtt.version, mqtt.reconnect);
    let groups: Mutex<HashMap<Shared, Arc<Mutex<Group>>>> = Mutex::default();
    let start = move |client: NewClient<'_, Request>, shard: &mut ShardRecorder| {
        let NewClient { planned, request, now, .. } = client;
        // Checked above, for any number of a client.
        let filter = topic::filter(&request.target, planned.number()).unwrap_or_default();
        let shared = version == Version::V5 && Filter::parse(&filter).is_ok_and(|it| it.share.is_some());
        let group = shared.then(|| {
            let key = (request.target.host.clone(), request.target.port, filter.clone());
            let mut groups = groups.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            Arc::clone(groups.entry(key).or_default())
        });
        let options = settings.of(planned, request.credentials.as_ref());
        let filter = TopicFilter { filter, group };
        let way = way(client.endpoint, reconnect);
        Subscriber::new(planned, options, filter, Arc::clone(&common), way, now, shard)
    };
    let mut workload = Workload::new(SCHEMA, endpoints, start);
    workload.viewers_leave_last = true;
    Ok(workload)
}

/// Publishers to these URLs. Resolves names and makes the payloads, so it may take a while.
///
/// # Errors
/// As [`play`], and payloads that cannot be made.
pub fn publish(
    urls: &[String],
    options: &PublishOptions,
    mqtt: &MqttOptions,
) -> Result<Workload, WorkloadError> {
    let endpoints = endpoints("publish", urls, &options.tls, mqtt)?;
    for target in &endpoints.targets {
        Topic::of(target, 0)?;
    }
    let payloads = mqtt.filling.payloads(mqtt.seed, mqtt.count);
    let payloads = payloads.map_err(|error| WorkloadError::Options(error.to_string()))?;
    let longest = payloads.longest();
    let common = Arc::new(publish::SharedOptions {
        timeouts: options.timeouts,
        send_timeout: options.send_timeout,
        version: mqtt.version,
        qos: mqtt.qos,
        retain: mqtt.retain,
        rate: mqtt.rate,
        count: mqtt.count,
        mark: options.stamp,
        payloads,
        clock: HostClock::read(),
        times: mqtt.times.clone(),
        keeps_session: mqtt.session.is_some(),
        longest,
        published: mqtt.published.clone(),
    });
    let (settings, reconnect) = (SessionSettings::new("pub", mqtt)?, mqtt.reconnect);
    let start = move |client: NewClient<'_, Request>, shard: &mut ShardRecorder| {
        let NewClient { planned, request, now, .. } = client;
        let options = settings.of(planned, request.credentials.as_ref());
        let topic = Topic::of(&request.target, planned.number()).unwrap_or_default();
        let way = way(client.endpoint, reconnect);
        Publisher::new(planned, options, topic, Arc::clone(&common), way, now, shard)
    };
    let mut workload = Workload::new(SCHEMA, endpoints, start);
    workload.viewers_leave_last = true;
    Ok(workload)
}

fn endpoints(
    verb: &'static str,
    urls: &[String],
    tls: &ClientTls,
    options: &MqttOptions,
) -> Result<Endpoints<Request>, WorkloadError> {
    Endpoints::find(verb, urls, &mut EndpointFinder::new(SCHEMES, tls), |target| {
        let credentials = target.credentials.as_ref().map(plain).or_else(|| options.credentials.clone());
        Ok(Request { target, credentials })
    })
}

/// The address of a broker, and the way to it for a client that is to connect again.
fn way(endpoint: &Endpoint, reconnect: bool) -> (SocketAddr, Option<Endpoint>) {
    (endpoint.address, reconnect.then(|| endpoint.clone()))
}

impl SessionSettings {
    fn new(role: &str, options: &MqttOptions) -> Result<Self, WorkloadError> {
        let prefix = options.client_id.clone().unwrap_or_else(|| {
            // Not the same in two runs, nor in two workloads of one.
            let now = weir_shard::clock::wall_nanos() / 1_000;
            format!("weir-{role}-{:x}-{now:x}", std::process::id())
        });
        let base = ClientOptions {
            clean_start: options.session.is_none(),
            session_expiry: options.session.map_or(0, |span| span.as_secs().min(u32::MAX.into()) as u32),
            keep_alive: options.keep_alive.as_secs().min(u16::MAX.into()) as u16,
            receive_maximum: options.window.max(1),
            // A broker that does not keep to it is measured all the same, as other subscribers would receive from it.
            strict_receive_maximum: false,
            window: options.window.max(1),
            topic_alias_maximum: 64,
            will: options.will.as_ref().map(|will| WillOptions {
                topic: will.topic.clone(),
                payload: will.payload.clone(),
                qos: Qos::AtMostOnce,
                retain: false,
                properties: PropertyBuffer::new(),
            }),
            ..ClientOptions::new(options.version, &*prefix)
        };
        let settings = Self { base, prefix };
        // One with the longest number, which counts from 1.
        const LAST: Turn = Turn { number: u32::MAX, mean_life: None };
        let any =
            PlannedStart { client: u32::MAX - 1, workload: 0, cell: 0, at: Moment::default(), turn: LAST };
        let checked = settings.of(any, options.credentials.as_ref()).check();
        checked.map_err(|error| WorkloadError::Options(format!("mqtt: {error}")))?;
        Ok(settings)
    }

    fn of(&self, planned: PlannedStart, credentials: Option<&Credentials>) -> ClientOptions {
        let password = credentials.map(|it| it.password.clone()).filter(|password| !password.is_empty());
        ClientOptions {
            // A client that replaces another has an identifier of its own, because the broker may still have the other's session.
            client_id: match planned.turn.number {
                0 => format!("{}-{}", self.prefix, planned.number()),
                turn => format!("{}-{}-{turn}", self.prefix, planned.number()),
            },
            user_name: credentials.map(|it| it.user.clone()),
            password: password.map(String::into_bytes),
            ..self.base.clone()
        }
    }
}

/// User and password of a URL without percent-encoding (RFC 3986, section 2.1).
pub(super) fn plain(credentials: &Credentials) -> Credentials {
    Credentials { user: decoded(&credentials.user), password: decoded(&credentials.password) }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let digits =
            after.get(..2).filter(|_| byte == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(decoded) => {
                bytes.push(decoded);
                rest = &after[2..];
            }
            None => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_of_a_url_are_decoded() {
        assert_eq!(decoded("p%40ss%2Fw%3a"), "p@ss/w:");
        assert_eq!(decoded("100%"), "100%");
        assert_eq!(decoded("%zz%4"), "%zz%4");
    }
}
