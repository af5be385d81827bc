//! The continuity of one PID, and the state that every packet touches.
//!
//! [`PidState`] is 32 bytes: a packet that goes on as it should costs one comparison and three stores. Everything else
//! takes the slow way, where the rules of ISO/IEC 13818-1 sections 2.4.3.3 and 2.4.3.5 are, and aribts' own.

use crate::packet::{Header, SYNC_BYTE, pid};

/// No packet of this PID in the piece under way.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// The bits of a header that the quick comparison looks at: all but `transport_priority`.
const COMPARED: u32 = 0xFFDF_FFFF;

/// A header that no packet has.
const NEVER: u32 = 0;

/// What one PID's next packet is compared with, and what its counters were.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PidState {
    /// The header of a packet that needs no second look; [`NEVER`] when each one does.
    expected: u32,
    mask: u32,
    /// What the continuity counter goes on by: 1, or 0 on PID 0x1FFF.
    step: u8,
    /// Where the last packet of the PID begins in the piece under way.
    pub(crate) last_at: u32,
    pub(crate) packets: u64,
    pub(crate) pid: u16,
    /// The last counter; valid while `expected` is [`NEVER`].
    counter: Option<Nibble>,
    /// aribts' last counter, which differs from `counter` around errors and indicators.
    aribts_counter: Option<Nibble>,
    aribts_repeats: u8,
    /// The counter has been repeated so often already.
    repeats: u8,
    /// The last packet had `transport_error_indicator`: its bytes are no measure for a repetition.
    damaged: bool,
    /// Each packet needs a second look, because its payload is read.
    inspected: bool,
    /// There has been a payload. Without one, as on a PID of clock references alone, none can be missing.
    carries: bool,
}

/// Four bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Nibble(u8);

impl Nibble {
    fn next(self) -> Self {
        Self((self.0 + 1) & 15)
    }

    fn ahead_of(self, other: Self) -> u8 {
        self.0.wrapping_sub(other.0) & 15
    }
}

/// What a packet's counter says about the packets before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Continuity {
    /// The first packet of the PID, or the one after it, or announced.
    Regular,
    /// The counter is the last packet's: whether that is legal depends on the bytes.
    Repeated {
        /// The bytes may make it legal: it is the first repetition, of a packet with a payload.
        may_be_legal: bool,
        /// The last packet's bytes were marked as wrong, so that they prove nothing.
        unprovable: bool,
    },
    /// Packets are missing; or the counter is wrong, where none can be.
    Gap { expected: u8, lost: u8 },
}

impl PidState {
    pub(crate) fn new(pid: u16) -> Self {
        let null = pid == pid::NULL;
        Self {
            expected: NEVER,
            mask: if null { COMPARED & !15 } else { COMPARED },
            step: u8::from(!null),
            last_at: NOWHERE,
            packets: 0,
            pid,
            counter: None,
            aribts_counter: None,
            aribts_repeats: 0,
            repeats: 0,
            damaged: false,
            inspected: false,
            carries: false,
        }
    }

    /// Whether the packet is what was expected, with nothing in it that needs a second look. If so, it is counted.
    #[inline(always)]
    pub(crate) fn passes(&mut self, header: u32, at: u32) -> bool {
        let passes = header & self.mask == self.expected;
        if passes {
            self.expected = self.expected & !15 | (self.expected + u32::from(self.step)) & 15;
            self.packets += 1;
            self.last_at = at;
        }
        passes
    }

    /// Whether a packet with this header, which is of this PID, is the next one. Null packets have no counter.
    pub(crate) fn continues(&self, header: Header) -> bool {
        let last = match self.expected {
            NEVER => self.counter,
            expected => Some(Nibble((expected as u8).wrapping_sub(1) & 15)),
        };
        let counter = Nibble(header.continuity_counter());
        let next = |last: Nibble| if header.has_payload() { last.next() } else { last };
        !header.transport_error()
            && !header.is_reserved()
            && (self.pid == pid::NULL || last.is_some_and(|last| next(last) == counter))
    }

    /// From now on each packet's payload is looked at, or no longer.
    pub(crate) fn inspect(&mut self, inspected: bool) {
        self.disarm();
        self.inspected = inspected;
        self.arm();
    }

    /// Takes the counters out of the quick comparison.
    pub(crate) fn disarm(&mut self) {
        if self.expected != NEVER && self.step == 1 {
            let last = Nibble((self.expected as u8).wrapping_sub(1) & 15);
            self.counter = Some(last);
            self.aribts_counter = Some(last);
            self.aribts_repeats = 0;
            self.repeats = 0;
            self.damaged = false;
        }
        self.expected = NEVER;
    }

    /// Makes the next packet comparable, if all that is remembered fits into the comparison.
    pub(crate) fn arm(&mut self) {
        let quiet = self.aribts_repeats == 0 && !self.inspected;
        let plain = u32::from(SYNC_BYTE) << 24 | u32::from(self.pid) << 8 | 0x10;
        if self.pid == pid::NULL {
            self.expected = plain;
        } else if let Some(counter) = self.counter
            && quiet
            && self.aribts_counter == self.counter
        {
            self.expected = plain | u32::from(counter.next().0);
        }
    }

    /// Judges the counter of a packet without `transport_error_indicator`. The state is disarmed.
    pub(crate) fn judge(&mut self, header: Header, discontinuity: bool) -> Continuity {
        let counter = Nibble(header.continuity_counter());
        self.carries |= header.has_payload();
        let Some(last) = self.counter.filter(|_| !discontinuity) else {
            self.counter = Some(counter);
            self.repeats = if header.has_payload() { 0 } else { 1 };
            self.damaged = false;
            return Continuity::Regular;
        };
        let damaged = std::mem::take(&mut self.damaged);
        self.counter = Some(counter);
        if !header.has_payload() {
            // The counter stands still (2.4.3.3). What repeats it after this is not at once.
            self.repeats = self.repeats.saturating_add(1).max(1);
            return match counter.ahead_of(last) {
                0 => Continuity::Regular,
                lost => Continuity::Gap { expected: last.0, lost: if self.carries { lost } else { 0 } },
            };
        }
        if counter == last {
            let may_be_legal = self.repeats == 0;
            self.repeats = self.repeats.saturating_add(1);
            return Continuity::Repeated { may_be_legal, unprovable: damaged };
        }
        self.repeats = 0;
        match counter.ahead_of(last.next()) {
            0 => Continuity::Regular,
            lost => Continuity::Gap { expected: last.next().0, lost },
        }
    }

    /// The packet that was [`Continuity::Repeated`] is another one: what repeats it next is its first repetition.
    pub(crate) fn renew(&mut self) {
        self.repeats = 0;
    }

    /// A packet with `transport_error_indicator` on this PID. If its counter is the next one, it was not lost.
    pub(crate) fn damaged(&mut self, header: Header) {
        self.disarm();
        let counter = Nibble(header.continuity_counter());
        if header.has_payload() && self.counter.is_some_and(|last| last.next() == counter) {
            self.counter = Some(counter);
            self.repeats = 0;
            self.damaged = true;
        }
        self.arm();
    }

    /// aribts' rule, as its 1.3.5 and 2.1.12 have it: whether this packet counts as a drop.
    pub(crate) fn aribts_drop(&mut self, header: Header, discontinuity: bool) -> bool {
        if !header.has_payload() || self.pid == pid::NULL {
            return false;
        }
        if discontinuity {
            self.aribts_counter = None;
        }
        let counter = Nibble(header.continuity_counter());
        match self.aribts_counter.replace(counter) {
            None => false,
            Some(last) if last == counter => {
                self.aribts_repeats = (self.aribts_repeats + 1).min(2);
                self.aribts_repeats > 1
            }
            Some(last) => {
                self.aribts_repeats = 0;
                last.next() != counter
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(counter: u32) -> u32 {
        0x4701_0010 | counter
    }

    #[test]
    fn the_state_of_a_pid_fits_half_a_cache_line() {
        assert!(size_of::<PidState>() <= 32);
    }

    #[test]
    fn a_packet_in_sequence_passes_at_once_and_another_does_not() {
        let mut state = PidState::new(0x100);
        assert!(!state.passes(header(14), 0));
        assert_eq!(state.judge(Header(header(14)), false), Continuity::Regular);
        assert!(!state.aribts_drop(Header(header(14)), false));
        state.arm();
        assert!(state.passes(header(15), 0));
        assert!(state.passes(header(0), 0));
        assert!(!state.passes(header(2), 0));
        state.disarm();
        assert_eq!(state.judge(Header(header(2)), false), Continuity::Gap { expected: 1, lost: 1 });
    }

    #[test]
    fn null_packets_have_no_counter() {
        let mut state = PidState::new(pid::NULL);
        state.arm();
        for counter in [3, 3, 9] {
            assert!(state.passes(0x471F_FF10 | counter, 0));
        }
    }

    #[test]
    fn aribts_keeps_its_repetitions_over_an_indicator() {
        let mut state = PidState::new(0x100);
        let mut drop = |counter, discontinuity| state.aribts_drop(Header(header(counter)), discontinuity);
        assert_eq!(
            [drop(5, false), drop(5, false), drop(9, true), drop(9, false), drop(10, false)],
            [false, false, false, true, false]
        );
    }
}
