//! Source descriptions (RFC 3550 section 6.5).

use super::{begin, end, kind, u32_at};

/// The item that every source must send (section 6.5.1).
const CANONICAL_NAME: u8 = 1;

/// A source description packet.
#[derive(Clone, Copy, Debug)]
pub struct Description<'a> {
    count: u8,
    body: &'a [u8],
}

/// The chunks of a description, up to the first malformed one.
#[derive(Clone, Copy, Debug)]
pub struct Chunks<'a> {
    left: u8,
    rest: &'a [u8],
}

/// The items about one source.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    /// The source.
    pub source: u32,
    items: &'a [u8],
}

/// One item: its type and its text, which should be UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// The item type: 1 is the canonical name.
    pub kind: u8,
    /// The text.
    pub text: &'a [u8],
}

impl<'a> Description<'a> {
    pub(super) fn new(count: u8, body: &'a [u8]) -> Self {
        Self { count, body }
    }

    /// The items about each source.
    pub fn chunks(&self) -> Chunks<'a> {
        Chunks { left: self.count, rest: self.body }
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Chunk<'a>;

    fn next(&mut self) -> Option<Chunk<'a>> {
        self.left = self.left.checked_sub(1)?;
        let source = u32_at(self.rest, 0)?;
        let body = &self.rest[4..];
        let mut at = 0;
        // Items up to a zero; zeros up to the next word.
        while *body.get(at)? != 0 {
            at += 2 + usize::from(*body.get(at + 1)?);
        }
        let items = body.get(..at)?;
        self.rest = body.get((at + 4) & !3..).unwrap_or(&[]);
        Some(Chunk { source, items })
    }
}

impl<'a> Chunk<'a> {
    /// Its items.
    pub fn items(&self) -> impl Iterator<Item = Item<'a>> + use<'a> {
        let mut rest = self.items;
        std::iter::from_fn(move || {
            let &[kind, length] = rest.first_chunk()?;
            let text = rest.get(2..2 + usize::from(length))?;
            rest = &rest[2 + text.len()..];
            Some(Item { kind, text })
        })
    }

    /// The canonical name.
    pub fn canonical_name(&self) -> Option<&'a [u8]> {
        self.items().find(|item| item.kind == CANONICAL_NAME).map(|item| item.text)
    }
}

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

    fn description(bytes: &[u8]) -> Description<'_> {
        let Some(Ok(Packet::Description(description))) = Compound::new(bytes).next() else {
            panic!("no description")
        };
        description
    }

    #[test]
    fn a_name_of_any_length_is_read_as_it_is_written() {
        for length in [0, 1, 2, 3, 4, 5, 255, 300] {
            let name = "n".repeat(length);
            let mut bytes = Vec::new();
            append_canonical_name(9, &name, &mut bytes);
            let chunks: Vec<_> = description(&bytes).chunks().collect();
            let [chunk] = chunks[..] else { panic!("{chunks:?}") };
            assert_eq!(chunk.source, 9);
            assert_eq!(chunk.canonical_name(), Some(&name.as_bytes()[..length.min(255)]));
        }
    }

    #[test]
    fn two_chunks_with_several_items_are_read() {
        let bytes = [
            0x82, 202, 0, 7, 0, 0, 0, 1, 1, 1, b'a', 2, 2, b'b', b'c', 0, 0, 0, 0, 2, 6, 3, b'x', b'y', b'z',
            0, 0, 0, 0, 0, 0, 0,
        ];
        let chunks: Vec<_> = description(&bytes).chunks().collect();
        assert_eq!(chunks.iter().map(|chunk| chunk.source).collect::<Vec<_>>(), [1, 2]);
        let items: Vec<_> = chunks[0].items().map(|item| (item.kind, item.text)).collect();
        assert_eq!(items, [(1, &b"a"[..]), (2, b"bc")]);
        assert_eq!(chunks[1].canonical_name(), None);
    }

    #[test]
    fn items_without_an_end_give_no_chunk() {
        assert_eq!(description(&[0x81, 202, 0, 2, 0, 0, 0, 1, 1, 9, b'a', b'b']).chunks().count(), 0);
    }
}
