//! What processes and the host did over a stage's window, as a summary has it.

use crate::summary::{DescriptorLoad, HostLoad, LinkLoad, OtherLoad, ProcessLoad, ThreadLoad, ThrottledLoad};
use weir_observe::{
    Cpu, Environment, InterfaceSpeed, InterfaceSummary, OtherProcesses, ProcessSummary, UsageSummary,
};

/// Thread names listed for a process.
pub(crate) const LISTED_THREADS: usize = 32;

pub(crate) fn process_load(
    label: String,
    process: &ProcessSummary,
    connections_max: Option<u64>,
    seconds: f64,
) -> ProcessLoad {
    ProcessLoad {
        label,
        cpu_percent: process.cpu_percent.mean,
        cpu_percent_max: process.cpu_percent.max,
        cpu_seconds: Some(process.cpu_percent.mean / 100.0 * seconds),
        rss_max_bytes: process.rss_bytes.max as u64,
        rss_mean_bytes: process.rss_bytes.mean,
        connections_max,
        descriptors_max: process.descriptors.map(|figure| figure.max as u64),
        context_switches_per_second: process.voluntary_switches_per_second.mean
            + process.involuntary_switches_per_second.mean,
        threads: process
            .thread_names
            .iter()
            .take(LISTED_THREADS)
            .map(|thread| ThreadLoad {
                name: thread.name.clone(),
                threads: thread.threads as u32,
                cpu_percent: thread.cpu_percent,
                cpu_percent_busiest: thread.busiest_percent,
                waited_percent_busiest: thread.busiest_waited_percent,
            })
            .collect(),
        waited_percent: process.waited_percent,
        fullest: process.fullest.map(|it| DescriptorLoad { open: it.open, limit: it.limit }),
        throttled: process.throttling.filter(|it| it.periods > 0).map(|it| ThrottledLoad {
            periods: it.periods,
            of_periods: it.elapsed.max(it.periods),
            seconds: it.seconds,
        }),
    }
}

fn other_load(other: &OtherProcesses, seconds: f64) -> OtherLoad {
    OtherLoad {
        name: other.name.clone(),
        pid: other.pid,
        processes: other.processes,
        cpu_percent: 100.0 * other.cpu_seconds / seconds.max(1e-3),
    }
}

/// CPUs that the whole machine has.
pub(crate) fn cores(cpu: &Cpu) -> f64 {
    cpu.online_count.max(1) as f64
}

pub(crate) fn host_load(usage: &UsageSummary, environment: &Environment) -> HostLoad {
    let (host, cores) = (&usage.host, cores(&environment.cpu));
    let mean = |figure: Option<weir_observe::Figure>| figure.map_or(0.0, |figure| figure.mean);
    let max = |figure: Option<weir_observe::Figure>| figure.map_or(0.0, |figure| figure.max);
    let interfaces = |value: fn(&InterfaceSummary) -> f64| host.interfaces.iter().map(value).sum();
    HostLoad {
        cpu_percent: 100.0 * cores * mean(host.cpu_busy_ratio),
        steal_percent: 100.0 * cores * mean(host.cpu_steal_ratio),
        others_percent: usage.others.cpu_percent,
        others: usage.others.busiest.iter().map(|other| other_load(other, usage.seconds)).collect(),
        softirq_percent: host.own_softirq_ratio.map(|ratio| 100.0 * ratio),
        load1_max: max(host.load1),
        memory_used_max_bytes: max(host.memory_used_bytes) as u64,
        rx_bps: interfaces(|interface| interface.rx_bps.mean),
        tx_bps: interfaces(|interface| interface.tx_bps.mean),
        link: busiest_link(&host.interfaces, &environment.interfaces),
        tcp_retransmits_per_second: mean(host.tcp_retransmits_per_second),
        listen_drops: host.network.map_or(0, |network| network.listen_drops),
    }
}

/// The interface that came closest to its speed.
fn busiest_link(interfaces: &[InterfaceSummary], speeds: &[InterfaceSpeed]) -> Option<LinkLoad> {
    let links = interfaces.iter().filter_map(|it| {
        let speed = speeds.iter().find(|speed| speed.name == it.name)?;
        Some(LinkLoad {
            interface: it.name.clone(),
            bps: it.rx_bps.mean.max(it.tx_bps.mean),
            speed_bps: speed.bits_per_second as f64,
        })
    });
    links.max_by(|one, other| (one.bps / one.speed_bps).total_cmp(&(other.bps / other.speed_bps)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_observe::Figure;

    fn interface(name: &str, rx_bps: f64, tx_bps: f64) -> InterfaceSummary {
        let figure = |mean| Figure { min: mean, mean, p95: mean, max: mean };
        InterfaceSummary { name: name.to_owned(), rx_bps: figure(rx_bps), tx_bps: figure(tx_bps) }
    }

    #[test]
    fn the_link_that_is_named_is_the_one_that_is_fullest_and_not_the_one_that_carries_most() {
        let interfaces =
            [interface("lo", 9e9, 9e9), interface("eth0", 1e8, 8e8), interface("eth1", 2e9, 0.0)];
        let speeds = [("eth0", 1_000_000_000), ("eth1", 10_000_000_000)];
        let speeds =
            speeds.map(|(name, bits_per_second)| InterfaceSpeed { name: name.to_owned(), bits_per_second });
        let link = busiest_link(&interfaces, &speeds).unwrap();
        assert_eq!(link, LinkLoad { interface: "eth0".to_owned(), bps: 8e8, speed_bps: 1e9 });
        assert_eq!(busiest_link(&interfaces, &[]), None);
    }
}
