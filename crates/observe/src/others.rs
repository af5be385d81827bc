//! What else uses the machine's CPU: the processes that are neither weir nor a target's, by name.
//!
//! `/proc` is walked only while such processes use a tenth of the CPUs, so that a machine of weir's own pays nothing.

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::HostCpu;
use crate::census::{Census, ProcessId};
use crate::process_set::Units;

/// Share of all CPUs that others use before it is asked which they are.
const WORTH_A_WALK: f64 = 0.1;
/// Names kept of one walk.
const KEPT: usize = 3;

/// Processes of one name that are neither weir nor a target's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OtherProcesses {
    /// The program's base name; `comm` where there is none, as of a kernel thread.
    pub name: String,
    /// The busiest of them.
    pub pid: u32,
    /// How many of them used any CPU.
    pub processes: u64,
    /// CPU time that they used since `/proc` was walked before, in seconds.
    pub cpu_seconds: f64,
}

/// What is known of them from one sample to the next.
#[derive(Debug)]
pub(crate) struct Others {
    /// CPU ticks of every process when `/proc` was last walked.
    before: HashMap<ProcessId, u64>,
    /// The host's CPU time, and what of it is weir's and the targets', at the last sample.
    last: Option<(HostCpu, f64)>,
}

impl Others {
    /// Counts from this census on.
    pub(crate) fn since(census: &Census) -> Self {
        Self { before: ticks(census), last: None }
    }

    /// Whether others used enough since the last sample to be worth a walk through `/proc`. `known_seconds` is the CPU
    /// time of weir and of all targets so far.
    pub(crate) fn are_busy(&mut self, host: Option<HostCpu>, known_seconds: f64) -> bool {
        let Some(host) = host else { return false };
        let Some((before, known_before)) = self.last.replace((host, known_seconds)) else { return false };
        let total = host.total_seconds() - before.total_seconds();
        let others = host.worked_seconds() - before.worked_seconds() - (known_seconds - known_before);
        total > 0.0 && others >= WORTH_A_WALK * total
    }

    /// What each name used since the walk before, busiest first. `is_ours` says whose process is weir's or a target's.
    pub(crate) fn used(
        &mut self,
        census: &Census,
        units: &Units,
        is_ours: impl Fn(ProcessId) -> bool,
    ) -> Vec<OtherProcesses> {
        let before = std::mem::replace(&mut self.before, ticks(census));
        let mut names: BTreeMap<&str, (OtherProcesses, u64)> = BTreeMap::new();
        for resident in census.iter().filter(|resident| !is_ours(resident.id)) {
            // One that was not there before was born since: all that it used is of this time.
            let used = resident.cpu_ticks.saturating_sub(before.get(&resident.id).copied().unwrap_or(0));
            if used == 0 {
                continue;
            }
            let name = if resident.program.is_empty() { &resident.comm } else { &resident.program };
            let (row, most) = names.entry(name).or_default();
            if used > *most {
                (row.pid, *most) = (resident.id.pid, used);
            }
            row.processes += 1;
            row.cpu_seconds += units.seconds(used);
        }
        let rows = names.into_iter().map(|(name, (row, _))| OtherProcesses { name: name.to_owned(), ..row });
        busiest(rows.collect())
    }
}

/// The rows of several walks as one, busiest first.
pub(crate) fn together<'a>(rows: impl Iterator<Item = &'a OtherProcesses>) -> Vec<OtherProcesses> {
    let mut names: BTreeMap<&str, (OtherProcesses, f64)> = BTreeMap::new();
    for row in rows {
        let (sum, most) = names.entry(&row.name).or_default();
        sum.cpu_seconds += row.cpu_seconds;
        sum.processes = sum.processes.max(row.processes);
        if row.cpu_seconds > *most {
            (sum.pid, *most) = (row.pid, row.cpu_seconds);
        }
    }
    busiest(
        names.into_iter().map(|(name, (sum, _))| OtherProcesses { name: name.to_owned(), ..sum }).collect(),
    )
}

fn busiest(mut rows: Vec<OtherProcesses>) -> Vec<OtherProcesses> {
    rows.sort_by(|one, other| other.cpu_seconds.total_cmp(&one.cpu_seconds));
    rows.truncate(KEPT);
    rows
}

fn ticks(census: &Census) -> HashMap<ProcessId, u64> {
    census.iter().map(|resident| (resident.id, resident.cpu_ticks)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::census::Resident;

    fn resident(pid: u32, program: &str, cpu_ticks: u64) -> Resident {
        let id = ProcessId { pid, start_ticks: 7 };
        Resident { id, parent: 1, comm: "comm".into(), program: program.into(), cpu_ticks }
    }

    #[test]
    fn the_busiest_names_are_told_without_weir_and_its_targets() {
        let units = Units::of_kernel();
        let hundredths = |row: &OtherProcesses| (row.cpu_seconds * 100.0).round() as u64;
        let mut others = Others::since(&Census::of(vec![
            resident(1, "weir", 0),
            resident(2, "rustc", 1_000),
            resident(3, "rustc", 0),
            resident(4, "", 500),
        ]));
        let now = Census::of(vec![
            resident(1, "weir", 9_000),
            resident(2, "rustc", 1_010),
            resident(3, "rustc", 150),
            resident(4, "", 500),
            resident(5, "make", 30),
        ]);
        let used = others.used(&now, &units, |id| id.pid == 1);
        let told: Vec<_> =
            used.iter().map(|row| (row.name.as_str(), row.pid, row.processes, hundredths(row))).collect();
        assert_eq!(told, [("rustc", 3, 2, 160), ("make", 5, 1, 30)]);
        assert_eq!(others.used(&now, &units, |_| false), [], "nothing was used since");
        let both = together(used.iter().chain(&used));
        assert_eq!((both[0].name.as_str(), both[0].processes, hundredths(&both[0])), ("rustc", 2, 320));
    }

    #[test]
    fn proc_is_walked_only_while_others_use_a_tenth_of_the_machine() {
        let host = |busy, softirq, idle| {
            let none = HostCpu::default();
            Some(HostCpu { busy_seconds: busy, softirq_seconds: softirq, idle_seconds: idle, ..none })
        };
        let mut others = Others::since(&Census::default());
        assert!(!others.are_busy(host(10.0, 0.0, 100.0), 3.0), "nothing to compare with yet");
        // 1.8 of 2 s: 1.5 of them are weir's and the target's, 0.2 softirqs'.
        assert!(!others.are_busy(host(11.8, 0.2, 100.2), 4.5));
        assert!(others.are_busy(host(12.3, 0.2, 101.7), 4.7));
        assert!(!others.are_busy(None, 9.0));
    }
}
