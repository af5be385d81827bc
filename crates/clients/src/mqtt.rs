//! MQTT publishers and subscribers, 3.1.1 and 5.

mod broker_path;
mod carrier;
mod connection_answer;
mod draw;
mod figures;
mod filling;
mod identity;
mod number;
mod options;
mod outage;
mod pace;
mod payloads;
mod publish;
mod published;
mod read_outcome;
mod reconnect;
mod refusal;
mod run_messages;
mod session_time;
mod source;
mod start_gate;
mod subscribe;
mod template;
mod times;
mod topic;
mod trace;
mod workload;

pub use figures::{BEGAN_ALONE, CONNECTS};
pub use filling::{Filling, FillingError};
pub use options::{MessageProperties, MqttOptions, SubscriptionSettings, Will, nameless_session};
pub use pace::Arrivals;
pub use published::Published;
pub use run_messages::RunMessages;
pub use source::{MqttSource, MqttSubscriber};
pub use start_gate::StartGate;
pub use subscribe::SharedSubscriptions;
pub use times::PublishTimes;
pub use weir_mqtt::packet::RetainHandling;
pub use weir_mqtt::{Qos, Version as MqttVersion};
pub use weir_record::{Format as RecordFormat, Framing};

pub use template::is_random;
pub use topic::{always_matches, check_filter, is_shared};
pub use workload::{play, publish};

use crate::target::{Placeholders, Scheme};

/// The schemes of both. The ports of those with a WebSocket are WebSocket's own, since MQTT has none for it.
pub const SCHEMES: &[Scheme] =
    &[Scheme::tcp("mqtt", 1883), Scheme::tls("mqtts", 8883), SOCKET_SCHEMES[0], SOCKET_SCHEMES[1]];

/// Those of them whose packets are in a WebSocket (MQTT 5 section 6).
pub(crate) const SOCKET_SCHEMES: &[Scheme] = &[Scheme::tcp("mqtt+ws", 80), Scheme::tls("mqtt+wss", 443)];

/// What may stand in braces in a URL: its topic may name the client and the message, too.
pub const PLACEHOLDERS: Placeholders =
    Placeholders { known: template::PLACES, removed: template::without_places };

/// The figures of both.
pub const SCHEMA: weir_metrics::Schema = weir_metrics::Schema::new(figures::FIGURES);
