//! One stage of a workload: keys, or `500@15s` as the flag `--stage` has it.

use super::written::Span;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// One stage: `500@15s`, or keys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StageSpec {
    /// Clients at the end of the ramp.
    pub clients: u32,
    /// Time to hold them.
    #[schemars(with = "String")]
    pub hold: Span,
    /// Time to get there, instead of `arrival`.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub ramp: Option<Span>,
}

/// A text that is not clients@time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a stage; write clients@time, such as 500@15s")]
pub struct StageError(String);

impl FromStr for StageSpec {
    type Err = StageError;

    fn from_str(text: &str) -> Result<Self, StageError> {
        let wrong = || StageError(text.to_owned());
        let (clients, hold) = text.split_once('@').ok_or_else(wrong)?;
        let clients = clients.trim().parse().map_err(|_| wrong())?;
        let hold = hold.trim().parse().map_err(|_| wrong())?;
        Ok(Self { clients, hold, ramp: None })
    }
}

/// The keys of a stage.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, remote = "StageSpec")]
struct StageKeys {
    clients: u32,
    hold: Span,
    #[serde(default)]
    ramp: Option<Span>,
}

impl<'de> Deserialize<'de> for StageSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrKeys;
        impl<'de> Visitor<'de> for TextOrKeys {
            type Value = StageSpec;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a stage: 500@15s, or its keys")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<StageSpec, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<StageSpec, A::Error> {
                StageKeys::deserialize(MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_any(TextOrKeys)
    }
}

/// The schema of a stage as a file may have it.
pub(super) struct WrittenStage;

impl JsonSchema for WrittenStage {
    fn schema_name() -> Cow<'static, str> {
        "WrittenStage".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let keys = generator.subschema_for::<StageSpec>();
        schemars::json_schema!({ "anyOf": [{ "type": "string", "examples": ["500@15s"] }, keys] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use std::time::Duration;

    #[test]
    fn a_stage_is_clients_at_time() {
        let stage: StageSpec = "500@15s".parse().unwrap();
        assert_eq!((stage.clients, stage.hold.get(), stage.ramp), (500, Duration::from_secs(15), None));
        for text in ["500", "@15s", "5@x", "5@", "-1@1s"] {
            assert_eq!(text.parse::<StageSpec>(), Err(StageError(text.to_owned())));
        }
    }

    #[test]
    fn a_scenario_has_stages_as_texts_or_as_keys() {
        let read = |stages: &str| {
            let text = format!("workloads:\n  - play: rtmp://h/a/b\n    stages: [{stages}]\n");
            Scenario::parse(&text).map(|scenario| scenario.workloads[0].stages.clone())
        };
        let both = read("100@2m, {clients: 200, hold: 1s, ramp: 3s}").unwrap();
        assert_eq!(both[0], "100@2m".parse().unwrap());
        let three = Some(Duration::from_secs(3));
        assert_eq!((both[1].clients, both[1].ramp.clone().map(|it| it.get())), (200, three));
        for (stages, place) in [("7@1s, 100", "3:20: "), ("{client: 1, hold: 1s}", "3:15: ")] {
            let error = read(stages).unwrap_err();
            assert!(error.starts_with(place), "{error}");
        }
        assert!(read("100@x").unwrap_err().contains("write clients@time, such as 500@15s"));
    }
}
