//! The field `Session`.

use std::time::Duration;

/// The longest name of a session that is taken: RFC 2326 section 3.4 asks for at least eight characters, and servers use up to 64.
const LONGEST_NAME: usize = 1_024;

/// The session's name, and how long it lives without a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionHeader {
    /// Its name.
    pub name: String,
    /// How long it lives, if the server says that.
    pub timeout: Option<Duration>,
}

impl SessionHeader {
    /// Reads the field; `None` if it names no session.
    pub fn parse(value: &str) -> Option<Self> {
        let mut parts = value.split(';').map(str::trim);
        let name = parts.next().filter(|name| !name.is_empty() && name.len() <= LONGEST_NAME)?.to_owned();
        let seconds = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("timeout").then(|| value.trim().parse::<u32>().ok())?
        });
        // A time-out of 0 says nothing.
        let timeout = seconds.filter(|it| *it > 0).map(|it| Duration::from_secs(it.into()));
        Some(Self { name, timeout })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_a_name_and_a_time() {
        let parse =
            |value: &str| SessionHeader::parse(value).map(|it| (it.name, it.timeout.map(|it| it.as_secs())));
        assert_eq!(parse("12345678"), Some(("12345678".to_owned(), None)));
        assert_eq!(parse(" ab;timeout=30 "), Some(("ab".to_owned(), Some(30))));
        assert_eq!(parse("ab; Timeout = 5;x"), Some(("ab".to_owned(), Some(5))));
        assert_eq!(parse("ab;timeout=0"), Some(("ab".to_owned(), None)));
        assert_eq!(parse(";timeout=5"), None);
    }
}
