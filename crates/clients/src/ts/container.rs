//! What an answer holds that is no transport stream, by its first bytes.

/// How many bytes are looked at: a page may begin with a byte order mark and blank lines.
const LOOKED_AT: usize = 64;

/// The first bytes of an answer.
#[derive(Debug, Default)]
pub(super) struct StreamPrefix {
    bytes: Vec<u8>,
}

impl StreamPrefix {
    /// Takes the next piece of the answer; all but the first few bytes cost nothing.
    #[inline]
    pub(super) fn take(&mut self, piece: &[u8]) {
        if self.bytes.len() < LOOKED_AT {
            let room = LOOKED_AT - self.bytes.len();
            self.bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        }
    }

    /// What it is and what to do, if its first bytes say so.
    pub(super) fn name(&self) -> Option<&'static str> {
        let text = self.bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&self.bytes).trim_ascii_start();
        let begins = |with: &[u8]| text.len() >= with.len() && text[..with.len()].eq_ignore_ascii_case(with);
        if self.bytes.starts_with(b"FLV") {
            return Some("it is FLV: write http+flv:// or https+flv:// in place of http:// or https://");
        }
        if self.bytes.starts_with(&[0x1F, 0x8B, 0x08]) {
            return Some("it is compressed by gzip: let the server send it as it is");
        }
        // A compressed IP packet of MMT, or NTP, as it begins a frame of TLV (ARIB STD-B32 part 3).
        if matches!(*self.bytes, [0x7F, 0x01..=0x03 | 0xFE | 0xFF, ..]) {
            return Some("it seems to be MMT/TLV (BS4K), which weir does not read");
        }
        if self.bytes.get(4..8) == Some(b"ftyp") {
            return Some("it is MP4; weir plays MPEG-TS over HTTP");
        }
        if begins(b"#EXTM3U") {
            return Some(
                "it is a playlist of HLS: write http+hls:// or https+hls:// in place of http:// or https://",
            );
        }
        if begins(b"<!doctype html") || begins(b"<html") || begins(b"<head") || begins(b"<body") {
            return Some(
                "it is an HTML page: the URL leads to a page for people, or to one that asks to log in",
            );
        }
        if begins(b"<") {
            return Some("it is XML or HTML; give the URL of a transport stream");
        }
        if begins(b"{") || begins(b"[") {
            return Some("it is JSON, the answer of an API; give the URL of a transport stream");
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_transport_stream_is_named_however_it_is_cut() {
        for (body, words) in [
            (&b"FLV\x01\x05\0\0\0\x09"[..], "it is FLV"),
            (b"#EXTM3U\n#EXT-X-VERSION:3\n", "a playlist of HLS"),
            (b"\xEF\xBB\xBF\r\n<!DOCTYPE HTML>", "an HTML page"),
            (b"<HTML><body>", "an HTML page"),
            (b"<?xml version='1.0'?>", "XML or HTML"),
            (b" {\"code\":404}", "JSON"),
            (b"[]", "JSON"),
            (b"\0\0\0\x18ftypmp42", "MP4"),
            (b"\x1f\x8b\x08\0\0", "gzip"),
            (b"\x7f\x03\x05\x78", "MMT/TLV"),
        ] {
            for size in [1, 3, body.len()] {
                let mut front = StreamPrefix::default();
                body.chunks(size).for_each(|piece| front.take(piece));
                assert!(
                    front.name().is_some_and(|name| name.contains(words)),
                    "{body:?}: {:?}",
                    front.name()
                );
            }
        }
        for body in [&b"G@\0\x10"[..], b"", b"\0\0\0"] {
            let mut front = StreamPrefix::default();
            front.take(body);
            assert_eq!(front.name(), None);
        }
    }
}
