//! What is said of decoding that was asked for and did not take place, or not of all.

use weir_metrics::common::{DECODERS_FAILED, DECODERS_MISSING, HANDED_IN, NOT_HANDED_IN};
use weir_metrics::{Recorder, grouped};
use weir_setting::{ALLOW_DECODE, DRAIN};

/// The warnings of a workload with this name and these totals, some of whose viewers were to be decoded.
pub(crate) fn warnings(name: &str, total: &Recorder) -> Vec<String> {
    let count = |counter| total.counter(counter);
    let mut warnings = Vec::new();
    let (failed, left_out) = (count(DECODERS_FAILED), count(NOT_HANDED_IN));
    if count(DECODERS_MISSING) > 0 {
        warnings.push(format!(
            "{name}: not decoded: there was no ffmpeg (and nice) in PATH, or an agent was not started with {ALLOW_DECODE}"
        ));
    } else if count(HANDED_IN) == 0 && failed == 0 {
        warnings.push(format!(
            "{name}: not decoded: no witness received H.264, H.265, VP8, VP9 or AV1 in frames, from a picture on that needs no other, or AAC; or ffmpeg was not done with it when the run ended ({DRAIN})"
        ));
    }
    if failed > 0 {
        warnings.push(format!(
            "{name}: {} streams of witnesses are not in `decoded`: their ffmpeg ended before them, or lacks the decoder",
            grouped(failed)
        ));
    }
    if left_out > 0 {
        warnings.push(format!(
            "{name}: {} frames were not handed to ffmpeg: it was too slow for them, or a picture before them was not whole",
            grouped(left_out)
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_metrics::Schema;

    #[test]
    fn what_was_not_decoded_is_said_with_its_reason() {
        let mut total = Recorder::new(Schema::new(&[]));
        assert!(warnings("play", &total)[0].starts_with("play: not decoded: no witness received"));
        total.count(HANDED_IN, 500);
        assert!(warnings("play", &total).is_empty());
        total.count(DECODERS_FAILED, 1);
        total.count(NOT_HANDED_IN, 2_000);
        assert_eq!(warnings("play", &total).len(), 2);
        total.count(DECODERS_MISSING, 4);
        assert!(warnings("play", &total)[0].contains("not decoded: there was no ffmpeg"));
    }
}
