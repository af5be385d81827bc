#![doc = include_str!("../README.md")]

mod census;
mod cgroup;
mod clock;
mod environment;
mod error;
mod exposition;
mod field;
mod figure;
mod host;
mod interfaces;
mod machine;
mod machine_summary;
mod node_exporter;
mod others;
mod process;
mod process_set;
mod prometheus;
mod ration;
mod reader;
mod redaction;
mod remote;
mod running_totals;
mod sample;
mod sampler;
mod sock_diag;
mod sockets;
mod stack;
mod stat;
mod summary;
mod target;
mod tcp_table;
mod thread_table;
mod usage;
mod watch;

pub use cgroup::GroupMemory;
pub use environment::{
    Cpu, Environment, InterfaceSpeed, Limit, Sysctl, TargetEnvironment, Version, VersionSource,
    Virtualisation,
};
pub use error::{MachineError, ObserveError};
pub use figure::Figure;
pub use host::{HostCpu, HostMemory, HostSample, InterfaceSample, NetworkCounters};
pub use interfaces::{InterfaceName, InterfaceNameError, Interfaces};
pub use machine::{MachineFacts, MachinePoint, MachineSample, MachineSource, MachineValues};
pub use machine_summary::MachineUsage;
pub use others::OtherProcesses;
pub use process::{DescriptorUse, ProcessSample, ThreadSample, Throttling};
pub use redaction::redact;
pub use remote::Remote;
pub use sample::Sample;
pub use sampler::Sampler;
pub use stack::{RingCounters, StackCounters};
pub use summary::{
    HostSummary, InterfaceSummary, OthersSummary, ProcessSummary, TargetSummary, UsageSummary, Window,
};
pub use target::{Connections, Elsewhere, TargetSample, TargetState};
pub use thread_table::{ThreadNameSummary, ThreadSummary};
pub use usage::{HostUsage, InterfaceUsage, ProcessUsage, TargetUsage, ThreadUsage, Usage};
pub use watch::{Watch, WatchError};
