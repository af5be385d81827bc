//! The CPUs of the machine, and those that weir may use.

use procfs::{CpuInfo, Current};
use rustix::thread::{CpuSet, sched_getaffinity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::line::line_of;

/// The CPUs. A CPU is what the kernel schedules on: a core, or one of its hardware threads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cpu {
    /// What it is: `model name` of `/proc/cpuinfo`, or `/sys/firmware/devicetree/base/model` (the board).
    pub model: Option<String>,
    /// CPUs that are online: `/sys/devices/system/cpu/online`, as in `0-3,6`.
    pub online: Option<String>,
    /// How many are online.
    pub online_count: u64,
    /// CPUs that weir may run on: sched_getaffinity(2).
    pub affinity: Vec<u32>,
    /// What sets the clock of the first CPU: `performance` measures best. `None` where there is no choice,
    /// as in most virtual machines: `/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor`.
    pub governor: Option<String>,
}

impl Cpu {
    pub(crate) fn read() -> Self {
        let model = CpuInfo::current().ok().and_then(|it| it.model_name(0).map(str::to_owned));
        let online = line_of("/sys/devices/system/cpu/online");
        let affinity = sched_getaffinity(None).map(|set| {
            let usable = (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu));
            usable.filter_map(|cpu| u32::try_from(cpu).ok()).collect()
        });
        Self {
            model: model.or_else(|| line_of("/sys/firmware/devicetree/base/model")),
            online_count: online.as_deref().map(count).unwrap_or_default(),
            online,
            affinity: affinity.unwrap_or_default(),
            governor: line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        }
    }
}

/// How many CPUs a list such as `0-3,6` names.
fn count(list: &str) -> u64 {
    let ranges = list.split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    });
    ranges.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_cpus_is_counted() {
        for (list, expected) in [("0-3,6", 5), ("0", 1), ("", 0), ("3-1", 0), ("x-y,2", 1)] {
            assert_eq!(count(list), expected, "{list}");
        }
    }

    #[test]
    fn this_machine_has_cpus() {
        let cpu = Cpu::read();
        assert!(cpu.model.is_some() && cpu.online_count > 0 && !cpu.affinity.is_empty(), "{cpu:?}");
    }
}
