//! The limits of this machine that stand in the way of a load: what each is, what it stops, what to do, and what would be written to
//! lift it.

use crate::prepare::OWN_DESCRIPTORS;
use crate::{ErrorKind, RunError};
use std::fs;
use std::path::Path;
use weir_metrics::several;
use weir_observe::Environment;
use weir_setting::{FIX, named};

/// Descriptors of a process that are enough for what one machine carries.
const DESCRIPTORS: u64 = 65_536;
/// The same that is written: `fs.nr_open` as the kernel has it at first, above which no limit can be raised.
const MOST_DESCRIPTORS: u64 = 1_048_576;
/// Local ports that are enough.
const PORTS: u64 = 50_000;
/// The range of local ports that is written: enough, and above the ports of most servers, which would find theirs taken.
const PORT_RANGE: &str = "15000 65535";
/// Bytes of a socket's receive buffer that are enough.
const RECEIVE_BUFFER: u64 = 2_097_152;
/// Connections that may wait for a listener.
const BACKLOG: u64 = 4_096;

/// The first line: system, kernel, and the cores and memory that weir may use of the machine's.
pub fn head(environment: &Environment) -> String {
    let online = environment.cpu.online_count;
    let usable = environment.usable_cores();
    let cores = if usable < online as f64 {
        format!("{} of {}", number(usable), several(online, "core"))
    } else {
        several(online, "core")
    };
    let memory = environment.memory.map(|memory| {
        let total = gib(memory.total_bytes);
        let limit = environment.cgroup_memory.filter(|group| group.limit_bytes < memory.total_bytes);
        limit.map_or_else(|| format!("{total} GiB"), |it| format!("{} of {total} GiB", gib(it.limit_bytes)))
    });
    [
        Some(environment.os.clone().unwrap_or_else(|| "unknown system".to_owned())),
        Some(environment.kernel.clone()),
        Some(cores),
        memory,
        Some(environment.cpu.model.clone().unwrap_or_else(|| "unknown CPU".to_owned())),
    ]
    .into_iter()
    .flatten()
    .collect::<Vec<_>>()
    .join(" · ")
}

/// Each limit in the way: what it is, what it stops, what to do. `descriptors` is what a process may have.
pub fn limits(environment: &Environment, descriptors: u64) -> Vec<String> {
    let mut lines = vec![line(
        descriptors >= DESCRIPTORS,
        &format!(
            "descriptors: {descriptors}, so about {} clients a process",
            descriptors.saturating_sub(OWN_DESCRIPTORS)
        ),
        "raise the hard limit: `ulimit -Hn 1048576`, or LimitNOFILE= in the unit",
    )];
    if let Some(ports) = local_ports(environment) {
        lines.push(line(
            ports >= PORTS,
            &format!("local ports: {ports}, so as many clients from one address to one server"),
            &named("sysctl -w net.ipv4.ip_local_port_range='1024 65535', or add addresses with {bind_addr}"),
        ));
    }
    if let Some(most) = setting(environment, "net.core.rmem_max") {
        lines.push(line(
            most >= RECEIVE_BUFFER,
            &format!("socket receive buffer: up to {} KiB", most / 1_024),
            "sysctl -w net.core.rmem_max=8388608",
        ));
    }
    if let Some(backlog) = setting(environment, "net.core.somaxconn") {
        lines.push(line(
            backlog >= BACKLOG,
            &format!("listen backlog on this machine: {backlog} (a server here may set less)"),
            "sysctl -w net.core.somaxconn=65535, and raise the server's own backlog",
        ));
    }
    if let Some(quota) = environment.cgroup_quota_cores {
        lines.push(line(
            false,
            &format!("CPU quota: {} cores", number(quota)),
            "raise the control group's cpu.max",
        ));
    }
    if let Some(group) = environment.cgroup_memory {
        lines.push(line(
            false,
            &format!(
                "memory of the control group: {} GiB, {} GiB of them left",
                gib(group.limit_bytes),
                gib(group.available_bytes())
            ),
            "raise its memory.max",
        ));
    }
    lines
}

/// Local ports of one address.
pub(super) fn local_ports(environment: &Environment) -> Option<u64> {
    let range = value(environment, "net.ipv4.ip_local_port_range")?;
    let numbers: Vec<u64> = range.split_whitespace().flat_map(str::parse).collect();
    let [low, high] = numbers[..] else { return None };
    Some(high.saturating_sub(low) + 1)
}

fn value<'a>(environment: &'a Environment, name: &str) -> Option<&'a str> {
    environment.sysctls.iter().find(|it| it.name == name).map(|it| it.value.as_str())
}

fn setting(environment: &Environment, name: &str) -> Option<u64> {
    value(environment, name)?.parse().ok()
}

fn line(fine: bool, what: &str, remedy: &str) -> String {
    if fine { format!("  ok     {what}") } else { format!("  limit  {what}; {remedy}") }
}

/// A number of cores, without digits that say nothing.
pub(super) fn number(value: f64) -> String {
    format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn gib(bytes: u64) -> String {
    number(bytes as f64 / f64::from(1 << 30))
}

/// A file that lifts limits, and the setting of the running kernel that it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where.
    pub path: String,
    /// What is in it then, all of it.
    pub text: String,
}

/// What is written to lift the limits that can be lifted by it: the settings of the kernel, now and at its next start, and the limit of
/// descriptors of the next logins. Nothing is lowered, and what a control group allows is its owner's.
pub fn changes(environment: &Environment, descriptors: u64) -> Vec<Change> {
    let is_low = |name: &str, enough: u64| setting(environment, name).is_some_and(|it| it < enough);
    let mut settings = Vec::new();
    if local_ports(environment).is_some_and(|ports| ports < PORTS) {
        settings.push(("net.ipv4.ip_local_port_range", PORT_RANGE));
    }
    if is_low("net.core.rmem_max", RECEIVE_BUFFER) {
        settings.push(("net.core.rmem_max", "8388608"));
    }
    if is_low("net.core.somaxconn", BACKLOG) {
        settings.push(("net.core.somaxconn", "65535"));
    }
    let change = |path: String, text: String| Change { path, text };
    let mut changes: Vec<Change> = settings
        .iter()
        .map(|(name, value)| change(format!("/proc/sys/{}", name.replace('.', "/")), format!("{value}\n")))
        .collect();
    if !settings.is_empty() {
        let lines: String = settings.iter().map(|(name, value)| format!("{name} = {value}\n")).collect();
        changes.push(change(
            "/etc/sysctl.d/90-weir.conf".to_owned(),
            format!("# By weir doctor --fix\n{lines}"),
        ));
    }
    if descriptors < DESCRIPTORS {
        // pam_limits takes no `*` for root (limits.conf(5)).
        let lines: String =
            ["*", "root"].iter().map(|who| format!("{who} hard nofile {MOST_DESCRIPTORS}\n")).collect();
        let path = "/etc/security/limits.d/90-weir.conf".to_owned();
        changes.push(change(path, format!("# By weir doctor --fix\n{lines}")));
    }
    changes
}

/// Writes them below a folder, which is `/` but for trials.
///
/// # Errors
/// A file cannot be written: the line says which, and those before it are written.
pub fn apply(root: &Path, changes: &[Change]) -> Result<(), RunError> {
    for Change { path, text } in changes {
        let path = root.join(path.trim_start_matches('/'));
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, text));
        written.map_err(|error| {
            let words =
                format!("{}: {error}; {FIX} needs root, and a kernel that is not another's", path.display());
            RunError::new(ErrorKind::Usage, words)
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_observe::{Cpu, GroupMemory, HostMemory, Sysctl};

    fn machine(settings: &[(&str, &str)]) -> Environment {
        let sysctl =
            |(name, value): &(&str, &str)| Sysctl { name: (*name).to_owned(), value: (*value).to_owned() };
        Environment {
            os: Some("Debian GNU/Linux 12 (bookworm)".to_owned()),
            kernel: "Linux 6.1.0".to_owned(),
            cpu: Cpu { online_count: 64, affinity: (0..64).collect(), ..Cpu::default() },
            memory: Some(HostMemory {
                total_bytes: 64 << 30,
                available_bytes: 60 << 30,
                ..HostMemory::default()
            }),
            sysctls: settings.iter().map(sysctl).collect(),
            ..Environment::default()
        }
    }

    const DEBIAN: [(&str, &str); 3] = [
        ("net.core.rmem_max", "212992"),
        ("net.core.somaxconn", "4096"),
        ("net.ipv4.ip_local_port_range", "32768 60999"),
    ];

    #[test]
    fn a_container_is_told_the_cores_and_the_memory_of_its_group_and_not_those_of_the_host() {
        let host = machine(&[]);
        assert_eq!(
            head(&host),
            "Debian GNU/Linux 12 (bookworm) · Linux 6.1.0 · 64 cores · 64 GiB · unknown CPU"
        );
        let container = Environment {
            cgroup_quota_cores: Some(1.5),
            cgroup_memory: Some(GroupMemory { limit_bytes: 512 << 20, used_bytes: 128 << 20 }),
            ..host
        };
        assert!(head(&container).contains("· 1.5 of 64 cores · 0.5 of 64 GiB ·"), "{}", head(&container));
        let lines = limits(&container, 1 << 20);
        assert!(lines.iter().any(|it| it.starts_with("  limit  CPU quota: 1.5 cores; ")), "{lines:?}");
        let memory = "  limit  memory of the control group: 0.5 GiB, 0.38 GiB of them left; ";
        assert!(lines.iter().any(|it| it.starts_with(memory)), "{lines:?}");
    }

    #[test]
    fn what_would_be_written_lifts_what_is_too_low_and_nothing_else() {
        let paths = |environment: &Environment, descriptors| -> Vec<String> {
            changes(environment, descriptors).into_iter().map(|change| change.path).collect()
        };
        assert_eq!(
            paths(&machine(&DEBIAN), 1 << 20),
            [
                "/proc/sys/net/ipv4/ip_local_port_range",
                "/proc/sys/net/core/rmem_max",
                "/etc/sysctl.d/90-weir.conf"
            ]
        );
        assert_eq!(paths(&machine(&[]), 4_096), ["/etc/security/limits.d/90-weir.conf"]);
        let wide = [("net.core.rmem_max", "16777216"), ("net.ipv4.ip_local_port_range", "1024 65535")];
        assert_eq!(paths(&machine(&wide), 1 << 20), [""; 0], "what is higher stays");
        assert_eq!(paths(&machine(&[("net.core.somaxconn", "no number")]), 1 << 20), [""; 0]);
    }

    #[test]
    fn a_fix_is_written_below_the_folder_that_is_given() {
        let root = tempfile::tempdir().unwrap();
        let planned = changes(&machine(&DEBIAN), 1_024);
        apply(root.path(), &planned).unwrap();
        let read = |path: &str| fs::read_to_string(root.path().join(path)).unwrap();
        assert_eq!(read("proc/sys/net/core/rmem_max"), "8388608\n");
        assert_eq!(
            read("etc/sysctl.d/90-weir.conf"),
            "# By weir doctor --fix\nnet.ipv4.ip_local_port_range = 15000 65535\nnet.core.rmem_max = 8388608\n"
        );
        assert_eq!(
            read("etc/security/limits.d/90-weir.conf"),
            "# By weir doctor --fix\n* hard nofile 1048576\nroot hard nofile 1048576\n"
        );
        // The machine that is described by what was written has nothing more to lift.
        let fixed = [
            ("net.core.rmem_max", "8388608"),
            ("net.core.somaxconn", "4096"),
            ("net.ipv4.ip_local_port_range", "15000 65535"),
        ];
        assert_eq!(changes(&machine(&fixed), MOST_DESCRIPTORS), []);
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        let error = apply(&file, &planned).unwrap_err();
        assert!(error.to_string().contains("`fix` needs root"), "{error}");
    }
}
