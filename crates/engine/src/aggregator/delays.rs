//! Whether viewers of a stage fall behind: the drift of their frames at its beginning, and at its end, beyond what clocks make of it.

use crate::plan::StageSpan;
use weir_metrics::common::DRIFT;
use weir_metrics::{Interval, SignedHistogram, Unit};

/// By how much the clocks of a source and of weir may differ: encoders keep theirs within 30 ppm (ISO/IEC 13818-1, 2.4.2.1), the
/// quartz of a cheap camera within ten times as much.
const CLOCKS_DIFFER: f64 = 500e-6;

/// By how much they may where drift itself says so: what is paced by a sound card, or counts 29.97 frames a second as 30 (0.1 %). Players
/// take sound that is wrong by this much faster or slower without it being heard; beyond it they stall whatever the server does.
const SOURCES_DIFFER: f64 = 0.01;

/// Viewers that fall behind least show the source's clock: all others have what a server does on top of it.
const LEAST_LATE: f64 = 0.1;

/// The shortest window, in seconds, whose clock is known well enough to be that of another stage.
const SHORTEST_REFERENCE: u32 = 10;

/// Parts of a window, between which viewers are to fall behind evenly. What sets in behind the second of them is seen to.
const PARTS: usize = 8;

/// The drift over a window.
#[derive(Debug, Default)]
pub(super) struct Delays {
    /// Of its first and of its last quarter.
    ends: Option<Box<[SignedHistogram; 2]>>,
    parts: [Part; PARTS],
}

/// Sums over the seconds of a part that brought any.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    seconds: u32,
    /// Of the seconds themselves.
    second: f64,
    /// Of the drift of the viewers that were least late, in seconds.
    least: f64,
}

/// What a stage is judged by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Growth {
    /// By how much the median of the last quarter lies above that of the first, in seconds, beyond what clocks that differ make of it.
    pub(super) seconds: f64,
    /// By how much the source's clock is slow, where that is more than any quartz is.
    pub(super) clock: Option<f64>,
}

impl Delays {
    /// Adds a second of the window of this stage.
    pub(super) fn add(&mut self, span: &StageSpan, interval: &Interval) {
        let drift = interval.figures.signed(DRIFT);
        let (passed, window) = (interval.key.second - span.window_begin, span.window_end - span.window_begin);
        let at = u64::from(passed) * PARTS as u64 / u64::from(window.max(1));
        let Some(part) = self.parts.get_mut(at as usize).filter(|_| !drift.is_empty()) else { return };
        part.seconds += 1;
        part.second += f64::from(passed);
        part.least += drift.value_at_quantile(LEAST_LATE) as f64 * Unit::Micros.scale();
        if let Some(end) = [Some(0), None, None, Some(1)][at as usize * 4 / PARTS] {
            self.ends.get_or_insert_default()[end].add(drift);
        }
    }

    /// By how much the median of the last quarter lies above that of the first, in seconds; none of a window that has not come to its end.
    fn growth(&self) -> Option<f64> {
        let ends = self.ends.as_ref().filter(|it| it.iter().all(|quarter| !quarter.is_empty()))?;
        let [first, last] = ends.each_ref().map(|it| it.value_at_quantile(0.5) as f64 * Unit::Micros.scale());
        Some(last - first)
    }

    /// How fast those fall behind that fall behind least, in seconds a second: from each of this many parts of the window to the next.
    fn slopes(&self, parts: usize) -> Option<impl Iterator<Item = f64>> {
        let mean = |parts: &[Part]| {
            let sum = |of: fn(&Part) -> f64| parts.iter().map(of).sum::<f64>();
            let seconds = sum(|it| it.seconds.into());
            (seconds > 0.0).then(|| (sum(|it| it.second) / seconds, sum(|it| it.least) / seconds))
        };
        let means = self.parts.chunks(PARTS / parts).map(mean).collect::<Option<Vec<_>>>()?;
        let slope = |pair: [(f64, f64); 2]| (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0);
        Some((1..means.len()).map(move |at| slope([means[at - 1], means[at]])))
    }

    /// The same where they do so least.
    fn least_slope(&self) -> Option<f64> {
        self.slopes(PARTS)?.reduce(f64::min)
    }

    /// How fast they do so at the most: of fewer parts, since a light load may be held for a short time.
    fn greatest_slope(&self) -> Option<f64> {
        self.slopes(PARTS / 2)?.reduce(f64::max)
    }
}

/// What each stage of a workload is judged by. The source's clock makes all viewers fall behind evenly, from the first second on, and under
/// every load; what sets in later, or is of some viewers or of some loads alone, is the server's. `is_own`: weir publishes what
/// they play, by the clock that it measures with.
pub(super) fn growths(stages: &[(&StageSpan, &Delays)], is_own: bool) -> Vec<Option<Growth>> {
    let length = |span: &StageSpan| span.window_end - span.window_begin;
    let judge = |(span, delays): &(&StageSpan, &Delays)| {
        let growth = delays.growth()?;
        let lighter = stages.iter().filter(|(other, _)| {
            (1..span.clients).contains(&other.clients) && length(other) >= SHORTEST_REFERENCE
        });
        let known = lighter.filter_map(|(other, delays)| Some((*other, delays.greatest_slope()?)));
        let lightest = known.min_by_key(|(other, _)| (other.clients, u32::MAX - length(other)));
        let most = lightest.map_or(SOURCES_DIFFER, |(_, slope)| slope.min(SOURCES_DIFFER));
        let own = delays.least_slope().filter(|_| !is_own);
        let slope = own.map_or(0.0, |least| least.min(most));
        let between = 0.75 * f64::from(length(span));
        Some(Growth {
            seconds: growth - growth.clamp(0.0, slope.max(CLOCKS_DIFFER) * between),
            clock: Some(slope).filter(|slope| *slope > CLOCKS_DIFFER),
        })
    };
    stages.iter().map(judge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use weir_metrics::{IntervalKey, Recorder, Schema};

    /// A stage of this many viewers whose window is so long and has been run for so long. The delay of each viewer at each second is
    /// this.
    fn stage(clients: u32, window: u32, run: u32, delay: impl Fn(u32, u32) -> f64) -> (StageSpan, Delays) {
        let span = StageSpan {
            workload: 0,
            stage: 0,
            clients,
            begin: Duration::ZERO,
            window_begin: 3,
            window_end: 3 + window,
            without_warmup: false,
            end: Duration::from_secs(u64::from(window) + 3),
        };
        let mut delays = Delays::default();
        for second in 0..run {
            let mut figures = Recorder::new(Schema::new(&[]));
            for viewer in 0..clients {
                // Of frames that come in bursts of up to 40 ms.
                let late = [0.0, 0.04][((viewer + second) % 2) as usize];
                figures.record_signed(DRIFT, ((delay(viewer, second) + late) * 1e6) as i64);
            }
            let key = IntervalKey { second: 3 + second, workload: 0, server: None };
            delays.add(&span, &Interval::new(key, figures));
        }
        (span, delays)
    }

    /// What the last of these stages is judged by.
    fn last(stages: &[(StageSpan, Delays)], is_own: bool) -> Growth {
        let stages: Vec<_> = stages.iter().map(|(span, delays)| (span, delays)).collect();
        growths(&stages, is_own).pop().unwrap().unwrap()
    }

    fn growth(window: u32, run: u32, delay: impl Fn(u32) -> f64) -> Option<f64> {
        let (span, delays) = stage(20, window, run, |_, second| delay(second));
        growths(&[(&span, &delays)], false).pop().unwrap().map(|growth| growth.seconds)
    }

    #[test]
    fn viewers_that_fall_behind_are_told_from_clocks_that_differ() {
        let about =
            |growth: Option<f64>, seconds: f64| (growth.unwrap() - seconds).abs() < 0.01 * seconds + 0.002;
        // A tenth too slow, over a minute: the middles of the quarters lie 45 s apart, of which a source may be a hundredth.
        assert!(about(growth(60, 60, |second| 0.1 * f64::from(second)), 4.5 - 0.45));
        // A day of a camera whose quartz is wrong by 100 ppm: 6.5 s.
        assert!(about(growth(86_400, 86_400, |second| 1e-4 * f64::from(second)), 0.0));
        // What was late from the beginning does not grow, and what comes earlier is told as it is.
        assert!(about(growth(60, 60, |_| 9.0), 0.0));
        assert!(growth(60, 60, |second| -0.1 * f64::from(second)).unwrap() < -4.0);
    }

    #[test]
    fn a_window_that_ended_early_has_no_last_quarter() {
        assert_eq!(growth(60, 40, f64::from), None);
    }

    #[test]
    fn a_source_whose_clock_is_slow_is_no_server_that_falls_behind() {
        let slow = |clients, window| stage(clients, window, window, |_, second| 8e-3 * f64::from(second));
        let alone = last(&[slow(20, 600)], false);
        assert!(alone.seconds.abs() < 0.05, "{alone:?}");
        assert!((alone.clock.unwrap() - 8e-3).abs() < 2e-4, "{alone:?}");
        // It is as slow under a light load, even one that is held for twelve seconds, and makes no difference there.
        let after_a_light_one = last(&[slow(2, 12), slow(20, 600)], false);
        assert!(after_a_light_one.seconds.abs() < 0.1, "{after_a_light_one:?}");
        // A clock that is fast brings everything early.
        let fast = last(&[stage(20, 600, 600, |_, second| -8e-3 * f64::from(second))], false);
        assert!(fast.seconds < -3.0 && fast.clock.is_none(), "{fast:?}");
    }

    /// A server that passes on 99.5 % of real time to its viewers, while the rest queues.
    #[test]
    fn a_server_that_passes_on_less_than_real_time_is_caught() {
        let behind = |second: u32| 5e-3 * f64::from(second);
        let everyone = || stage(20, 400, 400, |_, second| behind(second));
        // To everyone, and weir publishes: the clock is its own.
        let own = last(&[everyone()], true);
        assert!(own.seconds > 1.3 && own.clock.is_none(), "{own:?}");
        // To everyone, and a light load was served in time.
        let light = stage(2, 60, 60, |_, _| 0.0);
        let loaded = last(&[light, everyone()], false);
        assert!(loaded.seconds > 1.3 && loaded.clock.is_none(), "{loaded:?}");
        // Not to everyone.
        let some = stage(20, 400, 400, |viewer, second| if viewer < 4 { 0.0 } else { behind(second) });
        assert!(last(&[some], false).seconds > 1.3);
        // To everyone, from some time on: it has filled its queue, or has got slower.
        let late = stage(20, 400, 400, |_, second| behind(second.saturating_sub(100)));
        assert!(last(&[late], false).seconds > 1.0);
        let step = stage(20, 400, 400, |_, second| if second < 200 { 0.0 } else { 1.5 });
        assert!(last(&[step], false).seconds > 1.3);
        // What is more than any clock is the server's.
        let twice = last(&[stage(20, 400, 400, |_, second| 4.0 * behind(second))], false);
        assert!(twice.seconds > 2.9, "{twice:?}");
    }
}
