//! What a tuner server offers, as its owner says it.

use super::material::{Material, MaterialError};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;
use weir_ts::{Analyser, Options};

/// Bytes of a file in which its tables must show; they come ten times a second.
const TABLES_WITHIN: u64 = 8 << 20;

/// What a tuner server offers, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuners {
    /// The services. The first is also `/1.ts`.
    pub services: Vec<Service>,
    /// How long packets may wait to be sent together.
    pub merge: Duration,
    /// How far a reader may fall behind. A reader that falls further loses everything that waits for it, as with a
    /// device whose buffer runs over.
    pub queue: Duration,
    /// The same in bytes.
    pub queue_bytes: u64,
    /// Whether streams go in the chunked coding of HTTP/1.1, unless a reader asks otherwise (`?chunked=0`).
    pub chunked: bool,
}

impl Default for Tuners {
    /// No service; 40 ms of merging; two seconds or 16 MiB of buffer; chunked.
    fn default() -> Self {
        Self {
            services: Vec::new(),
            merge: Duration::from_millis(40),
            queue: Duration::from_secs(2),
            queue_bytes: 16 << 20,
            chunked: true,
        }
    }
}

/// One service on a channel of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// What viewers see.
    pub name: String,
    /// `original_network_id` (ETSI EN 300 468 section 5.2).
    pub network_id: u16,
    /// `service_id`, the `program_number` of the PAT.
    pub service_id: u16,
    /// The kind of channel that it is on.
    pub channel_type: ChannelType,
    /// The channel, as tuners name it: `27`, `BS15_0`.
    pub channel: String,
    /// What it plays.
    pub material: Material,
}

/// The kinds of channels that Mirakurun knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChannelType {
    /// Terrestrial.
    Gr,
    /// Broadcasting satellite.
    Bs,
    /// Communication satellite.
    Cs,
    /// SKY PerfecTV!
    Sky,
}

impl ChannelType {
    /// As the API writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gr => "GR",
            Self::Bs => "BS",
            Self::Cs => "CS",
            Self::Sky => "SKY",
        }
    }

    /// All of them.
    pub const ALL: [Self; 4] = [Self::Gr, Self::Bs, Self::Cs, Self::Sky];
}

impl fmt::Display for ChannelType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that is no kind of channel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a channel type; known are GR, BS, CS and SKY")]
pub struct ParseChannelTypeError(String);

impl FromStr for ChannelType {
    type Err = ParseChannelTypeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| ParseChannelTypeError(text.to_owned()))
    }
}

impl Service {
    /// Service number `number`, from 1, of this kind of channel, with the network and channel that such a
    /// one might have.
    pub fn numbered(number: u16, channel_type: ChannelType, material: Material) -> Self {
        // Networks for private use (ETSI TS 101 162): names are then coded as ETSI has it. Japan's are in ARIB's.
        let (network_id, service_id, channel) = match channel_type {
            ChannelType::Gr => (0xFF01, 1_000 + number, format!("{}", 12 + number)),
            ChannelType::Bs => (0xFF02, 2_000 + number, format!("BS{number:02}_0")),
            ChannelType::Cs => (0xFF03, 3_000 + number, format!("CS{number}")),
            ChannelType::Sky => (0xFF04, 4_000 + number, format!("CH{number}")),
        };
        let name = format!("weir {channel_type} {number}");
        Self { name, network_id, service_id, channel_type, channel, material }
    }

    /// Service number `number`, from 1, of those that come from files. Its service and its name are those of
    /// the first program in the file; its network is its own.
    ///
    /// # Errors
    /// The file cannot be read. Whether it can be looped shows when the origin starts.
    pub fn stored(number: u16, path: &Path) -> Result<Self, MaterialError> {
        let unread = |source| MaterialError::Read { path: path.display().to_string(), source };
        let mut beginning = Vec::new();
        File::open(path).map_err(unread)?.take(TABLES_WITHIN).read_to_end(&mut beginning).map_err(unread)?;
        let mut analyser = Analyser::new(Options::default());
        analyser.feed(&beginning);
        let report = analyser.report();
        let service_id = report.programs.first().map_or(number, |program| program.number);
        let told = report.services.iter().find(|service| service.id == service_id);
        let name = match told.map(|service| &*service.name).filter(|name| !name.is_empty()) {
            Some(name) => name.to_owned(),
            None => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        };
        let material = Material::File(path.to_owned());
        let like = Self::numbered(number, ChannelType::Sky, material);
        Ok(Self { name, service_id, network_id: 0xFF10_u16.saturating_add(number), ..like })
    }

    /// The number that the API knows it by: network and service in one.
    pub fn id(&self) -> u64 {
        u64::from(self.network_id) * 100_000 + u64::from(self.service_id)
    }
}
