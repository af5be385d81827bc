//! A client hears any server the same in one piece and in two, and answers it with a chunk stream.

#![no_main]

mod halves;

use halves::halves;
use libfuzzer_sys::fuzz_target;
use weir_rtmp::chunk::{Limits, Reader};
use weir_rtmp::client::{Error, Role};
use weir_rtmp::handshake::PACKET_LEN;
use weir_rtmp::{Client, ClientOptions};

fn hear(role: Role, pieces: [&[u8]; 2]) -> (Vec<String>, Result<(), Error>) {
    let options = match role {
        Role::Play => ClientOptions::play("rtmp://localhost/live", "live", "x"),
        Role::Publish => ClientOptions::publish("rtmp://localhost/live", "live", "x"),
    };
    let mut client = Client::new(options, 1);
    client.input(&[&[3][..], &[0; 2 * PACKET_LEN]].concat(), &mut |_| ()).expect("a handshake");
    let mut heard = Vec::new();
    let result = pieces
        .into_iter()
        .try_for_each(|piece| client.input(piece, &mut |event| heard.push(format!("{event:?}"))));
    let said = client.output().split_off(1 + 2 * PACKET_LEN);
    Reader::new(Limits::default()).read(&said, |_| ()).expect("a chunk stream");
    (heard, result)
}

fuzz_target!(|data: &[u8]| {
    let Some((whole, cut)) = halves(data) else { return };
    for role in [Role::Play, Role::Publish] {
        assert_eq!(hear(role, cut), hear(role, [whole, &[]]));
    }
});
