//! Answers of a server that are no stream, redirects, and phases that last too long: each is a failure with its words.

use crate::bench::transport::{Framing, Response, stream};
use crate::{Viewer, WITNESS, ms, value};
use weir_metrics::Failure;
use weir_metrics::common::{PLAYED, REQUEST, STARTUP};
use weir_shard::Event;

#[test]
fn every_answer_has_its_failure_and_the_servers_words() {
    for (status, failure) in [
        ("401 Who are you", Failure::Unauthorized),
        ("403 Not you", Failure::Unauthorized),
        ("404 No such service", Failure::StreamNotFound),
        ("410 Gone", Failure::StreamNotFound),
        ("503 Tuner Resource Unavailable", Failure::Unavailable),
        ("429 Too Many Requests", Failure::Rejected),
        ("304 Not Modified", Failure::Rejected),
        ("101 Switching Protocols", Failure::Rejected),
        ("500 Oops", Failure::Rejected),
        ("418 I'm a teapot", Failure::Rejected),
        ("302 Found", Failure::RedirectFailed),
    ] {
        let mut viewer = Viewer::connected(WITNESS);
        viewer.deliver(Response::refusal(status).head().as_bytes());
        viewer.assert_failed(failure, status);
    }
}

#[test]
fn a_redirect_is_followed_to_its_end() {
    let mut viewer = Viewer::connected(WITNESS);
    viewer.rig.take_sent();
    viewer.advance(ms(10));
    for (location, address, path) in [
        ("/y.ts?a=1", "127.0.0.1:80", "/y.ts?a=1"),
        ("http://127.0.0.2:81/a/b", "127.0.0.2:81", "/a/b"),
        ("../c", "127.0.0.2:81", "/c"),
    ] {
        let fields = format!("Location: {location}\r\n");
        viewer.deliver(Response { fields, ..Response::refusal("302 Found") }.head().as_bytes());
        assert_eq!(viewer.rig.reopened.take().unwrap().address, address.parse().unwrap());
        viewer.advance(ms(10));
        viewer.dispatch(Event::Connected);
        let sent = String::from_utf8(viewer.rig.take_sent()).unwrap();
        assert!(sent.starts_with(&format!("GET {path} HTTP/1.1\r\n")), "{sent}");
        assert_eq!(sent.contains("Authorization"), address == "127.0.0.1:80", "{sent}");
    }
    let response = Response::ok(Framing::Length, stream(2));
    viewer.deliver(response.head().as_bytes());
    viewer.deliver(&response.body[..200_000]);
    let figures = viewer.outcome().2;
    assert_eq!(value(&figures, REQUEST), 40, "the way to the stream is part of the request");
    assert_eq!((figures.counter(PLAYED), value(&figures, STARTUP)), (1, 40));
}

#[test]
fn what_cannot_be_read_is_named() {
    for (answer, words) in [
        (
            &b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08"[..],
            "compressed (Content-Encoding: gzip)",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n\x1f\x8b\x08......", "gzip"),
        (b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64", "HTTP/2 only"),
    ] {
        let mut viewer = Viewer::connected(WITNESS);
        viewer.deliver(answer);
        viewer.assert_failed(Failure::MalformedInput, words);
    }
}

#[test]
fn redirects_in_a_circle_and_to_nowhere_end() {
    let mut viewer = Viewer::connected(WITNESS);
    let fields = "Location: /y?token=secret\r\n".to_owned();
    let again = Response { fields, ..Response::refusal("307 Temporary Redirect") };
    for _ in 0..5 {
        viewer.deliver(again.head().as_bytes());
        assert!(viewer.rig.reopened.take().is_some() && !viewer.rig.closed);
        viewer.dispatch(Event::Connected);
    }
    viewer.deliver(again.head().as_bytes());
    viewer
        .assert_failed(Failure::RedirectFailed, "307 Temporary Redirect leads to /y?…: 5 redirects in a row");

    let mut viewer = Viewer::connected(WITNESS);
    let fields = "Location: http://no-such-host.invalid/x\r\n".to_owned();
    viewer.deliver(Response { fields, ..Response::refusal("302 Found") }.head().as_bytes());
    for _ in 0..200 {
        // The name is looked for beside the shard; the clock of the rig stands still for that.
        viewer.dispatch(Event::Timer);
        if viewer.rig.closed {
            break;
        }
        std::thread::sleep(ms(50));
    }
    viewer.assert_failed(Failure::RedirectFailed, "no-such-host.invalid has no address");
}

#[test]
fn an_end_before_the_end_is_told_from_one_that_was_announced() {
    let body = stream(2);
    for (framing, words) in [
        (Framing::Length, "1880 bytes before its announced end"),
        (Framing::Chunked, "before its last chunk"),
    ] {
        let response = Response::ok(framing, body.clone());
        let mut viewer = Viewer::connected(WITNESS);
        viewer.deliver(response.head().as_bytes());
        viewer.deliver(&response.framed(&body[..body.len() - 1_880]));
        viewer.close();
        viewer.assert_failed(Failure::ClosedByPeer, words);
    }
    let mut viewer = Viewer::connected(WITNESS);
    viewer.close();
    viewer.assert_failed(Failure::ClosedByPeer, "before it answered");
    let mut viewer = Viewer::connected(WITNESS);
    viewer.deliver(b"HTTP/1.1 200");
    viewer.close();
    viewer.assert_failed(Failure::ClosedByPeer, "in the head");
}

#[test]
fn a_phase_that_lasts_too_long_is_a_failure_of_that_phase() {
    let head = Response::ok(Framing::Close, Vec::new()).head();
    let tables_only: Vec<u8> = stream(1)[..3 * 188].repeat(40);
    for (bytes, failure, words) in [
        (&b""[..], Failure::RequestTimeout, "did not answer"),
        (b"HTTP/1.1 200 OK\r\n", Failure::RequestTimeout, "did not answer"),
        (head.as_bytes(), Failure::NoMedia, "sent no media"),
        (&[head.as_bytes(), &tables_only].concat(), Failure::NoMedia, "no PAT, PMT and random access point"),
        (
            &[head.as_bytes(), b"words."].concat(),
            Failure::MalformedInput,
            "the first 6 bytes hold no packets",
        ),
    ] {
        let mut viewer = Viewer::connected(WITNESS);
        viewer.deliver(bytes);
        viewer.advance(ms(9_999));
        assert!(!viewer.rig.closed);
        viewer.advance(ms(1));
        viewer.assert_failed(failure, words);
    }
}

#[test]
fn what_is_no_http_and_no_transport_stream_is_malformed_at_once() {
    let head = Response::ok(Framing::Chunked, Vec::new()).head();
    let page = Response::ok(Framing::Length, b"<html>".repeat(100));
    let noise = vec![0u8; 1 << 21];
    for (bytes, words) in [
        (&b"RTSP/1.0 200 OK\r\n\r\n"[..], "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", "not a number"),
        (&[head.as_bytes(), b"\r\n"].concat(), "a chunk begins with byte 0x0d"),
        (&[page.head().as_bytes(), &page.body].concat(), "it is an HTML page"),
        (&[Response::ok(Framing::Close, Vec::new()).head().as_bytes(), &noise].concat(), "hold no packets"),
    ] {
        let mut viewer = Viewer::connected(WITNESS);
        viewer.deliver(bytes);
        viewer.assert_failed(Failure::MalformedInput, words);
    }
}
