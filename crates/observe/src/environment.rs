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
use crate::cgroup;
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
    /// Bytes that weir can still write in the working directory: statvfs(2), `f_bavail`.
    pub disk_available_bytes: Option<u64>,
    /// How many descriptors weir may open: getrlimit(2), `RLIMIT_NOFILE`.
    pub descriptors: Limit,
    /// The network interfaces whose speed is known: of a run, those on the way to its targets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<InterfaceSpeed>,
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
            disk_available_bytes: disk.map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)),
            descriptors: Limit { soft: limit.current, hard: limit.maximum },
            interfaces: interface::read_all(),
            sysctls: sysctl::read_all(),
            virtualisation: Virtualisation::read(),
        }
    }
}

impl Environment {
    /// Keeps those interfaces alone that lead to these addresses, or all where no way to them is known: what goes over others is no load
    /// of theirs.
    pub fn keep_interfaces_towards(&mut self, addresses: &[IpAddr]) {
        let mut addresses = addresses.to_vec();
        addresses.sort_unstable();
        addresses.dedup();
        let ways: BTreeSet<String> = addresses.into_iter().filter_map(route::interface_towards).collect();
        if !ways.is_empty() {
            self.interfaces.retain(|it| ways.contains(&it.name));
        }
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
