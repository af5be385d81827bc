//! A server hears any client the same in one piece and in two, and answers it with a chunk stream.

#![no_main]

mod halves;

use halves::halves;
use libfuzzer_sys::fuzz_target;
use weir_rtmp::chunk::{Limits, Reader};
use weir_rtmp::handshake::PACKET_LEN;
use weir_rtmp::server::Error;
use weir_rtmp::{Server, ServerEvent, ServerOptions};

fn hear(pieces: [&[u8]; 2]) -> (Vec<String>, Result<(), Error>) {
    let mut server = Server::new(ServerOptions { max_message_length: 8192, ..ServerOptions::default() }, 1);
    server.input(&[&[3][..], &[0; 2 * PACKET_LEN]].concat(), &mut |_| ()).expect("a handshake");
    let mut heard = Vec::new();
    let mut result = Ok(());
    for piece in pieces {
        let mut decisions: Vec<fn(&mut Server)> = Vec::new();
        result = server.input(piece, &mut |event| {
            match event {
                ServerEvent::Connect(_) => decisions.push(Server::accept_connect),
                ServerEvent::Publish { .. } => decisions.push(|server| server.accept_publish(1)),
                ServerEvent::Play { .. } => decisions.push(|server| server.accept_play(1)),
                _ => {}
            }
            heard.push(format!("{event:?}"));
        });
        if result.is_err() {
            break;
        }
        for decide in decisions {
            decide(&mut server);
        }
    }
    let said = server.output().split_off(1 + 2 * PACKET_LEN);
    Reader::new(Limits::default()).read(&said, |_| ()).expect("a chunk stream");
    (heard, result)
}

fuzz_target!(|data: &[u8]| {
    let Some((whole, cut)) = halves(data) else { return };
    assert_eq!(hear(cut), hear([whole, &[]]));
});
