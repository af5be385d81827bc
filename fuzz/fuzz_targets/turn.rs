//! Any bytes on a link to a TURN server, in any pieces, are frames or none, and the same ones in other pieces; any
//! answer is understood or passed over.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_metrics::Moment;
use weir_rtc::turn::{Carrier, Client, Frame, Frames, TurnServer, datagrams};

/// A frame: of a channel by its number, or a message.
type FrameParts = (Option<u16>, Vec<u8>);

/// What a link says, up to the first byte that is no frame's.
fn frames(link: &[u8], piece: usize) -> (Vec<FrameParts>, bool) {
    let (mut frames, mut found) = (Frames::default(), Vec::new());
    for piece in link.chunks(piece.max(1)) {
        let mut piece = piece.to_vec();
        let mut input = &mut piece[..];
        loop {
            match frames.take(&mut input) {
                Ok(Some(Frame::Message(bytes))) => found.push((None, bytes.to_vec())),
                Ok(Some(Frame::Channel(number, bytes))) => found.push((Some(number), bytes.to_vec())),
                Ok(None) => break,
                Err(_) => return (found, false),
            }
        }
    }
    (found, true)
}

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = text.parse::<TurnServer>();
    }
    let Some((&piece, link)) = data.split_first() else { return };
    let (found, well) = frames(link, link.len());
    assert_eq!(frames(link, piece.into()), (found.clone(), well));

    // Over UDP a frame is a datagram, and the same one.
    if let [(number, said)] = &found[..]
        && let Some(frame) = Frame::of_datagram(&mut link.to_vec())
    {
        let same = match frame {
            Frame::Message(bytes) => (None, bytes.to_vec()),
            Frame::Channel(number, bytes) => (Some(number), bytes.to_vec()),
        };
        assert_eq!((number, said), (&same.0, &same.1));
    }
    let carrier = if piece % 2 == 0 { Carrier::Tcp } else { Carrier::Udp };
    let (mut client, mut out) = (Client::new("user", "word", carrier), Vec::new());
    let mut now = Moment::from_nanos(0);
    client.begin(now, &mut out);
    for (number, mut bytes) in found {
        if number.is_some_and(|number| client.peer_of(number).is_some()) {
            continue;
        }
        // Half of them answer what was asked last.
        if bytes.first().is_some_and(|first| first % 2 == 1)
            && let (Some(to), Some(asked)) = (bytes.get_mut(4..20), last(&out))
        {
            to.copy_from_slice(&asked);
        }
        if client.receive(now, &mut bytes, &mut out).is_err() {
            return;
        }
        let peer = std::net::SocketAddr::from(([10, 0, 0, bytes.len() as u8], 9));
        client.send(now, peer, &bytes, &mut out);
        client.bind(now, peer, &mut out);
        if let Some(due) = client.due() {
            now = now.max(due);
            client.handle_timeout(now, &mut out);
        }
        // What it says is frames itself.
        assert!(frames(&out, 7).1);
        assert_eq!(datagrams(&out).map(<[u8]>::len).sum::<usize>(), out.len());
    }
    client.end(now, &mut out);
});

/// Cookie and transaction of the last message.
fn last(out: &[u8]) -> Option<[u8; 16]> {
    let (said, _) = frames(out, out.len());
    let message = said.iter().rev().find(|(number, _)| number.is_none())?;
    message.1.get(4..20)?.try_into().ok()
}
