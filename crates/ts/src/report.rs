//! What is known of a stream, as one value.

use crate::alignment::PacketSize;
use crate::clock::{PcrFigures, StreamTime};
use crate::counts::{Counts, PidCounts};
use crate::finding::Finding;
use crate::packet::{PACKET_LENGTH, pid};
use crate::record::Mark;
use crate::scan::Scan;
use crate::stream_type::Codec;
use crate::tables::{Program, Service};

/// What a PID is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PidKind {
    /// The program association table.
    Pat,
    /// The conditional access table.
    Cat,
    /// A program map.
    Pmt,
    /// Service information: NIT, SDT, BAT, EIT, TDT, TOT.
    ServiceInformation,
    /// Null packets.
    Null,
    /// An elementary stream that a program map names.
    Component(Codec),
    /// A clock and nothing else.
    Clock,
    /// No table names it.
    Unknown,
}

/// One PID.
#[derive(Clone, Debug, PartialEq)]
pub struct PidReport {
    /// The packet identifier.
    pub pid: u16,
    /// What it is for.
    pub kind: PidKind,
    /// What was counted on it.
    pub counts: PidCounts,
    /// Bits per second of packets, by the stream's own time; `None` while that is not known.
    pub bit_rate: Option<f64>,
    /// Its clock references, if it has any.
    pub pcr: Option<PcrFigures>,
    /// Where decoding it could begin first.
    pub first_random_access: Option<Mark>,
}

/// A stream, so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The size of its packets.
    pub packet_size: Option<PacketSize>,
    /// Out of the PAT.
    pub transport_stream_id: Option<u16>,
    /// All totals.
    pub counts: Counts,
    /// From the first clock reference to the end.
    pub duration: Option<StreamTime>,
    /// Bits per second of packets of 188 bytes, by the stream's own time.
    pub bit_rate: Option<f64>,
    /// All PIDs that occurred, in order.
    pub pids: Vec<PidReport>,
    /// The programs of the PAT.
    pub programs: Vec<Program>,
    /// The services of the SDT.
    pub services: Vec<Service>,
    /// What is wrong, the first of each kind.
    pub findings: Vec<Finding>,
    /// Where decoding could begin.
    pub decodable: Option<Mark>,
}

impl Report {
    pub(crate) fn new(packet_size: Option<PacketSize>, scan: &Scan) -> Self {
        let counts = scan.counts();
        let packets_per_second = scan.packets_per_second();
        let bits = |packets_per_second: f64| packets_per_second * (8 * PACKET_LENGTH) as f64;
        let mut pids: Vec<PidReport> = scan
            .records()
            .filter(|(_, counts, _)| counts.packets + counts.transport_errors > 0)
            .map(|(number, counts_of_pid, record)| PidReport {
                pid: number,
                kind: match (number, record.codec) {
                    (pid::PAT, _) => PidKind::Pat,
                    (pid::CAT, _) => PidKind::Cat,
                    (pid::NULL, _) => PidKind::Null,
                    (0x0010..=0x001F, _) => PidKind::ServiceInformation,
                    _ if record.is_pmt => PidKind::Pmt,
                    (_, Some(codec)) => PidKind::Component(codec),
                    _ if record.pcr.is_some() && record.counts.pes_packets == 0 => PidKind::Clock,
                    _ => PidKind::Unknown,
                },
                counts: counts_of_pid,
                bit_rate: packets_per_second
                    .map(|rate| bits(rate) * counts_of_pid.packets as f64 / counts.packets.max(1) as f64),
                pcr: record.pcr.as_ref().map(|track| track.figures),
                first_random_access: record.first_random_access,
            })
            .collect();
        pids.sort_by_key(|report| report.pid);
        Self {
            packet_size,
            transport_stream_id: scan.tables().transport_stream_id,
            counts,
            duration: scan.time(),
            bit_rate: packets_per_second.map(bits),
            pids,
            programs: scan.tables().programs.clone(),
            services: scan.tables().services.clone(),
            findings: scan.findings().to_vec(),
            decodable: scan.decodable(),
        }
    }
}
