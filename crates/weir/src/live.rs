//! The live view: four times a second on a terminal, a plain line every few seconds into a pipe.

use crate::args::RunOptions;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::time::Duration;
use weir_engine::fold::Fold;
use weir_engine::run::Watcher;
use weir_engine::summary::{Role, WorkloadPoint};
use weir_metrics::BitRate;

/// Characters of what was said of a failure.
const WORDS: usize = 80;
/// Seconds between two plain lines.
const PLAIN_EVERY: u32 = 5;

/// How a run is shown while it goes, on stderr.
pub(crate) enum Live {
    /// A bar that is drawn over itself.
    Bar(ProgressBar),
    /// A line every so many seconds.
    Plain(u32),
    /// Nothing.
    Silent,
}

impl Live {
    /// A bar on a terminal, else lines.
    pub(crate) fn new(length: Duration, options: &RunOptions) -> Self {
        if options.print.quiet {
            return Self::Silent;
        }
        if options.no_tui || options.verbose || !std::io::stderr().is_terminal() {
            return Self::Plain(if options.verbose { 1 } else { PLAIN_EVERY });
        }
        let bar = ProgressBar::with_draw_target(
            Some(length.as_millis() as u64),
            ProgressDrawTarget::stderr_with_hz(4),
        );
        let style =
            ProgressStyle::with_template("{bar:20} {msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("━╸─"));
        Self::Bar(bar)
    }

    /// Takes the view away before the report is printed.
    pub(crate) fn clear(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

impl Watcher for Live {
    fn second(&mut self, second: u32, fold: &Fold) {
        let Some((_, points)) = fold.latest() else { return };
        // In the second after the plan's end nobody is wanted, and nobody plays.
        if Duration::from_secs(u64::from(second) + 1) > fold.length() {
            return;
        }
        let line = line(second, points, &fold.roles(), fold.failed(), fold.commonest_failure());
        match self {
            Self::Bar(bar) => bar.set_message(line),
            Self::Plain(every) if (second + 1).is_multiple_of(*every) => {
                // A reader that is gone must not end the run.
                let _ = writeln!(std::io::stderr(), "{line}");
            }
            Self::Plain(_) | Self::Silent => {}
        }
    }

    fn tick(&mut self, elapsed: Duration) {
        if let Self::Bar(bar) = self {
            bar.set_position(elapsed.as_millis() as u64);
        }
    }
}

fn line(
    second: u32,
    points: &[WorkloadPoint],
    roles: &[Role],
    failed: u64,
    commonest: Option<(weir_metrics::Failure, u64, &str)>,
) -> String {
    let mut parts = vec![format!("{} s", second + 1)];
    for (point, role) in points.iter().zip(roles) {
        let rate = BitRate::from_bps(point.actual_bps);
        parts.push(match role {
            Role::Play => format!("{} of {} play, {rate}", point.playing, point.planned),
            Role::Publish => format!("{} of {} publish, {rate}", point.playing, point.planned),
        });
        if let Some(startup) = point.startup_p99_seconds {
            parts.push(format!("startup p99 {:.0} ms", startup * 1e3));
        }
        if point.stalls > 0 {
            parts.push(format!("{} stalls", point.stalls));
        }
    }
    if let Some((kind, clients, words)) = commonest {
        let words = weir_report::quote(words, WORDS);
        let colon = if words.is_empty() { "" } else { ": " };
        let many = if clients == failed { String::new() } else { format!("{clients} ") };
        parts.push(format!("{failed} failed ({many}{}{colon}{words})", kind.key()));
    }
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_metrics::Failure;

    #[test]
    fn a_line_says_who_plays_and_what_failed() {
        let point = WorkloadPoint {
            planned: 10,
            playing: 9,
            actual_bps: 2.5e6,
            stalls: 2,
            ..WorkloadPoint::default()
        };
        let line =
            |failed, commonest| line(4, std::slice::from_ref(&point), &[Role::Play], failed, commonest);
        assert_eq!(line(0, None), "5 s · 9 of 10 play, 2.50 Mbps · 2 stalls");
        assert_eq!(
            line(1, Some((Failure::Reset, 1, ""))),
            "5 s · 9 of 10 play, 2.50 Mbps · 2 stalls · 1 failed (reset)"
        );
        assert_eq!(
            line(3, Some((Failure::Rejected, 2, "go\naway\u{1b}[2J"))),
            "5 s · 9 of 10 play, 2.50 Mbps · 2 stalls · 3 failed (2 rejected: go away\\u{1b}[2J)"
        );
    }
}
