//! The request for a stream: one GET, and another where a redirect leads.

use crate::target::{Credentials, Link, Scheme, Target};
use weir_web::{GivenFields, Message, credentials, uri};

/// The schemes of servers that are asked by HTTP.
pub const SCHEMES: &[Scheme] = &[HTTP, HTTPS];

const HTTP: Scheme = Scheme::tcp("http", 80);
const HTTPS: Scheme = Scheme::tls("https", 443);

/// The scheme of HTTP over the link of another scheme, such as that of `http+flv`.
pub fn http_scheme(link: Link) -> Scheme {
    if link == Link::Tls { HTTPS } else { HTTP }
}

/// What only HTTP has.
#[derive(Clone, Debug, Default)]
pub struct HttpOptions {
    /// User and password for URLs that name none, percent-encoded as in a URL.
    pub credentials: Option<Credentials>,
    /// More fields of the request, by name. Values are one line each.
    pub fields: Vec<(&'static str, String)>,
    /// What a person adds to each request.
    pub given: GivenFields,
}

impl HttpOptions {
    /// Whether there is a password among them, or a field that a person gave.
    pub fn sends_secret(&self) -> bool {
        self.credentials.as_ref().is_some_and(|it| !it.password.is_empty()) || !self.given.is_empty()
    }
}

/// How many redirects in a row are followed.
pub(crate) const MOST_REDIRECTS: u32 = 5;

/// What to ask for, and where.
pub struct Request {
    target: Target,
    /// Fields of its own.
    fields: Vec<(&'static str, String)>,
    /// What a person gave for this server, and the cookies that it has set.
    given: GivenFields,
    /// Whether other requests are to follow on its connection.
    keeps: bool,
    /// They may hold a password: they are never shown.
    bytes: Vec<u8>,
}

impl Request {
    /// A request for a target, with its own credentials or else those of the options.
    pub fn new(mut target: Target, options: &HttpOptions) -> Self {
        if target.credentials.is_none() {
            target.credentials.clone_from(&options.credentials);
        }
        Self::of(target, &options.fields, options.given.clone(), false)
    }

    /// The same on a connection that is kept open for others.
    #[must_use]
    pub fn kept(self) -> Self {
        Self::of(self.target, &self.fields, self.given, true)
    }

    fn of(target: Target, fields: &[(&'static str, String)], given: GivenFields, keeps: bool) -> Self {
        let base = target.base();
        let host = base.split_once("://").map_or("", |(_, host)| host);
        let credentials = target.credentials.as_ref();
        let authorization = credentials.map(|it| credentials::basic(&it.user, &it.password));
        let message = Message::request("GET", &target.path, host)
            .field("Accept", "*/*")
            .field("Accept-Encoding", "identity")
            .maybe("Authorization", authorization);
        let message = fields.iter().fold(message, |message, (name, value)| message.field(name, value));
        let bytes = message.given(&given).keep_alive(keeps).end();
        Self { bytes, target, fields: fields.to_vec(), given, keeps }
    }

    /// The same with these fields in the place of those whose names begin so.
    #[must_use]
    pub fn with_fields(
        &self,
        prefix: &str,
        fields: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Self {
        let others = self.fields.iter().filter(|(name, _)| !name.starts_with(prefix)).cloned();
        let fields: Vec<_> = others.chain(fields).collect();
        Self::of(self.target.clone(), &fields, self.given.clone(), self.keeps)
    }

    /// The same with these cookies, which take the place of given ones of the same names.
    #[must_use]
    pub(crate) fn with_cookies(&self, pairs: &[String]) -> Self {
        let given = pairs.iter().map(String::as_str).fold(self.given.clone(), GivenFields::with_cookie);
        Self::of(self.target.clone(), &self.fields, given, self.keeps)
    }

    /// The request that follows from an answer that leads elsewhere. Credentials, fields that a person gave and cookies go along
    /// to the same scheme, host and port only.
    ///
    /// # Errors
    /// Why a viewer cannot follow the redirect.
    pub(crate) fn redirected<'a>(
        &self,
        location: Option<&str>,
        cookies: impl Iterator<Item = &'a str>,
    ) -> Result<Self, String> {
        self.led(location.ok_or("it does not say where to")?, cookies, &self.fields)
    }

    /// The request for what an answer to this one names, all of it or `range` (its first byte and its length), as a redirect
    /// there would have it.
    ///
    /// # Errors
    /// The reference is no URL of HTTP.
    pub fn named(&self, reference: &str, range: Option<(u64, u64)>) -> Result<Self, String> {
        let range = range.map(|(first, length)| {
            let last = first.saturating_add(length.saturating_sub(1));
            ("Range", format!("bytes={first}-{last}"))
        });
        let others = self.fields.iter().filter(|(name, _)| *name != "Range").cloned();
        self.led(reference, std::iter::empty(), &others.chain(range).collect::<Vec<_>>())
    }

    fn led<'a>(
        &self,
        location: &str,
        cookies: impl Iterator<Item = &'a str>,
        fields: &[(&'static str, String)],
    ) -> Result<Self, String> {
        let url = uri::resolve(self.target.url().reveal(), location).map_err(|error| error.to_string())?;
        let mut target = Target::parse(url.as_str(), "play", SCHEMES).map_err(|error| error.to_string())?;
        let is_same = target.base() == self.target.base();
        if target.credentials.is_none() && is_same {
            target.credentials.clone_from(&self.target.credentials);
        }
        let given = if is_same {
            cookies.fold(self.given.clone(), GivenFields::with_cookie)
        } else {
            GivenFields::default()
        };
        Ok(Self::of(target, fields, given, self.keeps))
    }

    /// The server and path that the request is for.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// What goes on the link.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Where a redirect met at a URL leads, and what is asked for there.
#[cfg(any(test, feature = "fuzz"))]
pub(crate) fn redirected(url: &str, location: &str) -> Result<(Target, Vec<u8>), String> {
    let target = Target::parse(url, "play", SCHEMES).map_err(|error| error.to_string())?;
    let request =
        Request::new(target, &HttpOptions::default()).redirected(Some(location), std::iter::empty())?;
    Ok((request.target, request.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(url: &str) -> Request {
        Request::new(Target::parse(url, "play", SCHEMES).unwrap(), &HttpOptions::default())
    }

    fn lines(url: &str) -> Vec<String> {
        let text = String::from_utf8(request(url).bytes().to_vec()).unwrap();
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
        let second = first.redirected(Some("http://other/y"), std::iter::empty()).unwrap();
        for request in [first, second] {
            assert!(String::from_utf8_lossy(request.bytes()).contains("\r\nX-Mirakurun-Priority: -1\r\n"));
        }
    }

    #[test]
    fn what_was_given_goes_along_to_the_same_scheme_host_and_port_only() {
        let given = GivenFields::parse(&["X-Token: secret"]).unwrap();
        let options = HttpOptions { given, ..HttpOptions::default() };
        let first = Request::new(Target::parse("http://a/x", "play", SCHEMES).unwrap(), &options);
        for (location, expected) in [
            ("/y", true),
            ("http://a:80/y", true),
            ("https://a/y", false),
            ("http://b/y", false),
            ("http://a:81/y", false),
        ] {
            let led = first.redirected(Some(location), ["s=cookie; Path=/"].into_iter()).unwrap();
            let sent = String::from_utf8_lossy(led.bytes()).into_owned();
            let has = (sent.contains("\r\nX-Token: secret\r\n"), sent.contains("\r\nCookie: s=cookie\r\n"));
            assert_eq!(has, (expected, expected), "{location}: {sent}");
        }
    }

    #[test]
    fn nothing_in_a_url_can_add_a_line() {
        let sent = lines("http://host/a b\r\nX: y\u{e9}");
        assert_eq!(sent[0], "GET /a%20b%0D%0AX:%20y%C3%A9 HTTP/1.1");
        assert_eq!(sent.len(), 6);
    }

    #[test]
    fn a_redirect_is_read_from_where_it_was_met() {
        for (location, expected) in [
            ("http://g", "http://g/"),
            ("//g:80/x", "http://g/x"),
            ("../g", "http://a/b/g"),
            ("g#s", "http://a/b/c/g"),
            ("", "http://a/b/c/d;p?q"),
            ("/g?u=http://h/", "http://a/g?u=http://h/"),
        ] {
            let request =
                request("http://a/b/c/d;p?q").redirected(Some(location), std::iter::empty()).unwrap();
            let target = request.target();
            assert_eq!(format!("{}{}", target.base(), target.path), expected, "{location}");
        }
    }

    #[test]
    fn credentials_go_along_to_the_same_server_only() {
        let request = request("http://me:secret@a/x");
        for (location, expected) in [
            ("/y", true),
            ("http://a:80/y", true),
            ("http://b/y", false),
            ("https://a/y", false),
            ("https://a:80/y", false),
            ("//a:81/", false),
            ("http:\\\\b/y", false),
        ] {
            let led = request.redirected(Some(location), std::iter::empty()).unwrap();
            assert_eq!(led.target().credentials.is_some(), expected, "{location}");
            let sent = String::from_utf8_lossy(led.bytes()).into_owned();
            assert_eq!(sent.contains("Authorization"), expected, "{location}");
        }
    }

    #[test]
    fn a_place_that_is_none_says_so_without_secrets() {
        for location in [None, Some("ftp://me:secret@a/x"), Some("http://"), Some("http://me:secret@a:x/")] {
            let said = request("http://a/x").redirected(location, std::iter::empty()).err().unwrap();
            assert!(!said.contains("secret"), "{said}");
        }
    }
}
