//! What the target's machine did, by five figures that have one name and one formula, whatever counted:
//! `/proc` on this machine, a node_exporter, or a Prometheus that asks one.
//!
//! The figures are those of mirakc's and Mirakurun's measurement. Nothing here knows how they were got.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{HostSample, Interfaces};

/// The source of the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MachineSource {
    /// `/proc`: the machine is weir's own.
    Proc,
    /// A node_exporter, asked once a second.
    NodeExporter,
    /// A Prometheus, asked for the past seconds.
    Prometheus,
}

/// A machine whose figures are taken, and how. Nothing in it is secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineFacts {
    /// The source of the counters.
    pub source: MachineSource,
    /// URL without user, password and query; none for `/proc`.
    pub address: Option<String>,
    /// Prometheus: the value of the label `instance` that was asked for.
    pub instance: Option<String>,
    /// The interfaces that `tx` and `rx` are sums of.
    pub interfaces: Interfaces,
    /// Time from one point to the next, in seconds.
    pub step_seconds: f64,
    /// Prometheus: its wall clock minus weir's at the start.
    pub clock_ahead_seconds: Option<f64>,
    /// Prometheus: its page of curves.
    pub graph: Option<String>,
    /// Prometheus: what it is asked, in the order of `cpu`, `memory`, `load1`, `tx`, `rx`.
    pub expressions: Vec<String>,
}

/// The five figures. One that was not counted is absent, never 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineValues {
    /// `cpu`: 100 · (1 − idle), in percent of all CPUs together; waiting for disks and what a hypervisor
    /// took are in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<f64>,
    /// `memory`: MemTotal − (MemFree + Buffers + Cached).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<f64>,
    /// The most of it since the point before, where points are further apart than what they are made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_peak_bytes: Option<f64>,
    /// `load1`: load average over a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load1: Option<f64>,
    /// `tx`: bits sent a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_bps: Option<f64>,
    /// `rx`: bits received a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rx_bps: Option<f64>,
}

/// The figures of one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachinePoint {
    /// When, in nanoseconds on the clock of the samples.
    pub at_ns: u64,
    /// The time up to `at_ns` that rates are over; what one point stands for in a mean of rates.
    pub seconds: f64,
    /// The figures.
    #[serde(flatten)]
    pub values: MachineValues,
}

/// What was read of a machine since the sample before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineSample {
    /// The points that came, the oldest first.
    pub points: Vec<MachinePoint>,
    /// Why none came, where the last request failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Why points of it hold nothing, where the source answered and knew nothing of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<String>,
}

/// Points that one sample holds for others that are not kept, so that a run of days has no more of them than one of hours.
const MOST_POINTS: usize = 8;

impl MachineSample {
    /// Whether nothing was read, and nothing said why.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty() && self.failure.is_none() && self.gap.is_none()
    }

    /// Puts what an earlier one has before what this one has; of too many points every other one stays.
    pub(crate) fn take_over(&mut self, mut earlier: Self) {
        earlier.points.append(&mut self.points);
        self.points = earlier.points;
        if self.points.len() > MOST_POINTS {
            let mut left_out = None;
            let mut numbers = 0..;
            self.points.retain_mut(|point| {
                let stays = numbers.next().is_some_and(|number: usize| number.is_multiple_of(2));
                if stays {
                    point.values.reach(left_out.take());
                } else {
                    left_out = point.values.most_memory_bytes();
                }
                stays
            });
            if let Some(last) = self.points.last_mut() {
                last.values.reach(left_out);
            }
        }
        self.failure = earlier.failure.or(self.failure.take());
        self.gap = earlier.gap.or(self.gap.take());
    }
}

/// Counters and gauges that the figures are made of.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reading {
    pub(crate) cpu: Option<CpuTime>,
    pub(crate) memory_bytes: Option<f64>,
    pub(crate) load1: Option<f64>,
    pub(crate) interfaces: Vec<InterfaceBytes>,
}

/// CPU time since boot, all CPUs together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CpuTime {
    pub(crate) idle_seconds: f64,
    /// Of all kinds, idle included.
    pub(crate) total_seconds: f64,
}

/// Bytes since boot.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct InterfaceBytes {
    pub(crate) name: String,
    pub(crate) tx_bytes: Option<f64>,
    pub(crate) rx_bytes: Option<f64>,
}

impl MachineFacts {
    /// weir's own machine, read from `/proc` once a second.
    pub fn of_this_machine(interfaces: Interfaces) -> Self {
        Self {
            source: MachineSource::Proc,
            address: None,
            instance: None,
            interfaces,
            step_seconds: 1.0,
            clock_ahead_seconds: None,
            graph: None,
            expressions: Vec::new(),
        }
    }
}

impl MachinePoint {
    /// The figures of weir's own machine between two samples of it; `None` when `later` is not later.
    pub fn of_host(
        earlier: (u64, &HostSample),
        later: (u64, &HostSample),
        interfaces: &Interfaces,
    ) -> Option<Self> {
        let seconds = later.0.checked_sub(earlier.0).filter(|&passed| passed > 0)? as f64 * 1e-9;
        let [from, to] = [earlier.1, later.1].map(Reading::of_host);
        Some(Self {
            at_ns: later.0,
            seconds,
            values: MachineValues::between(&from, &to, seconds, interfaces),
        })
    }
}

impl MachineValues {
    /// The figures of `later`, rates since `earlier`. A counter that ran backwards gives none: the machine
    /// was restarted.
    pub(crate) fn between(earlier: &Reading, later: &Reading, seconds: f64, interfaces: &Interfaces) -> Self {
        Self {
            cpu_percent: earlier.cpu.zip(later.cpu).and_then(|(from, to)| to.not_idle_percent(from)),
            memory_bytes: later.memory_bytes,
            memory_peak_bytes: None,
            load1: later.load1,
            tx_bps: bits_a_second(earlier, later, seconds, interfaces, |it| it.tx_bytes),
            rx_bps: bits_a_second(earlier, later, seconds, interfaces, |it| it.rx_bytes),
        }
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The most memory that is known of.
    pub(crate) fn most_memory_bytes(&self) -> Option<f64> {
        [self.memory_bytes, self.memory_peak_bytes].into_iter().flatten().reduce(f64::max)
    }

    /// Takes over the most memory of a point that is not kept.
    fn reach(&mut self, peak: Option<f64>) {
        if peak > self.most_memory_bytes() {
            self.memory_peak_bytes = peak;
        }
    }
}

impl CpuTime {
    fn not_idle_percent(self, earlier: Self) -> Option<f64> {
        let total = self.total_seconds - earlier.total_seconds;
        // Idle time may run backwards a little: the kernel says so itself (proc_stat(5)).
        (total > 0.0)
            .then(|| 100.0 * (1.0 - (self.idle_seconds - earlier.idle_seconds) / total).clamp(0.0, 1.0))
    }
}

/// The interfaces that count and were there both times, together.
fn bits_a_second(
    earlier: &Reading,
    later: &Reading,
    seconds: f64,
    interfaces: &Interfaces,
    bytes: fn(&InterfaceBytes) -> Option<f64>,
) -> Option<f64> {
    let mut sum = None;
    for to in later.interfaces.iter().filter(|it| interfaces.matches(&it.name)) {
        let from = earlier.interfaces.iter().find(|from| from.name == to.name);
        let Some((from, to)) = from.and_then(bytes).zip(bytes(to)) else { continue };
        let grown = to - from;
        if grown < 0.0 {
            return None;
        }
        *sum.get_or_insert(0.0) += 8.0 * grown / seconds;
    }
    sum
}

impl Reading {
    fn of_host(host: &HostSample) -> Self {
        Self {
            cpu: host
                .cpu
                .map(|cpu| CpuTime { idle_seconds: cpu.idle_seconds, total_seconds: cpu.total_seconds() }),
            memory_bytes: host.memory.map(|memory| memory.used_without_cache_bytes as f64),
            load1: host.load1,
            interfaces: host
                .interfaces
                .iter()
                .map(|interface| InterfaceBytes {
                    name: interface.name.clone(),
                    tx_bytes: Some(interface.tx_bytes as f64),
                    rx_bytes: Some(interface.rx_bytes as f64),
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(idle: f64, total: f64, interfaces: &[(&str, f64, f64)]) -> Reading {
        let interface = |&(name, tx_bytes, rx_bytes): &(&str, f64, f64)| InterfaceBytes {
            name: name.to_owned(),
            tx_bytes: Some(tx_bytes),
            rx_bytes: Some(rx_bytes),
        };
        Reading {
            cpu: Some(CpuTime { idle_seconds: idle, total_seconds: total }),
            interfaces: interfaces.iter().map(interface).collect(),
            ..Reading::default()
        }
    }

    fn between(earlier: &Reading, later: &Reading) -> MachineValues {
        MachineValues::between(earlier, later, 2.0, &Interfaces::default())
    }

    #[test]
    fn cpu_is_what_was_not_idle_and_bytes_are_bits_a_second_of_the_interfaces_that_count() {
        let earlier = reading(100.0, 200.0, &[("lo", 0.0, 0.0), ("eth0", 1000.0, 10.0), ("enp1", 0.0, 0.0)]);
        let later = reading(103.0, 204.0, &[("lo", 9e9, 9e9), ("eth0", 2000.0, 10.0), ("enp1", 500.0, 1.0)]);
        let values = between(&earlier, &later);
        assert_eq!(values.cpu_percent, Some(25.0));
        assert_eq!((values.tx_bps, values.rx_bps), (Some(6000.0), Some(4.0)));
        assert_eq!((values.memory_bytes, values.load1), (None, None), "absent, not 0");
    }

    #[test]
    fn a_machine_that_was_restarted_has_no_rates_and_one_without_such_an_interface_no_bytes() {
        let before = reading(100.0, 200.0, &[("eth0", 1000.0, 1000.0)]);
        let after = reading(1.0, 2.0, &[("eth0", 10.0, 10.0)]);
        assert!(between(&before, &after).is_empty());
        let values =
            between(&reading(1.0, 2.0, &[("lo", 1.0, 1.0)]), &reading(2.0, 4.0, &[("lo", 2.0, 2.0)]));
        assert_eq!((values.tx_bps, values.rx_bps), (None, None));
        // One that came in between has no rate yet.
        let values = between(&reading(1.0, 2.0, &[]), &reading(2.0, 4.0, &[("eth0", 5e6, 5e6)]));
        assert_eq!(values.tx_bps, None);
    }

    #[test]
    fn the_most_memory_of_points_that_are_not_kept_stays() {
        let points = |memory: &[f64]| {
            let point = |(at_ns, bytes): (u64, &f64)| MachinePoint {
                at_ns,
                seconds: 1.0,
                values: MachineValues { memory_bytes: Some(*bytes), ..MachineValues::default() },
            };
            MachineSample { points: (0..).zip(memory).map(point).collect(), ..MachineSample::default() }
        };
        for high in 0..10 {
            let mut memory = [5.0; 10];
            memory[high] = 9.0;
            let mut sample = points(&memory[4..]);
            sample.take_over(points(&memory[..4]));
            assert_eq!(sample.points.len(), 5);
            let most = sample.points.iter().filter_map(|it| it.values.most_memory_bytes()).reduce(f64::max);
            assert_eq!(most, Some(9.0), "point {high}");
        }
    }

    #[test]
    fn what_is_absent_is_not_written() {
        let point = MachinePoint {
            at_ns: 7,
            seconds: 1.0,
            values: MachineValues { load1: Some(0.5), ..MachineValues::default() },
        };
        let text = serde_json::to_string(&point).unwrap();
        assert_eq!(text, r#"{"at_ns":7,"seconds":1.0,"load1":0.5}"#);
        assert_eq!(serde_json::from_str::<MachinePoint>(&text).unwrap(), point);
    }
}
