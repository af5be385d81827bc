//! Goodbyes (RFC 3550 section 6.6).

use super::{begin, end, kind};

/// Whether the sources that leave, and their reason if there is one, are in the body of a BYE.
pub(super) fn is_whole(count: u8, body: &[u8]) -> bool {
    let Some((_, rest)) = body.split_at_checked(4 * usize::from(count)) else { return false };
    rest.split_first().is_none_or(|(&length, text)| text.len() >= length.into())
}

/// Appends a BYE of one source, without a reason.
pub fn append_bye(source: u32, out: &mut Vec<u8>) {
    let start = begin(1, kind::BYE, out);
    out.extend(source.to_be_bytes());
    end(start, out);
}

#[cfg(test)]
mod tests {
    use super::super::{Compound, Packet, ParseError};
    use super::*;

    #[test]
    fn a_goodbye_has_all_its_sources_and_all_of_its_reason() {
        let mut bytes = Vec::new();
        append_bye(7, &mut bytes);
        assert_eq!(bytes, [0x81, 203, 0, 1, 0, 0, 0, 7]);
        let spoken = [0x82, 203, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, 3, b'e', b'n', b'd'];
        for whole in [&bytes[..], &spoken] {
            let packet = Compound::new(whole).next();
            assert!(matches!(packet, Some(Ok(Packet::Other { kind: kind::BYE, .. }))), "{packet:?}");
        }
        for cut in [&[0x82, 203, 0, 1, 0, 0, 0, 1][..], &[0x81, 203, 0, 2, 0, 0, 0, 1, 4, b'e', b'n', b'd']] {
            let packet = Compound::new(cut).next();
            assert!(matches!(packet, Some(Err(ParseError::Malformed(kind::BYE)))), "{packet:?}");
        }
    }
}
