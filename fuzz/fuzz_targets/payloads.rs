//! Any payloads of any codec are put together in bounded memory; NAL units come out of payloads as they went in.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_rtc::h264::{Packetiser, is_keyframe, starts_frame};
use weir_rtc::{Assembler, Packetiser as AnyPacketiser, UNIT_HEAD, VideoCodec, opus, rtx};

const KEPT: usize = 200;

fuzz_target!(|data: &[u8]| {
    let Some((&limit, data)) = data.split_first() else { return };
    for codec in VideoCodec::ALL {
        let mut assembler = Assembler::new(codec, KEPT);
        for (at, payload) in data.chunks(33).enumerate() {
            let number = 2 * at as u64 + u64::from(payload[0] & 1);
            assembler.push(number, u32::from(payload[0] >> 4), payload[0] & 2 != 0, payload, |unit| {
                assert!(unit.bytes.len() <= KEPT.min(unit.length));
            });
            codec.unit_heads(payload, |head| assert!(head.len() <= UNIT_HEAD));
            let _ = codec.hints(payload);
        }
        // Whatever is called a unit is cut into payloads that are not too long.
        let most = usize::from(limit).max(16);
        let mut packetiser = AnyPacketiser::new(codec, most, u16::from(limit));
        packetiser.packetise(data.chunks(usize::from(limit) + 1), limit & 1 == 0, |payload, _| {
            assert!(payload.len() <= most);
        });
    }
    let mut assembler = Assembler::new(VideoCodec::H264, KEPT);
    for (at, payload) in data.chunks(33).enumerate() {
        let (skipped, marker) = (u64::from(payload[0] & 1), payload[0] & 2 != 0);
        let number = 2 * at as u64 + skipped;
        assembler.push(number, u32::from(payload[0] >> 4), marker, payload, |unit| {
            assert!(unit.bytes.len() <= KEPT.min(unit.length));
        });
        let _ = (is_keyframe(payload), starts_frame(payload), rtx::parse(payload));
        assert!(opus::duration_ticks(payload).is_none_or(|ticks| ticks <= 5760));
    }

    // Every byte that a payload may not begin with is made one that it may.
    let units: Vec<Vec<u8>> = data
        .chunks(usize::from(limit) + 1)
        .map(|unit| [&[unit[0] & 0xE0 | (unit[0] & 0x1F).clamp(1, 23)][..], &unit[1..]].concat())
        .collect();
    let mut assembler = Assembler::new(VideoCodec::H264, usize::MAX);
    let mut number = 0;
    let mut whole = None;
    Packetiser::new(usize::from(limit)).packetise(units.iter().map(Vec::as_slice), |payload, last| {
        assembler.push(number, 7, last, payload, |unit| {
            assert!(unit.complete);
            whole = Some(unit.bytes.to_vec());
        });
        number += 1;
    });
    let framed: Vec<u8> =
        units.iter().flat_map(|unit| [&(unit.len() as u32).to_be_bytes()[..], unit].concat()).collect();
    assert_eq!(whole.unwrap_or_default(), framed);
});
