//! Writes an FLV file (FLV 10.1 sections E.2 to E.4.1).

use crate::chunk::MAX_MESSAGE_LENGTH;
use crate::message::MediaKind;

/// Appends the file's header, which says whether audio and video are to be expected.
pub fn write_header(audio: bool, video: bool, out: &mut Vec<u8>) {
    let flags = u8::from(audio) << 2 | u8::from(video);
    out.extend([b'F', b'L', b'V', 1, flags, 0, 0, 0, 9, 0, 0, 0, 0]);
}

/// Appends one tag with the body that an RTMP message of that kind has as its payload.
///
/// # Panics
///
/// When the body is longer than [`MAX_MESSAGE_LENGTH`].
pub fn write_tag(kind: MediaKind, timestamp: u32, body: &[u8], out: &mut Vec<u8>) {
    assert!(body.len() <= MAX_MESSAGE_LENGTH as usize, "an FLV tag of {} bytes", body.len());
    let [_, l2, l1, l0] = (body.len() as u32).to_be_bytes();
    let [t3, t2, t1, t0] = timestamp.to_be_bytes();
    let kind = kind.message_kind().id();
    out.reserve(11 + body.len() + 4);
    out.extend([kind, l2, l1, l0, t2, t1, t0, t3, 0, 0, 0]);
    out.extend_from_slice(body);
    out.extend((body.len() as u32 + 11).to_be_bytes());
}
