//! Any bytes are requests to a server and answers to a client, or none, and the same however they are cut.

#![no_main]

mod halves;

use halves::halves;
use libfuzzer_sys::fuzz_target;
use std::mem::{Discriminant, discriminant};
use weir_web::{HttpError, Part, Request, Requests, Response, Responses};

/// The longest body that is taken.
const MOST: usize = 4_096;

/// What was heard, and the kind of error that ended it: the words of one may show what stood behind it.
type ParsedMessages<T> = (Vec<T>, Option<Discriminant<HttpError>>);

fn requests(pieces: &[&[u8]]) -> ParsedMessages<Request> {
    let (mut requests, mut heard) = (Requests::new(MOST), Vec::new());
    for mut piece in pieces.iter().copied() {
        loop {
            match requests.take(&mut piece) {
                Ok(Some(request)) => {
                    assert!(request.body.len() <= MOST);
                    heard.push(request);
                }
                Ok(None) => break,
                Err(error) => return (heard, Some(discriminant(&error))),
            }
        }
    }
    (heard, None)
}

fn answers(pieces: &[&[u8]]) -> ParsedMessages<(Response, Vec<u8>)> {
    let (mut responses, mut heard) = (Responses::new(), Vec::<(Response, Vec<u8>)>::new());
    ["GET", "HEAD", "POST", "GET"].iter().for_each(|method| responses.on_request(method));
    for mut piece in pieces.iter().copied() {
        loop {
            match responses.take(&mut piece) {
                Ok(Some(Part::Head(response))) => heard.push((response, Vec::new())),
                Ok(Some(Part::Piece(piece))) => {
                    heard.last_mut().expect("a head before its body").1.extend_from_slice(piece);
                }
                Ok(Some(Part::End)) => {}
                Ok(None) => break,
                Err(error) => return (heard, Some(discriminant(&error))),
            }
        }
    }
    (heard, None)
}

fuzz_target!(|data: &[u8]| {
    let Some((whole, pieces)) = halves(data) else { return };
    let heard = requests(&[whole]);
    for request in &heard.0 {
        let _ = (request.segments(), request.basic(), request.bearer());
    }
    assert!(requests(&pieces) == heard);
    assert_eq!(answers(&pieces), answers(&[whole]));
});
