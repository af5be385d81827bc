//! `weir agents`: the agents that wait for work.

use crate::args::AgentList;
use crate::exit::Exit;
use crate::print::written;
use std::io::Write;
use std::time::{Duration, Instant};
use weir_agents::frame::{AgentName, Hello};
use weir_agents::roster::Roster;
use weir_agents::{Coordinator, CoordinatorCommand, CoordinatorEvent, connect};
use weir_engine::record::kernel_clock::KernelClock;
use weir_runner::RunError;
use weir_runner::agents::of_nats;

/// How long answers are waited for.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(1_500);

/// Lists the agents that answer.
pub(crate) fn list(args: &AgentList) -> Result<Exit, RunError> {
    let instance = fastrand::u64(..);
    let machine = Coordinator::new(instance, String::new());
    let link = connect(&args.access.server(&args.nats)?, machine).map_err(|error| of_nats(&error))?;
    link.send(CoordinatorCommand::Call);
    let began = Instant::now();
    let mut heard = Roster::default();
    while let Some(left) = ANSWER_TIMEOUT.checked_sub(began.elapsed()) {
        if let Ok(CoordinatorEvent::Hello(name, instance, hello)) = link.event(left) {
            heard.enter(name, instance, *hello);
        }
    }
    let agents: Vec<_> = heard.into_all().collect();
    written(std::io::stdout().lock().write_all(text(&agents).as_bytes()))?;
    Ok(Exit::Passed)
}

/// What a kernel says of its clock.
fn clock(clock: KernelClock) -> String {
    if clock.is_synchronised {
        format!("± {:.1} ms", clock.most_error_seconds * 1e3)
    } else {
        "not synchronised".to_owned()
    }
}

/// As a table.
fn text(agents: &[(AgentName, Hello)]) -> String {
    if agents.is_empty() {
        return "no agent is connected; start one with `weir agent --join URL`\n".to_owned();
    }
    let head = [
        "agent",
        "host",
        "weir",
        "cores",
        "descriptors",
        "may load",
        "clients",
        "labels",
        "watches",
        "clock",
        "state",
    ];
    let mut rows = vec![head.map(str::to_owned)];
    for (name, hello) in agents {
        let labels: Vec<_> = hello.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let or_dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
        rows.push([
            name.to_string(),
            or_dash(hello.hostname.clone()),
            hello.version.clone(),
            hello.cores.to_string(),
            hello.descriptors.to_string(),
            if hello.watches.is_empty() { hello.only.join(",") } else { "-".to_owned() },
            hello.most.map_or_else(|| "any".to_owned(), |most| format!("≤ {most}")),
            or_dash(labels.join(",")),
            or_dash(hello.watches.join(",")),
            hello.clock.map_or_else(|| "unknown".to_owned(), clock),
            if hello.is_busy { "has a run" } else { "free" }.to_owned(),
        ]);
    }
    // An agent's description of itself comes from another machine.
    let plain = |cell: &String| cell.chars().filter(|c| !c.is_control()).take(60).collect::<String>();
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(plain).collect()).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..head.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_a_line_for_each() {
        let hello = Hello {
            version: "0.1.0".to_owned(),
            hostname: "one\u{1b}[2J".to_owned(),
            cores: 4,
            descriptors: 1_048_576,
            labels: [("zone".to_owned(), "a".to_owned())].into(),
            most: Some(5_000),
            only: vec!["10.0.0.0/8".to_owned()],
            clock: Some(KernelClock {
                is_synchronised: true,
                most_error_seconds: 0.000_4,
                estimated_error_seconds: 0.000_1,
                slewing_seconds: 0.0,
            }),
            ..Hello::default()
        };
        let text = text(&[("one".parse().unwrap(), hello)]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[0],
            "agent  host    weir   cores  descriptors  may load    clients  labels  watches  clock     state"
        );
        assert_eq!(
            lines[1],
            "one    one[2J  0.1.0  4      1048576      10.0.0.0/8  ≤ 5000   zone=a  -        ± 0.4 ms  free"
        );
    }

    #[test]
    fn nobody_is_there_to_be_started() {
        assert_eq!(text(&[]), "no agent is connected; start one with `weir agent --join URL`\n");
    }
}
