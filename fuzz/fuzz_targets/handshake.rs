//! The handshake takes the same bytes in one piece and in two, and leaves what follows it alone.

#![no_main]

mod halves;

use halves::halves;
use libfuzzer_sys::fuzz_target;
use weir_rtmp::handshake::{Client, Error, PACKET_LEN, Progress, Scheme, Server};

type Shaken = Result<(Progress, usize, Vec<u8>), Error>;

fn shake(
    pieces: [&[u8]; 2],
    mut input: impl FnMut(&mut &[u8], &mut Vec<u8>) -> Result<Progress, Error>,
) -> Shaken {
    let mut said = Vec::new();
    let mut left = 0;
    let mut progress = Progress::Pending;
    for mut piece in pieces {
        progress = input(&mut piece, &mut said)?;
        left += piece.len();
    }
    Ok((progress, left, said))
}

fuzz_target!(|data: &[u8]| {
    let Some((&digest, data)) = data.split_first() else { return };
    // Long enough for a handshake to end, without making the fuzzer find three thousand bytes.
    let mut long = data.to_vec();
    long.resize(data.len().max(2 + 1 + 2 * PACKET_LEN), 0x5A);
    long[2] = 3;
    let Some((whole, cut)) = halves(&long) else { return };

    let server = |pieces| {
        let mut server = Server::new(1);
        shake(pieces, |piece, said| server.input(piece, said))
    };
    let shaken = server([whole, &[]]);
    assert_eq!(server(cut), shaken);
    assert!(shaken.is_ok_and(|(progress, ..)| progress == Progress::Done));

    let client = |pieces| {
        let mut client = Client::new(if digest & 1 == 1 { Scheme::Digest } else { Scheme::Simple }, 1);
        client.start(&mut Vec::new());
        shake(pieces, |piece, said| client.input(piece, said))
    };
    assert_eq!(client(cut), client([whole, &[]]));
});
