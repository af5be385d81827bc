//! The warnings on what the end of a run cut short: a count that was not reached, messages that did not arrive, viewers that waited for
//! a keyframe.

use weir_metrics::common::{KEYFRAME_WAITS, KEYFRAME_WAITS_OVER, OPEN_ENDS, UNITS, UNITS_SHORT};
use weir_metrics::{Recorder, grouped, several};

/// The warnings of a workload with this name and these totals.
pub(crate) fn warnings(name: &str, total: &Recorder) -> Vec<String> {
    let mut warnings = Vec::new();
    let (units, short) = (total.counter(UNITS), total.counter(UNITS_SHORT));
    if short > 0 {
        warnings.push(format!(
            "{name}: {} of {} sent: the count was not reached; leave the duration out, so that the run ends with the count, or give it more time",
            grouped(units),
            grouped(units + short)
        ));
    }
    let open = total.counter(OPEN_ENDS);
    if open > 0 {
        let ends = if open == 1 { "end of a publisher" } else { "ends of publishers" };
        warnings.push(format!(
            "{name}: {} {ends} not known: `lost` counts up to the last message received; publish with a count, or in the same run",
            grouped(open)
        ));
    }
    let waiting = waiting_for_keyframe(total);
    if waiting > 0 {
        warnings.push(format!(
            "{name}: {} still waited for the stream's next keyframe when their time was over: `played.ratio` leaves them out; let them stay for longer than keyframes are apart",
            several(waiting, "viewer")
        ));
    }
    warnings
}

/// How many viewers waited for a keyframe when the run, or a life of their own, was over.
pub(super) fn waiting_for_keyframe(total: &Recorder) -> u64 {
    total.counter(KEYFRAME_WAITS).saturating_sub(total.counter(KEYFRAME_WAITS_OVER))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_metrics::Schema;

    #[test]
    fn a_count_that_was_not_reached_and_an_end_that_nobody_heard_are_said() {
        let mut total = Recorder::new(Schema::new(&[]));
        assert!(warnings("publish", &total).is_empty());
        total.count(UNITS, 14_011);
        total.count(UNITS_SHORT, 5_989);
        assert!(warnings("publish", &total)[0].starts_with("publish: 14,011 of 20,000 sent: "));
        total.count(OPEN_ENDS, 1_000);
        assert!(warnings("play", &total)[1].starts_with("play: 1,000 ends of publishers not known"));
    }

    #[test]
    fn viewers_that_the_end_found_waiting_for_a_keyframe_are_said() {
        let mut total = Recorder::new(Schema::new(&[]));
        total.count(KEYFRAME_WAITS, 50);
        total.count(KEYFRAME_WAITS_OVER, 49);
        assert!(
            warnings("play", &total)[0]
                .starts_with("play: 1 viewer still waited for the stream's next keyframe")
        );
        total.count(KEYFRAME_WAITS_OVER, 1);
        assert!(warnings("play", &total).is_empty());
    }
}
