//! The figures that only MPEG-TS has: the analyser's totals, each by its own name.

use weir_metrics::{Counter, Recorder};
use weir_ts::Counts;

/// Declares a figure for each total, `ts.` before its name, and where it is read.
macro_rules! totals {
    ($($total:ident $(as $name:ident)?: $unit:ident, $help:literal;)*) => {
        /// A handle for each, by the name of the total.
        #[allow(non_upper_case_globals)]
        mod figure {
            weir_metrics::figures! {
                base = weir_metrics::common::FIGURES.len() as u16;
                pub FIGURES;
                $($total: Counter = totals!(@name $total $($name)?), $unit, $help;)*
            }
        }

        /// Their declarations.
        pub use figure::FIGURES;

        const TOTALS: &[(Counter, fn(&Counts) -> u64)] = &[$((figure::$total, |counts| counts.$total)),*];
    };
    (@name $total:ident $name:ident) => { concat!("ts.", stringify!($name)) };
    (@name $total:ident) => { concat!("ts.", stringify!($total)) };
}

totals! {
    null_packets: Count, "null packets";
    gap_events: Count, "places where a continuity counter shows that packets are missing";
    lost_packets: Count, "packets that are missing there at the least";
    lost_estimate: Count, "about how many packets are missing, by the rate of the stream too";
    lost_unknown: Count, "times from one clock reference to the next with gaps about which `ts.lost_estimate` knows no more than `ts.lost_packets`";
    legal_duplicates: Count, "repeated packets that the standard allows";
    illegal_duplicates: Count, "packets that are repeated in any other way";
    transport_errors: Count, "packets with transport_error_indicator";
    scrambled_packets: Count, "packets scrambled with the even or the odd key";
    reserved_scrambling_packets: Count, "packets with the reserved scrambling control 1";
    discontinuity_indicators: Count, "packets with discontinuity_indicator";
    malformed_packets: Count, "packets with an impossible or reserved adaptation field";
    aribts_drops: Count, "continuity errors as the npm package aribts counts them, and `aribts_missed`";
    aribts_missed: Count, "those of them that aribts takes for repetitions: 15 packets are missing";
    resyncs: Count, "alignments found in another place than the one that was due";
    skipped_bytes as skipped: Bytes, "bytes that belong to no whole packet";
    truncated_ends: Count, "streams that ended inside a packet";
    trailing_bytes as trailing: Bytes, "bytes of the packets that streams ended in";
    pcrs: Count, "program clock references";
    pcr_discontinuities: Count, "jumps of a program clock that nothing announces or explains";
    pts_jumps: Count, "presentation or decoding times that jump against the program clock";
    version_changes: Count, "new versions of PAT, PMT and SDT";
    random_access_indicators: Count, "packets with random_access_indicator";
    ts_sync_loss: Count, "TR 101 290 1.1, TS_sync_loss";
    sync_byte_error: Count, "TR 101 290 1.2, Sync_byte_error";
    pat_error: Count, "TR 101 290 1.3, PAT_error";
    pat_error_2: Count, "TR 101 290 1.3.a, PAT_error_2";
    continuity_count_error: Count, "TR 101 290 1.4, Continuity_count_error";
    pmt_error: Count, "TR 101 290 1.5, PMT_error";
    pmt_error_2: Count, "TR 101 290 1.5.a, PMT_error_2";
    pid_error: Count, "TR 101 290 1.6, PID_error";
    transport_error: Count, "TR 101 290 2.1, Transport_error";
    crc_error: Count, "TR 101 290 2.2, CRC_error";
    pcr_repetition_error: Count, "TR 101 290 2.3.a, PCR_repetition_error";
    pcr_discontinuity_indicator_error: Count, "TR 101 290 2.3.b, PCR_discontinuity_indicator_error";
    pcr_accuracy_error: Count, "TR 101 290 2.4, PCR_accuracy_error";
    pts_error: Count, "TR 101 290 2.5, PTS_error";
    cat_error: Count, "TR 101 290 2.6, CAT_error";
}

pub(super) const GAP_EVENTS: Counter = figure::gap_events;
pub(super) const LOST_UNKNOWN: Counter = figure::lost_unknown;

/// Adds what came between two readings of an analyser.
pub(super) fn book(interval: &Counts, recorder: &mut Recorder) {
    for (figure, total) in TOTALS {
        let n = total(interval);
        if n > 0 {
            recorder.count(*figure, n);
        }
    }
}

/// What one viewer has counted in all, as [`super::COLUMNS`] has it.
pub(super) fn columns(bytes: u64, counts: &Counts) -> Vec<u64> {
    let of = |name: &str| match name {
        "media" => bytes,
        "units" => counts.packets,
        _ => counts.get(name.trim_start_matches("ts.")).unwrap_or(0),
    };
    super::COLUMNS.iter().map(|column| of(column.figure)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ts::SCHEMA;

    #[test]
    fn every_total_of_the_analyser_is_a_figure_of_its_name() {
        for name in Counts::NAMES {
            // These two are common figures: `media` and `units`.
            if ["bytes", "packets"].contains(name) {
                continue;
            }
            let figure = format!("ts.{}", name.strip_suffix("_bytes").unwrap_or(name));
            assert!(SCHEMA.position(&figure).is_some(), "{figure}");
        }
        assert_eq!(TOTALS.len(), Counts::NAMES.len() - 2);
    }

    #[test]
    fn every_column_is_a_counter_of_its_name() {
        let counts =
            Counts { packets: 2, aribts_drops: 3, lost_packets: 4, lost_estimate: 5, ..Counts::default() };
        assert_eq!(columns(1, &counts)[..5], [1, 2, 3, 4, 5]);
        for name in crate::ts::COLUMNS.iter().map(|column| column.figure) {
            assert!(SCHEMA.position(name).is_some(), "{name}");
            assert!(!name.starts_with("ts.") || counts.get(&name[3..]).is_some(), "{name}");
        }
    }

    #[test]
    fn an_interval_is_booked_under_its_names() {
        let mut recorder = Recorder::new(SCHEMA);
        book(&Counts { lost_packets: 3, skipped_bytes: 7, ..Counts::default() }, &mut recorder);
        assert_eq!((recorder.counter(figure::lost_packets), recorder.counter(figure::skipped_bytes)), (3, 7));
        assert_eq!(recorder.counter(figure::gap_events), 0);
    }
}
