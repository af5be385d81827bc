//! The fields of a head, and what they say of the body behind it and of the connection.

use crate::HttpError;
use std::fmt;

/// Fields by name, in their order. `Debug` shows names only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Fields(Vec<(String, String)>);

impl Fields {
    pub(crate) fn read(fields: &[httparse::Header<'_>]) -> Self {
        let text = |value: &[u8]| String::from_utf8_lossy(value).trim().to_owned();
        Self(fields.iter().map(|field| (field.name.to_owned(), text(field.value))).collect())
    }

    /// The value of the first field of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// The values of all fields of this name.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let named = self.0.iter().filter(move |(this, _)| this.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str())
    }

    /// Whether one of this name has this word in its list.
    pub fn lists(&self, name: &str, word: &str) -> bool {
        self.all(name).flat_map(|value| value.split(',')).any(|it| it.trim().eq_ignore_ascii_case(word))
    }

    /// Whether the connection goes on behind the message (RFC 9112, section 9.3).
    pub(crate) fn keep_alive(&self, modern: bool) -> bool {
        !self.lists("connection", "close") && (modern || self.lists("connection", "keep-alive"))
    }

    /// The body by its length, and whether it is chunked.
    pub(crate) fn framing(&self) -> Result<(Option<u64>, bool), HttpError> {
        let mut length = None;
        // Several that agree are one (RFC 9110, section 8.6).
        for part in self.all("content-length").flat_map(|value| value.split(',')).map(str::trim) {
            let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            match part.parse().ok().filter(|_| is_number) {
                Some(number) if length.is_none_or(|before| before == number) => length = Some(number),
                _ => return Err(HttpError::Length(part.to_owned())),
            }
        }
        let mut codings = self.all("transfer-encoding");
        match (codings.next(), codings.next()) {
            (None, _) => Ok((length, false)),
            (Some(coding), None) if coding.eq_ignore_ascii_case("chunked") => Ok((length, true)),
            (Some(first), second) => Err(HttpError::Coding(second.unwrap_or(first).to_owned())),
        }
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Fields {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(fields: I) -> Self {
        Self(fields.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}
