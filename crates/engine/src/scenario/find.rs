//! The key `find`: what is found out about each variant, instead of one run's figures.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `capacity`, or `capacity of messages`: how much each variant carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Find(LoadKind);

/// What is counted. RFC 7502 has the sessions that a server holds and the rate at which they can be established as two
/// benchmarks; so are they here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadKind {
    /// Clients of the workload that plays, or publishes if none plays.
    #[default]
    Clients,
    /// Clients a second, of a number of them that stays the same.
    Arrivals,
    /// Messages a second of MQTT publishers, all together.
    Messages,
    /// Publishers, whatever plays beside them.
    Publishers,
    /// Streams, each with a publisher and with as many viewers as each has in the scenario.
    Streams,
}

/// What is written before what is counted.
const CAPACITY: &str = "capacity";

impl Find {
    /// What is counted.
    pub fn kind(self) -> LoadKind {
        self.0
    }

    fn all() -> impl Iterator<Item = String> {
        let counted = LoadKind::ALL.into_iter().map(|kind| String::from(Self(kind)));
        [CAPACITY.to_owned()].into_iter().chain(counted)
    }
}

impl LoadKind {
    /// All of them, in the order of their help.
    pub const ALL: [Self; 5] =
        [Self::Clients, Self::Arrivals, Self::Messages, Self::Publishers, Self::Streams];

    /// Its name on the command line and in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clients => "clients",
            Self::Arrivals => "arrivals",
            Self::Messages => "messages",
            Self::Publishers => "publishers",
            Self::Streams => "streams",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether a larger load is a smaller one with more clients, so that one run can climb from load to load. A rate and a
    /// number of streams are set when a run begins.
    pub const fn climbs_in_one_run(self) -> bool {
        matches!(self, Self::Clients | Self::Publishers)
    }

    /// The load that a search begins with unless it is said.
    pub const fn usual_first(self) -> u32 {
        match self {
            Self::Clients | Self::Arrivals | Self::Publishers => 10,
            Self::Messages => 1_000,
            Self::Streams => 1,
        }
    }
}

impl TryFrom<String> for Find {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let kind = match (words.next(), words.next(), words.next(), words.next()) {
            (Some(CAPACITY), None, ..) => Some(LoadKind::default()),
            (Some(CAPACITY), Some("of"), Some(name), None) => LoadKind::named(name),
            _ => None,
        };
        kind.map(Self).ok_or_else(|| {
            format!(
                "find: '{text}' is nothing that is found; write {}",
                Self::all().collect::<Vec<_>>().join(", ")
            )
        })
    }
}

impl From<Find> for String {
    fn from(find: Find) -> Self {
        format!("{CAPACITY} of {}", find.0.name())
    }
}

impl JsonSchema for Find {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Find".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "enum": Self::all().collect::<Vec<_>>() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_is_read_and_written_as_words() {
        let read = |text: &str| Find::try_from(text.to_owned()).map(Find::kind);
        assert_eq!(read("capacity"), Ok(LoadKind::Clients));
        for text in Find::all().skip(1) {
            assert_eq!(String::from(Find::try_from(text.clone()).unwrap()), text);
        }
        let said = read("capacity of tables").unwrap_err();
        assert!(said.contains("'capacity of tables'") && said.contains("capacity of messages"), "{said}");
        assert!(read("best").is_err());
    }

    #[test]
    fn a_kind_is_found_by_its_name() {
        for kind in LoadKind::ALL {
            assert_eq!(LoadKind::named(kind.name()), Some(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
        assert_eq!(LoadKind::named("viewers"), None);
    }
}
