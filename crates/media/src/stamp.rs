//! The clock stamp: when a frame was captured, carried inside the video itself, so that it survives every
//! server that does not re-encode. It is an SEI message (H.264, clause 7.3.2.3, D.1.7:
//! user_data_unregistered) under a UUID of weir's own.
//!
//! After the UUID every field is written seven bits to a byte with the top bit set. No byte is ever zero, so
//! the stamp reads the same before and after emulation prevention, always has the same length, and can be
//! written over in a prepared frame.

use std::time::Duration;

use crate::nal::{Framing, UnescapedBytes, UnitType, units};

/// Identifies weir's stamps among the SEI messages of others. No byte of it is zero.
pub const STAMP_UUID: [u8; 16] = *b"\x77\x65\x69\x72\x9d\x1e\x4c\x5b\xa6\x3f\x8e\x2d\x51\xc7\xb4\x19";

/// The length of a stamp's NAL unit, in bytes, without length prefix or start code.
pub const STAMP_LEN: usize = HEADER.len() + PAYLOAD_LEN + 1;

/// How much of an access unit to keep for [`Stamp::find`]. weir puts its stamp right behind the parameter
/// sets; this leaves room for what servers put in front.
pub const STAMP_SEARCH_LEN: usize = 512;

/// When and where a frame was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// The clocks of the publisher's machine at capture.
    pub captured: ClockReading,
    /// Frames before this one in the stream; wraps.
    pub sequence_number: u32,
}

/// All clocks of one machine, read at one moment. Reading them is the caller's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClockReading {
    /// `/proc/sys/kernel/random/boot_id`: equal ids mean one machine, one boot, and so one monotonic clock.
    /// All zeros means unknown, and equals nothing.
    pub boot_id: [u8; 16],
    /// CLOCK_MONOTONIC, in nanoseconds.
    pub monotonic_nanos: u64,
    /// CLOCK_REALTIME, in nanoseconds since 1970-01-01 00:00 UTC.
    pub wall_nanos: u64,
}

impl ClockReading {
    /// A machine of which nothing is known; what a prepared frame carries until it is sent.
    pub const ZERO: Self = Self { boot_id: [0; 16], monotonic_nanos: 0, wall_nanos: 0 };
}

/// What is known of two machines' wall clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WallOffset {
    /// The publisher's wall clock minus the receiver's, in nanoseconds.
    pub publisher_ahead_nanos: i64,
    /// The true offset lies within this distance of [`Self::publisher_ahead_nanos`].
    pub uncertainty: Duration,
}

/// The time from capture to receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latency {
    /// In nanoseconds. Below zero when the clocks disagree by more than the latency.
    pub nanos: i64,
    /// The true latency lies within this distance of [`Self::nanos`]; zero on one machine.
    pub uncertainty: Duration,
    /// Which clock it was measured by.
    pub clock: LatencyClock,
}

/// By which clock a latency was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LatencyClock {
    /// The one monotonic clock of publisher and receiver: exact.
    Monotonic,
    /// Two wall clocks.
    Wall,
}

impl Stamp {
    /// The stamp as a NAL unit, without length prefix or start code.
    pub fn to_nal(&self) -> [u8; STAMP_LEN] {
        let mut unit = [RBSP_TRAILING; STAMP_LEN];
        unit[..HEADER.len()].copy_from_slice(&HEADER);
        let payload = &mut unit[HEADER.len()..STAMP_LEN - 1];
        let (uuid, fields) = payload.split_at_mut(STAMP_UUID.len());
        uuid.copy_from_slice(&STAMP_UUID);
        let (version, fields) = fields.split_at_mut(1);
        put_septets(version, VERSION.into());
        let (boot_id, fields) = fields.split_at_mut(BOOT_ID_LEN);
        put_septets(boot_id, u128::from_be_bytes(self.captured.boot_id));
        let (monotonic, fields) = fields.split_at_mut(CLOCK_LEN);
        put_septets(monotonic, self.captured.monotonic_nanos.into());
        let (wall, sequence_number) = fields.split_at_mut(CLOCK_LEN);
        put_septets(wall, self.captured.wall_nanos.into());
        put_septets(sequence_number, self.sequence_number.into());
        unit
    }

    /// Puts the stamp into a length-prefixed access unit: over the stamp that is there (no byte moves), or
    /// else as a new NAL unit in front of the picture, where H.264, clause 7.4.1.2.3, wants it: behind
    /// access unit delimiter, parameter sets and a buffering period message.
    pub fn put(&self, access_unit: &mut Vec<u8>) {
        let unit = self.to_nal();
        match position(access_unit) {
            StampPosition::Over(at) => access_unit[at..at + STAMP_LEN].copy_from_slice(&unit),
            StampPosition::Before(at) => {
                let mut framed = [0; 4 + STAMP_LEN];
                framed[..4].copy_from_slice(&(STAMP_LEN as u32).to_be_bytes());
                framed[4..].copy_from_slice(&unit);
                access_unit.splice(at..at, framed);
            }
        }
    }

    /// The stamp of an access unit, of which the first [`STAMP_SEARCH_LEN`] bytes are looked at and needed.
    pub fn find(access_unit: &[u8], framing: Framing) -> Option<Self> {
        let start = &access_unit[..access_unit.len().min(STAMP_SEARCH_LEN)];
        for unit in units(start, framing) {
            match UnitType::of(unit) {
                Some(UnitType::Slice { .. }) => return None,
                Some(UnitType::Sei) => {
                    if let Some(stamp) = Self::from_nal(unit) {
                        return Some(stamp);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// The stamp in one NAL unit, alone or among other SEI messages.
    pub fn from_nal(unit: &[u8]) -> Option<Self> {
        if UnitType::of(unit) != Some(UnitType::Sei) {
            return None;
        }
        let mut bytes = UnescapedBytes::new(&unit[1..]);
        // sei_message() after sei_message(), clause 7.3.2.3.1, until what is left is no header any more.
        loop {
            let payload_type = sei_number(&mut bytes)?;
            let payload_size = sei_number(&mut bytes)?;
            if payload_type == USER_DATA_UNREGISTERED
                && payload_size == PAYLOAD_LEN
                && let Some(stamp) = Self::from_payload(bytes.clone())
            {
                return Some(stamp);
            }
            if payload_size > 0 {
                bytes.nth(payload_size - 1)?;
            }
        }
    }

    /// The time from capture to `received`. On one machine and boot it is exact; otherwise it is what the
    /// wall clocks say, corrected by `offset`.
    pub fn latency(&self, received: &ClockReading, offset: WallOffset) -> Latency {
        let captured = &self.captured;
        if captured.boot_id == received.boot_id && captured.boot_id != [0; 16] {
            return Latency {
                nanos: difference(received.monotonic_nanos, captured.monotonic_nanos),
                uncertainty: Duration::ZERO,
                clock: LatencyClock::Monotonic,
            };
        }
        let apparent = difference(received.wall_nanos, captured.wall_nanos);
        Latency {
            nanos: apparent.saturating_add(offset.publisher_ahead_nanos),
            uncertainty: offset.uncertainty,
            clock: LatencyClock::Wall,
        }
    }

    fn from_payload(mut bytes: UnescapedBytes<'_>) -> Option<Self> {
        for expected in STAMP_UUID {
            if bytes.next()? != expected {
                return None;
            }
        }
        if take_septets(&mut bytes, 1)? != VERSION.into() {
            return None;
        }
        let boot_id = take_septets(&mut bytes, BOOT_ID_LEN)?.to_be_bytes();
        let monotonic_nanos = take_septets(&mut bytes, CLOCK_LEN)?.try_into().ok()?;
        let wall_nanos = take_septets(&mut bytes, CLOCK_LEN)?.try_into().ok()?;
        let sequence_number = take_septets(&mut bytes, SEQUENCE_NUMBER_LEN)?.try_into().ok()?;
        Some(Self { captured: ClockReading { boot_id, monotonic_nanos, wall_nanos }, sequence_number })
    }
}

/// The format's version: a receiver takes no stamp of another.
const VERSION: u8 = 1;

/// The top bit of every byte after the UUID.
const MARK: u8 = 0x80;

/// payloadType, table in D.1.1.
const USER_DATA_UNREGISTERED: usize = 5;

/// UUID, version, boot id, monotonic, wall, sequence number.
const PAYLOAD_LEN: usize = STAMP_UUID.len() + 1 + BOOT_ID_LEN + 2 * CLOCK_LEN + SEQUENCE_NUMBER_LEN;

/// 128, 64 and 32 bits, seven to a byte.
const BOOT_ID_LEN: usize = 19;
const CLOCK_LEN: usize = 10;
const SEQUENCE_NUMBER_LEN: usize = 5;

/// NAL unit header (nal_ref_idc 0, type 6), payloadType, payloadSize.
const HEADER: [u8; 3] = [6, USER_DATA_UNREGISTERED as u8, PAYLOAD_LEN as u8];

/// rbsp_trailing_bits() of an aligned payload.
const RBSP_TRAILING: u8 = 0x80;

/// payloadType of a buffering period message, which must stay the first.
const BUFFERING_PERIOD: u8 = 0;

/// Where a stamp goes in an access unit, in bytes from its start.
enum StampPosition {
    Over(usize),
    Before(usize),
}

fn position(access_unit: &[u8]) -> StampPosition {
    let mut at = 0;
    let mut insert_at = 0;
    for unit in units(access_unit, Framing::LengthPrefixed) {
        let end = at + 4 + unit.len();
        match UnitType::of(unit) {
            Some(UnitType::Sei) if is_lone_stamp(unit) => return StampPosition::Over(at + 4),
            Some(UnitType::Sei) if unit.get(1) == Some(&BUFFERING_PERIOD) => insert_at = end,
            Some(
                UnitType::AccessUnitDelimiter
                | UnitType::SequenceParameterSet
                | UnitType::PictureParameterSet,
            ) => insert_at = end,
            Some(UnitType::Slice { .. }) => break,
            _ => {}
        }
        at = end;
    }
    StampPosition::Before(insert_at)
}

fn is_lone_stamp(unit: &[u8]) -> bool {
    unit.len() == STAMP_LEN && unit.starts_with(&HEADER) && unit[HEADER.len()..].starts_with(&STAMP_UUID)
}

fn put_septets(field: &mut [u8], value: u128) {
    for (index, byte) in field.iter_mut().rev().enumerate() {
        *byte = MARK | (value >> (7 * index)) as u8;
    }
}

fn take_septets(bytes: &mut UnescapedBytes<'_>, length: usize) -> Option<u128> {
    (0..length).try_fold(0, |value, _| {
        let byte = bytes.next()?;
        (byte & MARK != 0).then_some(value << 7 | u128::from(byte & !MARK))
    })
}

/// payloadType or payloadSize: a run of 0xff, and the rest.
fn sei_number(bytes: &mut UnescapedBytes<'_>) -> Option<usize> {
    let mut number = 0;
    loop {
        let byte = bytes.next()?;
        number += usize::from(byte);
        if byte != 0xff {
            return Some(number);
        }
    }
}

/// `later − earlier`, held to what fits.
fn difference(later: u64, earlier: u64) -> i64 {
    let exact = i128::from(later) - i128::from(earlier);
    exact.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nal::append_escaped;
    use proptest::prelude::*;

    fn stamp() -> impl Strategy<Value = Stamp> {
        (any::<[u8; 16]>(), any::<u64>(), any::<u64>(), any::<u32>()).prop_map(
            |(boot_id, monotonic_nanos, wall_nanos, sequence_number)| Stamp {
                captured: ClockReading { boot_id, monotonic_nanos, wall_nanos },
                sequence_number,
            },
        )
    }

    const ZERO: Stamp = Stamp { captured: ClockReading::ZERO, sequence_number: 0 };

    fn length_prefixed(units: &[&[u8]]) -> Vec<u8> {
        units.iter().flat_map(|unit| [&(unit.len() as u32).to_be_bytes()[..], unit].concat()).collect()
    }

    fn annex_b(units: &[&[u8]]) -> Vec<u8> {
        units.iter().flat_map(|unit| [&[0, 0, 0, 1][..], unit].concat()).collect()
    }

    const DELIMITER: &[u8] = &[9, 0x10];
    const SPS: &[u8] = &[0x67, 66, 0xe0, 31, 0x80];
    const PPS: &[u8] = &[0x68, 0xce, 0x80];
    const SLICE: &[u8] = &[0x65, 0x88, 0x80];

    #[test]
    fn a_stamp_goes_behind_the_parameter_sets_and_before_other_messages() {
        let other: &[u8] = &[6, 5, 2, 1, 2, 0x80];
        let mut access_unit = length_prefixed(&[DELIMITER, SPS, PPS, other, SLICE]);
        ZERO.put(&mut access_unit);
        let nal = ZERO.to_nal();
        assert_eq!(access_unit, length_prefixed(&[DELIMITER, SPS, PPS, &nal, other, SLICE]));
    }

    #[test]
    fn a_buffering_period_stays_the_first_message() {
        let buffering_period: &[u8] = &[6, 0, 1, 0xaa, 0x80];
        let mut access_unit = length_prefixed(&[buffering_period, SLICE]);
        ZERO.put(&mut access_unit);
        assert_eq!(access_unit, length_prefixed(&[buffering_period, &ZERO.to_nal(), SLICE]));
    }

    #[test]
    fn a_stamp_behind_the_picture_is_none() {
        let access_unit = length_prefixed(&[SLICE, &ZERO.to_nal()]);
        assert_eq!(Stamp::find(&access_unit, Framing::LengthPrefixed), None);
    }

    #[test]
    fn a_stamp_of_another_version_is_none() {
        let mut unit = ZERO.to_nal();
        unit[HEADER.len() + 16] += 1;
        assert_eq!(Stamp::from_nal(&unit), None);
    }

    #[test]
    fn one_machine_needs_no_wall_clock() {
        let sent = ClockReading { boot_id: [7; 16], monotonic_nanos: 1_000, wall_nanos: 500 };
        let received = ClockReading { boot_id: [7; 16], monotonic_nanos: 4_000, wall_nanos: 10 };
        let offset = WallOffset { publisher_ahead_nanos: 99, uncertainty: Duration::from_millis(3) };
        let latency = Stamp { captured: sent, sequence_number: 0 }.latency(&received, offset);
        assert_eq!(
            latency,
            Latency { nanos: 3_000, uncertainty: Duration::ZERO, clock: LatencyClock::Monotonic }
        );
    }

    #[test]
    fn two_machines_are_compared_by_wall_clock_and_offset() {
        let offset = WallOffset { publisher_ahead_nanos: 300, uncertainty: Duration::from_millis(3) };
        for (sent_boot, received_boot) in [([7; 16], [8; 16]), ([0; 16], [0; 16])] {
            let sent = ClockReading { boot_id: sent_boot, monotonic_nanos: 1_000_000, wall_nanos: 5_300 };
            let received = ClockReading { boot_id: received_boot, monotonic_nanos: 4_000, wall_nanos: 6_000 };
            let latency = Stamp { captured: sent, sequence_number: 0 }.latency(&received, offset);
            assert_eq!(
                latency,
                Latency { nanos: 1_000, uncertainty: offset.uncertainty, clock: LatencyClock::Wall }
            );
        }
    }

    #[test]
    fn clocks_that_disagree_give_a_negative_latency_not_a_huge_one() {
        let sent = ClockReading { boot_id: [1; 16], monotonic_nanos: 0, wall_nanos: u64::MAX };
        let received = ClockReading { boot_id: [2; 16], monotonic_nanos: 0, wall_nanos: 0 };
        let offset = WallOffset { publisher_ahead_nanos: -1, uncertainty: Duration::ZERO };
        assert_eq!(Stamp { captured: sent, sequence_number: 0 }.latency(&received, offset).nanos, i64::MIN);
    }

    proptest! {
        #[test]
        fn a_stamp_needs_no_emulation_prevention(stamp in stamp()) {
            let mut escaped = Vec::new();
            append_escaped(&stamp.to_nal(), &mut escaped);
            prop_assert_eq!(&escaped[..], &stamp.to_nal()[..]);
            prop_assert!(!escaped.contains(&0));
        }

        #[test]
        fn a_stamp_is_found_in_both_framings(stamp in stamp(), delimiter: bool, parameter_sets: bool) {
            let nal = stamp.to_nal();
            let mut all: Vec<&[u8]> = Vec::new();
            if delimiter { all.push(DELIMITER); }
            if parameter_sets { all.extend([SPS, PPS]); }
            all.extend([&nal, SLICE]);
            prop_assert_eq!(Stamp::find(&length_prefixed(&all), Framing::LengthPrefixed), Some(stamp));
            prop_assert_eq!(Stamp::find(&annex_b(&all), Framing::AnnexB), Some(stamp));
        }

        #[test]
        fn a_stamp_is_found_among_other_messages_of_its_unit(
            stamp in stamp(),
            other_type in 0u8..=0xfe,
            other in prop::collection::vec(prop_oneof![Just(0u8), any::<u8>()], 0..300),
        ) {
            let mut unit = vec![6, other_type];
            unit.extend(std::iter::repeat_n(0xff, other.len() / 255));
            unit.push((other.len() % 255) as u8);
            unit.extend_from_slice(&other);
            unit.extend_from_slice(&stamp.to_nal()[1..]);
            let mut escaped = Vec::new();
            append_escaped(&unit, &mut escaped);
            prop_assert_eq!(Stamp::from_nal(&escaped), Some(stamp));
        }

        #[test]
        fn a_second_stamp_is_written_over_the_first(first in stamp(), second in stamp()) {
            let mut access_unit = length_prefixed(&[DELIMITER, SLICE]);
            first.put(&mut access_unit);
            let length = access_unit.len();
            second.put(&mut access_unit);
            prop_assert_eq!(access_unit.len(), length);
            prop_assert_eq!(Stamp::find(&access_unit, Framing::LengthPrefixed), Some(second));
        }

        #[test]
        fn any_bytes_are_searched_without_harm(bytes in prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(6), Just(5), any::<u8>()], 0..600)) {
            Stamp::find(&bytes, Framing::LengthPrefixed);
            Stamp::find(&bytes, Framing::AnnexB);
            Stamp::from_nal(&bytes);
            ZERO.put(&mut bytes.clone());
        }
    }
}
