//! Whether a server sends in bursts, out of the times between two reads of its witnesses.

use weir_metrics::Histogram;

/// Share of the time that must have passed in gaps like the usual one: a server that falls silent now and then, or sends when it
/// can, has no rhythm.
const SHARE: f64 = 0.8;
/// How far such a gap may be from the usual one, as a share of it.
const LIKE: f64 = 0.3;

/// The period of a server's bursts, in microseconds: the mean over time of the gaps, so that the many reads of one burst count for the
/// little time that they take.
pub(crate) fn mean_over_time(gaps: &Histogram<u64>) -> f64 {
    let (mut time, mut squares) = (0.0, 0.0);
    for it in gaps.iter_recorded() {
        let (gap, count) = (it.value_iterated_to() as f64, it.count_at_value() as f64);
        time += gap * count;
        squares += gap * gap * count;
    }
    if time > 0.0 { squares / time } else { 0.0 }
}

/// The time between two bursts, in seconds; none where the gaps are not alike.
pub(crate) fn period(gaps: &Histogram<u64>) -> Option<f64> {
    let values =
        || gaps.iter_recorded().map(|it| (it.value_iterated_to() as f64, it.count_at_value() as f64));
    let time: f64 = values().map(|(gap, count)| gap * count).sum();
    let period = mean_over_time(gaps);
    let alike = values().filter(|(gap, _)| (gap / period - 1.0).abs() <= LIKE);
    let share = alike.map(|(gap, count)| gap * count).sum::<f64>() / time;
    (time > 0.0 && share >= SHARE).then_some(period * 1e-6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_metrics::common::ARRIVAL_GAP;
    use weir_metrics::{Recorder, Schema};

    fn of(gaps: &[(u64, u64)]) -> Option<f64> {
        let mut recorder = Recorder::new(Schema::new(&[]));
        for (milliseconds, count) in gaps {
            (0..*count).for_each(|_| recorder.record(ARRIVAL_GAP, milliseconds * 1_000));
        }
        period(recorder.spread(ARRIVAL_GAP)).map(|seconds| (seconds * 10.0).round() / 10.0)
    }

    #[test]
    fn a_rhythm_is_the_time_between_bursts_and_nothing_else_is_one() {
        assert_eq!(of(&[(1_780, 30), (3, 200)]), Some(1.8));
        assert_eq!(of(&[(1_600, 10), (1_800, 10), (2_000, 10)]), Some(1.8));
        assert_eq!(of(&[(100, 300)]), Some(0.1));
        assert_eq!(of(&[]), None);
        // A blackout of ten seconds in a minute, and a server that sends when it can.
        assert_eq!(of(&[(40, 1_250), (10_000, 1)]), None);
        assert_eq!(of(&[(300, 10), (900, 10), (2_000, 5), (4_000, 3)]), None);
    }
}
