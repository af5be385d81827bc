//! Made Opus, judged by ffmpeg's decoder: inside Ogg (RFC 3533, RFC 7845), which this file writes.

use super::judge::ffmpeg;
use std::io::Write;
use std::time::Duration;
use weir_media::{AudioCodec, AudioSettings, Clip, ClipSettings, Frame, Source, Synthetic, Track};
use weir_metrics::BitRate;

/// The checksum of a page: polynomial 0x04C11DB7, nothing inverted (RFC 3533 section 6).
fn checksum(page: &[u8]) -> u32 {
    page.iter().fold(0, |sum: u32, &byte| {
        (0..8).fold(sum ^ u32::from(byte) << 24, |sum, _| {
            sum << 1 ^ if sum >> 31 == 1 { 0x04C1_1DB7 } else { 0 }
        })
    })
}

/// A page with one packet.
fn page(flags: u8, samples: u64, number: u32, packet: &[u8]) -> Vec<u8> {
    let mut page = b"OggS\0".to_vec();
    page.push(flags);
    page.extend(samples.to_le_bytes());
    page.extend([7, 0, 0, 0]);
    page.extend(number.to_le_bytes());
    page.extend([0; 4]);
    let whole = packet.len() / 255;
    page.push(whole as u8 + 1);
    page.resize(page.len() + whole, 255);
    page.push((packet.len() % 255) as u8);
    page.extend(packet);
    let sum = checksum(&page);
    page[22..26].copy_from_slice(&sum.to_le_bytes());
    page
}

#[test]
fn ffmpeg_decodes_opus_of_every_weight_and_channel_count_without_a_word() {
    for (kbps, channels) in [(2, 1), (24, 2), (64, 2), (101, 2), (103, 1), (400, 2)] {
        let audio = AudioSettings {
            codec: AudioCodec::Opus,
            channels,
            bit_rate: BitRate::from_kbps(kbps),
            ..AudioSettings::default()
        };
        let settings = ClipSettings { audio: Some(audio), ..ClipSettings::default() };
        let mut source = Synthetic::new(std::sync::Arc::new(Clip::prepare(&settings).unwrap()));
        let config = source.audio_config().unwrap().clone();
        assert_eq!((config.codec, config.channels), (AudioCodec::Opus, channels));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sound.opus");
        let mut file = std::fs::File::create(&path).unwrap();
        let head = [&b"OpusHead\x01"[..], &[channels, 0, 0, 0x80, 0xBB, 0, 0, 0, 0, 0]].concat();
        file.write_all(&page(2, 0, 0, &head)).unwrap();
        file.write_all(&page(0, 0, 1, b"OpusTags\x04\0\0\0weir\0\0\0\0")).unwrap();
        let mut frame = Frame::empty();
        let mut packets = 0;
        while packets < 100 {
            source.next(&mut frame).unwrap();
            if frame.track == Track::Audio {
                assert_eq!(frame.decode_time, Duration::from_millis(20) * packets);
                packets += 1;
                let flags = if packets == 100 { 4 } else { 0 };
                let samples = u64::from(packets) * 960;
                file.write_all(&page(flags, samples, packets + 1, &frame.payload)).unwrap();
            }
        }
        let raw = directory.path().join("sound.raw");
        ffmpeg(&format!("-xerror -i {} -f s16le {}", path.display(), raw.display()));
        let samples = std::fs::read(raw).unwrap();
        assert_eq!(samples.len(), 96_000 * 2 * usize::from(channels), "{kbps} kbit/s");
        assert!(samples.iter().all(|&byte| byte == 0), "{kbps} kbit/s: silence is heard");
    }
}
