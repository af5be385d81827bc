//! What has to do with time: the clock, what stays away for too long, and time stamps.

use super::Scan;
use crate::clock::{Reference, StreamTime, TICKS_PER_SECOND};
use crate::finding::FindingKind;
use crate::packet::{Pcr, pid};
use crate::pes::{PesHeader, timestamp_since};
use crate::record::{Mark, Stamp};
use crate::tables::{HALF_SECOND, Watch};

/// How often absences are looked for.
const SWEEP: u64 = TICKS_PER_SECOND / 10;
/// TR 101 290 2.5.
const PTS_LIMIT: u64 = TICKS_PER_SECOND / 10 * 7;
/// A time stamp that is half a second off the clock has jumped; 90 kHz.
const PTS_JUMP: i64 = 45_000;

impl Scan {
    pub(super) fn pcr(&mut self, index: usize, pcr: Pcr, announced: bool) {
        let pid = self.states[index].pid;
        self.counts.pcrs += 1;
        let breaks = self.counts.lost_packets + self.counts.illegal_duplicates;
        let nulls = usize::from(self.index[usize::from(pid::NULL)]);
        // Index 0 is no PID's, and has no packets.
        let reference = Reference { pcr, place: self.place, breaks, nulls: self.states[nulls].packets };
        let tick = self.records[index].pcr.get_or_insert_default().observe(reference, announced);
        if let Some(step) = tick.out_of_range {
            self.counts.pcr_discontinuity_indicator_error += 1;
            self.find(Some(pid), FindingKind::PcrOutOfRange { step });
        }
        if let Some(by) = tick.jump {
            self.counts.pcr_discontinuities += 1;
            self.find(Some(pid), FindingKind::PcrJump { by });
        }
        if let Some(interval) = tick.late {
            self.counts.pcr_repetition_error += 1;
            self.find(Some(pid), FindingKind::PcrLate { interval });
        }
        if let Some(nanoseconds) = tick.inaccurate {
            self.counts.pcr_accuracy_error += 1;
            self.find(Some(pid), FindingKind::PcrInaccurate { nanoseconds });
        }
        self.clock.follow(pid, pcr, self.place, &tick);
        let Some(now) = self.clock.at(self.place) else { return };
        if self.clock.follows(pid) {
            self.time_bases += u64::from(tick.broken);
            // A clock that goes back is that of another stream.
            let begins = tick.jump.is_some() && tick.out_of_range.is_some_and(|step| step < 0);
            self.missing.reference(begins.then_some(self.place));
            self.losses.reference(tick.interval, self.counts.lost_packets);
            if tick.learnt_late {
                self.begin_watching(now);
            }
        }
        self.first_reference.get_or_insert(self.place);
        self.last_reference = self.place;
        self.elapsed_at_reference = now.0;
        // The second condition keeps a hostile clock from having everything looked through at each packet.
        if now.0 >= self.next_sweep && self.place >= self.next_sweep_place {
            self.sweep(now);
            self.next_sweep = now.0 + SWEEP;
            self.next_sweep_place = self.place + self.states.len() as u64 / 8;
        }
    }

    /// Until now nothing was known of the time: what has come by now has come now.
    fn begin_watching(&mut self, now: StreamTime) {
        let watch = Watch::from(Some(now));
        (self.pat_packets, self.pat_sections) = (watch, watch);
        self.scrambled_since = self.scrambled_since.map(|_| watch);
        self.tables.programs.iter_mut().for_each(|program| program.watch = watch);
        self.units.iter_mut().for_each(|units| units.begin_watching(now));
        self.beginnings.begin_watching(now);
        for record in &mut self.records {
            record.stamp = None;
            record.stamps = record.stamps.map(|_| watch);
            record.presence = watch;
        }
    }

    /// How long PAT and PMT may be away, by the clock of the stream.
    pub(super) fn half_second(&self) -> u64 {
        HALF_SECOND + self.clock.leeway()
    }

    /// Looks for what is not there.
    fn sweep(&mut self, now: StreamTime) {
        let half_second = self.half_second();
        self.counts.pat_error += u64::from(self.pat_packets.missing(now, half_second));
        if self.pat_sections.missing(now, half_second) {
            self.counts.pat_error_2 += 1;
            self.find(Some(pid::PAT), FindingKind::PatMissing);
        }
        if !self.cat_seen
            && self.scrambled_since.as_mut().is_some_and(|since| since.missing(now, half_second))
        {
            self.counts.cat_error += 1;
            self.find(Some(pid::CAT), FindingKind::CatMissing);
        }
        for program in 0..self.tables.programs.len() {
            let program = &mut self.tables.programs[program];
            if program.watch.missing(now, half_second) {
                let pid = program.pmt_pid;
                self.pmt_missing(pid);
            }
        }
        let pts_limit = PTS_LIMIT + self.clock.leeway();
        for index in 1..self.states.len() {
            let (pid, packets) = (self.states[index].pid, self.states[index].packets);
            let record = &mut self.records[index];
            let late = record.stamps.as_mut().is_some_and(|stamps| stamps.missing(now, pts_limit));
            let mut gone = false;
            if record.codec.is_some_and(|codec| codec.is_video() || codec.is_audio()) {
                if packets == record.packets_seen {
                    gone = record.presence.missing(now, self.pid_timeout);
                } else {
                    record.packets_seen = packets;
                    record.presence = Watch::from(Some(now));
                }
            }
            if late {
                self.pts_late(pid);
            }
            if gone {
                self.counts.pid_error += 1;
                self.find(Some(pid), FindingKind::PidMissing);
            }
        }
    }

    /// A PES packet begins; also where it is scrambled, since its first packet says so in clear.
    pub(super) fn begin_unit(&mut self, index: usize) {
        let kind = match self.records[index].codec {
            Some(codec) if codec.is_video() => 0,
            Some(codec) if codec.is_audio() => 1,
            _ => return,
        };
        if let Some(now) = self.clock.at(self.place) {
            self.units[kind].begin(now);
        }
    }

    pub(super) fn pmt_missing(&mut self, pid: u16) {
        self.counts.pmt_error += 1;
        self.counts.pmt_error_2 += 1;
        self.find(Some(pid), FindingKind::PmtMissing);
    }

    fn pts_late(&mut self, pid: u16) {
        self.counts.pts_error += 1;
        self.find(Some(pid), FindingKind::PtsLate);
    }

    /// A PES packet begins in clear; where its elementary stream goes on in the payload.
    pub(super) fn pes(&mut self, index: usize, payload: &[u8], random_access: bool) -> usize {
        let Some(header) = PesHeader::parse(payload) else { return 0 };
        let now = self.clock.at(self.place);
        let leeway = self.clock.leeway();
        let pid = self.states[index].pid;
        let record = &mut self.records[index];
        record.counts.pes_packets += 1;
        let codec = record.codec;
        let unnamed = !self.roles_are_known && header.is_media();
        let media = codec.map_or(unnamed, |codec| codec.is_video() || codec.is_audio());
        if media && let (Some(ticks), Some(time)) = (header.dts.or(header.pts), now) {
            let watch = record.stamps.get_or_insert_with(|| Watch::from(now));
            let late = watch.seen(now, PTS_LIMIT + leeway);
            let epoch = self.clock.epoch;
            let before = record.stamp.replace(Stamp { ticks, time, epoch });
            let jump = before.filter(|before| before.epoch == epoch).and_then(|before| {
                let by_clock = (time.0.saturating_sub(before.time.0) / 300) as i64;
                let by = timestamp_since(ticks, before.ticks) - by_clock;
                (by.abs() > PTS_JUMP + (leeway / 300) as i64).then_some(by)
            });
            if let Some(by) = jump {
                record.counts.pts_jumps += 1;
                self.counts.pts_jumps += 1;
                self.find(Some(pid), FindingKind::PtsJump { by });
            }
            if late {
                self.pts_late(pid);
            }
        }
        let record = &mut self.records[index];
        let bytes = payload.get(header.length..).unwrap_or(&[]);
        if let (Some(codec), Some(now)) = (codec.filter(|_| record.needed), now)
            && codec.begins_anew(bytes, random_access)
        {
            self.beginnings.begin(now);
        }
        if let Some(codec) = codec
            && record.first_random_access.is_none()
            && (random_access || codec.begins(bytes))
        {
            let mark = Mark { packet: self.place, byte: self.byte, pid, time: now };
            record.first_random_access = Some(mark);
            let kind = [codec.is_video(), codec.is_audio()].iter().position(|is_it| *is_it);
            if let Some(first) = kind.map(|kind| &mut self.first_units[kind]) {
                first.get_or_insert_with(|| (codec, bytes.into()));
            }
            if record.needed && self.decodable.is_none() {
                self.decodable = Some(mark);
            }
        }
        header.length
    }
}
