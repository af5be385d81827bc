//! The warning on a count that was not reached, or whose last messages did not arrive.

use weir_metrics::common::{OPEN_ENDS, UNITS, UNITS_SHORT};
use weir_metrics::{Recorder, grouped};

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
    warnings
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
}
