//! What a sender has sent of a track, of which only a part came: by its reports, or else by what is missing.
//!
//! A rate that is read off what arrived shrinks with the loss. A sender report says how many packets and octets of payload
//! were sent (RFC 3550 section 6.4.1). Servers pass on reports of others, and some begin to count again from zero with each report, so that a
//! report is held against what came: its packets have to be those that the sequence numbers tell of, and its octets at least what
//! came of them. What it says is then missing is no more than the packets can hold that are. Without a report that is believed, a
//! missing packet is as long as the mean of those that came.

use crate::rtcp::SenderFigures;

/// By how many packets a report and sequence numbers may differ: those on their way, and one in this many.
const ON_THEIR_WAY: u64 = 16;
const ONE_IN: u64 = 8;

/// Of the payload that came between two reports, what they have to say was sent, in percent; the rest is for padding, which one
/// side may count and the other not.
const LEAST_PERCENT: u64 = 95;

/// How many times as much as came may have been sent. If less of a stream comes, its numbers tell of it better.
const MOST_TIMES: u64 = 100;

/// The longest payload of a packet: RTP is not fragmented, and this is what Ethernet carries (RFC 894).
const LONGEST: u64 = 1_500;

/// What came of a track so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceivedTotals {
    /// Packets that were expected by their numbers (appendix A.3), and those of them that are missing.
    pub expected: u64,
    /// Of these, how many are missing now.
    pub lost: u64,
    /// Packets that came.
    pub packets: u64,
    /// Their bytes of payload, retransmissions in a stream of their own included.
    pub bytes: u64,
}

impl ReceivedTotals {
    /// The bytes of `lost` packets, each as long as the mean of those that came.
    fn bytes_of(&self, lost: u64) -> u64 {
        (u128::from(self.bytes) * u128::from(lost)).checked_div(u128::from(self.packets)).unwrap_or(0) as u64
    }
}

/// The estimate for one track.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    /// The first report of the sender that is believed, and what had come then.
    base: Option<(SenderFigures, ReceivedTotals)>,
    /// Bytes that were missing at the last report, packets that were, and whether there was a report that says so.
    reported: Option<(u64, u64)>,
}

impl Sent {
    /// A report came of the sender of this track.
    pub fn report(&mut self, figures: &SenderFigures, came: ReceivedTotals) {
        let Some((first, before)) = &self.base else {
            self.base = Some((*figures, came));
            return;
        };
        // Both wrap (section 6.4.1).
        let packets = u64::from(figures.packets.wrapping_sub(first.packets));
        let octets = u64::from(figures.payload_bytes.wrapping_sub(first.payload_bytes));
        let expected = came.expected.saturating_sub(before.expected);
        let bytes = came.bytes.saturating_sub(before.bytes);
        let believed = packets.abs_diff(expected) <= ON_THEIR_WAY + expected / ONE_IN
            && octets.saturating_mul(100) >= bytes.saturating_mul(LEAST_PERCENT)
            && octets <= bytes.saturating_mul(MOST_TIMES);
        if !believed {
            self.restart();
            self.base = Some((*figures, came));
            return;
        }
        let earlier = before.bytes_of(before.lost);
        let lost = came.lost.saturating_sub(before.lost);
        let missing = octets.saturating_sub(bytes).min(lost.saturating_mul(LONGEST));
        self.reported = Some((earlier + missing, came.lost));
    }

    /// The sender begins again, or another one does.
    pub fn restart(&mut self) {
        *self = Self::default();
    }

    /// Bytes of payload that were sent and have not come, by what is known now.
    pub fn missing_bytes(&self, came: ReceivedTotals) -> u64 {
        match self.reported {
            Some((bytes, lost)) => bytes + came.bytes_of(came.lost.saturating_sub(lost)),
            None => came.bytes_of(came.lost),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NtpTime;

    fn report(packets: u32, payload_bytes: u32) -> SenderFigures {
        SenderFigures { ntp_time: NtpTime::default(), rtp_timestamp: 0, packets, payload_bytes }
    }

    fn came(expected: u64, lost: u64, bytes: u64) -> ReceivedTotals {
        ReceivedTotals { expected, lost, packets: expected - lost, bytes }
    }

    #[test]
    fn without_reports_a_lost_packet_is_as_long_as_the_mean() {
        let sent = Sent::default();
        assert_eq!(sent.missing_bytes(came(1_000, 200, 800_000)), 200_000);
        assert_eq!(sent.missing_bytes(ReceivedTotals::default()), 0);
    }

    #[test]
    fn reports_say_what_was_lost_to_the_byte() {
        let mut sent = Sent::default();
        // Counters begin anywhere, and wrap.
        sent.report(&report(u32::MAX - 9, u32::MAX - 999), came(100, 10, 90_000));
        assert_eq!(sent.missing_bytes(came(100, 10, 90_000)), 10_000);
        // 1,000 more packets were sent, of 500 bytes each, and 800 of them came.
        let now = came(1_100, 210, 90_000 + 400_000);
        sent.report(&report(990, 499_000), now);
        assert_eq!(sent.missing_bytes(now), 10_000 + 100_000);
        // Since then ten more are missing.
        let later = ReceivedTotals { expected: 1_200, lost: 220, packets: 980, bytes: 539_000 };
        assert_eq!(sent.missing_bytes(later), 110_000 + 5_500);
    }

    /// 30 packets of 1,000 bytes between two reports, and one in ten of them is lost.
    fn half_a_second(number: u64) -> ReceivedTotals {
        let (expected, lost) = (30 * number, 3 * number);
        came(expected, lost, (expected - lost) * 1_000)
    }

    #[test]
    fn counts_that_begin_again_with_each_report_are_not_believed() {
        // OvenMediaEngine counts from zero every 500 ms. Whether two of its counts are equal, or one less than the other, is chance.
        for counts in [[30, 30, 30, 30], [30, 29, 31, 30], [30, 15, 16, 45], [0, 0, 0, 0]] {
            for octets in [1_000_u32, 990, 1_010, 700] {
                let mut sent = Sent::default();
                for (number, packets) in (1..).zip(counts) {
                    let octets = (packets * octets).saturating_sub(number as u32);
                    sent.report(&report(packets, octets), half_a_second(number));
                    let lost = half_a_second(number).lost;
                    let missing = sent.missing_bytes(half_a_second(number));
                    // Each as long as the mean, or by a report that fits by chance, of what one packet holds.
                    assert!(missing <= lost * LONGEST, "{counts:?}, {octets}: {missing} for {lost} packets");
                }
            }
        }
    }

    #[test]
    fn octets_that_wrap_are_believed_and_ten_times_too_many_are_not() {
        // At 4 Mbit/s octets wrap after 2.4 hours; packets after 140 days.
        let mut sent = Sent::default();
        sent.report(&report(u32::MAX - 10, u32::MAX - 5_000), half_a_second(1));
        sent.report(&report(19, 24_999), half_a_second(2));
        assert_eq!(sent.missing_bytes(half_a_second(2)), 6_000);
        // A hundred times as much, and as much as nothing.
        for octets in [24_999_u32 + 6_000_000, 24_999, 24_999 + 4_000_000_000] {
            sent.report(&report(49, octets), half_a_second(3));
            assert_eq!(sent.missing_bytes(half_a_second(3)), 9_000, "{octets}");
        }
        // Ten times as much: there are three packets that it can be in.
        let mut sent = Sent::default();
        sent.report(&report(0, 0), half_a_second(0));
        sent.report(&report(30, 300_000), half_a_second(1));
        assert_eq!(sent.missing_bytes(half_a_second(1)), 3 * LONGEST);
    }

    #[test]
    fn a_report_of_another_stream_is_not_believed() {
        let mut sent = Sent::default();
        sent.report(&report(0, 0), came(10, 0, 10_000));
        // A publisher's own report, passed on to one who gets a third of its packets.
        sent.report(&report(3_000, 3_000_000), came(1_010, 0, 1_010_000));
        assert_eq!(sent.missing_bytes(came(1_010, 0, 1_010_000)), 0);
        sent.report(&report(4_000, 4_000_000), came(2_010, 100, 1_910_000));
        assert_eq!(
            sent.missing_bytes(came(2_010, 100, 1_910_000)),
            100_000,
            "as without reports: 100 of 1,000 bytes"
        );
    }
}
