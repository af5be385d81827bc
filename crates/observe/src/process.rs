//! What a set of processes has used so far: counters since the watch began, and gauges of now.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A set of processes (a target and its children, or weir itself) at one moment.
///
/// Counters never run backwards. What a process had used up to the last sample before it ended is kept;
/// what it used after that sample is lost. A process that was there at the first sample counts from its
/// own start, as does one that started later; an older one that joins the set late counts from then on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessSample {
    /// Processes in the set now.
    pub processes: u64,
    /// Processes of the set that have ended since the watch began.
    pub exited: u64,
    /// Processes of the set that could not be read whole this time, as when weir is out of descriptors:
    /// their counters may stand still, and threads and gauges of theirs be missing.
    pub unread: u64,
    /// CPU time, user and system, in seconds: `utime + stime` of `/proc/PID/stat`, in steps of one clock
    /// tick (10 ms). Interrupts and softirqs that work for the process are not in it.
    pub cpu_seconds: f64,
    /// The part of `cpu_seconds` spent in the kernel, in seconds: `stime` of `/proc/PID/stat`.
    pub system_seconds: f64,
    /// Resident memory in bytes, now: `rss` of `/proc/PID/stat`, which is the second field of
    /// `/proc/PID/statm`. Pages that several processes of the set share (code, copy-on-write after a fork)
    /// are in it once for each process. It leaves out memory swapped out, socket buffers and other
    /// kernel memory, and page cache. The kernel batches it: expect an error of some 100 pages.
    pub rss_bytes: u64,
    /// Open descriptors, now: the size of `/proc/PID/fd`. Before Linux 6.2 its entries are counted, and
    /// it is `None` for a process of another user, unless weir runs as root.
    pub descriptors: Option<u64>,
    /// Times a thread gave up its CPU to wait: `voluntary_ctxt_switches` of `/proc/PID/task/TID/status`.
    pub voluntary_switches: u64,
    /// Times a thread had its CPU taken away: `nonvoluntary_ctxt_switches`, same file.
    pub involuntary_switches: u64,
    /// Of the process of the set that is nearest to its limit of open descriptors: how many it has, and how many it may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fullest: Option<DescriptorUse>,
    /// Page faults that had to read from a disk: `majflt` of `/proc/PID/stat`.
    pub major_faults: u64,
    /// The threads of now, by process and thread id.
    pub threads: Vec<ThreadSample>,
    /// How often the set's control group ran into its CPU quota. `None` where the group keeps no count of
    /// it; 0 where there is no quota.
    pub throttling: Option<Throttling>,
}

/// One thread at one moment: `/proc/PID/task/TID/stat`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadSample {
    /// Its process.
    pub pid: u32,
    /// Its thread id; that of the main thread is the pid.
    pub tid: u32,
    /// Its name (`comm`), 15 bytes at most; bytes that are not UTF-8 are replaced.
    pub name: String,
    /// When it started, in seconds since boot. With `tid`, this identifies it: a later thread may have the same id.
    pub started_seconds: f64,
    /// Its CPU time since it started, user and system, in seconds.
    pub cpu_seconds: f64,
    /// Time since it started in which it could have run and had no CPU, in seconds: field 2 of `/proc/PID/task/TID/schedstat`.
    /// `None` where the kernel does not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_seconds: Option<f64>,
}

/// How many descriptors a process has open, and how many it may have: the soft limit of `Max open files` in `/proc/PID/limits`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DescriptorUse {
    /// Those that are open.
    pub open: u64,
    /// Those that may be.
    pub limit: u64,
}

impl DescriptorUse {
    /// The share of the limit that is used, from 0 to 1.
    pub fn share(&self) -> f64 {
        self.open as f64 / self.limit.max(1) as f64
    }

    /// The one that is nearer to its limit.
    pub(crate) fn fuller(self, other: Self) -> Self {
        if other.share() > self.share() { other } else { self }
    }
}

/// What the CPU quota of a control group held back: `cpu.stat` of the group of the first process of the
/// set, and of the groups above it, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Throttling {
    /// Periods in which the group used up its quota: `nr_throttled`.
    pub periods: u64,
    /// Periods in all in which it wanted to run: `nr_periods`.
    #[serde(default)]
    pub elapsed: u64,
    /// Time for which its CPUs were held back, in seconds: `throttled_usec` (version 1: `throttled_time`),
    /// summed over CPUs.
    pub seconds: f64,
}
