//! The settings that weir's libraries name in texts, in the order of the alphabet, and texts in which they stand.

use crate::setting::Setting;

macro_rules! settings {
    ($($constant:ident = $setting:expr),+ $(,)?) => {
        $(#[doc = concat!("`", stringify!($constant), "` in lower case.")]
        pub const $constant: Setting<'static> = $setting;)+

        /// Every setting that a text of weir's names.
        pub const ALL: &[Setting<'static>] = &[$($constant),+];
    };
}

settings! {
    AGENTS = Setting::of("agents"),
    ALLOW_DECODE = Setting::of("allow_decode"),
    ALLOW_LOST = Setting::of("allow_lost"),
    ANYWAY = Setting::of("anyway"),
    ARRIVAL = Setting::of("arrival"),
    AT_LEAST = Setting::of("at_least"),
    AUDIO_CODEC = Setting::of("audio_codec"),
    AVRO_ENCODING = Setting::of("avro_encoding"),
    BANDWIDTH = Setting::of("bandwidth"),
    BASE = Setting::of("base"),
    BATCH = Setting::of("batch"),
    BIND_ADDR = Setting::of("bind_addr"),
    BREAK_EVERY = Setting::of("break_every"),
    BUDGET = Setting::of("budget"),
    BUFFER = Setting::of("buffer"),
    BY = Setting::of("by"),
    CACERT = Setting::of("cacert"),
    CERT = Setting::of("cert"),
    CHANNEL_TYPE = Setting::of("channel_type"),
    CLIENTS = Setting::of("clients"),
    CLIENTS_OF_SCENARIO = Setting::called("clients_of_scenario", "clients"),
    CLIENT_ID = Setting::of("client_id"),
    CONFIRM = Setting::of("confirm"),
    CREDENTIALS = Setting::of("credentials"),
    CREDS = Setting::of("creds"),
    DECODE = Setting::of("decode"),
    DECODER = Setting::of("decoder"),
    DRAIN = Setting::of("drain"),
    DURABILITY = Setting::of("durability"),
    DURATION = Setting::of("duration"),
    EXPECT = Setting::of("expect"),
    FAIL_ON = Setting::of("fail_on"),
    FIX = Setting::of("fix"),
    FOR = Setting::of("for"),
    FROM = Setting::of("from"),
    HEADER = Setting::of("header"),
    HOLD = Setting::of("hold"),
    INSECURE = Setting::of("insecure"),
    INTERFACES = Setting::of("interfaces"),
    JSON = Setting::of("json"),
    KEY = Setting::of("key"),
    LABEL = Setting::of("label"),
    LIFE = Setting::of("life"),
    MAX_MESSAGE = Setting::of("max_message"),
    MOST = Setting::of("most"),
    MQTT_VERSION = Setting::of("mqtt_version"),
    NAME = Setting::of("name"),
    NATS_TOKEN_FILE = Setting::of("nats_token_file"),
    NODE_EXPORTER = Setting::of("node_exporter"),
    OF = Setting::of("of"),
    ONLY = Setting::of("only"),
    OUTPUT = Setting::of("output"),
    PARTITION = Setting::of("partition"),
    PAYLOAD = Setting::of("payload"),
    PER_MESSAGE = Setting::of("per_message"),
    PREPARE = Setting::of("prepare"),
    PROMETHEUS = Setting::of("prometheus"),
    PROMETHEUS_INSTANCE = Setting::of("prometheus_instance"),
    QOS_OF_INGEST = Setting::called("qos_of_ingest", "qos"),
    QUEUE = Setting::of("queue"),
    RECONNECT = Setting::of("reconnect"),
    RECORDS = Setting::of("records"),
    RESOLVE = Setting::of("resolve"),
    SAVE = Setting::of("save"),
    SAVE_PASSWORD_FILE = Setting::of("save_password_file"),
    SCHEMA_ID = Setting::of("schema_id"),
    SCHEMA_REGISTRY = Setting::of("schema_registry"),
    SERVICE = Setting::of("service"),
    SERVICES = Setting::of("services"),
    SESSION = Setting::of("session"),
    SET = Setting::of("set"),
    SHARDS = Setting::of("shards"),
    SLICE = Setting::of("slice"),
    SRT_LATENCY = Setting::of("srt_latency"),
    STATEMENT_TIMEOUT = Setting::of("statement_timeout"),
    STREAMS = Setting::of("streams"),
    TABLE = Setting::of("table"),
    THRESHOLD = Setting::of("threshold"),
    TIMEOUT = Setting::of("timeout"),
    TRANSPORT = Setting::of("transport"),
    WATCH = Setting::of("watch"),
    WILL = Setting::of("will"),
    WITNESS_EVERY = Setting::of("witness_every"),
    WS_PATH = Setting::of("ws_path"),
}

/// A constant text in which names of settings stand in braces. Other braces stay.
pub fn named(text: &str) -> String {
    let mut named = text.to_owned();
    for setting in ALL {
        let braces = format!("{{{}}}", setting.name());
        if named.contains(&braces) {
            named = named.replace(&braces, &setting.to_string());
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_called_by_its_key_where_no_program_spells_it() {
        assert_eq!(CLIENTS_OF_SCENARIO.to_string(), "`clients`");
        assert_eq!(SESSION.to("1h").beside_flag(" (`session`)").to_string(), "`session: 1h`");
        assert_eq!(named("{shards} of {count}, {no_such_setting}"), "`shards` of {count}, {no_such_setting}");
    }

    #[test]
    fn each_name_is_of_one_setting() {
        for (number, setting) in ALL.iter().enumerate() {
            assert!(ALL[..number].iter().all(|other| other.name() != setting.name()), "{}", setting.name());
        }
    }
}
