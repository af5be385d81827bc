//! WebRTC by a TURN server over TCP, TLS and UDP: coturn, which shares nothing with weir.

use crate::support::{Air, Run, air, config, measure};
use std::time::Duration;
use weir_origin::{ANY_PORT, IceServer, OriginConfig, RTC};
use weir_testing::{Coturn, free_port, soon};

/// A stream on air whose viewers are told of this TURN server.
fn on_air(host: &str, port: u16, password: &str) -> Air {
    on_air_by(&format!("turn:{host}:{port}?transport=tcp"), password)
}

/// The same, of one that has this URI.
fn on_air_by(uri: &str, password: &str) -> Air {
    let turn = IceServer {
        urls: vec![uri.to_owned()],
        username: Coturn::USER.0.to_owned(),
        credential: password.to_owned(),
    };
    air(&OriginConfig { turn: Some(turn), ..config(&[]) }.listening(&RTC, ANY_PORT))
}

fn count(run: &Run, figure: &str) -> u64 {
    run.count(figure)
}

fn url(scheme: &str, air: &Air) -> String {
    format!("{scheme}://{}/live/a?transport=tcp", air.origin.address("rtc").unwrap())
}

/// How many requests of this method the server has answered with success so far.
fn answered(turn: &Coturn, method: &str) -> usize {
    turn.log().matches(&format!("{method} processed, success")).count()
}

fn play(url: &str, keys: &str) -> Run {
    measure(&format!("drain: 2s\nworkloads: [{{play: '{url}', {keys}}}]"))
}

#[test]
fn viewers_by_a_relay_over_tcp_get_every_packet() {
    let turn = Coturn::start(&["--allow-loopback-peers"]);
    // As it is offered, and as a server says it that does not know its own address.
    for (scheme, host) in [("ws", "127.0.0.1"), ("ws", "0.0.0.0"), ("whep+http", "127.0.0.1")] {
        let air = on_air(host, turn.port, Coturn::USER.1);
        let (made, given_back) = (answered(&turn, "ALLOCATE"), answered(&turn, "REFRESH"));
        let run = play(&url(scheme, &air), "clients: 4, duration: 5s");
        assert_eq!(run.well(), 4, "{scheme}: {:?}", run.failures());
        std::thread::sleep(Duration::from_millis(300));
        let sent = air.origin.counts().sent().units();
        let came = count(&run, "units");
        assert!(came <= sent && came + 200 >= sent && came > 600, "{scheme}: {came} of {sent}");
        assert_eq!((count(&run, "lost"), count(&run, "reordered"), count(&run, "duplicate")), (0, 0, 0));
        assert_eq!((count(&run, "rtc.frames_broken"), count(&run, "rtc.unauthentic")), (0, 0));
        assert_eq!((count(&run, "rtc.strange"), count(&run, "rtc.malformed")), (0, 0));
        let clients = std::fs::read_to_string(run.directory().join("clients.csv")).unwrap();
        assert_eq!(clients.matches(",relay over TCP,").count(), 4, "{clients}");
        assert!(count(&run, "latency") > 100, "witnesses find the stamps");
        let rtc = air.origin.rtc();
        assert!(rtc.connected == 4 && rtc.receiver_reports >= 4 * 3, "{rtc:?}");
        soon("all were by the relay, and gave it back", || {
            answered(&turn, "ALLOCATE") >= made + 4 && answered(&turn, "REFRESH") >= given_back + 4
        });
    }
}

#[test]
fn a_relay_is_reached_over_udp_and_tls_as_its_uri_says() {
    let turn = Coturn::over_every_carrier(&["--allow-loopback-peers"]);
    let port = turn.port;
    let trusted = format!("cacert: '{}'", turn.certificate());
    for (uri, path) in [
        (format!("turn:127.0.0.1:{port}"), "relay over UDP"),
        (format!("turn:127.0.0.1:{port}?transport=udp"), "relay over UDP"),
        (format!("turns:127.0.0.1:{port}"), "relay over TLS"),
        // It does not know its own address.
        (format!("turns:0.0.0.0:{port}?transport=tcp"), "relay over TLS"),
        (format!("turn:127.0.0.1:{port}?transport=tcp"), "relay over TCP"),
    ] {
        let air = on_air_by(&uri, Coturn::USER.1);
        // Only TLS wants to know whom to trust.
        let trust = if uri.starts_with("turns") { &trusted } else { "" };
        let (made, given_back) = (answered(&turn, "ALLOCATE"), answered(&turn, "REFRESH"));
        let url = url("whep+http", &air);
        let keys = format!("play: '{url}', clients: 4, duration: 5s");
        let run = measure(&format!("{trust}\ndrain: 2s\nworkloads: [{{{keys}}}]"));
        assert_eq!(run.well(), 4, "{uri}: {:?}", run.failures());
        std::thread::sleep(Duration::from_millis(300));
        let (sent, came) = (air.origin.counts().sent().units(), count(&run, "units"));
        assert!(came <= sent && came + 200 >= sent && came > 600, "{uri}: {came} of {sent}");
        assert_eq!((count(&run, "lost"), count(&run, "duplicate")), (0, 0), "{uri}");
        assert_eq!((count(&run, "rtc.frames_broken"), count(&run, "rtc.unauthentic")), (0, 0), "{uri}");
        assert_eq!((count(&run, "rtc.strange"), count(&run, "rtc.malformed")), (0, 0), "{uri}");
        let clients = std::fs::read_to_string(run.directory().join("clients.csv")).unwrap();
        assert_eq!(clients.matches(&format!(",{path},")).count(), 4, "{uri}: {clients}");
        soon("all were by the relay, and gave it back", || {
            // A client asks again over UDP if the answer took long, and each question may be answered (RFC 8489, section 6.2.1).
            answered(&turn, "ALLOCATE") >= made + 4 && answered(&turn, "REFRESH") >= given_back + 4
        });
    }
}

#[test]
fn a_relay_over_tls_with_a_certificate_of_nobody_is_not_used() {
    let turn = Coturn::over_every_carrier(&["--allow-loopback-peers"]);
    let air = on_air_by(&format!("turns:127.0.0.1:{}", turn.port), Coturn::USER.1);
    let (kind, clients, _, words) = play(&url("whep+http", &air), "clients: 1, duration: 3s").failure();
    assert_eq!((&*kind, clients), ("tls_failed", 1));
    assert!(words.starts_with(&format!("TURN server 127.0.0.1:{}: ", turn.port)), "{words}");
}

#[test]
fn a_relay_over_udp_that_refuses_or_is_not_there_is_named() {
    let turn = Coturn::over_every_carrier(&["--allow-loopback-peers"]);
    let air = on_air_by(&format!("turn:127.0.0.1:{}", turn.port), "wrong");
    let (kind, clients, _, words) = play(&url("ws", &air), "clients: 2, duration: 3s").failure();
    assert_eq!((&*kind, clients), ("unauthorized", 2), "{words}");
    assert!(words.contains(&format!("TURN server 127.0.0.1:{}: 401 Unauthorized", turn.port)), "{words}");

    let nobody = free_port();
    let air = on_air_by(&format!("turn:127.0.0.1:{nobody}"), Coturn::USER.1);
    let (kind, clients, _, words) = play(&url("ws", &air), "clients: 1, duration: 8s, timeout: 3s").failure();
    assert_eq!((&*kind, clients), ("handshake_timeout", 1), "{words}");
    assert!(words.starts_with(&format!("TURN server 127.0.0.1:{nobody}: ")), "{words}");
}

#[test]
fn a_nonce_that_the_server_replaces_does_not_stop_a_viewer() {
    let turn = Coturn::start(&["--allow-loopback-peers", "--stale-nonce=1", "--channel-lifetime=2"]);
    let air = on_air("127.0.0.1", turn.port, Coturn::USER.1);
    let run = play(&url("ws", &air), "clients: 2, duration: 8s");
    assert_eq!((run.well(), count(&run, "lost")), (2, 0), "{:?}", run.failures());
}

#[test]
fn an_allocation_that_is_refused_fails_in_the_servers_words() {
    let turn = Coturn::start(&["--allow-loopback-peers", "--user-quota=1"]);
    let air = on_air("127.0.0.1", turn.port, "wrong");
    let run = play(&url("ws", &air), "clients: 2, duration: 3s");
    let (kind, clients, side, words) = run.failure();
    assert_eq!((&*kind, clients, &*side), ("unauthorized", 2, "remote"), "{words}");
    assert!(words.contains(&format!("TURN server 127.0.0.1:{}: 401 Unauthorized", turn.port)), "{words}");
    assert!(!words.contains("wrong"), "{words}");

    // One of two fits in.
    let air = on_air("127.0.0.1", turn.port, Coturn::USER.1);
    let run = play(&url("ws", &air), "clients: 2, duration: 3s");
    let (kind, clients, _, words) = run.failure();
    assert_eq!((&*kind, clients, run.well()), ("unavailable", 1, 1), "{words}");
    assert!(words.contains("486 Allocation Quota Reached"), "{words}");

    let nobody = free_port();
    let air = on_air("127.0.0.1", nobody, Coturn::USER.1);
    let (kind, clients, _, words) = play(&url("ws", &air), "clients: 1, duration: 2s").failure();
    assert_eq!((&*kind, clients), ("connection_refused", 1));
    assert!(words.starts_with(&format!("TURN server 127.0.0.1:{nobody}: ")), "{words}");
}

#[test]
fn a_relay_that_does_not_allow_the_server_is_no_path() {
    let turn = Coturn::start(&["--denied-peer-ip=127.0.0.0-127.255.255.255"]);
    let air = on_air("127.0.0.1", turn.port, Coturn::USER.1);
    let (kind, clients, _, words) = play(&url("ws", &air), "clients: 1, duration: 8s, timeout: 5s").failure();
    assert_eq!((&*kind, clients), ("ice_timeout", 1));
    assert!(words.contains("no way to 127.0.0.1:") && words.contains("403 Forbidden IP"), "{words}");
}

#[test]
fn a_relay_that_was_asked_for_and_is_not_offered_is_said() {
    let air = crate::rtc::on_air(&[]);
    for scheme in ["ws", "whep+http"] {
        let (kind, clients, _, words) = play(&url(scheme, &air), "clients: 1, duration: 2s").failure();
        assert_eq!((&*kind, clients), ("rejected", 1));
        assert!(words.contains("a relay was asked for, and the server names no TURN server"), "{words}");
    }
}
