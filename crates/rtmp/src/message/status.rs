//! What a server says of how things stand (RTMP 1.0 sections 7.2.1.1 and 7.2.2).

use std::borrow::Cow;
use std::fmt;

use crate::amf0::{Object, Value};

/// The info object of an `onStatus`, `_result` or `_error` command, in the server's own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status<'a> {
    /// How serious it is.
    pub level: Level,
    /// What it is, such as `NetStream.Play.Start`; empty if the server gave none.
    pub code: Cow<'a, str>,
    /// The same for people; empty if the server gave none.
    pub description: Cow<'a, str>,
}

/// How serious a [`Status`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// As it should be.
    Status,
    /// Something is amiss.
    Warning,
    /// Something has failed.
    Error,
}

impl<'a> Status<'a> {
    /// A status of level `status`.
    pub fn new(code: impl Into<Cow<'a, str>>, description: impl Into<Cow<'a, str>>) -> Self {
        Self { level: Level::Status, code: code.into(), description: description.into() }
    }

    /// A status of level `error`.
    pub fn error(code: impl Into<Cow<'a, str>>, description: impl Into<Cow<'a, str>>) -> Self {
        Self { level: Level::Error, code: code.into(), description: description.into() }
    }

    /// Whether something has failed.
    pub fn is_error(&self) -> bool {
        self.level == Level::Error
    }

    /// Reads an info object. A missing or unknown level counts as `otherwise`; a bare string is a description.
    pub fn from_value(value: &Value<'a>, otherwise: Level) -> Self {
        let text = |name| match value.get(name) {
            Some(Value::String(text)) => text.clone(),
            _ => Cow::Borrowed(""),
        };
        let level = match value.get("level").and_then(Value::as_str) {
            Some("status") => Level::Status,
            Some("warning") => Level::Warning,
            Some("error") => Level::Error,
            _ => otherwise,
        };
        let description = match value {
            Value::String(description) => description.clone(),
            _ => text("description"),
        };
        Self { level, code: text("code"), description }
    }

    /// The info object that says this.
    pub fn to_value(&self) -> Value<'_> {
        Object::new()
            .with("level", self.level.as_str())
            .with("code", &*self.code)
            .with("description", &*self.description)
            .into()
    }
}

impl fmt::Display for Status<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&*self.code, &*self.description) {
            ("", "") => f.write_str(self.level.as_str()),
            (words, "") | ("", words) => f.write_str(words),
            (code, description) => write!(f, "{code}: {description}"),
        }
    }
}

impl Level {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_survives_the_round_trip() {
        let status = Status::error("NetStream.Play.StreamNotFound", "no such stream");
        assert_eq!(Status::from_value(&status.to_value(), Level::Status), status);
    }

    #[test]
    fn an_info_object_may_be_missing_or_a_string() {
        let missing = Status::from_value(&Value::Null, Level::Error);
        assert_eq!((missing.level, missing.to_string()), (Level::Error, "error".into()));
        let text = Status::from_value(&Value::from("full"), Level::Error);
        assert_eq!(text.to_string(), "full");
    }
}
