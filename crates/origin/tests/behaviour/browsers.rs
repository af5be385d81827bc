//! What a page of another site may learn in a browser that is open on the same machine: nothing. Browsers hand an answer to
//! such a page only if the answer allows it (Fetch standard, section 3.2, `Access-Control-Allow-Origin`), and no page of the
//! origin's own needs that.

use crate::peers::{TEST_TIMEOUT, until};
use crate::readers::services;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use weir_origin::{ANY_PORT, HTTP, Origin, OriginConfig, RTC, Tuners};

/// An offer as a browser makes it.
const OFFER: &str = include_str!("../../../rtc/tests/descriptions/offer-chromium-156.sdp");

/// What a page of another site makes its browser send.
const FROM_ELSEWHERE: &str =
    "Host: 127.0.0.1\r\nOrigin: http://elsewhere.example\r\nSec-Fetch-Site: cross-site\r\n";

/// The head of the answer to a request from elsewhere.
fn head(address: SocketAddr, request: &str, fields: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let request = format!("{request} HTTP/1.1\r\n{FROM_ELSEWHERE}{fields}{length}\r\n{body}");
    stream.write_all(request.as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

/// The statuses of the answers to these requests (with their fields and bodies), none of which allows anything.
fn statuses(address: SocketAddr, requests: &[(&str, &str, &str)]) -> Vec<u16> {
    let status = |(request, fields, body): &(&str, &str, &str)| {
        let head = head(address, request, fields, body);
        assert!(!head.to_ascii_lowercase().contains("access-control-"), "{request}: {head}");
        head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap()
    };
    requests.iter().map(status).collect()
}

fn start(faults: &[&str]) -> Origin {
    let config = OriginConfig {
        tuners: Tuners { services: services(1, 1_000_000), ..Tuners::default() },
        faults: faults.iter().map(|fault| fault.parse().unwrap()).collect(),
        ..OriginConfig::default()
    };
    Origin::start(&config.listening(&HTTP, ANY_PORT).listening(&RTC, ANY_PORT)).unwrap()
}

const PREFLIGHT: &str =
    "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type\r\n";

#[test]
fn no_answer_of_a_tuner_server_is_for_pages_of_other_sites() {
    let requests = [
        ("GET /api/services", "", ""),
        ("HEAD /api/version", "", ""),
        ("GET /1.ts", "", ""),
        ("GET /1.ts?chunked=0", "", ""),
        ("GET /nothing", "", ""),
        ("OPTIONS /api/services", PREFLIGHT, ""),
        ("POST /api/services", "", ""),
        ("GET", "", ""),
    ];
    let origin = start(&[]);
    let answers = statuses(origin.address("http").unwrap(), &requests);
    assert_eq!(answers, [200, 200, 200, 200, 404, 405, 405, 400]);
    let origin = start(&["unauthorized phase=connect"]);
    assert_eq!(statuses(origin.address("http").unwrap(), &requests[..2]), [401, 401]);
}

#[test]
fn no_answer_of_whip_or_whep_is_for_pages_of_other_sites() {
    let sdp = "Content-Type: application/sdp\r\n";
    let socket = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let offer_to_view = OFFER.replace("a=sendonly", "a=recvonly");
    let requests = [
        ("POST /live/a?direction=whep", sdp, &*offer_to_view),
        ("POST /live/a?direction=whip", sdp, OFFER),
        ("POST /live/a", sdp, "no description"),
        // A browser sends this one without asking the server first (Fetch standard, "simple" requests).
        ("POST /live/a", "Content-Type: text/plain\r\n", OFFER),
        ("OPTIONS /live/a", PREFLIGHT, ""),
        ("GET /live/a", "", ""),
        ("GET /live/a?direction=whip", "", ""),
        ("GET /live/a", socket, ""),
        ("GET /", "", ""),
        ("PATCH /session/1", "", ""),
        ("DELETE /session/1", "", ""),
        ("PUT /live/a", "", ""),
    ];
    let origin = start(&[]);
    let answers = statuses(origin.address("rtc").unwrap(), &requests);
    assert_eq!(answers, [201, 201, 400, 415, 204, 200, 200, 403, 404, 405, 200, 405]);
    let origin = start(&["unauthorized phase=connect"]);
    assert_eq!(statuses(origin.address("rtc").unwrap(), &requests[..1]), [401]);
}

/// A check of ICE with a tag that nobody signed (RFC 8489 sections 5, 14; RFC 8445 section 7.1).
fn forged_check(username: &str) -> Vec<u8> {
    let mut attributes = Vec::new();
    let mut push = |kind: u16, value: &[u8]| {
        attributes.extend(kind.to_be_bytes());
        attributes.extend((value.len() as u16).to_be_bytes());
        attributes.extend(value);
        attributes.resize(attributes.len().next_multiple_of(4), 0);
    };
    push(0x0006, username.as_bytes());
    push(0x0024, &[0x6E, 0, 0x1E, 0xFF]);
    push(0x8029, &[7; 8]);
    push(0x0008, &[9; 20]);
    let mut check = vec![0, 1];
    check.extend((attributes.len() as u16).to_be_bytes());
    check.extend([0x21, 0x12, 0xA4, 0x42]);
    check.extend([5; 12]);
    check.extend(attributes);
    check
}

#[test]
fn who_sends_checks_that_nobody_signed_is_not_taken_for_the_peer() {
    let origin = start(&[]);
    let mut stream = TcpStream::connect(origin.address("rtc").unwrap()).unwrap();
    let length = OFFER.len();
    let head = format!("Content-Type: application/sdp\r\nContent-Length: {length}\r\nConnection: close");
    write!(stream, "POST /live/a?direction=whip HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n{OFFER}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let value = |description: &str, name: &str| {
        let line = description.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        line.unwrap_or_else(|| panic!("{name}: {description}"))
    };
    let fragments = [&*answer, OFFER].map(|description| value(description, "a=ice-ufrag:"));
    let candidate = value(&answer, "a=candidate:");
    let words: Vec<_> = candidate.split(' ').collect();
    let port: SocketAddr = format!("{}:{}", words[4], words[5]).parse().unwrap();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.send_to(&forged_check(&fragments.join(":")), port).unwrap();
    assert_eq!(origin.rtc().strange, 0);
    // The beginning of a DTLS record: whose it is only the address says.
    stranger.send_to(&[22, 254, 253, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], port).unwrap();
    until("it is a stranger's", || origin.rtc().strange == 1);
}
