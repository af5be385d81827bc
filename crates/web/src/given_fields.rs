//! Fields that a person adds to each request (`-H 'Name: value'`). Their values are secrets: tokens and cookies mostly.

use std::fmt;

/// Fields of a request, by name. `Debug` shows names only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct GivenFields(Vec<(String, String)>);

/// What cannot be a field of every request. Shows no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GivenFieldError {
    /// There is no name before a colon.
    #[error("field {0}: no name before a colon; write 'Name: value'")]
    NoName(usize),
    /// The value would end its line (RFC 9110, section 5.5).
    #[error("{0}: the value has a control character in it")]
    Control(String),
    /// It says how the message is framed, or what the connection is for, which is the client's to say.
    #[error("{0}: weir says this itself, by what it asks for")]
    Reserved(String),
}

/// Fields that frame a message or make its connection another one.
const RESERVED: [&str; 7] =
    ["connection", "content-length", "transfer-encoding", "upgrade", "te", "trailer", "expect"];

impl GivenFields {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads them, each written `Name: value`.
    ///
    /// # Errors
    /// What is no field, or one that is not a person's to set.
    pub fn parse<Text: AsRef<str>>(texts: &[Text]) -> Result<Self, GivenFieldError> {
        let fields = texts.iter().enumerate().map(|(at, text)| {
            let (name, value) = text.as_ref().split_once(':').ok_or(GivenFieldError::NoName(at + 1))?;
            let (name, value) = (name.trim(), value.trim());
            // RFC 9110, section 5.6.2.
            let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            if name.is_empty() || !name.bytes().all(is_letter) {
                return Err(GivenFieldError::NoName(at + 1));
            }
            if value.contains(char::is_control) {
                return Err(GivenFieldError::Control(name.to_owned()));
            }
            let lower = name.to_ascii_lowercase();
            if RESERVED.contains(&&*lower) || lower.starts_with("sec-websocket-") {
                return Err(GivenFieldError::Reserved(name.to_owned()));
            }
            Ok((name.to_owned(), value.to_owned()))
        });
        Ok(Self(fields.collect::<Result<_, _>>()?))
    }

    /// The same with a cookie that the server has set (RFC 6265, section 4.1), behind those that are there; a later value of one takes the
    /// place of an earlier one. What is no cookie is passed over.
    #[must_use]
    pub fn with_cookie(mut self, set_cookie: &str) -> Self {
        let pair = set_cookie.split(';').next().unwrap_or_default().trim();
        let Some((name, _)) = pair.split_once('=').filter(|(name, _)| !name.is_empty()) else { return self };
        if pair.contains(char::is_control) {
            return self;
        }
        match self.0.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case("cookie")) {
            Some((_, cookies)) => {
                let others = cookies.split(';').map(str::trim).filter(|other| {
                    !other.is_empty() && other.split_once('=').is_none_or(|(other, _)| other != name)
                });
                *cookies = others.chain([pair]).collect::<Vec<_>>().join("; ");
            }
            None => self.0.push(("Cookie".to_owned(), pair.to_owned())),
        }
        self
    }

    /// Names and values, in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl fmt::Debug for GivenFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;

    fn sent(texts: &[&str]) -> String {
        let fields = GivenFields::parse(texts).unwrap();
        let message = Message::request("GET", "/x", "host").field("Accept", "*/*").given(&fields);
        String::from_utf8(message.end()).unwrap()
    }

    #[test]
    fn given_fields_are_sent_and_take_the_place_of_weirs_own() {
        let sent = sent(&["X-Token: a: b", "host:other", "Accept: text/html", "X-Token: c"]);
        assert_eq!(
            sent.split("\r\n").filter(|line| !line.starts_with("User-Agent")).collect::<Vec<_>>(),
            ["GET /x HTTP/1.1", "X-Token: a: b", "host: other", "Accept: text/html", "X-Token: c", "", ""]
        );
    }

    #[test]
    fn what_is_no_field_is_refused_without_its_value() {
        for text in [
            "secret",
            ": secret",
            "a b: secret",
            "A: secret\r\nB: c",
            "Connection: secret",
            "content-length: secret",
            "Sec-WebSocket-Key: secret",
        ] {
            let error = GivenFields::parse(&[text]).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
        let shown = format!("{:?}", GivenFields::parse(&["A: secret"]).unwrap());
        assert!(!shown.contains("secret"), "{shown}");
    }

    #[test]
    fn cookies_that_a_server_sets_are_sent_with_those_that_were_given() {
        let fields = GivenFields::parse(&["Cookie: a=1; b=2"]).unwrap();
        let fields = fields.with_cookie("b=3; Path=/; HttpOnly").with_cookie("c=4").with_cookie("none");
        assert_eq!(fields.iter().collect::<Vec<_>>(), [("Cookie", "a=1; b=3; c=4")]);
        let alone = GivenFields::default().with_cookie("s=x; Secure");
        assert_eq!(alone.iter().collect::<Vec<_>>(), [("Cookie", "s=x")]);
    }
}
