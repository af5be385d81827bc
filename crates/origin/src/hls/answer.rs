//! Parts of answers: ranges of bytes, and the date.

use std::sync::Arc;
use weir_ts::packet::{PACKET_LENGTH, SYNC_BYTE};

/// What of a resource is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Range {
    #[default]
    All,
    Of(ByteRange),
}

/// One range of bytes (RFC 9110, section 14.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteRange {
    /// From a byte on, to another or to the end.
    From(u64, Option<u64>),
    /// So many bytes at the end.
    Last(u64),
}

impl ByteRange {
    /// Reads the field `Range`. RFC 9110, section 14.2: what is no valid range, and several of them, may be ignored.
    pub(super) fn read(field: Option<&str>) -> Range {
        let Some((first, last)) =
            field.and_then(|it| it.strip_prefix("bytes=")).and_then(|it| it.split_once('-'))
        else {
            return Range::All;
        };
        let number = |text: &str| text.trim().parse::<u64>().ok();
        match (number(first), number(last)) {
            (Some(first), None) if last.trim().is_empty() => Range::Of(Self::From(first, None)),
            (Some(first), Some(last)) if first <= last => Range::Of(Self::From(first, Some(last))),
            (None, Some(length)) if first.trim().is_empty() => Range::Of(Self::Last(length)),
            _ => Range::All,
        }
    }

    /// Its first byte and its length within so many bytes; `None` if there is nothing of it.
    pub(super) fn within(self, whole: usize) -> Option<(usize, usize)> {
        let (first, end) = match self {
            Self::From(first, last) => {
                let first = usize::try_from(first).ok()?;
                let end = last.and_then(|last| usize::try_from(last).ok()?.checked_add(1));
                (first, end.unwrap_or(whole).min(whole))
            }
            Self::Last(length) => (whole - usize::try_from(length).unwrap_or(whole).min(whole), whole),
        };
        (first < end).then(|| (first, end - first))
    }
}

/// Bytes of a body: of pieces that are only in part in it, a copy.
pub(super) fn cut(body: Vec<Arc<[u8]>>, first: usize, length: usize) -> Vec<Arc<[u8]>> {
    let (mut at, end) = (0, first + length);
    let mut pieces = Vec::new();
    for piece in body {
        let (begin, stop) =
            (first.saturating_sub(at).min(piece.len()), (end.saturating_sub(at)).min(piece.len()));
        at += piece.len();
        if begin == 0 && stop == piece.len() {
            pieces.push(piece);
        } else if begin < stop {
            pieces.push(Arc::from(&piece[begin..stop]));
        }
    }
    pieces
}

/// Packets of a transport stream; none of anything else.
pub(super) fn packets_in(body: &[Arc<[u8]>]) -> usize {
    let is_stream = body.iter().find_map(|piece| piece.first()) == Some(&SYNC_BYTE);
    let length: usize = body.iter().map(|piece| piece.len()).sum();
    if is_stream { length / PACKET_LENGTH } else { 0 }
}

/// A transport stream without some of its packets, from its middle on.
pub(super) fn without_packets(body: Vec<Arc<[u8]>>, packets: usize) -> Vec<Arc<[u8]>> {
    if packets == 0 {
        return body;
    }
    let whole = body.concat();
    let count = whole.len() / PACKET_LENGTH;
    let first = (count / 2).min(count.saturating_sub(packets));
    let end = (first + packets).min(count);
    vec![whole[..first * PACKET_LENGTH].into(), whole[end * PACKET_LENGTH..].into()]
}

/// Seconds since 1970 as HTTP writes them (RFC 9110, section 5.6.7).
pub(super) fn http_date(seconds: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (day, second) = ((seconds / 86_400) as i64, seconds % 86_400);
    let (year, month, date) = super::playlist::civil(day);
    let (weekday, month) = (DAYS[day.rem_euclid(7) as usize], MONTHS[(month - 1) as usize]);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{weekday}, {date:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_and_cut() {
        let body: Vec<Arc<[u8]>> = vec![[0, 1, 2].into(), [3].into(), [4, 5, 6].into()];
        let cut_of = |field: &str| match ByteRange::read(Some(field)) {
            Range::All => None,
            Range::Of(range) => {
                Some(range.within(7).map(|(first, length)| cut(body.clone(), first, length).concat()))
            }
        };
        for (field, expected) in [
            ("bytes=0-6", Some(Some(vec![0, 1, 2, 3, 4, 5, 6]))),
            ("bytes=2-4", Some(Some(vec![2, 3, 4]))),
            ("bytes=3-3", Some(Some(vec![3]))),
            ("bytes=5-", Some(Some(vec![5, 6]))),
            ("bytes=5-99999999999999999999", None),
            ("bytes=5-9999", Some(Some(vec![5, 6]))),
            ("bytes=-2", Some(Some(vec![5, 6]))),
            ("bytes=-99", Some(Some(vec![0, 1, 2, 3, 4, 5, 6]))),
            ("bytes=7-", Some(None)),
            ("bytes=-0", Some(None)),
            ("bytes=4-2", None),
            ("bytes=0-1,3-4", None),
            ("bytes=-", None),
            ("lines=0-1", None),
        ] {
            assert_eq!(cut_of(field), expected, "{field}");
        }
        assert_eq!(ByteRange::read(None), Range::All);
    }

    #[test]
    fn the_date_is_that_of_the_standard() {
        assert_eq!(http_date(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
    }
}
