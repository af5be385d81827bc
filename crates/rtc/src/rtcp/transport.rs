//! Transport-wide congestion control feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01 section 3.1).
//!
//! One packet says of a row of transport sequence numbers which arrived, and when, in steps of 250 µs.

use super::{begin, end, format, kind, u16_at, u32_at};

/// What a delta counts in: 250 microseconds.
pub const TICK_MICROS: i64 = 250;

/// What the reference time counts in: 64 milliseconds.
const REFERENCE_TICKS: i64 = 256;

/// Symbols of a status (section 3.1.1).
const NOT_RECEIVED: u8 = 0;
const SMALL_DELTA: u8 = 1;
const LARGE_DELTA: u8 = 2;

/// The longest run of one chunk: 13 bits.
const LONGEST_RUN: usize = 0x1FFF;

/// A feedback packet, whose chunks and deltas were checked to be there.
#[derive(Clone, Copy, Debug)]
pub struct TransportFeedback<'a> {
    /// The SSRC of the receiver that reports.
    pub sender: u32,
    /// A stream of the transport.
    pub media: u32,
    /// The number of the feedback packet, modulo 256.
    pub number: u8,
    /// The time that the first delta is added to, in ticks of 250 µs from any zero; wraps with 24 bits of 64 ms.
    pub reference_ticks: i64,
    base: u16,
    count: u16,
    chunks: &'a [u8],
    deltas: &'a [u8],
}

/// What became of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its transport sequence number.
    pub sequence_number: u16,
    /// When it came, in ticks of 250 µs since [`TransportFeedback::reference_ticks`]; `None`: it did not.
    pub ticks: Option<i64>,
}

impl<'a> TransportFeedback<'a> {
    pub(super) fn parse(body: &'a [u8]) -> Option<Self> {
        let count = u16_at(body, 10)?;
        let reference_and_number = u32_at(body, 12)?;
        let rest = &body[16..];
        // The chunks are as many as their symbols need, and the deltas begin behind them.
        let (mut at, mut covered, mut delta_bytes) = (0, 0, 0);
        while covered < usize::from(count) {
            let chunk = Chunk(u16_at(rest, at)?);
            at += 2;
            let symbols = chunk.symbols().min(usize::from(count) - covered);
            if symbols == 0 {
                return None;
            }
            delta_bytes += chunk.delta_bytes(symbols);
            covered += symbols;
        }
        let (chunks, deltas) = rest.split_at(at);
        Some(Self {
            sender: u32_at(body, 0)?,
            media: u32_at(body, 4)?,
            number: reference_and_number as u8,
            reference_ticks: i64::from(reference_and_number as i32 >> 8) * REFERENCE_TICKS,
            base: u16_at(body, 8)?,
            count,
            chunks,
            deltas: deltas.get(..delta_bytes)?,
        })
    }

    /// What became of each packet, in the order of their numbers.
    pub fn statuses(&self) -> Statuses<'a> {
        Statuses {
            next: self.base,
            left: self.count,
            chunk: Chunk(0),
            in_chunk: 0,
            at: 0,
            chunks: self.chunks,
            deltas: self.deltas,
            ticks: 0,
        }
    }
}

/// Iterator over the statuses of a feedback packet.
#[derive(Clone, Debug)]
pub struct Statuses<'a> {
    next: u16,
    left: u16,
    chunk: Chunk,
    /// How many symbols the chunk has, and which is next.
    in_chunk: usize,
    at: usize,
    chunks: &'a [u8],
    deltas: &'a [u8],
    ticks: i64,
}

impl Iterator for Statuses<'_> {
    type Item = Status;

    fn next(&mut self) -> Option<Status> {
        self.left = self.left.checked_sub(1)?;
        if self.at == self.in_chunk {
            self.chunk = Chunk(u16_at(self.chunks, 0)?);
            self.chunks = &self.chunks[2..];
            (self.at, self.in_chunk) = (0, self.chunk.symbols());
        }
        let symbol = self.chunk.symbol(self.at);
        self.at += 1;
        let delta = match symbol {
            SMALL_DELTA => {
                let delta = i64::from(*self.deltas.first()?);
                self.deltas = &self.deltas[1..];
                Some(delta)
            }
            LARGE_DELTA => {
                let delta = i64::from(u16_at(self.deltas, 0)? as i16);
                self.deltas = &self.deltas[2..];
                Some(delta)
            }
            _ => None,
        };
        let sequence_number = self.next;
        self.next = self.next.wrapping_add(1);
        self.ticks += delta.unwrap_or(0);
        Some(Status { sequence_number, ticks: delta.map(|_| self.ticks) })
    }
}

/// A packet status chunk (sections 3.1.3 and 3.1.4).
#[derive(Clone, Copy, Debug)]
struct Chunk(u16);

impl Chunk {
    fn is_vector(self) -> bool {
        self.0 & 0x8000 != 0
    }

    fn has_two_bits(self) -> bool {
        self.0 & 0x4000 != 0
    }

    fn symbols(self) -> usize {
        match (self.is_vector(), self.has_two_bits()) {
            (false, _) => usize::from(self.0 & 0x1FFF),
            (true, false) => 14,
            (true, true) => 7,
        }
    }

    fn symbol(self, at: usize) -> u8 {
        match (self.is_vector(), self.has_two_bits()) {
            (false, _) => (self.0 >> 13 & 3) as u8,
            (true, false) => (self.0 >> (13 - at.min(13)) & 1) as u8,
            (true, true) => (self.0 >> (12 - 2 * at.min(6)) & 3) as u8,
        }
    }

    /// How many bytes of deltas its first `symbols` symbols have.
    fn delta_bytes(self, symbols: usize) -> usize {
        let length = |symbol| match symbol {
            SMALL_DELTA => 1,
            LARGE_DELTA => 2,
            _ => 0,
        };
        if self.is_vector() {
            (0..symbols).map(|at| length(self.symbol(at))).sum()
        } else {
            symbols * length(self.symbol(0))
        }
    }
}

/// Appends feedback on packets from `base` on: `ticks[i]` is when packet `base + i` arrived, in ticks of 250 µs of any
/// clock, or `None`. The row ends with a packet that arrived, or is cut there.
///
/// Returns how many packets of the row were reported; fewer than all when a step between two arrivals is over 8 s, or
/// after 4,096 packets. Zero when none arrived.
pub fn append_transport_feedback(
    (sender, media): (u32, u32),
    number: u8,
    base: u16,
    ticks: &[Option<i64>],
    out: &mut Vec<u8>,
) -> usize {
    const MOST: usize = 4096;
    let row = &ticks[..ticks.len().min(MOST)];
    let Some(first) = row.iter().find_map(|ticks| *ticks) else { return 0 };
    let reference = first.div_euclid(REFERENCE_TICKS);
    // How far one packet can tell.
    let (mut last, mut reported) = (reference * REFERENCE_TICKS, 0);
    for (at, arrival) in row.iter().enumerate() {
        let Some(arrival) = *arrival else { continue };
        if i16::try_from(arrival - last).is_err() {
            break;
        }
        (last, reported) = (arrival, at + 1);
    }
    let row = &row[..reported];

    let start = begin(format::TRANSPORT_CC, kind::TRANSPORT_FEEDBACK, out);
    out.extend(sender.to_be_bytes());
    out.extend(media.to_be_bytes());
    out.extend(base.to_be_bytes());
    out.extend((reported as u16).to_be_bytes());
    out.extend(((reference as u32) << 8 | u32::from(number)).to_be_bytes());
    let mut rest = Symbols { row, last: reference * REFERENCE_TICKS };
    while !rest.row.is_empty() {
        out.extend(rest.chunk().0.to_be_bytes());
    }
    let mut last = reference * REFERENCE_TICKS;
    for arrival in row.iter().flatten() {
        let delta = arrival - last;
        last = *arrival;
        match u8::try_from(delta) {
            Ok(small) => out.push(small),
            Err(_) => out.extend((delta as i16).to_be_bytes()),
        }
    }
    end(start, out);
    reported
}

/// The symbols of a row that no chunk has taken yet.
#[derive(Clone, Copy)]
struct Symbols<'a> {
    row: &'a [Option<i64>],
    /// The arrival before the row.
    last: i64,
}

impl Symbols<'_> {
    /// Takes the chunk that covers the most.
    fn chunk(&mut self) -> Chunk {
        let run = self.run();
        let one_bit = *self;
        let fits_one_bit = one_bit.take(14).all(|symbol| symbol != LARGE_DELTA);
        let (chunk, length) = if run.1 >= if fits_one_bit { 14 } else { 7 } || run.1 == self.row.len() {
            (u16::from(run.0) << 13 | run.1 as u16, run.1)
        } else if fits_one_bit {
            (0x8000 | self.vector(14, 1), 14)
        } else {
            (0xC000 | self.vector(7, 2), 7)
        };
        let (taken, rest) = self.row.split_at(length.min(self.row.len()));
        self.last = taken.iter().rev().find_map(|ticks| *ticks).unwrap_or(self.last);
        self.row = rest;
        Chunk(chunk)
    }

    fn take(self, count: usize) -> impl Iterator<Item = u8> {
        let mut last = self.last;
        self.row.iter().take(count).map(move |arrival| match *arrival {
            None => NOT_RECEIVED,
            Some(arrival) => {
                let delta = arrival - std::mem::replace(&mut last, arrival);
                if (0..256).contains(&delta) { SMALL_DELTA } else { LARGE_DELTA }
            }
        })
    }

    /// The first symbol, and how often it follows.
    fn run(self) -> (u8, usize) {
        let mut symbols = self.take(LONGEST_RUN);
        let Some(first) = symbols.next() else { return (NOT_RECEIVED, 0) };
        (first, 1 + symbols.take_while(|symbol| *symbol == first).count())
    }

    fn vector(self, symbols: usize, bits: usize) -> u16 {
        let taken = self.take(symbols).enumerate();
        taken.fold(0, |vector, (at, symbol)| vector | u16::from(symbol) << (bits * (symbols - 1 - at)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Compound, Packet, ParseError};
    use super::*;
    use proptest::prelude::*;

    fn feedback(bytes: &[u8]) -> TransportFeedback<'_> {
        match Compound::new(bytes).next() {
            Some(Ok(Packet::TransportFeedback(feedback))) => feedback,
            other => panic!("{other:?}"),
        }
    }

    fn row() -> impl Strategy<Value = Vec<Option<i64>>> {
        let step = prop_oneof![4 => 0i64..10, 2 => 200..300i64, 1 => -400..0i64, 1 => -40_000..40_000i64];
        let run = (any::<bool>(), step, prop_oneof![1usize..4, 5usize..30]);
        (0..1i64 << 31, prop::collection::vec(run, 0..40)).prop_map(|(mut now, runs)| {
            let mut row = Vec::new();
            for (arrived, step, length) in runs {
                for _ in 0..length {
                    now += step;
                    row.push(arrived.then_some(now));
                }
            }
            row
        })
    }

    proptest! {
        #[test]
        fn arrivals_are_read_as_they_are_written(base: u16, number: u8, row in row()) {
            let (mut bytes, mut at) = (Vec::new(), 0);
            // Each packet takes up where the last one ended.
            while row[at..].iter().any(Option::is_some) {
                bytes.clear();
                let first = base.wrapping_add(at as u16);
                let reported = append_transport_feedback((1, 2), number, first, &row[at..], &mut bytes);
                prop_assert!(reported > 0);
                let feedback = feedback(&bytes);
                prop_assert_eq!((feedback.sender, feedback.media, feedback.number), (1, 2, number));
                let read: Vec<_> = feedback.statuses().collect();
                prop_assert_eq!(read.len(), reported);
                for (step, status) in read.iter().enumerate() {
                    prop_assert_eq!(status.sequence_number, first.wrapping_add(step as u16));
                    let wrap = REFERENCE_TICKS << 24;
                    let absolute = |ticks: i64| (ticks + feedback.reference_ticks).rem_euclid(wrap);
                    prop_assert_eq!(
                        status.ticks.map(absolute),
                        row[at + step].map(|ticks| ticks.rem_euclid(wrap))
                    );
                }
                at += reported;
            }
        }
    }

    /// The examples of section 3.1.3 and 3.1.4.
    #[test]
    fn chunks_are_those_of_the_draft() {
        let symbols = |chunk: u16| {
            let chunk = Chunk(chunk);
            (0..chunk.symbols()).map(|at| chunk.symbol(at)).collect::<Vec<_>>()
        };
        assert_eq!(symbols(0b0000_0000_1101_1101), [0; 221]);
        assert_eq!(symbols(0b0110_0000_0001_1000), [3; 24]);
        assert_eq!(symbols(0b1001_1111_0001_1100), [0, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0]);
        assert_eq!(symbols(0b1100_1101_0101_0000), [0, 3, 1, 1, 1, 0, 0]);
    }

    #[test]
    fn a_chunk_of_no_symbols_or_missing_deltas_are_malformed() {
        let head = [0x8F, 205, 0, 5, 0, 0, 0, 1, 0, 0, 0, 2, 0, 9, 0, 5, 0, 0, 0, 0];
        for tail in [[0, 0, 0, 0], [0x20, 5, 0, 0]] {
            let bytes = [&head[..], &tail].concat();
            assert_eq!(Compound::new(&bytes).next().unwrap().unwrap_err(), ParseError::Malformed(205));
        }
    }

    #[test]
    fn an_empty_row_is_no_packet() {
        let mut bytes = Vec::new();
        assert_eq!(append_transport_feedback((1, 2), 0, 0, &[None; 5], &mut bytes), 0);
        assert!(bytes.is_empty());
    }
}
