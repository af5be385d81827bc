//! `weir watch`: a server's processes, once a second, without a load.

use crate::args;
use crate::exit::Exit;
use crate::interrupt::interrupt_flag;
use crate::print::written;
use std::io::Write;
use std::sync::atomic::Ordering;
use std::time::Duration;
use weir_metrics::{BitRate, several};
use weir_observe::{
    Environment, Interfaces, MachineSample, MachineSource, Sampler, Usage, Watch, WatchError,
};
use weir_runner::machine::{self, MachinePlaces};
use weir_runner::{ErrorKind, RunError};
use weir_shard::clock;

/// Watches until Ctrl-C, the end of the duration, or the target's death.
pub(crate) fn watch(args: &args::Watch) -> Result<Exit, RunError> {
    let names = args.name.iter().map(|name| format!("name={name}").parse());
    let mut watches: Vec<Watch> =
        names.collect::<Result<_, WatchError>>().map_err(RunError::with(ErrorKind::Usage))?;
    watches.extend(args.pid.iter().copied().map(Watch::Pid));
    watches.extend(args.port.iter().copied().map(Watch::Port));
    let asks = args.machine.prometheus.is_some() || args.machine.node_exporter.is_some();
    if watches.is_empty() && !asks {
        return Err(RunError::new(
            ErrorKind::Usage,
            "say what to watch: --name nginx, --pid 123, --port 1935, --node-exporter http://host:9100 or --prometheus http://host:9090",
        ));
    }
    let interrupt = interrupt_flag()?;
    let mut sampler = Sampler::new(watches).map_err(RunError::with(ErrorKind::Usage))?;
    let names = args.machine.interfaces.iter().cloned();
    let places = MachinePlaces {
        node_exporter: args.machine.node_exporter.as_deref(),
        prometheus: args.machine.prometheus.as_deref(),
        instance: args.machine.prometheus_instance.as_deref(),
        interfaces: if names.len() == 0 { Interfaces::default() } else { names.collect() },
        trust: &machine::trust(args.insecure, args.cacert.as_deref()),
    };
    machine::watch_alone(&mut sampler, &places)?;
    let machines: Vec<MachineSource> = sampler.machines().map(|facts| facts.source).collect();
    let started = clock::now();
    let mut before = sampler.sample(started.as_nanos());
    let cores = Environment::read().cpu.online_count.max(1);
    let mut out = std::io::stdout().lock();
    // A reader that is gone has seen enough.
    let mut is_read = |line: &str| match writeln!(out, "{line}") {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        other => written(other).map(|()| true),
    };
    if !args.json && !is_read(&head(cores))? {
        return Ok(Exit::Passed);
    }
    let mut next = started;
    loop {
        next = next + Duration::from_secs(1);
        while clock::now() < next {
            if interrupt.load(Ordering::Relaxed) {
                return Ok(Exit::Failed(ErrorKind::Interrupted));
            }
            std::thread::sleep(next.since(clock::now()).min(Duration::from_millis(50)));
        }
        let now = clock::now();
        let sample = sampler.sample(now.as_nanos());
        let Some(usage) = Usage::between(&before, &sample) else { continue };
        let line = if args.json {
            serde_json::to_string(&usage).map_err(RunError::with(ErrorKind::Internal))?
        } else {
            line(now.since(started), &usage, &machines, cores)
        };
        if !is_read(&line)? {
            return Ok(Exit::Passed);
        }
        let targets = &sample.targets;
        if !targets.is_empty() && targets.iter().all(|target| target.state == weir_observe::TargetState::Died)
        {
            return Err(RunError::new(ErrorKind::TargetDied, "the target's processes are gone"));
        }
        before = sample;
        if args.duration.as_ref().is_some_and(|span| now.since(started) >= span.get()) {
            return Ok(Exit::Passed);
        }
    }
}

/// What the percentages of all lines are of.
fn head(cores: u64) -> String {
    let most = cores * 100;
    format!(
        "CPU: 100% is one core, this machine has {most}%; of a machine asked over HTTP 100% is all its cores"
    )
}

fn line(elapsed: Duration, usage: &Usage, machines: &[MachineSource], cores: u64) -> String {
    let mut line = format!("{:>4} s", elapsed.as_secs());
    for target in &usage.targets {
        let process = &target.process;
        line += &format!(
            " · {} CPU {:.0}% · {:.0} MB",
            target.watch,
            process.cpu_percent,
            process.rss_bytes as f64 * 1e-6
        );
        if let Some(connections) = target.connections {
            line += &format!(" · {}", several(connections, "connection"));
        }
        if let Some(thread) = process.threads.first() {
            line += &format!(" · busiest {} {:.0}%", thread.name, thread.cpu_percent);
        }
    }
    if let Some(ratio) = usage.host.cpu_busy_ratio {
        line += &format!(" · host {:.0}%", ratio * 100.0 * cores as f64);
    }
    line.extend(machines.iter().zip(&usage.machines).map(|(source, heard)| machine_part(*source, heard)));
    line
}

/// What a machine that is asked over HTTP did; nothing where it has not answered yet.
fn machine_part(source: MachineSource, heard: &MachineSample) -> String {
    let name = match source {
        MachineSource::Prometheus => "Prometheus",
        MachineSource::NodeExporter | MachineSource::Proc => "node_exporter",
    };
    if let Some(words) = &heard.failure {
        return format!(" · {name} does not answer: {words}");
    }
    let Some(values) = heard.points.last().map(|point| point.values) else { return String::new() };
    if let Some(words) = &heard.gap
        && values.is_empty()
    {
        return format!(" · {name} –: {words}");
    }
    let rate = |bps: f64| BitRate::from_bps(bps).to_string();
    let parts = [
        values.cpu_percent.map(|percent| format!("CPU {percent:.0}%")),
        values.memory_bytes.map(|bytes| format!("{:.0} MB", bytes * 1e-6)),
        values.load1.map(|load| format!("load1 {load:.2}")),
        values.tx_bps.map(|bps| format!("tx {}", rate(bps))),
        values.rx_bps.map(|bps| format!("rx {}", rate(bps))),
    ];
    format!(" · {name} {}", parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_observe::{HostUsage, ProcessUsage};

    #[test]
    fn a_share_is_written_as_in_reports() {
        let host = HostUsage { cpu_busy_ratio: Some(0.014), ..HostUsage::default() };
        let usage = Usage {
            seconds: 1.0,
            targets: Vec::new(),
            generator: ProcessUsage::default(),
            host,
            machines: Vec::new(),
        };
        assert_eq!(line(Duration::from_secs(3), &usage, &[], 1), "   3 s · host 1%");
        // As in the table of a report: of one core.
        assert_eq!(line(Duration::from_secs(3), &usage, &[], 64), "   3 s · host 90%");
        assert!(head(64).contains("100% is one core") && head(64).contains("6400%"));
    }
}
