//! MQTT publishers and subscribers, 3.1.1 and 5.

mod account;
mod figures;
mod filling;
mod mark;
mod options;
mod pace;
mod publish;
mod refusal;
mod subscribe;
mod topic;
mod workload;

pub use filling::{Filling, FillingError};
pub use options::{MqttOptions, Will};
pub use weir_mqtt::{Qos, Version as MqttVersion};

pub(crate) use workload::{play, publish};

use crate::target::Scheme;

/// The schemes of both.
pub(crate) const SCHEMES: &[Scheme] =
    &[Scheme { name: "mqtt", port: 1883, secure: false }, Scheme { name: "mqtts", port: 8883, secure: true }];

/// The figures of both.
pub(crate) const SCHEMA: weir_metrics::Schema = weir_metrics::Schema::new(figures::FIGURES);
