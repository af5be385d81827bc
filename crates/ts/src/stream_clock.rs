//! The time of a whole stream, made of the clock references of one of its PIDs.

use crate::clock::{LONGEST_INTERVAL, StreamTime, TICKS_PER_SECOND, Tick};
use crate::packet::Pcr;

/// How far the clock goes on without a reference, at the least.
const SHORTEST_REACH: u64 = TICKS_PER_SECOND;

/// The time of the whole stream: that of one clock among those that it carries.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamClock {
    /// The PID that is followed.
    reference: Option<u16>,
    elapsed: u64,
    /// The place of the last reference.
    place: u64,
    ticks_per_packet: f64,
    /// Ticks from one reference to the next as it usually is.
    usual: u64,
    pcr: Option<Pcr>,
    /// Counts new time bases.
    pub(crate) epoch: u32,
    /// What other clocks have counted since the followed one spoke last.
    silence: u64,
}

impl StreamClock {
    /// Takes what a reference on `pid` said.
    pub(crate) fn follow(&mut self, pid: u16, pcr: Pcr, place: u64, tick: &Tick) {
        let reference = *self.reference.get_or_insert(pid);
        if reference != pid {
            self.silence += tick.elapsed;
            if self.silence < self.reach() {
                return;
            }
            // The followed clock has gone: another program's takes over.
            self.elapsed = self.at(place).map_or(0, |time| time.0);
            self.reference = Some(pid);
            self.epoch += 1;
        } else {
            self.elapsed += tick.elapsed;
            self.epoch += u32::from(tick.broken);
        }
        self.silence = 0;
        self.place = place;
        self.pcr = Some(pcr);
        self.ticks_per_packet = tick.ticks_per_packet;
        self.usual = tick.usual;
    }

    /// Whether the time is that of this PID's clock.
    pub(crate) fn follows(&self, pid: u16) -> bool {
        self.reference == Some(pid)
    }

    /// Whether it is known how fast the time goes on.
    pub(crate) fn has_rate(&self) -> bool {
        self.ticks_per_packet > 0.0
    }

    /// How far off the time may be between two references, in ticks: where they are further apart than allowed, half the
    /// usual interval, because a variable rate says little of the time within it.
    pub(crate) fn leeway(&self) -> u64 {
        if self.usual > LONGEST_INTERVAL as u64 { self.usual / 2 } else { 0 }
    }

    /// How far the time goes on without a reference.
    fn reach(&self) -> u64 {
        SHORTEST_REACH.max(2 * self.usual)
    }

    /// The time at a place; `None` before the first reference.
    pub(crate) fn at(&self, place: u64) -> Option<StreamTime> {
        self.reference?;
        Some(StreamTime(self.elapsed + self.beyond(place)))
    }

    /// The program clock itself at a place, for one stream seen by several readers.
    pub(crate) fn pcr_at(&self, place: u64) -> Option<Pcr> {
        self.pcr.map(|pcr| Pcr::new(pcr.ticks() + self.beyond(place)))
    }

    fn beyond(&self, place: u64) -> u64 {
        let ticks = place.saturating_sub(self.place) as f64 * self.ticks_per_packet;
        (ticks as u64).min(self.reach())
    }
}
