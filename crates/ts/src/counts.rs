//! The totals of a stream: plain integers that add and subtract, so that a caller can take what an interval brought.

use std::ops::{Add, AddAssign, Sub};

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What has been counted since the stream began.
        ///
        /// Continuity is judged as ISO/IEC 13818-1 sections 2.4.3.3 and 2.4.3.5 have it. What ETSI TR 101 290 has a
        /// name for bears that name; its clock is the stream's own ([`StreamTime`](crate::StreamTime)), and an
        /// absence counts once however long it lasts.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counts {
            /// The names of the totals, in their order.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// Each total with its name.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }

            /// The total of this name.
            pub fn get(&self, name: &str) -> Option<u64> {
                self.named().find_map(|(this, value)| (this == name).then_some(value))
            }
        }

        impl AddAssign for Counts {
            fn add_assign(&mut self, other: Self) {
                $(self.$name += other.$name;)*
            }
        }

        impl Sub for Counts {
            type Output = Self;

            /// What came since `earlier`, a reading of the same stream.
            fn sub(mut self, earlier: Self) -> Self {
                $(self.$name = self.$name.saturating_sub(earlier.$name);)*
                self
            }
        }
    };
}

counts! {
    /// Bytes that were fed, whole packets or not.
    bytes,
    /// Whole packets with a sync byte, null packets included. Packets that are damaged at their sync byte are not
    /// in it.
    packets,
    /// Null packets (PID 0x1FFF).
    null_packets,

    /// Places where a continuity counter shows that packets are missing.
    gap_events,
    /// How many are missing there at the least: a counter of four bits hides every whole 16. None where a table was
    /// written again and its packet repeats the counter of the one before, and on a PID that has never had a payload.
    lost_packets,
    /// About how many are missing: `lost_packets`, or more where between clock references more are missing by the
    /// rate of the stream, beyond that rate's own scatter; without a gap only where null packets show that no packets are
    /// filtered out.
    lost_estimate,
    /// Intervals between clock references in which continuity broke and about which `lost_estimate` knows no more than the
    /// counters say: the rate scatters by more than they can hide, or is not known.
    lost_unknown,
    /// Repetitions that section 2.4.3.3 allows: one, at once, every byte the same but the clock reference.
    legal_duplicates,
    /// A packet that repeats in any other way: a second time, or not at once. A counter that repeats with another content
    /// is a gap of 15.
    illegal_duplicates,
    /// Packets with `transport_error_indicator`. Nothing else in them is believed.
    transport_errors,
    /// Packets whose payload is scrambled with the even or the odd key (`transport_scrambling_control` 2, 3).
    scrambled_packets,
    /// Packets with the reserved `transport_scrambling_control` 1.
    reserved_scrambling_packets,
    /// Packets with `discontinuity_indicator`, also those that carry nothing but an adaptation field.
    discontinuity_indicators,
    /// Packets with an adaptation field of impossible length, or with the reserved `adaptation_field_control` 00.
    malformed_packets,
    /// Continuity errors, the classic `#DROPS`: as the npm package aribts counts them, and `aribts_missed`. One for each
    /// packet with a payload, PID 0x1FFF apart, whose counter is neither the next nor a first repetition; packets with
    /// `transport_error_indicator` are passed over; `discontinuity_indicator` restarts the count only with a payload.
    /// The rule is applied to whole packets: where alignment breaks, aribts' own reader loses packets that are there,
    /// and takes packets without a sync byte for whole ones.
    aribts_drops,
    /// Of `aribts_drops`, those that aribts itself does not count: the counter repeats, and the content is another, so
    /// that 15 packets are missing. aribts looks at the counter alone.
    aribts_missed,

    /// Alignment found in another place than the one that was due, the beginning of the stream included.
    resyncs,
    /// Bytes that belong to no whole packet: between a loss of alignment and the next lock, before the first lock,
    /// and packets whose sync byte is wrong.
    skipped_bytes,
    /// Streams that ended inside a packet: 0 or 1.
    truncated_ends,
    /// Bytes of the packet that the stream ended in.
    trailing_bytes,

    /// Program clock references.
    pcrs,
    /// Jumps of a program clock reference that no `discontinuity_indicator` announces and that the packets between
    /// do not explain: backwards, or over 100 ms away from what they would have taken.
    pcr_discontinuities,
    /// Jumps of a presentation or decoding time against the program clock of over 500 ms.
    pts_jumps,
    /// New versions of PAT, PMT and SDT, each table's first apart, and other contents under the same version.
    version_changes,
    /// Packets with `random_access_indicator`.
    random_access_indicators,

    /// TR 101 290 1.1: two sync bytes one after the other were wrong, or alignment broke.
    ts_sync_loss,
    /// TR 101 290 1.2: wrong bytes where a sync byte was due, while alignment held.
    sync_byte_error,
    /// TR 101 290 1.3: no packet of PID 0 for 0.5 s, another table in it, or scrambled.
    pat_error,
    /// TR 101 290 1.3.a: no PAT section for 0.5 s, another table on PID 0, or scrambled.
    pat_error_2,
    /// TR 101 290 1.4: `gap_events` and `illegal_duplicates`.
    continuity_count_error,
    /// TR 101 290 1.5: no PMT section for 0.5 s on a PID that the PAT names, or scrambled.
    pmt_error,
    /// TR 101 290 1.5.a: the same for each program_map_PID; counted alike.
    pmt_error_2,
    /// TR 101 290 1.6: a video or audio PID that a PMT names did not occur for the period that the caller has set.
    pid_error,
    /// TR 101 290 2.1: `transport_errors`.
    transport_error,
    /// TR 101 290 2.2: sections of PAT, CAT, PMT, NIT, SDT, BAT, EIT, TOT whose CRC is wrong.
    crc_error,
    /// TR 101 290 2.3.a: over 100 ms from one clock reference to the next, by the packets between them.
    pcr_repetition_error,
    /// TR 101 290 2.3.b: a clock reference outside 0 … 100 ms after the one before it, and no `discontinuity_indicator`.
    pcr_discontinuity_indicator_error,
    /// TR 101 290 2.4: over 500 ns off the rate of the stream. Judged where that rate is constant, and nowhere else:
    /// after 16 intervals in a row that agree within 1/2000 of their length and half a packet. An interval from
    /// which whole packets are missing is judged where null packets are sent and the missing ones are lost, as a counter or
    /// `lost_estimate` tells; else they were filtered out.
    pcr_accuracy_error,
    /// TR 101 290 2.5: over 700 ms from one presentation time to the next, for video and audio that is not scrambled.
    pts_error,
    /// TR 101 290 2.6: scrambled packets without a CAT for 0.5 s, or another table on PID 1.
    cat_error,
}

impl Add for Counts {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

/// The totals of one PID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PidCounts {
    /// Whole packets, those with `transport_error_indicator` apart.
    pub packets: u64,
    /// As [`Counts::gap_events`].
    pub gap_events: u64,
    /// As [`Counts::lost_packets`].
    pub lost_packets: u64,
    /// As [`Counts::legal_duplicates`].
    pub legal_duplicates: u64,
    /// As [`Counts::illegal_duplicates`].
    pub illegal_duplicates: u64,
    /// As [`Counts::transport_errors`]; the PID in such a packet may be wrong.
    pub transport_errors: u64,
    /// As [`Counts::scrambled_packets`].
    pub scrambled_packets: u64,
    /// As [`Counts::reserved_scrambling_packets`].
    pub reserved_scrambling_packets: u64,
    /// As [`Counts::discontinuity_indicators`].
    pub discontinuity_indicators: u64,
    /// As [`Counts::aribts_drops`].
    pub aribts_drops: u64,
    /// PES packets that began.
    pub pes_packets: u64,
    /// As [`Counts::random_access_indicators`].
    pub random_access_indicators: u64,
    /// As [`Counts::pts_jumps`].
    pub pts_jumps: u64,
}

/// How grave TR 101 290 takes an indicator to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Needed for decodability (TR 101 290 section 5.2.1).
    First,
    /// Recommended for continuous monitoring (section 5.2.2).
    Second,
}

/// One indicator of TR 101 290 with what was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indicator {
    /// The number in the tables of section 5.2.
    pub number: &'static str,
    /// The name that the report gives it.
    pub name: &'static str,
    /// First or second priority.
    pub priority: Priority,
    /// How often.
    pub count: u64,
}

impl Counts {
    /// The indicators of first and second priority, in the report's order.
    pub fn indicators(&self) -> [Indicator; 15] {
        use Priority::{First, Second};
        [
            ("1.1", "TS_sync_loss", First, self.ts_sync_loss),
            ("1.2", "Sync_byte_error", First, self.sync_byte_error),
            ("1.3", "PAT_error", First, self.pat_error),
            ("1.3.a", "PAT_error_2", First, self.pat_error_2),
            ("1.4", "Continuity_count_error", First, self.continuity_count_error),
            ("1.5", "PMT_error", First, self.pmt_error),
            ("1.5.a", "PMT_error_2", First, self.pmt_error_2),
            ("1.6", "PID_error", First, self.pid_error),
            ("2.1", "Transport_error", Second, self.transport_error),
            ("2.2", "CRC_error", Second, self.crc_error),
            ("2.3.a", "PCR_repetition_error", Second, self.pcr_repetition_error),
            ("2.3.b", "PCR_discontinuity_indicator_error", Second, self.pcr_discontinuity_indicator_error),
            ("2.4", "PCR_accuracy_error", Second, self.pcr_accuracy_error),
            ("2.5", "PTS_error", Second, self.pts_error),
            ("2.6", "CAT_error", Second, self.cat_error),
        ]
        .map(|(number, name, priority, count)| Indicator { number, name, priority, count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_the_difference_of_two_readings() {
        let earlier = Counts { packets: 3, gap_events: 1, ..Counts::default() };
        let later = Counts { packets: 10, gap_events: 1, resyncs: 2, ..Counts::default() };
        let interval = later - earlier;
        assert_eq!(interval, Counts { packets: 7, resyncs: 2, ..Counts::default() });
        assert_eq!(earlier + interval, later);
    }

    #[test]
    fn every_total_is_found_by_its_name() {
        let counts = Counts { lost_packets: 4, ..Counts::default() };
        assert_eq!(counts.get("lost_packets"), Some(4));
        assert_eq!(counts.get("lost"), None);
        assert_eq!(counts.named().count(), Counts::NAMES.len());
    }
}
