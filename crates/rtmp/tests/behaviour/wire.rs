//! What the tests say on the wire, and how they write down what they hear.

use weir_rtmp::chunk::{Error, Event, Limits, MessageHeader, Reader};
use weir_rtmp::message::MessageKind;

/// A message as its receiver saw it, with the pieces of the payload joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReceivedMessage {
    Message(MessageHeader, Vec<u8>),
    Aborted { chunk_stream_id: u32 },
}

/// Reads a chunk stream in pieces that end where `cuts` says, and returns what it carried: the same whether
/// frames go the short way or not.
pub(crate) fn hear(bytes: &[u8], cuts: &[usize], limits: Limits) -> Result<Vec<ReceivedMessage>, Error> {
    let heard = hear_one_way(bytes, cuts, limits, false);
    assert_eq!(hear_one_way(bytes, cuts, limits, true), heard, "frames taken whole");
    heard
}

fn hear_one_way(
    bytes: &[u8],
    cuts: &[usize],
    limits: Limits,
    frames_whole: bool,
) -> Result<Vec<ReceivedMessage>, Error> {
    let mut reader = Reader::new(limits);
    let mut under_way: Vec<(MessageHeader, Vec<u8>)> = Vec::new();
    let mut heard = Vec::new();
    for mut piece in pieces(bytes, cuts) {
        loop {
            while frames_whole && let Some((header, payload)) = reader.frame(&mut piece) {
                heard.push(ReceivedMessage::Message(header, payload.to_vec()));
            }
            let Some(event) = reader.next(&mut piece)? else { break };
            let find = |under_way: &[(MessageHeader, Vec<u8>)], id| {
                under_way
                    .iter()
                    .position(|(header, _)| header.chunk_stream_id == id)
                    .expect("a message under way")
            };
            match event {
                Event::Start(header) => {
                    assert!(
                        under_way.iter().all(|(other, _)| other.chunk_stream_id != header.chunk_stream_id)
                    );
                    under_way.push((header, Vec::new()));
                }
                Event::Payload { chunk_stream_id, bytes } => {
                    assert!(!bytes.is_empty());
                    let at = find(&under_way, chunk_stream_id);
                    under_way[at].1.extend_from_slice(bytes);
                }
                Event::End { chunk_stream_id } => {
                    let (header, payload) = under_way.remove(find(&under_way, chunk_stream_id));
                    assert_eq!(payload.len(), header.length as usize);
                    heard.push(ReceivedMessage::Message(header, payload));
                }
                Event::Abort { chunk_stream_id } => {
                    under_way.remove(find(&under_way, chunk_stream_id));
                    heard.push(ReceivedMessage::Aborted { chunk_stream_id });
                }
            }
        }
    }
    Ok(heard)
}

/// `bytes` in the pieces between `cuts`, which need not be sorted or within bounds.
pub(crate) fn pieces<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.sort_unstable();
    cuts.push(bytes.len());
    let mut from = 0;
    cuts.into_iter().map(|to| &bytes[std::mem::replace(&mut from, to)..to]).collect()
}

/// A header on a message stream of 1.
pub(crate) fn header(
    chunk_stream_id: u32,
    kind: MessageKind,
    timestamp: u32,
    length: usize,
) -> MessageHeader {
    MessageHeader { chunk_stream_id, kind, timestamp, length: length as u32, message_stream_id: 1 }
}

/// A type 0 chunk header with a one-byte basic header.
pub(crate) fn type_0(chunk_stream_id: u8, timestamp: u32, length: u32, kind: MessageKind) -> Vec<u8> {
    let mut bytes = vec![chunk_stream_id];
    bytes.extend(&timestamp.to_be_bytes()[1..]);
    bytes.extend(&length.to_be_bytes()[1..]);
    bytes.push(kind.id());
    bytes.extend(1_u32.to_le_bytes());
    bytes
}

/// A type 1 chunk header with a one-byte basic header.
pub(crate) fn type_1(chunk_stream_id: u8, delta: u32, length: u32, kind: MessageKind) -> Vec<u8> {
    let mut bytes = vec![0x40 | chunk_stream_id];
    bytes.extend(&delta.to_be_bytes()[1..]);
    bytes.extend(&length.to_be_bytes()[1..]);
    bytes.push(kind.id());
    bytes
}

/// A type 2 chunk header with a one-byte basic header.
pub(crate) fn type_2(chunk_stream_id: u8, delta: u32) -> Vec<u8> {
    let mut bytes = vec![0x80 | chunk_stream_id];
    bytes.extend(&delta.to_be_bytes()[1..]);
    bytes
}

/// A type 3 chunk header with a one-byte basic header.
pub(crate) fn type_3(chunk_stream_id: u8) -> Vec<u8> {
    vec![0xC0 | chunk_stream_id]
}
