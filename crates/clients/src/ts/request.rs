//! The request for a stream: one GET (RFC 9112, section 3; RFC 7617 for user and password).

use super::HttpOptions;
use crate::http::path;
use crate::target::{Credentials, Target};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// What to ask for, and where.
pub(super) struct Request {
    target: Target,
    /// Fields of its own, each with its line end.
    fields: String,
    /// They may hold a password: they are never shown.
    bytes: Vec<u8>,
}

impl Request {
    /// A request for a target, with its own credentials or else those of the options.
    pub(super) fn new(mut target: Target, options: &HttpOptions) -> Self {
        if target.credentials.is_none() {
            target.credentials.clone_from(&options.credentials);
        }
        let fields: String =
            options.fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        Self { bytes: bytes(&target, &fields), target, fields }
    }

    /// The same request for another target.
    pub(super) fn to(&self, target: Target) -> Self {
        Self { bytes: bytes(&target, &self.fields), target, fields: self.fields.clone() }
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    /// What goes on the link.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

fn bytes(target: &Target, fields: &str) -> Vec<u8> {
    let base = target.base();
    let host = base.split_once("://").map_or("", |(_, host)| host);
    let mut text = format!(
        "GET {} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: weir/{}\r\nAccept: */*\r\nAccept-Encoding: identity\r\n",
        path(&target.path),
        env!("CARGO_PKG_VERSION")
    );
    if let Some(Credentials { user, password }) = &target.credentials {
        let pair = [&decoded(user)[..], b":", &decoded(password)].concat();
        text.push_str(&format!("Authorization: Basic {}\r\n", STANDARD.encode(pair)));
    }
    text.push_str(fields);
    text.push_str("Connection: close\r\n\r\n");
    text.into_bytes()
}

/// User or password without percent-encoding (RFC 3986, section 2.1).
fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digit = |at: usize| after.get(at).and_then(|byte| (*byte as char).to_digit(16));
        match (byte, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high << 4 | low) as u8);
                rest = &after[2..];
            }
            _ => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ts::SCHEMES;

    fn lines(url: &str) -> Vec<String> {
        let target = Target::parse(url, "play", SCHEMES).unwrap();
        let request = Request::new(target, &HttpOptions::default());
        let text = String::from_utf8(request.bytes().to_vec()).unwrap();
        let text = text.strip_suffix("\r\n\r\n").unwrap();
        text.split("\r\n").map(str::to_owned).collect()
    }

    #[test]
    fn a_request_names_path_host_and_who_asks() {
        let sent = lines("http://host:8080/api/services/1/stream?decode=1#top");
        assert_eq!(sent[0], "GET /api/services/1/stream?decode=1 HTTP/1.1");
        assert_eq!(sent[1], "Host: host:8080");
        assert_eq!(sent[2], format!("User-Agent: weir/{}", env!("CARGO_PKG_VERSION")));
        assert_eq!(sent.last().unwrap(), "Connection: close");
        assert!(!sent.iter().any(|line| line.starts_with("Authorization")));
        assert_eq!(lines("https://[::1]")[..2], ["GET / HTTP/1.1", "Host: [::1]"]);
        assert_eq!(lines("http://host?a=1")[0], "GET /?a=1 HTTP/1.1");
    }

    #[test]
    fn user_and_password_are_sent_as_basic_authentication() {
        // The example of RFC 7617, section 2, with an encoded letter.
        let sent = lines("http://Al%61ddin:open%20sesame@host/x.ts");
        assert!(sent.contains(&"Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==".to_owned()), "{sent:?}");
    }

    #[test]
    fn credentials_of_the_environment_are_for_urls_without() {
        let credentials = Some(Credentials { user: "me".to_owned(), password: "mine".to_owned() });
        for (url, expected) in [("http://host/x", "me"), ("http://you:yours@host/x", "you")] {
            let options = HttpOptions { credentials: credentials.clone(), ..HttpOptions::default() };
            let request = Request::new(Target::parse(url, "play", SCHEMES).unwrap(), &options);
            assert_eq!(request.target().credentials.as_ref().unwrap().user, expected);
        }
    }

    #[test]
    fn more_fields_go_along() {
        let fields = vec![("X-Mirakurun-Priority", "-1".to_owned())];
        let options = HttpOptions { fields, ..HttpOptions::default() };
        let first = Request::new(Target::parse("http://host/x", "play", SCHEMES).unwrap(), &options);
        let second = first.to(Target::parse("http://other/y", "play", SCHEMES).unwrap());
        for request in [first, second] {
            assert!(String::from_utf8_lossy(request.bytes()).contains("\r\nX-Mirakurun-Priority: -1\r\n"));
        }
    }

    #[test]
    fn nothing_in_a_url_can_add_a_line() {
        let sent = lines("http://host/a b\r\nX: y\u{e9}");
        assert_eq!(sent[0], "GET /a%20b%0D%0AX:%20y%C3%A9 HTTP/1.1");
        assert_eq!(sent.len(), 6);
    }
}
