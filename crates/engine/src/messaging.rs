//! What a scenario says of messages: the key `mqtt` of a workload. Read here, understood by who makes the clients.

use crate::scenario::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What only MQTT has. A password is never in it: it comes from a file or from the environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MqttSpec {
    /// The version to speak: `5` or `3.1.1`.
    pub version: Option<String>,
    /// Quality of service, 0 to 2, of publishing and of subscribing.
    #[schemars(range(max = 2))]
    pub qos: Option<u8>,
    /// User name.
    pub user: Option<String>,
    /// File whose first line is the password.
    pub password_file: Option<std::path::PathBuf>,
    /// What client identifiers begin with; the client's number follows.
    pub client_id: Option<String>,
    /// For how long the broker keeps the session of a client that is gone; a clean session if absent.
    #[schemars(with = "Option<String>")]
    pub session: Option<Span>,
    /// Longest silence of a client.
    #[schemars(with = "Option<String>")]
    pub keep_alive: Option<Span>,
    /// How many messages may be unacknowledged.
    #[schemars(range(min = 1))]
    pub window: Option<u16>,
    /// End a client whose broker or link breaks, instead of connecting again.
    pub no_reconnect: bool,
    /// Messages a second of each publisher: `10000/s`.
    pub rate: Option<String>,
    /// Messages of each publisher; as many as the time allows if absent.
    pub count: Option<u64>,
    /// What messages are filled with: `size:955`, `file:PATH`, or records of an Avro schema, as `avro:FILE.avsc` or
    /// `json:FILE.avsc`.
    pub payload: Option<String>,
    /// What is around records in Avro: `schemaless`, `single-object` or `container`.
    pub avro_encoding: Option<String>,
    /// Records in a message.
    #[schemars(range(min = 1))]
    pub records: Option<u32>,
    /// Ask the broker to keep the messages.
    pub retain: bool,
    /// A last will: `TOPIC=TEXT`.
    pub will: Option<String>,
}
