//! Any bytes are a connection of HTTP/2 to either end, or none, and the same however they are cut. What a client says back is bounded
//! by what came.

#![no_main]

mod halves;

use bytes::Bytes;
use halves::halves;
use libfuzzer_sys::fuzz_target;
use weir_web::http2::{Http2Client, Http2Part, Http2Server};
use weir_web::{Request, Response};

const HEAD: &[u8] = b"GET /a?b=c HTTP/1.1\r\nHost: host\r\nAccept: */*\r\n\r\n";

/// What a client that has asked for two things gets of each, whether that ended well, and how much it said.
type Answers = [(Vec<Response>, Vec<u8>, Option<bool>); 2];

fn client(pieces: &[&[u8]]) -> (Answers, usize) {
    let mut client = Http2Client::new().expect("a preface");
    for key in 0..2 {
        client.request(key, "https", HEAD).expect("a request");
    }
    let _ = client.output();
    // SETTINGS, with which a server begins: less is left to chance.
    client.take(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
    let (mut answers, mut said) = (Answers::default(), 0);
    for piece in pieces {
        client.take(piece);
        for (key, (heads, body, outcome)) in answers.iter_mut().enumerate() {
            while outcome.is_none() {
                match client.poll(key) {
                    Ok(Some(Http2Part::Head(head))) => heads.push(head),
                    Ok(Some(Http2Part::Piece(piece))) => body.extend_from_slice(&piece),
                    Ok(Some(Http2Part::End)) => *outcome = Some(true),
                    Ok(None) => break,
                    Err(error) => {
                        assert_eq!(error.to_string().lines().count(), 1);
                        *outcome = Some(false);
                    }
                }
            }
        }
        said += client.output().len();
    }
    assert!(answers.iter().all(|(heads, ..)| heads.len() <= 1));
    (answers, said)
}

fn server(pieces: &[&[u8]]) -> Vec<Request> {
    let (mut server, mut requests) = (Http2Server::new(), Vec::new());
    server.take(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    for piece in pieces {
        server.take(piece);
        while let Ok(Some((key, request))) = server.poll_request() {
            let _ = server.answer(key, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", true);
            requests.push(request);
        }
        let _ = server.output();
    }
    requests
}

/// The same as the origin does it: output and bodies are held back, requests are given up.
fn held(pieces: &[&[u8]]) {
    const MOST_OUTPUT: usize = 512;
    let (mut server, mut keys) = (Http2Server::holding(MOST_OUTPUT), Vec::new());
    server.take(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    for piece in pieces {
        if !server.is_behind() {
            server.take(piece);
        }
        while let Ok(Some((key, _))) = server.poll_request() {
            if server.answer(key, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", false).is_ok() {
                keys.push(key);
            }
        }
        let gone = server.given_up();
        keys.retain(|key| !gone.contains(key));
        keys.retain(|key| match server.room(*key, 9) {
            Ok(9) => server.send(*key, Bytes::from_static(b"123456789"), true).is_err(),
            Ok(_) => true,
            Err(_) => false,
        });
        server.advance();
        let output = server.output().len();
        assert!(output <= MOST_OUTPUT + (64 << 10), "{output} bytes wait");
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((whole, pieces)) = halves(data) else { return };
    let (answers, said) = client(&[whole]);
    assert!(said <= whole.len() * 2 + 1_024, "{said} bytes for {}", whole.len());
    // Where what came cannot be read, how much of it was depends on when; what was whole before does not.
    let (cut, _) = client(&pieces);
    for ((heads, body, outcome), (others, other, ended)) in answers.iter().zip(&cut) {
        if *outcome == Some(true) && *ended == Some(true) {
            assert_eq!((heads, body), (others, other));
        }
    }
    let _ = (server(&[whole]), server(&pieces));
    held(&pieces);
});
