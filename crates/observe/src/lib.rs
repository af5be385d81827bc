//! What a process, its threads, its sockets and the host did in the last second.
//!
//! [`Observer`] reads `/proc` once a second and answers with a [`Sample`]: plain counters and gauges, one
//! line of `observe.ndjson`. [`Usage::between`] turns two samples into rates, [`Usage::summary`] turns a
//! stretch of them into the figures of a report; both are functions of values, so that a report can be
//! computed again from the file. [`Environment`] is what people otherwise write down by hand.
//!
//! This crate knows no run, no client and no protocol. It executes nothing, reads no environment variable
//! of any process, and never changes what it watches.

mod census;
mod cgroup;
mod clock;
mod environment;
mod error;
mod field;
mod figure;
mod host;
mod ledger;
mod observer;
mod process;
mod process_set;
mod ration;
mod reader;
mod redaction;
mod sample;
mod sock_diag;
mod sockets;
mod stat;
mod summary;
mod target;
mod tcp_table;
mod thread_table;
mod usage;
mod watch;

pub use environment::{
    Cpu, Environment, Limit, Sysctl, TargetEnvironment, Version, VersionSource, Virtualisation,
};
pub use error::ObserveError;
pub use figure::Figure;
pub use host::{HostCpu, HostMemory, HostSample, InterfaceSample, NetworkCounters};
pub use observer::Observer;
pub use process::{ProcessSample, ThreadSample, Throttling};
pub use redaction::redact;
pub use sample::Sample;
pub use summary::{HostSummary, InterfaceSummary, ProcessSummary, TargetSummary, UsageSummary, Window};
pub use target::{Connections, TargetSample, TargetState};
pub use thread_table::{ThreadNameSummary, ThreadSummary};
pub use usage::{HostUsage, InterfaceUsage, ProcessUsage, TargetUsage, ThreadUsage, Usage};
pub use watch::{Watch, WatchError};
