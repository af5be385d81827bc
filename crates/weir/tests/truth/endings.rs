//! Connections that end badly: each by its name, counted, with the server's own words.

use crate::support::{air, config, free_port, measure, play, shared};
use std::net::TcpStream;
use weir_origin::{MissingStream, Origin};

#[test]
fn three_of_eight_connections_reset_are_three_resets() {
    let _machine = shared();
    let air = air(&config(&["reset viewers=3..5 at=1s"]));
    let run = play(&air.url, "-c 8 -d 3s --warmup 0s --drain 200ms");
    let (kind, clients, side, _) = run.failure();
    assert_eq!((kind.as_str(), clients, side.as_str()), ("reset", 3, "remote"));
    assert_eq!((run.slots("planned"), run.well()), (8, 5));
}

#[test]
fn two_of_six_connections_closed_are_two_closed_by_the_peer() {
    let _machine = shared();
    let air = air(&config(&["close viewers=1..2 at=1s"]));
    let run = play(&air.url, "-c 6 -d 3s --warmup 0s --drain 200ms");
    let (kind, clients, side, words) = run.failure();
    assert_eq!((kind.as_str(), clients, side.as_str()), ("closed_by_peer", 2, "remote"));
    assert!(!words.is_empty());
    assert_eq!((run.slots("planned"), run.well()), (6, 4));
}

#[test]
fn who_is_not_let_in_is_unauthorized_in_the_servers_words() {
    let _machine = shared();
    for phase in ["connect", "play"] {
        let fault = format!("unauthorized phase={phase} words=401 come back with a ticket");
        let origin = Origin::start(&config(&[&fault])).unwrap();
        let url = format!("rtmp://{}/live/a", origin.addresses().rtmp.unwrap());
        let run = play(&url, "-c 5 -d 2s --warmup 0s --drain 200ms");
        let (kind, clients, side, words) = run.failure();
        assert_eq!((kind.as_str(), clients, side.as_str()), ("unauthorized", 5, "remote"), "{phase}");
        assert!(words.contains("come back with a ticket"), "{phase}: {words}");
        assert_eq!((run.slots("planned"), run.well(), run.code), (5, 0, 99), "{phase}");
    }
}

#[test]
fn a_publisher_that_is_not_let_in_is_unauthorized_too() {
    let _machine = shared();
    let origin = Origin::start(&config(&["unauthorized phase=publish words=403 not yours"])).unwrap();
    let url = format!("rtmp://{}/live/a", origin.addresses().rtmp.unwrap());
    let run = measure(["publish", &url, "-d", "2s", "--warmup", "0s", "--drain", "200ms"]);
    let (kind, clients, _, words) = run.failure();
    assert_eq!((kind.as_str(), clients), ("unauthorized", 1));
    assert!(words.contains("403 not yours"), "{words}");
}

#[test]
fn a_server_that_falls_silent_is_named_by_its_phase() {
    let _machine = shared();
    let faults = ["accept", "handshake", "connect", "play"].map(|phase| format!("silent phase={phase}"));
    let expected = ["handshake_timeout", "handshake_timeout", "request_timeout", "request_timeout"];
    std::thread::scope(|scope| {
        for (fault, expected) in faults.iter().zip(expected) {
            scope.spawn(move || {
                let origin = Origin::start(&config(&[fault])).unwrap();
                assert_fails_with(&origin, expected);
            });
        }
    });
}

#[test]
fn a_server_that_consents_and_sends_nothing_has_no_media() {
    let _machine = shared();
    let origin = Origin::start(&config(&[])).unwrap();
    assert_fails_with(&origin, "no_media");
}

fn assert_fails_with(origin: &Origin, expected: &str) {
    let url = format!("rtmp://{}/live/a", origin.addresses().rtmp.unwrap());
    let run = play(&url, "-c 3 -d 4s --timeout 1s --warmup 0s --drain 200ms");
    let (kind, clients, side, words) = run.failure();
    assert_eq!((kind.as_str(), clients, side.as_str()), (expected, 3, "remote"));
    assert!(words.contains("time"), "{words}");
    assert_eq!((run.code, run.total("played")), (99, 0.0));
}

#[test]
fn a_server_that_accepts_no_connection_is_a_connect_timeout() {
    let _machine = shared();
    // A queue of one, filled: the system drops whatever else comes.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let any: std::net::SocketAddr = "127.0.0.1:0".parse().unwrap();
    socket.bind(&any.into()).unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    let _waiting = TcpStream::connect(address).unwrap();
    let url = format!("rtmp://{address}/live/a");
    let run = play(&url, "-c 2 -d 3s --timeout 1s --warmup 0s --drain 200ms");
    assert_eq!(run.failures().into_iter().collect::<Vec<_>>(), [("connect_timeout".to_owned(), 2)]);
}

#[test]
fn nobody_listening_is_a_refused_connection_and_fails_the_run() {
    let _machine = shared();
    let url = format!("rtmp://127.0.0.1:{}/live/a", free_port());
    let run = play(&url, "-c 7 -d 1s --warmup 0s --drain 200ms");
    let (kind, clients, side, _) = run.failure();
    assert_eq!((kind.as_str(), clients, side.as_str()), ("connection_refused", 7, "remote"));
    assert_eq!(run.code, 99);
}

#[test]
fn a_stream_that_nobody_publishes_is_not_found() {
    let _machine = shared();
    let origin =
        Origin::start(&weir_origin::OriginConfig { missing_stream: MissingStream::Refuse, ..config(&[]) })
            .unwrap();
    let url = format!("rtmp://{}/live/nobody", origin.addresses().rtmp.unwrap());
    let run = play(&url, "-c 4 -d 1s --warmup 0s --drain 200ms");
    let (kind, clients, side, words) = run.failure();
    assert_eq!((kind.as_str(), clients, side.as_str()), ("stream_not_found", 4, "remote"));
    assert!(words.contains("NetStream.Play.StreamNotFound"), "{words}");
}
