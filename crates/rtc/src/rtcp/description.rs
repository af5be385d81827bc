//! Source descriptions (RFC 3550 section 6.5), which weir sends and has no use for.

use super::{begin, end, kind};

/// The item that every source must send (section 6.5.1).
const CANONICAL_NAME: u8 = 1;

/// Appends a description with one canonical name, of which the first 255 bytes are written.
pub fn append_canonical_name(source: u32, name: &str, out: &mut Vec<u8>) {
    let name = &name.as_bytes()[..name.len().min(255)];
    let start = begin(1, kind::DESCRIPTION, out);
    out.extend(source.to_be_bytes());
    out.extend([CANONICAL_NAME, name.len() as u8]);
    out.extend_from_slice(name);
    // One zero ends the items, always.
    out.push(0);
    end(start, out);
}

#[cfg(test)]
mod tests {
    use super::super::{Compound, Packet};
    use super::*;

    #[test]
    fn a_name_of_any_length_is_written_with_zeros_up_to_the_next_word() {
        for length in [0, 1, 2, 3, 4, 5, 255, 300] {
            let name = "n".repeat(length);
            let mut bytes = Vec::new();
            append_canonical_name(9, &name, &mut bytes);
            let mut packets = Compound::new(&bytes);
            assert!(matches!(packets.next(), Some(Ok(Packet::Other { kind: kind::DESCRIPTION, format: 1 }))));
            assert!(packets.next().is_none(), "one packet, and whole");
            let kept = length.min(255);
            let (head, rest) = bytes.split_at(10);
            assert_eq!(head[4..], [0, 0, 0, 9, CANONICAL_NAME, kept as u8]);
            let (text, zeros) = rest.split_at(kept);
            assert!(
                text == &name.as_bytes()[..kept] && matches!(zeros, [0] | [0, 0] | [0, 0, 0] | [0, 0, 0, 0])
            );
        }
    }
}
