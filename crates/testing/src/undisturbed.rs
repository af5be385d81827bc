//! Tests that measure, on a machine that others use as well.

use std::fmt;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How long a thread may be late that sleeps for [`NAP`]: longer, and times of this moment are those of the machine.
const STILL: Duration = Duration::from_millis(100);
const NAP: Duration = Duration::from_millis(5);
/// The share of the time in which some thread waited for a CPU: a tenth on a machine that has one such test, and all of it beside
/// a build.
const CROWDED: f64 = 0.4;
/// How often a test is run at the most.
const TRIES: usize = 3;

/// What the machine did while a test ran.
#[derive(Clone, Copy, Debug, Default)]
struct Disturbance {
    longest_standstill: Duration,
    /// None where the kernel does not say it.
    crowded: Option<f64>,
}

impl Disturbance {
    fn is_reason_enough(self) -> bool {
        self.longest_standstill > STILL || self.crowded.is_some_and(|share| share > CROWDED)
    }
}

impl fmt::Display for Disturbance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let crowded = self.crowded.map_or("?".to_owned(), |share| format!("{:.0} %", 100.0 * share));
        let still = self.longest_standstill;
        write!(formatter, "the machine stood still for {still:?}, and was crowded for {crowded} of the time")
    }
}

/// Runs a test whose assertions are about times. What it finds counts if it passes, or if the machine ran all the while and had room:
/// otherwise it is run again, up to three times in all, and the log of all tests says so.
///
/// # Panics
/// As the test does.
pub fn undisturbed(test: impl Fn()) {
    for _ in 1..TRIES {
        let (result, disturbance) = watched(&test);
        let Err(panic) = result else { return };
        if !disturbance.is_reason_enough() {
            resume_unwind(panic);
        }
        // Not by `eprintln`, which a test that passes keeps to itself.
        let name = std::thread::current().name().unwrap_or("a test").to_owned();
        let _ = writeln!(std::io::stderr(), "{name} runs once more: {disturbance}");
    }
    test();
}

fn watched(test: &impl Fn()) -> (std::thread::Result<()>, Disturbance) {
    let ended = AtomicBool::new(false);
    let (began, waited) = (Instant::now(), waited_for_cpus());
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut longest = Duration::ZERO;
            while !ended.load(Relaxed) {
                let nap = Instant::now();
                std::thread::sleep(NAP);
                longest = longest.max(nap.elapsed().saturating_sub(NAP));
            }
            longest
        });
        let result = catch_unwind(AssertUnwindSafe(test));
        ended.store(true, Relaxed);
        let crowded = waited_for_cpus().zip(waited).map(|(now, before)| now.saturating_sub(before));
        let crowded = crowded.map(|crowded| crowded.as_secs_f64() / began.elapsed().as_secs_f64());
        (result, Disturbance { longest_standstill: watch.join().unwrap(), crowded })
    })
}

/// How long some thread of this machine has waited for a CPU since it was started (the kernel's accounting/psi.rst).
fn waited_for_cpus() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/pressure/cpu").ok()?;
    let total = text.lines().find(|line| line.starts_with("some "))?.rsplit_once("total=")?.1;
    total.parse().ok().map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn what_fails_where_nothing_disturbs_it_fails_and_a_standstill_or_neighbours_are_reason_for_another_try()
    {
        let of = |millis, crowded| Disturbance { longest_standstill: Duration::from_millis(millis), crowded };
        assert!(!of(20, Some(0.1)).is_reason_enough() && !of(20, None).is_reason_enough());
        assert!(of(5_000, Some(0.0)).is_reason_enough() && of(0, Some(0.9)).is_reason_enough());
    }

    #[test]
    fn what_passes_is_run_once() {
        let runs = AtomicUsize::new(0);
        undisturbed(|| {
            runs.fetch_add(1, Relaxed);
        });
        assert_eq!(runs.into_inner(), 1);
    }

    #[test]
    fn what_fails_every_time_fails() {
        let runs = AtomicUsize::new(0);
        let failing = || undisturbed(|| panic!("run {}", runs.fetch_add(1, Relaxed)));
        assert!(catch_unwind(AssertUnwindSafe(failing)).is_err());
        assert!((1..=TRIES).contains(&runs.into_inner()));
    }
}
