//! What processes and the host did over a stage's window, as a summary has it.

use crate::summary::{HostLoad, OtherLoad, ProcessLoad, ThreadLoad};
use weir_observe::{OtherProcesses, ProcessSummary, UsageSummary};

/// Thread names listed for a process.
const LISTED_THREADS: usize = 32;

pub(crate) fn process_load(
    label: String,
    process: &ProcessSummary,
    connections_max: Option<u64>,
) -> ProcessLoad {
    ProcessLoad {
        label,
        cpu_percent: process.cpu_percent.mean,
        cpu_percent_max: process.cpu_percent.max,
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
            })
            .collect(),
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

pub(crate) fn host_load(usage: &UsageSummary, cores: f64) -> HostLoad {
    let host = &usage.host;
    let mean = |figure: Option<weir_observe::Figure>| figure.map_or(0.0, |figure| figure.mean);
    let max = |figure: Option<weir_observe::Figure>| figure.map_or(0.0, |figure| figure.max);
    let interfaces =
        |value: fn(&weir_observe::InterfaceSummary) -> f64| host.interfaces.iter().map(value).sum();
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
        tcp_retransmits_per_second: mean(host.tcp_retransmits_per_second),
        listen_drops: host.network.map_or(0, |network| network.listen_drops),
    }
}
