//! A stored stream, played over and over without a break: counters, clock and time stamps go on from pass to pass.
//!
//! What pass *n* of a packet is, is a function of *n* alone, so that many readers can be anywhere in it.

use crate::alignment::{Aligner, PacketSize, Sink};
use crate::packet::{AdaptationField, PACKET_LENGTH, PID_COUNT, Packet, Pcr};
use crate::pes::{PesHeader, TIMESTAMP_WRAP, read_timestamp, timestamp_since, write_timestamp};

/// Why a stream cannot be looped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoopError {
    /// There are no packets in it.
    #[error("no transport stream packets: give a file of packets of 188, 192 or 204 bytes")]
    Empty,
    /// There is no clock to tell how long it is.
    #[error("fewer than two clock references (PCR): give a file of a whole program, a second long at least")]
    NoClock,
}

/// What the continuity counter of a PID goes on by from one pass to the next.
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    first: Option<u8>,
    last: u8,
}

/// A stream as a loop.
#[derive(Clone, Debug)]
pub struct Loop {
    /// Whole packets of 188 bytes.
    bytes: Vec<u8>,
    /// By PID: how far the counter moves on with each pass.
    steps: Box<[u8; PID_COUNT]>,
    /// 27 MHz ticks of one pass; a multiple of 300, so that time stamps move by as much.
    duration: u64,
}

#[derive(Default)]
struct Gather(Vec<u8>);

impl Sink for Gather {
    /// What is a packet has to show by itself: counters are not followed here.
    fn continues(&self, _: u32) -> bool {
        false
    }
    fn packet(&mut self, bytes: &[u8], at: usize, _: u32) {
        self.0.extend_from_slice(&bytes[at..at + PACKET_LENGTH]);
    }
    fn damaged(&mut self, _: u64, _: u64) {}
    fn lost(&mut self, _: u64, _: u64) {}
    fn found(&mut self, _: u64, _: u64, _: bool) {}
    fn unaligned_end(&mut self, _: u64) {}
    fn truncated(&mut self, _: u64, _: u64) {}
    fn leave(&mut self, _: &[u8]) {}
    fn enter(&mut self, _: u64) {}
}

impl Loop {
    /// Takes the whole packets of a stored stream; what lies between them is left out.
    pub fn new(stored: &[u8], packet_size: Option<PacketSize>) -> Result<Self, LoopError> {
        let mut gather = Gather(Vec::with_capacity(stored.len()));
        let mut aligner = Aligner::new(packet_size);
        aligner.feed(stored, &mut gather);
        aligner.finish(&mut gather);
        let bytes = gather.0;
        if bytes.is_empty() {
            return Err(LoopError::Empty);
        }
        let mut counters = vec![Counter::default(); PID_COUNT];
        let mut clock = Span::default();
        let mut pictures = Span::default();
        let (packets, _) = bytes.as_chunks::<PACKET_LENGTH>();
        for (place, packet) in packets.iter().map(Packet::new).enumerate() {
            let header = packet.header();
            if header.transport_error() {
                continue;
            }
            let counter = &mut counters[usize::from(header.pid())];
            // Before a payload the counter goes on, before a packet without one it does not.
            let first = header.continuity_counter().wrapping_add(u8::from(!header.has_payload())) & 15;
            counter.first.get_or_insert(first);
            counter.last = header.continuity_counter();
            if let Some(pcr) = packet.adaptation_field().and_then(AdaptationField::pcr) {
                let step = |earlier| pcr.since(Pcr::new(earlier));
                clock.take(header.pid(), pcr.ticks(), place, step);
            }
            if header.payload_unit_start()
                && header.scrambling_control() == 0
                && let Some(pes) = PesHeader::parse(packet.payload())
                && (0xE0..=0xEF).contains(&pes.stream_id)
                && let Some(ticks) = pes.dts.or(pes.pts)
            {
                pictures.take(header.pid(), ticks, place, |earlier| timestamp_since(ticks, earlier));
            }
        }
        if clock.count < 2 || clock.length <= 0 {
            return Err(LoopError::NoClock);
        }
        let by_clock = clock.length as f64 * packets.len() as f64 / (clock.last - clock.first).max(1) as f64;
        // By its pictures, the loop shows each as long as the others; by its clock, it is as long as its packets.
        let by_pictures =
            (pictures.length * 300) as f64 * pictures.count as f64 / (pictures.count.max(2) - 1) as f64;
        let closest = pictures.count >= 2 && (by_pictures - by_clock).abs() < by_clock / 10.0 + 2.7e6;
        let duration = if closest { by_pictures } else { by_clock };
        let duration = ((duration / 300.0).round() as u64).max(1) * 300;
        let mut steps = Box::new([0; PID_COUNT]);
        for (step, counter) in steps.iter_mut().zip(counters) {
            *step = counter.first.map_or(0, |first| counter.last.wrapping_add(1).wrapping_sub(first) & 15);
        }
        Ok(Self { bytes, steps, duration })
    }

    /// Packets of one pass.
    pub fn packets(&self) -> usize {
        self.bytes.len() / PACKET_LENGTH
    }

    /// How long one pass takes, in 27 MHz ticks.
    pub fn duration(&self) -> u64 {
        self.duration
    }

    /// Bits per second.
    pub fn bit_rate(&self) -> f64 {
        self.bytes.len() as f64 * 8.0 * 27e6 / self.duration as f64
    }

    /// A packet as it is in pass `pass`.
    ///
    /// # Panics
    ///
    /// When `packet` is not below [`Loop::packets`].
    pub fn packet(&self, pass: u64, packet: usize) -> [u8; PACKET_LENGTH] {
        let (packets, _) = self.bytes.as_chunks::<PACKET_LENGTH>();
        let mut bytes = packets[packet];
        if pass > 0 {
            self.move_on(pass, &mut bytes);
        }
        bytes
    }

    /// Appends packets of one pass.
    ///
    /// # Panics
    ///
    /// When `packets` ends after [`Loop::packets`].
    pub fn extend(&self, pass: u64, packets: std::ops::Range<usize>, out: &mut Vec<u8>) {
        out.reserve(packets.len() * PACKET_LENGTH);
        for packet in packets {
            out.extend_from_slice(&self.packet(pass, packet));
        }
    }

    fn move_on(&self, pass: u64, bytes: &mut [u8; PACKET_LENGTH]) {
        let packet = Packet::new(bytes);
        let header = packet.header();
        if header.transport_error() {
            return;
        }
        let step = u64::from(self.steps[usize::from(header.pid())]);
        let counter = (u64::from(header.continuity_counter()) + pass % 16 * step) as u8 & 15;
        bytes[3] = bytes[3] & 0xF0 | counter;
        // A wrap of the clock is one of all times: what lies beyond it makes no difference.
        let moved = u128::from(pass) * u128::from(self.duration) % u128::from(Pcr::WRAP);
        shift(bytes, moved as i64);
    }
}

/// Moves the clock reference and the time stamps of a packet by `ticks` of 27 MHz. Time stamps move by
/// whole 300. A packet with `transport_error_indicator` stays as it is.
pub fn shift(bytes: &mut [u8; PACKET_LENGTH], ticks: i64) {
    let packet = Packet::new(bytes);
    let header = packet.header();
    if header.transport_error() {
        return;
    }
    let moved = |time: u64, by: i64, wrap: u64| (time as i64 + by).rem_euclid(wrap as i64) as u64;
    let pcr = packet.adaptation_field().and_then(AdaptationField::pcr);
    let payload_at = PACKET_LENGTH - packet.payload().len();
    let pes = (header.payload_unit_start() && header.scrambling_control() == 0)
        .then(|| PesHeader::parse(packet.payload()))
        .flatten();
    if let Some(pcr) = pcr {
        let moved = moved(pcr.ticks(), ticks % Pcr::WRAP as i64, Pcr::WRAP);
        bytes[6..12].copy_from_slice(&Pcr::new(moved).write());
    }
    let times = pes.map_or((None, None), |pes| (pes.pts, pes.dts));
    for (at, time) in [(payload_at + 9, times.0), (payload_at + 14, times.1)] {
        if time.is_some()
            && let Some(field) = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<5>)
        {
            let moved = moved(read_timestamp(field), ticks / 300, TIMESTAMP_WRAP);
            *field = write_timestamp(field[0] >> 4, moved);
        }
    }
}

/// From the first time to the last on the first PID that has any.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    pid: Option<u16>,
    at: u64,
    length: i64,
    count: u64,
    first: usize,
    last: usize,
}

impl Span {
    fn take(&mut self, pid: u16, ticks: u64, place: usize, since: impl Fn(u64) -> i64) {
        if self.count == 0 {
            (self.pid, self.first) = (Some(pid), place);
        } else if self.pid != Some(pid) {
            return;
        } else {
            self.length += since(self.at);
        }
        (self.at, self.last) = (ticks, place);
        self.count += 1;
    }
}
