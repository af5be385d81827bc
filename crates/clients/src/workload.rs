//! The seam to the engine: what a group of clients does, and how one of them is made.

use crate::bulk::{self, BulkOptions};
use crate::column::Column;
use crate::ledger::{Ledger, Slot};
use crate::life::Timeouts;
use crate::material::{MaterialError, MaterialOptions};
use crate::mqtt::{self, FillingError, MqttOptions};
use crate::rtc::{self, RtcOptions};
use crate::rtmp::{self, RtmpOptions};
use crate::target::{Target, TargetError, expand, scheme_of};
use crate::ts::{self, DiscoveryError, HttpOptions, MirakurunOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use weir_metrics::{Moment, Schema};
use weir_shard::tls::{TlsError, Trust};
use weir_shard::{Door, Session};

/// A group of clients that do the same. Client n goes to target n modulo the number of targets.
pub trait Workload: Send + Sync {
    /// The figures that its clients fill.
    fn schema(&self) -> Schema;

    /// Its targets, in the order of their URLs.
    fn targets(&self) -> &[Target];

    /// Where a client's link leads.
    fn door(&self, client: u32) -> &Door;

    /// A client whose link is being opened `now`; give it to [`weir_shard::Shard::open`].
    fn start(&self, slot: Slot, now: Moment, ledger: &mut Ledger) -> Box<dyn Session<Ledger>>;

    /// What the servers say that they are, where they were asked.
    fn servers(&self) -> &[ServerVersion] {
        &[]
    }

    /// A few words for reports: what it does, and to what. Holds no secret.
    fn describe(&self) -> String;
}

/// The version of a server, in its own words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerVersion {
    /// The server, without secrets.
    pub url: String,
    /// Its version.
    pub version: String,
}

/// How to play.
#[derive(Clone, Debug)]
pub struct PlayOptions {
    /// How many streams `{i}` in a URL stands for.
    pub streams: u32,
    /// Longest stay in each phase before playing.
    pub timeouts: Timeouts,
    /// The first so many clients are witnesses.
    pub first_witnesses: u32,
    /// Of the others, every so-manieth is a witness; 0 for none.
    pub witness_every: u32,
    /// How much the modelled player buffers before it begins to play.
    pub playout_buffer: Duration,
    /// How much it buffers before it plays on after a stall; `None` for as much as at the start.
    pub rebuffer: Option<Duration>,
    /// How long a stream that has ended may take to come back before its viewers have failed.
    pub end_grace: Duration,
    /// Whom to trust over TLS.
    pub trust: Trust,
    /// What only RTMP has.
    pub rtmp: RtmpOptions,
    /// What only HTTP has.
    pub http: HttpOptions,
    /// Which services of a Mirakurun or mirakc server.
    pub mirakurun: MirakurunOptions,
    /// What only MQTT has.
    pub mqtt: MqttOptions,
    /// What only WebRTC has.
    pub rtc: RtcOptions,
    /// What only bulk streams have.
    pub bulk: BulkOptions,
}

impl Default for PlayOptions {
    fn default() -> Self {
        Self {
            streams: 1,
            timeouts: Timeouts::all(Duration::from_secs(10)),
            first_witnesses: 4,
            witness_every: 200,
            playout_buffer: Duration::from_secs(1),
            rebuffer: None,
            end_grace: Duration::from_secs(2),
            trust: Trust::System,
            rtmp: RtmpOptions::default(),
            http: HttpOptions::default(),
            mirakurun: MirakurunOptions::default(),
            mqtt: MqttOptions::default(),
            rtc: RtcOptions::default(),
            bulk: BulkOptions::default(),
        }
    }
}

impl PlayOptions {
    /// Whether a client reads at every event.
    pub fn is_witness(&self, client: u32) -> bool {
        client < self.first_witnesses || self.witness_every > 0 && client.is_multiple_of(self.witness_every)
    }
}

/// How to publish, and what.
#[derive(Clone, Debug)]
pub struct PublishOptions {
    /// How many streams `{i}` in a URL stands for.
    pub streams: u32,
    /// Longest stay in each phase before publishing.
    pub timeouts: Timeouts,
    /// How long a server may take nothing.
    pub send_timeout: Duration,
    /// What to publish.
    pub material: MaterialOptions,
    /// Whether every video frame carries a clock stamp.
    pub stamp: bool,
    /// Whom to trust over TLS.
    pub trust: Trust,
    /// What only RTMP has.
    pub rtmp: RtmpOptions,
    /// What only MQTT has.
    pub mqtt: MqttOptions,
    /// What only WebRTC has.
    pub rtc: RtcOptions,
    /// What only bulk streams have.
    pub bulk: BulkOptions,
}

impl Default for PublishOptions {
    fn default() -> Self {
        Self {
            streams: 1,
            timeouts: Timeouts::all(Duration::from_secs(10)),
            send_timeout: Duration::from_secs(10),
            material: MaterialOptions::default(),
            stamp: true,
            trust: Trust::System,
            rtmp: RtmpOptions::default(),
            mqtt: MqttOptions::default(),
            rtc: RtcOptions::default(),
            bulk: BulkOptions::default(),
        }
    }
}

/// A workload that cannot be had; says why and what to do.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// A URL leads nowhere.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// TLS settings could not be made.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// There is nothing to publish.
    #[error(transparent)]
    Material(#[from] MaterialError),
    /// The services of a server could not be found.
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    /// There is no payload to publish.
    #[error(transparent)]
    Filling(#[from] FillingError),
    /// A name, a user or a will that CONNECT has no room for.
    #[error("mqtt: {0}")]
    Mqtt(weir_mqtt::EncodeError),
    /// There is no certificate to show over DTLS.
    #[error("no certificate for DTLS can be made: {0}; is there a source of randomness?")]
    Certificate(String),
    /// The URLs speak several protocols.
    #[error("{first}:// and {second}:// in one workload; give each its own")]
    SeveralProtocols {
        /// A scheme.
        first: String,
        /// A scheme of another protocol.
        second: String,
    },
}

type Make<Options> = fn(&[String], &Options) -> Result<Box<dyn Workload>, WorkloadError>;

/// One line a protocol that can be played: the schemes, and who makes the workload.
const PLAYERS: &[(&[&str], Make<PlayOptions>)] = &[
    (&["rtmp", "rtmps"], rtmp::play),
    (&["http", "https"], ts::play),
    (&["mqtt", "mqtts"], mqtt::play),
    (&["mirakurun+http", "mirakurun+https"], ts::mirakurun::play),
    (&["whep+http", "whep+https"], rtc::whep),
    (&["ws", "wss"], rtc::oven),
    (&["bulk"], bulk::play),
];

/// One line a protocol that can be published.
const PUBLISHERS: &[(&[&str], Make<PublishOptions>)] = &[
    (&["rtmp", "rtmps"], rtmp::publish),
    (&["mqtt", "mqtts"], mqtt::publish),
    (&["whip+http", "whip+https"], rtc::whip),
    (&["bulk"], bulk::publish),
];

/// One line a protocol: the figures of its clients.
const SCHEMAS: &[(&[&str], Schema)] = &[
    (&["rtmp", "rtmps"], rtmp::SCHEMA),
    (&["http", "https"], ts::SCHEMA),
    (&["mqtt", "mqtts"], mqtt::SCHEMA),
    (&["whep+http", "whep+https", "ws", "wss", "whip+http", "whip+https"], rtc::SCHEMA),
    (&["bulk"], bulk::SCHEMA),
];

/// The figures of the clients of a scheme, for reading back what they have written.
pub fn schema_of(scheme: &str) -> Option<Schema> {
    SCHEMAS.iter().find(|(schemes, _)| schemes.contains(&scheme)).map(|(_, schema)| *schema)
}

/// One line a protocol whose viewers leave numbers behind when they end.
const COLUMNS: &[(&[&str], &[Column])] =
    &[(&["http", "https"], ts::COLUMNS), (&["whep+http", "whep+https", "ws", "wss"], rtc::COLUMNS)];

/// What viewers of a scheme leave behind when they end: the columns of [`crate::Account::numbers`]. None: nothing.
pub fn columns_of(scheme: &str) -> &'static [Column] {
    COLUMNS.iter().find(|(schemes, _)| schemes.contains(&scheme)).map_or(&[], |(_, columns)| *columns)
}

/// Viewers of these URLs, by their scheme. Resolves names, so it may take a while.
///
/// # Errors
/// A URL that leads nowhere, or TLS settings that cannot be made.
pub fn play(urls: &[String], options: &PlayOptions) -> Result<Box<dyn Workload>, WorkloadError> {
    let urls: Vec<_> = urls.iter().flat_map(|url| expand(url, options.streams)).collect();
    protocol("play", PLAYERS, &urls)?(&urls, options)
}

/// Publishers to these URLs, by their scheme. Resolves names and makes the material, so it may take a while.
///
/// # Errors
/// A URL that leads nowhere, TLS settings or material that cannot be made.
pub fn publish(urls: &[String], options: &PublishOptions) -> Result<Box<dyn Workload>, WorkloadError> {
    let urls: Vec<_> = urls.iter().flat_map(|url| expand(url, options.streams)).collect();
    protocol("publish", PUBLISHERS, &urls)?(&urls, options)
}

/// Who makes workloads of the scheme of all these URLs.
fn protocol<Options>(
    verb: &'static str,
    protocols: &[(&[&str], Make<Options>)],
    urls: &[String],
) -> Result<Make<Options>, WorkloadError> {
    let mut found: Option<(&[&str], Make<Options>, String)> = None;
    for url in urls {
        let scheme = scheme_of(url)?;
        match &found {
            Some((schemes, _, _)) if schemes.contains(&&*scheme) => {}
            Some((_, _, first)) => {
                return Err(WorkloadError::SeveralProtocols { first: first.clone(), second: scheme });
            }
            None => match protocols.iter().find(|(schemes, _)| schemes.contains(&&*scheme)) {
                Some((schemes, make)) => found = Some((schemes, *make, scheme)),
                None => {
                    let known: Vec<_> =
                        protocols.iter().flat_map(|(s, _)| *s).map(|s| format!("{s}://")).collect();
                    let url = crate::target::shown(url);
                    let known = known.join(", ");
                    return Err(TargetError::UnknownScheme { url, verb, scheme, known }.into());
                }
            },
        }
    }
    found.map(|(_, make, _)| make).ok_or_else(|| TargetError::None.into())
}
