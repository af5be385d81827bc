//! Handshakes, client against server, in splits of every size.

use weir_rtmp::handshake::{Client, Error, PACKET_LEN, Progress, Scheme, Server};

/// Lets client and server speak in pieces of `piece` bytes. Returns the schemes they end with.
fn shake(offered: Scheme, seed: u64, piece: usize) -> (Scheme, Scheme) {
    let mut client = Client::new(offered, seed);
    let mut server = Server::new(seed + 1);
    let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
    client.start(&mut to_server);
    assert_eq!(to_server.len(), 1 + PACKET_LEN);

    let mut progress = (Progress::Pending, Progress::Pending);
    while progress != (Progress::Done, Progress::Done) {
        let said = std::mem::take(&mut to_server);
        for mut bytes in said.chunks(piece) {
            progress.1 = server.input(&mut bytes, &mut to_client).unwrap();
            assert!(bytes.is_empty());
        }
        let said = std::mem::take(&mut to_client);
        for mut bytes in said.chunks(piece) {
            progress.0 = client.input(&mut bytes, &mut to_server).unwrap();
            assert!(bytes.is_empty());
        }
    }
    (client.scheme(), server.scheme())
}

#[test]
fn a_simple_client_is_answered_simply() {
    for piece in [1, 2, 7, 1535, 1536, 1537, 1538, 10_000] {
        assert_eq!(shake(Scheme::Simple, 1, piece), (Scheme::Simple, Scheme::Simple));
    }
}

#[test]
fn a_digest_is_answered_with_a_digest() {
    for seed in 0..50 {
        assert_eq!(shake(Scheme::Digest, seed, 1000), (Scheme::Digest, Scheme::Digest));
    }
    assert_eq!(shake(Scheme::Digest, 1, 1), (Scheme::Digest, Scheme::Digest));
}

#[test]
fn a_client_that_offered_a_digest_takes_a_simple_answer() {
    let mut client = Client::new(Scheme::Digest, 1);
    let mut c2 = Vec::new();
    let answer = [&[3][..], &[0; 8], &[0x5A; 1528], &[0xA5; 1536]].concat();
    assert_eq!(client.input(&mut &answer[..], &mut c2), Ok(Progress::Done));
    assert_eq!(client.scheme(), Scheme::Simple);
    assert_eq!(c2, answer[1..1537], "an echo of S1");
}

#[test]
fn a_simple_server_echoes_the_client() {
    let mut server = Server::new(1);
    let mut answer = Vec::new();
    let c0_c1 = [&[3][..], &[0; 8], &[0x5A; 1528]].concat();
    assert_eq!(server.input(&mut &c0_c1[..], &mut answer), Ok(Progress::Pending));
    assert_eq!(answer.len(), 1 + 2 * PACKET_LEN);
    assert_eq!(answer[1 + PACKET_LEN..], c0_c1[1..], "S2 is C1");
}

#[test]
fn what_follows_the_handshake_is_left_alone() {
    let mut server = Server::new(1);
    let said = [&[3][..], &[0; 2 * PACKET_LEN], b"chunks"].concat();
    let mut bytes = &said[..];
    assert_eq!(server.input(&mut bytes, &mut Vec::new()), Ok(Progress::Done));
    assert_eq!(bytes, b"chunks");
}

#[test]
fn another_version_is_another_protocol() {
    for version in [0, 6, 0x16, b'H'] {
        let mut bytes = &[version][..];
        assert_eq!(Server::new(1).input(&mut bytes, &mut Vec::new()), Err(Error::Version(version)));
        let mut bytes = &[version][..];
        let mut client = Client::new(Scheme::Simple, 1);
        assert_eq!(client.input(&mut bytes, &mut Vec::new()), Err(Error::Version(version)));
    }
}

#[test]
fn the_same_seed_says_the_same() {
    let start = |seed| {
        let mut bytes = Vec::new();
        Client::new(Scheme::Digest, seed).start(&mut bytes);
        bytes
    };
    assert_eq!(start(1), start(1));
    assert_ne!(start(1), start(2));
}
