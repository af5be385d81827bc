//! Client against server: what each hears, whatever the pieces their bytes come in.

use crate::pair::{Owner, Pair, options, payload, summary};
use weir_rtmp::amf0::Object;
use weir_rtmp::chunk::MessageHeader;
use weir_rtmp::client::{HEAD_LEN, NotStreaming, Role};
use weir_rtmp::message::{MediaKind, MessageKind, data};
use weir_rtmp::{Client, ClientOptions, Server, ServerEvent, ServerOptions};

const PIECES: [usize; 9] = [1, 2, 3, 11, 128, 1000, 1537, 4096, usize::MAX];

#[test]
fn a_player_is_connected_and_sent_the_stream() {
    for piece in PIECES {
        let pair = Pair::playing(piece);
        assert_eq!(
            pair.client_heard,
            [
                "HandshakeDone { scheme: Simple }",
                "StreamBegin { message_stream_id: 0 }",
                "Connected",
                "StreamCreated { message_stream_id: 1 }",
                "StreamBegin { message_stream_id: 1 }",
                "NetStream.Play.Reset: Playing and resetting.",
                "NetStream.Play.Start: Playing has started.",
                "Playing",
            ],
            "in pieces of {piece}"
        );
        assert_eq!(
            pair.server_heard,
            [
                "HandshakeDone { scheme: Simple }",
                "connect live rtmp://localhost/live",
                "BufferLength { message_stream_id: 1, milliseconds: 3000 }",
                "play camera?key=1 on 1 from -2000",
            ]
        );
    }
}

#[test]
fn a_publisher_is_connected_and_may_send() {
    for piece in PIECES {
        let pair = Pair::publishing(piece);
        assert_eq!(
            pair.client_heard,
            [
                "HandshakeDone { scheme: Digest }",
                "StreamBegin { message_stream_id: 0 }",
                "Connected",
                "StreamCreated { message_stream_id: 1 }",
                "StreamBegin { message_stream_id: 1 }",
                "NetStream.Publish.Start: Publishing has started.",
                "Publishing",
            ]
        );
        assert_eq!(
            pair.server_heard,
            [
                "HandshakeDone { scheme: Digest }",
                "connect live rtmp://localhost/live",
                "publish camera?key=1 on 1",
            ]
        );
    }
}

#[test]
fn a_player_sees_the_head_of_each_frame_and_a_server_all_of_it() {
    let lengths = [0, 1, HEAD_LEN - 1, HEAD_LEN, HEAD_LEN + 1, 4096, 4097, 20_000];
    for piece in PIECES {
        let (mut player, mut publisher) = (Pair::playing(piece), Pair::publishing(piece));
        player.client_heard.clear();
        publisher.server_heard.clear();
        for (number, length) in lengths.into_iter().enumerate() {
            let kind = if number % 2 == 0 { MediaKind::Video } else { MediaKind::Audio };
            let timestamp = 0xFF_FFF0 + 10 * number as u32;
            player.server.send(1, kind, timestamp, &payload(length));
            publisher.client.send(kind, timestamp, &payload(length)).unwrap();
        }
        player.settle();
        publisher.settle();
        for (number, length) in lengths.into_iter().enumerate() {
            let kind = if number % 2 == 0 { "Video" } else { "Audio" };
            let timestamp = 0xFF_FFF0 + 10 * number;
            let head = summary(&payload(length.min(HEAD_LEN)));
            assert_eq!(
                player.client_heard[number],
                format!("{kind} at {timestamp}, {length} bytes, head {head}")
            );
            let whole = summary(&payload(length));
            assert_eq!(publisher.server_heard[number], format!("{kind} at {timestamp}, {whole}"));
        }
    }
}

#[test]
fn a_publication_framed_once_may_be_sent_by_many() {
    let mut publishers = [Pair::publishing(100), Pair::publishing(1000)];
    let framing = publishers[0].client.framing().unwrap();
    assert_eq!(publishers[1].client.framing(), Some(framing));
    let mut bytes = Vec::new();
    framing.frame(MediaKind::Video, 40, &payload(10_000), &mut bytes);
    for publisher in &mut publishers {
        publisher.client.output().extend_from_slice(&bytes);
        publisher.settle();
        let heard = publisher.server_heard.last().unwrap();
        assert_eq!(*heard, format!("Video at 40, {}", summary(&payload(10_000))));
    }
}

#[test]
fn metadata_reaches_the_server_without_its_wrapper() {
    let mut publisher = Pair::publishing(50);
    let mut payload = Vec::new();
    data::set_metadata(Object::new().with("width", 1280.0), &mut payload);
    publisher.client.send(MediaKind::Data, 0, &payload).unwrap();
    let bytes = std::mem::take(publisher.client.output());
    let mut width = None;
    let read = publisher.server.input(&bytes, &mut |event| {
        let ServerEvent::Metadata(metadata) = event else { panic!("{event:?}") };
        let properties = data::metadata(metadata.payload).unwrap().unwrap();
        width = properties.get("width").and_then(weir_rtmp::amf0::Value::as_number);
    });
    read.unwrap();
    assert_eq!(width, Some(1280.0));
}

#[test]
fn a_refused_connection_is_told_in_the_servers_words() {
    let mut pair = Pair::new(options(Role::Play), Owner::RejectsConnect, 10);
    pair.settle();
    assert_eq!(
        pair.client_heard,
        ["HandshakeDone { scheme: Simple }", "error NetConnection.Connect.Rejected: closed today"]
    );
    assert_eq!(pair.client.framing(), None);
}

#[test]
fn a_refused_stream_is_told_in_the_servers_words() {
    for (role, words) in [
        (Role::Play, "error NetStream.Play.StreamNotFound: none"),
        (Role::Publish, "error NetStream.Publish.BadName: in use"),
    ] {
        let mut pair = Pair::new(options(role), Owner::RejectsStream, 10);
        pair.settle();
        assert_eq!(pair.client_heard.last().unwrap(), words);
        assert!(!pair.client.is_streaming());
    }
}

#[test]
fn the_end_of_a_stream_is_told() {
    let mut pair = Pair::playing(10);
    pair.client_heard.clear();
    pair.server.end_play(1);
    pair.settle();
    assert_eq!(
        pair.client_heard,
        [
            "StreamEof { message_stream_id: 1 }",
            "NetStream.Play.UnpublishNotify: The stream is no longer published.",
            "NetStream.Play.Stop: Playing has stopped.",
        ]
    );
}

#[test]
fn a_client_that_leaves_says_so() {
    for mut pair in [Pair::playing(10), Pair::publishing(10)] {
        pair.client.close();
        pair.settle();
        assert_eq!(pair.server_heard.last().unwrap(), "Closed { message_stream_id: 1 }");
        assert_eq!(pair.client.send(MediaKind::Audio, 0, b""), Err(NotStreaming));
    }
}

#[test]
fn a_ping_is_answered() {
    let mut pair = Pair::playing(10);
    pair.server.ping(1234);
    pair.settle();
    assert_eq!(pair.server_heard.last().unwrap(), "Pong { timestamp: 1234 }");
}

#[test]
fn received_bytes_are_acknowledged_once_a_window() {
    let mut player = Pair::playing(usize::MAX);
    player.server_heard.clear();
    for number in 0..60 {
        player.server.send(1, MediaKind::Video, number, &payload(100_000));
        player.settle();
    }
    // Six megabytes, and the server asks for one acknowledgement each 2.5.
    assert_eq!(player.server_heard.len(), 2, "{:?}", player.server_heard);

    let mut publisher = Pair::publishing(usize::MAX);
    publisher.client_heard.clear();
    for number in 0..60 {
        publisher.client.send(MediaKind::Video, number, &payload(100_000)).unwrap();
        publisher.settle();
    }
    assert!(publisher.client_heard.is_empty(), "this client asked for none");
}

#[test]
fn a_player_can_ask_for_a_window_of_its_own_until_the_server_does() {
    let options = ClientOptions { acknowledgement_window: 10, ..options(Role::Play) };
    let mut pair = Pair::new(options, Owner::Accepts, 16);
    pair.settle();
    assert!(pair.server_heard.iter().any(|heard| heard.starts_with("Acknowledged")));
}

#[test]
fn an_idle_player_is_small() {
    assert!(size_of::<Client>() < 640, "{} bytes", size_of::<Client>());
    assert!(size_of::<Server>() < 640, "{} bytes", size_of::<Server>());
    let mut player = Pair::playing(1000);
    assert!(player.client.output().capacity() < 128);
}

#[test]
fn a_message_longer_than_the_server_allows_ends_the_connection() {
    let mut publisher = Pair::publishing(1000);
    publisher.server =
        Server::new(ServerOptions { max_message_length: 10_000, ..ServerOptions::default() }, 1);
    let mut bytes = vec![3];
    bytes.resize(1 + 2 * 1536, 0);
    publisher.client.send(MediaKind::Video, 0, &payload(10_001)).unwrap();
    bytes.append(publisher.client.output());
    let error = publisher.server.input(&bytes, &mut |_| ()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "chunk stream: byte 0: a message of 10001 bytes on chunk stream 6, allowed are 10000"
    );
}

/// The beginning of a message of `length` bytes on a chunk stream, up to the end of its first chunk.
fn begun(chunk_stream_id: u32, length: usize, chunk_size: u32) -> Vec<u8> {
    let header = MessageHeader {
        chunk_stream_id,
        kind: MessageKind::Video,
        timestamp: 0,
        length: length as u32,
        message_stream_id: 1,
    };
    let mut bytes = Vec::new();
    weir_rtmp::chunk::frame(&header, &vec![0; length], chunk_size, &mut bytes);
    bytes.truncate(12 + chunk_size as usize);
    bytes
}

#[test]
fn messages_begun_on_many_chunk_streams_are_bounded_together() {
    let mut publisher = Pair::publishing(1000);
    let chunk_size = publisher.client.framing().unwrap().chunk_size;
    let most = ServerOptions::default().max_message_length as usize;
    let mut refused = None;
    for chunk_stream_id in 10..60 {
        let bytes = begun(chunk_stream_id, most, chunk_size);
        refused = publisher.server.input(&bytes, &mut |_| ()).err();
        if refused.is_some() {
            assert_eq!(chunk_stream_id, 12, "the third of 8 MiB");
            break;
        }
    }
    let words = refused.expect("fifty messages of 8 MiB were begun").to_string();
    assert_eq!(
        words,
        "message: unfinished messages of 25165824 bytes on all chunk streams together, allowed are 16777216"
    );
}

#[test]
fn little_is_kept_of_a_client_that_has_not_said_connect() {
    let mut shaken = vec![3];
    shaken.resize(1 + 2 * 1536, 0);
    for (length, is_taken) in [(64 * 1024, true), (64 * 1024 + 1, false)] {
        let mut server = Server::new(ServerOptions::default(), 1);
        server.input(&shaken, &mut |_| ()).unwrap();
        let outcome = server.input(&begun(4, length, 128), &mut |_| ());
        assert_eq!(outcome.is_ok(), is_taken, "{length}: {outcome:?}");
    }
}
