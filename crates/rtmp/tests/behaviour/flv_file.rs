//! FLV files that are written and read again, and files that are broken.

use crate::wire::pieces;
use proptest::collection::vec;
use proptest::prelude::*;
use weir_rtmp::flv::{FileError, Limits, Reader, write_header, write_tag};
use weir_rtmp::message::MediaKind;

type OwnedTag = (MediaKind, u32, Vec<u8>);

fn read(file: &[u8], cuts: &[usize]) -> Result<Vec<OwnedTag>, FileError> {
    let mut reader = Reader::new(Limits { tag_length: 5000 });
    let mut tags = Vec::new();
    for mut piece in pieces(file, cuts) {
        while let Some(tag) = reader.next(&mut piece)? {
            tags.push((tag.kind, tag.timestamp, tag.body.to_vec()));
        }
        assert!(piece.is_empty());
    }
    Ok(tags)
}

fn write(tags: &[OwnedTag]) -> Vec<u8> {
    let mut file = Vec::new();
    write_header(true, true, &mut file);
    for (kind, timestamp, body) in tags {
        write_tag(*kind, *timestamp, body, &mut file);
    }
    file
}

fn tag() -> impl Strategy<Value = OwnedTag> {
    let kind = prop_oneof![Just(MediaKind::Audio), Just(MediaKind::Video), Just(MediaKind::Data)];
    (kind, any::<u32>(), vec(any::<u8>(), 0..300))
}

proptest! {
    #[test]
    fn what_is_written_is_what_is_read(tags in vec(tag(), 0..6), cuts in vec(any::<usize>(), 0..10)) {
        prop_assert_eq!(read(&write(&tags), &cuts), Ok(tags));
    }

    #[test]
    fn any_change_is_read_the_same_in_any_split(
        tags in vec(tag(), 1..4), at in any::<prop::sample::Index>(), byte in any::<u8>(),
        cuts in vec(any::<usize>(), 0..10),
    ) {
        let mut file = write(&tags);
        let at = at.index(file.len());
        file[at] = byte;
        prop_assert_eq!(read(&file, &cuts), read(&file, &[]));
    }
}

#[test]
fn a_file_begins_with_its_signature() {
    assert_eq!(read(b"FLV\x02\x05\0\0\0\x09\0\0\0\0", &[]), Err(FileError::Signature));
    assert_eq!(read(b"\0\0\0\x1Cftypisom", &[]), Err(FileError::Signature));
    assert_eq!(read(b"FLV\x01\x05\0\0\0\x08", &[]), Err(FileError::HeaderLength(8)));
}

#[test]
fn a_longer_header_is_skipped() {
    let mut file = b"FLV\x01\x05\0\0\0\x0Cnew\0\0\0\0".to_vec();
    write_tag(MediaKind::Audio, 1, b"a", &mut file);
    for cut in 0..file.len() {
        assert_eq!(read(&file, &[cut]), Ok(vec![(MediaKind::Audio, 1, b"a".to_vec())]));
    }
}

#[test]
fn a_tag_of_another_type_is_an_error() {
    for kind in [0, 0x28, 0xFF] {
        let file = [&write(&[])[..], &[kind], &[0; 10]].concat();
        assert_eq!(read(&file, &[]), Err(FileError::TagType { at: 13, kind }));
    }
}

#[test]
fn a_tags_length_is_limited() {
    let file = write(&[(MediaKind::Video, 0, vec![0; 5001])]);
    assert_eq!(read(&file, &[]), Err(FileError::TagTooLong { at: 13, length: 5001, limit: 5000 }));
}

/// nginx-http-flv, Node-Media-Server and relays have written 0, the length of the body, or anything.
#[test]
fn the_length_after_a_tag_is_not_looked_at() {
    let tags = vec![(MediaKind::Video, 0, vec![0; 4]), (MediaKind::Audio, 5, vec![1; 3])];
    let mut file = write(&tags);
    // After the header, and after the first tag.
    for at in [9, 13 + 11 + 4] {
        file[at..at + 4].copy_from_slice(&[0x47; 4]);
    }
    for cut in 0..file.len() {
        assert_eq!(read(&file, &[cut]), Ok(tags.clone()));
    }
}

#[test]
fn a_file_header_between_two_tags_is_passed_over() {
    let tag = |time| (MediaKind::Video, time, vec![time as u8; 4]);
    for header in [&b"FLV\x01\x05\0\0\0\x09\0\0\0\0"[..], b"FLV\x01\x05\0\0\0\x0Cnew\0\0\0\0"] {
        let again = write(&[tag(2)]);
        let file = [&write(&[tag(1)])[..], header, &again[13..], header].concat();
        for cut in 0..file.len() {
            assert_eq!(read(&file, &[cut]), Ok(vec![tag(1), tag(2)]));
        }
    }
    let short = [&write(&[tag(1)])[..], b"FLV\x01\x05\0\0\0\x08\0\0"].concat();
    assert_eq!(read(&short, &[]), Err(FileError::HeaderLength(8)));
}

#[test]
fn a_body_in_one_piece_is_returned_where_it_lies() {
    let file = write(&[(MediaKind::Video, 0, b"body".to_vec())]);
    let mut input = &file[..];
    let mut reader = Reader::new(Limits::default());
    let body = reader.next(&mut input).unwrap().unwrap().body;
    assert!(file.as_ptr_range().contains(&body.as_ptr()));
}
