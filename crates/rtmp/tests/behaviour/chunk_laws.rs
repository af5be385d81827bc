//! Laws of the chunk stream: what is written is what is read, whatever the sizes, the order and the splits.

use crate::wire::{ReceivedMessage, hear, pieces};
use proptest::collection::vec;
use proptest::prelude::*;
use weir_rtmp::chunk::{
    Limits, MAX_CHUNK_SIZE, MAX_CHUNK_STREAM_ID, MIN_CHUNK_STREAM_ID, MessageHeader, Writer, frame,
    framed_len,
};
use weir_rtmp::message::MessageKind;

type Message = (MessageHeader, Vec<u8>);

/// A message on one of a few chunk streams of every form, at a timestamp that is often near the edges.
fn message() -> impl Strategy<Value = Message> {
    let chunk_stream_id =
        prop_oneof![3..8_u32, Just(63), Just(64), Just(319), Just(320), Just(MAX_CHUNK_STREAM_ID)];
    let timestamp =
        prop_oneof![0..5000_u32, 0xFF_FFFD..=0x100_0001_u32, any::<u32>(), (u32::MAX - 2)..=u32::MAX];
    let kind = prop_oneof![Just(MessageKind::Audio), Just(MessageKind::Video), Just(MessageKind::DataAmf0)];
    let payload = prop_oneof![vec(any::<u8>(), 0..20), vec(any::<u8>(), 0..700)];
    (chunk_stream_id, timestamp, kind, payload, 0..3_u32).prop_map(
        |(chunk_stream_id, timestamp, kind, payload, message_stream_id)| {
            let length = payload.len() as u32;
            (MessageHeader { chunk_stream_id, kind, timestamp, length, message_stream_id }, payload)
        },
    )
}

fn chunk_size() -> impl Strategy<Value = u32> {
    prop_oneof![1..10_u32, 100..200_u32, Just(4096), Just(MAX_CHUNK_SIZE)]
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    vec(any::<usize>(), 0..12)
}

fn as_heard(messages: &[Message]) -> Vec<ReceivedMessage> {
    messages.iter().cloned().map(|(header, payload)| ReceivedMessage::Message(header, payload)).collect()
}

/// Without the Set Chunk Size that comes first.
fn heard_after_chunk_size(bytes: &[u8], cuts: &[usize]) -> Vec<ReceivedMessage> {
    hear(bytes, cuts, Limits::default()).unwrap().split_off(1)
}

proptest! {
    #[test]
    fn what_a_writer_writes_is_what_a_reader_reads(
        messages in vec(message(), 0..8), size in chunk_size(), cuts in cuts(), compressing in any::<bool>(),
    ) {
        let mut writer = if compressing { Writer::compressing() } else { Writer::new() };
        let mut bytes = Vec::new();
        writer.set_chunk_size(size, &mut bytes);
        for (header, payload) in &messages {
            writer.write(header, payload, &mut bytes);
        }
        prop_assert_eq!(heard_after_chunk_size(&bytes, &cuts), as_heard(&messages));
    }

    #[test]
    fn chunks_of_different_chunk_streams_interleave_in_any_order(
        messages in vec(message(), 1..6), size in chunk_size(), turns in vec(any::<usize>(), 0..400), cuts in cuts(),
    ) {
        // One chunk stream each, and its chunks in a row.
        let mut queues: Vec<(Message, Vec<Vec<u8>>)> = Vec::new();
        for (number, (header, payload)) in messages.into_iter().enumerate() {
            let header = MessageHeader { chunk_stream_id: MIN_CHUNK_STREAM_ID + 1 + number as u32, ..header };
            queues.push(((header, payload.clone()), chunks(&header, &payload, size)));
        }
        let mut bytes = Vec::new();
        Writer::new().set_chunk_size(size, &mut bytes);
        let mut ended = Vec::new();
        let mut turns = turns.into_iter();
        while !queues.is_empty() {
            let turn = turns.next().unwrap_or(0) % queues.len();
            bytes.extend(queues[turn].1.remove(0));
            if queues[turn].1.is_empty() {
                ended.push(queues.remove(turn).0);
            }
        }
        prop_assert_eq!(heard_after_chunk_size(&bytes, &cuts), as_heard(&ended));
    }

    #[test]
    fn a_framed_message_is_as_long_as_was_said((header, payload) in message(), size in chunk_size()) {
        let mut bytes = Vec::new();
        frame(&header, &payload, size, &mut bytes);
        prop_assert_eq!(bytes.len(), framed_len(&header, payload.len(), size));
    }

    #[test]
    fn any_bytes_are_read_the_same_in_any_split(bytes in vec(chunky_byte(), 0..400), cuts in cuts()) {
        let limits = Limits { chunk_streams: 8, message_length: 1000 };
        let whole = hear(&bytes, &[], limits);
        prop_assert_eq!(hear(&bytes, &cuts, limits), whole);
        prop_assert_eq!(pieces(&bytes, &cuts).concat(), bytes);
    }
}

/// Bytes that often look like the beginning of a chunk, and numbers that are often small.
fn chunky_byte() -> impl Strategy<Value = u8> {
    prop_oneof![
        3 => Just(0),
        2 => 0..10_u8,
        1 => prop_oneof![Just(0x03), Just(0x43), Just(0x83), Just(0xC3), Just(0xFF)],
        1 => any::<u8>(),
    ]
}

/// The chunks of one message.
fn chunks(header: &MessageHeader, payload: &[u8], size: u32) -> Vec<Vec<u8>> {
    let mut bytes = Vec::new();
    frame(header, payload, size, &mut bytes);
    let mut chunks = Vec::new();
    let extended = if header.timestamp >= 0xFF_FFFF { 4 } else { 0 };
    let mut header_len = 1 + 11 + extended;
    let mut rest = &bytes[..];
    let mut left = payload.len();
    loop {
        let body = left.min(size as usize);
        let (chunk, behind) = rest.split_at(header_len + body);
        chunks.push(chunk.to_vec());
        (rest, left) = (behind, left - body);
        header_len = 1 + extended;
        if left == 0 {
            assert!(rest.is_empty());
            return chunks;
        }
    }
}
