//! Connects again: to where a server sends its clients, and with the login that it asks for.

use super::SCHEMES;
use crate::client_session::End;
use crate::http_request::MOST_REDIRECTS;
use crate::redirect::{Redirect, Redirects};
use crate::shard_recorder::{PlannedStart, ShardRecorder};
use crate::target::Target;
use std::sync::Arc;
use std::time::Duration;
use weir_address::shown;
use weir_metrics::{Failure, Moment};
use weir_rtmp::ClientOptions;
use weir_rtmp::client::{Login, LoginMode};
use weir_rtmp::message::Status;
use weir_shard::Context;
use weir_web::credentials;

/// How often to ask whether the place that a redirect leads to has been found.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// How often a client answers a server that wants a login: once with the user, once with the response.
const MOST_LOGINS: u8 = 2;

/// What a client asks for, and where.
#[derive(Clone)]
pub(super) struct Request {
    pub(super) options: Arc<ClientOptions>,
    pub(super) target: Target,
    /// The application, and the URL with it, without a login.
    app: String,
    tc_url: String,
}

/// The connections of one client until it plays or publishes.
pub(super) struct Attempts {
    request: Arc<Request>,
    redirects: Redirects,
    followed: u32,
    logins: u8,
    /// The next one is to be made.
    is_next: bool,
}

/// What a client's handshake takes its random bytes from.
pub(super) fn seed(planned: PlannedStart, now: Moment) -> u64 {
    u64::from(planned.client) ^ now.as_nanos()
}

/// A client's own challenge, another one for each login.
pub(super) fn nonce(now: Moment) -> u32 {
    now.as_nanos() as u32
}

impl Request {
    pub(super) fn new(options: ClientOptions, target: Target) -> Self {
        let (app, tc_url) = (options.app.clone(), options.tc_url.clone());
        Self { options: Arc::new(options), target, app, tc_url }
    }

    /// The same with a login, which goes behind application and URL.
    fn with_query(&self, query: &str) -> Self {
        let with = |text: &str| format!("{text}{}{query}", if text.contains('?') { '&' } else { '?' });
        let (app, tc_url) = (with(&self.app), with(&self.tc_url));
        Self { options: Arc::new(ClientOptions { app, tc_url, ..(*self.options).clone() }), ..self.clone() }
    }

    /// The same stream at the application, or the stream, that a server has named. A login goes along to the same server only.
    fn redirected(&self, url: &str) -> Result<Self, String> {
        let mut target = Target::parse(url, "play", SCHEMES).map_err(|error| error.to_string())?;
        if target.credentials.is_none() && target.base() == self.target.base() {
            target.credentials.clone_from(&self.target.credentials);
        }
        let path = target.path.trim_matches('/');
        let stream = &self.options.stream;
        let app =
            path.strip_suffix(&**stream).and_then(|app| app.strip_suffix('/')).unwrap_or(path).to_owned();
        if app.is_empty() {
            return Err("it names no application".to_owned());
        }
        let tc_url = format!("{}/{app}", target.base());
        target.path = format!("/{app}/{stream}");
        Ok(Self::new(ClientOptions { app, tc_url, ..(*self.options).clone() }, target))
    }

    fn login(&self) -> Option<Login> {
        let given = self.target.credentials.as_ref()?;
        let text = |text: &str| credentials::decoded(text);
        Some(Login { user: text(&given.user), password: text(&given.password) })
    }
}

impl Attempts {
    pub(super) fn new(request: Arc<Request>, redirects: Redirects) -> Self {
        Self { request, redirects, followed: 0, logins: 0, is_next: false }
    }

    pub(super) fn options(&self) -> Arc<ClientOptions> {
        Arc::clone(&self.request.options)
    }

    /// Whether what comes on the present link is of no use any more.
    pub(super) fn is_next(&self) -> bool {
        self.is_next
    }

    /// Takes a status that came before the server's consent; `None` if it asks for no other connection. `nonce` is the
    /// client's own challenge.
    pub(super) fn refused(&mut self, status: &Status<'_>, nonce: u32) -> Option<Result<(), End>> {
        let request = if let Some(url) = &status.redirect {
            self.redirected(url)
        } else {
            let mode = LoginMode::asked(&status.description)?;
            self.logged_in(mode, status, nonce)
        };
        Some(request.map(|request| {
            self.request = Arc::new(request);
            self.is_next = true;
        }))
    }

    fn redirected(&mut self, url: &str) -> Result<Request, End> {
        let led = if self.followed == MOST_REDIRECTS {
            Err(format!("{MOST_REDIRECTS} redirects in a row came before it"))
        } else {
            self.request.redirected(url)
        };
        self.followed += 1;
        self.logins = 0;
        led.map_err(|cause| {
            (Failure::RedirectFailed, format!("the server sends its clients to {}: {cause}", shown(url)))
        })
    }

    fn logged_in(&mut self, mode: LoginMode, status: &Status<'_>, nonce: u32) -> Result<Request, End> {
        let refused = |words: String| (Failure::Unauthorized, words);
        let login = self.request.login().ok_or_else(|| {
            refused(format!(
                "{status}; give user and password in the URL: rtmp://USER:PASSWORD@HOST/APP/STREAM"
            ))
        })?;
        if self.logins == MOST_LOGINS {
            return Err(refused(format!("{status}; user and password have been sent")));
        }
        self.logins += 1;
        let query = mode.answer(&status.description, &login, &self.request.app, nonce);
        query.map(|query| self.request.with_query(&query)).map_err(|error| refused(error.to_string()))
    }

    /// Opens the next connection, if there is to be one, as soon as the way is known; whether it did.
    ///
    /// # Errors
    /// There is no way.
    pub(super) fn go_on(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<bool, End> {
        if !self.is_next {
            return Ok(false);
        }
        match self.redirects.find(&self.request.target) {
            Redirect::Sought => {
                context.pause_reading(true);
                Ok(false)
            }
            Redirect::Found(endpoint) => {
                self.is_next = false;
                context.reopen(endpoint);
                Ok(true)
            }
            Redirect::None(cause) => {
                let words = format!("the server sends its clients to {}: {cause}", self.request.target);
                Err((Failure::RedirectFailed, words))
            }
        }
    }

    /// When [`Self::go_on`] is to be called, if nothing happens before.
    pub(super) fn poll_timeout(&self, now: Moment) -> Option<Moment> {
        self.is_next.then(|| now + ASK_AGAIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtmp::address::Address;

    fn request(url: &str) -> Request {
        let target = Target::parse(url, "play", SCHEMES).unwrap();
        let address = Address::of(&target).unwrap();
        Request::new(ClientOptions::play(address.tc_url, address.app, address.stream), target)
    }

    #[test]
    fn a_redirect_leads_to_the_same_stream_of_another_application() {
        for (url, app, tc_url) in [
            ("rtmp://other/live", "live", "rtmp://other/live"),
            ("rtmp://other:1936/edge/", "edge", "rtmp://other:1936/edge"),
            ("rtmp://other/live/a?k=1", "live", "rtmp://other/live"),
            ("rtmps://other/live?vhost=v", "live?vhost=v", "rtmps://other/live?vhost=v"),
            ("rtmp://other/live/inst", "live/inst", "rtmp://other/live/inst"),
        ] {
            let led = request("rtmp://h/live/a?k=1").redirected(url).unwrap();
            let options = &led.options;
            assert_eq!((&*options.app, &*options.tc_url, &*options.stream), (app, tc_url, "a?k=1"), "{url}");
        }
        for url in ["http://other/live", "rtmp://", "rtmp://other", "rtmp://other/", "/live"] {
            assert!(request("rtmp://h/live/a").redirected(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_login_goes_along_to_the_same_server_only() {
        for (url, expected) in [
            ("rtmp://h/other", true),
            ("rtmp://h:1935/other", true),
            ("rtmp://other/live", false),
            ("rtmps://h/live", false),
            ("rtmp://h:1936/live", false),
        ] {
            let led = request("rtmp://me:mine@h/live/a").redirected(url).unwrap();
            assert_eq!(led.login().is_some(), expected, "{url}");
        }
    }

    #[test]
    fn a_login_stands_behind_application_and_url_and_once() {
        let first = request("rtmp://m%40e:mine@h/live/a");
        assert_eq!(first.login().unwrap().user, "m@e");
        let query = first.with_query("authmod=adobe&user=me").with_query("authmod=adobe&user=me&response=x");
        assert_eq!(query.options.app, "live?authmod=adobe&user=me&response=x");
        assert_eq!(query.options.tc_url, "rtmp://h/live?authmod=adobe&user=me&response=x");
        assert_eq!(query.options.stream, "a");
        let with_query = request("rtmp://me:mine@h/live?vhost=v/a").with_query("authmod=adobe");
        assert_eq!(with_query.options.app, "live?vhost=v&authmod=adobe");
    }
}
