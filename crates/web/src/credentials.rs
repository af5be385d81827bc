//! Credentials of a request: user and password (RFC 7617), or a token (RFC 6750), as values of the field `Authorization`.
//! They are never shown.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;

/// The value for a user and a password, which are percent-encoded as in a URL.
pub fn basic(user: &str, password: &str) -> String {
    let pair: Vec<u8> =
        percent_decode_str(user).chain([b':'].iter().copied()).chain(percent_decode_str(password)).collect();
    format!("Basic {}", STANDARD.encode(pair))
}

/// User or password as they are: percent-encoded in a URL.
pub fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// The value for a token.
pub fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

/// `USER:PASSWORD` of a value that [`basic`] makes.
pub fn basic_in(value: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(behind("basic", value)?).ok()?).ok()
}

/// The token of a value that [`bearer`] makes.
pub fn bearer_in(value: &str) -> Option<&str> {
    behind("bearer", value)
}

fn behind<'a>(scheme: &str, value: &'a str) -> Option<&'a str> {
    let (this, rest) = value.split_once(' ')?;
    this.eq_ignore_ascii_case(scheme).then(|| rest.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_password_are_written_as_in_the_standards_example() {
        // RFC 7617, section 2, with an encoded letter, and a percent sign that is nothing but itself.
        assert_eq!(basic("Al%61ddin", "open%20sesame"), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert_eq!(basic_in(&basic("100%", "%zz")).as_deref(), Some("100%:%zz"));
    }

    #[test]
    fn schemes_are_told_apart_whatever_their_case() {
        assert_eq!(basic_in("bASIC QWxhZGRpbjpvcGVuIHNlc2FtZQ==").as_deref(), Some("Aladdin:open sesame"));
        assert_eq!((bearer_in("bearer  t"), bearer_in(&bearer("t"))), (Some("t"), Some("t")));
        for value in ["", "Basic", "Basic !", "Bearer QQ==", "Basic //8="] {
            assert_eq!(basic_in(value), None, "{value}");
        }
        assert_eq!(bearer_in("Basic t"), None);
    }
}
