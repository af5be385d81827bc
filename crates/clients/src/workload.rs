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
use weir_shard::tls::{ClientTls, TlsError};
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

    /// Whether, of publishers and viewers in one run, the viewers leave last: what was sent last is to be received. Other
    /// viewers leave first, so that none sees its stream end.
    fn viewers_leave_last(&self) -> bool {
        false
    }

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
    /// How to secure links.
    pub tls: ClientTls,
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
            tls: ClientTls::default(),
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
    /// How to secure links.
    pub tls: ClientTls,
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
            tls: ClientTls::default(),
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

/// Every scheme that clients speak.
pub fn schemes() -> impl Iterator<Item = &'static str> {
    SCHEMAS.iter().flat_map(|(schemes, _)| schemes.iter().copied())
}

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

/// What is asked of viewers that read the rate of their source off its stream. A tenth below it is more than the scatter
/// of a window of ten seconds (a keyframe more or less at its edges), and less than a viewer in seven that gets nothing.
const WHOLE_RATE: &str = "bitrate.ratio >= 90%";

/// What is asked of viewers that need media all the time: one in a hundred may get none for its timeout.
const NOBODY_STARVES: &str = "starved.ratio <= 1%";

/// One line a protocol: the schemes, the least quality of service that promises it (0: it always holds), and what is
/// asked of viewers by default, beside what is asked of every client. Where a protocol knows of loss, none is silent.
const ASKED: &[(&[&str], u8, &[&str])] = &[
    (&["rtmp", "rtmps"], 0, &[WHOLE_RATE, NOBODY_STARVES]),
    (&["http", "https"], 0, &[WHOLE_RATE, NOBODY_STARVES, ts::WHOLE]),
    // A server that was asked for all that it has: each service counts.
    (
        &["mirakurun+http", "mirakurun+https"],
        0,
        &["failed.ratio == 0", WHOLE_RATE, NOBODY_STARVES, ts::WHOLE],
    ),
    (
        &["whep+http", "whep+https", "ws", "wss"],
        0,
        &[WHOLE_RATE, NOBODY_STARVES, rtc::WHOLE_FRAME_RATE, rtc::FEW_LOST],
    ),
    // What was acknowledged at QoS 1 and 2 is to arrive.
    (&["mqtt", "mqtts"], 1, &["lost == 0"]),
];

/// What is asked of the viewers of a URL by default, written as thresholds: what its protocol promises at this quality
/// of service (0 for protocols that have none).
pub fn asked_of(url: &str, qos: u8) -> impl Iterator<Item = &'static str> + use<> {
    let scheme = scheme_of(url).unwrap_or_default();
    let rows = ASKED.iter().filter(move |(schemes, least, _)| schemes.contains(&&*scheme) && *least <= qos);
    rows.flat_map(|(_, _, asked)| asked.iter().copied())
}

/// One line a protocol whose streams are played at the URL that they are published to, and whose viewers count pictures
/// and sound apart: what is asked for the pictures, and for the sound. A server takes a codec that it has not, and shows
/// nothing of it.
const SHOWN: &[(&[&str], &str, &str)] = &[(&["rtmp", "rtmps"], "keyframes > 0", "rtmp.audio_frames > 0")];

/// What is asked of the viewers of a stream that the run itself publishes at this URL, written as thresholds: that its
/// pictures are shown, and its sound if it has one. None where it is played elsewhere.
pub fn shown_of(url: &str, has_sound: bool) -> impl Iterator<Item = &'static str> + use<> {
    let scheme = scheme_of(url).unwrap_or_default();
    let row = SHOWN.iter().find(move |(schemes, _, _)| schemes.contains(&&*scheme));
    let asked = row.map(|(_, pictures, sound)| [Some(*pictures), has_sound.then_some(*sound)]);
    asked.into_iter().flatten().flatten()
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
    protocols: &[(&'static [&'static str], Make<Options>)],
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
                    let known = protocols.iter().flat_map(|(schemes, _)| *schemes).copied();
                    return Err(TargetError::unknown_scheme(url, verb, scheme, known).into());
                }
            },
        }
    }
    found.map(|(_, make, _)| make).ok_or_else(|| TargetError::None.into())
}
