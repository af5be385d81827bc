//! Writing an RTP header and its extension.

use super::extension::{ONE_BYTE, TWO_BYTES};

/// What a sender says in the header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// The marker bit.
    pub marker: bool,
    /// The payload type; seven bits are written.
    pub payload_type: u8,
    /// The sequence number.
    pub sequence_number: u16,
    /// The time stamp, in ticks of the payload's clock.
    pub timestamp: u32,
    /// The synchronisation source.
    pub ssrc: u32,
}

/// An element that no header extension can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ExtensionError {
    /// Identifier 0 is padding; take one from 1 on.
    #[error("identifier 0 means padding; identifiers begin at 1")]
    Identifier,
    /// An element holds 255 bytes at most.
    #[error("an element of {0} bytes; 255 fit")]
    Length(usize),
}

impl Header {
    /// Appends the header and its extension to `out`. Elements get headers of one byte when all of them fit such.
    ///
    /// # Errors
    ///
    /// When an element has identifier 0 or is over 255 bytes long. Nothing is appended then.
    pub fn append(&self, elements: &[(u8, &[u8])], out: &mut Vec<u8>) -> Result<(), ExtensionError> {
        for &(identifier, element) in elements {
            if identifier == 0 {
                return Err(ExtensionError::Identifier);
            }
            if element.len() > 255 {
                return Err(ExtensionError::Length(element.len()));
            }
        }
        let extended = !elements.is_empty();
        out.extend([0x80 | u8::from(extended) << 4, u8::from(self.marker) << 7 | self.payload_type & 0x7F]);
        out.extend(self.sequence_number.to_be_bytes());
        out.extend(self.timestamp.to_be_bytes());
        out.extend(self.ssrc.to_be_bytes());
        if extended {
            append_extension(elements, out);
        }
        Ok(())
    }
}

fn append_extension(elements: &[(u8, &[u8])], out: &mut Vec<u8>) {
    let short = elements
        .iter()
        .all(|&(identifier, element)| (1..15).contains(&identifier) && (1..=16).contains(&element.len()));
    let start = out.len();
    out.extend((if short { ONE_BYTE } else { TWO_BYTES }).to_be_bytes());
    out.extend([0; 2]);
    for &(identifier, element) in elements {
        if short {
            out.push(identifier << 4 | (element.len() - 1) as u8);
        } else {
            out.extend([identifier, element.len() as u8]);
        }
        out.extend_from_slice(element);
    }
    while !(out.len() - start).is_multiple_of(4) {
        out.push(0);
    }
    let words = ((out.len() - start) / 4 - 1) as u16;
    out[start + 2..start + 4].copy_from_slice(&words.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtp::Packet;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            marker: bool, payload_type in 0u8..128, sequence_number: u16, timestamp: u32, ssrc: u32,
            elements in prop::collection::vec((1u8.., prop::collection::vec(any::<u8>(), 0..20)), 0..5),
            payload in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let header = Header { marker, payload_type, sequence_number, timestamp, ssrc };
            let elements: Vec<(u8, &[u8])> =
                elements.iter().map(|(identifier, element)| (*identifier, &element[..])).collect();
            let mut bytes = Vec::new();
            header.append(&elements, &mut bytes).unwrap();
            bytes.extend(&payload);
            let packet = Packet::parse(&bytes).unwrap();
            let read = Header {
                marker: packet.marker(),
                payload_type: packet.payload_type(),
                sequence_number: packet.sequence_number(),
                timestamp: packet.timestamp(),
                ssrc: packet.ssrc(),
            };
            prop_assert_eq!(read, header);
            prop_assert_eq!(packet.extensions().collect::<Vec<_>>(), elements);
            prop_assert_eq!(packet.payload(), Some(&payload[..]));
        }
    }

    #[test]
    fn elements_that_do_not_fit_are_refused_and_nothing_is_written() {
        let header = Header { marker: false, payload_type: 96, sequence_number: 0, timestamp: 0, ssrc: 0 };
        let mut out = Vec::new();
        assert_eq!(header.append(&[(0, &[1])], &mut out), Err(ExtensionError::Identifier));
        assert_eq!(header.append(&[(1, &[0; 256])], &mut out), Err(ExtensionError::Length(256)));
        assert!(out.is_empty());
    }
}
