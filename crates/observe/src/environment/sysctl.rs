//! Settings of the kernel that bear on network load.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::line::line_of;

/// A setting of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sysctl {
    /// Its name, as sysctl(8) has it.
    pub name: String,
    /// Its value; several numbers are parted by spaces.
    pub value: String,
}

/// What limits many connections (backlogs, ports, descriptors, connection tracking) and much traffic
/// (buffers, queues).
const NAMES: [&str; 22] = [
    "fs.file-max",
    "fs.nr_open",
    "net.core.default_qdisc",
    "net.core.netdev_budget",
    "net.core.netdev_max_backlog",
    "net.core.optmem_max",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_wmem",
    "net.ipv4.udp_mem",
    "net.netfilter.nf_conntrack_max",
];

/// Those that this kernel has, by name.
pub(super) fn read_all() -> Vec<Sysctl> {
    let read = |name: &&str| {
        let value = line_of(&format!("/proc/sys/{}", name.replace('.', "/")))?;
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(Sysctl { name: (*name).to_owned(), value })
    };
    NAMES.iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_kernel_has_the_usual_ones() {
        let sysctls = read_all();
        for name in ["net.core.somaxconn", "net.ipv4.ip_local_port_range"] {
            let sysctl = sysctls.iter().find(|sysctl| sysctl.name == name).unwrap();
            assert!(sysctl.value.split(' ').all(|number| number.parse::<u64>().is_ok()), "{sysctl:?}");
        }
    }
}
