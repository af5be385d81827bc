//! Any bytes are what comes over an RTSP connection, or are not, and the same however they are cut; descriptions, transports and
//! challenges are read in bounded memory, interleaved packets come apart, and payloads of what they describe become frames.

#![no_main]

mod halves;

use halves::halves;
use libfuzzer_sys::fuzz_target;
use std::mem::{Discriminant, discriminant};
use std::time::Duration;
use weir_rtsp::{
    Challenge, Deinterleaver, Description, Item, LONGEST_BODY, Login, MOST_MEDIA, Payload, Reader, RtspError,
    SessionHeader, TagReader, Transport,
};

/// What was read, and the kind of error that ended it: the words of one may show what stood behind it.
fn read(pieces: &[&[u8]]) -> (Vec<String>, Option<Discriminant<RtspError>>) {
    let (mut reader, mut items) = (Reader::new(), Vec::new());
    for mut piece in pieces.iter().copied() {
        loop {
            match reader.take(&mut piece) {
                Ok(Some(Item::Request(request))) => {
                    assert!(request.body.len() <= LONGEST_BODY);
                    items.push(format!("{request:?} {} {:?}", request.uri, request.body));
                }
                Ok(Some(Item::Response(response))) => {
                    assert!(response.body.len() <= LONGEST_BODY);
                    describe(&response.body);
                    items.push(format!("{response:?}"));
                }
                Ok(Some(Item::Frame { channel, bytes })) => items.push(format!("{channel} {bytes:?}")),
                Ok(Some(Item::Rest(line))) => items.push(format!("{line:?}")),
                Ok(None) => break,
                Err(error) => return (items, Some(discriminant(&error))),
            }
        }
    }
    (items, None)
}

/// Reads a description, and its own bytes as payloads of each of its tracks.
fn describe(bytes: &[u8]) {
    let description = Description::parse(bytes);
    assert!(description.media.len() <= MOST_MEDIA);
    for media in &description.media {
        let _ = description.track("rtsp://host/path", media);
        let Some(format) = media.format() else { continue };
        let mut reader = TagReader::new(media.kind, format, 528);
        for (number, bytes) in (0..).zip(bytes.chunks(40)) {
            let timestamp = u32::from(bytes[0]) << 8;
            let marker = bytes[0] & 1 == 1;
            let payload = Payload { number, timestamp, marker, bytes, since: Duration::ZERO };
            reader.push(&payload, &mut |tag| assert!(tag.head.len() <= tag.length.min(528 + 5)));
        }
    }
    assert!(Description::parse(description.to_string().as_bytes()).media.len() == description.media.len());
}

fuzz_target!(|data: &[u8]| {
    let Some((whole, pieces)) = halves(data) else { return };
    assert_eq!(read(&pieces), read(&[whole]));
    let mut handed_on = 0;
    Deinterleaver::default().take(whole, &mut |_, bytes, length| {
        assert!(length > 0 && length <= bytes.len());
        handed_on += bytes.len();
    });
    assert!(handed_on <= whole.len());
    describe(whole);
    let text = String::from_utf8_lossy(whole);
    let _ = (Transport::parse(&text).count(), SessionHeader::parse(&text));
    if let Some(challenge) = Challenge::strongest(text.split('\n')) {
        let login = Login { user: "user".to_owned(), password: "s3cr3t".to_owned() };
        assert!(!format!("{challenge:?} {login:?}").contains("s3cr3t") || text.contains("s3cr3t"));
        let _ = challenge.answer(&login, "DESCRIBE", "rtsp://host/path", 1, 1);
    }
});
