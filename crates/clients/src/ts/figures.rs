//! The figures that only MPEG-TS has: the analyser's totals, each by its own name.

use weir_metrics::{Counter, Recorder};
use weir_ts::Counts;

/// Declares a figure for each total, and where it is read.
macro_rules! totals {
    ($($id:ident, $field:ident: $name:literal, $unit:ident, $help:literal;)*) => {
        weir_metrics::figures! {
            base = weir_metrics::common::FIGURES.len() as u16;
            pub(crate) FIGURES;
            $($id: Counter = $name, $unit, $help;)*
        }

        const TOTALS: &[(Counter, fn(&Counts) -> u64)] = &[$(($id, |counts| counts.$field)),*];
    };
}

totals! {
    NULL_PACKETS, null_packets: "ts.null_packets", Count, "null packets";
    GAP_EVENTS, gap_events: "ts.gap_events", Count, "places where a continuity counter shows that packets are missing";
    LOST_PACKETS, lost_packets: "ts.lost_packets", Count, "packets that are missing there at the least";
    LEGAL_DUPLICATES, legal_duplicates: "ts.legal_duplicates", Count, "repeated packets that the standard allows";
    ILLEGAL_DUPLICATES, illegal_duplicates: "ts.illegal_duplicates", Count, "continuity counters that repeat in any other way";
    TRANSPORT_ERRORS, transport_errors: "ts.transport_errors", Count, "packets with transport_error_indicator";
    SCRAMBLED_PACKETS, scrambled_packets: "ts.scrambled_packets", Count, "packets scrambled with the even or the odd key";
    RESERVED_SCRAMBLING_PACKETS, reserved_scrambling_packets: "ts.reserved_scrambling_packets", Count, "packets with the reserved scrambling control 1";
    DISCONTINUITY_INDICATORS, discontinuity_indicators: "ts.discontinuity_indicators", Count, "packets with discontinuity_indicator";
    MALFORMED_PACKETS, malformed_packets: "ts.malformed_packets", Count, "packets with an impossible or reserved adaptation field";
    ARIBTS_DROPS, aribts_drops: "ts.aribts_drops", Count, "continuity errors as the npm package aribts counts them";
    RESYNCS, resyncs: "ts.resyncs", Count, "alignments found in another place than the one that was due";
    SKIPPED_BYTES, skipped_bytes: "ts.skipped", Bytes, "bytes that belong to no whole packet";
    TRUNCATED_ENDS, truncated_ends: "ts.truncated_ends", Count, "streams that ended inside a packet";
    TRAILING_BYTES, trailing_bytes: "ts.trailing", Bytes, "bytes of the packets that streams ended in";
    PCRS, pcrs: "ts.pcrs", Count, "program clock references";
    PCR_DISCONTINUITIES, pcr_discontinuities: "ts.pcr_discontinuities", Count, "jumps of a program clock that nothing announces or explains";
    PTS_JUMPS, pts_jumps: "ts.pts_jumps", Count, "presentation or decoding times that jump against the program clock";
    VERSION_CHANGES, version_changes: "ts.version_changes", Count, "new versions of PAT, PMT and SDT";
    RANDOM_ACCESS_INDICATORS, random_access_indicators: "ts.random_access_indicators", Count, "packets with random_access_indicator";
    TS_SYNC_LOSS, ts_sync_loss: "ts.ts_sync_loss", Count, "TR 101 290 1.1, TS_sync_loss";
    SYNC_BYTE_ERROR, sync_byte_error: "ts.sync_byte_error", Count, "TR 101 290 1.2, Sync_byte_error";
    PAT_ERROR, pat_error: "ts.pat_error", Count, "TR 101 290 1.3, PAT_error";
    PAT_ERROR_2, pat_error_2: "ts.pat_error_2", Count, "TR 101 290 1.3.a, PAT_error_2";
    CONTINUITY_COUNT_ERROR, continuity_count_error: "ts.continuity_count_error", Count, "TR 101 290 1.4, Continuity_count_error";
    PMT_ERROR, pmt_error: "ts.pmt_error", Count, "TR 101 290 1.5, PMT_error";
    PMT_ERROR_2, pmt_error_2: "ts.pmt_error_2", Count, "TR 101 290 1.5.a, PMT_error_2";
    PID_ERROR, pid_error: "ts.pid_error", Count, "TR 101 290 1.6, PID_error";
    TRANSPORT_ERROR, transport_error: "ts.transport_error", Count, "TR 101 290 2.1, Transport_error";
    CRC_ERROR, crc_error: "ts.crc_error", Count, "TR 101 290 2.2, CRC_error";
    PCR_REPETITION_ERROR, pcr_repetition_error: "ts.pcr_repetition_error", Count, "TR 101 290 2.3.a, PCR_repetition_error";
    PCR_DISCONTINUITY_INDICATOR_ERROR, pcr_discontinuity_indicator_error: "ts.pcr_discontinuity_indicator_error", Count, "TR 101 290 2.3.b, PCR_discontinuity_indicator_error";
    PCR_ACCURACY_ERROR, pcr_accuracy_error: "ts.pcr_accuracy_error", Count, "TR 101 290 2.4, PCR_accuracy_error";
    PTS_ERROR, pts_error: "ts.pts_error", Count, "TR 101 290 2.5, PTS_error";
    CAT_ERROR, cat_error: "ts.cat_error", Count, "TR 101 290 2.6, CAT_error";
}

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
    super::COLUMNS.iter().map(|(name, _)| of(name)).collect()
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
            Counts { packets: 2, aribts_drops: 3, lost_packets: 4, gap_events: 5, ..Counts::default() };
        assert_eq!(columns(1, &counts)[..5], [1, 2, 3, 4, 5]);
        for (name, _) in crate::ts::COLUMNS {
            assert!(SCHEMA.position(name).is_some(), "{name}");
            assert!(!name.starts_with("ts.") || counts.get(&name[3..]).is_some(), "{name}");
        }
    }

    #[test]
    fn an_interval_is_booked_under_its_names() {
        let mut recorder = Recorder::new(SCHEMA);
        book(&Counts { lost_packets: 3, skipped_bytes: 7, ..Counts::default() }, &mut recorder);
        assert_eq!((recorder.counter(LOST_PACKETS), recorder.counter(SKIPPED_BYTES)), (3, 7));
        assert_eq!(recorder.counter(GAP_EVENTS), 0);
    }
}
