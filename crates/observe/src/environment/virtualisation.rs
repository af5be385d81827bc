//! Signs that this is a virtual machine or a container. A hint: without a sign it may be one all the
//! same.

use std::fs;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::line::line_of;

/// Signs of a virtual machine or a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Virtualisation {
    /// The CPU says that a hypervisor runs below: flag `hypervisor` of `/proc/cpuinfo` (x86 only).
    pub hypervisor: bool,
    /// Maker and model of the machine: `sys_vendor` and `product_name` of `/sys/class/dmi/id`.
    pub machine: Option<String>,
    /// What holds the container that weir runs in (`docker`, `podman`, `kubernetes`, `lxc`, `wsl`), by the
    /// files that they leave.
    pub container: Option<String>,
}

impl Virtualisation {
    pub(super) fn read() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let maker = line_of("/sys/class/dmi/id/sys_vendor");
        let model = line_of("/sys/class/dmi/id/product_name");
        let machine: Vec<String> = maker.into_iter().chain(model).collect();
        Self {
            hypervisor: has_hypervisor_flag(&cpuinfo),
            machine: (!machine.is_empty()).then(|| machine.join(" ")),
            container: container(),
        }
    }
}

fn has_hypervisor_flag(cpuinfo: &str) -> bool {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    flags.is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"))
}

fn container() -> Option<String> {
    const SIGNS: [(&str, &str); 5] = [
        ("/var/run/secrets/kubernetes.io", "kubernetes"),
        ("/.dockerenv", "docker"),
        ("/run/.containerenv", "podman"),
        ("/dev/lxd/sock", "lxc"),
        ("/run/WSL", "wsl"),
    ];
    let sign = SIGNS.iter().find(|(path, _)| Path::new(path).exists());
    // systemd writes down what the container manager passed to it.
    sign.map(|(_, name)| (*name).to_owned()).or_else(|| line_of("/run/systemd/container"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hypervisor_is_a_flag_of_its_own() {
        assert!(has_hypervisor_flag("model name\t: x\nflags\t\t: fpu hypervisor lahf_lm\n"));
        assert!(!has_hypervisor_flag("model name\t: hypervisor\nflags\t\t: fpu nohypervisor\n"));
        assert!(!has_hypervisor_flag(""));
    }
}
