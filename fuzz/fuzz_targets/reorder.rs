//! Any packets in any order go once, in order, in bounded memory, and are put together without harm.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::time::Duration;
use weir_metrics::Moment;
use weir_rtc::reorder::{Limits, Reorder, Unit};
use weir_rtc::{Assembler, VideoCodec};

const LIMITS: Limits = Limits { patience: Duration::from_millis(100), packets: 20, bytes: 300 };
const KEPT: usize = 1_000;

fuzz_target!(|data: &[u8]| {
    let (mut reorder, mut assembler) = (Reorder::new(LIMITS), Assembler::new(VideoCodec::H264, KEPT));
    let (mut now, mut last, mut came, mut went) = (Moment::from_nanos(0), None, 0, 0);
    for packet in data.chunks(29) {
        let &[number, rest, ref payload @ ..] = packet else { break };
        now = now + Duration::from_millis(u64::from(rest & 0x1F));
        came += 1;
        let mut on = |unit: Unit<'_>| {
            assert!(last.is_none_or(|last| last < unit.number));
            last = Some(unit.number);
            went += 1;
            assembler.push(unit.number, unit.timestamp, unit.marker, unit.payload, |frame| {
                assert!(frame.bytes.len() <= KEPT.min(frame.length));
            });
        };
        if rest & 0x80 == 0 {
            let (timestamp, marker) = (u32::from(number) / 4, rest & 0x40 != 0);
            reorder.push(now, Unit { number: number.into(), timestamp, marker, payload }, &mut on);
        } else {
            reorder.handle_timeout(now, &mut on);
        }
        assert!(reorder.due().is_none_or(|due| due > now && due <= now + LIMITS.patience));
    }
    let waited = went;
    reorder.restart(|_| went += 1);
    assert!(went - waited <= LIMITS.packets as u64 && went <= came);
});
