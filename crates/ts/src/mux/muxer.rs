//! Access units in, packets out.

use super::packets::{Field, Packetiser, Pieces};
use super::{MuxSettings, NULL_PACKET, tables};
use crate::clock::TICKS_PER_SECOND;
use crate::packet::{PACKET_LENGTH, Pcr, pid};
use crate::pes::{TIMESTAMP_WRAP, write_timestamp};

/// One picture, or one or several audio frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessUnit<'a> {
    /// When it is shown, 90 kHz ticks. They may go on past the wrap of 33 bits.
    pub pts: u64,
    /// When it is decoded, 90 kHz ticks; equal to `pts` where nothing is reordered.
    pub dts: u64,
    /// Decoding can begin with it.
    pub random_access: bool,
    /// H.264 with start codes, or AAC with ADTS headers.
    pub bytes: &'a [u8],
}

const AUD: [u8; 6] = [0, 0, 0, 1, 9, 0xF0];
const VIDEO_ID: u8 = 0xE0;
const AUDIO_ID: u8 = 0xC0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Track {
    Video,
    Audio,
}

/// Writes one program.
///
/// Units are given in the order of their decoding times, video and audio together. At a constant bit rate a unit is
/// sent [`MuxSettings::lead`] before it is decoded, null packets fill the time up to there, and each clock reference
/// is exactly what the number of packets before it makes. Without one, time is that of the units.
#[derive(Clone, Debug)]
pub struct Muxer {
    settings: MuxSettings,
    pat: Packetiser,
    pmt: Packetiser,
    sdt: Packetiser,
    video: Packetiser,
    audio: Packetiser,
    sections: [Vec<u8>; 3],
    /// 27 MHz ticks at the first packet; all times here count from it.
    origin: Option<i64>,
    /// Packets written.
    place: u64,
    /// Time where there is no constant rate.
    now: u64,
    next_tables: u64,
    next_pcr: u64,
    late_units: u64,
}

impl Muxer {
    /// A muxer that has written nothing yet.
    pub fn new(settings: MuxSettings) -> Self {
        let pid = |stream: Option<super::Elementary>| Packetiser::new(stream.map_or(pid::NULL, |s| s.pid));
        Self {
            pat: Packetiser::new(pid::PAT),
            pmt: Packetiser::new(settings.pmt_pid),
            sdt: Packetiser::new(pid::SDT),
            video: pid(settings.video),
            audio: pid(settings.audio),
            sections: [tables::pat(&settings, 0), tables::pmt(&settings, 0), tables::sdt(&settings, 0)],
            origin: None,
            place: 0,
            now: 0,
            next_tables: 0,
            next_pcr: 0,
            late_units: 0,
            settings,
        }
    }

    /// Appends a picture. An access unit delimiter is put before it where it has none (section 2.14.1).
    pub fn video(&mut self, unit: &AccessUnit<'_>, out: &mut Vec<u8>) {
        let delimited = matches!(unit.bytes, [0, 0, 0, 1, 9, ..] | [0, 0, 1, 9, ..]);
        self.unit(Track::Video, unit, if delimited { &[] } else { &AUD }, out);
    }

    /// Appends audio.
    pub fn audio(&mut self, unit: &AccessUnit<'_>, out: &mut Vec<u8>) {
        self.unit(Track::Audio, unit, &[], out);
    }

    /// Puts tables and a clock reference before the next unit: what follows can be read without what came before.
    pub fn repeat_tables(&mut self) {
        (self.next_tables, self.next_pcr) = (0, 0);
    }

    /// Units that were sent after their decoding time, because the bit rate is too small for them.
    pub fn late_units(&self) -> u64 {
        self.late_units
    }

    /// Packets written so far.
    pub fn packets(&self) -> u64 {
        self.place
    }

    fn unit(&mut self, track: Track, unit: &AccessUnit<'_>, before: &[u8], out: &mut Vec<u8>) {
        let decode = unit.dts as i64 * 300;
        let origin = *self.origin.get_or_insert(decode - self.settings.lead as i64);
        let due = (decode - self.settings.lead as i64 - origin).max(0) as u64;
        self.advance(due, out);

        let id = if track == Track::Video { VIDEO_ID } else { AUDIO_ID };
        let header = pes_header(id, unit, before.len() + unit.bytes.len());
        let mut pieces = Pieces([&header, before, unit.bytes]);
        let clock = track == Track::Video || self.settings.video.is_none();
        let mut start = true;
        while pieces.len() > 0 {
            self.tables_if_due(out);
            let mut field = Field { pcr: None, random_access: start && unit.random_access };
            if self.time() >= self.next_pcr {
                if clock {
                    field.pcr = Some(self.reference());
                } else {
                    self.clock_packet(out);
                }
            }
            let packetiser = if track == Track::Video { &mut self.video } else { &mut self.audio };
            packetiser.packet(start, field, &mut pieces, out);
            self.place += 1;
            start = false;
        }
        if self.time() as i64 + origin > decode {
            self.late_units += 1;
        }
    }

    /// 27 MHz ticks since the first packet.
    fn time(&self) -> u64 {
        match self.settings.bit_rate {
            Some(rate) => {
                let bits = u128::from(self.place) * 8 * PACKET_LENGTH as u128;
                (bits * u128::from(TICKS_PER_SECOND) / u128::from(rate.max(1))) as u64
            }
            None => self.now,
        }
    }

    /// The reference that the next packet carries.
    fn reference(&mut self) -> Pcr {
        self.next_pcr = self.time() + self.settings.pcr_interval;
        let wrapped = (self.origin.unwrap_or(0) + self.time() as i64).rem_euclid(Pcr::WRAP as i64);
        Pcr::new(wrapped as u64)
    }

    fn tables_if_due(&mut self, out: &mut Vec<u8>) {
        if self.time() < self.next_tables {
            return;
        }
        self.next_tables = self.time() + self.settings.table_interval;
        let before = out.len();
        self.pat.section(&self.sections[0], out);
        self.pmt.section(&self.sections[1], out);
        self.sdt.section(&self.sections[2], out);
        self.place += ((out.len() - before) / PACKET_LENGTH) as u64;
    }

    /// A packet that carries the clock and nothing else.
    fn clock_packet(&mut self, out: &mut Vec<u8>) {
        let field = Field { pcr: Some(self.reference()), random_access: false };
        let packetiser = if self.settings.video.is_some() { &mut self.video } else { &mut self.audio };
        packetiser.packet(false, field, &mut { Pieces::NONE }, out);
        self.place += 1;
    }

    /// Goes on to `due`: with null packets at a constant rate, and with tables and clock in any case.
    fn advance(&mut self, due: u64, out: &mut Vec<u8>) {
        if self.settings.bit_rate.is_none() {
            while self.next_pcr < due || self.next_tables < due {
                self.now = self.now.max(self.next_pcr.min(self.next_tables));
                self.tables_if_due(out);
                if self.now >= self.next_pcr {
                    self.clock_packet(out);
                }
            }
            self.now = self.now.max(due);
            return;
        }
        while self.time() < due {
            self.tables_if_due(out);
            if self.time() >= self.next_pcr {
                self.clock_packet(out);
            } else {
                out.extend(NULL_PACKET);
                self.place += 1;
            }
        }
    }
}

/// The header of a PES packet (section 2.4.3.6). Video may leave its length open, and does.
fn pes_header(stream_id: u8, unit: &AccessUnit<'_>, payload: usize) -> Vec<u8> {
    let (pts, dts) = (unit.pts % TIMESTAMP_WRAP, unit.dts % TIMESTAMP_WRAP);
    let mut times = Vec::with_capacity(10);
    if pts == dts {
        times.extend(write_timestamp(2, pts));
    } else {
        times.extend(write_timestamp(3, pts));
        times.extend(write_timestamp(1, dts));
    }
    let length = 3 + times.len() + payload;
    let length = if stream_id == VIDEO_ID { 0 } else { u16::try_from(length).unwrap_or(0) };
    let mut header = vec![0, 0, 1, stream_id];
    header.extend(length.to_be_bytes());
    header.extend([0x84, if pts == dts { 0x80 } else { 0xC0 }, times.len() as u8]);
    header.extend(times);
    header
}
