//! Whether a window shows one state of the target, and since when viewers have got nothing: functions of what each
//! second brought.

use weir_metrics::several;

/// Shortest window whose halves are compared: shorter ones hold too few groups of pictures.
pub(crate) const SHORTEST: usize = 10;
/// Share of the larger half by which the other may differ.
const CHANGE: f64 = 0.1;
/// Standard errors of the difference that the seconds' own scatter explains: a keyframe more or less in one half.
const ERRORS: f64 = 3.0;
/// Share of the larger half that no scatter explains: the seconds of a half in which media stopped scatter most of all.
const BREAK: f64 = 0.5;

/// The means of a window's halves; of an odd number of seconds the middle one is left out.
fn halves(seconds: &[f64]) -> Option<[&[f64]; 2]> {
    let half = seconds.len() / 2;
    (seconds.len() >= SHORTEST).then(|| [&seconds[..half], &seconds[seconds.len() - half..]])
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// By how much one half of a window differs from the other, if that is over a tenth and more than the seconds' own
/// scatter explains, or over a half; none under ten seconds.
pub(crate) fn unsteadiness(seconds: &[f64]) -> Option<f64> {
    let [first, second] = halves(seconds)?;
    let (a, b) = (mean(first), mean(second));
    let variance = |values: &[f64], mean: f64| {
        values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64
    };
    let error = ((variance(first, a) + variance(second, b)) / first.len() as f64).sqrt();
    let (difference, larger) = ((a - b).abs(), a.max(b));
    let changed =
        difference > CHANGE * larger && (difference > ERRORS * error || difference > BREAK * larger);
    changed.then(|| difference / larger)
}

/// Whether a half of a window, or all of it, is without media. Its mean is of two states, and of neither.
pub(crate) fn is_void(seconds: &[f64]) -> bool {
    halves(seconds).is_some_and(|halves| halves.iter().any(|half| mean(half) == 0.0))
}

/// Viewers that got no media for their timeout, over a run.
#[derive(Debug, Default)]
pub(crate) struct Starvation {
    /// The second in which the first of them was found to starve.
    first: Option<u32>,
    /// How many have starved, now or before.
    viewers: u64,
    /// How many starved and how many played at the end of the last second.
    last: (u64, u64),
}

impl Starvation {
    /// Adds a second of the plan: how many viewers began to starve in it for the first time, and how many starve and play at its end.
    pub(crate) fn add(&mut self, second: u32, began: u64, starving: u64, playing: u64) {
        if began > 0 {
            self.first.get_or_insert(second);
            self.viewers += began;
        }
        self.last = (starving, playing);
    }

    /// One line for people, if there is something to say. A viewer starves when it has got no media for `timeout`.
    pub(crate) fn line(&self, timeout_seconds: f64) -> Option<String> {
        let since = (f64::from(self.first?) + 0.5 - timeout_seconds).max(0.0).floor();
        Some(match self.last {
            (starving @ 1.., 0) => format!(
                "no media since second {since}: the source or the server stopped; {}, which is all, {} for it",
                several(starving, "viewer"),
                if starving == 1 { "waits" } else { "wait" }
            ),
            (starving @ 1.., playing) => format!(
                "no media since second {since} for the first of {}: their source or the server stopped; {playing} {}",
                several(starving, "viewer"),
                if playing == 1 { "other plays" } else { "others play" }
            ),
            (0, _) => format!(
                "{} got no media for {timeout_seconds} s, the first of them from second {since} on; it came again, or they left",
                several(self.viewers, "viewer")
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyframe_more_in_one_half_is_no_change_of_state() {
        let pulses: Vec<f64> = (0..10).map(|second| if second % 2 == 0 { 540.0 } else { 447.0 }).collect();
        assert_eq!(unsteadiness(&pulses), None);
        let fall: Vec<f64> = (0..10).map(|second| if second < 5 { 500.0 } else { 300.0 }).collect();
        assert_eq!(unsteadiness(&fall), Some(0.4));
    }

    #[test]
    fn media_that_stops_within_a_half_is_no_scatter() {
        // Batches of a crowd: much in one second, little in the next. Then nothing.
        let wobbling = |until: usize| -> Vec<f64> {
            (0..20).map(|at| if at >= until { 0.0 } else { [1_400.0, 600.0][at % 2] }).collect()
        };
        assert_eq!(unsteadiness(&wobbling(20)), None);
        for until in 1..=14 {
            assert!(unsteadiness(&wobbling(until)).is_some(), "until {until}");
            assert_eq!(is_void(&wobbling(until)), until <= 10, "until {until}");
        }
        assert_eq!((unsteadiness(&[0.0; 20]), is_void(&[0.0; 20])), (None, true));
        assert!(!is_void(&[0.0; 9]), "too short to say");
    }

    #[test]
    fn who_starves_is_told_in_one_line_with_the_second_since_when() {
        let mut starvation = Starvation::default();
        starvation.add(23, 0, 0, 20);
        assert_eq!(starvation.line(10.0), None);
        starvation.add(24, 19, 19, 1);
        assert!(
            starvation
                .line(10.0)
                .unwrap()
                .starts_with("no media since second 14 for the first of 19 viewers")
        );
        starvation.add(25, 1, 20, 0);
        let all = starvation.line(10.0).unwrap();
        assert!(all.starts_with("no media since second 14: the source or the server stopped"), "{all}");
        starvation.add(26, 0, 0, 20);
        assert!(starvation.line(10.0).unwrap().starts_with("20 viewers got no media for 10 s"));
    }
}
