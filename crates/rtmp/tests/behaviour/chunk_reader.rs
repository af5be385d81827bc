//! The rules of the chunk stream (RTMP 1.0 section 5.3), one by one, in every split of the bytes that show them.

use crate::wire::{ReceivedMessage, header, hear, type_0, type_1, type_2, type_3};
use weir_rtmp::chunk::{ChunkFormat, Error, Limits};
use weir_rtmp::message::MessageKind::{Abort, Audio, SetChunkSize, Video};

/// What the chunk stream carried, the same in one piece, byte by byte, and cut anywhere in two.
fn heard(parts: &[&[u8]]) -> Result<Vec<ReceivedMessage>, Error> {
    let bytes = parts.concat();
    let whole = hear(&bytes, &[], Limits::default());
    let every_byte: Vec<usize> = (0..bytes.len()).collect();
    assert_eq!(hear(&bytes, &every_byte, Limits::default()), whole, "byte by byte");
    for cut in 0..bytes.len() {
        assert_eq!(hear(&bytes, &[cut], Limits::default()), whole, "cut at {cut}");
    }
    whole
}

fn timestamps(parts: &[&[u8]]) -> Vec<u32> {
    let heard = heard(parts).unwrap();
    let timestamps = heard.iter().map(|heard| match heard {
        ReceivedMessage::Message(header, _) => header.timestamp,
        ReceivedMessage::Aborted { .. } => panic!("an abort"),
    });
    timestamps.collect()
}

#[test]
fn a_type_0_chunk_says_everything() {
    assert_eq!(
        heard(&[&type_0(6, 1000, 3, Video), b"abc"]),
        Ok(vec![ReceivedMessage::Message(header(6, Video, 1000, 3), b"abc".to_vec())])
    );
}

#[test]
fn a_type_1_chunk_keeps_the_message_stream() {
    assert_eq!(
        heard(&[&type_0(6, 1000, 1, Video), b"a", &type_1(6, 40, 2, Audio), b"bc"]).unwrap()[1],
        ReceivedMessage::Message(header(6, Audio, 1040, 2), b"bc".to_vec())
    );
}

#[test]
fn a_type_2_chunk_keeps_length_and_kind_too() {
    assert_eq!(
        heard(&[&type_0(6, 1000, 1, Video), b"a", &type_2(6, 40), b"b"]).unwrap()[1],
        ReceivedMessage::Message(header(6, Video, 1040, 1), b"b".to_vec())
    );
}

#[test]
fn a_type_3_chunk_that_begins_a_message_repeats_the_delta() {
    let parts: [&[u8]; 8] =
        [&type_0(6, 1000, 1, Video), b"a", &type_2(6, 40), b"b", &type_3(6), b"c", &type_3(6), b"d"];
    assert_eq!(timestamps(&parts), [1000, 1040, 1080, 1120]);
}

#[test]
fn a_type_3_chunk_after_a_type_0_chunk_takes_its_timestamp_for_the_delta() {
    assert_eq!(timestamps(&[&type_0(6, 20, 1, Video), b"a", &type_3(6), b"b"]), [20, 40]);
}

#[test]
fn a_message_longer_than_the_chunk_size_goes_on_in_type_3_chunks() {
    let payload = [7; 300];
    let parts: [&[u8]; 6] = [
        &type_0(6, 0, 300, Video),
        &payload[..128],
        &type_3(6),
        &payload[128..256],
        &type_3(6),
        &payload[256..],
    ];
    assert_eq!(heard(&parts), Ok(vec![ReceivedMessage::Message(header(6, Video, 0, 300), payload.to_vec())]));
}

#[test]
fn chunks_of_several_messages_interleave() {
    let (video, audio) = ([1; 130], [2; 129]);
    let parts: [&[u8]; 8] = [
        &type_0(6, 5, 130, Video),
        &video[..128],
        &type_0(4, 7, 129, Audio),
        &audio[..128],
        &type_3(6),
        &video[128..],
        &type_3(4),
        &audio[128..],
    ];
    assert_eq!(
        heard(&parts),
        Ok(vec![
            ReceivedMessage::Message(header(6, Video, 5, 130), video.to_vec()),
            ReceivedMessage::Message(header(4, Audio, 7, 129), audio.to_vec()),
        ])
    );
}

#[test]
fn a_message_may_be_empty() {
    assert_eq!(
        heard(&[&type_0(4, 0, 0, Audio), &type_3(4)]),
        Ok(vec![ReceivedMessage::Message(header(4, Audio, 0, 0), vec![]); 2])
    );
}

#[test]
fn set_chunk_size_takes_effect_with_the_next_chunk() {
    let payload = [7; 200];
    let parts: [&[u8]; 8] = [
        &type_0(6, 0, 200, Video),
        &payload[..128],
        &type_0(2, 0, 4, SetChunkSize),
        &[0, 0, 0, 50],
        &type_3(6),
        &payload[128..178],
        &type_3(6),
        &payload[178..],
    ];
    assert_eq!(
        heard(&parts).unwrap()[1],
        ReceivedMessage::Message(header(6, Video, 0, 200), payload.to_vec())
    );
}

#[test]
fn a_chunk_size_is_between_1_and_31_bits_long() {
    let set = |size: u32| heard(&[&type_0(2, 0, 4, SetChunkSize), &size.to_be_bytes()]);
    assert!(set(1).is_ok());
    assert!(set(0x7FFF_FFFF).is_ok());
    assert_eq!(set(0), Err(Error::ChunkSize { at: 16, size: 0 }));
    assert_eq!(set(0x8000_0000), Err(Error::ChunkSize { at: 16, size: 0x8000_0000 }));
}

#[test]
fn a_message_that_governs_chunks_has_four_bytes() {
    for kind in [SetChunkSize, Abort] {
        assert_eq!(heard(&[&type_0(2, 0, 5, kind)]), Err(Error::ControlLength { at: 0, length: 5 }));
    }
}

#[test]
fn an_abort_ends_the_message_of_its_chunk_stream() {
    let parts: [&[u8]; 6] = [
        &type_0(6, 5, 300, Video),
        &[1; 128],
        &type_0(2, 0, 4, Abort),
        &[0, 0, 0, 6],
        &type_1(6, 1, 2, Video),
        b"ok",
    ];
    let heard = heard(&parts).unwrap();
    assert_eq!(heard[1], ReceivedMessage::Aborted { chunk_stream_id: 6 });
    assert_eq!(heard[2], ReceivedMessage::Message(header(6, Video, 6, 2), b"ok".to_vec()));
}

#[test]
fn an_abort_of_nothing_is_only_a_message() {
    assert_eq!(heard(&[&type_0(2, 0, 4, Abort), &[0, 0, 0, 6]]).unwrap().len(), 1);
}

#[test]
fn an_extended_timestamp_follows_the_header() {
    let late = 0x0123_4567_u32;
    let parts: [&[u8]; 4] = [&type_0(6, 0xFF_FFFF, 1, Video), &late.to_be_bytes(), b"a", &type_2(6, 1)];
    assert_eq!(timestamps(&[&parts.concat(), b"b"]), [late, late + 1]);
}

#[test]
fn a_timestamp_of_24_ones_is_an_extended_one() {
    assert_eq!(timestamps(&[&type_0(6, 0xFF_FFFF, 0, Video), &[0, 0xFF, 0xFF, 0xFF]]), [0xFF_FFFF]);
}

#[test]
fn an_extended_delta_is_added() {
    let parts: [&[u8]; 3] = [&type_0(6, 1, 0, Video), &type_2(6, 0xFF_FFFF), &0x0200_0000_u32.to_be_bytes()];
    assert_eq!(timestamps(&parts), [1, 0x0200_0001]);
}

#[test]
fn timestamps_wrap() {
    let parts: [&[u8]; 3] =
        [&type_0(6, 0xFF_FFFF, 0, Video), &u32::MAX.to_be_bytes(), &type_1(6, 2, 0, Video)];
    assert_eq!(timestamps(&parts), [u32::MAX, 1]);
}

#[test]
fn a_type_3_chunk_may_repeat_the_extended_timestamp() {
    let late = 0x0123_4567_u32.to_be_bytes();
    let payload = [9; 200];
    let parts: [&[u8]; 6] =
        [&type_0(6, 0xFF_FFFF, 200, Video), &late, &payload[..128], &type_3(6), &late, &payload[128..]];
    assert_eq!(
        heard(&parts),
        Ok(vec![ReceivedMessage::Message(header(6, Video, 0x0123_4567, 200), payload.to_vec())])
    );
}

#[test]
fn a_type_3_chunk_may_leave_the_extended_timestamp_out() {
    let late = 0x0123_4567_u32.to_be_bytes();
    // Payloads that go on like the timestamp for 0 to 3 bytes, and one that is over before it could.
    for rest in [&[9; 72][..], b"\x01", b"\x01\x23", b"\x01\x23\x45", b"\x01\x23\x45\x99", b"\x01\x99"] {
        let payload = [&[9; 128], rest].concat();
        let parts: [&[u8]; 7] = [
            &type_0(6, 0xFF_FFFF, payload.len() as u32, Video),
            &late,
            &payload[..128],
            &type_3(6),
            rest,
            &type_0(4, 0, 4, Audio),
            b"next",
        ];
        assert_eq!(
            heard(&parts),
            Ok(vec![
                ReceivedMessage::Message(header(6, Video, 0x0123_4567, payload.len()), payload.clone()),
                ReceivedMessage::Message(header(4, Audio, 0, 4), b"next".to_vec()),
            ])
        );
    }
}

#[test]
fn a_chunk_stream_opens_with_a_header_of_its_own() {
    assert!(heard(&[&type_1(6, 40, 1, Video), b"a"]).is_ok(), "as librtmp does");
    for (format, chunk) in [(2, type_2(6, 0)), (3, type_3(6))] {
        assert_eq!(
            heard(&[&type_0(4, 0, 0, Audio), &chunk]),
            Err(Error::NoHeader { at: 12, chunk_stream_id: 6, format: ChunkFormat(format) })
        );
    }
}

#[test]
fn a_message_is_not_interrupted_by_another_on_its_chunk_stream() {
    for (format, chunk) in [(0, type_0(6, 0, 1, Video)), (1, type_1(6, 0, 1, Video)), (2, type_2(6, 0))] {
        assert_eq!(
            heard(&[&type_0(6, 0, 300, Video), &[0; 128], &chunk]),
            Err(Error::Interrupted {
                at: 140,
                chunk_stream_id: 6,
                format: ChunkFormat(format),
                missing: 172
            })
        );
    }
}

#[test]
fn chunk_streams_are_limited() {
    let limits = Limits { chunk_streams: 2, ..Limits::default() };
    let chunks = [3, 4, 5].map(|id| type_0(id, 0, 0, Audio)).concat();
    assert_eq!(hear(&chunks[..24], &[], limits).map(|heard| heard.len()), Ok(2));
    assert_eq!(
        hear(&chunks, &[], limits),
        Err(Error::TooManyChunkStreams { at: 24, chunk_stream_id: 5, limit: 2 })
    );
}

#[test]
fn message_lengths_are_limited() {
    let limits = Limits { message_length: 100, ..Limits::default() };
    assert!(hear(&type_0(6, 0, 100, Video), &[], limits).is_ok());
    assert_eq!(
        hear(&type_0(6, 0, 101, Video), &[], limits),
        Err(Error::MessageTooLong { at: 0, chunk_stream_id: 6, length: 101, limit: 100 })
    );
}

#[test]
fn an_error_says_where_and_what() {
    let error = heard(&[&type_0(4, 0, 0, Audio), &type_3(6)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "byte 12: a type 3 chunk opens chunk stream 6, which has no header to refer to"
    );
}
