//! Where packets begin: sync search, loss of alignment, the three packet sizes, input in any pieces.
//!
//! A packet counts when the sync byte after it is in its place, so that a packet that was cut short is not taken
//! for a whole one; where that byte is wrong, when alignment holds all the same, or when no lock begins inside the
//! packet. A lock wants five sync bytes at the stride (ETSI TR 101 290, section 5.2.1, indicator 1.1), and headers
//! that are not reserved ones: of five packets in a row none is lost, whatever lies before and after them. Of fewer none
//! is lost behind junk without a sync byte, where the first sync byte begins what its PID is to go on with. Decisions
//! are functions of the bytes of the stream alone, never of how the caller cut them: what cannot be decided yet waits
//! in a carry of bounded size. Nothing here knows what a packet means.

use crate::packet::{PACKET_LENGTH, SYNC_BYTE};

/// The distance of one sync byte from the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PacketSize {
    /// 188 bytes: the packet and nothing else.
    #[default]
    Plain,
    /// 192 bytes: each packet behind a timestamp of four bytes (M2TS).
    Timestamped,
    /// 204 bytes: each packet before 16 bytes of Reed-Solomon parity (ETSI EN 300 429).
    ReedSolomon,
}

impl PacketSize {
    const ALL: [Self; 3] = [Self::Plain, Self::Timestamped, Self::ReedSolomon];

    /// Bytes from one sync byte to the next: 188, 192 or 204.
    pub fn bytes(self) -> usize {
        match self {
            Self::Plain => 188,
            Self::Timestamped => 192,
            Self::ReedSolomon => 204,
        }
    }

    /// Bytes before the sync byte that belong to the packet.
    fn lead(self) -> usize {
        if self == Self::Timestamped { 4 } else { 0 }
    }

    /// Bytes from the sync byte to the end of what belongs to the packet.
    fn body(self) -> usize {
        self.bytes() - self.lead()
    }
}

/// What an [`Aligner`] says while it walks a stream.
pub(crate) trait Sink {
    /// Whether a packet with this header is the next one of a PID that has had packets.
    fn continues(&self, header: u32) -> bool;
    /// A packet that begins at `at` of `bytes`; its first four bytes are `header`.
    fn packet(&mut self, bytes: &[u8], at: usize, header: u32);
    /// The sync byte at number `byte` of the stream was wrong, the ones after it are in place: `size` bytes are not
    /// looked at.
    fn damaged(&mut self, byte: u64, size: u64);
    /// Alignment was lost at `byte`; `wrong` sync bytes that have not been reported were missing.
    fn lost(&mut self, byte: u64, wrong: u64);
    /// Alignment was found at `byte`, after `skipped` bytes that belong to no packet; `was_due`: where it was before it
    /// was lost. Not said of a stream that begins with a packet.
    fn found(&mut self, byte: u64, skipped: u64, was_due: bool);
    /// The stream ended in `skipped` bytes without alignment.
    fn unaligned_end(&mut self, skipped: u64);
    /// The stream ended in the first `bytes` of the packet at `byte`.
    fn truncated(&mut self, byte: u64, bytes: u64);
    /// `bytes`, of which positions were given, are about to go.
    fn leave(&mut self, bytes: &[u8]);
    /// Packets at positions of a new piece follow; its first byte is number `base` of the stream.
    fn enter(&mut self, base: u64);
}

/// Sync bytes that suffice at the end of a stream, whose last packets have no others behind them.
const LAST_LOCK: usize = 3;
/// Sync bytes at the stride that make a lock. With three, one sync byte in 65,536 of junk would start a false one.
const LOCK: usize = 5;
/// Positions after a wrong sync byte that are looked at, of which two must be right, before alignment is given up.
const CONFIRM: usize = 3;
/// No decision needs more bytes than this after the place that it is about.
const LOOK_AHEAD: usize = (LOCK - 1) * 204 + 4;
/// The most that is carried over: a packet in doubt, and what a decision about the byte after it needs.
pub(crate) const MAX_CARRY: usize = 2 * 204 + LOOK_AHEAD;

#[derive(Clone, Copy, Debug)]
enum State {
    /// `at` is where the next sync byte is due.
    Aligned { wrong: u64 },
    /// `at` is where the search goes on.
    Searching,
}

#[derive(Clone, Debug)]
pub(crate) struct Aligner {
    fixed: bool,
    size: PacketSize,
    state: State,
    /// A packet in its place whose end is not confirmed yet.
    pending: Option<usize>,
    at: usize,
    /// There has been a lock.
    begun: bool,
    /// Where a sync byte was due when alignment was lost, as a position in the stream.
    due: Option<u64>,
    /// No packet begins at the first sync byte after that: what has come in between is no plain junk.
    rejected: bool,
    /// Position in the stream after the last byte that has been accounted for.
    settled: u64,
    /// Number of the byte that the piece under way begins with.
    base: u64,
    carry: Vec<u8>,
}

impl Aligner {
    pub(crate) fn new(size: Option<PacketSize>) -> Self {
        Self {
            fixed: size.is_some(),
            size: size.unwrap_or_default(),
            state: State::Searching,
            pending: None,
            at: 0,
            begun: false,
            due: None,
            rejected: false,
            settled: 0,
            base: 0,
            carry: Vec::new(),
        }
    }

    /// The packet size of the last lock; `None` before the first.
    pub(crate) fn size(&self) -> Option<PacketSize> {
        (self.begun || self.fixed).then_some(self.size)
    }

    /// Bytes that wait for those after them.
    pub(crate) fn carried(&self) -> usize {
        self.carry.len()
    }

    #[inline]
    pub(crate) fn feed(&mut self, mut bytes: &[u8], sink: &mut impl Sink) {
        while !self.carry.is_empty() {
            let mut carry = std::mem::take(&mut self.carry);
            let before = carry.len();
            let taken = bytes.len().min(MAX_CARRY);
            carry.extend_from_slice(&bytes[..taken]);
            let whole = taken < bytes.len();
            self.walk(&carry, if whole { before } else { usize::MAX }, false, sink);
            let kept = self.needed(carry.len());
            self.shift(kept);
            // From here on the caller's bytes are looked at where they are.
            bytes = &bytes[if whole { kept.saturating_sub(before).min(taken) } else { taken }..];
            carry.drain(..if whole && kept >= before { carry.len() } else { kept });
            self.carry = carry;
            if !whole {
                return;
            }
        }
        self.walk(bytes, usize::MAX, false, sink);
        let kept = self.needed(bytes.len());
        self.carry.extend_from_slice(&bytes[kept..]);
        self.shift(kept);
    }

    /// The stream is over.
    pub(crate) fn finish(&mut self, sink: &mut impl Sink) {
        let carry = std::mem::take(&mut self.carry);
        self.walk(&carry, usize::MAX, true, sink);
        let end = self.base + carry.len() as u64;
        let rest = end.saturating_sub(self.settled);
        self.settled = end;
        if rest > 0 {
            match self.state {
                State::Aligned { .. } => sink.truncated(end - rest, rest),
                State::Searching => sink.unaligned_end(rest),
            }
        }
        self.base = end;
        self.at = 0;
        self.pending = None;
        self.state = State::Searching;
    }

    /// The first byte that is needed again.
    fn needed(&self, len: usize) -> usize {
        self.pending.unwrap_or(self.at).min(len)
    }

    fn shift(&mut self, by: usize) {
        self.base += by as u64;
        self.at -= by;
        self.pending = self.pending.map(|pending| pending - by);
    }

    /// Walks to the end of `bytes`, or until nothing before `enough` is needed any more.
    #[inline]
    fn walk(&mut self, bytes: &[u8], enough: usize, ended: bool, sink: &mut impl Sink) {
        sink.enter(self.base);
        loop {
            let goes_on = match self.state {
                State::Aligned { .. } => self.aligned(bytes, enough, ended, sink),
                State::Searching => self.search(bytes, ended, sink),
            };
            if !goes_on || self.pending.unwrap_or(self.at) >= enough {
                break;
            }
        }
        sink.leave(bytes);
    }

    fn settle(&mut self, packet: usize) {
        self.settled = self.base + (packet + self.size.body()) as u64;
    }

    fn release(&mut self, bytes: &[u8], sink: &mut impl Sink) {
        if let Some(pending) = self.pending.take() {
            sink.packet(bytes, pending, header_at(bytes, pending));
            self.settle(pending);
        }
    }

    /// Steps from sync byte to sync byte. `true`: the state has changed; `false`: more bytes are needed.
    #[inline]
    fn aligned(&mut self, bytes: &[u8], enough: usize, ended: bool, sink: &mut impl Sink) -> bool {
        let stride = self.size.bytes();
        // The hot loop: a packet is given when the sync byte after it has been seen.
        if let Some(mut pending) = self.pending {
            let mut header = header_at(bytes, pending);
            let first = pending;
            while pending < enough {
                let Some(next) = bytes.get(pending + stride..).and_then(<[u8]>::first_chunk) else { break };
                let next = u32::from_be_bytes(*next);
                if next >> 24 != u32::from(SYNC_BYTE) {
                    break;
                }
                sink.packet(bytes, pending, header);
                pending += stride;
                header = next;
            }
            if pending != first {
                self.state = State::Aligned { wrong: 0 };
                self.settle(pending - stride);
                self.pending = Some(pending);
                self.at = pending + stride;
            }
            if pending >= enough {
                return false;
            }
        }
        let State::Aligned { wrong } = self.state else { return true };
        let Some(&byte) = bytes.get(self.at) else {
            if ended && self.pending.is_some_and(|pending| pending + self.size.body() <= bytes.len()) {
                self.release(bytes, sink);
            }
            return false;
        };
        if byte == SYNC_BYTE {
            if !ended && self.at + 4 > bytes.len() {
                return false;
            }
            self.release(bytes, sink);
            self.state = State::Aligned { wrong: 0 };
            if self.at + 4 > bytes.len() {
                return false;
            }
            self.pending = Some(self.at);
            self.at += stride;
            return true;
        }
        match self.holds(bytes, ended) {
            None => false,
            Some(true) => {
                self.release(bytes, sink);
                if self.is_junk(bytes, sink) {
                    self.doubt(wrong, 1, sink);
                    return true;
                }
                self.settle(self.at);
                sink.damaged(self.base + self.at as u64, stride as u64);
                if wrong == 1 {
                    sink.lost(self.base + self.at as u64, 0);
                }
                self.state = State::Aligned { wrong: wrong + 1 };
                self.at += stride;
                true
            }
            Some(false) => {
                let next = bytes.get(self.at + stride).is_some_and(|&byte| byte != SYNC_BYTE);
                self.doubt(wrong, 1 + u64::from(next), sink);
                true
            }
        }
    }

    fn doubt(&mut self, wrong_before: u64, wrong: u64, sink: &mut impl Sink) {
        if wrong_before < 2 {
            sink.lost(self.base + self.at as u64, wrong);
        }
        self.state = State::Searching;
        self.due = Some(self.base + self.at as u64);
        self.rejected = false;
        if let Some(pending) = self.pending {
            self.at = pending + 1;
        }
    }

    /// Whether alignment holds although the sync byte at `at` is wrong; `None` until it can be said.
    fn holds(&self, bytes: &[u8], ended: bool) -> Option<bool> {
        let stride = self.size.bytes();
        let due = |place: usize| bytes.get(self.at + place * stride);
        if !ended && due(CONFIRM).is_none() {
            return None;
        }
        let seen = (1..=CONFIRM).map_while(due);
        let (mut places, mut right) = (0, 0);
        for byte in seen {
            places += 1;
            right += usize::from(*byte == SYNC_BYTE);
        }
        Some(match places {
            0 => self.at + self.size.body() == bytes.len(),
            1 => right == 1,
            _ => right >= 2,
        })
    }

    /// Whether junk, and no damaged packet, stands where a sync byte was due: a packet begins behind it.
    fn is_junk(&self, bytes: &[u8], sink: &impl Sink) -> bool {
        let inside = bytes.get(self.at..bytes.len().min(self.at + self.size.bytes())).unwrap_or_default();
        let next = inside.iter().position(|&byte| byte == SYNC_BYTE);
        next.is_some_and(|next| sink.continues(header_at(bytes, self.at + next)))
    }

    /// Looks for the next lock. `true`: found; `false`: more bytes are needed.
    fn search(&mut self, bytes: &[u8], ended: bool, sink: &mut impl Sink) -> bool {
        loop {
            // A packet in doubt is whole when no lock begins inside it.
            if self.pending.is_some_and(|pending| self.at >= pending + self.size.body()) {
                self.release(bytes, sink);
            }
            let limit =
                self.pending.map_or(bytes.len(), |pending| bytes.len().min(pending + self.size.body()));
            let start = self.at.min(limit);
            let found = bytes[start..limit].iter().position(|&byte| byte == SYNC_BYTE);
            let Some(found) = found else {
                self.at = limit.max(self.at);
                if self.pending.is_some_and(|pending| self.at >= pending + self.size.body()) {
                    continue;
                }
                return false;
            };
            self.at = start + found;
            if !ended && self.at + LOOK_AHEAD > bytes.len() {
                return false;
            }
            let next = match self.lock(bytes, self.at, ended) {
                None if self.may_continue(bytes, sink) => {
                    // A lock that begins inside of it shows that it is no packet.
                    let body = self.at + self.size.body();
                    if !ended && body + LOOK_AHEAD > bytes.len() {
                        return false;
                    }
                    let is_whole = body <= bytes.len();
                    let has_lock = (self.at + 1..body).any(|at| self.lock(bytes, at, ended).is_some());
                    (is_whole && !has_lock).then_some(self.size)
                }
                lock => lock,
            };
            if let Some(size) = next {
                self.pending = None;
                let stride = size.bytes() as u64;
                let at = self.base + self.at as u64;
                let due = self.due.take().filter(|_| size == self.size);
                let was_due = due.is_some_and(|due| at.abs_diff(due) % stride == 0);
                self.size = size;
                let begin = (self.base + self.at as u64).saturating_sub(size.lead() as u64);
                let skipped = begin.saturating_sub(self.settled);
                if self.begun || skipped > 0 {
                    sink.found(begin, skipped, was_due);
                }
                self.begun = true;
                self.settled = self.settled.max(begin);
                self.pending = Some(self.at);
                self.at += size.bytes();
                self.state = State::Aligned { wrong: 0 };
                return true;
            }
            self.rejected |= self.is_behind_due();
            self.at += 1;
        }
    }

    /// Whether a sync byte at `at` would not lie inside the packet in doubt.
    fn is_behind_due(&self) -> bool {
        self.due.is_some_and(|due| self.base + self.at as u64 > due)
    }

    /// Whether the first sync byte behind junk begins a packet that goes on with its PID.
    fn may_continue(&self, bytes: &[u8], sink: &impl Sink) -> bool {
        self.is_behind_due() && !self.rejected && sink.continues(header_at(bytes, self.at))
    }

    /// The packet size that packets from `at` on have.
    fn lock(&self, bytes: &[u8], at: usize, ended: bool) -> Option<PacketSize> {
        if bytes.get(at) != Some(&SYNC_BYTE) {
            return None;
        }
        let fits = |size: PacketSize| {
            let places = (0..LOCK).map(|place| at + place * size.bytes());
            let mut seen = 0;
            for place in places.take_while(|&place| place < bytes.len()) {
                let head = &bytes[place..bytes.len().min(place + 4)];
                // 00 as adaptation_field_control is reserved: no packet, but, say, a run of 0x47.
                if head[0] != SYNC_BYTE || head.get(3).is_some_and(|byte| byte & 0x30 == 0) {
                    return false;
                }
                seen += 1;
            }
            let rest = bytes.len() - at;
            seen == LOCK
                || ended
                    && rest >= PACKET_LENGTH
                    && (seen >= LAST_LOCK || (rest + size.lead()).is_multiple_of(size.bytes()))
        };
        let others = || PacketSize::ALL.into_iter().filter(|&size| size != self.size && !self.fixed);
        std::iter::once(self.size).chain(others()).find(|&size| fits(size))
    }
}

#[inline]
fn header_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |header| u32::from_be_bytes(*header))
}
