//! Any compound packet is read to its end, in bounded time and memory; what is written again reads the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_rtc::NtpTime;
use weir_rtc::rtcp::{Compound, Packet, append_nack, append_sender_report, append_transport_feedback};
use weir_rtc::sender::round_trip;

fuzz_target!(|data: &[u8]| {
    for packet in Compound::new(data).flatten() {
        match packet {
            Packet::SenderReport(report) => {
                let blocks: Vec<_> = report.blocks.collect();
                for block in &blocks {
                    let _ = round_trip(NtpTime(1 << 50), block);
                }
                let mut out = Vec::new();
                append_sender_report(report.sender, &report.figures, &blocks, &mut out);
                let Some(Ok(Packet::SenderReport(again))) = Compound::new(&out).next() else {
                    panic!("no sender report")
                };
                assert_eq!(again.figures, report.figures);
                assert_eq!(again.blocks.collect::<Vec<_>>(), blocks);
            }
            Packet::ReceiverReport(report) => assert!(report.blocks.count() <= 31),
            Packet::Nack(nack) => {
                let numbers: Vec<_> = nack.sequence_numbers().collect();
                assert!(numbers.len() <= data.len() * 17 / 4);
                append_nack(nack.sender, nack.media, &numbers, &mut Vec::new());
            }
            Packet::TransportFeedback(feedback) => {
                let statuses: Vec<_> = feedback.statuses().collect();
                assert!(statuses.len() <= usize::from(u16::MAX));
                let Some(first) = statuses.first() else { continue };
                let ticks: Vec<_> = statuses.iter().map(|status| status.ticks).collect();
                let mut out = Vec::new();
                let base = first.sequence_number;
                let reported = append_transport_feedback((1, 2), feedback.number, base, &ticks, &mut out);
                if reported > 0 {
                    let Some(Ok(Packet::TransportFeedback(again))) = Compound::new(&out).next() else {
                        panic!("no feedback")
                    };
                    let read = again.statuses().map(|status| status.ticks);
                    let absolute = |ticks: Option<i64>| ticks.map(|ticks| ticks + again.reference_ticks);
                    assert!(read.map(absolute).eq(ticks[..reported].iter().copied()));
                }
            }
            Packet::Bitrate(estimate) => {
                let _ = estimate.sources().count();
            }
            Packet::Extended(report) => {
                let _ = report.last_reports().count();
            }
            Packet::PictureLoss { .. } | Packet::FullIntraRequest | Packet::Other { .. } => {}
        }
    }
});
