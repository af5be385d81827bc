//! What processes and the host did over a window.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A set of processes over a window. 100 percent is one core.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessLoad {
    /// `name=nginx`, `pid=12`, `port=1935`, or `weir`.
    pub label: String,
    /// CPU seconds used in the window by its wall seconds.
    pub cpu_percent: f64,
    /// The busiest second.
    pub cpu_percent_max: f64,
    /// CPU seconds used in the window; absent in a summary of an earlier weir, and where only percentages are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    /// Highest resident set.
    pub rss_max_bytes: u64,
    /// Mean resident set.
    pub rss_mean_bytes: f64,
    /// Highest number of established connections, where counted.
    pub connections_max: Option<u64>,
    /// Highest number of descriptors, where readable.
    pub descriptors_max: Option<u64>,
    /// Context switches a second.
    pub context_switches_per_second: f64,
    /// CPU of each thread name (summed over threads of that name), the busiest first; at most 32.
    pub threads: Vec<ThreadLoad>,
    /// Time in which its threads could have run and had no core, summed over them; absent where the kernel does not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_percent: Option<f64>,
    /// Open descriptors where its limit was nearest, of the one process that was nearest to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fullest: Option<DescriptorLoad>,
    /// What its CPU quota held back, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled: Option<ThrottledLoad>,
}

/// Open descriptors of one process, and its limit (`RLIMIT_NOFILE`, the soft one).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DescriptorLoad {
    /// Those that were open.
    pub open: u64,
    /// Those that may be.
    pub limit: u64,
}

/// A process that ran into the CPU quota of its control group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThrottledLoad {
    /// Periods in which the quota was used up.
    pub periods: u64,
    /// Periods in which it wanted to run.
    pub of_periods: u64,
    /// Time for which its CPUs were held back, summed over CPUs.
    pub seconds: f64,
}

/// Threads of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadLoad {
    /// The name.
    pub name: String,
    /// How many threads bear it.
    pub threads: u32,
    /// CPU of all of them over the window.
    pub cpu_percent: f64,
    /// CPU over the window of the one that ran and waited most.
    pub cpu_percent_busiest: f64,
    /// Time in which that one could have run and had no core; absent where the kernel does not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_percent_busiest: Option<f64>,
}

impl ThreadLoad {
    /// How much of the window the fullest one ran or waited for a core: at 100 it could do no more.
    pub fn full_percent(&self) -> f64 {
        self.cpu_percent_busiest + self.waited_percent_busiest.unwrap_or(0.0)
    }
}

/// The host over a window. CPU is in percent of one core, 0 to 100 times the cores.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostLoad {
    /// CPU that worked, in percent of one core.
    pub cpu_percent: f64,
    /// CPU taken by the hypervisor, in percent of one core.
    pub steal_percent: f64,
    /// CPU of processes that are neither weir nor watched, softirqs left out, in percent of one core; absent where the
    /// host's CPU time cannot be read.
    #[serde(default)]
    pub others_percent: Option<f64>,
    /// Those of them that used most, by name; empty while they used little.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherLoad>,
    /// The core that spent most of its time in softirqs, of those that weir may run on: how much, in percent of it.
    #[serde(default)]
    pub softirq_percent: Option<f64>,
    /// One-minute load average, highest.
    pub load1_max: f64,
    /// Memory in use, highest.
    pub memory_used_max_bytes: u64,
    /// Received on all interfaces, loopback included.
    pub rx_bps: f64,
    /// Sent on all interfaces, loopback included.
    pub tx_bps: f64,
    /// The interface that came closest to its speed, of those whose speed is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkLoad>,
    /// The card on the way to the targets that had no buffer for most packets, if any had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<MissedPackets>,
    /// TCP segments sent again, a second.
    pub tcp_retransmits_per_second: f64,
    /// Connections that the host's listeners dropped (`ListenDrops`, overflows included), in the window.
    pub listen_drops: u64,
}

/// A network interface whose speed is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkLoad {
    /// Its name.
    pub interface: String,
    /// Bits a second in the direction that carried more.
    pub bps: f64,
    /// Bits a second that it can carry in one direction.
    pub speed_bps: f64,
}

/// Packets that a network card had no buffer for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissedPackets {
    /// Its name.
    pub interface: String,
    /// How many: `rx_missed_errors`.
    pub packets: u64,
}

/// Processes of one name that are neither weir nor watched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OtherLoad {
    /// The program's base name.
    pub name: String,
    /// The busiest of them.
    pub pid: u32,
    /// How many of them used any CPU at a time.
    pub processes: u64,
    /// CPU of all of them, in percent of one core.
    pub cpu_percent: f64,
}
