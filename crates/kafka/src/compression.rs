//! Compressed records, decompressed within a bound ("Record Batch", attributes).

use crate::bytes::{Input, Malformed};
use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;
use std::io::Read;

/// Bytes that the batches of one fetch may have when they are decompressed. weir's own have no more than a topic takes as one message
/// before they are compressed (`max.message.bytes`, 1 MiB unless somebody changed it).
const MOST: usize = 100 << 20;

/// Bytes that a batch counts for at least. 25,600 batches are as many as a fetch of 8 MiB has if each has one small record.
const LEAST: usize = 4 << 10;

/// Frames of zstd that a batch may have, each of which takes a decoder: Kafka's own clients write one.
const MOST_FRAMES: usize = 8;

/// LZ4's densest element makes 255 bytes of one.
const DENSEST_LZ4: usize = 255;

/// Bytes that a fetch may still be decompressed to.
#[derive(Debug)]
pub struct Budget {
    left: usize,
    whole: usize,
}

impl Budget {
    /// This many bytes.
    pub fn new(bytes: usize) -> Self {
        Self { left: bytes, whole: bytes }
    }

    /// The records of a batch; `None` if too little is left for them. Where nothing was spent before, they are too large for good.
    pub(crate) fn decompress(&mut self, codec: i16, bytes: &[u8]) -> Result<Option<Vec<u8>>, Malformed> {
        if self.left == 0 {
            return Ok(None);
        }
        match decompressed(codec, bytes, self.left) {
            Ok(records) => {
                // A batch without records takes its time as well.
                self.left = self.left.saturating_sub(records.len().max(LEAST));
                Ok(Some(records))
            }
            Err(Malformed::TooLarge) if self.left < self.whole => {
                // What was done in vain took its time as well.
                self.left = 0;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// 100 MiB.
impl Default for Budget {
    fn default() -> Self {
        Self::new(MOST)
    }
}

fn decompressed(codec: i16, bytes: &[u8], most: usize) -> Result<Vec<u8>, Malformed> {
    let mut out = Vec::new();
    match codec {
        1 => read_all(&mut MultiGzDecoder::new(bytes), most, &mut out)?,
        2 => snappy(bytes, most, &mut out)?,
        3 => lz4(bytes, most, &mut out)?,
        4 => {
            let (mut rest, mut frames) = (bytes, 0);
            while !rest.is_empty() {
                frames += 1;
                if frames > MOST_FRAMES {
                    return Err(Malformed::Compression);
                }
                // Its windows have at most 128 MiB, as those of the zstd command have.
                let mut reader = StreamingDecoder::new(&mut rest).map_err(|_| Malformed::Compression)?;
                read_all(&mut reader, most, &mut out)?;
            }
        }
        _ => return Err(Malformed::Compression),
    }
    Ok(out)
}

/// Appends all that there is, to a length of `most`.
fn read_all(reader: &mut impl Read, most: usize, out: &mut Vec<u8>) -> Result<(), Malformed> {
    let read = reader.take((most - out.len()) as u64 + 1).read_to_end(out);
    if out.len() > most {
        return Err(Malformed::TooLarge);
    }
    read.map(drop).map_err(|_| Malformed::Compression)
}

/// What a stream of Java's snappy library begins with ("xerial"); a version and the oldest that reads it follow, four bytes each.
const XERIAL: &[u8] = b"\x82SNAPPY\0";
const XERIAL_HEAD: usize = 16;

/// Snappy's densest element copies 64 bytes by three.
const DENSEST_SNAPPY: usize = 22;

/// One block, or a stream of Java's library, which Kafka's own clients write: blocks behind their lengths.
fn snappy(bytes: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), Malformed> {
    if !bytes.starts_with(XERIAL) {
        return snappy_block(bytes, most, out);
    }
    let mut input = Input(bytes);
    while !input.0.is_empty() {
        // No length begins like a head, which is there again where streams were joined.
        if input.0.starts_with(XERIAL) {
            input.take(XERIAL_HEAD).map_err(|_| Malformed::Compression)?;
        } else {
            snappy_block(input.bytes().map_err(|_| Malformed::Compression)?, most, out)?;
        }
    }
    Ok(())
}

fn snappy_block(block: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), Malformed> {
    let damaged = |_| Malformed::Compression;
    let length = snap::raw::decompress_len(block).map_err(damaged)?;
    // Before memory is taken for it.
    if length > block.len().saturating_mul(DENSEST_SNAPPY) {
        return Err(Malformed::Compression);
    }
    if length > most - out.len() {
        return Err(Malformed::TooLarge);
    }
    let start = out.len();
    out.resize(start + length, 0);
    snap::raw::Decoder::new().decompress(block, &mut out[start..]).map(drop).map_err(damaged)
}

/// The first bytes of a frame of LZ4.
const LZ4_MAGIC: [u8; 4] = 0x184D_2204_u32.to_le_bytes();

/// Set in the length of a block that is not compressed.
const STORED: u32 = 1 << 31;

/// A frame ("LZ4 Frame Format Description" 1.6) whose blocks do not depend on each other: Kafka's own clients read no others. Its
/// checksums are left out: that of the batch is of the same bytes.
fn lz4(bytes: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), Malformed> {
    let rest = bytes.strip_prefix(&LZ4_MAGIC).ok_or(Malformed::Compression)?;
    let [flags, descriptor, rest @ ..] = rest else { return Err(Malformed::Compression) };
    let has = |bit: u8| flags >> bit & 1 == 1;
    // Version 01, independent blocks, no dictionary; 64 KiB to 4 MiB a block.
    let size = usize::from(descriptor >> 4 & 7);
    if flags >> 6 != 1 || !has(5) || has(0) || size < 4 {
        return Err(Malformed::Compression);
    }
    let grown = bytes.len().saturating_mul(DENSEST_LZ4);
    let mut block = vec![0; grown.min(1 << (8 + 2 * size))];
    let mut input = Input(rest);
    let damaged = |_| Malformed::Compression;
    // The size of the content, and the checksum of the head.
    input.take(if has(3) { 8 } else { 0 } + 1).map_err(damaged)?;
    loop {
        let length = input.u32().map_err(damaged)?.swap_bytes();
        if length == 0 {
            return Ok(());
        }
        let stored = input.take((length & !STORED) as usize).map_err(damaged)?;
        let content = if length & STORED == 0 {
            let length = lz4_flex::block::decompress_into(stored, &mut block);
            &block[..length.map_err(|_| Malformed::Compression)?]
        } else {
            stored
        };
        if content.len() > most - out.len() {
            return Err(Malformed::TooLarge);
        }
        out.extend_from_slice(content);
        if has(4) {
            input.take(4).map_err(damaged)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        writer.write_all(bytes).unwrap();
        writer.finish().unwrap()
    }

    fn raw_snappy(bytes: &[u8]) -> Vec<u8> {
        snap::raw::Encoder::new().compress_vec(bytes).unwrap()
    }

    /// Two streams, one after the other, with blocks of 100 bytes.
    fn xerial(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for half in [&bytes[..bytes.len() / 2], &bytes[bytes.len() / 2..]] {
            out.extend([XERIAL, &[0, 0, 0, 1, 0, 0, 0, 1]].concat());
            for block in half.chunks(100).map(raw_snappy) {
                out.extend((block.len() as u32).to_be_bytes());
                out.extend(block);
            }
        }
        out
    }

    /// Blocks alternately compressed and not, with the size of the content and with checksums, which are not looked at.
    fn framed_lz4(bytes: &[u8]) -> Vec<u8> {
        let mut out = LZ4_MAGIC.to_vec();
        out.extend([0b0111_1100, 0x40]);
        out.extend((bytes.len() as u64).to_le_bytes());
        out.push(0);
        for (number, block) in bytes.chunks(1_000).enumerate() {
            let (flag, block) = if number % 2 == 0 {
                (0, lz4_flex::block::compress(block))
            } else {
                (STORED, block.to_vec())
            };
            out.extend((block.len() as u32 | flag).to_le_bytes());
            out.extend(block);
            out.extend([0; 4]);
        }
        out.extend([0; 8]);
        out
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    }

    type Compress = fn(&[u8]) -> Vec<u8>;

    const ALL: [(i16, Compress); 5] = [(1, gzip), (2, raw_snappy), (2, xerial), (3, framed_lz4), (4, zstd)];

    proptest! {
        #[test]
        fn what_was_compressed_is_there_again(bytes in prop::collection::vec(0_u8..4, 0..5_000)) {
            for (codec, compress) in ALL {
                let compressed = compress(&bytes);
                let found = decompressed(codec, &compressed, bytes.len());
                prop_assert_eq!(found.as_ref(), Ok(&bytes), "{}", codec);
                if !bytes.is_empty() {
                    prop_assert_eq!(decompressed(codec, &compressed, bytes.len() - 1), Err(Malformed::TooLarge));
                    let cut = decompressed(codec, &compressed[..compressed.len() / 2], MOST);
                    // Streams of blocks may end between two.
                    prop_assert!(cut.as_ref().is_err() || cut.unwrap().len() < bytes.len(), "{}", codec);
                }
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), codec in 0_i16..8) {
            for head in [&[][..], XERIAL, &LZ4_MAGIC] {
                let _ = decompressed(codec, &[head, &bytes].concat(), 1 << 16);
            }
        }
    }

    #[test]
    fn batches_without_records_and_frames_without_content_are_bounded() {
        for (codec, compress) in ALL {
            let (empty, mut budget, mut batches) = (compress(&[]), Budget::new(10 * LEAST), 0);
            while budget.decompress(codec, &empty).unwrap().is_some() {
                batches += 1;
            }
            assert_eq!(batches, 10, "{codec}");
            // Nothing is looked at where nothing is left.
            assert_eq!(budget.decompress(codec, b"damaged"), Ok(None));
        }
        let frames = |count| decompressed(4, &zstd(b"text").repeat(count), MOST).map(|it| it.len());
        assert_eq!(frames(MOST_FRAMES), Ok(4 * MOST_FRAMES));
        assert_eq!(frames(MOST_FRAMES + 1), Err(Malformed::Compression));
    }

    #[test]
    fn what_is_left_over_is_for_the_next_fetch_and_what_is_never_small_enough_is_an_error() {
        let bomb = gzip(&[0; 60_000]);
        let mut budget = Budget::new(100_000);
        assert_eq!(budget.decompress(1, &bomb).unwrap().unwrap().len(), 60_000);
        assert_eq!(budget.decompress(1, &bomb), Ok(None));
        // Nor is anything else looked at.
        assert_eq!(budget.decompress(1, &gzip(&[0; 10])), Ok(None));
        assert_eq!(Budget::new(59_999).decompress(1, &bomb), Err(Malformed::TooLarge));
    }
}
