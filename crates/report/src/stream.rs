//! What `weir check` found in a stored transport stream: the value that is written as JSON, with its schema.
//!
//! Made from the analyser's report once, then a value like a run's summary: nothing here reads a stream or a file.

use crate::json;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde::ser::Serializer;
use std::borrow::Cow;
use std::io;
use weir_engine::summary::ThresholdResult;
use weir_ts::{Counts, Finding, Mark, PcrFigures, PidKind, PidReport, Program, Report, Service, StreamTime};

/// The version of the layout; `docs/check.schema.json` follows it.
const LAYOUT: &str = "weir.check/1";

/// A checked transport stream.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StreamCheck {
    /// `weir.check/1`.
    pub layout: String,
    /// weir's version.
    pub weir_version: String,
    /// The file; `-`: standard input.
    pub source: String,
    /// Whether the check was ended before the stream was.
    pub interrupted: bool,
    /// From one sync byte to the next: 188, 192 or 204; the last one, where it changes.
    pub packet_size_bytes: Option<u64>,
    /// Out of the PAT.
    pub transport_stream_id: Option<u16>,
    /// From the first clock reference to the end, by the stream's own clock.
    pub duration_seconds: Option<f64>,
    /// Bits a second of packets of 188 bytes, null packets included, by the stream's own clock.
    pub bit_rate_bps: Option<f64>,
    /// Where decoding can begin: PAT, PMT and a random access point of that program.
    pub decodable: Option<StreamPosition>,
    /// Every total by its name; `docs/method` defines each.
    pub counts: Totals,
    /// ETSI TR 101 290, first and second priority, in its order.
    pub indicators: Vec<IndicatorCount>,
    /// The programs of the PAT.
    pub programs: Vec<ProgramEntry>,
    /// The services of the SDT.
    pub services: Vec<ServiceEntry>,
    /// Every PID that occurred, in order.
    pub pids: Vec<PidEntry>,
    /// What is wrong, in the stream's order: of each kind the first `findings_per_kind`.
    pub findings: Vec<FindingEntry>,
    /// How many findings of each kind are kept; the rest is counted only.
    pub findings_per_kind: u32,
    /// What was asked of the stream, and whether it held.
    pub thresholds: Vec<ThresholdResult>,
}

/// Every total of a stream under its name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Totals(pub Counts);

/// An indicator of ETSI TR 101 290.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct IndicatorCount {
    /// The number in the tables of its section 5.2.
    pub number: String,
    /// The name that it has there.
    pub name: String,
    /// 1 or 2.
    pub priority: u8,
    /// How often.
    pub count: u64,
}

/// A place in the stream.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Place")]
pub struct StreamPosition {
    /// How many packets came before it.
    pub packet: u64,
    /// How many bytes came before its packet.
    pub byte: u64,
    /// On which PID.
    pub pid: u16,
    /// Since the first clock reference; none before that.
    pub time_seconds: Option<f64>,
}

/// A program of the PAT.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ProgramEntry {
    /// Its number: the service id.
    pub number: u16,
    /// The PID of its map.
    pub pmt_pid: u16,
    /// Version of its map; none: it did not come.
    pub version: Option<u8>,
    /// The PID of its clock; none: it has no clock, or its map did not come.
    pub pcr_pid: Option<u16>,
    /// Its elementary streams.
    pub components: Vec<ComponentEntry>,
}

/// An elementary stream of a program.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ComponentEntry {
    /// Its PID.
    pub pid: u16,
    /// ISO/IEC 13818-1 table 2-34.
    pub stream_type: u8,
    /// What that and the descriptors mean.
    pub codec: String,
    /// ISO 639-2 code.
    pub language: Option<String>,
    /// The text of its component descriptor.
    pub name: Option<String>,
}

/// A service of the SDT.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ServiceEntry {
    /// Its id: the program's number.
    pub id: u16,
    /// ETSI EN 300 468 table 87.
    pub service_type: u8,
    /// Its provider.
    pub provider: String,
    /// Its name.
    pub name: String,
}

/// One PID.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PidEntry {
    /// The packet identifier.
    pub pid: u16,
    /// What it carries: a table, a codec, `null`, `clock`, `unknown`.
    pub carries: String,
    /// ISO 639-2 code, where a program map names one.
    pub language: Option<String>,
    /// Bits a second of its packets, by the stream's own clock.
    pub bit_rate_bps: Option<f64>,
    /// Whole packets, those with `transport_error_indicator` apart.
    pub packets: u64,
    /// As the total of this name.
    pub gap_events: u64,
    /// As the total of this name.
    pub lost_packets: u64,
    /// As the total of this name.
    pub legal_duplicates: u64,
    /// As the total of this name.
    pub illegal_duplicates: u64,
    /// As the total of this name; the PID in such a packet may be wrong.
    pub transport_errors: u64,
    /// As the total of this name.
    pub scrambled_packets: u64,
    /// As the total of this name.
    pub reserved_scrambling_packets: u64,
    /// As the total of this name.
    pub discontinuity_indicators: u64,
    /// As the total of this name.
    pub aribts_drops: u64,
    /// PES packets that began.
    pub pes_packets: u64,
    /// As the total of this name.
    pub random_access_indicators: u64,
    /// As the total of this name.
    pub pts_jumps: u64,
    /// Its clock references, if it has any.
    pub pcr: Option<ClockEntry>,
    /// Where decoding it can begin first.
    pub first_random_access: Option<StreamPosition>,
}

/// The program clock references of a PID.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ClockEntry {
    /// How many.
    pub count: u64,
    /// The shortest interval, discontinuities apart.
    pub interval_min_seconds: Option<f64>,
    /// The mean interval.
    pub interval_mean_seconds: Option<f64>,
    /// The longest interval.
    pub interval_max_seconds: Option<f64>,
    /// The farthest that one lay off the constant rate of the stream; none where the rate was never constant.
    pub jitter_max_seconds: Option<f64>,
    /// Jumps that nothing announced.
    pub discontinuities: u64,
}

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FindingEntry {
    /// Its kind.
    pub kind: String,
    /// How many packets came before it.
    pub packet: u64,
    /// How many bytes came before its packet.
    pub byte: u64,
    /// On which PID; none: it is about the whole stream.
    pub pid: Option<u16>,
    /// Since the first clock reference; none before that.
    pub time_seconds: Option<f64>,
    /// The program clock itself at this place.
    pub pcr_seconds: Option<f64>,
    /// What is wrong, in words.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

/// How a stream was checked.
#[derive(Clone, Debug, Default)]
pub struct Circumstances {
    /// The file; `-`: standard input.
    pub source: String,
    /// Whether the check was ended before the stream was.
    pub interrupted: bool,
    /// How many findings of each kind are kept.
    pub findings_per_kind: u32,
    /// What was asked of the stream, and whether it held.
    pub thresholds: Vec<ThresholdResult>,
}

impl StreamCheck {
    /// From what the analyser knows at the end.
    pub fn new(report: &Report, circumstances: Circumstances) -> Self {
        let priority = |it: weir_ts::Priority| if it == weir_ts::Priority::First { 1 } else { 2 };
        let indicators = report.counts.indicators().into_iter().map(|it| IndicatorCount {
            number: it.number.to_owned(),
            name: it.name.to_owned(),
            priority: priority(it.priority),
            count: it.count,
        });
        let language = |pid: u16| {
            let mut components = report.programs.iter().flat_map(|program| &program.components);
            components.find(|component| component.pid == pid)?.language.clone()
        };
        Self {
            layout: LAYOUT.to_owned(),
            weir_version: env!("CARGO_PKG_VERSION").to_owned(),
            source: circumstances.source,
            interrupted: circumstances.interrupted,
            packet_size_bytes: report.packet_size.map(|size| size.bytes() as u64),
            transport_stream_id: report.transport_stream_id,
            duration_seconds: report.duration.map(StreamTime::as_seconds),
            bit_rate_bps: report.bit_rate,
            decodable: report.decodable.map(StreamPosition::from),
            counts: Totals(report.counts),
            indicators: indicators.collect(),
            programs: report.programs.iter().map(ProgramEntry::from).collect(),
            services: report.services.iter().map(ServiceEntry::from).collect(),
            pids: report.pids.iter().map(|pid| PidEntry::new(pid, language(pid.pid))).collect(),
            findings: report.findings.iter().map(FindingEntry::from).collect(),
            findings_per_kind: circumstances.findings_per_kind,
            thresholds: circumstances.thresholds,
        }
    }

    /// Writes it as JSON, indented. [`crate::schema`] describes it.
    ///
    /// # Errors
    /// `out` does not take it.
    pub fn write_json(&self, out: &mut dyn io::Write) -> io::Result<()> {
        json::write(self, out)
    }
}

impl Serialize for Totals {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.named())
    }
}

impl JsonSchema for Totals {
    fn schema_name() -> Cow<'static, str> {
        "Totals".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let count = || serde_json::json!({ "type": "integer", "minimum": 0 });
        let properties: serde_json::Map<_, _> =
            Counts::NAMES.iter().map(|name| ((*name).to_owned(), count())).collect();
        json_schema!({
            "description": "Every total of a stream under its name.",
            "type": "object",
            "properties": properties,
            "required": Counts::NAMES,
        })
    }
}

impl From<Mark> for StreamPosition {
    fn from(mark: Mark) -> Self {
        let time_seconds = mark.time.map(StreamTime::as_seconds);
        Self { packet: mark.packet, byte: mark.byte, pid: mark.pid, time_seconds }
    }
}

impl From<&Program> for ProgramEntry {
    fn from(program: &Program) -> Self {
        let components = program.components.iter().map(|component| ComponentEntry {
            pid: component.pid,
            stream_type: component.stream_type,
            codec: component.codec.to_string(),
            language: component.language.clone(),
            name: component.name.clone(),
        });
        Self {
            number: program.number,
            pmt_pid: program.pmt_pid,
            version: program.version,
            pcr_pid: program.pcr_pid.filter(|pid| *pid != weir_ts::packet::pid::NULL),
            components: components.collect(),
        }
    }
}

impl From<&Service> for ServiceEntry {
    fn from(service: &Service) -> Self {
        Self {
            id: service.id,
            service_type: service.service_type,
            provider: service.provider.clone(),
            name: service.name.clone(),
        }
    }
}

impl PidEntry {
    fn new(report: &PidReport, language: Option<String>) -> Self {
        let counts = report.counts;
        Self {
            pid: report.pid,
            carries: match report.kind {
                PidKind::Pat => "PAT".to_owned(),
                PidKind::Cat => "CAT".to_owned(),
                PidKind::Pmt => "PMT".to_owned(),
                PidKind::ServiceInformation => "SI".to_owned(),
                PidKind::Null => "null".to_owned(),
                PidKind::Component(codec) => codec.to_string(),
                PidKind::Clock => "clock".to_owned(),
                PidKind::Unknown => "unknown".to_owned(),
            },
            language,
            bit_rate_bps: report.bit_rate,
            packets: counts.packets,
            gap_events: counts.gap_events,
            lost_packets: counts.lost_packets,
            legal_duplicates: counts.legal_duplicates,
            illegal_duplicates: counts.illegal_duplicates,
            transport_errors: counts.transport_errors,
            scrambled_packets: counts.scrambled_packets,
            reserved_scrambling_packets: counts.reserved_scrambling_packets,
            discontinuity_indicators: counts.discontinuity_indicators,
            aribts_drops: counts.aribts_drops,
            pes_packets: counts.pes_packets,
            random_access_indicators: counts.random_access_indicators,
            pts_jumps: counts.pts_jumps,
            pcr: report.pcr.map(ClockEntry::from),
            first_random_access: report.first_random_access.map(StreamPosition::from),
        }
    }
}

impl From<PcrFigures> for ClockEntry {
    fn from(figures: PcrFigures) -> Self {
        let interval = |ticks: f64| (figures.intervals > 0).then(|| ticks / weir_ts::TICKS_PER_SECOND as f64);
        Self {
            count: figures.count,
            interval_min_seconds: interval(figures.interval_min as f64),
            interval_mean_seconds: interval(figures.interval_sum as f64 / figures.intervals.max(1) as f64),
            interval_max_seconds: interval(figures.interval_max as f64),
            jitter_max_seconds: figures.jitter_max_nanoseconds.map(|nanoseconds| nanoseconds / 1e9),
            discontinuities: figures.discontinuities,
        }
    }
}

impl From<&Finding> for FindingEntry {
    fn from(finding: &Finding) -> Self {
        Self {
            kind: finding.kind.name().to_owned(),
            packet: finding.packet,
            byte: finding.byte,
            pid: finding.pid,
            time_seconds: finding.time.map(StreamTime::as_seconds),
            pcr_seconds: finding.pcr.map(|pcr| pcr.ticks() as f64 / weir_ts::TICKS_PER_SECOND as f64),
            message: finding.kind.to_string(),
            remedy: finding.kind.remedy().to_owned(),
        }
    }
}
