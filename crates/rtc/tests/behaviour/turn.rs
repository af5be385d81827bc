//! A TURN client against a server of a few lines that can do wrong, on virtual time.

use std::net::SocketAddr;
use std::time::Duration;

use aws_lc_rs::hmac;
use weir_metrics::Moment;
use weir_rtc::turn::{Carrier, Client, Event, Frame, Frames, TurnError, datagrams};

const COOKIE: [u8; 4] = [0x21, 0x12, 0xA4, 0x42];
const ALLOCATE: u16 = 3;
const REFRESH: u16 = 4;
const PERMIT: u16 = 8;
const BIND: u16 = 9;
/// MD5 of "user:realm:word".
const KEY: [u8; 16] =
    [0x32, 0xa9, 0xdb, 0xa5, 0xfb, 0x69, 0x1b, 0x02, 0x68, 0xd7, 0x1d, 0x81, 0x92, 0xc6, 0xe4, 0xc9];

/// A message taken apart by hand: its type, its transaction, its attributes.
#[derive(Clone, Debug)]
struct Asked {
    kind: u16,
    transaction: [u8; 12],
    attributes: Vec<(u16, Vec<u8>)>,
}

impl Asked {
    fn of(bytes: &[u8]) -> Self {
        let number = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        assert_eq!(&bytes[4..8], COOKIE);
        assert_eq!(bytes.len(), 20 + usize::from(number(2)));
        let mut attributes = Vec::new();
        let mut at = 20;
        while at < bytes.len() {
            let length = usize::from(number(at + 2));
            attributes.push((number(at), bytes[at + 4..at + 4 + length].to_vec()));
            at += 4 + length.next_multiple_of(4);
        }
        Self { kind: number(0), transaction: bytes[8..20].try_into().unwrap(), attributes }
    }

    fn has(&self, kind: u16) -> Option<&[u8]> {
        self.attributes.iter().find(|(this, _)| *this == kind).map(|(_, value)| &value[..])
    }

    fn answer(&self, class: u16, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        message(self.kind | class, self.transaction, attributes)
    }

    /// A consent that is signed, as it must be once the client is challenged (RFC 8489 section 9.2.5).
    fn consent(&self, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        signed(self.answer(0x100, attributes), &KEY)
    }

    fn refuse(&self, code: u16, words: &str, more: &[(u16, &[u8])]) -> Vec<u8> {
        let mut error = vec![0, 0, (code / 100) as u8, (code % 100) as u8];
        error.extend(words.as_bytes());
        self.answer(0x110, &[&[(9, &error[..])], more].concat())
    }
}

fn message(kind: u16, transaction: [u8; 12], attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (kind, value) in attributes {
        body.extend(kind.to_be_bytes());
        body.extend((value.len() as u16).to_be_bytes());
        body.extend_from_slice(value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    let mut bytes = kind.to_be_bytes().to_vec();
    bytes.extend((body.len() as u16).to_be_bytes());
    bytes.extend(COOKIE);
    bytes.extend(transaction);
    bytes.extend(body);
    bytes
}

/// The message with its tag behind it (RFC 8489 section 14.5).
fn signed(mut bytes: Vec<u8>, key: &[u8]) -> Vec<u8> {
    let length = (bytes.len() - 20 + 24) as u16;
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, key), &bytes);
    bytes.extend([0, 8, 0, 20]);
    bytes.extend(tag.as_ref());
    bytes
}

/// An address of version 4, hidden as messages have it.
fn hidden(address: &str) -> Vec<u8> {
    let SocketAddr::V4(address) = address.parse().unwrap() else { panic!("{address}") };
    let mut bytes = vec![0, 1];
    bytes.extend((address.port() ^ 0x2112).to_be_bytes());
    bytes.extend((u32::from(*address.ip()) ^ 0x2112_A442).to_be_bytes());
    bytes
}

fn peer() -> SocketAddr {
    "10.0.0.1:1000".parse().unwrap()
}

/// The client, and what it has sent since it was last looked at.
struct Stage {
    client: Client,
    now: Moment,
    out: Vec<u8>,
}

impl Stage {
    fn new() -> Self {
        Self::over(Carrier::Tcp)
    }

    fn over(carrier: Carrier) -> Self {
        let client = Client::new("user", "word", carrier);
        let mut stage = Self { client, now: Moment::from_nanos(0), out: Vec::new() };
        stage.client.begin(stage.now, &mut stage.out);
        stage
    }

    /// All messages that it sent, and channel data as it is.
    fn sent(&mut self) -> (Vec<Asked>, Vec<(u16, Vec<u8>)>) {
        let mut bytes = std::mem::take(&mut self.out);
        let (mut input, mut frames) = (&mut bytes[..], Frames::default());
        let (mut asked, mut datagrams) = (Vec::new(), Vec::new());
        while let Some(frame) = frames.take(&mut input).unwrap() {
            match frame {
                Frame::Message(bytes) => asked.push(Asked::of(bytes)),
                Frame::Channel(number, bytes) => datagrams.push((number, bytes.to_vec())),
            }
        }
        (asked, datagrams)
    }

    fn asked(&mut self) -> Asked {
        let (asked, _) = self.sent();
        let [asked] = &asked[..] else { panic!("{asked:?}") };
        asked.clone()
    }

    fn hear(&mut self, mut bytes: Vec<u8>) -> Result<String, TurnError> {
        self.client.receive(self.now, &mut bytes, &mut self.out).map(|event| format!("{event:?}"))
    }

    /// Is challenged, answers, and has an allocation that lives for so long.
    fn allocated(lifetime: u32) -> Self {
        let mut stage = Self::new();
        let first = stage.asked();
        assert_eq!((first.kind, first.has(0x19), first.has(6)), (ALLOCATE, Some(&[17, 0, 0, 0][..]), None));
        stage.hear(first.refuse(401, "Unauthorized", &[(0x14, b"realm"), (0x15, b"nonce-1")])).unwrap();
        let second = stage.asked();
        assert_ne!(second.transaction, first.transaction);
        assert_eq!((second.has(6), second.has(0x15)), (Some(&b"user"[..]), Some(&b"nonce-1"[..])));
        let granted = [(0x16, &hidden("192.0.2.1:49152")[..]), (0x0D, &lifetime.to_be_bytes()[..])];
        let event = stage.hear(second.consent(&granted)).unwrap();
        assert_eq!(event, format!("{:?}", Event::Allocated("192.0.2.1:49152".parse().unwrap())));
        stage
    }

    fn advance(&mut self, seconds: u64) {
        let end = self.now + Duration::from_secs(seconds);
        while let Some(due) = self.client.due().filter(|due| *due <= end) {
            self.now = due;
            self.client.handle_timeout(due, &mut self.out);
        }
        self.now = end;
    }
}

#[test]
fn requests_are_signed_as_the_server_asks() {
    let mut stage = Stage::new();
    let first = stage.asked();
    stage.hear(first.refuse(401, "Unauthorized", &[(0x14, b"realm"), (0x15, b"n")])).unwrap();
    let bytes = stage.out.clone();
    let tag = &bytes[bytes.len() - 20..];
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &KEY);
    hmac::verify(&key, &bytes[..bytes.len() - 24], tag).unwrap();
}

#[test]
fn a_password_that_is_wrong_is_no_second_question() {
    let mut stage = Stage::new();
    let challenge: &[(u16, &[u8])] = &[(0x14, b"realm"), (0x15, b"nonce")];
    let first = stage.asked();
    stage.hear(first.refuse(401, "Unauthorized", challenge)).unwrap();
    let second = stage.asked();
    let error = stage.hear(second.refuse(401, "Unauthorized", challenge)).unwrap_err();
    assert_eq!(error, TurnError::Refused { code: 401, words: "Unauthorized".to_owned() });
    assert_eq!(error.to_string(), "401 Unauthorized");
    assert!(stage.sent().0.is_empty());
}

#[test]
fn what_a_server_may_refuse_with_is_told_in_its_words() {
    for (code, words) in
        [(486, "Allocation Quota Reached"), (508, "Insufficient Capacity"), (300, "Try Alternate")]
    {
        let mut stage = Stage::new();
        let first = stage.asked();
        let error = stage.hear(first.refuse(code, words, &[])).unwrap_err();
        assert_eq!(error, TurnError::Refused { code, words: words.to_owned() });
    }
    let mut stage = Stage::new();
    let first = stage.asked();
    assert_eq!(stage.hear(first.consent(&[])), Err(TurnError::Incomplete("XOR-RELAYED-ADDRESS")));
}

#[test]
fn a_nonce_that_has_grown_old_is_replaced_and_not_for_ever() {
    let mut stage = Stage::allocated(600);
    stage.client.send(stage.now, peer(), b"hello", &mut stage.out);
    for round in 0..5 {
        let nonce = format!("nonce-{round}");
        let (asked, _) = stage.sent();
        let permit = asked.iter().find(|asked| asked.kind == PERMIT).expect("it asks again");
        stage.hear(permit.refuse(438, "Stale Nonce", &[(0x15, nonce.as_bytes())])).unwrap();
    }
    let (asked, _) = stage.sent();
    assert_eq!(asked[0].has(0x15), Some(&b"nonce-4"[..]));
    let event = stage.hear(asked[0].refuse(438, "Stale Nonce", &[(0x15, b"nonce-5")])).unwrap();
    assert!(event.contains("Denied") && event.contains("438"), "{event}");
    assert!(stage.sent().0.is_empty());
}

#[test]
fn datagrams_go_as_indications_until_there_is_a_channel() {
    let mut stage = Stage::allocated(600);
    stage.client.send(stage.now, peer(), b"first", &mut stage.out);
    let (asked, datagrams) = stage.sent();
    assert_eq!(asked.iter().map(|asked| asked.kind).collect::<Vec<_>>(), [PERMIT, 0x16]);
    let address = hidden("10.0.0.1:1000");
    assert_eq!((asked[0].has(0x12), asked[1].has(0x12)), (Some(&address[..]), Some(&address[..])));
    assert_eq!((asked[1].has(0x13), datagrams.len()), (Some(&b"first"[..]), 0));
    stage.hear(asked[0].consent(&[])).unwrap();

    stage.client.bind(stage.now, peer(), &mut stage.out);
    let bind = stage.asked();
    assert_eq!((bind.kind, bind.has(0x0C)), (BIND, Some(&[0x40, 0, 0, 0][..])));
    // Until the server has consented it may not know the channel.
    stage.client.send(stage.now, peer(), b"second", &mut stage.out);
    assert_eq!(stage.asked().kind, 0x16);
    stage.hear(bind.consent(&[])).unwrap();
    stage.client.send(stage.now, peer(), b"third", &mut stage.out);
    assert_eq!(stage.sent().1, [(0x4000, b"third".to_vec())]);
    assert_eq!((stage.client.peer_of(0x4000), stage.client.peer_of(0x4001)), (Some(peer()), None));
    assert_eq!(stage.client.peer_of(7), None);

    let data = message(0x17, [3; 12], &[(0x12, &address), (0x13, b"from the peer")]);
    let mut bytes = data.clone();
    let event = stage.client.receive(stage.now, &mut bytes, &mut stage.out).unwrap();
    assert_eq!(event, Event::Datagram(peer(), &mut b"from the peer".to_vec()[..]));
    for without in [&[(0x12, &address[..])][..], &[(0x13, &b"x"[..])]] {
        assert_eq!(stage.hear(message(0x17, [3; 12], without)).unwrap(), "Strange");
    }
}

#[test]
fn a_peer_that_the_server_does_not_allow_is_told_and_not_tried_again() {
    let mut stage = Stage::allocated(600);
    stage.client.send(stage.now, peer(), b"x", &mut stage.out);
    let (asked, _) = stage.sent();
    let event = stage.hear(asked[0].refuse(403, "Forbidden IP", &[])).unwrap();
    assert_eq!(
        event,
        format!("{:?}", Event::Denied { peer: peer(), code: 403, words: "Forbidden IP".to_owned() })
    );
    stage.client.send(stage.now, peer(), b"y", &mut stage.out);
    assert!(stage.out.is_empty());
    let other = "10.0.0.2:1000".parse().unwrap();
    stage.client.send(stage.now, other, b"z", &mut stage.out);
    assert_eq!(stage.sent().0.len(), 2);
}

#[test]
fn what_would_run_out_is_asked_for_again_in_time() {
    let mut stage = Stage::allocated(600);
    stage.client.send(stage.now, peer(), b"x", &mut stage.out);
    stage.client.bind(stage.now, peer(), &mut stage.out);
    for asked in stage.sent().0 {
        if asked.kind != 0x16 {
            stage.hear(asked.consent(&[])).unwrap();
        }
    }
    // A permission lives for 300 s, a channel for 600, and so does this allocation.
    let mut last = [(PERMIT, 0), (BIND, 0), (REFRESH, 0)];
    for second in 1..=3_000 {
        stage.advance(1);
        for asked in stage.sent().0 {
            let at = last.iter_mut().find(|(kind, _)| *kind == asked.kind).unwrap();
            at.1 = second;
            stage.hear(asked.consent(&[(0x0D, &600_u32.to_be_bytes())])).unwrap();
        }
        for (kind, at) in last {
            assert!(second - at < if kind == PERMIT { 300 } else { 600 }, "{kind} at {second}");
        }
    }
    // It is given back at the end, and nothing is kept alive.
    stage.client.end(stage.now, &mut stage.out);
    let end = stage.asked();
    assert_eq!((end.kind, end.has(0x0D)), (REFRESH, Some(&[0; 4][..])));
    assert_eq!(stage.client.due(), None);
}

#[test]
fn a_request_takes_the_place_of_one_that_was_never_answered() {
    let mut stage = Stage::allocated(600);
    stage.client.send(stage.now, peer(), b"x", &mut stage.out);
    let first = stage.sent().0.swap_remove(0);
    stage.advance(240);
    let again = stage.asked();
    assert_eq!((first.kind, again.kind), (PERMIT, PERMIT));
    assert_eq!(stage.hear(first.consent(&[])).unwrap(), "Strange");
    assert_eq!(stage.hear(again.consent(&[])).unwrap(), "Nothing");
}

#[test]
fn an_allocation_that_is_lost_is_the_end() {
    let mut stage = Stage::allocated(2);
    stage.advance(1);
    let refresh = stage.asked();
    let error = stage.hear(refresh.refuse(437, "Allocation Mismatch", &[])).unwrap_err();
    assert_eq!(error.to_string(), "437 Allocation Mismatch");
}

#[test]
fn a_request_that_is_lost_over_udp_is_sent_again_and_not_for_ever() {
    let mut stage = Stage::over(Carrier::Udp);
    let first = stage.asked();
    // RFC 8489 section 6.2.1 has these moments, with an RTO of 500 ms.
    for millis in [500, 1_500, 3_500, 7_500, 15_500, 31_500] {
        let due = stage.client.due().unwrap();
        assert_eq!(due, Moment::from_nanos(0) + Duration::from_millis(millis));
        stage.now = due;
        stage.client.handle_timeout(due, &mut stage.out);
        assert_eq!(stage.asked().transaction, first.transaction, "the same request");
    }
    stage.advance(100);
    assert!(stage.out.is_empty() && stage.client.due().is_none());
    let late = stage.hear(first.refuse(401, "Unauthorized", &[(0x14, b"realm"), (0x15, b"n")]));
    assert_eq!(late.unwrap(), "Strange");
}

#[test]
fn what_was_answered_over_udp_is_not_sent_again() {
    let mut stage = Stage::over(Carrier::Udp);
    let first = stage.asked();
    stage.hear(first.refuse(401, "Unauthorized", &[(0x14, b"realm"), (0x15, b"n")])).unwrap();
    let second = stage.asked();
    let granted = [(0x16, &hidden("192.0.2.1:49152")[..]), (0x0D, &600_u32.to_be_bytes()[..])];
    stage.hear(second.consent(&granted)).unwrap();
    stage.advance(120);
    assert!(stage.out.is_empty());
    // Each frame is a datagram of its own: the request for a permission, and the first words to the peer.
    stage.client.send(stage.now, peer(), b"hello", &mut stage.out);
    assert_eq!(datagrams(&stage.out).map(|one| one[..2].to_vec()).collect::<Vec<_>>(), [[0, 8], [0, 0x16]]);
    stage.out.clear();
    // The consent to the permission was lost, and at the end nothing waits for answers.
    stage.advance(1);
    assert_eq!(stage.asked().kind, PERMIT);
    stage.client.end(stage.now, &mut stage.out);
    assert_eq!((stage.asked().kind, stage.client.due()), (REFRESH, None));
}

#[test]
fn answers_of_others_mean_nothing() {
    let mut stage = Stage::allocated(600);
    stage.client.send(stage.now, peer(), b"x", &mut stage.out);
    let (asked, _) = stage.sent();
    let mut other = asked[0].clone();
    other.transaction = [9; 12];
    // Of no question, signed with another key, a consent that nobody signed, no answer at all, no message at all.
    for bytes in [
        other.refuse(403, "Forbidden", &[]),
        asked[0].refuse(403, "Forbidden", &[(8, &[1; 20])]),
        signed(asked[0].answer(0x100, &[]), b"another"),
        asked[0].answer(0x100, &[]),
        asked[0].answer(0, &[]),
        vec![0; 20],
        Vec::new(),
    ] {
        assert_eq!(stage.hear(bytes).unwrap(), "Strange");
    }
    assert_eq!(stage.hear(asked[0].consent(&[])).unwrap(), "Nothing");
}

#[test]
fn a_client_talks_to_so_many_and_no_more() {
    let mut stage = Stage::allocated(600);
    for port in 1..1_000 {
        let peer = SocketAddr::from(([10, 0, 0, 1], port));
        stage.client.send(stage.now, peer, b"x", &mut stage.out);
    }
    let (asked, _) = stage.sent();
    assert_eq!(asked.iter().filter(|asked| asked.kind == PERMIT).count(), 64);
}

#[test]
fn no_secret_is_shown() {
    let shown = format!("{:?}", Client::new("user", "word", Carrier::Udp));
    assert!(!shown.contains("word") && !shown.contains("user"), "{shown}");
}
