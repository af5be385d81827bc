//! The key `find`: what is found out about each variant, instead of one run's figures.

use crate::capacity::LoadKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `capacity`, or `capacity of messages`: how much each variant carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Find(LoadKind);

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
}
