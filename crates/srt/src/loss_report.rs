//! Lists of lost packets, as loss reports (NAK) carry them.

use crate::sequence::SequenceNumber;

/// Bit 0 of a word: a range begins here.
const RANGE: u32 = 0x8000_0000;

/// Reads a list. What is malformed ends it.
#[derive(Clone, Debug)]
pub struct LossReport<'a> {
    rest: &'a [u8],
}

impl<'a> LossReport<'a> {
    /// The list in the control information field of a NAK.
    pub fn new(field: &'a [u8]) -> Self {
        Self { rest: field }
    }
}

impl Iterator for LossReport<'_> {
    type Item = (SequenceNumber, SequenceNumber);

    /// The first and the last packet of the next range.
    fn next(&mut self) -> Option<Self::Item> {
        let word = |bytes: &[u8]| bytes.first_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes));
        let first = word(self.rest)?;
        self.rest = &self.rest[4..];
        //= draft-sharabayko-srt-01, appendix A
        //# only record the first (a) and the the last (b) sequence numbers in the list field, and modify the
        //# the first bit of a to "1".
        let last = if first & RANGE != 0 {
            let last = word(self.rest)?;
            self.rest = &self.rest[4..];
            last
        } else {
            first
        };
        let (first, end) = (SequenceNumber::new(first), SequenceNumber::new(last));
        if last & RANGE != 0 || end.since(first) < 0 {
            self.rest = &[];
            return None;
        }
        Some((first, end))
    }
}

/// Appends a range.
pub(crate) fn write(first: SequenceNumber, last: SequenceNumber, out: &mut Vec<u8>) {
    if first == last {
        out.extend(first.value().to_be_bytes());
    } else {
        out.extend((first.value() | RANGE).to_be_bytes());
        out.extend(last.value().to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_written_and_read() {
        let number = SequenceNumber::new;
        let ranges = [(number(5), number(5)), (number(9), number(11)), (number(0x7FFF_FFFE), number(3))];
        let mut out = Vec::new();
        ranges.iter().for_each(|(first, last)| write(*first, *last, &mut out));
        assert_eq!(out.len(), 4 + 8 + 8);
        assert_eq!(LossReport::new(&out).collect::<Vec<_>>(), ranges);
    }

    #[test]
    fn what_is_malformed_ends_the_list() {
        for bytes in
            [&[0x80, 0, 0, 1][..], &[0x80, 0, 0, 9, 0, 0, 0, 1], &[0x80, 0, 0, 1, 0x80, 0, 0, 2], &[0, 0]]
        {
            assert_eq!(LossReport::new(bytes).count(), 0, "{bytes:?}");
        }
    }
}
