//! Bytes that no peer should send: nothing panics, and the bytes' split does not matter.

use crate::pair::{Owner, Pair, client_words, options, payload, server_words};
use crate::wire::pieces;
use proptest::collection::vec;
use proptest::prelude::*;
use weir_rtmp::client::Role;
use weir_rtmp::flv::{AudioTag, VideoTag};
use weir_rtmp::message::{Command, Control, MediaKind, MessageKind, UserControl, data};
use weir_rtmp::{Client, Server, ServerOptions, client, server};

/// All that a server says to a player, and a client to a server, in a short session.
fn session() -> (Vec<u8>, Vec<u8>) {
    let mut pair = Pair::new(options(Role::Publish), Owner::Accepts, 4096);
    let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        to_server.extend_from_slice(pair.client.output());
        pair.settle_towards_server();
        to_client.extend_from_slice(pair.server.output());
        pair.settle_towards_client();
    }
    for number in 0..4 {
        pair.client.send(MediaKind::Video, number * 40, &payload(300)).unwrap();
        pair.server.send(1, MediaKind::Audio, number * 40, &payload(300));
    }
    to_server.append(pair.client.output());
    to_client.append(pair.server.output());
    (to_server, to_client)
}

fn client_hears(bytes: &[u8], cuts: &[usize]) -> (Vec<String>, Result<(), client::Error>) {
    let mut client = Client::new(options(Role::Play), 1);
    let mut heard = Vec::new();
    let read = pieces(bytes, cuts)
        .into_iter()
        .try_for_each(|piece| client.input(piece, &mut |event| heard.push(client_words(&event))));
    (heard, read)
}

fn server_hears(bytes: &[u8], cuts: &[usize]) -> (Vec<String>, Result<(), server::Error>) {
    let mut server = Server::new(ServerOptions { max_message_length: 5000, ..ServerOptions::default() }, 1);
    let mut heard = Vec::new();
    let read = pieces(bytes, cuts)
        .into_iter()
        .try_for_each(|piece| server.input(piece, &mut |event| heard.push(server_words(&event))));
    (heard, read)
}

/// Some bytes changed, most of them behind the handshake.
fn damage() -> impl Strategy<Value = Vec<(usize, u8)>> {
    vec((3000..6000_usize, any::<u8>()), 1..6)
}

fn damaged(mut bytes: Vec<u8>, damage: &[(usize, u8)]) -> Vec<u8> {
    for &(at, byte) in damage {
        let at = at % bytes.len();
        bytes[at] = byte;
    }
    bytes
}

proptest! {
    #[test]
    fn a_damaged_server_is_heard_the_same_in_any_split(damage in damage(), cuts in vec(any::<usize>(), 0..8)) {
        let bytes = damaged(session().1, &damage);
        prop_assert_eq!(client_hears(&bytes, &cuts), client_hears(&bytes, &[]));
    }

    #[test]
    fn a_damaged_client_is_heard_the_same_in_any_split(damage in damage(), cuts in vec(any::<usize>(), 0..8)) {
        let bytes = damaged(session().0, &damage);
        prop_assert_eq!(server_hears(&bytes, &cuts), server_hears(&bytes, &[]));
    }

    #[test]
    fn any_payload_is_parsed_or_an_error(kind in any::<u8>(), payload in vec(prop_oneof![0..18_u8, any::<u8>()], 0..80)) {
        let kind = MessageKind::from_id(kind);
        let _ = Command::parse(kind, &payload);
        let _ = Control::parse(kind, &payload);
        let _ = UserControl::parse(&payload);
        let _ = data::metadata(data::for_viewers(&payload));
    }

    #[test]
    fn a_tag_that_is_parsed_has_its_payload_within(bytes in vec(any::<u8>(), 0..400)) {
        if let Ok(tag) = VideoTag::parse(&bytes) {
            prop_assert!(tag.payload_offset <= bytes.len());
        }
        if let Ok(tag) = AudioTag::parse(&bytes) {
            prop_assert!(tag.payload_offset <= bytes.len());
        }
    }
}
