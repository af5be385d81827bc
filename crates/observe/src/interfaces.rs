//! Which network interfaces of a machine count: their names, with `*` for any text.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Names of interfaces, such as `eth0` or `en*`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Interfaces(Vec<InterfaceName>);

/// The name of an interface; `*` stands for any text, also for none.
///
/// ```
/// # use weir_observe::InterfaceName;
/// let name: InterfaceName = "en*".parse()?;
/// assert!(name.matches("enp6s0") && !name.matches("wlan0"));
/// # Ok::<(), weir_observe::InterfaceNameError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct InterfaceName(String);

/// The text cannot be the name of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("'{0}' is not an interface name; write for example eth0, or en* for all that begin so")]
pub struct InterfaceNameError(String);

impl Default for Interfaces {
    /// Those of mirakc's measurement: `eth*` and `en*`, the names of Ethernet cards.
    fn default() -> Self {
        Self(["eth*", "en*"].map(|name| InterfaceName(name.to_owned())).to_vec())
    }
}

impl Interfaces {
    /// `lo` alone: for a server on the same machine.
    pub fn loopback() -> Self {
        Self(vec![InterfaceName("lo".to_owned())])
    }

    /// Whether an interface of this name counts.
    pub fn matches(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| pattern.matches(name))
    }

    /// A regular expression (RE2, anchored by Prometheus) that matches the same names.
    pub(crate) fn expression(&self) -> String {
        self.0.iter().map(InterfaceName::expression).collect::<Vec<_>>().join("|")
    }
}

impl FromIterator<InterfaceName> for Interfaces {
    fn from_iter<T: IntoIterator<Item = InterfaceName>>(names: T) -> Self {
        Self(names.into_iter().collect())
    }
}

impl fmt::Display for Interfaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|name| name.0.as_str()).collect();
        f.write_str(&names.join(", "))
    }
}

impl InterfaceName {
    /// Whether an interface of this name is meant.
    pub fn matches(&self, name: &str) -> bool {
        let mut parts = self.0.split('*');
        let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
        let parts: Vec<&str> = parts.collect();
        let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
        for part in middle {
            let Some(at) = rest.find(part) else { return false };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(last)
    }

    fn expression(&self) -> String {
        // A class needs no backslash, which PromQL would want doubled.
        self.0.replace('.', "[.]").replace('*', ".*")
    }
}

impl FromStr for InterfaceName {
    type Err = InterfaceNameError;

    fn from_str(text: &str) -> Result<Self, InterfaceNameError> {
        // The kernel takes more (dev_valid_name); these are what people call interfaces.
        let is_plain = |character: char| character.is_ascii_alphanumeric() || "*-_.:@".contains(character);
        if text.is_empty() || text.len() > 64 || !text.chars().all(is_plain) {
            return Err(InterfaceNameError(text.chars().take(64).collect()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for InterfaceName {
    type Error = InterfaceNameError;

    fn try_from(text: String) -> Result<Self, InterfaceNameError> {
        text.parse()
    }
}

impl From<InterfaceName> for String {
    fn from(name: InterfaceName) -> Self {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        pattern.parse::<InterfaceName>().unwrap().matches(name)
    }

    #[test]
    fn a_star_stands_for_any_text() {
        assert!(matches("eth*", "eth0") && matches("eth*", "eth") && !matches("eth*", "veth0"));
        assert!(matches("lo", "lo") && !matches("lo", "lo1") && !matches("lo", "l"));
        assert!(matches("*", "anything") && matches("e*s*0", "enp6s0") && !matches("e*s*0", "enp6s1"));
        assert!(!matches("a*a", "a"), "one letter is not two");
    }

    #[test]
    fn the_classic_ones_become_the_classic_expression() {
        assert_eq!(Interfaces::default().expression(), "eth.*|en.*");
        assert_eq!(Interfaces::from_iter(["eth0.7".parse().unwrap()]).expression(), "eth0[.]7");
        assert_eq!(Interfaces::default().to_string(), "eth*, en*");
    }

    #[test]
    fn what_could_break_out_of_an_expression_is_no_name() {
        for text in ["", "eth0\"", "a|b", "a\\b", "a b", "(x)", "é"] {
            assert!(text.parse::<InterfaceName>().is_err(), "{text}");
        }
    }
}
