//! One variant of a scenario: a name, and the values that stand in the places of keys.

use std::collections::BTreeMap;

/// One variant: what it is called, and what stands for each key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Its name in reports and in directories.
    pub name: String,
    /// Its values, as they are written in the place of `{key}`.
    pub values: BTreeMap<String, String>,
}
