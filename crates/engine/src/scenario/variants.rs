//! Variants: named values that stand for `{key}` in a scenario.

mod variation;

pub use variation::Variation;

use super::matrix::Matrix;
use super::variant::{Variant, is_secret};
use schemars::JsonSchema;
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What stands in braces in a scenario and is no key of a variant.
const TAKEN: [&str; 3] = ["i", "seq", "client"];

/// The key `variants`: names, and for each the values that stand in the scenario in the place of `{key}`. They are compared in
/// this order, each with the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variants(Vec<Variant>);

/// The keys of a scenario that are read before its values stand in their places.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    variants: Variants,
    #[serde(default)]
    matrix: Matrix,
}

impl Variants {
    /// The variants of a scenario's text.
    pub(crate) fn of(text: &str) -> Result<Self, String> {
        let Head { variants, matrix } =
            crate::scenario::yaml::read(text).map_err(|error| super::explanation::explain(&error))?;
        match (variants.is_empty(), matrix.is_empty()) {
            (_, true) => Ok(variants.with_secrets_of(text)),
            (true, false) => matrix.variants(text).map(Self),
            (false, false) => Err("give either `variants` or a `matrix`, not both".to_owned()),
        }
    }

    /// The values of these keys are shown nowhere.
    pub(crate) fn hide(&mut self, keys: &BTreeSet<String>) {
        self.0.iter_mut().for_each(|it| it.secret_keys.clone_from(keys));
    }

    /// The same, which knows the keys whose values are secrets in this text.
    fn with_secrets_of(mut self, text: &str) -> Self {
        let keys: BTreeSet<String> = self.0.iter().flat_map(|it| it.values.keys().cloned()).collect();
        let secret: BTreeSet<String> = keys.into_iter().filter(|key| is_secret(key, &self.0, text)).collect();
        self.hide(&secret);
        self
    }

    /// Whether there are no variants.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Variant> {
        self.0.iter()
    }

    /// Checks that all say something of the same keys, and that names do as directories.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Some(first) = self.0.first() else { return Ok(()) };
        for variant in &self.0 {
            let fits = |letter: char| letter.is_alphanumeric() || "-_.+".contains(letter);
            if variant.name.is_empty() || variant.name.starts_with('.') || !variant.name.chars().all(fits) {
                return Err(format!(
                    "variants: '{}' is not a name; use letters, digits, - and _",
                    variant.name.escape_debug()
                ));
            }
            if let Some((key, _)) = variant.values.iter().find(|(_, value)| value.contains(char::is_control))
            {
                return Err(format!(
                    "variants: {{{key}}} of '{}' has a control character in it; write a text of one line",
                    variant.name
                ));
            }
            let lacks = |one: &Variant, other: &Variant| {
                one.values.keys().find(|key| !other.values.contains_key(*key)).cloned()
            };
            for (has, lacking) in [(first, variant), (variant, first)] {
                if let Some(key) = lacks(has, lacking) {
                    return Err(format!(
                        "variants: '{}' says nothing of {{{key}}}, and '{}' does; give all the same keys",
                        lacking.name, has.name
                    ));
                }
            }
        }
        match first.values.keys().find(|key| TAKEN.contains(&key.as_str())) {
            Some(key) => {
                Err(format!("variants: {{{key}}} has a meaning of its own in URLs; choose another key"))
            }
            None => Ok(()),
        }
    }

    /// Checks that each key stands somewhere: one that does not makes variants that are all the same.
    pub(crate) fn check_places(&self, texts: &[String]) -> Result<(), String> {
        let mut keys = self.0.iter().flat_map(|it| it.values.keys());
        match keys.find(|key| !texts.iter().any(|text| text.contains(&format!("{{{key}}}")))) {
            Some(key) => Err(format!(
                "variants: {{{key}}} stands nowhere in the scenario or in a file of `fill`; write it where its value belongs"
            )),
            None => Ok(()),
        }
    }
}

impl Variant {
    /// A text with its values in their places. A value's own braces stay as they are.
    pub fn fill(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let (before, place) = rest.split_at(open);
            filled.push_str(before);
            let value = place.find('}').and_then(|close| Some((self.values.get(&place[1..close])?, close)));
            match value {
                Some((value, close)) => {
                    filled.push_str(value);
                    rest = &place[close + 1..];
                }
                None => {
                    filled.push('{');
                    rest = &place[1..];
                }
            }
        }
        filled.push_str(rest);
        filled
    }

    /// Its values as they may be shown: URLs without user, password and token, and no secret.
    pub fn shown(&self) -> BTreeMap<String, String> {
        let show = |key: &String, value: &String| match value {
            url if url.contains("://") => weir_clients::shown(url),
            _ if self.secret_keys.contains(key) => "…".to_owned(),
            value => value.clone(),
        };
        self.values.iter().map(|(key, value)| (key.clone(), show(key, value))).collect()
    }
}

impl JsonSchema for Variants {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Variants".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "object",
            "description": "Names, and for each the values that stand in the scenario in the place of {key}.",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": { "type": ["string", "number", "boolean"] }
            }
        })
    }
}

impl Serialize for Variants {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for variant in &self.0 {
            map.serialize_entry(&variant.name, &variant.shown())?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Variants {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = Variants;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("names of variants, each with its values")
            }

            // A map of the library would sort them, and the first is the one that the others are compared with.
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Variants, A::Error> {
                let mut variants = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    // As texts: `on`, `1.10` and `0777` are what they are to a server, not what YAML makes of them.
                    variants.push(Variant { name, values: map.next_value()?, ..Variant::default() });
                }
                Ok(Variants(variants))
            }
        }
        deserializer.deserialize_map(Names)
    }
}
