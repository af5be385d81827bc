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
    /// Where the client is sent instead: `ex.redirect` beside `ex.code` 302, the URL of an application, or `ex.redirect2`,
    /// that of a stream. Not in the specification; SRS, Wowza and AMS say so.
    pub redirect: Option<Cow<'a, str>>,
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
        Self { level: Level::Status, code: code.into(), description: description.into(), redirect: None }
    }

    /// A status of level `error`.
    pub fn error(code: impl Into<Cow<'a, str>>, description: impl Into<Cow<'a, str>>) -> Self {
        Self { level: Level::Error, ..Self::new(code, description) }
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
        Self { level, code: text("code"), description, redirect: redirect_of(value) }
    }

    /// The info object that says this.
    pub fn to_value(&self) -> Value<'_> {
        let info = Object::new()
            .with("level", self.level.as_str())
            .with("code", &*self.code)
            .with("description", &*self.description);
        match &self.redirect {
            Some(url) => info.with("ex", Object::new().with("code", REDIRECTED).with("redirect", &**url)),
            None => info,
        }
        .into()
    }
}

/// `ex.code` of a redirect, as HTTP has it.
const REDIRECTED: f64 = 302.0;

fn redirect_of<'a>(info: &Value<'a>) -> Option<Cow<'a, str>> {
    let ex = info.get("ex")?;
    let is_redirect = ex.get("code").and_then(Value::as_number) == Some(REDIRECTED);
    let url = ["redirect", "redirect2"].into_iter().find_map(|name| match ex.get(name) {
        Some(Value::String(url)) => Some(url.clone()),
        _ => None,
    });
    url.filter(|_| is_redirect)
}

/// A server's description without the query of a login ([`crate::client::LoginMode`]): the challenge in it is no word to a
/// person, and belongs into no artefact.
fn without_challenge(description: &str) -> &str {
    let query = description.find("?reason=").unwrap_or(description.len());
    let end = description[query..].find('&').map_or(description.len(), |end| query + end);
    &description[..end]
}

impl fmt::Display for Status<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&*self.code, without_challenge(&self.description)) {
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
    fn a_redirect_is_read_where_its_code_says_so() {
        let mut status = Status::error("NetConnection.Connect.Rejected", "RTMP 302 Redirect");
        status.redirect = Some("rtmp://other/live".into());
        assert_eq!(Status::from_value(&status.to_value(), Level::Status), status);
        let info = |code, name| {
            let ex = Object::new().with("code", code).with(name, "rtmp://other/live/a");
            Value::from(Object::new().with("level", "error").with("ex", ex))
        };
        for (code, name, read) in
            [(302.0, "redirect2", true), (302.0, "redirected", false), (303.0, "redirect", false)]
        {
            assert_eq!(
                Status::from_value(&info(code, name), Level::Error).redirect.is_some(),
                read,
                "{code} {name}"
            );
        }
    }

    #[test]
    fn what_is_shown_of_a_status_has_no_challenge() {
        let words = "[ authmod=adobe ] : ?reason=needauth&user=me&salt=abcd&challenge=efgh&opaque=ijkl";
        let shown = Status::error("NetConnection.Connect.Rejected", words).to_string();
        assert_eq!(shown, "NetConnection.Connect.Rejected: [ authmod=adobe ] : ?reason=needauth");
    }

    #[test]
    fn an_info_object_may_be_missing_or_a_string() {
        let missing = Status::from_value(&Value::Null, Level::Error);
        assert_eq!((missing.level, missing.to_string()), (Level::Error, "error".into()));
        let text = Status::from_value(&Value::from("full"), Level::Error);
        assert_eq!(text.to_string(), "full");
    }
}
