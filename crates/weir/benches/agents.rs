//! A thousand agents at one coordinator: real messages through a real nats-server, with seconds that were counted once and are sent by
//! all. What the coordinator needs of a core and of memory, and whether any second is late.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use weir_agents::connect;
use weir_agents::frame::{AgentMessage, CALL, CoordinatorMessage, FromAgent, FromCoordinator, Hello, Item};
use weir_agents::state_machine::{Outgoing, StateMachine};
use weir_engine::agents::{AgentEnd, SecondLines};
use weir_metrics::Moment;
use weir_testing::{KilledOnDrop, NatsServer, free_port};

const AGENTS: u64 = 1_000;
const SECONDS: u32 = 20;
/// Second of the run that is sent again and again.
const TEMPLATE: u64 = 3;

/// All agents, on one connection.
struct Swarm {
    run: String,
    lines: (Vec<String>, String),
    begun: Option<Moment>,
    /// Of each agent: the items it has sent, and whether it is to send any.
    sent: Vec<u64>,
    outgoing: Vec<Outgoing>,
}

impl Swarm {
    fn send(&mut self, agent: u64, message: AgentMessage) {
        let run = if matches!(message, AgentMessage::Hello(_)) { String::new() } else { self.run.clone() };
        let bytes = serde_json::to_vec(&FromAgent { from: agent, run, message }).unwrap();
        self.outgoing.push(Outgoing { subject: format!("weir.up.s{agent:04}"), bytes });
    }

    fn second(&self, second: u64) -> SecondLines {
        let (intervals, log) = &self.lines;
        let number = format!("\"second\":{second},");
        let intervals =
            intervals.iter().map(|line| line.replacen(&format!("\"second\":{TEMPLATE},"), &number, 1));
        let of =
            |line: &str| match line.strip_prefix("Tag=").map(|tag| tag.splitn(3, ',').collect::<Vec<_>>()) {
                Some(parts) => format!("Tag={},{second}.000,{}\n", parts[0], parts[2]),
                None => format!("{line}\n"),
            };
        let histograms = log.lines().map(of).collect();
        SecondLines {
            second: second as u32,
            intervals: intervals.collect(),
            histograms,
            events: Vec::new(),
            is_whole: true,
        }
    }
}

impl StateMachine for Swarm {
    type Command = ();
    type Event = ();

    fn subjects(&self) -> Vec<String> {
        vec![CALL.to_owned(), "weir.down.*".to_owned()]
    }

    fn handle_message(&mut self, _: &str, bytes: &[u8], now: Moment) {
        let Ok(FromCoordinator { to, run, message, .. }) = serde_json::from_slice(bytes) else { return };
        match message {
            CoordinatorMessage::Call => {
                for agent in 0..AGENTS {
                    self.send(agent, AgentMessage::Hello(Box::new(Hello { cores: 1, ..Hello::default() })));
                }
            }
            CoordinatorMessage::Offer(_) => {
                self.run = run;
                self.send(to.unwrap(), AgentMessage::Accepted);
            }
            CoordinatorMessage::Begin(_) => {
                self.begun.get_or_insert(now);
            }
            CoordinatorMessage::Heartbeat(_) if self.begun.is_none() => {
                self.send(to.unwrap(), AgentMessage::Heartbeat);
            }
            _ => {}
        }
    }

    fn handle_timeout(&mut self, now: Moment) {
        let Some(begun) = self.begun else { return };
        let passed = now.since(begun).as_secs_f64();
        for agent in 0..AGENTS {
            // The agents' seconds are over one after the other, within half of a second.
            let due = (passed - 1.0 - 0.5 * agent as f64 / AGENTS as f64).max(0.0) as u64;
            let sent = self.sent[agent as usize];
            if due <= sent || sent > u64::from(SECONDS) {
                continue;
            }
            let number = sent + 1;
            let item = if sent == u64::from(SECONDS) {
                Item::Ended(AgentEnd::default())
            } else {
                Item::Second(self.second(sent))
            };
            self.sent[agent as usize] = number;
            self.send(agent, AgentMessage::Item { number, oldest: number, item: Box::new(item) });
        }
    }

    fn handle_connection(&mut self, _: bool, _: Moment) {}
    fn handle_too_large(&mut self, _: &str, bytes: usize) {
        panic!("{bytes} bytes were not sent");
    }

    fn handle_dropped(&mut self) {
        println!("the swarm itself was too slow");
    }
    fn handle_command(&mut self, (): (), _: Moment) {}
    fn poll_send(&mut self) -> Option<Outgoing> {
        self.outgoing.pop()
    }
    fn poll_event(&mut self) -> Option<()> {
        None
    }
}

fn weir() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Lines of one second of a real run of this scenario.
fn lines(directory: &Path) -> (Vec<String>, String) {
    let text = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
    let of = format!("\"second\":{TEMPLATE},");
    let intervals =
        text("intervals.ndjson").lines().filter(|line| line.contains(&of)).map(str::to_owned).collect();
    let mut log = String::new();
    for line in text("histograms.hlog").lines() {
        let start = line.strip_prefix("Tag=").and_then(|tag| tag.split(',').nth(1));
        if start.is_none_or(|start| start.starts_with(&format!("{TEMPLATE}."))) {
            log += &format!("{line}\n");
        }
    }
    (intervals, log)
}

/// CPU seconds of a process so far, and the most memory that it had.
fn used(pid: u32) -> Option<(f64, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks: f64 = fields[11].parse::<f64>().ok()? + fields[12].parse::<f64>().ok()?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some((ticks / 100.0, peak.trim().trim_end_matches(" kB").parse::<u64>().ok()? << 10))
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let _origin = KilledOnDrop::start(weir().args(["origin", "--rtmp", &format!("127.0.0.1:{port}")]));
    let url = format!("rtmp://127.0.0.1:{port}/live/a");
    let scenario = |name: &str, clients: u32, seconds: u32| {
        let path = folder.path().join(name);
        let play = format!("{{play: '{url}', delay: 500ms, clients: {clients}, duration: {seconds}s}}");
        let text = format!(
            "warmup: 0s\nworkloads:\n  - {{publish: '{url}', gop: 1s}}\n  - {play}\n  - {play}\n  - {play}\n"
        );
        std::fs::write(&path, text).unwrap();
        path
    };
    std::thread::sleep(Duration::from_millis(500));
    let (first, own) = (scenario("one.yaml", 20, 5), folder.path().join("one"));
    weir().arg("run").arg(first).arg("-q").arg("-o").arg(&own).status().unwrap();
    let lines = lines(&own);
    let size = lines.0.iter().map(String::len).sum::<usize>() + lines.1.len();
    let nats = NatsServer::start();
    let swarm = Swarm {
        run: String::new(),
        lines,
        begun: None,
        sent: vec![0; AGENTS as usize],
        outgoing: Vec::new(),
    };
    let server = weir_agents::NatsServer { url: nats.url(), ..weir_agents::NatsServer::default() };
    let _link = connect(&server, swarm).unwrap();
    let run = folder.path().join("run");
    let mut command = weir();
    command.arg("run").arg(scenario("all.yaml", 1_000, SECONDS - 1)).args([
        "-q",
        "--agents",
        &AGENTS.to_string(),
    ]);
    let coordinator = KilledOnDrop::start(command.args(["--nats", &nats.url(), "-o"]).arg(&run));
    let written = || {
        let text = std::fs::read_to_string(run.join("intervals.ndjson")).unwrap_or_default();
        let last = text.lines().rev().find_map(|line| serde_json::from_str::<Value>(line).ok());
        last.and_then(|line| line["second"].as_u64())
    };
    let waited = Instant::now();
    while written().is_none() {
        assert!(waited.elapsed() < Duration::from_secs(60), "no second came");
        std::thread::sleep(Duration::from_millis(50));
    }
    let (began, before) = (Instant::now(), used(coordinator.pid()).unwrap());
    let mut behind: BTreeMap<u64, u64> = BTreeMap::new();
    let mut last = before;
    for second in 1..u64::from(SECONDS) - 2 {
        std::thread::sleep(
            (began + Duration::from_millis(1_000 * second + 300)).saturating_duration_since(Instant::now()),
        );
        *behind.entry(second.saturating_sub(written().unwrap_or(0))).or_default() += 1;
        last = used(coordinator.pid()).unwrap_or(last);
    }
    let cpu = (last.0 - before.0) / began.elapsed().as_secs_f64() * 100.0;
    println!(
        "{AGENTS} agents, {size} bytes a second each: {cpu:.0} % of a core, {} MB at most",
        last.1 >> 20
    );
    println!("seconds behind the first one, and how often: {behind:?}");
}
