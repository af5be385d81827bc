//! What a sender has sent of a track, of which only a part came: by its reports, or else by what is missing.
//!
//! A rate that is read off what arrived shrinks with the loss. A sender report says how many packets and octets of payload
//! were sent (RFC 3550 section 6.4.1); it is believed as long as its packets are those that the sequence numbers tell of,
//! because servers pass on reports of others. Without one, a missing packet is as long as the mean of those that came.

use crate::rtcp::SenderFigures;

/// By how many packets a report and sequence numbers may differ: those on their way, and one in this many.
const ON_THEIR_WAY: u64 = 16;
const ONE_IN: u64 = 8;

/// What came of a track so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Came {
    /// Packets that were expected by their numbers (appendix A.3), and those of them that are missing.
    pub expected: u64,
    /// Of these, how many are missing now.
    pub lost: u64,
    /// Packets that came.
    pub packets: u64,
    /// Their bytes of payload, retransmissions in a stream of their own included.
    pub bytes: u64,
}

impl Came {
    /// The bytes of `lost` packets, each as long as the mean of those that came.
    fn bytes_of(&self, lost: u64) -> u64 {
        (u128::from(self.bytes) * u128::from(lost)).checked_div(u128::from(self.packets)).unwrap_or(0) as u64
    }
}

/// The estimate for one track.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    /// The first report of the sender that is believed, and what had come then.
    base: Option<(SenderFigures, Came)>,
    /// Bytes that were missing at the last report, packets that were, and whether there was a report that says so.
    reported: Option<(u64, u64)>,
}

impl Sent {
    /// A report came of the sender of this track.
    pub fn report(&mut self, figures: &SenderFigures, came: Came) {
        let Some((first, before)) = &self.base else {
            self.base = Some((*figures, came));
            return;
        };
        // Both wrap (section 6.4.1).
        let packets = u64::from(figures.packets.wrapping_sub(first.packets));
        let octets = u64::from(figures.payload_bytes.wrapping_sub(first.payload_bytes));
        let expected = came.expected.saturating_sub(before.expected);
        if packets.abs_diff(expected) > ON_THEIR_WAY + expected / ONE_IN {
            self.restart();
            self.base = Some((*figures, came));
            return;
        }
        let earlier = before.bytes_of(before.lost);
        let missing = octets.saturating_sub(came.bytes.saturating_sub(before.bytes));
        self.reported = Some((earlier + missing, came.lost));
    }

    /// The sender begins again, or another one does.
    pub fn restart(&mut self) {
        *self = Self::default();
    }

    /// Bytes of payload that were sent and have not come, by what is known now.
    pub fn missing_bytes(&self, came: Came) -> u64 {
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

    fn came(expected: u64, lost: u64, bytes: u64) -> Came {
        Came { expected, lost, packets: expected - lost, bytes }
    }

    #[test]
    fn without_reports_a_lost_packet_is_as_long_as_the_mean() {
        let sent = Sent::default();
        assert_eq!(sent.missing_bytes(came(1_000, 200, 800_000)), 200_000);
        assert_eq!(sent.missing_bytes(Came::default()), 0);
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
        let later = Came { expected: 1_200, lost: 220, packets: 980, bytes: 539_000 };
        assert_eq!(sent.missing_bytes(later), 110_000 + 5_500);
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
