//! No descriptor is left. The limit is the process's, so each test does its work in a child of its own.

use crate::bench::{A_WHILE, Bench, Happened, echo, endpoint, patient};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use weir_metrics::{Failure, Side};
use weir_shard::Event;

const CHILD: &str = "WEIR_TEST_CHILD";

/// Runs the test of this name in a child. Says whether this is the child.
fn in_a_child(test: &str) -> bool {
    if std::env::var_os(CHILD).is_some() {
        return true;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("descriptors::{test}"), "--test-threads=1", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    false
}

/// Takes all descriptors of the process but this many.
fn leave(free: usize) -> Vec<File> {
    let limit = Rlimit { current: Some(256), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, limit).unwrap();
    let mut taken: Vec<_> = (0..256).map_while(|_| File::open("/dev/null").ok()).collect();
    taken.truncate(taken.len() - free);
    taken
}

#[test]
fn a_link_that_finds_no_descriptor_fails_on_the_local_side() {
    if !in_a_child("a_link_that_finds_no_descriptor_fails_on_the_local_side") {
        return;
    }
    let (mut bench, mut peer) = Bench::with("first", echo());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let _taken = leave(0);
    let error = bench.try_open("second", &endpoint(listener.local_addr().unwrap())).unwrap_err();
    assert_eq!((error.failure, error.failure.side()), (Failure::OutOfDescriptors, Side::Local));
    assert_eq!(bench.diary().of("second"), [Happened::Closed(Failure::OutOfDescriptors)]);
    assert_eq!(bench.shard.len(), 1);
    // Those that have theirs go on.
    peer.write_all(b"still there?").unwrap();
    bench.run_until(|diary| diary.bytes("first") == b"still there?");
    let mut answer = [0; 12];
    peer.read_exact(&mut answer).unwrap();
}

#[test]
fn a_connection_that_finds_no_descriptor_is_taken_when_one_is_free() {
    if !in_a_child("a_connection_that_finds_no_descriptor_is_taken_when_one_is_free") {
        return;
    }
    let mut bench = Bench::new();
    let address = bench.listen("server", None, || {
        Box::new(|event, context| {
            if let Event::Bytes(bytes) = event {
                context.send(bytes);
                context.close();
            }
        })
    });
    let mut peers: Vec<_> = (0..3).map(|_| patient(TcpStream::connect(address).unwrap())).collect();
    let _taken = leave(1);
    bench.run_for(A_WHILE);
    assert_eq!(bench.diary().count("server", &Happened::Connected), 1);
    for (served, peer) in peers.iter_mut().enumerate() {
        bench.run_until(|diary| diary.count("server", &Happened::Connected) > served);
        peer.write_all(b"hello").unwrap();
        bench.run_until(|diary| diary.bytes_read("server") == (served + 1) * 5);
        let mut answer = [0; 5];
        peer.read_exact(&mut answer).unwrap();
    }
}
