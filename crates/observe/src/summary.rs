//! What the samples of a window come to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::others;
use crate::thread_table::ThreadTable;
use crate::usage::thread_seconds;
use crate::{
    DescriptorUse, Figure, HostCpu, HostSample, HostUsage, InterfaceUsage, NetworkCounters, OtherProcesses,
    ProcessSample, ProcessUsage, Sample, StackCounters, TargetSample, TargetState, ThreadNameSummary,
    ThreadSummary, Throttling, Usage, Watch,
};

/// A stretch of time on the clock of the samples, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// The first nanosecond.
    pub from_ns: u64,
    /// The last nanosecond.
    pub to_ns: u64,
}

/// What the samples of a window come to: `min`, `p95` and `max` are taken over the intervals between
/// samples, means over the whole window.
#[derive(Clone, Debug, PartialEq)]
pub struct UsageSummary {
    /// From the first sample in the window to the last, in seconds.
    pub seconds: f64,
    /// Samples in the window.
    pub samples: u64,
    /// The targets, in the order in which they were asked for, without the unheard ones.
    pub targets: Vec<TargetSummary>,
    /// Targets on other machines of which nothing was heard in the last 3 s: what they used over the window is unknown.
    pub unheard: Vec<Watch>,
    /// weir itself.
    pub generator: ProcessSummary,
    /// The machine.
    pub host: HostSummary,
    /// What of the machine was neither weir's nor the targets'.
    pub others: OthersSummary,
}

/// What else used the machine over a window, in percent of one core.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OthersSummary {
    /// CPU of processes that are neither weir's nor a target's, softirqs left out; `None` where the host's CPU time
    /// cannot be read.
    pub cpu_percent: Option<f64>,
    /// CPU that was idle.
    pub idle_percent: Option<f64>,
    /// Those that used most of it, by name; nothing while that was little.
    pub busiest: Vec<OtherProcesses>,
}

/// A target over a window.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetSummary {
    /// What was asked for.
    pub watch: Watch,
    /// `Died` if it was dead at any sample of the window.
    pub state: TargetState,
    /// Its processes.
    pub process: ProcessSummary,
    /// Established connections.
    pub connections: Option<Figure>,
}

/// A set of processes over a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessSummary {
    /// CPU time used, in seconds.
    pub cpu_seconds: f64,
    /// CPU time over time, in percent of one core.
    pub cpu_percent: Figure,
    /// Resident memory in bytes.
    pub rss_bytes: Figure,
    /// Open descriptors.
    pub descriptors: Option<Figure>,
    /// Of the process and the sample in which the limit of open descriptors was nearest.
    pub fullest: Option<DescriptorUse>,
    /// Time in which threads could have run and had no core, summed over them, in percent of one core.
    pub waited_percent: Option<f64>,
    /// Times a second that a thread gave up its CPU to wait.
    pub voluntary_switches_per_second: Figure,
    /// Times a second that a thread had its CPU taken away.
    pub involuntary_switches_per_second: Figure,
    /// What the CPU quota held back.
    pub throttling: Option<Throttling>,
    /// Every thread that was seen, busiest over the window first. The CPU time of a thread that has ended
    /// is known up to its last sample.
    pub threads: Vec<ThreadSummary>,
    /// The same by name, busiest first.
    pub thread_names: Vec<ThreadNameSummary>,
}

/// The machine over a window. A part is `None` where it could not be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostSummary {
    /// Share of CPU time spent working, from 0 to 1.
    pub cpu_busy_ratio: Option<Figure>,
    /// Share of CPU time that the hypervisor gave to others.
    pub cpu_steal_ratio: Option<Figure>,
    /// The same of the CPUs that weir may run on.
    pub own_steal_ratio: Option<f64>,
    /// Share of its time that the CPU which did most of it spent in softirqs, among those that weir may run on.
    pub own_softirq_ratio: Option<f64>,
    /// Which CPU that was: its place among those that weir may run on, from 0.
    pub own_softirq_core: Option<usize>,
    /// Load average over a minute.
    pub load1: Option<Figure>,
    /// `MemTotal − MemAvailable` in bytes.
    pub memory_used_bytes: Option<Figure>,
    /// The interfaces that were there all the time.
    pub interfaces: Vec<InterfaceSummary>,
    /// What the network stack counted.
    pub network: Option<NetworkCounters>,
    /// TCP segments sent again, a second.
    pub tcp_retransmits_per_second: Option<Figure>,
    /// What became of packets before they reached a socket.
    pub stack: Option<StackCounters>,
    /// Share of the time in which all processes of the machine waited for memory.
    pub memory_stalled_ratio: Option<f64>,
    /// How often CPUs that weir may run on began to be throttled because they were hot.
    pub thermal_events: Option<u64>,
}

/// An interface over a window.
#[derive(Clone, Debug, PartialEq)]
pub struct InterfaceSummary {
    /// Its name.
    pub name: String,
    /// Bits received a second, with link-layer headers.
    pub rx_bps: Figure,
    /// Bits sent a second, with link-layer headers.
    pub tx_bps: Figure,
    /// Packets that its card had no buffer for; `None` where that was not read.
    pub rx_missed: Option<u64>,
}

impl Usage {
    /// Sums up the samples in the window; `None` for fewer than two of them. The samples are those of one
    /// observer, in order.
    pub fn summary(samples: &[Sample], window: Window) -> Option<UsageSummary> {
        let start = samples.partition_point(|sample| sample.at_ns < window.from_ns);
        let end = samples.partition_point(|sample| sample.at_ns <= window.to_ns);
        let samples = samples.get(start..end)?;
        let spaced = Sample::spaced(samples);
        let pairs = spaced.windows(2);
        let intervals: Vec<Usage> = pairs.filter_map(|pair| Self::between(pair[0], pair[1])).collect();
        let whole = Self::between(samples.first()?, samples.last()?)?;
        let series = Series { samples, spaced, whole, intervals };
        Some(UsageSummary {
            seconds: series.whole.seconds,
            samples: samples.len() as u64,
            targets: (0..series.whole.targets.len()).filter_map(|index| series.target(index)).collect(),
            unheard: (0..series.whole.targets.len()).filter_map(|index| series.unheard(index)).collect(),
            generator: series.process(
                |sample| Some(&sample.generator),
                |usage| Some(&usage.generator),
                here,
            )?,
            host: series.host(),
            others: series.others(),
        })
    }
}

/// Seconds between two samples, and the uptime of weir's machine at the first.
fn here(from: &Sample, to: &Sample) -> (f64, f64) {
    (to.at_ns.saturating_sub(from.at_ns) as f64 * 1e-9, from.host.uptime_seconds)
}

impl ProcessSummary {
    /// The thread that used most CPU time over the window.
    pub fn busiest_thread(&self) -> Option<&ThreadSummary> {
        self.threads.first()
    }
}

/// The samples of a window, the rates of its intervals, and those of the whole.
struct Series<'a> {
    samples: &'a [Sample],
    /// Those that rates are taken between.
    spaced: Vec<&'a Sample>,
    intervals: Vec<Usage>,
    whole: Usage,
}

impl Series<'_> {
    /// A target as it was read last.
    fn last(&self, index: usize) -> Option<&TargetSample> {
        self.samples.iter().rev().find_map(|sample| sample.targets.get(index))
    }

    /// A target whose readings ended before the window did.
    fn unheard(&self, index: usize) -> Option<Watch> {
        let (last, end) = (self.last(index)?, self.samples.last()?);
        last.is_unheard(end.at_ns).then(|| last.watch.clone())
    }

    fn target(&self, index: usize) -> Option<TargetSummary> {
        let samples = || self.samples.iter().filter_map(|sample| sample.targets.get(index));
        let last = self.last(index)?;
        // Figures of the time before its readings ended are not figures of this window.
        if self.unheard(index).is_some() {
            return None;
        }
        // Each count once, not each sample that repeats it.
        let mut counts: Vec<_> = samples().filter_map(|target| target.connections).collect();
        counts.dedup_by_key(|connections| connections.counted_at_ns);
        let died = samples().any(|target| target.state == TargetState::Died);
        Some(TargetSummary {
            watch: last.watch.clone(),
            state: if died { TargetState::Died } else { TargetState::Running },
            process: self.process(
                |sample| Some(&sample.targets.get(index)?.process),
                |usage| Some(&usage.targets.get(index)?.process),
                |from, to| match (from.targets.get(index), to.targets.get(index)) {
                    (Some(earlier), Some(later)) => TargetSample::stretch(earlier, later, here(from, to)),
                    _ => here(from, to),
                },
            )?,
            connections: Figure::of_gauge(counts.iter().map(|connections| connections.established as f64)),
        })
    }

    fn process(
        &self,
        sample: impl Fn(&Sample) -> Option<&ProcessSample>,
        usage: impl Fn(&Usage) -> Option<&ProcessUsage>,
        stretch: impl Fn(&Sample, &Sample) -> (f64, f64),
    ) -> Option<ProcessSummary> {
        let samples: Vec<&ProcessSample> = self.samples.iter().map(&sample).collect::<Option<_>>()?;
        let intervals: Vec<&ProcessUsage> = self.intervals.iter().map(&usage).collect::<Option<_>>()?;
        let whole = usage(&self.whole)?;
        let gauge = |value: fn(&ProcessSample) -> f64| Figure::of_gauge(samples.iter().copied().map(value));
        let rate = |value: fn(&ProcessUsage) -> f64| {
            Figure::of_rate(intervals.iter().copied().map(value), value(whole))
        };
        let mut threads = ThreadTable::default();
        for pair in self.spaced.windows(2) {
            let (seconds, uptime) = stretch(pair[0], pair[1]);
            let (from, to) = (sample(pair[0])?, sample(pair[1])?);
            threads.add(thread_seconds(from, to, uptime), seconds);
        }
        let (whole_seconds, _) = stretch(self.samples.first()?, self.samples.last()?);
        let (threads, thread_names) = threads.finish(whole_seconds);
        Some(ProcessSummary {
            cpu_seconds: whole.cpu_percent / 100.0 * whole_seconds,
            cpu_percent: rate(|it| it.cpu_percent)?,
            rss_bytes: gauge(|it| it.rss_bytes as f64)?,
            descriptors: Figure::of_gauge(samples.iter().filter_map(|it| it.descriptors).map(|it| it as f64)),
            fullest: samples.iter().filter_map(|it| it.fullest).reduce(DescriptorUse::fuller),
            waited_percent: threads.iter().filter_map(|it| it.waited_percent).reduce(|sum, it| sum + it),
            voluntary_switches_per_second: rate(|it| it.voluntary_switches_per_second)?,
            involuntary_switches_per_second: rate(|it| it.involuntary_switches_per_second)?,
            throttling: whole.throttling,
            threads,
            thread_names,
        })
    }

    fn host(&self) -> HostSummary {
        let gauge = |value: fn(&HostSample) -> Option<f64>| {
            Figure::of_gauge(self.samples.iter().filter_map(|sample| value(&sample.host)))
        };
        let rate = |value: fn(&HostUsage) -> Option<f64>| {
            let values = self.intervals.iter().filter_map(|usage| value(&usage.host));
            Figure::of_rate(values, value(&self.whole.host)?)
        };
        HostSummary {
            cpu_busy_ratio: rate(|it| it.cpu_busy_ratio),
            cpu_steal_ratio: rate(|it| it.cpu_steal_ratio),
            own_steal_ratio: self.of_cores(
                |host| &host.core_steal_seconds,
                |cores| cores.iter().sum::<f64>() / cores.len() as f64,
            ),
            own_softirq_ratio: self.of_cores(
                |host| &host.core_softirq_seconds,
                |cores| cores.iter().copied().fold(0.0, f64::max),
            ),
            own_softirq_core: self
                .of_cores(
                    |host| &host.core_softirq_seconds,
                    |cores| (0..cores.len()).max_by(|one, other| cores[*one].total_cmp(&cores[*other])),
                )
                .flatten(),
            load1: gauge(|it| it.load1),
            memory_used_bytes: gauge(|it| Some(it.memory?.used_bytes as f64)),
            interfaces: self.whole.host.interfaces.iter().filter_map(|it| self.interface(it)).collect(),
            network: self.whole.host.network,
            tcp_retransmits_per_second: rate(|it| it.tcp_retransmits_per_second),
            stack: StackCounters::over(self.samples.iter().map(|sample| sample.host.stack)),
            memory_stalled_ratio: self.passed(
                |host| host.memory_stalled_seconds,
                |from, to| ((to - from) / self.whole.seconds).clamp(0.0, 1.0),
            ),
            thermal_events: self.passed(|host| host.thermal_events, |from, to| to.saturating_sub(from)),
        }
    }

    /// What a counter of the machine came to from the first sample to the last.
    fn passed<T, U>(&self, counter: fn(&HostSample) -> Option<T>, since: impl Fn(T, T) -> U) -> Option<U> {
        let [from, to] = [self.samples.first()?, self.samples.last()?].map(|sample| counter(&sample.host));
        from.zip(to).map(|(from, to)| since(from, to))
    }

    /// The shares of their time of the CPUs that weir may run on, as one; `None` where they are not known, or are not
    /// the same from the first sample to the last.
    fn of_cores<T>(&self, part: fn(&HostSample) -> &Vec<f64>, one: fn(&[f64]) -> T) -> Option<T> {
        let (from, to) = (part(&self.samples.first()?.host), part(&self.samples.last()?.host));
        let shares: Vec<f64> = from
            .iter()
            .zip(to)
            .map(|(from, to)| ((to - from) / self.whole.seconds).clamp(0.0, 1.0))
            .collect();
        (!shares.is_empty() && from.len() == to.len()).then(|| one(&shares))
    }

    fn others(&self) -> OthersSummary {
        let ends = self.samples.first().zip(self.samples.last());
        let cpu = ends.and_then(|(from, to)| from.host.cpu.zip(to.host.cpu));
        let percent = |part: fn(&HostCpu) -> f64| {
            let (from, to) = cpu?;
            Some(100.0 * (part(&to) - part(&from)) / self.whole.seconds)
        };
        let is_here = |index: &usize| {
            self.samples.iter().all(|it| it.targets.get(*index).is_none_or(|it| it.elsewhere.is_none()))
        };
        let targets = (0..self.whole.targets.len()).filter(is_here);
        let targets: f64 = targets.map(|index| self.whole.targets[index].process.cpu_percent).sum();
        let known = self.whole.generator.cpu_percent + targets;
        // What the first sample holds of other processes was before the window.
        let walks = self.samples.iter().skip(1).flat_map(|sample| &sample.others);
        OthersSummary {
            cpu_percent: percent(HostCpu::worked_seconds).map(|worked| (worked - known).max(0.0)),
            idle_percent: percent(|cpu| cpu.idle_seconds + cpu.iowait_seconds).map(|idle| idle.max(0.0)),
            busiest: others::together(walks),
        }
    }

    /// What a card had no buffer for from the first sample to the last. A counter that ran backwards counts nothing.
    fn missed(&self, name: &str) -> Option<u64> {
        let missed = |sample: &Sample| sample.host.interfaces.iter().find(|it| it.name == name)?.rx_missed;
        let (from, to) = (missed(self.samples.first()?)?, missed(self.samples.last()?)?);
        Some(to.saturating_sub(from))
    }

    fn interface(&self, whole: &InterfaceUsage) -> Option<InterfaceSummary> {
        let hosts = self.intervals.iter().map(|usage| &usage.host);
        let intervals = hosts.map(|host| host.interfaces.iter().find(|it| it.name == whole.name));
        let intervals: Vec<&InterfaceUsage> = intervals.collect::<Option<_>>()?;
        let rate = |value: fn(&InterfaceUsage) -> f64| {
            Figure::of_rate(intervals.iter().copied().map(value), value(whole))
        };
        Some(InterfaceSummary {
            name: whole.name.clone(),
            rx_bps: rate(|it| it.rx_bps)?,
            tx_bps: rate(|it| it.tx_bps)?,
            rx_missed: self.missed(&whole.name),
        })
    }
}

#[cfg(test)]
mod tests;
