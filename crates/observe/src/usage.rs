//! Rates between two samples.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    HostCpu, HostMemory, HostSample, InterfaceSample, MachineSample, NetworkCounters, ProcessSample, Sample,
    TargetSample, TargetState, ThreadSample, Throttling, Watch,
};

/// What was used between two samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// The time between the samples, in seconds.
    pub seconds: f64,
    /// The targets, in the order in which they were asked for.
    pub targets: Vec<TargetUsage>,
    /// weir itself.
    pub generator: ProcessUsage,
    /// The machine that weir runs on.
    pub host: HostUsage,
    /// What was read of other machines in between, in the order of the scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<MachineSample>,
}

/// What a target used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetUsage {
    /// What was asked for.
    pub watch: Watch,
    /// Whether it lived at the later sample.
    pub state: TargetState,
    /// Its processes.
    pub process: ProcessUsage,
    /// Established connections, as last counted before the later sample.
    pub connections: Option<u64>,
}

/// What a set of processes used. Gauges are those of the later sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessUsage {
    /// Processes.
    pub processes: u64,
    /// Processes that ended in between.
    pub exited: u64,
    /// CPU time over time, in percent of one core: 250 is two and a half cores.
    pub cpu_percent: f64,
    /// The part of `cpu_percent` spent in the kernel.
    pub system_percent: f64,
    /// Resident memory in bytes.
    pub rss_bytes: u64,
    /// Open descriptors.
    pub descriptors: Option<u64>,
    /// Times a second that a thread gave up its CPU to wait.
    pub voluntary_switches_per_second: f64,
    /// Times a second that a thread had its CPU taken away.
    pub involuntary_switches_per_second: f64,
    /// Page faults that had to read from a disk, in between.
    pub major_faults: u64,
    /// What the CPU quota held back in between.
    pub throttling: Option<Throttling>,
    /// The threads that lived at the later sample, busiest first.
    pub threads: Vec<ThreadUsage>,
}

/// What a thread used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadUsage {
    /// Its process.
    pub pid: u32,
    /// Its thread id.
    pub tid: u32,
    /// Its name, of which the kernel keeps 15 bytes.
    pub name: String,
    /// CPU time over time, in percent of one core.
    pub cpu_percent: f64,
    /// Time in which it could have run and had no core, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_percent: Option<f64>,
}

/// What the machine used. Gauges are those of the later sample; ratios are of all CPUs together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostUsage {
    /// Share of CPU time spent working, from 0 to 1.
    pub cpu_busy_ratio: Option<f64>,
    /// Share of CPU time that was not idle, from 0 to 1: busy, iowait and steal. It is node_exporter's
    /// `1 − idle`, the CPU figure of mirakc's measurement.
    pub cpu_not_idle_ratio: Option<f64>,
    /// Share of CPU time spent in softirqs; it is in `cpu_busy_ratio`.
    pub cpu_softirq_ratio: Option<f64>,
    /// Share of CPU time spent waiting for disks.
    pub cpu_iowait_ratio: Option<f64>,
    /// Share of CPU time that the hypervisor gave to others.
    pub cpu_steal_ratio: Option<f64>,
    /// Load average over a minute.
    pub load1: Option<f64>,
    /// Memory.
    pub memory: Option<HostMemory>,
    /// The interfaces that were there at both samples.
    pub interfaces: Vec<InterfaceUsage>,
    /// What the network stack counted in between: counts, not rates.
    pub network: Option<NetworkCounters>,
    /// TCP segments sent again, a second.
    pub tcp_retransmits_per_second: Option<f64>,
}

/// What an interface carried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceUsage {
    /// Its name.
    pub name: String,
    /// Bits received a second, with link-layer headers.
    pub rx_bps: f64,
    /// Bits sent a second, with link-layer headers.
    pub tx_bps: f64,
    /// Packets received a second.
    pub rx_packets_per_second: f64,
    /// Packets sent a second.
    pub tx_packets_per_second: f64,
    /// Received packets dropped in between.
    pub rx_dropped: u64,
    /// Packets dropped before they were sent, in between.
    pub tx_dropped: u64,
}

impl Usage {
    /// The rates between two samples of one observer; `None` when `later` is not later.
    pub fn between(earlier: &Sample, later: &Sample) -> Option<Self> {
        let nanoseconds = later.at_ns.checked_sub(earlier.at_ns).filter(|&passed| passed > 0)?;
        let seconds = nanoseconds as f64 * 1e-9;
        let uptime = earlier.host.uptime_seconds;
        let targets = earlier.targets.iter().zip(&later.targets);
        Some(Self {
            seconds,
            targets: targets.map(|(from, to)| TargetUsage::between(from, to, uptime, seconds)).collect(),
            generator: ProcessUsage::between(&earlier.generator, &later.generator, uptime, seconds),
            host: HostUsage::between(&earlier.host, &later.host, seconds),
            machines: later.machines.clone(),
        })
    }
}

impl TargetUsage {
    fn between(earlier: &TargetSample, later: &TargetSample, uptime: f64, seconds: f64) -> Self {
        let (seconds, uptime) = TargetSample::stretch(earlier, later, (seconds, uptime));
        Self {
            watch: later.watch.clone(),
            state: later.state,
            process: ProcessUsage::between(&earlier.process, &later.process, uptime, seconds),
            connections: later.connections.map(|connections| connections.established),
        }
    }
}

impl ProcessUsage {
    fn between(earlier: &ProcessSample, later: &ProcessSample, uptime: f64, seconds: f64) -> Self {
        let percent = |from: f64, to: f64| 100.0 * (to - from).max(0.0) / seconds;
        let per_second = |from: u64, to: u64| to.saturating_sub(from) as f64 / seconds;
        let threads = thread_seconds(earlier, later, uptime).into_iter();
        let mut threads: Vec<ThreadUsage> = threads
            .map(|it| ThreadUsage {
                pid: it.thread.pid,
                tid: it.thread.tid,
                name: it.thread.name.clone(),
                cpu_percent: percent(0.0, it.cpu_seconds),
                waited_percent: it.waited_seconds.map(|waited| percent(0.0, waited)),
            })
            .collect();
        threads.sort_by(|one, other| {
            other.cpu_percent.total_cmp(&one.cpu_percent).then_with(|| one.tid.cmp(&other.tid))
        });
        Self {
            processes: later.processes,
            exited: later.exited.saturating_sub(earlier.exited),
            cpu_percent: percent(earlier.cpu_seconds, later.cpu_seconds),
            system_percent: percent(earlier.system_seconds, later.system_seconds),
            rss_bytes: later.rss_bytes,
            descriptors: later.descriptors,
            voluntary_switches_per_second: per_second(earlier.voluntary_switches, later.voluntary_switches),
            involuntary_switches_per_second: per_second(
                earlier.involuntary_switches,
                later.involuntary_switches,
            ),
            major_faults: later.major_faults.saturating_sub(earlier.major_faults),
            throttling: later.throttling.map(|throttling| throttling.since(earlier.throttling)),
            threads,
        }
    }
}

impl Throttling {
    pub(crate) fn since(&self, earlier: Option<Self>) -> Self {
        // A quota that was not there before has held nothing back before.
        let earlier = earlier.unwrap_or_default();
        Self {
            periods: self.periods.saturating_sub(earlier.periods),
            elapsed: self.elapsed.saturating_sub(earlier.elapsed),
            seconds: (self.seconds - earlier.seconds).max(0.0),
        }
    }
}

impl HostUsage {
    fn between(earlier: &HostSample, later: &HostSample, seconds: f64) -> Self {
        let ratio = |part: fn(&HostCpu) -> f64| cpu_ratio(earlier.cpu?, later.cpu?, part);
        let network = later.network.zip(earlier.network).map(|(later, earlier)| later.since(&earlier));
        Self {
            cpu_busy_ratio: ratio(|cpu| cpu.busy_seconds),
            cpu_not_idle_ratio: ratio(HostCpu::not_idle_seconds),
            cpu_softirq_ratio: ratio(|cpu| cpu.softirq_seconds),
            cpu_iowait_ratio: ratio(|cpu| cpu.iowait_seconds),
            cpu_steal_ratio: ratio(|cpu| cpu.steal_seconds),
            load1: later.load1,
            memory: later.memory,
            interfaces: interface_pairs(earlier, later)
                .map(|(from, to)| InterfaceUsage::between(from, to, seconds))
                .collect(),
            network,
            tcp_retransmits_per_second: network.map(|it| it.tcp_retransmitted_segments as f64 / seconds),
        }
    }
}

impl HostCpu {
    fn not_idle_seconds(&self) -> f64 {
        self.total_seconds() - self.idle_seconds
    }
}

impl InterfaceUsage {
    fn between(earlier: &InterfaceSample, later: &InterfaceSample, seconds: f64) -> Self {
        let since = |counter: fn(&InterfaceSample) -> u64| counter(later).saturating_sub(counter(earlier));
        let per_second = |counter| since(counter) as f64 / seconds;
        Self {
            name: later.name.clone(),
            rx_bps: 8.0 * per_second(|it| it.rx_bytes),
            tx_bps: 8.0 * per_second(|it| it.tx_bytes),
            rx_packets_per_second: per_second(|it| it.rx_packets),
            tx_packets_per_second: per_second(|it| it.tx_packets),
            rx_dropped: since(|it| it.rx_dropped),
            tx_dropped: since(|it| it.tx_dropped),
        }
    }
}

/// What a thread did between two samples.
pub(crate) struct ThreadTimes<'a> {
    pub(crate) thread: &'a ThreadSample,
    pub(crate) cpu_seconds: f64,
    /// Without a core, though it could have run.
    pub(crate) waited_seconds: Option<f64>,
}

/// The time that each thread of the later sample ran and waited since the earlier one. A thread that is not in
/// the earlier sample did all of it since then if it was born since then; otherwise its process has
/// joined late, and what it did in between is unknown.
pub(crate) fn thread_seconds<'a>(
    earlier: &ProcessSample,
    later: &'a ProcessSample,
    earlier_uptime: f64,
) -> Vec<ThreadTimes<'a>> {
    // Start times are cut to clock ticks: a thread is up to one tick younger than it says.
    const TICK_SECONDS: f64 = 0.01;
    let before: HashMap<_, &ThreadSample> = earlier.threads.iter().map(|it| (it.identity(), it)).collect();
    let times = |thread: &'a ThreadSample| {
        let (cpu, waited) = match before.get(&thread.identity()) {
            Some(before) => (before.cpu_seconds, before.waited_seconds),
            None if thread.started_seconds + TICK_SECONDS >= earlier_uptime => {
                (0.0, thread.waited_seconds.map(|_| 0.0))
            }
            None => (thread.cpu_seconds, thread.waited_seconds),
        };
        let waited_seconds = thread.waited_seconds.zip(waited).map(|(to, from)| (to - from).max(0.0));
        ThreadTimes { thread, cpu_seconds: (thread.cpu_seconds - cpu).max(0.0), waited_seconds }
    };
    later.threads.iter().map(times).collect()
}

/// The share of `part` in the CPU time between two readings, from 0 to 1.
pub(crate) fn cpu_ratio(earlier: HostCpu, later: HostCpu, part: fn(&HostCpu) -> f64) -> Option<f64> {
    let total = later.total_seconds() - earlier.total_seconds();
    // Idle and iowait may run backwards a little: the kernel says so itself (proc_stat(5)).
    (total > 0.0).then(|| ((part(&later) - part(&earlier)) / total).clamp(0.0, 1.0))
}

/// The interfaces that are in both samples.
pub(crate) fn interface_pairs<'a>(
    earlier: &'a HostSample,
    later: &'a HostSample,
) -> impl Iterator<Item = (&'a InterfaceSample, &'a InterfaceSample)> {
    later.interfaces.iter().filter_map(|to| {
        let from = earlier.interfaces.iter().find(|from| from.name == to.name)?;
        Some((from, to))
    })
}

impl ThreadSample {
    /// What identifies this thread among all others, also a later one with its id.
    pub(crate) fn identity(&self) -> (u32, u32, u64) {
        // In hundredths: a number that went through JSON may differ in its last digit.
        (self.pid, self.tid, (self.started_seconds * 100.0).round() as u64)
    }
}
