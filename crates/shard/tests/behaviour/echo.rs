//! Bytes go to a session and come back.

use crate::bench::{Bench, Happened, Papers, echo, endpoint, patient, pattern, pour, say, silent};
use std::io::{Read, Write};
use std::net::TcpStream;

const MUCH: usize = 3_000_000;

#[test]
fn a_session_is_told_that_its_link_opens_and_then_that_it_is_there() {
    let (bench, _peer) = Bench::with("client", silent());
    assert_eq!(bench.diary().of("client"), [Happened::Opening, Happened::Connected]);
}

#[test]
fn an_accepted_session_begins_with_its_link_there() {
    let mut bench = Bench::new();
    let address = bench.listen("server", None, silent);
    let peer = TcpStream::connect(address).unwrap();
    drop(peer);
    bench.run_until(|diary| diary.closed("server").is_some());
    assert_eq!(bench.diary().of("server")[0], Happened::Connected);
}

#[test]
fn what_a_plain_peer_sends_comes_back_whole_and_in_order() {
    let mut bench = Bench::new();
    let address = bench.listen("server", None, echo);
    let peer = std::thread::spawn(move || {
        let peer = patient(TcpStream::connect(address).unwrap());
        let mut writer = peer.try_clone().unwrap();
        let writing = std::thread::spawn(move || writer.write_all(&pattern(MUCH)).unwrap());
        let mut heard = vec![0; MUCH];
        (&peer).read_exact(&mut heard).unwrap();
        writing.join().unwrap();
        heard
    });
    assert!(bench.run_beside(peer) == pattern(MUCH));
}

#[test]
fn two_sessions_of_one_shard_talk_over_tls() {
    let papers = Papers::new();
    let mut bench = Bench::new();
    let address = bench.listen("server", Some(papers.server()), echo);
    bench.open("client", &papers.endpoint(address, "localhost"), pour(pattern(MUCH)));
    bench.run_until(|diary| diary.bytes_read("client") >= MUCH);
    assert!(bench.diary().bytes("server") == pattern(MUCH));
    assert!(bench.diary().bytes("client") == pattern(MUCH));
    assert_eq!(bench.diary().of("client")[..2], [Happened::Opening, Happened::Connected]);
}

#[test]
fn sessions_of_a_port_are_told_apart() {
    let mut bench = Bench::new();
    let address = bench.listen("server", None, echo);
    let names = ["one", "two", "three"];
    for name in names {
        bench.open(name, &endpoint(address), say(name.into()));
    }
    bench.run_until(|diary| names.iter().all(|name| diary.bytes(name) == name.as_bytes()));
    assert_eq!(bench.shard.len(), 6);
}

#[test]
fn what_is_sent_before_the_link_is_there_goes_out_first() {
    let papers = Papers::new();
    let early = pattern(400_000);
    for tls in [false, true] {
        let mut bench = Bench::new();
        let address = bench.listen("server", tls.then(|| papers.server()), silent);
        let endpoint = if tls { papers.endpoint(address, "localhost") } else { endpoint(address) };
        let words = early.clone();
        bench.open(
            "client",
            &endpoint,
            Box::new(move |event, context| match event {
                weir_shard::Event::Opening => {
                    context.send(&words);
                    assert_eq!(context.unsent(), words.len());
                }
                weir_shard::Event::Connected => context.send(b"and then"),
                _ => {}
            }),
        );
        let expected = [&early[..], b"and then"].concat();
        bench.run_until(|diary| diary.bytes_read("server") >= expected.len());
        assert!(bench.diary().bytes("server") == expected, "over TLS: {tls}");
    }
}

#[test]
fn a_peer_that_never_pauses_does_not_keep_others_from_their_turn() {
    let (mut bench, mut flood) = Bench::with("flooded", silent());
    let mut quiet = bench.connect("quiet", echo());
    let flooding = std::thread::spawn(move || while flood.write_all(&[7; 65_536]).is_ok() {});
    for n in 0..10u8 {
        quiet.write_all(&[n]).unwrap();
        bench.run_until(|diary| diary.bytes_read("quiet") > usize::from(n));
        let mut answer = [255];
        quiet.read_exact(&mut answer).unwrap();
        assert_eq!(answer, [n]);
        bench.forget("flooded");
    }
    drop(bench);
    flooding.join().unwrap();
}
