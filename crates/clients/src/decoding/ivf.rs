//! IVF, the plain container of VP8, VP9 and AV1, as much of it as a decoder needs that reads it from a pipe. It has no standard but the tools of
//! the codecs (libvpx `ivfenc.c`, libaom `ivfenc.c`).

use super::StreamFormat;

/// What is in front of all frames: which codec, and 25 of a timestamp a second. Sizes are in the frames.
pub(super) fn header(format: StreamFormat) -> [u8; 32] {
    let name = match format {
        StreamFormat::Vp9 => b"VP90",
        StreamFormat::Av1 => b"AV01",
        _ => b"VP80",
    };
    let mut header = [0; 32];
    header[..4].copy_from_slice(b"DKIF");
    // The length of this header.
    header[6] = 32;
    header[8..12].copy_from_slice(name);
    (header[16], header[20]) = (25, 1);
    header
}

/// A frame with this number, behind its length and its time.
pub(super) fn frame(number: u64, bytes: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(12 + bytes.len());
    frame.extend((bytes.len() as u32).to_le_bytes());
    frame.extend(number.to_le_bytes());
    frame.extend_from_slice(bytes);
    frame
}
