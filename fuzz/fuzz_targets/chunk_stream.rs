//! A chunk stream is the same in one piece and in two, and whether frames go the short way or not, keeps its limits,
//! and its messages are as long as they say.

#![no_main]

mod halves;

use halves::halves;
use libfuzzer_sys::fuzz_target;
use weir_rtmp::chunk::{Error, Event, Limits, MessageHeader, Reader};

const LIMITS: Limits = Limits { chunk_streams: 8, message_length: 4096 };

type Message = (MessageHeader, Vec<u8>);

fn read(pieces: [&[u8]; 2], frames_whole: bool) -> (Vec<Message>, Result<u64, Error>) {
    let mut reader = Reader::new(LIMITS);
    let mut under_way: Vec<Message> = Vec::new();
    let mut messages = Vec::new();
    let mut result = Ok(0);
    for mut piece in pieces {
        let find = |under_way: &[Message], id| {
            under_way
                .iter()
                .position(|(header, _)| header.chunk_stream_id == id)
                .expect("a message under way")
        };
        result = loop {
            while frames_whole && let Some((header, payload)) = reader.frame(&mut piece) {
                assert!(header.length <= LIMITS.message_length);
                messages.push((header, payload.to_vec()));
            }
            let event = match reader.next(&mut piece) {
                Ok(Some(event)) => event,
                Ok(None) => break Ok(reader.consumed()),
                Err(error) => break Err(error),
            };
            match event {
                Event::Start(header) => {
                    assert!(header.length <= LIMITS.message_length);
                    under_way.push((header, Vec::new()));
                    assert!(under_way.len() <= LIMITS.chunk_streams);
                }
                Event::Payload { chunk_stream_id, bytes } => {
                    let at = find(&under_way, chunk_stream_id);
                    under_way[at].1.extend_from_slice(bytes);
                }
                Event::End { chunk_stream_id } => {
                    let (header, payload) = under_way.remove(find(&under_way, chunk_stream_id));
                    assert_eq!(payload.len(), header.length as usize);
                    messages.push((header, payload));
                }
                Event::Abort { chunk_stream_id } => {
                    under_way.remove(find(&under_way, chunk_stream_id));
                }
            }
        };
        if result.is_err() {
            break;
        }
    }
    (messages, result)
}

fuzz_target!(|data: &[u8]| {
    let Some((whole, cut)) = halves(data) else { return };
    let whole = read([whole, &[]], false);
    assert_eq!(read(cut, false), whole);
    assert_eq!(read(cut, true), whole);
});
