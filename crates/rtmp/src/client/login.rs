//! Logins by challenge and response, which servers of Adobe's line (`authmod=adobe`) and Limelight's (`authmod=llnw`) ask
//! for: they refuse `connect` with a challenge in their words, and take the next one with the response in the query of its
//! application. Unpublished; this is what librtmp and ffmpeg answer.

use std::fmt::{self, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};

/// User and password. `Debug` shows neither.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The user.
    pub user: String,
    /// The password.
    pub password: String,
}

/// How a server wants the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginMode {
    /// `authmod=adobe`: MD5 in Base64, over the server's salt and challenge.
    Adobe,
    /// `authmod=llnw`: as HTTP's Digest (RFC 7616) with MD5, over the server's nonce.
    Limelight,
}

/// The server does not take user or password, or asks in words that hold no challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server does not take this user and password ({})", .0.name())]
pub struct NotTaken(pub LoginMode);

/// The longest words that hold a challenge: those of known servers have some 200 bytes.
const LONGEST_WORDS: usize = 4_096;

impl LoginMode {
    /// How the server that refuses with these words wants a login; `None` if it asks for none.
    pub fn asked(words: &str) -> Option<Self> {
        match words {
            _ if words.len() > LONGEST_WORDS => None,
            _ if words.contains("authmod=adobe") => Some(Self::Adobe),
            _ if words.contains("authmod=llnw") => Some(Self::Limelight),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Adobe => "authmod=adobe",
            Self::Limelight => "authmod=llnw",
        }
    }

    /// The query by which to ask for `app` again after these words; `nonce` is the client's own challenge.
    ///
    /// # Errors
    /// The words are no challenge: the login was refused.
    pub fn answer(self, words: &str, login: &Login, app: &str, nonce: u32) -> Result<String, NotTaken> {
        let (mode, user) = (self.name(), &login.user);
        if words.contains("code=403 need auth") {
            return Ok(format!("{mode}&user={user}"));
        }
        let (_, challenge) = words.split_once("?reason=needauth").ok_or(NotTaken(self))?;
        let challenge = challenge.split(char::is_whitespace).next().unwrap_or_default();
        // Values are Base64 and may have any number of `=`.
        let value = |name: &str| {
            let mut fields = challenge.split('&').filter_map(|field| field.split_once('='));
            fields.find_map(|(this, value)| (this == name).then_some(value))
        };
        let own = format!("{nonce:08x}");
        Ok(match self {
            Self::Adobe => {
                let password = base64_of(&[user, value("salt").unwrap_or_default(), &login.password]);
                let theirs = value("opaque").or(value("challenge")).unwrap_or_default();
                let response = base64_of(&[&password, theirs, &own]);
                let opaque = value("opaque").map_or_else(String::new, |opaque| format!("&opaque={opaque}"));
                format!("{mode}&user={user}&challenge={own}&response={response}{opaque}")
            }
            Self::Limelight => {
                const COUNT: &str = "00000001";
                let nonce = value("nonce").ok_or(NotTaken(self))?;
                let secret = hex_of(&[user, ":live:", &login.password]);
                // An application without an instance is that of the default one.
                let instance = if app.contains('/') { "" } else { "/_definst_" };
                let request = hex_of(&["publish:/", app, instance]);
                let response = hex_of(&[&secret, ":", nonce, ":", COUNT, ":", &own, ":auth:", &request]);
                format!("{mode}&user={user}&nonce={nonce}&cnonce={own}&nc={COUNT}&response={response}")
            }
        })
    }
}

fn md5_of(parts: &[&str]) -> impl AsRef<[u8]> + use<> {
    parts.iter().fold(Md5::new(), Md5::chain_update).finalize()
}

fn base64_of(parts: &[&str]) -> String {
    STANDARD.encode(md5_of(parts))
}

fn hex_of(parts: &[&str]) -> String {
    md5_of(parts).as_ref().iter().fold(String::new(), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login() -> Login {
        Login { user: "bench".to_owned(), password: "secret".to_owned() }
    }

    const NEEDED: &str = "[ AccessManager.Reject ] : [ code=403 need auth; authmod=adobe ] : ";

    #[test]
    fn a_login_begins_with_the_user() {
        assert_eq!(LoginMode::asked(NEEDED), Some(LoginMode::Adobe));
        let query = LoginMode::Adobe.answer(NEEDED, &login(), "live", 1).unwrap();
        assert_eq!(query, "authmod=adobe&user=bench");
    }

    /// Computed by ffmpeg 5.1's do_adobe_auth and do_llnw_auth, written down in Python with hashlib.
    #[test]
    fn a_challenge_is_answered_as_ffmpeg_answers_it() {
        let adobe = "[ AccessManager.Reject ] : [ authmod=adobe ] : \
            ?reason=needauth&user=bench&salt=abcd&challenge=Y2hhbA==&opaque=b3BhcXVl";
        assert_eq!(
            LoginMode::Adobe.answer(adobe, &login(), "live", 0x1234_abcd).unwrap(),
            "authmod=adobe&user=bench&challenge=1234abcd&response=p7BjrQ2ejNu/YrSdIHBxHg==&opaque=b3BhcXVl"
        );
        let without = adobe.strip_suffix("&opaque=b3BhcXVl").unwrap();
        assert_eq!(
            LoginMode::Adobe.answer(without, &login(), "live", 0x1234_abcd).unwrap(),
            "authmod=adobe&user=bench&challenge=1234abcd&response=YEE/EGtCzMcnDG1TAQu+Xw=="
        );
        let llnw = "[ AccessManager.Reject ] : [ authmod=llnw ] : ?reason=needauth&nonce=abc123==";
        let mode = LoginMode::asked(llnw).unwrap();
        assert_eq!(
            mode.answer(llnw, &login(), "live", 0x1234_abcd).unwrap(),
            "authmod=llnw&user=bench&nonce=abc123==&cnonce=1234abcd&nc=00000001&response=d99ecbe6e6cdeb4d618a218c9e396d8b"
        );
        assert!(
            mode.answer(llnw, &login(), "live/inst", 0x1234_abcd)
                .unwrap()
                .ends_with("b117a39c93794e9f55df57efc813a92b")
        );
    }

    #[test]
    fn words_without_a_challenge_are_a_refusal() {
        for words in [
            "[ AccessManager.Reject ] : [ authmod=adobe ] : ?reason=authfailed&opaque=x",
            "[ AccessManager.Reject ] : [ authmod=adobe ] : ?reason=nosuchuser",
            "authmod=adobe",
        ] {
            assert_eq!(LoginMode::Adobe.answer(words, &login(), "live", 1), Err(NotTaken(LoginMode::Adobe)));
        }
        let none = "authmod=llnw ?reason=needauth&user=bench";
        assert_eq!(
            LoginMode::Limelight.answer(none, &login(), "live", 1),
            Err(NotTaken(LoginMode::Limelight))
        );
        assert_eq!(LoginMode::asked("vhost not here"), None);
        assert_eq!(LoginMode::asked(&"authmod=adobe ".repeat(1_000)), None);
    }

    #[test]
    fn neither_user_nor_password_is_in_a_debug_text() {
        let shown = format!("{:?}", login());
        assert!(!shown.contains("bench") && !shown.contains("secret"), "{shown}");
    }
}
