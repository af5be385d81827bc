//! What watched servers, their machines and weir itself use, as metrics beside the figures of clients. Each is declared once: the
//! dashboard is made from the same declarations.

use crate::Reading;
use weir_metrics::{Figure, FigureGroup, Kind, Merge, Unit};
use weir_observe::{MachineFacts, MachineValues, ProcessUsage, TargetEnvironment, TargetState, TargetUsage};

/// A level of the latest second, by its declaration and what it is of.
#[derive(Debug)]
pub struct Level<T> {
    /// The declaration.
    pub figure: Figure,
    of: fn(&T) -> Option<f64>,
}

const fn level<T>(name: &'static str, unit: Unit, help: &'static str, of: fn(&T) -> Option<f64>) -> Level<T> {
    let kind = Kind::Gauge(Merge::Max);
    Level { figure: Figure { name, unit, kind, help, ..Figure::of(FigureGroup::Own, None, None) }, of }
}

/// Label of the levels of watched servers: which.
pub const SERVER: &str = "server";
/// Label of the same: at which agent. Agents may each watch a server of the same name.
pub const AGENT: &str = "agent";
/// Label of the levels of their machines: which.
pub const MACHINE: &str = "machine";

/// What each watched server uses, with its children: under the names that thresholds have.
pub static OF_SERVERS: [Level<TargetUsage>; 5] = [
    level("server.cpu", Unit::Count, "CPU of a watched server, 1 is one core", |it| {
        Some(it.process.cpu_percent / 100.0)
    }),
    level("server.memory", Unit::Bytes, "resident memory of a watched server", |it| {
        Some(it.process.rss_bytes as f64)
    }),
    level("server.busiest_thread", Unit::Count, "CPU of its busiest thread, 1 is one core", |it| {
        it.process.threads.iter().map(|thread| thread.cpu_percent / 100.0).reduce(f64::max)
    }),
    level("server.connections", Unit::Count, "established TCP connections of a watched server", |it| {
        it.connections.map(|connections| connections as f64)
    }),
    level("server.descriptors", Unit::Count, "open files of a watched server", |it| {
        it.process.descriptors.map(|descriptors| descriptors as f64)
    }),
];

/// What the target's machine does, by the figures of `--node-exporter` and `--prometheus`.
pub static OF_MACHINES: [Level<MachineValues>; 5] = [
    level("machine.cpu", Unit::Count, "CPU of the target's machine that is not idle, 1 is all of it", |it| {
        Some(it.cpu_percent? / 100.0)
    }),
    level("machine.memory", Unit::Bytes, "memory in use on the target's machine, without its caches", |it| {
        it.memory_bytes
    }),
    level("machine.load1", Unit::Count, "load average over a minute of the target's machine", |it| it.load1),
    level("machine.tx", Unit::Bytes, "bytes a second that the target's machine sends", |it| {
        Some(it.tx_bps? / 8.0)
    }),
    level("machine.rx", Unit::Bytes, "bytes a second that the target's machine receives", |it| {
        Some(it.rx_bps? / 8.0)
    }),
];

/// What weir itself uses on the machine that leads the run.
pub static OF_WEIR: [Level<ProcessUsage>; 2] = [
    level("generator.cpu", Unit::Count, "CPU of weir itself, 1 is one core", |it| {
        Some(it.cpu_percent / 100.0)
    }),
    level("generator.memory", Unit::Bytes, "resident memory of weir itself", |it| Some(it.rss_bytes as f64)),
];

/// The levels of a second: of weir, of the servers that live, and of these machines.
pub fn readings(
    generator: &ProcessUsage,
    targets: &[TargetUsage],
    known: &[TargetEnvironment],
    machines: &[(&MachineFacts, MachineValues)],
) -> Vec<Reading> {
    let mut readings: Vec<_> = OF_WEIR.iter().filter_map(|it| it.reading(generator, &[])).collect();
    for (position, target) in targets.iter().enumerate().filter(|(_, it)| it.state == TargetState::Running) {
        let name = target.watch.to_string();
        let name = name.strip_prefix("name=").unwrap_or(&name);
        let agent = known.get(position).filter(|it| it.watch == target.watch);
        let agent = agent.and_then(|it| Some((AGENT, it.agent.as_deref()?)));
        let labels: Vec<_> = [(SERVER, name)].into_iter().chain(agent).collect();
        readings.extend(OF_SERVERS.iter().filter_map(|it| it.reading(target, &labels)));
    }
    for (facts, values) in machines {
        let name = facts.instance.as_deref().or(facts.address.as_deref()).unwrap_or("localhost");
        readings.extend(OF_MACHINES.iter().filter_map(|it| it.reading(values, &[(MACHINE, name)])));
    }
    readings
}

impl<T> Level<T> {
    fn reading(&self, of: &T, labels: &[(&'static str, &str)]) -> Option<Reading> {
        let Figure { name, help, unit, .. } = self.figure;
        let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Some(Reading { name, help, unit, is_counter: false, labels, value: (self.of)(of)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_observe::Interfaces;

    #[test]
    fn what_was_not_read_is_no_metric_and_a_server_that_died_has_none() {
        let process = ProcessUsage { cpu_percent: 150.0, rss_bytes: 4_000, ..ProcessUsage::default() };
        let target = |watch: &str, state| TargetUsage {
            watch: watch.parse().unwrap(),
            state,
            process: process.clone(),
            connections: None,
        };
        let targets = [
            target("name=nginx", TargetState::Running),
            target("pid=7", TargetState::Running),
            target("port=80", TargetState::Died),
            target("name=nginx", TargetState::Running),
        ];
        let known = ["name=nginx", "pid=7", "port=80", "name=nginx"].map(|watch| TargetEnvironment {
            watch: watch.parse().unwrap(),
            pid: 1,
            executable: None,
            version: None,
            command_line: Vec::new(),
            descriptors: None,
            cgroup_quota_cores: None,
            agent: None,
        });
        let mut known = known.to_vec();
        known[3].agent = Some("east".to_owned());
        let values = MachineValues { load1: Some(0.5), ..MachineValues::default() };
        let facts = MachineFacts::of_this_machine(Interfaces::loopback());
        let found = readings(&ProcessUsage::default(), &targets, &known, &[(&facts, values)]);
        let labels = |it: &Reading| it.labels.iter().map(|(_, value)| &**value).collect::<Vec<_>>().join(" ");
        let labelled = found.iter().map(|it| (it.name, labels(it), it.value)).skip(OF_WEIR.len());
        let expected = [
            ("server.cpu", "nginx", 1.5),
            ("server.memory", "nginx", 4_000.0),
            ("server.cpu", "pid=7", 1.5),
            ("server.memory", "pid=7", 4_000.0),
            ("server.cpu", "nginx east", 1.5),
            ("server.memory", "nginx east", 4_000.0),
            ("machine.load1", "localhost", 0.5),
        ];
        let expected = expected.map(|(name, labels, value)| (name, labels.to_owned(), value));
        assert_eq!(labelled.collect::<Vec<_>>(), expected);
    }
}
