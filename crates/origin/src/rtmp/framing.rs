//! How packets are framed: once for all viewers, and again for the few that need it otherwise.

use crate::stream::{Kind, Packet};
use crate::viewer::Rewrite;
use weir_rtmp::amf0;
use weir_rtmp::chunk::{Event, Limits, MediaFraming, MessageHeader, Reader, Writer};
use weir_rtmp::message::{MediaKind, data};

/// The chunk size that the origin sends with: most frames are one chunk.
pub(super) const CHUNK_SIZE: u32 = 65_536;

/// How the packets of a stream are framed. Every known viewer plays on message stream 1.
pub(super) const SHARED: MediaFraming = MediaFraming { chunk_size: CHUNK_SIZE, message_stream_id: 1 };

/// Frames a message for all viewers.
pub(super) fn frame(kind: Kind, keyframe: bool, media: MediaKind, timestamp: u32, payload: &[u8]) -> Packet {
    frame_as(SHARED, kind, keyframe, media, timestamp, payload)
}

fn frame_as(
    framing: MediaFraming,
    kind: Kind,
    keyframe: bool,
    media: MediaKind,
    timestamp: u32,
    payload: &[u8],
) -> Packet {
    let mut bytes = Vec::with_capacity(framing.framed_len(media, timestamp, payload.len()));
    framing.frame(media, timestamp, payload, &mut bytes);
    Packet::unit(kind, keyframe, i64::from(timestamp) * 1_000, payload.len(), bytes)
}

/// The message that a packet is made of.
pub(crate) fn unframe(packet: &Packet) -> Option<(MessageHeader, Vec<u8>)> {
    let mut reader = Reader::new(Limits::default());
    let mut announcement = Vec::new();
    Writer::new().set_chunk_size(CHUNK_SIZE, &mut announcement);
    reader.read(&announcement, |_| {}).ok()?;
    let (mut header, mut payload) = (None, Vec::with_capacity(packet.payload as usize));
    let on = |event: Event<'_>| match event {
        Event::Start(start) => header = Some(start),
        Event::Payload { bytes, .. } => payload.extend_from_slice(bytes),
        Event::End { .. } | Event::Abort { .. } => {}
    };
    reader.read(packet.framed(), on).ok()?;
    Some((header?, payload))
}

/// The packet at a timestamp that is `by` microseconds later.
pub(crate) fn retime(packet: &Packet, by: i64) -> Packet {
    reframe(packet, SHARED, by, false).unwrap_or_else(|| packet.clone())
}

/// Frames packets for a link with its own framing. To a server that the stream is forwarded to
/// (`publishing`), metadata goes with the wrapper that asks it to be kept.
pub(super) fn rewriter(framing: MediaFraming, publishing: bool) -> Rewrite {
    Box::new(move |packet, by| reframe(packet, framing, by, publishing))
}

fn reframe(packet: &Packet, framing: MediaFraming, by: i64, publishing: bool) -> Option<Packet> {
    let wrap = publishing && packet.kind == Kind::Setup;
    if framing == SHARED && by == 0 && !wrap {
        return Some(packet.clone());
    }
    let (header, mut payload) = unframe(packet)?;
    let media = MediaKind::from_message_kind(header.kind)?;
    if wrap && data::is_metadata(&payload) {
        let mut wrapped = Vec::with_capacity(payload.len() + 16);
        amf0::encode(&data::SET_DATA_FRAME.into(), &mut wrapped);
        wrapped.append(&mut payload);
        payload = wrapped;
    }
    let timestamp = header.timestamp.wrapping_add_signed((by / 1_000) as i32);
    Some(frame_as(framing, packet.kind, packet.keyframe, media, timestamp, &payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(length: usize, timestamp: u32) -> Packet {
        let payload: Vec<u8> = (0..length).map(|n| n as u8).collect();
        frame(Kind::Video, true, MediaKind::Video, timestamp, &payload)
    }

    #[test]
    fn a_packet_framed_again_is_the_same_message() {
        for (length, timestamp) in [(0, 0), (10, 5), (65_536, 5), (200_000, 0xFF_FFFF), (70_000, u32::MAX)] {
            let packet = packet(length, timestamp);
            let other = MediaFraming { chunk_size: CHUNK_SIZE, message_stream_id: 7 };
            let there = rewriter(other, false)(&packet, 0).unwrap();
            assert_ne!(there.framed(), packet.framed());
            let back = rewriter(SHARED, false)(&there, 0).unwrap();
            assert_eq!(
                unframe(&back).map(|(_, payload)| payload),
                unframe(&packet).map(|(_, payload)| payload)
            );
        }
    }

    #[test]
    fn a_timestamp_moves_both_ways_and_wraps() {
        for (timestamp, by, then) in
            [(1_000, 500_000, 1_500), (1_000, -500_000, 500), (100, -200_000, u32::MAX - 99)]
        {
            let moved = retime(&packet(100, timestamp), by);
            assert_eq!(unframe(&moved).map(|(header, _)| header.timestamp), Some(then));
            assert_eq!(moved.payload, 100);
        }
    }

    #[test]
    fn packets_are_shared_when_nothing_changes() {
        let packet = packet(100, 1);
        let same = rewriter(SHARED, true)(&packet, 0).unwrap();
        assert!(same.shares_bytes_with(&packet));
    }
}
