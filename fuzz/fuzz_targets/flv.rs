//! An FLV file is the same in one piece and in two; a tag's payload lies within the tag.

#![no_main]

mod halves;

use halves::halves;
use libfuzzer_sys::fuzz_target;
use weir_rtmp::flv::{AudioTag, FileError, Limits, Reader, VideoTag};
use weir_rtmp::message::MediaKind;

type Tag = (MediaKind, u32, Vec<u8>);

fn read(pieces: [&[u8]; 2]) -> (Vec<Tag>, Result<u64, FileError>) {
    let mut reader = Reader::new(Limits { tag_length: 4096 });
    let mut tags = Vec::new();
    for mut piece in pieces {
        loop {
            match reader.next(&mut piece) {
                Ok(Some(tag)) => tags.push((tag.kind, tag.timestamp, tag.body.to_vec())),
                Ok(None) => break,
                Err(error) => return (tags, Err(error)),
            }
        }
        assert!(piece.is_empty());
    }
    (tags, Ok(reader.consumed()))
}

fuzz_target!(|data: &[u8]| {
    let Some((whole, cut)) = halves(data) else { return };
    assert_eq!(read(cut), read([whole, &[]]));

    if let Ok(tag) = VideoTag::parse(whole) {
        assert!(tag.payload_offset <= whole.len());
    }
    if let Ok(tag) = AudioTag::parse(whole) {
        assert!(tag.payload_offset <= whole.len());
    }
});
