//! `weir watch`: a server's processes, once a second, without a load.

use crate::args;
use crate::conduct::interrupt_flag;
use crate::exit::{Exit, Failure};
use std::io::Write;
use std::sync::atomic::Ordering;
use std::time::Duration;
use weir_observe::{Observer, Usage, Watch};
use weir_shard::clock;

/// Watches until Ctrl-C, the end of the duration, or the target's death.
pub(crate) fn watch(args: &args::Watch) -> Result<Exit, Failure> {
    let watches: Vec<Watch> = args
        .name
        .iter()
        .cloned()
        .map(Watch::Name)
        .chain(args.pid.iter().copied().map(Watch::Pid))
        .chain(args.port.iter().copied().map(Watch::Port))
        .collect();
    if watches.is_empty() {
        return Err(Failure::new(Exit::Usage, "say what to watch: --name nginx, --pid 123 or --port 1935"));
    }
    let interrupt = interrupt_flag()?;
    let mut observer = Observer::new(watches).map_err(Failure::with(Exit::Usage))?;
    let started = clock::now();
    let mut before = observer.sample(started.as_nanos());
    let mut out = std::io::stdout().lock();
    let mut next = started;
    loop {
        next = next + Duration::from_secs(1);
        while clock::now() < next {
            if interrupt.load(Ordering::Relaxed) {
                return Ok(Exit::Interrupted);
            }
            std::thread::sleep(next.since(clock::now()).min(Duration::from_millis(50)));
        }
        let now = clock::now();
        let sample = observer.sample(now.as_nanos());
        let Some(usage) = Usage::between(&before, &sample) else { continue };
        let line = if args.json {
            serde_json::to_string(&usage).map_err(Failure::with(Exit::Internal))?
        } else {
            line(now.since(started), &usage)
        };
        if writeln!(out, "{line}").is_err() {
            return Ok(Exit::Passed);
        }
        if sample.targets.iter().all(|target| target.state == weir_observe::TargetState::Died) {
            return Err(Failure::new(Exit::TargetDied, "the target's processes are gone"));
        }
        before = sample;
        if args.duration.as_ref().is_some_and(|span| now.since(started) >= span.get()) {
            return Ok(Exit::Passed);
        }
    }
}

fn line(elapsed: Duration, usage: &Usage) -> String {
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
            line += &format!(" · {connections} connections");
        }
        if let Some(thread) = process.threads.first() {
            line += &format!(" · busiest {} {:.0}%", thread.name, thread.cpu_percent);
        }
    }
    if let Some(ratio) = usage.host.cpu_busy_ratio {
        line += &format!(" · host {:.0}%", ratio * 100.0);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_observe::{HostUsage, ProcessUsage};

    #[test]
    fn a_share_is_written_as_in_reports() {
        let host = HostUsage { cpu_busy_ratio: Some(0.014), ..HostUsage::default() };
        let usage = Usage { seconds: 1.0, targets: Vec::new(), generator: ProcessUsage::default(), host };
        assert_eq!(line(Duration::from_secs(3), &usage), "   3 s · host 1%");
    }
}
