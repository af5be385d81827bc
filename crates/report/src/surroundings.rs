//! Where a run took place: the machine, its limits, the servers' programs, and where the run lies.

use crate::document::{Fact, Part, Section, Tone};
use crate::quantity::{NOTHING, bytes, count, number, several};
use crate::quote::quote;
use weir_engine::agents::AgentFacts;
use weir_engine::summary::RunFacts;
use weir_observe::{Environment, Limit, TargetEnvironment, VersionSource};

/// What a line of the environment is cut to; command lines can be long.
const LINE: usize = 400;

/// The kernel's settings that explain most failed runs; the rest is detail.
const FIRST_SYSCTLS: [&str; 3] =
    ["net.core.somaxconn", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_congestion_control"];

/// The environment in a few lines, then all settings of the kernel as detail.
pub(crate) fn sections(run: &RunFacts) -> Vec<Section> {
    let mut facts = machine(&run.environment);
    facts.extend(run.agents.iter().map(agent));
    facts.extend(run.targets.iter().map(target));
    facts.extend(run.servers.iter().map(|server| {
        let version = quote(&server.version, 80);
        Fact::new("Server", format!("{}: version {version}, by itself", quote(&server.url, LINE)))
    }));
    let settings: Vec<_> = run.environment.sysctls.iter().collect();
    let mut sections = vec![Section::new("Environment", vec![Part::Facts(facts)])];
    if !settings.is_empty() {
        let facts =
            settings.iter().map(|it| Fact::new(quote(&it.name, 80), quote(&it.value, LINE))).collect();
        sections.push(Section::new("Kernel settings", vec![Part::Facts(facts)]).detail());
    }
    sections
}

/// The agents, which each made a part of the load.
fn agent(agent: &AgentFacts) -> Fact {
    let labels = agent.labels.iter().map(|(key, value)| format!(", {key}={value}"));
    let labels: String = labels.collect();
    let (name, host) = (quote(&agent.name, 80), quote(&agent.hostname, 80));
    Fact::new(
        "Agent",
        format!("{name} on {host}, {}{}", several(agent.cores.into(), "core"), quote(&labels, LINE)),
    )
}

fn machine(environment: &Environment) -> Vec<Fact> {
    let system = environment.os.as_deref().unwrap_or("unknown system");
    // The kernel's version repeats its build date and maker; name and release identify it.
    let kernel = environment.kernel.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let mut facts = vec![
        Fact::new(
            "Machine",
            format!(
                "{}: {}, {}, {}{}",
                quote(&environment.hostname, 80),
                quote(system, 80),
                quote(&kernel, 80),
                quote(&environment.architecture, 20),
                virtualisation(environment)
            ),
        ),
        Fact::new("CPU", cpu(environment)),
        Fact::new("Memory", memory(environment)),
        Fact::new("Limits", limits(environment)),
    ];
    if environment.descriptors.soft.is_some_and(|soft| soft <= 1_024) {
        facts[3].tone = Tone::Doubtful;
    }
    facts
}

fn virtualisation(environment: &Environment) -> String {
    let signs = &environment.virtualisation;
    let machine = signs.machine.as_deref().map(|machine| format!(", {}", quote(machine, 80)));
    let hypervisor = signs.hypervisor.then(|| ", virtual machine".to_owned());
    let container = signs.container.as_deref().map(|container| format!(", in {}", quote(container, 40)));
    [machine, hypervisor, container].into_iter().flatten().collect()
}

fn cpu(environment: &Environment) -> String {
    let cpu = &environment.cpu;
    let mut line = quote(cpu.model.as_deref().unwrap_or("unknown model"), LINE);
    line.push_str(&format!(", {} online", count(cpu.online_count)));
    if !cpu.affinity.is_empty() && cpu.affinity.len() as u64 != cpu.online_count {
        line.push_str(&format!(", weir may use {}", cpu.affinity.len()));
    }
    if let Some(cores) = environment.cgroup_quota_cores {
        line.push_str(&format!(", quota {} cores", number(cores)));
    }
    if let Some(governor) = &cpu.governor {
        line.push_str(&format!(", governor {}", quote(governor, 40)));
    }
    line
}

fn memory(environment: &Environment) -> String {
    let memory = environment.memory.map_or_else(
        || NOTHING.to_owned(),
        |it| {
            let limit = environment.cgroup_memory.map_or_else(String::new, |group| {
                format!(", {} of them for the control group", bytes(group.limit_bytes as f64))
            });
            format!(
                "{}{limit}, {} available at the start",
                bytes(it.total_bytes as f64),
                bytes(environment.usable_memory_bytes().unwrap_or(it.available_bytes) as f64)
            )
        },
    );
    let disk = environment.disk_available_bytes;
    disk.map_or(memory.clone(), |free| format!("{memory}; disk {} free", bytes(free as f64)))
}

fn limits(environment: &Environment) -> String {
    let mut limits = vec![format!("descriptors {}", limit(environment.descriptors))];
    let first = environment.sysctls.iter().filter(|it| FIRST_SYSCTLS.contains(&it.name.as_str()));
    limits.extend(first.map(|it| {
        let name = it.name.rsplit('.').next().unwrap_or(&it.name);
        format!("{} {}", quote(name, 80), quote(&it.value, 80))
    }));
    limits.join(", ")
}

fn limit(limit: Limit) -> String {
    let one = |value: Option<u64>| value.map_or_else(|| "unlimited".to_owned(), count);
    if limit.soft == limit.hard {
        one(limit.soft)
    } else {
        format!("{} of {}", one(limit.soft), one(limit.hard))
    }
}

fn target(target: &TargetEnvironment) -> Fact {
    let mut line = format!("{}, pid {}", quote(&target.watch.to_string(), 80), target.pid);
    if let Some(agent) = &target.agent {
        line.push_str(&format!(", read by agent {}", quote(agent, 80)));
    }
    if let Some(version) = &target.version {
        let source = match &version.source {
            VersionSource::Dpkg(package) => format!("package {} ", quote(package, 80)),
            VersionSource::Path => "version ".to_owned(),
        };
        line.push_str(&format!(", {source}{}", quote(&version.text, 80)));
    }
    if let Some(descriptors) = target.descriptors {
        line.push_str(&format!(", descriptors {}", limit(descriptors)));
    }
    if let Some(cores) = target.cgroup_quota_cores {
        line.push_str(&format!(", quota {} cores", number(cores)));
    }
    let mut lines = vec![line];
    let command = target.command_line.join(" ");
    if !command.trim().is_empty() {
        lines.push(quote(&command, LINE));
    } else if let Some(executable) = &target.executable {
        lines.push(quote(executable, LINE));
    }
    Fact { lines, ..Fact::new("Target", "") }
}
