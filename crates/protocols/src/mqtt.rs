//! MQTT 3.1.1 and 5.

mod asked;
mod connection;

pub use connection::{ConnectOptions, Connection, SocketPath, Users};

use crate::content::Stamp;
use crate::given::Given;
use crate::group::Group;
use crate::http;
use crate::protocol::{Excess, Making, Output, Play, Protocol, Publish, RunContext, Serve};
use crate::unfilled::{CONNECTION, MESSAGE_PUBLISHER, SUBSCRIBER};

use crate::viewer;
use clap::{Args, ValueHint};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use weir_clients::mqtt::{
    self, Arrivals, Filling, Framing, MessageProperties, MqttOptions, MqttVersion, Qos, RecordFormat,
    RetainHandling, SubscriptionSettings,
};
use weir_clients::{Credentials, GivenFields, Password, PublishOptions, Workload, WorkloadError};
use weir_metrics::{BitRate, parse_duration, parse_rate};
use weir_setting::{AVRO_ENCODING, CREDENTIALS, SCHEMA_ID};

/// Longest time for a count that is planned: a year.
const LONGEST: f64 = 31_536_000.0;

const BEGAN_ALONE: Excess = Excess {
    counter: mqtt::BEGAN_ALONE,
    beside: mqtt::CONNECTS,
    above: 0.0,
    invalid_from: None,
    words: "{count} publishers began before every client of the run was connected and subscribed (mqtt.began_alone; the broker accepted {beside} connections of theirs): give the ramp longer, or look at who failed",
};

/// MQTT over TCP and TLS, and in WebSockets over either.
pub(crate) const PROTOCOL: Protocol = Protocol {
    schemes: mqtt::SCHEMES,
    placeholders: mqtt::PLACEHOLDERS,
    suffix: None,
    redirects: false,
    schema: mqtt::SCHEMA,
    columns: &[],
    excesses: &[BEGAN_ALONE],
    datagrams: None,
    play: Some(Play {
        options: &[
            Group::of::<Connection>(),
            Group::of::<Outages>(),
            Group::of::<SocketPath>(),
            Group::of::<http::Fields>(),
            Group::of::<Users>(),
            Group::of::<Delivery>(),
            Group::of::<Subscriptions>(),
        ],
        asked: asked::of_subscribers,
        unfilled: |given| if hears_nothing(given) { CONNECTION } else { SUBSCRIBER },
        shown: None,
        least_published: Some(asked::least_published),
        discovers: false,
        loads_ahead: false,
        served: None,
        clients: viewer::one,
        make: |making| {
            let subscriptions: Subscriptions = making.given.read()?;
            let subscription = subscriptions.settings();
            let Subscriptions { filter, connect_only, respond, .. } = subscriptions;
            let options = options(making.given, making.run)?;
            let options = MqttOptions { filters: filter, connect_only, respond, subscription, ..options };
            mqtt::play(making.urls, &making.options, &options)
        },
    }),
    publish: Some(Publish {
        options: &[
            Group::of::<Connection>(),
            Group::of::<Outages>(),
            Group::of::<SocketPath>(),
            Group::of::<http::Fields>(),
            Group::of::<Users>(),
            Group::of::<Delivery>(),
            Group::of::<Messages>(),
            Group::of::<Stamp>(),
        ],
        output,
        // What a broker is sent at QoS 1 and 2 it is to take.
        asked: |given, restarts| match (acknowledged(given), restarts) {
            (false, _) => Vec::new(),
            (true, false) => vec!["mqtt.refused == 0", "mqtt.unacknowledged == 0"],
            // What is lost with a link that the run itself cuts is not the broker's doing.
            (true, true) => vec!["mqtt.refused == 0", "mqtt.unanswered == 0"],
        },
        unfilled: MESSAGE_PUBLISHER,
        make: publish,
    }),
    ingest: Some(&[
        Group::of::<Connection>(),
        Group::of::<SocketPath>(),
        Group::of::<http::Fields>(),
        Group::of::<Users>(),
        Group::of::<Delivery>(),
    ]),
    serve: Some(Serve {
        server: &weir_origin::MQTT,
        help: "Listen for MQTT, also in WebSockets: a small broker, usually on :1883",
        needs_publishers: false,
    }),
};

/// When links break on purpose.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "MQTT")]
struct Outages {
    /// Break the links of all clients at the same moment, every TIME and without DISCONNECT: what comes back is a storm
    /// as after the broker's restart
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    break_every: Option<Duration>,
}

/// What subscribers ask for beside the topic of the URL.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "MQTT")]
struct Subscriptions {
    /// Another topic filter of each subscriber, with the same places as the URL's; may be repeated
    #[arg(long, value_name = "FILTER", value_parser = filter)]
    filter: Vec<String>,
    /// Subscribe to nothing: clients connect, and keep their connections with PINGREQ. The URL then needs no topic
    #[arg(long, conflicts_with = "filter")]
    connect_only: bool,
    /// Ask for no message that the client has published itself (MQTT 5)
    #[arg(long)]
    no_local: bool,
    /// Ask for messages with the retain flag that they were published with (MQTT 5)
    #[arg(long)]
    retain_as_published: bool,
    /// Answer each message that has a Response Topic (MQTT 5), at QoS 0 and without a payload
    #[arg(long)]
    respond: bool,
    /// When the broker sends what it has kept: always; new, if the subscription is; or never (MQTT 5) [default: always]
    #[arg(long, value_name = "WHEN", value_parser = retain_handling)]
    retain_handling: Option<RetainHandling>,
}

impl Subscriptions {
    fn settings(&self) -> SubscriptionSettings {
        SubscriptionSettings {
            no_local: self.no_local,
            retain_as_published: self.retain_as_published,
            retain_handling: self.retain_handling.unwrap_or_default(),
        }
    }
}

/// How messages are delivered.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "MQTT")]
pub struct Delivery {
    /// Quality of service: 0, 1 or 2; `-q 1` for short [default: 0; 1 of who saves messages]
    #[arg(long, value_name = "QOS", value_parser = clap::value_parser!(u8).range(..=2))]
    pub qos: Option<u8>,
    /// Messages that may be unacknowledged, each way [default: 1000; four batches of who saves messages]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub window: Option<u16>,
}

/// What publishers send.
#[derive(Args)]
#[command(next_help_heading = "MQTT")]
struct Messages {
    /// Messages a second of each publisher, on schedule whatever the broker does
    #[arg(long, value_name = "RATE", default_value = "1/s", value_parser = parse_rate)]
    rate: f64,
    /// How the messages of a publisher are spread: even; random, each interval of any length up to twice the mean; or poisson, as
    /// those of many independent senders are. Drawn from the run's seed
    #[arg(long, value_name = "HOW", default_value = "even", value_parser = arrivals)]
    arrivals: Arrivals,
    /// Messages of each publisher: the run ends when all are sent and acknowledged, and fails if --duration ends it
    /// before that [default: as many as the time allows]
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// What messages are filled with: size:BYTES or size:LEAST-MOST, file:PATH, the files of a directory in turn: dir:PATH, a
    /// file with places for {seq}, {time}, {client}, {user}, {id}, {random:8}, {number:18.5..24.0}, {choice:on|off}:
    /// template:PATH, or records of an Avro schema, made from the seed: avro:FILE.avsc, json:FILE.avsc, avro-json:FILE.avsc
    #[arg(long, value_name = "WHAT", default_value = "size:256", value_hint = ValueHint::AnyPath)]
    payload: Payload,
    /// What is around records in Avro: schemaless, single-object, confluent, apicurio or container [default: schemaless]
    #[arg(long, value_name = "NAME")]
    avro_encoding: Option<Framing>,
    /// The schema's id in a registry, which confluent and apicurio put in front of each record; weir registers none
    #[arg(long, value_name = "ID")]
    schema_id: Option<u64>,
    /// Records in a message [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    records: Option<u32>,
    /// Publish only when every publisher of the run is connected and every subscription granted, or was not within the ramp and
    /// --timeout; of several agents, each waits for its own clients [default: each publishes when it is connected]
    #[arg(long)]
    wait_before_publishing: bool,
    /// Want an answer to each message at TOPIC (MQTT 5: Response Topic, Correlation Data), a template as --client-id; how long each
    /// takes is mqtt.round_trip. Without {client} in it, each publisher gets the answers of all
    #[arg(long, value_name = "TOPIC")]
    response_topic: Option<String>,
    /// Ask the broker to keep the messages
    #[arg(long)]
    retain: bool,
    /// A user property of each message (MQTT 5); may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = user_property)]
    user_property: Vec<(String, String)>,
    /// Content type of the messages (MQTT 5)
    #[arg(long, value_name = "TEXT")]
    content_type: Option<String>,
    /// For how long the broker may keep a message for a subscriber (MQTT 5), in whole seconds
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    message_expiry: Option<Duration>,
    /// Send the topic once a connection and a number in its place from then on, if the broker takes that (MQTT 5)
    #[arg(long)]
    topic_alias: bool,
}

/// What a message is filled with, as it is written.
#[derive(Clone)]
enum Payload {
    Size(usize),
    Sizes(RangeInclusive<usize>),
    File(PathBuf),
    Directory(PathBuf),
    Template(PathBuf),
    Avro(PathBuf),
    Json(PathBuf),
    AvroJson(PathBuf),
}

impl FromStr for Payload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("size", size)) => sizes(size).ok_or_else(|| {
                format!("'{size}' is not a number of bytes; write for example size:955, or size:100-2000")
            }),
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(path.into())),
            Some(("dir", path)) if !path.is_empty() => Ok(Self::Directory(path.into())),
            Some(("template", path)) if !path.is_empty() => Ok(Self::Template(path.into())),
            Some(("avro", path)) if !path.is_empty() => Ok(Self::Avro(path.into())),
            Some(("json", path)) if !path.is_empty() => Ok(Self::Json(path.into())),
            Some(("avro-json", path)) if !path.is_empty() => Ok(Self::AvroJson(path.into())),
            _ => Err(
                "write size:BYTES, size:LEAST-MOST, file:PATH, dir:PATH, template:PATH, avro:FILE.avsc, json:FILE.avsc or \
                 avro-json:FILE.avsc"
                    .to_owned(),
            ),
        }
    }
}

impl Messages {
    fn filling(&self) -> Result<Filling, WorkloadError> {
        let records = self.records.unwrap_or(1);
        let schema_id = self.schema_id.unwrap_or_default();
        let of = |schema: &PathBuf, format| Filling::Records {
            schema: schema.clone(),
            format,
            records,
            schema_id,
        };
        let filling = match &self.payload {
            Payload::Size(size) => Filling::Size(*size),
            Payload::Sizes(sizes) => Filling::Sizes(sizes.clone()),
            Payload::File(path) => Filling::File(path.clone()),
            Payload::Directory(path) => Filling::Directory(path.clone()),
            Payload::Template(path) => Filling::Template(path.clone()),
            Payload::Avro(path) => {
                of(path, RecordFormat::Avro(self.avro_encoding.unwrap_or(Framing::Schemaless)))
            }
            Payload::Json(path) => of(path, RecordFormat::Json),
            Payload::AvroJson(path) => of(path, RecordFormat::AvroJson),
        };
        let wrong = |words: &str| Err(WorkloadError::Options(words.to_owned()));
        let avro_encoding = AVRO_ENCODING.beside_flag(" (`avro_encoding`)");
        let schema_id = SCHEMA_ID.beside_flag(" (`schema_id`)");
        if self.records.is_some() && !matches!(filling, Filling::Records { .. }) {
            return wrong(
                "records are of avro:, json: and avro-json: payloads; name a schema, or leave records out",
            );
        }
        if self.avro_encoding.is_some() && !matches!(self.payload, Payload::Avro(_)) {
            return wrong(&format!(
                "{avro_encoding} is of avro: payloads; write avro:FILE.avsc, or leave it out"
            ));
        }
        match (self.avro_encoding, self.schema_id) {
            (Some(framing), None) if framing.is_registered() => {
                return wrong(&format!(
                    "confluent and apicurio records carry the id of their schema; give it by {schema_id}"
                ));
            }
            (Some(Framing::Confluent), Some(id)) if id > u32::MAX.into() => {
                return wrong(&format!(
                    "{schema_id}: confluent records have room for an id of 32 bits; write apicurio"
                ));
            }
            (framing, Some(_)) if !framing.is_some_and(Framing::is_registered) => {
                return wrong(&format!(
                    "{schema_id} is of {AVRO_ENCODING} confluent and apicurio; name one, or leave it out"
                ));
            }
            _ => {}
        }
        Ok(filling)
    }

    fn properties(&self) -> MessageProperties {
        MessageProperties {
            user: self.user_property.clone(),
            content_type: self.content_type.clone(),
            expiry: self.message_expiry,
            topic_alias: self.topic_alias,
        }
    }
}

impl Delivery {
    /// The quality of service, or the given default.
    fn qos_or(&self, usual: Qos) -> Qos {
        self.qos.and_then(Qos::from_bits).unwrap_or(usual)
    }
}

/// What all that speak MQTT have in common.
#[derive(Clone, Debug)]
pub struct Dialogue {
    /// How it connects.
    pub connection: Connection,
    /// Where WebSockets are.
    pub path: SocketPath,
    /// What is added to the request for a WebSocket.
    pub fields: GivenFields,
    /// Whose names it has.
    pub users: Users,
    /// How messages are delivered.
    pub delivery: Delivery,
}

impl Dialogue {
    /// That of a workload.
    ///
    /// # Errors
    /// A value that an option cannot have.
    pub fn read(given: &Given) -> Result<Self, WorkloadError> {
        let (connection, path) = (given.read()?, given.read()?);
        let fields = http::fields(given)?;
        Ok(Self { connection, path, fields, users: given.read()?, delivery: given.read()? })
    }

    /// What clients are told of it, with this quality of service and window unless it names others.
    ///
    /// # Errors
    /// Files of passwords that cannot be read, or two sources of them.
    pub fn options(&self, qos: Qos, window: u16) -> Result<MqttOptions, WorkloadError> {
        let Self { connection, path, fields, users, delivery } = self;
        let connect = &connection.connect;
        if users.credentials.is_some() && (connect.user.is_some() || connect.password_file.is_some()) {
            let users = CREDENTIALS.beside_flag(" (`credentials`)");
            let words = format!("{users} has the users and passwords; leave user and password_file out");
            return Err(WorkloadError::Options(words));
        }
        let mut credentials = users.read()?;
        let password = connect.password()?;
        if credentials.is_empty()
            && let Some(user) = connect.user()
        {
            credentials.push(Credentials { user, password: password.clone().unwrap_or_default() });
        }
        Ok(MqttOptions {
            version: connect.mqtt_version,
            credentials,
            password: password.map(Password),
            client_id: connect.client_id.clone(),
            session: connect.session,
            socket_path: path.ws_path.clone(),
            given: fields.clone(),
            keep_alive: connect.keep_alive,
            qos: delivery.qos_or(qos),
            window: delivery.window.unwrap_or(window),
            reconnect: !connection.no_reconnect,
            retry_connect: connection.retry_connect,
            topic_alias_maximum: connect.topic_alias_maximum,
            will: connection.will()?,
            ..MqttOptions::default()
        })
    }
}

/// What subscribers and publishers of a run have in common.
fn options(given: &Given, run: &RunContext) -> Result<MqttOptions, WorkloadError> {
    let Outages { break_every } = given.read()?;
    let usual = MqttOptions::default();
    Ok(MqttOptions {
        break_every,
        // A tenth of the time for goodbyes is left for the goodbye itself.
        linger: run.drain.mul_f64(0.9),
        published: Some(Arc::clone(&run.messages.published)),
        shared_subscriptions: Some(Arc::clone(&run.messages.shared_subscriptions)),
        members_elsewhere: run.messages.is_part,
        start_gate: Some(Arc::clone(&run.messages.start_gate)),
        seed: run.seed,
        times: run.messages.times.clone(),
        ..Dialogue::read(given)?.options(usual.qos, usual.window)?
    })
}

fn publish(making: Making<'_, PublishOptions>) -> Result<Workload, WorkloadError> {
    let messages: Messages = making.given.read()?;
    let options = MqttOptions {
        rate: messages.rate,
        arrivals: messages.arrivals,
        count: messages.count,
        filling: messages.filling()?,
        retain: messages.retain,
        wait_before_publishing: messages.wait_before_publishing,
        response_topic: messages.response_topic.clone(),
        properties: messages.properties(),
        ..options(making.given, making.run)?
    };
    let shared = PublishOptions { stamp: Stamp::is_on(making.given)?, ..making.options };
    mqtt::publish(making.urls, &shared, &options)
}

/// What each publisher sends.
fn output(given: &Given, seed: u64) -> Output {
    let Ok(messages) = given.read::<Messages>() else { return Output::default() };
    let Messages { rate, count, .. } = messages;
    let size = messages.filling().ok().and_then(|filling| filling.mean_size(seed, count));
    Output {
        bit_rate: size.map(|size| BitRate::from_bps(rate * size * 8.0)),
        messages_per_second: Some(rate),
        count,
        about: count.map(|count| Duration::from_secs_f64((count as f64 / rate).min(LONGEST))),
        acknowledged: acknowledged(given),
        ..Output::default()
    }
}

fn acknowledged(given: &Given) -> bool {
    given.read::<Delivery>().is_ok_and(|it| it.qos_or(Qos::AtMostOnce) != Qos::AtMostOnce)
}

fn connects_only(given: &Given) -> bool {
    given.read::<Subscriptions>().is_ok_and(|it| it.connect_only)
}

/// Whether no message comes. With a session of before its subscriptions go on.
fn hears_nothing(given: &Given) -> bool {
    connects_only(given) && given.read::<Connection>().is_ok_and(|it| it.connect.session.is_none())
}

/// A version as a person writes it.
///
/// # Errors
/// The text is not a version; the error lists the versions.
pub fn version(text: &str) -> Result<MqttVersion, String> {
    match text {
        "5" | "5.0" => Ok(MqttVersion::V5),
        "3.1.1" | "4" => Ok(MqttVersion::V311),
        other => Err(format!("'{other}' is not a version; write 5 or 3.1.1")),
    }
}

fn arrivals(text: &str) -> Result<Arrivals, String> {
    match text {
        "even" => Ok(Arrivals::Even),
        "random" => Ok(Arrivals::Random),
        "poisson" => Ok(Arrivals::Poisson),
        other => {
            Err(format!("'{other}' is not a way that messages are spread; write even, random or poisson"))
        }
    }
}

fn retain_handling(text: &str) -> Result<RetainHandling, String> {
    match text {
        "always" => Ok(RetainHandling::Always),
        "new" => Ok(RetainHandling::New),
        "never" => Ok(RetainHandling::Never),
        other => Err(format!("'{other}' is not a retain handling; write always, new or never")),
    }
}

/// `955`, or `100-2000`.
fn sizes(text: &str) -> Option<Payload> {
    let Some((least, most)) = text.split_once('-') else { return text.parse().ok().map(Payload::Size) };
    let (least, most) = (least.parse().ok()?, most.parse().ok()?);
    (least <= most).then_some(Payload::Sizes(least..=most))
}

fn socket_path(text: &str) -> Result<String, String> {
    let is_path = text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_path { Ok(text.to_owned()) } else { Err("write a path such as /mqtt, percent-encoded".to_owned()) }
}

fn filter(text: &str) -> Result<String, String> {
    mqtt::check_filter(text).map(|()| text.to_owned())
}

fn user_property(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests;
