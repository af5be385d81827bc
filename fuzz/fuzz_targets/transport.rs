//! ICE and DTLS of two honest ends, with an attacker on the wire that loses, repeats, damages and makes up datagrams:
//! neither end panics, and neither has keys that the other has not.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use weir_metrics::Moment;
use weir_rtc::transport::{
    Certificate, Clock, DtlsRole, Event, Output, Remote, Transport, TransportSettings,
};

thread_local! {
    /// Made once: it takes as long as a handshake.
    static CERTIFICATES: [Certificate; 2] = [(); 2].map(|()| Certificate::generate().expect("a certificate"));
    static START: RefCell<Option<Instant>> = const { RefCell::new(None) };
}

const ADDRESSES: [([u8; 4], u16); 3] =
    [([127, 0, 0, 1], 1_000), ([127, 0, 0, 2], 2_000), ([127, 0, 0, 3], 3_000)];

fn address(at: usize) -> SocketAddr {
    SocketAddr::from(ADDRESSES[at])
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, mut data)) = data.split_first() else { return };
    let instant = START.with_borrow_mut(|start| *start.get_or_insert_with(Instant::now));
    let mut now = Moment::from_nanos(1_000_000_000);
    let clock = Clock::new(now, instant);
    let roles = match first & 1 {
        0 => [DtlsRole::Client, DtlsRole::Server],
        _ => [DtlsRole::Server, DtlsRole::Client],
    };
    let certificates = CERTIFICATES.with(Clone::clone);
    let mut ends: Vec<Transport> = (0..2)
        .map(|at| {
            let certificate = certificates[at].clone();
            let (lite, controlling) = (at == 1 && first & 2 != 0, at == 0);
            Transport::new(TransportSettings { local: address(at), certificate, lite, controlling, clock })
                .expect("an end")
        })
        .collect();
    let descriptions: Vec<_> = (0..2)
        .map(|at| {
            let end = &ends[at];
            let remote = Remote {
                user_fragment: end.user_fragment().to_owned(),
                password: end.password().to_owned(),
                fingerprint: certificates[at].fingerprint(),
            };
            (remote, end.candidates().collect::<Vec<_>>())
        })
        .collect();
    for at in 0..2 {
        let (remote, candidates) = descriptions[1 - at].clone();
        candidates.iter().for_each(|candidate| ends[at].add_candidate(candidate).expect("a candidate"));
        ends[at].connect(now, remote, roles[at]);
    }
    let mut wire: VecDeque<(usize, Vec<u8>)> = VecDeque::new();
    let mut keys = [false; 2];
    for _ in 0..200 {
        for at in 0..2 {
            ends[at].handle_timeout(now);
            while let Some(output) = ends[at].poll() {
                match output {
                    Output::Send { datagram, .. } => wire.push_back((1 - at, datagram)),
                    Output::Event(Event::Keys { .. }) => keys[at] = true,
                    Output::Event(_) => {}
                }
            }
        }
        now = now + Duration::from_millis(10);
        // Without the stranger's next word the wire is as it should be.
        let (word, argument) = match data {
            [word, argument, rest @ ..] => {
                data = rest;
                (*word, *argument)
            }
            _ => (0, 0),
        };
        match word % 6 {
            5 => {
                let length = data.len().min(argument.into());
                let (made_up, rest) = data.split_at(length);
                data = rest;
                let to = usize::from(word / 6 % 2);
                // From a stranger, or in the other's name.
                let from = if word & 0x80 == 0 { 2 } else { 1 - to };
                ends[to].receive(now, address(from), made_up);
            }
            1 => drop(wire.pop_front()),
            2 => wire.extend(wire.front().cloned()),
            3 => {
                if let Some((_, datagram)) = wire.front_mut()
                    && !datagram.is_empty()
                {
                    let at = usize::from(argument) % datagram.len();
                    datagram[at] ^= 1 << (word / 6 % 8);
                }
            }
            4 => now = now + Duration::from_millis(u64::from(argument) * 20),
            _ => {}
        }
        if let Some((to, datagram)) = wire.pop_front() {
            ends[to].receive(now, address(1 - to), &datagram);
        } else if keys == [true; 2] && data.is_empty() {
            break;
        }
        wire.truncate(64);
    }
});
