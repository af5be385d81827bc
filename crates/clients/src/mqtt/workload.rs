//! Groups of MQTT publishers and subscribers.

use super::options::MqttOptions;
use super::publish::{self, Publisher};
use super::subscribe::{self, Group, Subscriber, TopicFilter};
use super::topic::{self, Topic};
use super::{SCHEMA, SCHEMES};
use crate::host_clock::HostClock;
use crate::ledger::{Ledger, Slot};
use crate::places::{Doors, Places};
use crate::target::{Credentials, Target};
use crate::workload::{PlayOptions, PublishOptions, Workload, WorkloadError};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use weir_metrics::{Moment, Schema};
use weir_mqtt::client::WillOptions;
use weir_mqtt::topic::Filter;
use weir_mqtt::{ClientOptions, PropertyBuffer, Qos, Version};
use weir_shard::tls::ClientTls;
use weir_shard::{Door, Session};

/// What is asked for at one target.
struct Request {
    target: Target,
    credentials: Option<Credentials>,
}

struct Play {
    places: Places<Request>,
    settings: Settings,
    common: Arc<subscribe::Common>,
    reconnect: bool,
    /// The accounts of shared subscriptions, by host and filter.
    groups: Mutex<HashMap<Shared, Arc<Mutex<Group>>>>,
}

/// A shared subscription: host, port, filter.
type Shared = (String, u16, String);

struct Publish {
    places: Places<Request>,
    settings: Settings,
    common: Arc<publish::Common>,
    reconnect: bool,
}

/// What CONNECT says, but for the client's own name.
struct Settings {
    base: ClientOptions,
    prefix: String,
}

pub(crate) fn play(urls: &[String], options: &PlayOptions) -> Result<Box<dyn Workload>, WorkloadError> {
    let places = places("play", urls, &options.tls, &options.mqtt)?;
    for target in places.targets() {
        topic::filter(target, 0)?;
    }
    let settings = Settings::new("sub", &options.mqtt)?;
    let common = Arc::new(subscribe::Common {
        timeouts: options.timeouts,
        qos: options.mqtt.qos,
        version: options.mqtt.version,
        clock: HostClock::read(),
        keeps_session: options.mqtt.session.is_some(),
        linger: options.mqtt.linger,
        published: options.mqtt.published.clone(),
    });
    let reconnect = options.mqtt.reconnect;
    Ok(Box::new(Play { places, settings, common, reconnect, groups: Mutex::default() }))
}

pub(crate) fn publish(urls: &[String], options: &PublishOptions) -> Result<Box<dyn Workload>, WorkloadError> {
    let places = places("publish", urls, &options.tls, &options.mqtt)?;
    for target in places.targets() {
        Topic::of(target, 0)?;
    }
    let mqtt = &options.mqtt;
    let payloads = mqtt.filling.payloads(mqtt.seed, mqtt.count)?;
    let longest = payloads.longest();
    let common = Arc::new(publish::Common {
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
    let (settings, reconnect) = (Settings::new("pub", mqtt)?, mqtt.reconnect);
    Ok(Box::new(Publish { places, settings, common, reconnect }))
}

fn places(
    verb: &'static str,
    urls: &[String],
    tls: &ClientTls,
    options: &MqttOptions,
) -> Result<Places<Request>, WorkloadError> {
    Places::find(verb, urls, &mut Doors::new(SCHEMES, tls), |target| {
        let credentials = target.credentials.as_ref().map(plain).or_else(|| options.credentials.clone());
        Ok(Request { target, credentials })
    })
}

impl Workload for Play {
    fn schema(&self) -> Schema {
        SCHEMA
    }

    fn targets(&self) -> &[Target] {
        self.places.targets()
    }

    fn door(&self, client: u32) -> &Door {
        self.places.door(client)
    }

    fn start(&self, slot: Slot, now: Moment, ledger: &mut Ledger) -> Box<dyn Session<Ledger>> {
        let request = self.places.request(slot.client);
        // Checked when the workload was made, for any number of a client.
        let filter = topic::filter(&request.target, slot.number()).unwrap_or_default();
        let shared =
            self.common.version == Version::V5 && Filter::parse(&filter).is_ok_and(|it| it.share.is_some());
        let group = shared.then(|| self.group(&request.target, &filter));
        let options = self.settings.of(slot, request.credentials.as_ref());
        let way = way(self.door(slot.client), self.reconnect);
        let filter = TopicFilter { filter, group };
        Box::new(Subscriber::new(slot, options, filter, self.common.clone(), way, now, ledger))
    }

    fn viewers_leave_last(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        format!("subscribe {}", self.places.describe())
    }
}

impl Play {
    fn group(&self, target: &Target, filter: &str) -> Arc<Mutex<Group>> {
        let key = (target.host.clone(), target.port, filter.to_owned());
        let mut groups = self.groups.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        groups.entry(key).or_default().clone()
    }
}

impl Workload for Publish {
    fn schema(&self) -> Schema {
        SCHEMA
    }

    fn targets(&self) -> &[Target] {
        self.places.targets()
    }

    fn door(&self, client: u32) -> &Door {
        self.places.door(client)
    }

    fn start(&self, slot: Slot, now: Moment, ledger: &mut Ledger) -> Box<dyn Session<Ledger>> {
        let request = self.places.request(slot.client);
        let options = self.settings.of(slot, request.credentials.as_ref());
        let topic = Topic::of(&request.target, slot.number()).unwrap_or_default();
        let way = way(self.door(slot.client), self.reconnect);
        Box::new(Publisher::new(slot, options, topic, self.common.clone(), way, now, ledger))
    }

    fn viewers_leave_last(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        format!("publish {}", self.places.describe())
    }
}

/// The address of a broker, and the way to it for a client that is to connect again.
fn way(door: &Door, reconnect: bool) -> (SocketAddr, Option<Door>) {
    (door.address, reconnect.then(|| door.clone()))
}

impl Settings {
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
        let any = Slot { client: u32::MAX - 1, workload: 0, planned: Moment::default() };
        settings.of(any, options.credentials.as_ref()).check().map_err(WorkloadError::Mqtt)?;
        Ok(settings)
    }

    fn of(&self, slot: Slot, credentials: Option<&Credentials>) -> ClientOptions {
        let password = credentials.map(|it| it.password.clone()).filter(|password| !password.is_empty());
        ClientOptions {
            client_id: format!("{}-{}", self.prefix, slot.number()),
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
