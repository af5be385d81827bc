//! The live view: a table that is drawn over itself on a terminal, a plain line every few seconds into a pipe.

mod table;

use crate::args::RunOptions;
use crate::log;
use crate::rows::{self, NARROWEST};
use crate::screen::{Screen, is_for_drawing, is_in_background};
use console::truncate_str;
use std::io::Write;
use std::time::Duration;
use table::{LOWEST, Table};
use weir_engine::aggregator::Aggregator;
use weir_engine::summary::{MessageRate, Role, WorkloadPoint};
use weir_metrics::common::FAILED;
use weir_metrics::{BitRate, several};
use weir_observe::{ThreadUsage, Usage};

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

/// The row of the table that is about agents.
const AGENTS: &str = "agents";
/// Threads that are named.
const THREADS: usize = 3;
/// Of a core: a thread that uses less is not busy.
const BUSY_PERCENT: f64 = 1.0;
/// Times a second that the terminal is drawn.
const DRAWS: u128 = 4;

/// What a run shows while it goes, on stderr.
pub(crate) struct Live {
    view: View,
    /// The agent that was behind the most since the last second.
    lag: Option<(String, Duration)>,
}

/// How it is shown.
enum View {
    /// A table that is drawn over itself.
    Drawn(Box<LiveDisplay>),
    /// A line every this many seconds.
    Plain(u32),
    /// Nothing.
    Silent,
}

impl Live {
    /// A table on a terminal, else lines.
    pub(crate) fn new(length: Duration, options: &RunOptions) -> Self {
        Self { view: View::new(length, options), lag: None }
    }

    /// Takes the view away before the report is printed.
    pub(crate) fn clear(&mut self) {
        if let View::Drawn(drawn) = &mut self.view {
            drawn.screen.clear();
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
        if options.no_tui || verbose || log::is_on() || !is_for_drawing() {
            return Self::Plain(if verbose { 1 } else { PLAIN_EVERY });
        }
        Self::Drawn(Box::new(LiveDisplay::new(length)))
    }
}

/// What is drawn over itself.
struct LiveDisplay {
    screen: Screen,
    table: Table,
    /// What stands in the table's place where it does not fit.
    line: String,
    /// How often there was time to draw, when it was drawn last.
    draws: u128,
}

impl LiveDisplay {
    fn new(length: Duration) -> Self {
        // A run until Ctrl-C has no part of it done.
        let length = Some(length).filter(|length| *length <= LONGEST);
        Self {
            screen: Screen::new(),
            table: Table { length, ..Table::default() },
            line: String::new(),
            draws: 0,
        }
    }

    /// Draws what there is, as large as the terminal is now.
    fn draw(&mut self) {
        let (width, height) = self.screen.size();
        let lines = if width >= NARROWEST && height >= LOWEST {
            // The last row is the cursor's.
            self.table.lines(width, height - 1)
        } else {
            let done = |length: Duration| {
                rows::bar(self.table.elapsed.as_secs_f64(), length.as_secs_f64(), width) + " "
            };
            let line = self.table.length.map(done).unwrap_or_default() + &self.line;
            vec![truncate_str(&line, width, "…").into_owned()]
        };
        self.screen.draw(&lines);
    }

    /// Says in a row of the table how far an agent is behind.
    fn show_lag(&mut self, lag: String) {
        self.table.workloads.retain(|(name, _)| name != AGENTS);
        self.table.workloads.push((AGENTS.to_owned(), vec![lag]));
    }

    /// Draws again if enough time has passed.
    fn tick(&mut self, elapsed: Duration) {
        self.table.elapsed = elapsed;
        let draws = elapsed.as_millis() * DRAWS / 1_000;
        if std::mem::replace(&mut self.draws, draws) != draws {
            self.draw();
        }
    }
}

impl Live {
    /// A second is complete.
    pub(crate) fn second(&mut self, second: u32, aggregator: &Aggregator) {
        let Some(points) = aggregator.latest_calmed() else { return };
        // In the second after the plan's end no client is planned and none plays; nor once the run was stopped before it.
        if Duration::from_secs(u64::from(second) + 1) > aggregator.length()
            || aggregator.is_stopped_at(second)
        {
            return;
        }
        let line =
            line(second, &points, &aggregator.roles(), aggregator.failed(), aggregator.commonest_failure());
        let lag = self.lag.take().map(|(agent, behind)| lag(&agent, behind));
        let line = lag.iter().fold(line, |line, lag| format!("{line} · {lag}"));
        if matches!(self.view, View::Drawn(_)) && is_in_background() {
            // Sent there since: what is in the foreground now is not drawn over.
            self.view = View::Plain(SELDOM);
        }
        match &mut self.view {
            View::Drawn(drawn) => {
                drawn.table = table(second, &points, aggregator, &drawn.table);
                lag.into_iter().for_each(|lag| drawn.show_lag(lag));
                drawn.line = line;
                drawn.draw();
            }
            View::Plain(every) if (second + 1).is_multiple_of(*every) => {
                // A reader that is gone must not end the run.
                let _ = writeln!(std::io::stderr(), "{line}");
            }
            View::Plain(_) | View::Silent => {}
        }
    }

    /// Called a few times a second.
    pub(crate) fn tick(&mut self, elapsed: Duration) {
        if let View::Drawn(drawn) = &mut self.view {
            drawn.tick(elapsed);
        }
    }

    /// An agent should have reported its next second this long ago.
    pub(crate) fn lag(&mut self, agent: &str, behind: Duration) {
        let most = self.lag.as_ref().map_or(Duration::ZERO, |(_, most)| *most);
        if self.lag.is_some() && behind <= most {
            return;
        }
        self.lag = Some((agent.to_owned(), behind));
        // While seconds wait for an agent nothing else says so.
        match &mut self.view {
            View::Drawn(drawn) if behind >= WAITING => drawn.show_lag(lag(agent, behind)),
            View::Plain(_) if behind.as_secs() / WAITING.as_secs() > most.as_secs() / WAITING.as_secs() => {
                let _ = writeln!(std::io::stderr(), "waiting: {}", lag(agent, behind));
            }
            View::Drawn(_) | View::Plain(_) | View::Silent => {}
        }
    }
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
        parts.push(format!("{}, {}", doing(point, *role), rate(point)));
        parts.extend(meets(point, *role));
    }
    if let Some((kind, clients, words)) = commonest {
        let words = weir_report::quote(words, WORDS);
        let colon = if words.is_empty() { "" } else { ": " };
        let many = if clients == failed { String::new() } else { format!("{clients} ") };
        parts.push(format!("{failed} failed ({many}{}{colon}{words})", kind.key()));
    }
    parts.join(" · ")
}

/// The table after a second; it goes on from the one before.
fn table(second: u32, points: &[WorkloadPoint], aggregator: &Aggregator, before: &Table) -> Table {
    let workloads = aggregator.totals().zip(points).map(|((facts, totals), point)| {
        let mut parts = vec![doing(point, facts.role), rate(point)];
        let failed = totals.counter(FAILED);
        if failed > 0 {
            parts.push(format!("{failed} failed"));
        }
        parts.extend(meets(point, facts.role));
        (facts.name.clone(), parts)
    });
    let failures = aggregator.failures().into_iter().map(|(kind, clients, words)| {
        let words = weir_report::quote(words, WORDS);
        let colon = if words.is_empty() { "" } else { ": " };
        format!("{clients} {}{colon}{words}", kind.key())
    });
    let usage = aggregator.latest_usage();
    Table {
        elapsed: before.elapsed,
        length: before.length,
        stage: aggregator.stage_at(Duration::from_secs(u64::from(second) + 1)),
        workloads: workloads.collect(),
        servers: usage.as_ref().map(servers).unwrap_or_default(),
        threads: usage.as_ref().map(busiest_threads).unwrap_or_default(),
        generator: usage.as_ref().map(generator).unwrap_or_default(),
        failures: failures.collect(),
    }
}

/// What each watched server uses.
fn servers(usage: &Usage) -> Vec<(String, Vec<String>)> {
    let targets = usage.targets.iter().map(|target| {
        let process = &target.process;
        let mut parts = vec![format!("{:.0} % CPU", process.cpu_percent), megabytes(process.rss_bytes)];
        parts.extend(target.connections.map(|connections| several(connections, "connection")));
        (target.watch.to_string(), parts)
    });
    targets.collect()
}

/// The busiest threads of all servers.
fn busiest_threads(usage: &Usage) -> Vec<String> {
    let threads = usage.targets.iter().flat_map(|target| &target.process.threads);
    let mut threads: Vec<&ThreadUsage> = threads.filter(|it| it.cpu_percent >= BUSY_PERCENT).collect();
    threads.sort_by(|one, other| other.cpu_percent.total_cmp(&one.cpu_percent));
    let named = threads
        .iter()
        .take(THREADS)
        .map(|thread| format!("{} {:.0} %", weir_report::quote(&thread.name, WORDS), thread.cpu_percent));
    named.collect()
}

/// What weir uses, and its machine.
fn generator(usage: &Usage) -> Vec<String> {
    let mut parts = vec![format!("{:.0} % CPU", usage.generator.cpu_percent)];
    parts.extend(usage.host.cpu_busy_ratio.map(|busy| format!("machine {:.0} % busy", busy * 100.0)));
    parts
}

fn megabytes(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 * 1e-6)
}

/// How many of its clients do what they are there for.
fn doing(point: &WorkloadPoint, role: Role) -> String {
    match role {
        Role::Play => format!("{} of {} play", point.playing, point.planned),
        Role::Publish => format!("{} of {} publish", point.playing, point.planned),
        Role::Ingest => "saving".to_owned(),
    }
}

/// What its clients met in this second.
fn meets(point: &WorkloadPoint, role: Role) -> Vec<String> {
    let mut parts: Vec<String> =
        point.startup_p99_seconds.map(|it| format!("startup p99 {:.0} ms", it * 1e3)).into_iter().collect();
    if point.stalls > 0 {
        parts.push(several(point.stalls, "stall"));
    }
    if role == Role::Play && point.numbered > 0 {
        parts.extend(quality(point));
    }
    parts
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
    fn the_agent_that_is_behind_the_most_is_named_with_the_next_line() {
        let mut live = Live { view: View::Silent, lag: None };
        for (agent, behind) in [("a", 100), ("b", 1_240), ("a", 900)] {
            live.lag(agent, Duration::from_millis(behind));
        }
        let (agent, behind) = live.lag.take().unwrap();
        assert_eq!(lag(&agent, behind), "slowest agent b, 1.2 s behind");
    }

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
