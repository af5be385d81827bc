//! What a client asks for, and where.

use super::SCHEMES;
use crate::target::Target;
use weir_rtsp::Login;
use weir_web::credentials;

/// A presentation at a server.
#[derive(Clone)]
pub(super) struct Request {
    pub(super) target: Target,
    /// Its URL as it goes to the server: without user and password.
    pub(super) uri: String,
}

impl Request {
    pub(super) fn new(target: Target) -> Self {
        let uri = format!("{}{}", target.base(), target.path);
        Self { target, uri }
    }

    /// What the URL names as user and password.
    pub(super) fn login(&self) -> Option<Login> {
        let given = self.target.credentials.as_ref()?;
        let text = |text: &str| credentials::decoded(text);
        Some(Login { user: text(&given.user), password: text(&given.password) })
    }

    /// What is asked for where a redirect leads. A login goes along to the same server only.
    pub(super) fn redirected(&self, location: Option<&str>) -> Result<Self, String> {
        let location = location.ok_or_else(|| "it names no place".to_owned())?;
        let mut target = Target::parse(location, "play", SCHEMES).map_err(|error| error.to_string())?;
        if target.credentials.is_none() && target.base() == self.target.base() {
            target.credentials.clone_from(&self.target.credentials);
        }
        Ok(Self::new(target))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(url: &str) -> Request {
        Request::new(Target::parse(url, "play", SCHEMES).unwrap())
    }

    #[test]
    fn user_and_password_stand_in_no_request_line_and_go_to_the_same_server_only() {
        let first = request("rtsp://m%40e:mi%3Ane@cam/live?ch=1");
        assert_eq!(first.uri, "rtsp://cam/live?ch=1");
        let login = first.login().unwrap();
        assert_eq!((&*login.user, &*login.password), ("m@e", "mi:ne"));
        assert!(first.redirected(Some("rtsp://cam:554/other")).unwrap().login().is_some());
        for other in ["rtsp://other/live", "rtsps://cam/live", "rtsp://cam:8554/live"] {
            assert!(first.redirected(Some(other)).unwrap().login().is_none(), "{other}");
        }
        for wrong in [None, Some("/live"), Some("http://cam/live"), Some("rtsp://")] {
            assert!(first.redirected(wrong).is_err(), "{wrong:?}");
        }
    }
}
