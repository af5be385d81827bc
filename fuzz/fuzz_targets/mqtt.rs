//! A stream of packets is the same in one piece and in two; what was read can be written and says the same; a client
//! survives any server; memory is bounded.

#![no_main]

mod halves;

use halves::halves;
use libfuzzer_sys::fuzz_target;
use std::time::Duration;
use weir_mqtt::client::{Acknowledging, Session};
use weir_mqtt::topic::{Filter, TopicTree, matches};
use weir_mqtt::{Client, ClientOptions, Error, Event, Limits, Packet, Publish, Qos, Reader, Version};

const WHOLE: u32 = 64;

fn read(version: Version, pieces: [&[u8]; 2]) -> (Vec<String>, Option<Error>) {
    let mut reader = Reader::new(version, Limits { packet: 4096, whole: WHOLE });
    let mut heard: Vec<String> = Vec::new();
    for mut piece in pieces {
        loop {
            match reader.next(&mut piece) {
                Ok(Some(Event::Payload(bytes))) => heard.extend(bytes.iter().map(u8::to_string)),
                Ok(Some(event)) => heard.push(format!("{event:?}")),
                Ok(None) => break,
                Err(error) => return (heard, Some(error)),
            }
            assert!(reader.memory() <= 8 * WHOLE as usize);
        }
        assert!(piece.is_empty());
    }
    (heard, None)
}

fn rewrite(version: Version, bytes: &[u8]) {
    let Some((first, body)) = bytes.split_first() else { return };
    let Ok(packet) = Packet::decode(*first, body, version) else { return };
    let version = if let Packet::Connect(connect) = &packet { connect.version } else { version };
    let mut out = Vec::new();
    packet.encode(version, &mut out).expect("what was read can be written");
    let mut reader = Reader::new(version, Limits { packet: 1 << 20, whole: 1 << 20 });
    assert_eq!(reader.next(&mut &out[..]), Ok(Some(Event::Packet(packet))));
    if let Packet::Subscribe(subscribe) = packet {
        let filters = subscribe.subscriptions.iter().filter_map(|it| Filter::parse(it.filter).ok());
        match_in_a_tree(&filters.map(|filter| filter.pattern).collect::<Vec<_>>());
    }
}

/// A tree of patterns finds what they match one by one: topics that resemble them, and whatever is left of them.
fn match_in_a_tree(patterns: &[&str]) {
    let mut tree = TopicTree::<Vec<usize>>::default();
    for (number, pattern) in patterns.iter().enumerate() {
        tree.entry(pattern).push(number);
    }
    let topics = patterns.iter().flat_map(|it| [it.replace(['+', '#'], "a"), it.replace("/#", "")]);
    for topic in topics.chain(["a/b".to_owned()]).filter(|topic| !topic.is_empty()) {
        let mut found = Vec::new();
        tree.find(&topic, |numbers| found.extend(numbers.iter().copied()));
        found.sort_unstable();
        let matching = (0..patterns.len()).filter(|number| matches(patterns[*number], &topic));
        // A level that is a wildcard is none of a topic's.
        if !topic.contains(['+', '#']) {
            assert_eq!(found, matching.collect::<Vec<_>>(), "{topic}");
        }
    }
    patterns.iter().for_each(|pattern| drop(tree.remove(pattern)));
    assert_eq!(tree.levels(), 0);
}

fn converse(
    version: Version,
    acknowledging: Acknowledging,
    pieces: [&[u8]; 2],
) -> (Vec<String>, Vec<u8>, bool) {
    let options = ClientOptions {
        acknowledging,
        receive_maximum: 8,
        topic_alias_maximum: 4,
        whole: WHOLE,
        maximum_packet_size: 4096,
        clean_start: false,
        ..ClientOptions::new(version, "fuzz")
    };
    let now = Duration::ZERO;
    let mut client = Client::new(options, Session::new(), now);
    let accepted: &[u8] = if version == Version::V5 { &[0x20, 3, 0, 0, 0] } else { &[0x20, 2, 0, 0] };
    client.input(accepted, now, &mut |_| ()).expect("accepted");
    client.output().clear();
    for (token, qos) in [Qos::AtLeastOnce, Qos::ExactlyOnce, Qos::AtLeastOnce].into_iter().enumerate() {
        client.publish(&Publish { qos, ..Publish::new("a", b"") }, token as u64, now).expect("room");
    }
    let mut heard: Vec<String> = Vec::new();
    let result = pieces.into_iter().try_for_each(|piece| {
        client.input(piece, now, &mut |event| match event {
            weir_mqtt::ClientEvent::MessagePayload(bytes) => heard.extend(bytes.iter().map(u8::to_string)),
            event => heard.push(format!("{event:?}")),
        })
    });
    let said = std::mem::take(client.output());
    // What it says is well-formed.
    let mut reader = Reader::new(version, Limits::default());
    let mut input = &said[..];
    while reader.next(&mut input).expect("well-formed").is_some() {}
    let _ = client.into_session();
    (heard, said, result.is_ok())
}

fuzz_target!(|data: &[u8]| {
    let Some((whole, cut)) = halves(data) else { return };
    for version in [Version::V311, Version::V5] {
        assert_eq!(read(version, cut), read(version, [whole, &[]]));
        rewrite(version, whole);
        for acknowledging in [Acknowledging::AtOnce, Acknowledging::ByCaller] {
            assert_eq!(converse(version, acknowledging, cut), converse(version, acknowledging, [whole, &[]]));
        }
    }
});
