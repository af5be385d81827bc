//! The elements of a header extension, with headers of one byte and of two (RFC 8285 sections 4.2 and 4.3).

/// The profile of elements with headers of one byte.
pub(super) const ONE_BYTE: u16 = 0xBEDE;

/// The profile of elements with headers of two bytes; its last four bits are free.
pub(super) const TWO_BYTES: u16 = 0x1000;

/// Identifiers with which an extension of one-byte headers ends.
const RESERVED: u8 = 15;

/// The elements of one packet's header extension, each with its identifier.
///
/// Padding is passed over. What is cut short, or behind the reserved identifier, is left out.
#[derive(Clone, Copy, Debug)]
pub struct Extensions<'a> {
    rest: &'a [u8],
    header: ElementHeader,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ElementHeader {
    OneByte,
    TwoBytes,
}

impl<'a> Extensions<'a> {
    #[inline]
    pub(super) fn new(profile: u16, bytes: &'a [u8]) -> Self {
        match profile {
            ONE_BYTE => Self { rest: bytes, header: ElementHeader::OneByte },
            _ if profile & 0xFFF0 == TWO_BYTES => Self { rest: bytes, header: ElementHeader::TwoBytes },
            _ => Self { rest: &[], header: ElementHeader::OneByte },
        }
    }
}

impl<'a> Iterator for Extensions<'a> {
    type Item = (u8, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (&first, rest) = self.rest.split_first()?;
            if first == 0 {
                self.rest = rest;
                continue;
            }
            let (identifier, length, rest) = match self.header {
                ElementHeader::OneByte => (first >> 4, usize::from(first & 0x0F) + 1, rest),
                ElementHeader::TwoBytes => {
                    let (&length, rest) = rest.split_first()?;
                    (first, usize::from(length), rest)
                }
            };
            // Identifier 0 with a length, and 15, end the extension (section 4.2).
            let ends = self.header == ElementHeader::OneByte && matches!(identifier, 0 | RESERVED);
            if ends || length > rest.len() {
                self.rest = &[];
                return None;
            }
            let element;
            (element, self.rest) = rest.split_at(length);
            return Some((identifier, element));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(profile: u16, bytes: &[u8]) -> Vec<(u8, &[u8])> {
        Extensions::new(profile, bytes).collect()
    }

    #[test]
    fn elements_with_one_byte_headers_end_at_the_reserved_identifier() {
        let bytes = [0x10, 1, 0, 0, 0xE2, 1, 2, 3, 0xF0, 9, 0x20, 9];
        assert_eq!(elements(ONE_BYTE, &bytes), [(1, &[1][..]), (14, &[1, 2, 3])]);
        assert_eq!(elements(ONE_BYTE, &[0x03, 1, 0x10, 1]), []);
    }

    #[test]
    fn elements_with_two_byte_headers_may_be_empty_and_have_any_identifier() {
        let bytes = [0xF0, 0, 0, 1, 2, 7, 8, 15, 1, 9];
        assert_eq!(elements(0x100A, &bytes), [(0xF0, &[][..]), (1, &[7, 8]), (15, &[9])]);
    }

    #[test]
    fn an_element_that_is_cut_short_is_left_out() {
        assert_eq!(elements(ONE_BYTE, &[0x10, 1, 0x22, 1]), [(1, &[1][..])]);
        assert_eq!(elements(TWO_BYTES, &[1, 1, 5, 2]), [(1, &[5][..])]);
    }

    #[test]
    fn an_extension_of_another_profile_has_no_elements() {
        assert_eq!(elements(0xABAC, &[0x10, 1, 0, 0]), []);
    }
}
