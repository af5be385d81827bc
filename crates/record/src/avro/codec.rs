//! How blocks of object container files are compressed ("Required Codecs", "Optional Codecs"). Memory is bounded by
//! [`MAX_BLOCK`], and by the windows that the formats ask for before they give a byte.

use crate::MAX_BLOCK;
use crate::error::Problem;
use bzip2::bufread::{BzDecoder, BzEncoder};
use flate2::{Compress, Compression, Crc, Decompress, FlushCompress, FlushDecompress, Status};
use lzma_rust2::{XzOptions, XzReader, XzWriter};
use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::borrow::Cow;
use std::io::{Read, Write};

/// KiB that xz may take for a window and its tables: the window of its highest preset has 64 MiB.
const MOST_XZ_KIB: u32 = 80 << 10;

/// Bytes that a byte of snappy can become: a copy of 64 takes three.
const MOST_SNAPPY: usize = 22;

/// Bytes of memory for a block that stay for the next one.
const KEPT: usize = 4 << 20;

/// How the blocks of an object container file are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Codec {
    /// They are not compressed.
    #[default]
    Null,
    /// They are compressed by deflate (RFC 1951).
    Deflate,
    /// They are compressed by Snappy, with the CRC-32 of what they were before behind them.
    Snappy,
    /// They are compressed by Zstandard (RFC 8878).
    Zstandard,
    /// They are compressed by bzip2.
    Bzip2,
    /// They are compressed by xz.
    Xz,
}

impl Codec {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Null, Self::Deflate, Self::Snappy, Self::Zstandard, Self::Bzip2, Self::Xz];

    /// The name, as headers say it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Deflate => "deflate",
            Self::Snappy => "snappy",
            Self::Zstandard => "zstandard",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
        }
    }

    /// Compresses a block.
    ///
    /// # Panics
    /// If the block has more than 4 GiB.
    pub(crate) fn compress(self, block: &[u8]) -> Cow<'_, [u8]> {
        let compressed = match self {
            Self::Null => return block.into(),
            Self::Deflate => Ok(deflate(block)),
            Self::Snappy => snappy(block),
            Self::Zstandard => Ok(compress_to_vec(block, CompressionLevel::Fastest)),
            Self::Bzip2 => {
                let mut out = Vec::new();
                BzEncoder::new(block, bzip2::Compression::default()).read_to_end(&mut out).map(|_| out)
            }
            // Of the presets the first that looks back over a whole block of the usual size, and takes 10 MiB to do it.
            Self::Xz => XzWriter::new(Vec::new(), XzOptions::with_preset(1)).and_then(|mut writer| {
                writer.write_all(block)?;
                writer.finish()
            }),
        };
        compressed.expect("a block has less than 4 GiB, and memory takes what is written").into()
    }
}

/// Decompresses blocks, one after the other.
#[derive(Default)]
pub(crate) struct Decompressor {
    inflater: Option<Decompress>,
}

impl Decompressor {
    /// Decompresses a block into `out`, in place of what is there.
    pub(crate) fn decompress(
        &mut self,
        codec: Codec,
        block: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Problem> {
        out.clear();
        out.shrink_to(KEPT);
        let damaged = || Problem::DamagedBlock(codec.name());
        match codec {
            Codec::Null => out.extend_from_slice(block),
            Codec::Deflate => {
                let inflater = self.inflater.get_or_insert_with(|| Decompress::new(false));
                inflate(inflater, block, out)?;
            }
            Codec::Snappy => {
                let (block, sum) = block.split_last_chunk().ok_or_else(damaged)?;
                let len = snap::raw::decompress_len(block).map_err(|_| damaged())?;
                if len > MAX_BLOCK {
                    return Err(Problem::BlockTooLarge);
                }
                if len > block.len().saturating_mul(MOST_SNAPPY) {
                    return Err(damaged());
                }
                out.resize(len, 0);
                snap::raw::Decoder::new().decompress(block, out).map_err(|_| damaged())?;
                if sum_of(out) != *sum {
                    return Err(damaged());
                }
            }
            Codec::Zstandard => {
                let mut rest = block;
                // Its windows have at most 128 MiB, as those of the zstd command have.
                let mut reader = StreamingDecoder::new(&mut rest).map_err(|_| damaged())?;
                read_all(&mut reader, codec, out)?;
                let frame = reader.into_frame_decoder();
                let sum = frame.get_checksum_from_data();
                if !rest.is_empty() || sum.is_some() && sum != frame.get_calculated_checksum() {
                    return Err(damaged());
                }
            }
            Codec::Bzip2 => {
                let mut reader = BzDecoder::new(block);
                read_all(&mut reader, codec, out)?;
                if !reader.into_inner().is_empty() {
                    return Err(damaged());
                }
            }
            Codec::Xz => {
                let mut reader = XzReader::new_mem_limit(block, false, MOST_XZ_KIB);
                read_all(&mut reader, codec, out)?;
                if !reader.into_inner().is_empty() {
                    return Err(damaged());
                }
            }
        }
        Ok(())
    }
}

/// Reads to the end of what was compressed, or to the end of what a block may have.
fn read_all(reader: &mut impl Read, codec: Codec, out: &mut Vec<u8>) -> Result<(), Problem> {
    let read = reader.take(MAX_BLOCK as u64 + 1).read_to_end(out);
    if out.len() > MAX_BLOCK {
        return Err(Problem::BlockTooLarge);
    }
    read.map(drop).map_err(|_| Problem::DamagedBlock(codec.name()))
}

/// Compresses a block by Snappy, without its framing format, and appends the sum.
fn snappy(block: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut out = snap::raw::Encoder::new().compress_vec(block)?;
    out.extend_from_slice(&sum_of(block));
    Ok(out)
}

/// The CRC-32 that stands behind a block of Snappy.
fn sum_of(block: &[u8]) -> [u8; 4] {
    let mut crc = Crc::new();
    crc.update(block);
    crc.sum().to_be_bytes()
}

/// Deflates a block (RFC 1951, without any header).
fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut deflater = Compress::new(Compression::default(), false);
    let mut out = Vec::with_capacity(bytes.len() / 2 + 64);
    loop {
        let read = deflater.total_in() as usize;
        // There is no way to fail: there always is room.
        match deflater.compress_vec(&bytes[read..], &mut out, FlushCompress::Finish) {
            Ok(Status::StreamEnd) | Err(_) => return out,
            Ok(_) => out.reserve(out.capacity().max(64)),
        }
    }
}

/// Inflates a block (RFC 1951, without any header) to the end of `out`, which is empty.
fn inflate(inflater: &mut Decompress, block: &[u8], out: &mut Vec<u8>) -> Result<(), Problem> {
    let damaged = Problem::DamagedBlock(Codec::Deflate.name());
    inflater.reset(false);
    loop {
        if out.len() == out.capacity() {
            if out.len() > MAX_BLOCK {
                return Err(Problem::BlockTooLarge);
            }
            out.reserve(out.len().max(4 * block.len()).clamp(1 << 10, MAX_BLOCK + 1 - out.len()));
        }
        let read = inflater.total_in() as usize;
        let before = (read, out.len());
        match inflater.decompress_vec(&block[read..], out, FlushDecompress::None) {
            Ok(Status::StreamEnd) if out.len() > MAX_BLOCK => return Err(Problem::BlockTooLarge),
            Ok(Status::StreamEnd) if ends(inflater, block) => return Ok(()),
            Ok(Status::StreamEnd) | Err(_) => return Err(damaged),
            Ok(Status::Ok | Status::BufError) => {
                let stuck = before == (inflater.total_in() as usize, out.len());
                if stuck && out.len() < out.capacity() {
                    return Err(damaged);
                }
            }
        }
    }
}

/// Whether the compressed data goes to the end of the block. fastavro leaves what it does not cut of zlib's checksum.
fn ends(inflater: &Decompress, block: &[u8]) -> bool {
    block.len() - inflater.total_in() as usize <= 4
}
