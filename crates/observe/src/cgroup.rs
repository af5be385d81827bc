//! What control groups, version 1 and 2, allow a process: CPU and memory, and where its groups keep their files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::field::{decimal, labelled, lines, words};
use crate::process::Throttling;
use crate::reader::Reader;

/// What counts as no limit: version 1 says the largest number of pages that it can count, in bytes, which depends on the page size.
const UNLIMITED_BYTES: u64 = 1 << 62;

/// A limit of memory of a control group, and what its processes use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupMemory {
    /// The limit, `memory.max`; version 1: `memory.limit_in_bytes`.
    pub limit_bytes: u64,
    /// What counts against it and cannot be taken back at once: `memory.current` less `inactive_file` of `memory.stat`; version 1:
    /// `memory.usage_in_bytes` less `total_inactive_file`.
    pub used_bytes: u64,
}

impl GroupMemory {
    /// That of weir's own control groups; `None` if they set no limit.
    pub fn read() -> Option<Self> {
        memory(std::process::id(), &mut Reader::default())
    }

    /// What the group's processes can still have.
    pub fn available_bytes(&self) -> u64 {
        self.limit_bytes.saturating_sub(self.used_bytes)
    }
}

/// The `cpu.stat` files that tell of throttling: those of the group of `pid` and of the groups above it.
pub(crate) fn throttle_files(pid: u32, reader: &mut Reader) -> Vec<String> {
    let mut files = Vec::new();
    for directory in directories("", pid, Controller::Cpu, reader) {
        let path = format!("{directory}/cpu.stat");
        if reader.read(format_args!("{path}")).ok().and_then(throttling).is_some() {
            files.push(path);
        }
    }
    files
}

/// The tightest CPU quota on `pid`, in cores: `cpu.max`, or `cpu.cfs_quota_us / cpu.cfs_period_us`.
pub(crate) fn quota_cores(pid: u32, reader: &mut Reader) -> Option<f64> {
    quota_cores_below("", pid, reader)
}

/// The same of files that lie below `root`.
fn quota_cores_below(root: &str, pid: u32, reader: &mut Reader) -> Option<f64> {
    let mut tightest: Option<f64> = None;
    for directory in directories(root, pid, Controller::Cpu, reader) {
        let quota = match reader.read(format_args!("{directory}/cpu.max")) {
            Ok(text) => {
                let mut words = words(text).map(decimal);
                words.next().flatten().zip(words.next().flatten())
            }
            Err(_) => {
                let mut number =
                    |name: &str| decimal(reader.read(format_args!("{directory}/{name}")).ok()?.trim_ascii());
                number("cpu.cfs_quota_us").zip(number("cpu.cfs_period_us"))
            }
        };
        if let Some((quota, period)) = quota.filter(|&(_, period)| period > 0) {
            let cores = quota as f64 / period as f64;
            tightest = Some(tightest.map_or(cores, |tightest| tightest.min(cores)));
        }
    }
    tightest
}

/// The limit of memory on `pid` that leaves it the least.
pub(crate) fn memory(pid: u32, reader: &mut Reader) -> Option<GroupMemory> {
    memory_below("", pid, reader)
}

/// The same of files that lie below `root`.
fn memory_below(root: &str, pid: u32, reader: &mut Reader) -> Option<GroupMemory> {
    let groups = directories(root, pid, Controller::Memory, reader);
    let limits = groups.iter().filter_map(|directory| {
        let mut number =
            |name: &str| decimal(reader.read(format_args!("{directory}/{name}")).ok()?.trim_ascii());
        // `max` of version 2 is no number.
        let limit_bytes = number("memory.max").or_else(|| number("memory.limit_in_bytes"))?;
        let used = number("memory.current").or_else(|| number("memory.usage_in_bytes")).unwrap_or(0);
        let stat = reader.read(format_args!("{directory}/memory.stat")).unwrap_or_default();
        let cache = labelled(stat, "total_inactive_file").or_else(|| labelled(stat, "inactive_file"));
        let used_bytes = used.saturating_sub(cache.unwrap_or(0));
        (limit_bytes < UNLIMITED_BYTES).then_some(GroupMemory { limit_bytes, used_bytes })
    });
    limits.min_by_key(GroupMemory::available_bytes)
}

/// Reads `cpu.stat`; `None` for a group that keeps no count of throttling (the root of version 2).
pub(crate) fn throttling(text: &[u8]) -> Option<Throttling> {
    let periods = labelled(text, "nr_throttled")?;
    let seconds = match labelled(text, "throttled_usec") {
        Some(microseconds) => microseconds as f64 * 1e-6,
        None => labelled(text, "throttled_time")? as f64 * 1e-9,
    };
    Some(Throttling { periods, elapsed: labelled(text, "nr_periods").unwrap_or(0), seconds })
}

/// What a group rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Controller {
    Cpu,
    Memory,
}

impl Controller {
    fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
        }
    }
}

/// The directories of the group that rules this of `pid`, from its own upwards; all files are looked for below `root`.
fn directories(root: &str, pid: u32, controller: Controller, reader: &mut Reader) -> Vec<String> {
    let groups = reader.read(format_args!("{root}/proc/{pid}/cgroup"));
    let Ok(groups) = groups.map(|text| Groups::parse(text, controller)) else { return Vec::new() };
    let Ok(mounts) = reader.read(format_args!("{root}/proc/self/mountinfo")) else { return Vec::new() };
    groups.directories(mounts).into_iter().map(|directory| format!("{root}{directory}")).collect()
}

/// The group of one process in the hierarchy of version 2, and in that of version 1 which has the controller.
#[derive(Debug, PartialEq, Eq)]
struct Groups {
    controller: Controller,
    unified: Option<String>,
    own: Option<String>,
}

impl Groups {
    /// Reads `/proc/PID/cgroup`: lines of `number:controllers:path`.
    fn parse(text: &[u8], controller: Controller) -> Self {
        let mut groups = Self { controller, unified: None, own: None };
        for line in lines(text).filter_map(|line| std::str::from_utf8(line).ok()) {
            let mut parts = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
                continue;
            };
            if controllers.is_empty() {
                groups.unified = Some(path.to_owned());
            } else if controllers.split(',').any(|name| name == controller.name()) {
                groups.own = Some(path.to_owned());
            }
        }
        groups
    }

    /// Where `/proc/self/mountinfo` says that these groups can be read, from the group itself upwards.
    fn directories(&self, mounts: &[u8]) -> Vec<String> {
        let mut directories = Vec::new();
        for line in lines(mounts).filter_map(|line| std::str::from_utf8(line).ok()) {
            let Some((mount, filesystem)) = line.split_once(" - ") else { continue };
            let mut filesystem = filesystem.split(' ');
            let group = match filesystem.next() {
                Some("cgroup2") => &self.unified,
                Some("cgroup")
                    if filesystem.nth(1).is_some_and(|super_options| {
                        super_options.split(',').any(|option| option == self.controller.name())
                    }) =>
                {
                    &self.own
                }
                _ => continue,
            };
            let mut mount = mount.split(' ').skip(3);
            let (Some(root), Some(point), Some(group)) = (mount.next(), mount.next(), group) else {
                continue;
            };
            // Inside of a container the mount shows a part of the tree only.
            let below = group.strip_prefix(root.trim_end_matches('/')).unwrap_or("");
            let mut below = below.trim_end_matches('/');
            loop {
                directories.push(format!("{point}{below}"));
                match below.rfind('/') {
                    Some(end) => below = &below[..end],
                    None => break,
                }
            }
        }
        directories
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // Captured from this project's machine (both versions mounted), shortened.
    const MOUNTS: &[u8] = b"31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
        32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:5 - cgroup cgroup rw,cpu\n\
        33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_groups_above_are_read_too() {
        let groups = Groups::parse(
            b"4:memory:/a\n2:cpu,cpuacct:/docker/x\n1:name=systemd:/s\n0::/\n",
            Controller::Cpu,
        );
        assert_eq!((groups.unified.as_deref(), groups.own.as_deref()), (Some("/"), Some("/docker/x")));
        assert_eq!(
            groups.directories(MOUNTS),
            [
                "/sys/fs/cgroup/cpu/docker/x",
                "/sys/fs/cgroup/cpu/docker",
                "/sys/fs/cgroup/cpu",
                "/sys/fs/cgroup/unified"
            ]
        );
    }

    #[test]
    fn a_mount_may_show_a_part_of_the_tree() {
        let groups = Groups::parse(b"0::/docker/abc/nginx\n", Controller::Cpu);
        let mounts = b"1 2 0:3 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        assert_eq!(groups.directories(mounts), ["/sys/fs/cgroup/nginx", "/sys/fs/cgroup"]);
    }

    #[test]
    fn both_versions_of_cpu_stat_are_read() {
        let two = b"usage_usec 5\nnr_periods 9\nnr_throttled 4\nthrottled_usec 1500000\n";
        let one = b"nr_periods 9\nnr_throttled 4\nthrottled_time 1500000000\n";
        assert_eq!(throttling(two), Some(Throttling { periods: 4, elapsed: 9, seconds: 1.5 }));
        assert_eq!(throttling(one), throttling(two));
        assert_eq!(throttling(b"usage_usec 5\n"), None);
    }

    /// Files of `/proc` and `/sys` below a folder of their own.
    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    fn limits(files: &[(&str, &str)]) -> (Option<f64>, Option<GroupMemory>) {
        let (root, mut reader) = (machine(files), Reader::default());
        let below = root.path().to_str().unwrap();
        (quota_cores_below(below, 7, &mut reader), memory_below(below, 7, &mut reader))
    }

    // What a container of 1.5 cores and 512 MiB sees of version 2, whose files are in Documentation/admin-guide/cgroup-v2.rst.
    const IN_A_CONTAINER: [(&str, &str); 6] = [
        ("proc/7/cgroup", "0::/\n"),
        (
            "proc/self/mountinfo",
            "1006 1000 0:26 /machine.slice/libpod-1f.scope /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw,nsdelegate\n",
        ),
        ("sys/fs/cgroup/cpu.max", "150000 100000\n"),
        ("sys/fs/cgroup/memory.max", "536870912\n"),
        ("sys/fs/cgroup/memory.current", "41943040\n"),
        ("sys/fs/cgroup/memory.stat", "anon 4096\nfile 31457280\ninactive_file 31457280\nactive_file 0\n"),
    ];

    #[test]
    fn a_container_has_the_cores_and_the_memory_of_its_group() {
        let (cores, memory) = limits(&IN_A_CONTAINER);
        assert_eq!(cores, Some(1.5));
        assert_eq!(memory, Some(GroupMemory { limit_bytes: 512 << 20, used_bytes: 10 << 20 }));
        assert_eq!(memory.unwrap().available_bytes(), 502 << 20);
        let unlimited: Vec<_> = IN_A_CONTAINER
            .map(|(path, text)| match path {
                "sys/fs/cgroup/cpu.max" => (path, "max 100000\n"),
                "sys/fs/cgroup/memory.max" => (path, "max\n"),
                _ => (path, text),
            })
            .to_vec();
        assert_eq!(limits(&unlimited), (None, None));
        assert_eq!(limits(&[]), (None, None));
    }

    #[test]
    fn of_nested_groups_the_tightest_counts() {
        let nested = [
            ("proc/7/cgroup", "0::/kubepods.slice/pod1/weir\n"),
            ("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("sys/fs/cgroup/kubepods.slice/pod1/weir/cpu.max", "400000 100000\n"),
            ("sys/fs/cgroup/kubepods.slice/pod1/cpu.max", "200000 100000\n"),
            ("sys/fs/cgroup/kubepods.slice/pod1/weir/memory.max", "2147483648\n"),
            ("sys/fs/cgroup/kubepods.slice/memory.max", "8589934592\n"),
            ("sys/fs/cgroup/kubepods.slice/memory.current", "7516192768\n"),
        ];
        let (cores, memory) = limits(&nested);
        assert_eq!(cores, Some(2.0));
        // What others of the slice use leaves less than the pod's own limit does.
        assert_eq!(memory.unwrap().available_bytes(), 1 << 30);
    }

    #[test]
    fn the_groups_of_this_machine_are_read_where_both_versions_are_mounted() {
        // Recorded (Linux 6.18), shortened: each controller of version 1 has a mount of its own, and version 2 rules nothing.
        let files = [
            ("proc/7/cgroup", "4:memory:/process_api/d39a\n3:cpuset:/\n2:cpuacct:/\n1:cpu:/\n0::/\n"),
            (
                "proc/self/mountinfo",
                "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
                32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n\
                35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n",
            ),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/memory/process_api/d39a/memory.limit_in_bytes", "3221225472\n"),
            ("sys/fs/cgroup/memory/process_api/d39a/memory.usage_in_bytes", "1073741824\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        let memory = GroupMemory { limit_bytes: 3 << 30, used_bytes: 1 << 30 };
        assert_eq!(limits(&files), (None, Some(memory)));
    }

    #[test]
    fn version_one_keeps_cpu_and_memory_in_hierarchies_of_their_own() {
        let of = |limit| {
            limits(&[
                ("proc/7/cgroup", "9:memory:/docker/x\n3:cpu,cpuacct:/docker/x\n0::/\n"),
                (
                    "proc/self/mountinfo",
                    "33 31 0:30 /docker/x /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n\
                    35 31 0:32 /docker/x /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
                ),
                ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n"),
                ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", limit),
                ("sys/fs/cgroup/memory/memory.usage_in_bytes", "3145728\n"),
                ("sys/fs/cgroup/memory/memory.stat", "cache 1048576\ntotal_inactive_file 1048576\n"),
            ])
        };
        let memory = Some(GroupMemory { limit_bytes: 64 << 20, used_bytes: 2 << 20 });
        assert_eq!(of("67108864\n"), (Some(0.5), memory));
        assert_eq!(of("9223372036854771712\n"), (Some(0.5), None), "what stands for no limit");
    }

    proptest! {
        #[test]
        fn no_text_panics(group: String, mounts: String) {
            Groups::parse(group.as_bytes(), Controller::Memory).directories(mounts.as_bytes());
            throttling(mounts.as_bytes());
        }
    }
}
