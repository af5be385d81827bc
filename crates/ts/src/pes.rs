//! The beginning of a PES packet: stream id and time stamps (ISO/IEC 13818-1 section 2.4.3.6).

/// Presentation and decoding times are 90 kHz ticks modulo this.
pub const TIMESTAMP_WRAP: u64 = 1 << 33;

/// What stands before the elementary stream's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PesHeader {
    /// `stream_id`.
    pub stream_id: u8,
    /// Presentation time, 90 kHz ticks.
    pub pts: Option<u64>,
    /// Decoding time, 90 kHz ticks, where it differs.
    pub dts: Option<u64>,
    /// Length of the header: where the elementary stream goes on.
    pub length: usize,
}

impl PesHeader {
    /// The header that `payload` begins with; `None` when it is no PES packet, or ends before the time stamps do.
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let [0, 0, 1, stream_id, _, _, rest @ ..] = payload else { return None };
        let bare = Self { stream_id: *stream_id, pts: None, dts: None, length: 6 };
        // These have no optional header (table 2-18).
        if matches!(stream_id, 0xBC | 0xBE | 0xBF | 0xF0 | 0xF1 | 0xF2 | 0xF8 | 0xFF) {
            return Some(bare);
        }
        let [marks, flags, length, rest @ ..] = rest else { return None };
        if marks & 0xC0 != 0x80 {
            return None;
        }
        let pts = (flags & 0x80 != 0).then(|| rest.first_chunk().map(read_timestamp));
        let dts =
            (flags & 0xC0 == 0xC0).then(|| rest.get(5..).and_then(<[u8]>::first_chunk).map(read_timestamp));
        Some(Self { pts: pts.flatten(), dts: dts.flatten(), length: 9 + usize::from(*length), ..bare })
    }

    /// It is an MPEG video or audio stream.
    pub fn is_media(&self) -> bool {
        // 0xBD and 0xFD carry AC-3 and others, and also subtitles, which come when they come.
        (0xC0..=0xEF).contains(&self.stream_id)
    }
}

/// A time stamp out of its five bytes.
pub(crate) fn read_timestamp(bytes: &[u8; 5]) -> u64 {
    let [a, b, c, d, e] = bytes.map(u64::from);
    (a >> 1 & 7) << 30 | b << 22 | (c >> 1) << 15 | d << 7 | e >> 1
}

/// A time stamp as five bytes, behind the four bits that say which one it is.
pub(crate) fn write_timestamp(mark: u8, ticks: u64) -> [u8; 5] {
    let part = |shift: u32, bits: u64| (ticks >> shift & bits) as u8;
    [
        mark << 4 | part(30, 7) << 1 | 1,
        part(22, 0xFF),
        part(15, 0x7F) << 1 | 1,
        part(7, 0xFF),
        part(0, 0x7F) << 1 | 1,
    ]
}

/// 90 kHz ticks from `earlier` to `later`, the short way round.
pub fn timestamp_since(later: u64, earlier: u64) -> i64 {
    let ahead = (later + TIMESTAMP_WRAP - earlier) % TIMESTAMP_WRAP;
    if ahead > TIMESTAMP_WRAP / 2 { ahead as i64 - TIMESTAMP_WRAP as i64 } else { ahead as i64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_survives_its_five_bytes() {
        for ticks in [0, 1, 90_000, 1 << 15, 1 << 22, 1 << 30, TIMESTAMP_WRAP - 1] {
            assert_eq!(read_timestamp(&write_timestamp(2, ticks)), ticks);
        }
    }

    #[test]
    fn both_times_are_read() {
        let mut bytes = vec![0, 0, 1, 0xE0, 0, 0, 0x80, 0xC0, 10];
        bytes.extend(write_timestamp(3, 7200));
        bytes.extend(write_timestamp(1, 3600));
        let header = PesHeader { stream_id: 0xE0, pts: Some(7200), dts: Some(3600), length: 19 };
        assert_eq!(PesHeader::parse(&bytes), Some(header));
    }

    #[test]
    fn time_goes_on_over_its_wrap() {
        assert_eq!(timestamp_since(5, TIMESTAMP_WRAP - 5), 10);
    }
}
