//! What the watched server is.

use std::fs;

use procfs::process::{LimitValue, Process};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limit::Limit;
use super::version::{self, Version};
use crate::reader::Reader;
use crate::redaction::redact;
use crate::{Watch, cgroup};

/// A watched server: the first process that matched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetEnvironment {
    /// What was asked for.
    pub watch: Watch,
    /// The process.
    pub pid: u32,
    /// Its executable, as its own file system names it: `/proc/PID/exe`. `None` for a process of another
    /// user, unless weir runs as root.
    pub executable: Option<String>,
    /// Its version, where it can be known without running it.
    pub version: Option<Version>,
    /// Its command line, without secrets (see [`redact`](crate::redact)): `/proc/PID/cmdline`.
    pub command_line: Vec<String>,
    /// How many descriptors it may open: `/proc/PID/limits`.
    pub descriptors: Option<Limit>,
    /// Cores that its control groups let it use, if they set a quota.
    pub cgroup_quota_cores: Option<f64>,
    /// The agent that reads it on another machine, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

impl TargetEnvironment {
    /// `None` when the process has ended.
    pub(crate) fn read(watch: Watch, pid: u32, reader: &mut Reader) -> Option<Self> {
        let process = Process::new(i32::try_from(pid).ok()?).ok()?;
        let command_line = redact(&process.cmdline().unwrap_or_default());
        let executable = fs::read_link(format!("/proc/{pid}/exe")).ok();
        // A program that was replaced while it ran is marked by the kernel.
        let executable =
            executable.map(|path| path.to_string_lossy().trim_end_matches(" (deleted)").to_owned());
        let limits = process.limits().ok().map(|limits| limits.max_open_files);
        Some(Self {
            watch,
            pid,
            version: executable.as_deref().and_then(|path| version::find(pid, path)),
            executable,
            command_line,
            descriptors: limits.map(|it| Limit { soft: finite(it.soft_limit), hard: finite(it.hard_limit) }),
            cgroup_quota_cores: cgroup::quota_cores(pid, reader),
            agent: None,
        })
    }
}

fn finite(limit: LimitValue) -> Option<u64> {
    match limit {
        LimitValue::Unlimited => None,
        LimitValue::Value(value) => Some(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_described() {
        let pid = std::process::id();
        let target = TargetEnvironment::read(Watch::Pid(pid), pid, &mut Reader::default()).unwrap();
        assert_eq!(target.executable, std::env::current_exe().unwrap().to_str().map(str::to_owned));
        assert!(!target.command_line.is_empty());
        assert!(target.descriptors.unwrap().soft > Some(0));
    }
}
