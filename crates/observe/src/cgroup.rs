//! CPU quotas of control groups, version 1 and 2: where a process's group keeps its files.

use crate::field::{decimal, labelled, lines, words};
use crate::process::Throttling;
use crate::reader::Reader;

/// The `cpu.stat` files that tell of throttling: those of the group of `pid` and of the groups above it.
pub(crate) fn throttle_files(pid: u32, reader: &mut Reader) -> Vec<String> {
    let mut files = Vec::new();
    for directory in directories(pid, reader) {
        let path = format!("{directory}/cpu.stat");
        if reader.read(format_args!("{path}")).ok().and_then(throttling).is_some() {
            files.push(path);
        }
    }
    files
}

/// The tightest CPU quota on `pid`, in cores: `cpu.max`, or `cpu.cfs_quota_us / cpu.cfs_period_us`.
pub(crate) fn quota_cores(pid: u32, reader: &mut Reader) -> Option<f64> {
    let mut tightest: Option<f64> = None;
    for directory in directories(pid, reader) {
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

/// Reads `cpu.stat`; `None` for a group that keeps no count of throttling (the root of version 2).
pub(crate) fn throttling(text: &[u8]) -> Option<Throttling> {
    let periods = labelled(text, "nr_throttled")?;
    let seconds = match labelled(text, "throttled_usec") {
        Some(microseconds) => microseconds as f64 * 1e-6,
        None => labelled(text, "throttled_time")? as f64 * 1e-9,
    };
    Some(Throttling { periods, elapsed: labelled(text, "nr_periods").unwrap_or(0), seconds })
}

/// The directories of the group that rules the CPU of `pid`, from its own upwards.
fn directories(pid: u32, reader: &mut Reader) -> Vec<String> {
    let Ok(groups) = reader.read(format_args!("/proc/{pid}/cgroup")).map(Groups::parse) else {
        return Vec::new();
    };
    let Ok(mounts) = reader.read(format_args!("/proc/self/mountinfo")) else { return Vec::new() };
    groups.directories(mounts)
}

/// The group of one process in the hierarchy of version 2, and in the CPU hierarchy of version 1.
#[derive(Debug, Default, PartialEq, Eq)]
struct Groups {
    unified: Option<String>,
    cpu: Option<String>,
}

impl Groups {
    /// Reads `/proc/PID/cgroup`: lines of `number:controllers:path`.
    fn parse(text: &[u8]) -> Self {
        let mut groups = Self::default();
        for line in lines(text).filter_map(|line| std::str::from_utf8(line).ok()) {
            let mut parts = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
                continue;
            };
            if controllers.is_empty() {
                groups.unified = Some(path.to_owned());
            } else if controllers.split(',').any(|controller| controller == "cpu") {
                groups.cpu = Some(path.to_owned());
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
                        super_options.split(',').any(|option| option == "cpu")
                    }) =>
                {
                    &self.cpu
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
        let groups = Groups::parse(b"4:memory:/a\n2:cpu,cpuacct:/docker/x\n1:name=systemd:/s\n0::/\n");
        assert_eq!(groups, Groups { unified: Some("/".into()), cpu: Some("/docker/x".into()) });
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
        let groups = Groups::parse(b"0::/docker/abc/nginx\n");
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

    proptest! {
        #[test]
        fn no_text_panics(group: String, mounts: String) {
            Groups::parse(group.as_bytes()).directories(mounts.as_bytes());
            throttling(mounts.as_bytes());
        }
    }
}
