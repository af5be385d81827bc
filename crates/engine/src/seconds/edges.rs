//! Where a stretch of seconds begins and ends for each viewer: with an arrival.
//!
//! Servers send in bursts, and a frame is one. By the clock a stretch of five seconds has, by chance, one burst more or less than
//! its source made in it. So each viewer's part of it is taken from the last arrival before its beginning to the last one before its
//! end, which is a whole number of bursts.

use crate::seconds::bursts::mean_over_time;
use weir_metrics::common::{ARRIVAL_GAP, EDGE_AGE, EDGE_PICTURE_AGE, SOURCE_FRAME_TIME, SOURCE_FRAMES};
use weir_metrics::{Histogram, Recorder, SignedHistogram};

/// By how much a burst may come later than the mean of them, in parts of their period. Viewers to whom nothing came for longer at
/// an edge were not sent what was due.
const LATEST: f64 = 1.25;

/// How long before an edge the newest media of each viewer came, in microseconds, and how many viewers that was.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Edge {
    media: Vec<(i64, u64)>,
    pictures: Vec<(i64, u64)>,
}

/// The longest that a viewer waits for what is due, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Patience {
    media: f64,
    pictures: f64,
}

/// How much longer than the viewers' own parts of it a stretch is, in seconds of viewers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Outstanding {
    pub(crate) media: f64,
    pub(crate) pictures: f64,
}

impl Edge {
    /// What was recorded in the second before the edge; none if it was no edge.
    pub(crate) fn of(figures: &Recorder) -> Option<Self> {
        let (media, pictures) = (figures.signed(EDGE_AGE), figures.signed(EDGE_PICTURE_AGE));
        (!media.is_empty()).then(|| Self { media: ages(media), pictures: ages(pictures) })
    }

    fn outstanding(&self, patience: Patience) -> Outstanding {
        let sum = |ages: &[(i64, u64)], most: f64| {
            ages.iter().map(|(age, viewers)| (*age as f64).min(most) * *viewers as f64).sum::<f64>() * 1e-6
        };
        Outstanding {
            media: sum(&self.media, patience.media),
            pictures: sum(&self.pictures, patience.pictures),
        }
    }
}

fn ages(histogram: &SignedHistogram) -> Vec<(i64, u64)> {
    let of = |half: &Histogram<u64>, sign: i64| {
        let values = half.iter_recorded();
        values.map(|it| (sign * it.value_iterated_to() as i64, it.count_at_value())).collect::<Vec<_>>()
    };
    [of(histogram.below(), -1), of(histogram.above(), 1)].concat()
}

impl Patience {
    /// By what a workload's viewers have got so far.
    pub(crate) fn of(figures: &Recorder) -> Self {
        let media = mean_over_time(figures.spread(ARRIVAL_GAP)) * LATEST;
        let frames = figures.counter(SOURCE_FRAMES);
        let frame = if frames > 0 { figures.counter(SOURCE_FRAME_TIME) as f64 / frames as f64 } else { 0.0 };
        // A burst ends with a sound as well as with a picture.
        Self { media, pictures: media + frame }
    }
}

/// What a stretch between two edges lacks; nothing where one of them is unknown.
pub(crate) fn outstanding(begin: Option<&Edge>, end: Option<&Edge>, patience: Patience) -> Outstanding {
    let (Some(begin), Some(end)) = (begin, end) else { return Outstanding::default() };
    let (begin, end) = (begin.outstanding(patience), end.outstanding(patience));
    Outstanding { media: end.media - begin.media, pictures: end.pictures - begin.pictures }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_metrics::Schema;

    fn recorder(gaps: &[(u64, u64)]) -> Recorder {
        let mut recorder = Recorder::new(Schema::new(&[]));
        for (gap, count) in gaps {
            (0..*count).for_each(|_| recorder.record(ARRIVAL_GAP, *gap));
        }
        recorder
    }

    #[test]
    fn the_period_is_that_of_bursts_and_not_that_of_the_reads_of_one() {
        let near = |gaps: &[(u64, u64)], expected: f64| {
            let found = mean_over_time(recorder(gaps).spread(ARRIVAL_GAP));
            assert!((found / expected - 1.0).abs() < 0.02, "{found} for {expected}");
        };
        near(&[(40_000, 1_000)], 40_000.0);
        // Seven reads a burst.
        near(&[(1_780_000, 10), (3_000, 60)], 1_780_000.0);
        near(&[(340_000, 30), (1_000, 90)], 340_000.0);
        assert_eq!(mean_over_time(recorder(&[]).spread(ARRIVAL_GAP)), 0.0);
    }

    #[test]
    fn a_viewer_that_is_sent_nothing_lacks_one_burst_at_the_most() {
        let edge = |ages: &[i64]| {
            let mut recorder = recorder(&[]);
            ages.iter().for_each(|age| recorder.record_signed(EDGE_AGE, *age));
            Edge::of(&recorder)
        };
        let patience = Patience { media: 100_000.0, pictures: 0.0 };
        let of = |begin: &[i64], end: &[i64]| {
            outstanding(edge(begin).as_ref(), edge(end).as_ref(), patience).media
        };
        assert!((of(&[10_000, 30_000], &[40_000, 60_000]) - 0.06).abs() < 1e-4);
        assert!((of(&[10_000], &[5_000_000]) - 0.09).abs() < 1e-4, "not five seconds");
        // The thread was late for the edge: what came after it is read with what came before.
        assert!((of(&[0], &[-300_000]) + 0.3).abs() < 1e-3);
        assert_eq!(of(&[], &[40_000]), 0.0, "the beginning was no edge");
    }
}
