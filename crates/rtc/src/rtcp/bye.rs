//! Goodbyes (RFC 3550 section 6.6).

use super::{begin, end, kind};

/// Sources that leave.
#[derive(Clone, Copy, Debug)]
pub struct Bye<'a> {
    sources: &'a [u8],
    reason: &'a [u8],
}

impl<'a> Bye<'a> {
    pub(super) fn parse(count: u8, body: &'a [u8]) -> Option<Self> {
        let (sources, rest) = body.split_at_checked(4 * usize::from(count))?;
        let reason = match rest.split_first() {
            Some((&length, text)) => text.get(..length.into())?,
            None => &[],
        };
        Some(Self { sources, reason })
    }

    /// The sources that leave.
    pub fn sources(&self) -> impl Iterator<Item = u32> + use<'a> {
        self.sources.as_chunks::<4>().0.iter().map(|word| u32::from_be_bytes(*word))
    }

    /// Why, in what should be UTF-8; empty when it is not said.
    pub fn reason(&self) -> &'a [u8] {
        self.reason
    }
}

/// Appends a BYE of one source, without a reason.
pub fn append_bye(source: u32, out: &mut Vec<u8>) {
    let start = begin(1, kind::BYE, out);
    out.extend(source.to_be_bytes());
    end(start, out);
}

#[cfg(test)]
mod tests {
    use super::super::{Compound, Packet};
    use super::*;

    fn bye(bytes: &[u8]) -> Option<Bye<'_>> {
        match Compound::new(bytes).next() {
            Some(Ok(Packet::Bye(bye))) => Some(bye),
            _ => None,
        }
    }

    #[test]
    fn a_goodbye_names_who_leaves_and_why() {
        let mut bytes = Vec::new();
        append_bye(7, &mut bytes);
        let plain = bye(&bytes).unwrap();
        assert_eq!((plain.sources().collect::<Vec<_>>(), plain.reason()), (vec![7], &[][..]));
        let spoken = bye(&[0x82, 203, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, 3, b'e', b'n', b'd']).unwrap();
        assert_eq!((spoken.sources().collect::<Vec<_>>(), spoken.reason()), (vec![1, 2], &b"end"[..]));
    }

    #[test]
    fn sources_or_a_reason_that_are_cut_short_are_malformed() {
        assert!(bye(&[0x82, 203, 0, 1, 0, 0, 0, 1]).is_none());
        assert!(bye(&[0x81, 203, 0, 2, 0, 0, 0, 1, 4, b'e', b'n', b'd']).is_none());
    }
}
