//! An outgoing stream: the headers of its packets, its sender reports, and what receivers say of it.

use std::time::Duration;

use weir_metrics::Moment;

use crate::NtpTime;
use crate::rtcp::{ReportBlock, SenderFigures};
use crate::rtp::Header;
use crate::time::from_short;

/// One outgoing stream.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    ssrc: u32,
    payload_type: u8,
    clock_rate: u32,
    next_number: u16,
    /// The time stamp of media time zero.
    timestamp: u32,
    packets: u32,
    payload_bytes: u32,
}

impl Sender {
    /// A stream that begins at any sequence number and time stamp; both should be random (RFC 3550 section 5.1).
    pub fn new(ssrc: u32, payload_type: u8, clock_rate: u32, first_number: u16, timestamp: u32) -> Self {
        Self {
            ssrc,
            payload_type,
            clock_rate: clock_rate.max(1),
            next_number: first_number,
            timestamp,
            packets: 0,
            payload_bytes: 0,
        }
    }

    /// The header of the next packet, which belongs to `media_time` and has a payload of `payload_bytes`.
    pub fn next(&mut self, media_time: Duration, marker: bool, payload_bytes: usize) -> Header {
        let sequence_number = self.next_number;
        self.next_number = sequence_number.wrapping_add(1);
        self.packets = self.packets.wrapping_add(1);
        self.payload_bytes = self.payload_bytes.wrapping_add(payload_bytes as u32);
        Header {
            marker,
            payload_type: self.payload_type,
            sequence_number,
            timestamp: self.timestamp_of(media_time),
            ssrc: self.ssrc,
        }
    }

    /// The source.
    pub fn ssrc(&self) -> u32 {
        self.ssrc
    }

    /// The time stamp of a media time, to the nearest tick.
    pub fn timestamp_of(&self, media_time: Duration) -> u32 {
        let rate = u128::from(self.clock_rate);
        let ticks = (media_time.as_nanos() * rate + 500_000_000) / 1_000_000_000;
        self.timestamp.wrapping_add(ticks as u32)
    }

    /// What a sender report says at the moment at which `media_time` is due.
    pub fn figures(&self, now: Moment, media_time: Duration) -> SenderFigures {
        SenderFigures {
            ntp_time: NtpTime::of(now),
            rtp_timestamp: self.timestamp_of(media_time),
            packets: self.packets,
            payload_bytes: self.payload_bytes,
        }
    }
}

/// The round trip that a report block shows at `now` (RFC 3550 section 6.4.1): `now` − last sender report − the
/// receiver's delay. `None` when the receiver had no sender report, or the difference is below zero.
pub fn round_trip(now: NtpTime, block: &ReportBlock) -> Option<Duration> {
    if block.last_sender_report == 0 {
        return None;
    }
    round_trip_of(now, block.last_sender_report, block.delay_since_last_sender_report)
}

/// The same by any time stamp that came back after `delay`, as in [`LastReport`](crate::rtcp::LastReport).
pub fn round_trip_of(now: NtpTime, sent: u32, delay: u32) -> Option<Duration> {
    let units = now.middle().wrapping_sub(sent).wrapping_sub(delay);
    // Above 2³¹ it is below zero: clocks are coarse, and receivers are wrong.
    (units < 1 << 31).then(|| from_short(units))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_time_stamps_go_on_over_their_wraps() {
        let mut sender = Sender::new(7, 96, 90_000, 0xFFFF, u32::MAX - 2999);
        let first = sender.next(Duration::ZERO, false, 100);
        let second = sender.next(Duration::from_nanos(33_333_333), true, 50);
        assert_eq!((first.sequence_number, first.timestamp, first.marker), (0xFFFF, u32::MAX - 2999, false));
        assert_eq!((second.sequence_number, second.timestamp, second.marker), (0, 0, true));
        let figures = sender.figures(Moment::from_nanos(1 << 40), Duration::ZERO);
        assert_eq!((figures.packets, figures.payload_bytes), (2, 150));
    }

    /// The example of RFC 3550 section 6.4.1, figure 2.
    #[test]
    fn the_round_trip_is_that_of_the_standards_example() {
        let block = ReportBlock {
            last_sender_report: 0xB705_2000,
            delay_since_last_sender_report: 0x0005_4000,
            ..ReportBlock::default()
        };
        let now = NtpTime(0xB710_8000 << 16);
        assert_eq!(round_trip(now, &block), Some(Duration::from_millis(6125)));
        assert_eq!(round_trip(NtpTime(0xB70A_5FFF << 16), &block), None);
        assert_eq!(round_trip(now, &ReportBlock::default()), None);
    }
}
