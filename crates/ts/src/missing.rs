//! What is missing of a live stream for a viewer of it: where another stream begins in its place, counters go on from no packet of the one before.

/// For how many packets behind a clock that went back a PID may begin: sound begins behind pictures. At 1 Mbit/s it is three seconds.
const BEGINNING: u64 = 2_000;

/// Packets that are missing, those of a stream that another took the place of left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Missing {
    settled: u64,
    /// Missing since the last clock reference.
    open: OpenGaps,
    /// Where another stream has begun, and which PIDs have since.
    begun: Option<(u64, Vec<u16>)>,
}

/// Gaps that the next clock reference decides about.
#[derive(Clone, Debug, Default)]
struct OpenGaps {
    /// Where the first of them is.
    place: u64,
    pids: Vec<u16>,
    lost: u64,
}

impl Missing {
    /// At least `lost` packets of this PID are missing at a place.
    pub(crate) fn gap(&mut self, pid: u16, lost: u64, place: u64) {
        if let Some((at, begun)) = &mut self.begun
            && place <= *at + BEGINNING
            && !begun.contains(&pid)
        {
            begun.push(pid);
            return;
        }
        // Without a clock, or long before it, nothing else will tell.
        if place > self.open.place + BEGINNING {
            self.settle();
        }
        if self.open.pids.is_empty() {
            self.open.place = place;
        }
        if !self.open.pids.contains(&pid) {
            self.open.pids.push(pid);
        }
        self.open.lost += lost;
    }

    /// A reference of the clock came, with which another stream begins at this place, or not.
    pub(crate) fn reference(&mut self, begins_at: Option<u64>) {
        let OpenGaps { pids, lost, .. } = std::mem::take(&mut self.open);
        match begins_at {
            Some(place) => self.begun = Some((place, pids)),
            None => self.settled += lost,
        }
    }

    /// No reference will come any more.
    pub(crate) fn settle(&mut self) {
        self.reference(None);
    }

    /// How many are missing of the streams that came, those behind the last reference apart.
    pub(crate) fn settled(&self) -> u64 {
        self.settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_another_stream_lose_nothing_and_what_follows_in_it_does() {
        let mut missing = Missing::default();
        missing.gap(256, 3, 100);
        missing.reference(None);
        assert_eq!(missing.settled(), 3);
        // Tables and pictures begin in front of their clock, sound behind it.
        [0, 4_096, 256].iter().for_each(|pid| missing.gap(*pid, 9, 200));
        missing.reference(Some(202));
        missing.gap(257, 7, 230);
        missing.reference(None);
        assert_eq!(missing.settled(), 3);
        // What is missing of these then is lost.
        missing.gap(256, 1, 300);
        missing.gap(257, 2, 301);
        missing.settle();
        assert_eq!(missing.settled(), 6);
        // So is what breaks long after that.
        missing.gap(258, 5, 5_000);
        missing.settle();
        assert_eq!(missing.settled(), 11);
    }

    #[test]
    fn without_a_clock_what_is_missing_is_known_soon_and_takes_no_memory() {
        let mut missing = Missing::default();
        (0..100_000).for_each(|place| missing.gap(256, 1, place));
        assert!(missing.settled() >= 97_000 && missing.open.pids.len() == 1);
        missing.settle();
        assert_eq!(missing.settled(), 100_000);
    }
}
