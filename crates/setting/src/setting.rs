//! A setting, and how its name is spelled.

use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;

/// A setting, as a text for people names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting<'a> {
    /// What tells it from all others.
    name: &'a str,
    /// What it is called in a scenario, or in a value of a caller from Rust.
    key: &'a str,
    value: Cow<'a, str>,
    beside_flag: Cow<'a, str>,
}

/// How a program spells the names of settings.
type Spelling = fn(&Setting<'_>) -> String;

static SPELLING: OnceLock<Spelling> = OnceLock::new();

/// Has names be spelled so in this process, from now on. The first call counts.
pub fn spell(spelling: Spelling) {
    let _ = SPELLING.set(spelling);
}

impl<'a> Setting<'a> {
    /// One that is called by its key alone.
    pub const fn of(key: &'a str) -> Self {
        Self { name: key, key, value: Cow::Borrowed(""), beside_flag: Cow::Borrowed("") }
    }

    /// One whose key another has as well, which is given otherwise.
    pub(crate) const fn called(name: &'a str, key: &'a str) -> Self {
        Self { name, key, value: Cow::Borrowed(""), beside_flag: Cow::Borrowed("") }
    }

    /// What tells it from all others.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// The same with a value.
    #[must_use]
    pub fn to(&self, value: impl Into<Cow<'a, str>>) -> Self {
        Self { value: value.into(), ..self.clone() }
    }

    /// The same with what follows where a program spells it its own way, such as the key.
    #[must_use]
    pub fn beside_flag(&self, words: impl Into<Cow<'a, str>>) -> Self {
        Self { beside_flag: words.into(), ..self.clone() }
    }
}

impl fmt::Display for Setting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value, beside_flag, .. } = self;
        match (SPELLING.get(), value.is_empty()) {
            (Some(spelling), true) => write!(f, "{}{beside_flag}", spelling(self)),
            (Some(spelling), false) => write!(f, "{} {value}{beside_flag}", spelling(self)),
            (None, true) => write!(f, "`{key}`"),
            (None, false) => write!(f, "`{key}: {value}`"),
        }
    }
}
