//! What people write down by hand about a measurement: the machine, its settings, the server.
//!
//! Files of `/proc`, `/sys` and `/etc` only. Nothing is executed; no environment variable is read; secrets
//! in command lines are replaced.

mod cpu;
mod interface;
mod limit;
mod line;
mod route;
mod sysctl;
mod target;
mod version;
mod virtualisation;

use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;

use rustix::process::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::cpu::Cpu;
pub use self::interface::InterfaceSpeed;
pub use self::limit::Limit;
use self::line::line_of;
pub use self::sysctl::Sysctl;
pub use self::target::TargetEnvironment;
pub use self::version::{Version, VersionSource};
pub use self::virtualisation::Virtualisation;
use crate::cgroup::{self, GroupMemory};
use crate::host::HostMemory;
use crate::reader::Reader;

/// The machine that weir runs on. What cannot be read is `None` or empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Name and version of the system: `PRETTY_NAME` of `/etc/os-release`.
    pub os: Option<String>,
    /// Name, release and version of the kernel: uname(2).
    pub kernel: String,
    /// Instruction set: uname(2).
    pub architecture: String,
    /// Name of the machine: uname(2).
    pub hostname: String,
    /// Differs from boot to boot: `/proc/sys/kernel/random/boot_id`.
    pub boot_id: Option<String>,
    /// The CPUs.
    pub cpu: Cpu,
    /// Cores that weir's control groups let it use, if they set a quota.
    pub cgroup_quota_cores: Option<f64>,
    /// Memory now.
    pub memory: Option<HostMemory>,
    /// The limit of memory of weir's control groups that leaves it the least, if they set one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup_memory: Option<GroupMemory>,
    /// Bytes that weir can still write in the working directory: statvfs(2), `f_bavail`.
    pub disk_available_bytes: Option<u64>,
    /// How many descriptors weir may open: getrlimit(2), `RLIMIT_NOFILE`.
    pub descriptors: Limit,
    /// The network interfaces whose speed is known: of a run, those on the way to its targets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<InterfaceSpeed>,
    /// Of a run: the interfaces on the way to its targets, whether their speed is known or not. Empty where no way is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces_towards: Vec<String>,
    /// Settings of the kernel that bear on network load, those that exist.
    pub sysctls: Vec<Sysctl>,
    /// Signs of a virtual machine or a container.
    pub virtualisation: Virtualisation,
}

impl Environment {
    /// Reads it all: some 40 small files, and nothing that fails.
    pub fn read() -> Self {
        let mut reader = Reader::default();
        let uname = rustix::system::uname();
        let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
        let disk = rustix::fs::statvfs(".").ok();
        let limit = rustix::process::getrlimit(Resource::Nofile);
        Self {
            os: fs::read_to_string("/etc/os-release").ok().and_then(|text| pretty_name(&text)),
            kernel: [uname.sysname(), uname.release(), uname.version()].map(text).join(" "),
            architecture: text(uname.machine()),
            hostname: text(uname.nodename()),
            boot_id: line_of("/proc/sys/kernel/random/boot_id"),
            cpu: Cpu::read(),
            cgroup_quota_cores: cgroup::quota_cores(std::process::id(), &mut reader),
            memory: reader.read(format_args!("/proc/meminfo")).ok().and_then(HostMemory::parse),
            cgroup_memory: cgroup::memory(std::process::id(), &mut reader),
            disk_available_bytes: disk.map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)),
            descriptors: Limit { soft: limit.current, hard: limit.maximum },
            interfaces: interface::read_all(),
            interfaces_towards: Vec::new(),
            sysctls: sysctl::read_all(),
            virtualisation: Virtualisation::read(),
        }
    }
}

impl Environment {
    /// Keeps those interfaces alone that lead to these addresses: what goes over others is no load of theirs. Without an address, as of
    /// clients that wait to be called, all of them stay.
    pub fn keep_interfaces_towards(&mut self, addresses: &[IpAddr]) {
        let mut addresses: Vec<IpAddr> =
            addresses.iter().filter(|it| !it.is_unspecified()).copied().collect();
        addresses.sort_unstable();
        addresses.dedup();
        if addresses.is_empty() {
            return;
        }
        let ways: BTreeSet<String> = addresses.into_iter().filter_map(route::interface_towards).collect();
        self.interfaces.retain(|it| ways.contains(&it.name));
        self.interfaces_towards = ways.into_iter().collect();
    }

    /// Cores that weir can use: those that it may run on, or what its control groups let it use of them if that is less. A machine of
    /// which nothing is known has one.
    pub fn usable_cores(&self) -> f64 {
        let own = self.cpu.affinity.len() as f64;
        let cores = if own > 0.0 { own } else { self.cpu.online_count.max(1) as f64 };
        self.cgroup_quota_cores.map_or(cores, |quota| quota.min(cores))
    }

    /// Bytes of memory that weir can still have: what the machine has available, or what its control groups leave of their limit if
    /// that is less.
    pub fn usable_memory_bytes(&self) -> Option<u64> {
        let machine = self.memory.map(|memory| memory.available_bytes);
        let group = self.cgroup_memory.map(|group| group.available_bytes());
        machine.into_iter().chain(group).min()
    }
}

/// `PRETTY_NAME` of `os-release`, without its quotes.
fn pretty_name(os_release: &str) -> Option<String> {
    let value = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim().trim_matches(['"', '\'']).to_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_system_may_be_quoted() {
        let text = "NAME=\"Debian GNU/Linux\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
        assert_eq!(pretty_name(text).as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
        assert_eq!(pretty_name("PRETTY_NAME=Alpine\n").as_deref(), Some("Alpine"));
        assert_eq!(pretty_name("PRETTY_NAME=\"\"\n"), None);
    }

    #[test]
    fn of_a_load_on_loopback_no_card_is_kept() {
        let eth0 = InterfaceSpeed { name: "eth0".to_owned(), bits_per_second: 1_000_000_000 };
        let kept = |addresses: &[IpAddr]| {
            let mut environment = Environment { interfaces: vec![eth0.clone()], ..Environment::default() };
            environment.keep_interfaces_towards(addresses);
            (environment.interfaces.len(), environment.interfaces_towards)
        };
        assert_eq!(kept(&["127.0.0.1".parse().unwrap()]), (0, vec!["lo".to_owned()]));
        assert_eq!(kept(&["0.0.0.0".parse().unwrap()]), (1, Vec::new()));
    }

    #[test]
    fn a_container_has_what_its_groups_leave_of_the_machine() {
        let memory = HostMemory { available_bytes: 60 << 30, total_bytes: 64 << 30, ..HostMemory::default() };
        let machine = Environment {
            cpu: Cpu { online_count: 64, affinity: (0..64).collect(), ..Cpu::default() },
            memory: Some(memory),
            ..Environment::default()
        };
        assert_eq!((machine.usable_cores(), machine.usable_memory_bytes()), (64.0, Some(60 << 30)));
        let cgroup_memory = Some(GroupMemory { limit_bytes: 512 << 20, used_bytes: 12 << 20 });
        let container = Environment { cgroup_quota_cores: Some(1.5), cgroup_memory, ..machine.clone() };
        assert_eq!((container.usable_cores(), container.usable_memory_bytes()), (1.5, Some(500 << 20)));
        // A quota of more than the cores that weir may run on gives it no more of them.
        let cpu = Cpu { affinity: vec![4, 5], ..machine.cpu.clone() };
        let pinned = Environment { cpu, cgroup_quota_cores: Some(8.0), ..machine };
        assert_eq!(pinned.usable_cores(), 2.0);
        assert_eq!(Environment::default().usable_cores(), 1.0);
    }

    #[test]
    fn this_machine_is_written_down() {
        let environment = Environment::read();
        assert!(environment.kernel.starts_with("Linux "), "{environment:?}");
        assert!(environment.boot_id.is_some());
        assert!(environment.memory.is_some());
        assert!(environment.disk_available_bytes > Some(0));
        assert!(environment.descriptors.soft > Some(0));
        let json = serde_json::to_string(&environment).unwrap();
        assert_eq!(serde_json::from_str::<Environment>(&json).unwrap(), environment);
    }
}
