//! The live view: four times a second on a terminal, a plain line every few seconds into a pipe.

use crate::args::RunOptions;
use crate::log;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::time::Duration;
use weir_engine::aggregator::Aggregator;
use weir_engine::run::Watcher;
use weir_engine::summary::{MessageRate, Role, WorkloadPoint};
use weir_metrics::BitRate;

/// Characters of what was said of a failure.
const WORDS: usize = 80;
/// The longest run that has an end of its own.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);
/// Seconds between two plain lines.
const PLAIN_EVERY: u32 = 5;
/// The same where the terminal is another program's: in the background of it.
const SELDOM: u32 = 30;
/// How far an agent must be behind for a line of its own.
const WAITING: Duration = Duration::from_secs(2);

/// What a run shows while it goes, on stderr.
pub(crate) struct Live {
    view: View,
    /// The line of the last second.
    line: String,
    /// The agent that was behind the most since then.
    lag: Option<(String, Duration)>,
}

/// How it is shown.
enum View {
    /// A bar that is drawn over itself.
    Bar(ProgressBar),
    /// A line every this many seconds.
    Plain(u32),
    /// Nothing.
    Silent,
}

impl Live {
    /// A bar on a terminal, else lines.
    pub(crate) fn new(length: Duration, options: &RunOptions) -> Self {
        Self { view: View::new(length, options), line: String::new(), lag: None }
    }

    /// Takes the view away before the report is printed.
    pub(crate) fn clear(&self) {
        if let View::Bar(bar) = &self.view {
            bar.finish_and_clear();
        }
    }
}

impl View {
    fn new(length: Duration, options: &RunOptions) -> Self {
        if options.print.quiet {
            return Self::Silent;
        }
        let verbose = options.verbose > 0;
        if is_in_background() {
            return Self::Plain(if verbose { 1 } else { SELDOM });
        }
        if options.no_tui || verbose || log::is_on() || !std::io::stderr().is_terminal() {
            return Self::Plain(if verbose { 1 } else { PLAIN_EVERY });
        }
        let bar = ProgressBar::with_draw_target(
            Some(length.as_millis() as u64),
            ProgressDrawTarget::stderr_with_hz(4),
        );
        // A run until Ctrl-C has no part of it done.
        let template = if length > LONGEST { "{spinner} {msg}" } else { "{bar:20} {msg}" };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("━╸─"));
        Self::Bar(bar)
    }
}

impl Watcher for Live {
    fn second(&mut self, second: u32, aggregator: &Aggregator) {
        let Some(points) = aggregator.latest_calmed() else { return };
        // In the second after the plan's end no client is planned and none plays; nor once the run was stopped before it.
        if Duration::from_secs(u64::from(second) + 1) > aggregator.length()
            || aggregator.is_stopped_at(second)
        {
            return;
        }
        self.line =
            line(second, &points, &aggregator.roles(), aggregator.failed(), aggregator.commonest_failure());
        let line = match self.lag.take() {
            Some((agent, behind)) => format!("{} · {}", self.line, lag(&agent, behind)),
            None => self.line.clone(),
        };
        if let View::Bar(bar) = &self.view
            && is_in_background()
        {
            // Sent there since: what is in the foreground now is not drawn over.
            bar.set_draw_target(ProgressDrawTarget::hidden());
            self.view = View::Plain(SELDOM);
        }
        match &self.view {
            View::Bar(bar) => bar.set_message(line),
            View::Plain(every) if (second + 1).is_multiple_of(*every) => {
                // A reader that is gone must not end the run.
                let _ = writeln!(std::io::stderr(), "{line}");
            }
            View::Plain(_) | View::Silent => {}
        }
    }

    fn tick(&mut self, elapsed: Duration) {
        if let View::Bar(bar) = &self.view {
            bar.set_position(elapsed.as_millis() as u64);
        }
    }

    fn lag(&mut self, agent: &str, behind: Duration) {
        let most = self.lag.as_ref().map_or(Duration::ZERO, |(_, most)| *most);
        if self.lag.is_some() && behind <= most {
            return;
        }
        self.lag = Some((agent.to_owned(), behind));
        // While seconds wait for an agent there is no other line that could say so.
        match &self.view {
            View::Bar(bar) if behind >= WAITING => {
                bar.set_message(format!("{} · {}", self.line, lag(agent, behind)));
            }
            View::Plain(_) if behind.as_secs() / WAITING.as_secs() > most.as_secs() / WAITING.as_secs() => {
                let _ = writeln!(std::io::stderr(), "waiting: {}", lag(agent, behind));
            }
            View::Bar(_) | View::Plain(_) | View::Silent => {}
        }
    }
}

/// Whether stderr is a terminal in which another process group is in the foreground, as behind `weir … &`.
fn is_in_background() -> bool {
    let foreground = rustix::termios::tcgetpgrp(std::io::stderr());
    foreground.is_ok_and(|group| group != rustix::process::getpgrp())
}

/// How far an agent is behind.
fn lag(agent: &str, behind: Duration) -> String {
    format!("slowest agent {agent}, {:.1} s behind", behind.as_secs_f64())
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
        let rate = rate(point);
        parts.push(match role {
            Role::Play => format!("{} of {} play, {rate}", point.playing, point.planned),
            Role::Publish => format!("{} of {} publish, {rate}", point.playing, point.planned),
            Role::Ingest => format!("saving, {rate}"),
        });
        if let Some(startup) = point.startup_p99_seconds {
            parts.push(format!("startup p99 {:.0} ms", startup * 1e3));
        }
        if point.stalls > 0 {
            parts.push(format!("{} stalls", point.stalls));
        }
        if *role == Role::Play && point.numbered > 0 {
            parts.extend(quality(point));
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

/// Messages and bits a second: `498 of 500 messages/s, 1.02 Mbps`.
fn rate(point: &WorkloadPoint) -> String {
    let bits = BitRate::from_bps(point.actual_bps);
    match point.messages {
        None => bits.to_string(),
        Some(MessageRate { offered_per_second: None, actual_per_second }) => {
            format!("{actual_per_second:.0} messages/s, {bits}")
        }
        Some(MessageRate { offered_per_second: Some(offered), actual_per_second }) => {
            format!("{actual_per_second:.0} of {offered:.0} messages/s, {bits}")
        }
    }
}

/// Frame rate, loss and delay of viewers whose units have numbers: of this second, as it ended.
fn quality(point: &WorkloadPoint) -> Vec<String> {
    let mut parts = Vec::new();
    // While clients come and go, the second's frames are not those of the clients at its end.
    if point.frames > 0 && point.playing == u64::from(point.planned) {
        parts.push(format!("{:.1} fps", point.frames as f64 / point.playing as f64));
    }
    let lost = point.lost as f64 / (point.lost + point.numbered) as f64;
    parts.push(format!("{:.1} % lost", lost * 100.0));
    let delay = point.latency_p99_seconds.map(|it| ("latency", it));
    if let Some((name, delay)) = delay.or_else(|| point.drift_p99_seconds.map(|it| ("delay", it))) {
        parts.push(format!("{name} p99 {:.0} ms", delay * 1e3));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_metrics::Failure;

    #[test]
    fn viewers_of_numbered_packets_have_a_frame_rate_losses_and_a_delay() {
        let point = WorkloadPoint {
            planned: 10,
            playing: 10,
            actual_bps: 8e6,
            frames: 285,
            numbered: 980,
            lost: 20,
            drift_p99_seconds: Some(0.0124),
            ..WorkloadPoint::default()
        };
        let line = |point: &WorkloadPoint| line(0, std::slice::from_ref(point), &[Role::Play], 0, None);
        let shown = "1 s · 10 of 10 play, 8.00 Mbps · 28.5 fps · 2.0 % lost · ";
        assert_eq!(line(&point), format!("{shown}delay p99 12 ms"));
        // With stamps there is more than a delay since the first frame.
        let stamped = WorkloadPoint { latency_p99_seconds: Some(0.3), ..point.clone() };
        assert_eq!(line(&stamped), format!("{shown}latency p99 300 ms"));
        // Ten played for most of the second, and one does at its end.
        let leaving = WorkloadPoint { playing: 1, ..point.clone() };
        let said = line(&leaving);
        assert!(!said.contains("fps") && said.contains("2.0 % lost"), "{said}");
        let silent = WorkloadPoint { frames: 0, numbered: 0, lost: 0, actual_bps: 0.0, ..point };
        assert_eq!(line(&silent), "1 s · 10 of 10 play, 0 bps");
    }

    #[test]
    fn the_agent_that_is_behind_the_most_is_named_with_the_next_line() {
        let mut live = Live { view: View::Silent, line: String::new(), lag: None };
        for (agent, behind) in [("a", 100), ("b", 1_240), ("a", 900)] {
            live.lag(agent, Duration::from_millis(behind));
        }
        let (agent, behind) = live.lag.take().unwrap();
        assert_eq!(lag(&agent, behind), "slowest agent b, 1.2 s behind");
    }

    #[test]
    fn messages_have_their_number_beside_their_bits() {
        let point = |offered, actual| WorkloadPoint {
            planned: 5,
            playing: 5,
            actual_bps: 1e6,
            messages: Some(MessageRate { offered_per_second: offered, actual_per_second: actual }),
            ..WorkloadPoint::default()
        };
        let points = [point(Some(500.0), 498.0), point(None, 2_490.0)];
        assert_eq!(
            line(0, &points, &[Role::Publish, Role::Play], 0, None),
            "1 s · 5 of 5 publish, 498 of 500 messages/s, 1.00 Mbps · 5 of 5 play, 2490 messages/s, 1.00 Mbps"
        );
    }

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
