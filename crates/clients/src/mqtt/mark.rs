//! The mark of a message: who sent it, which one it is, and when. MQTT 5 carries it in a user property, 3.1.1 in front
//! of the payload.

use crate::host_clock::HostClock;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use weir_metrics::Moment;

/// The name of the user property.
pub(super) const PROPERTY: &str = "weir";

/// What a payload with a mark begins with.
const MAGIC: [u8; 8] = *b"weirmqt\x01";

/// Bytes of the fields.
const FIELDS_LEN: usize = 48;

/// Bytes of a mark in front of a payload.
pub(super) const HEADER_LEN: usize = MAGIC.len() + FIELDS_LEN;

/// Bytes of a mark as text.
const TEXT_LEN: usize = FIELDS_LEN / 3 * 4;

/// What a message says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// Its publisher, by a number of its own.
    pub(super) publisher: u64,
    /// Messages of the publisher before this one.
    pub(super) sequence_number: u64,
    /// When the publisher began, in nanoseconds of its monotonic clock.
    pub(super) begun: u64,
    /// When it was sent.
    pub(super) sent: Clocks,
}

/// The clocks of a machine at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clocks {
    monotonic: u64,
    wall: u64,
    /// The boot id, folded; 0 if it is not known.
    boot: u64,
}

/// From sending to receipt, in microseconds, and whether one clock gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Latency {
    pub(super) micros: i64,
    pub(super) one_clock: bool,
}

impl Clocks {
    #[inline]
    pub(super) fn read(clock: &HostClock, now: Moment) -> Self {
        let reading = clock.at(now);
        let boot = u128::from_be_bytes(reading.boot_id);
        Self {
            monotonic: reading.monotonic_nanos,
            wall: reading.wall_nanos,
            boot: (boot >> 64) as u64 ^ boot as u64,
        }
    }

    /// The time since `earlier`: by the monotonic clock if both are of one machine.
    #[inline]
    pub(super) fn since(&self, earlier: &Self) -> Latency {
        let one_clock = self.boot != 0 && self.boot == earlier.boot;
        let nanos = if one_clock {
            self.monotonic.wrapping_sub(earlier.monotonic)
        } else {
            self.wall.wrapping_sub(earlier.wall)
        };
        Latency { micros: nanos as i64 / 1_000, one_clock }
    }
}

impl Mark {
    /// Whether its publisher began after a moment of this machine; `false` if that cannot be known.
    pub(super) fn began_after(&self, moment: Moment, here: &Clocks) -> bool {
        self.sent.boot != 0 && self.sent.boot == here.boot && self.begun >= moment.as_nanos()
    }

    /// The text of the user property.
    pub(super) fn text(&self) -> [u8; TEXT_LEN] {
        let mut text = [0; TEXT_LEN];
        // Of so many bytes, just so many letters are made.
        let written = URL_SAFE_NO_PAD.encode_slice(self.fields(), &mut text);
        debug_assert_eq!(written.ok(), Some(TEXT_LEN));
        text
    }

    /// Reads the text of a user property.
    pub(super) fn from_text(text: &str) -> Option<Self> {
        let mut fields = [0; FIELDS_LEN];
        if text.len() != TEXT_LEN {
            return None;
        }
        URL_SAFE_NO_PAD.decode_slice(text, &mut fields).ok()?;
        Some(Self::from_fields(&fields))
    }

    /// Writes the mark over the first [`HEADER_LEN`] bytes of a payload.
    pub(super) fn put(&self, payload: &mut [u8]) {
        if let Some((header, _)) = payload.split_first_chunk_mut::<HEADER_LEN>() {
            header[..MAGIC.len()].copy_from_slice(&MAGIC);
            header[MAGIC.len()..].copy_from_slice(&self.fields());
        }
    }

    /// Reads the mark in front of a payload.
    pub(super) fn from_payload(payload: &[u8]) -> Option<Self> {
        let fields = payload.strip_prefix(&MAGIC)?.first_chunk()?;
        Some(Self::from_fields(fields))
    }

    fn fields(&self) -> [u8; FIELDS_LEN] {
        let Clocks { monotonic, wall, boot } = self.sent;
        let mut fields = [0; FIELDS_LEN];
        let values = [self.publisher, self.sequence_number, self.begun, monotonic, wall, boot];
        for (bytes, value) in fields.chunks_exact_mut(8).zip(values) {
            bytes.copy_from_slice(&value.to_be_bytes());
        }
        fields
    }

    fn from_fields(fields: &[u8; FIELDS_LEN]) -> Self {
        let mut values = [0; FIELDS_LEN / 8];
        for (value, bytes) in values.iter_mut().zip(fields.as_chunks::<8>().0) {
            *value = u64::from_be_bytes(*bytes);
        }
        let [publisher, sequence_number, begun, monotonic, wall, boot] = values;
        Self { publisher, sequence_number, begun, sent: Clocks { monotonic, wall, boot } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark() -> Mark {
        let sent = Clocks { monotonic: 5_000_000, wall: 90_000_000, boot: 7 };
        Mark { publisher: u64::MAX, sequence_number: 3, begun: 4, sent }
    }

    #[test]
    fn a_mark_survives_both_ways_of_carrying_it() {
        let text = mark().text();
        assert_eq!(Mark::from_text(std::str::from_utf8(&text).unwrap()), Some(mark()));
        let mut payload = vec![9; HEADER_LEN + 3];
        mark().put(&mut payload);
        assert_eq!((Mark::from_payload(&payload), &payload[HEADER_LEN..]), (Some(mark()), &[9; 3][..]));
        assert_eq!((Mark::from_payload(b"weirmqt"), Mark::from_text("weir")), (None, None));
        assert_eq!(Mark::from_payload(&payload[..HEADER_LEN - 1]), None);
    }

    #[test]
    fn one_machine_has_one_clock_and_two_have_walls() {
        let later = |boot| Clocks { monotonic: 6_000_000, wall: 99_000_000, boot };
        assert_eq!(later(7).since(&mark().sent), Latency { micros: 1_000, one_clock: true });
        assert_eq!(later(8).since(&mark().sent), Latency { micros: 9_000, one_clock: false });
        assert!(mark().began_after(Moment::from_nanos(4), &later(7)));
        assert!(!mark().began_after(Moment::from_nanos(5), &later(7)));
        assert!(!mark().began_after(Moment::from_nanos(4), &later(8)));
    }
}
