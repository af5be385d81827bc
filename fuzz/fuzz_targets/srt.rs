//! Any datagrams, at any time, to a caller in any phase, to a listener, and to a connection that it has accepted: memory stays within
//! the window, what is delivered is in order, and what is answered is SRT again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::net::SocketAddr;
use std::time::Duration;
use weir_metrics::Moment;
use weir_srt::packet::Packet;
use weir_srt::{Connection, ConnectionOptions, Encryption, Listener, ListenerAnswer, Passphrase};

/// What the two say to each other, until they are connected or have had their turns.
fn connect(options: &ConnectionOptions, from: SocketAddr, now: Moment) -> (Connection, Option<Connection>) {
    let listener = Listener::new(options.clone(), &[7; 32]);
    let mut caller = Connection::call(options.clone(), from.ip(), 9 << 32 | 0x7FFF_FFF0, now);
    let mut accepted = None;
    for _ in 0..3 {
        let mut sent = Vec::new();
        caller.flush(&mut |bytes, length| {
            sent.extend(bytes.chunks(length).map(<[u8]>::to_vec));
            bytes.len().div_ceil(length)
        });
        for bytes in sent {
            let mut out = Vec::new();
            match listener.handle_datagram(from, &bytes, now, &mut out) {
                ListenerAnswer::Respond => caller.handle_datagram(&out, now),
                ListenerAnswer::Request(request) => accepted = listener.accept(&request, 5 << 32, now).ok(),
                ListenerAnswer::Nothing => {}
            }
        }
        if let Some(accepted) = &mut accepted {
            accepted.flush(&mut |bytes, length| {
                bytes.chunks(length).map(|it| caller.handle_datagram(it, now)).count()
            });
        }
    }
    (caller, accepted)
}

fuzz_target!(|data: &[u8]| {
    let Some((&flags, mut rest)) = data.split_first() else { return };
    let from: SocketAddr = ([127, 0, 0, 1], 5_000).into();
    let mut now = Moment::from_nanos(1_000_000_000_000);
    let encryption = Passphrase::new("correct horse").ok().filter(|_| flags & 1 != 0).map(Encryption::new);
    let options = ConnectionOptions { encryption, ..ConnectionOptions::default() };
    let listener = Listener::new(options.clone(), &[7; 32]);
    let mut peers = vec![Connection::call(options.clone(), from.ip(), 3, now)];
    if flags & 2 != 0 {
        let (caller, accepted) = connect(&options, from, now);
        peers.extend([caller].into_iter().chain(accepted));
    }
    while let Some((&[length, pause], after)) = rest.split_first_chunk::<2>() {
        let (bytes, after) = after.split_at(after.len().min(length.into()));
        rest = after;
        now = now + Duration::from_millis(u64::from(pause) * u64::from(pause) / 8);
        let mut out = Vec::new();
        if let ListenerAnswer::Request(request) = listener.handle_datagram(from, bytes, now, &mut out) {
            let _ = request.access();
            let _ = listener.accept(&request, 4, now);
        }
        assert!(out.is_empty() || Packet::parse(&out).is_ok());
        for peer in &mut peers {
            // Addressed to it, whatever the bytes say.
            let mut addressed = bytes.to_vec();
            if let Some(field) = addressed.get_mut(12..16) {
                field.copy_from_slice(&peer.socket().to_be_bytes());
            }
            peer.handle_datagram(bytes, now);
            peer.handle_datagram(&addressed, now);
            peer.send(bytes, now);
            peer.handle_timeout(now);
            peer.deliver(now, &mut |payload| assert!(payload.len() <= 1_456));
            // Of what is taken and refused, and of a socket that holds what it has taken.
            let refuses = flags & 4 != 0 && pause & 1 != 0;
            peer.flush(&mut |bytes, length| {
                let count = bytes.chunks(length).map(|it| assert!(Packet::parse(it).is_ok())).count();
                if refuses { count / 2 } else { count }
            });
            if peer.asks_for_unsent(now) {
                peer.on_unsent(u64::from(flags) << 4, now);
            }
            assert!(peer.unacknowledged() <= 8_192);
            while peer.poll_event().is_some() {}
            let counts = peer.statistics();
            assert!(counts.recovered + counts.reordered + counts.dropped <= counts.missing);
        }
    }
});
