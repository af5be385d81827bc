//! Which packets an access unit has, by their numbers: to know whether what is missing of it may still come.

use weir_rtc::nack::Nack;

/// The numbers of an access unit, as far as they are known. What is missing between two belongs to both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnitSpan {
    timestamp: u32,
    first: u64,
    last: u64,
    /// How many of them are here.
    came: u64,
}

impl UnitSpan {
    /// Takes note of a packet that is here, whose number it may be.
    fn take(&mut self, number: u64) {
        self.came += u64::from((self.first..=self.last).contains(&number));
    }

    fn missing(&self) -> u64 {
        (self.last - self.first + 1).saturating_sub(self.came)
    }
}

/// The access units whose packets come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UnitSpans {
    /// The one before the newest, and the newest.
    before: Option<UnitSpan>,
    newest: Option<UnitSpan>,
    /// The latest keyframe.
    keyframe: Option<UnitSpan>,
    /// A keyframe that was waited for, and that no decoder could begin with.
    awaited: Option<UnitSpan>,
}

impl UnitSpans {
    /// The packet with this number came, the highest so far, `timestamp` its access unit's if it is not padding alone.
    pub(super) fn ahead(&mut self, number: u64, timestamp: Option<u32>) {
        match &mut self.newest {
            Some(newest) if timestamp.is_none_or(|it| it == newest.timestamp) => {
                (newest.last, newest.came) = (number, newest.came + 1);
            }
            _ => {
                let Some(timestamp) = timestamp else { return };
                let first = self.newest.map_or(number, |before| before.last + 1);
                self.before = self.newest.map(|before| UnitSpan { last: number - 1, ..before });
                self.newest = Some(UnitSpan { timestamp, first, last: number, came: 1 });
            }
        }
    }

    /// The packet with this number came late, or again.
    pub(super) fn late(&mut self, number: u64) {
        [&mut self.before, &mut self.newest, &mut self.keyframe, &mut self.awaited]
            .into_iter()
            .flatten()
            .for_each(|unit| unit.take(number));
    }

    /// The access unit with this time stamp is a keyframe.
    pub(super) fn keyframe(&mut self, timestamp: u32) {
        let mut known = [self.newest, self.before].into_iter().flatten();
        self.keyframe = known.find(|unit| unit.timestamp == timestamp);
    }

    /// The latest keyframe was waited for, and no decoder can begin with it. What may still come of one before it is known first.
    pub(super) fn await_keyframe(&mut self) {
        if self.awaited.is_none_or(|it| it.missing() == 0) {
            self.awaited = self.keyframe;
        }
    }

    /// Whether a packet of such a keyframe is missing that will not come any more.
    pub(super) fn is_broken(&self, nack: &Nack) -> bool {
        self.awaited.is_some_and(|it| it.missing() > nack.pending_in(it.first..=it.last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use weir_metrics::Moment;
    use weir_rtc::account::{Hints, Kind, Track, TrackSettings};
    use weir_rtc::nack::NackSettings;
    use weir_rtc::rtp::{Header, Packet};

    /// A track that asks for what is missing, and the access units of its packets.
    struct Units {
        track: Track,
        spans: UnitSpans,
        now: Moment,
    }

    impl Units {
        fn new() -> Self {
            let nack = NackSettings { pending: 8, ..NackSettings::default() };
            let track = Track::new(TrackSettings { kind: Kind::Video, clock_rate: 90_000, nack });
            Self { track, spans: UnitSpans::default(), now: Moment::from_nanos(0) }
        }

        /// The packet of this number comes, of the access unit at this time.
        fn push(&mut self, number: u16, timestamp: u32) {
            use weir_rtc::account::Arrival;
            let header =
                Header { marker: false, payload_type: 96, sequence_number: number, timestamp, ssrc: 9 };
            let mut bytes = Vec::new();
            header.append(&[], &mut bytes).unwrap();
            bytes.push(7);
            match self.track.receive(self.now, &Packet::parse(&bytes).unwrap(), Hints::default()) {
                Arrival::Ahead { number, .. } => self.spans.ahead(number, Some(timestamp)),
                Arrival::Late { number, .. } => self.spans.late(number),
                other => panic!("{other:?}"),
            }
        }

        /// All tries are used up.
        fn give_up(&mut self) {
            for _ in 0..30 {
                self.now = self.now + Duration::from_millis(100);
                self.track.nack().poll(self.now, &mut Vec::new());
            }
        }

        fn wait_for(&mut self, timestamp: u32) {
            self.spans.keyframe(timestamp);
            self.spans.await_keyframe();
        }

        fn is_broken(&mut self) -> bool {
            self.spans.is_broken(self.track.nack())
        }
    }

    /// A keyframe of the packets 4 to 7, between two pictures of which `lost` do not come.
    fn keyframe(lost: &[u16]) -> Units {
        let mut units = Units::new();
        for number in (1..=10_u16).filter(|number| !lost.contains(number)) {
            units.push(
                number,
                match number {
                    1..=3 => 0,
                    4..=7 => 3_000,
                    _ => 6_000,
                },
            );
            if number == 8 {
                units.wait_for(3_000);
            }
        }
        units
    }

    #[test]
    fn a_packet_of_the_keyframe_that_is_given_up_breaks_it_and_one_of_another_picture_does_not() {
        let mut units = keyframe(&[5]);
        assert!(!units.is_broken(), "it is asked for");
        units.give_up();
        assert!(units.is_broken());
        for other in [2, 9] {
            let mut units = keyframe(&[other]);
            units.give_up();
            assert!(!units.is_broken(), "{other}");
        }
        // What is missing between two pictures may be of either.
        let mut units = keyframe(&[3, 4]);
        units.give_up();
        assert!(units.is_broken());
    }

    #[test]
    fn a_packet_that_comes_late_breaks_nothing_whatever_else_is_given_up() {
        let mut units = keyframe(&[2, 5, 9]);
        units.push(5, 3_000);
        units.give_up();
        assert!(!units.is_broken());
    }

    #[test]
    fn a_keyframe_behind_one_that_may_still_come_does_not_take_its_place() {
        let mut units = keyframe(&[5]);
        units.push(11, 9_000);
        units.push(12, 12_000);
        units.wait_for(9_000);
        units.give_up();
        assert!(units.is_broken());
    }

    #[test]
    fn what_is_too_much_to_ask_for_breaks_it_at_once() {
        let mut units = Units::new();
        units.push(1, 0);
        units.push(2, 3_000);
        units.push(20, 3_000);
        units.wait_for(3_000);
        assert!(units.is_broken());
    }
}
