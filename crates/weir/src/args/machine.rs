//! How the target's machine is read.

use clap::{Args, ValueHint};
use weir_observe::InterfaceName;

/// How the target's machine is read.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "The target")]
pub(crate) struct Machine {
    /// A Prometheus that collects from the target's machine: http://host:9090
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) prometheus: Option<String>,
    /// Which machine of that Prometheus, by its label `instance`: target:9100
    #[arg(long, value_name = "NAME", requires = "prometheus")]
    pub(crate) prometheus_instance: Option<String>,
    /// The node_exporter of the target's machine, asked once a second: http://host:9100
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) node_exporter: Option<String>,
    /// An interface of the target's machine whose bytes count: eth0, en*; repeatable
    /// [default: eth* and en*; lo for a target on this machine]
    #[arg(long = "interface", value_name = "NAME")]
    pub(crate) interfaces: Vec<InterfaceName>,
}
