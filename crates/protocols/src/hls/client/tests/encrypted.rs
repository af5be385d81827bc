//! What witnesses read of encrypted segments, of their maps, and of parts that are ranges of them.

use super::*;
use crate::hls::decryption::tests::encrypt;
use crate::hls::inspector::tests::{Transport, fragment, map};
use weir_metrics::common::FRAMES;

const KEY: &[u8; 16] = b"key of segments ";
const KEY_OF_MAP: &[u8; 16] = b"key of the map..";

/// A vector, and the attribute that says it.
const fn vector(number: u8) -> [u8; 16] {
    let mut vector = [0; 16];
    vector[15] = number;
    vector
}

fn answer_bytes(bench: &mut Bench, status: &str, body: &[u8]) {
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
    bench.tell(Event::Bytes(&[head.as_bytes(), body].concat()));
}

/// Three segments of a second, of 25 pictures each, behind these tags.
fn playlist(tags: &str) -> String {
    let segments: String = (0..3).map(|it| format!("#EXTINF:1,\n{it}.m4s\n")).collect();
    format!("#EXTM3U\n#EXT-X-TARGETDURATION:1\n{tags}{segments}")
}

/// RFC 8216, section 4.3.2.4: a key applies to what stands between it and the next one.
#[test]
fn a_map_is_read_with_the_key_that_stands_before_it_and_segments_with_theirs() {
    let key = |uri: &str, iv: &str| format!("#EXT-X-KEY:METHOD=AES-128,URI=\"{uri}\"{iv}\n");
    let (of_map, map_tag) = (key("of-map", ",IV=0x09"), "#EXT-X-MAP:URI=\"init.mp4\"\n");
    let none = "#EXT-X-KEY:METHOD=NONE\n".to_owned();
    let with_keys: [(String, &[&str], bool); 4] = [
        (format!("{of_map}{map_tag}{}", key("of-segments", "")), &["of-segments", "of-map"], true),
        (format!("{map_tag}{}", key("of-segments", "")), &["of-segments"], true),
        (format!("{of_map}{map_tag}{none}"), &["of-map"], false),
        // One key, with another vector for each.
        (format!("{}{map_tag}{}", key("one", ",IV=0x09"), key("one", "")), &["one"], true),
    ];
    for (tags, keys, has_encrypted_segments) in with_keys {
        let mut bench = Bench::start();
        bench.asked();
        bench.answer("200 OK", &playlist(&tags));
        for key in keys {
            assert_eq!(bench.asked(), format!("/live/{key}"), "{tags}");
            let bytes = if *key == "of-map" { KEY_OF_MAP } else { KEY };
            answer_bytes(&mut bench, "200 OK", bytes);
        }
        assert_eq!(bench.asked(), "/live/init.mp4", "{tags}");
        let of_map = if keys.contains(&"one") { KEY } else { KEY_OF_MAP };
        let is_clear = tags.starts_with("#EXT-X-MAP");
        let sent = if is_clear { map() } else { encrypt(&map(), of_map, &vector(9)) };
        answer_bytes(&mut bench, "200 OK", &sent);
        for number in 0..3_u8 {
            assert_eq!(bench.asked(), format!("/live/{number}.m4s"), "{tags}: no key is asked for twice");
            let clear = fragment(u32::from(number) + 1, u64::from(number) * 12_800, &[512; 25]);
            let encrypted = encrypt(&clear, KEY, &vector(number));
            answer_bytes(&mut bench, "200 OK", if has_encrypted_segments { &encrypted } else { &clear });
        }
        let (figures, failure) = bench.end();
        assert_eq!(failure, None);
        let decrypted = if has_encrypted_segments { 3 } else { 0 };
        assert_eq!(
            counts(&figures, [KEYS, SEGMENTS, INSPECTED, FRAMES]),
            [keys.len() as u64, 3, 3, 75],
            "{tags}"
        );
        assert_eq!(counts(&figures, [DECRYPTED, UNDECRYPTED, SEALED]), [decrypted, 0, 0], "{tags}");
    }
}

#[test]
fn a_map_that_its_key_does_not_open_is_counted_and_what_needs_it_is_not_looked_into() {
    let mut bench = Bench::start();
    bench.asked();
    let tags = "#EXT-X-KEY:METHOD=AES-128,URI=\"of-map\",IV=0x09\n#EXT-X-MAP:URI=\"init.mp4\"\n#EXT-X-KEY:METHOD=NONE\n";
    bench.answer("200 OK", &playlist(tags));
    bench.asked();
    answer_bytes(&mut bench, "200 OK", KEY_OF_MAP);
    assert_eq!(bench.asked(), "/live/init.mp4");
    answer_bytes(&mut bench, "200 OK", &map());
    for number in 0..3_u8 {
        bench.asked();
        answer_bytes(
            &mut bench,
            "200 OK",
            &fragment(u32::from(number) + 1, u64::from(number) * 12_800, &[512; 25]),
        );
    }
    let (figures, _) = bench.end();
    assert_eq!(counts(&figures, [SEGMENTS, INSPECTED, UNDECRYPTED]), [3, 0, 1]);
}

/// A segment of one second, whose two halves are parts of it by their ranges.
fn ranges(first: usize, length: usize) -> String {
    let part = |from: usize, to: usize| {
        format!("#EXT-X-PART:DURATION=0.5,URI=\"0.ts\",BYTERANGE=\"{}@{from}\",INDEPENDENT=YES\n", to - from)
    };
    format!(
        "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1\n#EXT-X-PART-INF:PART-TARGET=0.5\n#EXT-X-KEY:METHOD=AES-128,URI=\"key\"\n{}{}",
        part(0, first),
        part(first, length)
    )
}

/// Whether a segment is encrypted as a whole, or each of its parts alone, no playlist says: padding does.
#[test]
fn parts_that_are_ranges_of_an_encrypted_segment_are_read_if_each_is_encrypted_alone_and_named_once_if_not() {
    let clear = Transport::new().segment(&[]);
    let half = 188 * (clear.len() / 188 / 2);
    let alone = [&clear[..half], &clear[half..]].map(|part| encrypt(part, KEY, &vector(0)));
    let whole = encrypt(&clear, KEY, &vector(0));
    // Pictures are filled with what padding is made of.
    let is_no_padding = |at: &usize| !(1..=16).contains(&clear[at - 1]);
    let (first, second) = whole.split_at((16..clear.len()).step_by(16).find(is_no_padding).unwrap());
    for (parts, [decrypted, sealed]) in [([&*alone[0], &*alone[1]], [2, 0]), ([first, second], [0, 1])] {
        let mut bench = Bench::start();
        bench.asked();
        bench.answer("200 OK", &ranges(parts[0].len(), parts[0].len() + parts[1].len()));
        assert_eq!(bench.asked(), "/live/key");
        answer_bytes(&mut bench, "200 OK", KEY);
        for part in parts {
            assert_eq!(bench.asked(), "/live/0.ts");
            answer_bytes(&mut bench, "206 Partial Content", part);
        }
        let (figures, failure) = bench.end();
        assert_eq!(failure, None);
        assert_eq!(counts(&figures, [PARTS, DECRYPTED, SEALED, UNDECRYPTED]), [2, decrypted, sealed, 0]);
    }
}
