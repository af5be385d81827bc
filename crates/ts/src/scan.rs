//! The account of a stream: what [`Aligner`](crate::alignment::Aligner) gives out, packet by packet.
//!
//! A packet that goes on as expected is done after one look at its header. All others come through
//! [`Scan::look`], which asks one concern after the other: continuity, scrambling, clock, payload.

use crate::alignment::Sink;
use crate::clock::{StreamTime, TICKS_PER_SECOND};
use crate::continuity::{Continuity, NOWHERE, PidState};
use crate::counts::{Counts, PidCounts};
use crate::elementary::Tap;
use crate::finding::{Finding, FindingKind, Findings};
use crate::losses::Losses;
use crate::missing::Missing;
use crate::options::Options;
use crate::packet::{AdaptationField, Header, PACKET_LENGTH, PID_COUNT, Packet, pid};
use crate::record::{Mark, Record};
use crate::section;
use crate::stream_clock::StreamClock;
use crate::stream_type::Codec;
use crate::tables::{Tables, Watch};
use crate::text::TextCoding;
use crate::units::UnitTimes;

mod elementary;
mod sections;
mod times;

#[derive(Debug)]
pub(crate) struct Scan {
    /// The index of a PID's state and record; 0: it has none.
    index: Box<[u16; PID_COUNT]>,
    states: Vec<PidState>,
    records: Vec<Record>,
    /// PIDs with a packet in the piece under way.
    touched: Vec<u16>,
    /// Packets so far, damaged ones included.
    place: u64,
    /// Number of the byte that the piece under way begins with.
    base: u64,
    /// Number of the byte that findings are about.
    byte: u64,
    counts: Counts,
    damaged: u64,
    clock: StreamClock,
    /// Where the first and the last reference stood.
    first_reference: Option<u64>,
    last_reference: u64,
    elapsed_at_reference: u64,
    /// How often the clock that is followed has begun another time base.
    time_bases: u64,
    missing: Missing,
    losses: Losses,
    /// Some program map has said what some PIDs are for.
    roles_are_known: bool,
    tables: Tables,
    findings: Findings,
    decodable: Option<Mark>,
    /// Codec and beginning of the first unit of pictures, and of sound, at which decoding can begin.
    first_units: [Option<(Codec, Box<[u8]>)>; 2],
    /// Pictures and sound.
    units: [UnitTimes; 2],
    /// Units with which decoding a program can begin.
    beginnings: UnitTimes,
    pat_packets: Watch,
    pat_sections: Watch,
    scrambled_since: Option<Watch>,
    cat_seen: bool,
    next_sweep: u64,
    next_sweep_place: u64,
    pid_timeout: u64,
    text: TextCoding,
    /// The bytes of elementary streams, if they are read.
    tap: Option<Box<Tap>>,
}

impl Sink for Scan {
    fn continues(&self, header: u32) -> bool {
        let header = Header(header);
        let index = usize::from(self.index[usize::from(header.pid())]);
        index != 0 && self.states[index].continues(header)
    }

    #[inline(always)]
    fn packet(&mut self, bytes: &[u8], at: usize, header: u32) {
        let index = self.index[(header >> 8) as usize & (PID_COUNT - 1)];
        let state = &mut self.states[usize::from(index)];
        let new = state.last_at == NOWHERE;
        if state.passes(header, at as u32) {
            if new {
                self.touched.push(index);
            }
        } else {
            self.look(bytes, at, Header(header));
        }
        self.place += 1;
    }

    fn damaged(&mut self, byte: u64, size: u64) {
        self.byte = byte;
        self.counts.sync_byte_error += 1;
        self.counts.skipped_bytes += size;
        self.find(None, FindingKind::SyncByte);
        self.damaged += 1;
        self.place += 1;
    }

    fn lost(&mut self, byte: u64, wrong: u64) {
        self.byte = byte;
        self.counts.ts_sync_loss += 1;
        self.counts.sync_byte_error += wrong;
        self.find(None, FindingKind::LostAlignment);
    }

    fn found(&mut self, byte: u64, skipped: u64, was_due: bool) {
        self.byte = byte;
        self.counts.skipped_bytes += skipped;
        // The loss of alignment has been reported, and nothing shows that bytes were lost or inserted.
        if !was_due {
            self.counts.resyncs += 1;
            self.find(None, FindingKind::Resync { skipped });
        }
    }

    fn unaligned_end(&mut self, skipped: u64) {
        self.counts.skipped_bytes += skipped;
    }

    fn truncated(&mut self, byte: u64, bytes: u64) {
        self.byte = byte;
        self.counts.truncated_ends += 1;
        self.counts.trailing_bytes += bytes;
        self.find(None, FindingKind::TruncatedEnd { bytes });
    }

    fn enter(&mut self, base: u64) {
        self.base = base;
    }

    /// The last packet of each PID is kept: the next one may repeat it.
    fn leave(&mut self, bytes: &[u8]) {
        for index in self.touched.drain(..).map(usize::from) {
            let at = std::mem::replace(&mut self.states[index].last_at, NOWHERE) as usize;
            if let Some(packet) = Packet::at(bytes, at)
                && self.states[index].pid != pid::NULL
            {
                match &mut self.records[index].last {
                    Some(last) => last.copy_from_slice(packet.bytes()),
                    last => *last = Some(Box::new(*packet.bytes())),
                }
            }
        }
    }
}

impl Scan {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            index: Box::new([0; PID_COUNT]),
            states: vec![PidState::new(pid::NULL)],
            records: vec![Record::default()],
            touched: Vec::new(),
            place: 0,
            base: 0,
            byte: 0,
            counts: Counts::default(),
            damaged: 0,
            clock: StreamClock::default(),
            first_reference: None,
            last_reference: 0,
            elapsed_at_reference: 0,
            time_bases: 0,
            missing: Missing::default(),
            losses: Losses::default(),
            roles_are_known: false,
            tables: Tables::default(),
            findings: Findings::new(options.findings_per_kind),
            decodable: None,
            first_units: [None, None],
            units: [UnitTimes::default(); 2],
            beginnings: UnitTimes::default(),
            pat_packets: Watch::default(),
            pat_sections: Watch::default(),
            scrambled_since: None,
            cat_seen: false,
            next_sweep: 0,
            next_sweep_place: 0,
            pid_timeout: (options.pid_timeout.as_secs_f64() * TICKS_PER_SECOND as f64) as u64,
            text: options.text,
            tap: None,
        }
    }

    pub(crate) fn fed(&mut self, bytes: usize) {
        self.counts.bytes += bytes as u64;
    }

    pub(crate) fn time_bases(&self) -> u64 {
        self.time_bases
    }

    pub(crate) fn missing(&mut self) -> &mut Missing {
        &mut self.missing
    }

    pub(crate) fn counts(&self) -> Counts {
        let mut counts = self.counts;
        counts.packets = self.place - self.damaged;
        counts.null_packets = self.pid_counts(pid::NULL).packets;
        counts.continuity_count_error = counts.gap_events + counts.illegal_duplicates;
        counts.lost_estimate = self.losses.estimate(counts.lost_packets);
        counts.lost_unknown = self.losses.unknown();
        counts.transport_error = counts.transport_errors;
        counts
    }

    pub(crate) fn pid_counts(&self, pid: u16) -> PidCounts {
        let index = usize::from(self.index[usize::from(pid) % PID_COUNT]);
        if index == 0 { PidCounts::default() } else { self.counts_of(index) }
    }

    fn counts_of(&self, index: usize) -> PidCounts {
        PidCounts { packets: self.states[index].packets, ..self.records[index].counts }
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = (u16, PidCounts, &Record)> {
        let indices = 1..self.states.len();
        indices.map(|index| (self.states[index].pid, self.counts_of(index), &self.records[index]))
    }

    pub(crate) fn findings(&self) -> &[Finding] {
        self.findings.kept()
    }

    pub(crate) fn first_units(&self) -> [Option<(Codec, &[u8])>; 2] {
        self.first_units.each_ref().map(|it| it.as_ref().map(|(codec, bytes)| (*codec, &**bytes)))
    }

    pub(crate) fn decodable(&self) -> Option<Mark> {
        self.decodable
    }

    pub(crate) fn units(&self) -> [UnitTimes; 2] {
        self.units
    }

    pub(crate) fn beginnings(&self) -> UnitTimes {
        self.beginnings
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    pub(crate) fn has_rate(&self) -> bool {
        self.clock.has_rate()
    }

    pub(crate) fn time(&self) -> Option<StreamTime> {
        self.clock.at(self.place)
    }

    /// Packets a second, from the first clock reference to the last.
    pub(crate) fn packets_per_second(&self) -> Option<f64> {
        let packets = self.last_reference - self.first_reference?;
        let seconds = StreamTime(self.elapsed_at_reference).as_seconds();
        (seconds > 0.0).then(|| packets as f64 / seconds)
    }

    pub(crate) fn memory(&self) -> usize {
        let assemblers = self.records.iter().filter_map(|record| record.sections.as_ref());
        let kept = self.records.iter().filter(|record| record.last.is_some()).count();
        let clocks = self.records.iter().filter(|record| record.pcr.is_some()).count();
        size_of_val(&*self.index)
            + self.states.capacity() * size_of::<PidState>()
            + self.records.capacity() * size_of::<Record>()
            + self.touched.capacity() * 2
            + assemblers.map(|assembler| assembler.memory()).sum::<usize>()
            + kept * PACKET_LENGTH
            + clocks * size_of::<crate::clock::PcrTrack>()
            + self.tables.memory()
            + size_of_val(self.findings.kept())
            + self.tap.as_ref().map_or(0, |tap| tap.memory())
    }

    /// The index of a PID, which gets its state and record with its first packet.
    fn index_of(&mut self, pid: u16) -> usize {
        let entry = usize::from(pid) % PID_COUNT;
        if self.index[entry] == 0 {
            self.index[entry] = self.states.len() as u16;
            self.states.push(PidState::new(pid));
            self.records.push(Record::default());
            if section::is_well_known(pid) {
                self.read_sections(self.states.len() - 1);
            }
            self.touched.reserve(self.states.len() - self.touched.len());
        }
        usize::from(self.index[entry])
    }

    fn read_sections(&mut self, index: usize) {
        self.states[index].inspect(true);
        self.records[index].sections.get_or_insert_default();
    }

    fn find(&mut self, pid: Option<u16>, kind: FindingKind) {
        if self.findings.wants(&kind) {
            self.findings.push(Finding {
                kind,
                packet: self.place,
                byte: self.byte,
                pid,
                time: self.clock.at(self.place),
                pcr: self.clock.pcr_at(self.place),
            });
        }
    }

    /// Everything that a packet may say beside being the next one.
    #[inline(never)]
    fn look(&mut self, bytes: &[u8], at: usize, header: Header) {
        let Some(packet) = Packet::at(bytes, at) else { return };
        self.byte = self.base + at as u64;
        if header.transport_error() {
            self.transport_error(header);
            return;
        }
        let pid = header.pid();
        let index = self.index_of(pid);
        self.states[index].packets += 1;
        if pid == pid::NULL {
            self.states[index].arm();
            return;
        }
        self.states[index].disarm();
        let field = packet.adaptation_field();
        if header.is_reserved() || header.has_adaptation_field() && field.is_none() {
            self.counts.malformed_packets += 1;
            self.find(Some(pid), FindingKind::MalformedPacket);
        }
        let discontinuity = field.is_some_and(AdaptationField::discontinuity);
        if discontinuity {
            self.counts.discontinuity_indicators += 1;
            self.records[index].counts.discontinuity_indicators += 1;
            self.records[index].stamp = None;
        }
        let is_new = self.continuity(index, bytes, packet, discontinuity);
        // What a repetition is compared with is the last packet that has something in it.
        let state = &mut self.states[index];
        if header.has_payload() && std::mem::replace(&mut state.last_at, at as u32) == NOWHERE {
            self.touched.push(index as u16);
        }
        let scrambled = header.scrambling_control() != 0 && header.has_payload();
        if scrambled {
            self.scrambled(index, header);
        } else if header.has_payload() {
            self.records[index].is_scrambled = false;
        }
        let mut random_access = false;
        if let Some(field) = field {
            if let Some(pcr) = field.pcr() {
                self.pcr(index, pcr, discontinuity);
            }
            random_access = field.random_access();
            if random_access {
                self.counts.random_access_indicators += 1;
                self.records[index].counts.random_access_indicators += 1;
            }
        }
        if pid == pid::PAT {
            let late = self.pat_packets.seen(self.clock.at(self.place), self.half_second());
            self.counts.pat_error += u64::from(late);
        }
        let start = header.payload_unit_start();
        if header.has_payload() && is_new && start {
            self.begin_unit(index);
        }
        if header.has_payload() && is_new && !scrambled {
            if self.records[index].sections.is_some() {
                self.records[index].losses = self.counts.lost_packets + self.counts.ts_sync_loss;
                self.sections(index, packet.payload(), start);
            } else {
                let begin = if start { self.pes(index, packet.payload(), random_access) } else { 0 };
                if self.records[index].is_kept {
                    self.keep(index, packet.payload(), begin, start, random_access);
                }
            }
        }
        self.states[index].arm();
    }

    fn transport_error(&mut self, header: Header) {
        self.counts.transport_errors += 1;
        let pid = header.pid();
        self.find(Some(pid), FindingKind::TransportError);
        // The PID may be wrong: only one that is known is believed.
        let index = usize::from(self.index[usize::from(pid)]);
        if index != 0 {
            self.records[index].counts.transport_errors += 1;
            self.states[index].damaged(header);
            if let Some(sections) = &mut self.records[index].sections {
                sections.interrupt();
            }
        }
    }

    /// Judges the counter; `false` when the payload is one that has been seen.
    fn continuity(&mut self, index: usize, bytes: &[u8], packet: Packet<'_>, discontinuity: bool) -> bool {
        let header = packet.header();
        let pid = header.pid();
        // aribts does not ask whether the length of the field can be.
        let [_, _, _, _, length, flags, ..] = *packet.bytes();
        let as_aribts = header.has_adaptation_field() && length > 0 && flags & 0x80 != 0;
        let state = &mut self.states[index];
        let dropped = state.aribts_drop(header, as_aribts);
        if dropped {
            self.counts.aribts_drops += 1;
            self.records[index].counts.aribts_drops += 1;
        }
        if header.is_reserved() {
            return false;
        }
        let last_at = state.last_at;
        let losses = self.counts.lost_packets + self.counts.ts_sync_loss;
        let record = &mut self.records[index];
        match state.judge(header, discontinuity) {
            Continuity::Regular => {
                if discontinuity && let Some(sections) = &mut record.sections {
                    sections.interrupt();
                }
                true
            }
            Continuity::Gap { expected, lost } => {
                self.gap(index, header, expected, lost);
                true
            }
            Continuity::Repeated { may_be_legal, unprovable } => {
                let original = if last_at == NOWHERE {
                    record.last.as_deref().map(Packet::new)
                } else {
                    Packet::at(bytes, last_at as usize)
                };
                let same =
                    if unprovable { Some(true) } else { original.map(|original| packet.repeats(original)) };
                match same {
                    Some(true) if may_be_legal => {
                        self.counts.legal_duplicates += 1;
                        record.counts.legal_duplicates += 1;
                    }
                    Some(false)
                        if original.is_some_and(|original| record.is_rewritten(packet, original, losses)) =>
                    {
                        state.renew();
                        let counter = header.continuity_counter();
                        self.gap(index, header, (counter + 1) & 15, 0);
                    }
                    // Another packet under the same counter: the 15 that have the other counters are missing.
                    Some(false) => {
                        state.renew();
                        if !dropped {
                            self.counts.aribts_missed += 1;
                            self.counts.aribts_drops += 1;
                            record.counts.aribts_drops += 1;
                        }
                        let counter = header.continuity_counter();
                        self.gap(index, header, (counter + 1) & 15, 15);
                    }
                    _ => {
                        self.counts.illegal_duplicates += 1;
                        record.counts.illegal_duplicates += 1;
                        if same.is_none()
                            && let Some(sections) = &mut record.sections
                        {
                            sections.interrupt();
                        }
                        let counter = header.continuity_counter();
                        self.find(Some(pid), FindingKind::IllegalDuplicate { counter });
                    }
                }
                same != Some(true)
            }
        }
    }

    /// At least `lost` packets are missing before this one.
    fn gap(&mut self, index: usize, header: Header, expected: u8, lost: u8) {
        let record = &mut self.records[index];
        self.counts.gap_events += 1;
        self.counts.lost_packets += u64::from(lost);
        self.missing.gap(header.pid(), lost.into(), self.place);
        record.counts.gap_events += 1;
        record.counts.lost_packets += u64::from(lost);
        if let Some(sections) = &mut record.sections {
            sections.interrupt();
        }
        let found = header.continuity_counter();
        self.find(Some(header.pid()), FindingKind::Gap { expected, found, lost });
    }

    fn scrambled(&mut self, index: usize, header: Header) {
        let (pid, control) = (header.pid(), header.scrambling_control());
        let record = &mut self.records[index];
        if control == 1 {
            self.counts.reserved_scrambling_packets += 1;
            record.counts.reserved_scrambling_packets += 1;
        } else {
            self.counts.scrambled_packets += 1;
            record.counts.scrambled_packets += 1;
        }
        let is_pmt = record.is_pmt;
        // Time stamps cannot be read, and are not judged (TR 101 290 2.5).
        (record.stamp, record.stamps) = (None, None);
        if !std::mem::replace(&mut record.is_scrambled, true) {
            self.find(Some(pid), FindingKind::Scrambled { control });
        }
        if pid == pid::PAT {
            self.counts.pat_error += 1;
            self.counts.pat_error_2 += 1;
            self.find(Some(pid), FindingKind::PatWrong);
        } else if is_pmt {
            self.counts.pmt_error += 1;
            self.counts.pmt_error_2 += 1;
            self.find(Some(pid), FindingKind::PmtScrambled);
        }
        if self.scrambled_since.is_none() {
            self.scrambled_since = Some(Watch::from(self.clock.at(self.place)));
        }
    }
}
