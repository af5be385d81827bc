//! What a packet of 1,316 bytes costs: queued, encrypted if asked for, written, read, put into its place, acknowledged and delivered.
//! Both sides are in the figure; nothing goes over a socket.

use std::net::SocketAddr;
use std::time::{Duration, Instant};
use weir_metrics::Moment;
use weir_srt::{Connection, ConnectionOptions, Encryption, KeyLength, Listener, ListenerAnswer, Passphrase};

const PACKETS: u32 = 400_000;
const ROUNDS: usize = 5;
const PAYLOAD: [u8; 1_316] = [0x47; 1_316];

/// A caller and the connection that a listener has accepted.
fn connected(options: &ConnectionOptions, now: Moment) -> (Connection, Connection) {
    let from: SocketAddr = ([127, 0, 0, 1], 5_000).into();
    let listener = Listener::new(options.clone(), &[7; 32]);
    let mut caller = Connection::call(options.clone(), from.ip(), 9 << 32 | 77, now);
    loop {
        let mut sent = Vec::new();
        caller.flush(&mut |bytes, _| {
            sent.extend_from_slice(bytes);
            1
        });
        let mut out = Vec::new();
        match listener.handle_datagram(from, &sent, now, &mut out) {
            ListenerAnswer::Respond => caller.handle_datagram(&out, now),
            ListenerAnswer::Request(request) => {
                let mut accepted = listener.accept(&request, 5 << 32, now).expect("they are alike");
                accepted.flush(&mut |bytes, _| {
                    caller.handle_datagram(bytes, now);
                    1
                });
                return (caller, accepted);
            }
            ListenerAnswer::Nothing => panic!("a handshake is answered"),
        }
    }
}

fn transfer(encryption: Option<Encryption>, packets: u32) -> f64 {
    let options = ConnectionOptions {
        encryption,
        receive_latency: Duration::from_millis(50),
        ..ConnectionOptions::default()
    };
    let mut now = Moment::from_nanos(1_000_000_000_000);
    let (mut caller, mut accepted) = connected(&options, now);
    let mut delivered = 0;
    let began = Instant::now();
    for number in 0..packets {
        // 20,000 packets a second: 210 Mbit/s.
        now = now + Duration::from_micros(50);
        assert!(caller.send(&PAYLOAD, now));
        if number % 8 == 0 {
            caller.flush(&mut |bytes, length| {
                bytes.chunks(length).map(|datagram| accepted.handle_datagram(datagram, now)).count()
            });
            accepted.handle_timeout(now);
            accepted.deliver(now, &mut |payload| delivered += payload.len());
            accepted.flush(&mut |bytes, length| {
                bytes.chunks(length).map(|datagram| caller.handle_datagram(datagram, now)).count()
            });
            caller.handle_timeout(now);
        }
    }
    let spent = began.elapsed();
    assert!(delivered > 0);
    spent.as_secs_f64() * 1e9 / f64::from(packets)
}

fn main() {
    // `cargo test` runs benches as well, and wants to know only whether this one runs.
    let quick = std::env::args().all(|argument| argument != "--bench");
    let (packets, rounds) = if quick { (PACKETS / 100, 1) } else { (PACKETS, ROUNDS) };
    let passphrase = Passphrase::new("correct horse").expect("it is long enough");
    let with = |key_length| Some(Encryption { key_length, ..Encryption::new(passphrase.clone()) });
    for (name, encryption) in
        [("in clear", None), ("AES-128", with(KeyLength::Aes128)), ("AES-256", with(KeyLength::Aes256))]
    {
        let best = (0..rounds).map(|_| transfer(encryption.clone(), packets)).fold(f64::INFINITY, f64::min);
        println!("{name}: {best:.0} ns a packet of 1,316 bytes, both sides together");
    }
}
