//! The key `matrix`: values of several keys, every combination of which is a variant.

use super::variant::{Variant, is_secret};
use schemars::JsonSchema;
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeSet;
use std::fmt;

/// Variants that a matrix may have: each is run, or searched, for minutes.
const MOST_VARIANTS: usize = 1_000;

/// Keys in the order in which they are written, each with its values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matrix(Vec<(String, Vec<String>)>);

impl Matrix {
    /// Whether the matrix has no key.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts `…` in the place of the values of these keys: once there are variants, it is only shown.
    pub(crate) fn hide(&mut self, keys: &BTreeSet<String>) {
        let secret = self.0.iter_mut().filter(|(key, _)| keys.contains(key)).flat_map(|(_, values)| values);
        secret.filter(|value| !value.contains("://")).for_each(|value| "…".clone_into(value));
    }

    /// Every combination, the last key's values changing first: `workers-2-chunk-4096`. A value that is a secret in this text is
    /// called by its position in the list: `token-1`.
    pub(super) fn variants(&self, text: &str) -> Result<Vec<Variant>, String> {
        let mut variants = vec![Variant::default()];
        for (key, values) in &self.0 {
            if values.is_empty() {
                return Err(format!("matrix: {key} has no values; write {key}: [1, 2]"));
            }
            if variants.len().saturating_mul(values.len()) > MOST_VARIANTS {
                return Err(format!("matrix: more than {MOST_VARIANTS} combinations; leave values out"));
            }
            let each = |variant: Variant| values.iter().map(move |value| variant.with(key, value));
            variants = variants.into_iter().flat_map(each).collect();
        }
        let keys = self.0.iter().map(|(key, _)| key);
        let secret: BTreeSet<_> = keys.filter(|key| is_secret(key, &variants, text)).cloned().collect();
        for variant in &mut variants {
            variant.name = self.name(variant, &secret);
            variant.secret_keys.clone_from(&secret);
        }
        for (at, variant) in variants.iter().enumerate() {
            if variants[..at].iter().any(|other| other.name == variant.name) {
                return Err(format!(
                    "matrix: two combinations are both called '{}'; write `variants` with names of their own",
                    variant.name
                ));
            }
        }
        Ok(variants)
    }

    /// What a combination is called, in which the values of some keys are secrets.
    fn name(&self, variant: &Variant, secret: &BTreeSet<String>) -> String {
        let part = |(key, values): &(String, Vec<String>)| {
            let value = &variant.values[key];
            let position = values.iter().position(|it| it == value).map_or(0, |position| position + 1);
            let shown = if secret.contains(key) { position.to_string() } else { as_name(value) };
            format!("{}-{shown}", as_name(key))
        };
        self.0.iter().map(part).collect::<Vec<_>>().join("-")
    }
}

/// A value as a part of a directory's name.
fn as_name(value: &str) -> String {
    let fits = |letter: char| letter.is_alphanumeric() || "_.+".contains(letter);
    value.chars().map(|letter| if fits(letter) { letter } else { '_' }).collect()
}

impl JsonSchema for Matrix {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Matrix".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "object",
            "description": "Keys, and for each the values of which every combination is a variant.",
            "additionalProperties": {
                "type": "array",
                "items": { "type": ["string", "number", "boolean"] }
            }
        })
    }
}

impl Serialize for Matrix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, values) in &self.0 {
            let shown: Vec<_> = values
                .iter()
                .map(|value| if value.contains("://") { weir_clients::shown(value) } else { value.clone() })
                .collect();
            map.serialize_entry(key, &shown)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Matrix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Matrix;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("keys, each with a list of values")
            }

            // A map of the library would sort the keys, and their order is that of the variants.
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Matrix, A::Error> {
                let mut keys = Vec::new();
                while let Some(key) = map.next_key::<String>()? {
                    // As texts, as the values of variants are.
                    keys.push((key, map.next_value()?));
                }
                Ok(Matrix(keys))
            }
        }
        deserializer.deserialize_map(Keys)
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::Variation;
    use std::path::Path;

    fn names(text: &str) -> Result<Vec<String>, String> {
        let found = Variation::parse(text, Path::new(""))?;
        Ok(found.into_iter().map(|it| it.variant.map_or_else(String::new, |variant| variant.name)).collect())
    }

    #[test]
    fn every_combination_is_a_variant() {
        let text = "matrix: {workers: [1, 2], size: [4 kB, '1.10']}
workloads: [{play: 'rtmp://h/a/{workers}', name: '{size}', duration: 1s}]";
        let expected =
            ["workers-1-size-4_kB", "workers-1-size-1.10", "workers-2-size-4_kB", "workers-2-size-1.10"];
        assert_eq!(names(text).unwrap(), expected);
        let found = Variation::parse(text, Path::new("")).unwrap();
        assert_eq!(found[3].scenario.workloads[0].play.0, ["rtmp://h/a/2"]);
        assert_eq!(found[3].scenario.workloads[0].name.as_deref(), Some("1.10"));
    }

    #[test]
    fn a_secret_becomes_no_name() {
        let text = "matrix: {pass: [s3cr3t, 0th3r], workers: [1, 2]}
workloads: [{play: 'http://me:{pass}@h/a', name: '{workers}', duration: 1s}]";
        assert_eq!(
            names(text).unwrap(),
            ["pass-1-workers-1", "pass-1-workers-2", "pass-2-workers-1", "pass-2-workers-2"]
        );
        let found = Variation::parse(text, Path::new("")).unwrap();
        let variant = found[0].variant.as_ref().unwrap();
        assert_eq!(found[0].scenario.workloads[0].play.0, ["http://me:s3cr3t@h/a"]);
        let shown = variant.shown();
        assert_eq!((shown["pass"].as_str(), shown["workers"].as_str()), ("…", "1"));
        let written = serde_saphyr::to_string(&found[0].scenario.without_secrets()).unwrap();
        assert!(!written.contains("s3cr3t") && !written.contains("0th3r"), "{written}");
    }

    #[test]
    fn a_matrix_that_cannot_be_is_one_line() {
        let with = |head: &str| {
            names(&format!("{head}\nworkloads: [{{play: 'rtmp://h/a/s', name: '{{v}}', duration: 1s}}]"))
                .unwrap_err()
        };
        for (head, words) in [
            ("matrix: {v: []}", "matrix: v has no values; write v: [1, 2]"),
            ("matrix: {v: ['a b', 'a/b']}", "two combinations are both called 'v-a_b'"),
            ("matrix: {v: [1]}\nvariants: {a: {v: 1}}", "`variants` or a `matrix`"),
            ("matrix: {w: [1, 2]}", "{w} stands nowhere"),
        ] {
            let said = with(head);
            assert!(said.contains(words) && said.lines().count() == 1, "{said} lacks {words}");
        }
    }
}
