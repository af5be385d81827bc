//! Generic NACK: packets that a receiver asks for again (RFC 4585 section 6.2.1).

use super::{begin, end, format, kind, u32_at};

/// A request for packets.
#[derive(Clone, Copy, Debug)]
pub struct Nack<'a> {
    /// The SSRC of the receiver that asks.
    pub sender: u32,
    /// The stream.
    pub media: u32,
    entries: &'a [u8],
}

impl<'a> Nack<'a> {
    pub(super) fn parse(body: &'a [u8]) -> Option<Self> {
        let entries = body.get(8..).filter(|entries| entries.len().is_multiple_of(4))?;
        Some(Self { sender: u32_at(body, 0)?, media: u32_at(body, 4)?, entries })
    }

    /// The sequence numbers, in the order of the packet; up to 17 an entry.
    pub fn sequence_numbers(&self) -> impl Iterator<Item = u16> + use<'a> {
        self.entries.as_chunks::<4>().0.iter().flat_map(|&[a, b, c, d]| {
            let (first, mask) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            let others = (0..16).filter(move |bit| mask >> bit & 1 == 1);
            std::iter::once(first).chain(others.map(move |bit| first.wrapping_add(bit + 1)))
        })
    }
}

/// Appends a request for `sequence_numbers`, which rise (around the wrap, too). Nothing when there are none.
pub fn append_nack(sender: u32, media: u32, sequence_numbers: &[u16], out: &mut Vec<u8>) {
    let Some((&first, others)) = sequence_numbers.split_first() else { return };
    let start = begin(format::NACK, kind::TRANSPORT_FEEDBACK, out);
    out.extend(sender.to_be_bytes());
    out.extend(media.to_be_bytes());
    let mut entry = (first, 0u16);
    let mut push = |(first, mask): (u16, u16)| {
        out.extend(first.to_be_bytes());
        out.extend(mask.to_be_bytes());
    };
    for &number in others {
        match number.wrapping_sub(entry.0) {
            0 => {}
            distance @ 1..=16 => entry.1 |= 1 << (distance - 1),
            _ => {
                push(entry);
                entry = (number, 0);
            }
        }
    }
    push(entry);
    end(start, out);
}

#[cfg(test)]
mod tests {
    use super::super::{Compound, Packet};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_are_read_as_they_are_written(
            start: u16, steps in prop::collection::vec(prop_oneof![Just(1u16), 1u16..20, 1u16..300], 0..100),
        ) {
            let mut next = start;
            let mut numbers = vec![start];
            for step in steps {
                next = next.wrapping_add(step);
                numbers.push(next);
            }
            let mut bytes = Vec::new();
            append_nack(1, 2, &numbers, &mut bytes);
            let Some(Ok(Packet::Nack(nack))) = Compound::new(&bytes).next() else { panic!("no request") };
            prop_assert_eq!((nack.sender, nack.media), (1, 2));
            prop_assert_eq!(nack.sequence_numbers().collect::<Vec<_>>(), numbers);
        }
    }

    #[test]
    fn seventeen_in_a_row_are_one_entry() {
        let numbers: Vec<u16> = (0..17).map(|number| 65_530u16.wrapping_add(number)).collect();
        let mut bytes = Vec::new();
        append_nack(1, 2, &numbers, &mut bytes);
        assert_eq!(bytes, [0x81, 205, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0xFF, 0xFA, 0xFF, 0xFF]);
    }

    #[test]
    fn no_numbers_make_no_packet() {
        let mut bytes = Vec::new();
        append_nack(1, 2, &[], &mut bytes);
        assert!(bytes.is_empty());
    }
}
