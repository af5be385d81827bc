//! weir's own mark of a message: who sent it, which one it is, and when. MQTT 5 carries it in a user property, 3.1.1 in
//! front of the payload.

use crate::Publish;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The name of the user property.
pub const PROPERTY: &str = "weir";

/// What a payload with a mark begins with.
const MAGIC: [u8; 8] = *b"weirmqt\x01";

/// What the payload of a publisher's last message begins with: readers of the form above take it for one without a mark.
const MAGIC_OF_LAST: [u8; 8] = *b"weirmqt\x02";

/// Bytes of the fields.
const FIELDS_LEN: usize = 48;

/// Bytes of a mark in front of a payload.
pub const HEADER_LEN: usize = MAGIC.len() + FIELDS_LEN;

/// Bytes of the fields as text.
const FIELDS_TEXT_LEN: usize = FIELDS_LEN / 3 * 4;

/// What stands behind the fields in the text of a publisher's last message; the alphabet of the fields has no such sign.
const LAST: &str = ".last";

/// Bytes of the longest mark as text.
pub const TEXT_LEN: usize = FIELDS_TEXT_LEN + LAST.len();

/// What a message says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its publisher, by a number of its own.
    pub publisher: u64,
    /// Messages of the publisher before this one.
    pub sequence_number: u64,
    /// When the publisher began, in nanoseconds of its monotonic clock.
    pub begun: u64,
    /// When it was sent.
    pub sent: Clocks,
    /// Whether its publisher sends no other behind it: it has then sent `sequence_number` and one.
    pub last: bool,
}

/// The clocks of a machine at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// Nanoseconds of its monotonic clock.
    pub monotonic: u64,
    /// Nanoseconds since the Unix epoch.
    pub wall: u64,
    /// The boot id, folded by [`fold_boot_id`]; 0 if it is not known.
    pub boot: u64,
}

/// From sending to receipt, in microseconds, and whether one clock gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// Microseconds; less than nothing if clocks do not agree.
    pub micros: i64,
    /// Whether one machine's monotonic clock gave both ends.
    pub one_clock: bool,
}

/// A boot id in eight bytes.
pub fn fold_boot_id(boot_id: [u8; 16]) -> u64 {
    let boot = u128::from_be_bytes(boot_id);
    (boot >> 64) as u64 ^ boot as u64
}

impl Clocks {
    /// The time since `earlier`: by the monotonic clock if both are of one machine.
    #[inline]
    pub fn since(&self, earlier: &Self) -> Latency {
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
    /// The mark of a message, wherever its version carries it, and the payload behind it.
    #[inline]
    pub fn of<'a>(message: &Publish<'a>) -> (Option<Self>, &'a [u8]) {
        let payload = message.payload;
        if let Some(mark) = message.properties.user_property(PROPERTY).and_then(Self::from_text) {
            return (Some(mark), payload);
        }
        match Self::from_payload(payload) {
            Some(mark) => (Some(mark), &payload[HEADER_LEN..]),
            None => (None, payload),
        }
    }

    /// Whether its publisher began after a moment of this machine, in nanoseconds of the monotonic clock; `false` if
    /// that cannot be known.
    pub fn began_after(&self, moment: u64, here: &Clocks) -> bool {
        self.sent.boot != 0 && self.sent.boot == here.boot && self.begun >= moment
    }

    /// The text of the user property.
    pub fn text<'a>(&self, room: &'a mut [u8; TEXT_LEN]) -> &'a str {
        let (fields, last) = room.split_at_mut(FIELDS_TEXT_LEN);
        // Base64 without padding: the number of letters follows from the number of bytes.
        let written = URL_SAFE_NO_PAD.encode_slice(self.fields(), fields);
        debug_assert_eq!(written.ok(), Some(FIELDS_TEXT_LEN));
        last.copy_from_slice(LAST.as_bytes());
        let length = if self.last { TEXT_LEN } else { FIELDS_TEXT_LEN };
        std::str::from_utf8(&room[..length]).unwrap_or_default()
    }

    /// Reads the text of a user property.
    pub fn from_text(text: &str) -> Option<Self> {
        let (text, last) = text.strip_suffix(LAST).map_or((text, false), |text| (text, true));
        let mut fields = [0; FIELDS_LEN];
        if text.len() != FIELDS_TEXT_LEN {
            return None;
        }
        URL_SAFE_NO_PAD.decode_slice(text, &mut fields).ok()?;
        Some(Self::from_fields(&fields, last))
    }

    /// Writes the mark over the first [`HEADER_LEN`] bytes of a payload.
    pub fn put(&self, payload: &mut [u8]) {
        if let Some((header, _)) = payload.split_first_chunk_mut::<HEADER_LEN>() {
            header[..MAGIC.len()].copy_from_slice(if self.last { &MAGIC_OF_LAST } else { &MAGIC });
            header[MAGIC.len()..].copy_from_slice(&self.fields());
        }
    }

    /// Reads the mark in front of a payload.
    pub fn from_payload(payload: &[u8]) -> Option<Self> {
        let (magic, fields) = payload.split_first_chunk()?;
        let last = *magic == MAGIC_OF_LAST;
        if !last && *magic != MAGIC {
            return None;
        }
        Some(Self::from_fields(fields.first_chunk()?, last))
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

    fn from_fields(fields: &[u8; FIELDS_LEN], last: bool) -> Self {
        let mut values = [0; FIELDS_LEN / 8];
        for (value, bytes) in values.iter_mut().zip(fields.as_chunks::<8>().0) {
            *value = u64::from_be_bytes(*bytes);
        }
        let [publisher, sequence_number, begun, monotonic, wall, boot] = values;
        Self { publisher, sequence_number, begun, sent: Clocks { monotonic, wall, boot }, last }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Property, PropertyBuffer};

    fn mark() -> Mark {
        let sent = Clocks { monotonic: 5_000_000, wall: 90_000_000, boot: 7 };
        Mark { publisher: u64::MAX, sequence_number: 3, begun: 4, sent, last: false }
    }

    #[test]
    fn a_mark_survives_both_ways_of_carrying_it() {
        for mark in [mark(), Mark { last: true, ..mark() }] {
            assert_eq!(Mark::from_text(mark.text(&mut [0; TEXT_LEN])), Some(mark));
            let mut payload = vec![9; HEADER_LEN + 3];
            mark.put(&mut payload);
            assert_eq!((Mark::from_payload(&payload), &payload[HEADER_LEN..]), (Some(mark), &[9; 3][..]));
            assert_eq!(Mark::from_payload(&payload[..HEADER_LEN - 1]), None);
        }
        assert_eq!((Mark::from_payload(b"weirmqt"), Mark::from_text("weir")), (None, None));
        assert_eq!((Mark::from_text(".last"), Mark::from_text("")), (None, None));
    }

    #[test]
    fn a_mark_that_was_written_before_there_were_last_ones_is_read() {
        // Publisher 1, message 2, begun at 3, sent at 4 by the monotonic clock, 5 by the wall clock, boot 6.
        let text = "AAAAAAAAAAEAAAAAAAAAAgAAAAAAAAADAAAAAAAAAAQAAAAAAAAABQAAAAAAAAAG";
        let sent = Clocks { monotonic: 4, wall: 5, boot: 6 };
        let mark = Mark { publisher: 1, sequence_number: 2, begun: 3, sent, last: false };
        assert_eq!((Mark::from_text(text), mark.text(&mut [0; TEXT_LEN])), (Some(mark), text));
        let mut payload = b"weirmqt\x01".to_vec();
        payload.extend((1..=6).flat_map(u64::to_be_bytes));
        assert_eq!(Mark::from_payload(&payload), Some(mark));
    }

    #[test]
    fn a_message_is_taken_apart_wherever_its_mark_is() {
        let mut payload = vec![9; HEADER_LEN + 3];
        mark().put(&mut payload);
        assert_eq!(Mark::of(&Publish::new("t", &payload)), (Some(mark()), &[9; 3][..]));
        assert_eq!(Mark::of(&Publish::new("t", &[9; 3])), (None, &[9; 3][..]));
        let mut room = [0; TEXT_LEN];
        let property = Property::UserProperty((PROPERTY, mark().text(&mut room)));
        let properties = PropertyBuffer::new().with(property).unwrap();
        let message = Publish { properties: properties.properties(), ..Publish::new("t", &[9; 3]) };
        assert_eq!(Mark::of(&message), (Some(mark()), &[9; 3][..]));
    }

    #[test]
    fn one_machine_has_one_clock_and_two_have_walls() {
        let later = |boot| Clocks { monotonic: 6_000_000, wall: 99_000_000, boot };
        assert_eq!(later(7).since(&mark().sent), Latency { micros: 1_000, one_clock: true });
        assert_eq!(later(8).since(&mark().sent), Latency { micros: 9_000, one_clock: false });
        assert!(mark().began_after(4, &later(7)));
        assert!(!mark().began_after(5, &later(7)));
        assert!(!mark().began_after(4, &later(8)));
    }
}
