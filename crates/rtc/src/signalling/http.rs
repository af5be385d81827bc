//! WHIP (RFC 9725) and WHEP (draft-ietf-wish-whep): what a server's answer to the posted offer means.
//!
//! Requests are made by the caller: `POST` of the offer as `application/sdp`, `PATCH` of candidates, `DELETE` of the
//! session; each with the bearer token, if there is one.

use url::Url;
use weir_web::Fields;

/// The media type of descriptions.
pub const SDP: &str = "application/sdp";

/// The media type of candidates that come later (RFC 8840).
pub const TRICKLE: &str = "application/trickle-ice-sdpfrag";

/// How many ICE servers of an answer are taken.
const MOST_SERVERS: usize = 16;

/// A session that a server has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The answer.
    pub sdp: String,
    /// Where the session is patched and deleted; `None` when the server gave no place, which the standard forbids: it
    /// can then only be left alone.
    pub resource: Option<Url>,
    /// The tag that a patch must name.
    pub entity_tag: Option<String>,
    /// STUN and TURN servers of `Link` headers.
    pub ice_servers: Vec<super::oven::IceServer>,
    /// Whether candidates may be patched in (RFC 9725 section 4.3.1: `Accept-Patch`).
    pub trickles: bool,
}

/// Why there is no session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// 401, 403: the token is missing or wrong.
    #[error("the server refused the token, or there was none (HTTP {0})")]
    Unauthorised(u16),
    /// 404: no such stream, or it has no publisher. Servers say 409 for the latter, too.
    #[error("the server has no such stream (HTTP {0})")]
    NoStream(u16),
    /// 406, 409 with a description: the server wants other media, and says which.
    #[error("the server made a counter-offer (HTTP {status}); it does not take what was offered")]
    CounterOffer {
        /// The status.
        status: u16,
        /// What it offers.
        sdp: String,
    },
    /// 406, 415, 422: it does not take the offer.
    #[error("the server does not take the offer (HTTP {0})")]
    NotAcceptable(u16),
    /// 429, 503: it is busy.
    #[error("the server is busy (HTTP {status})")]
    Busy {
        /// The status.
        status: u16,
        /// Seconds after which it may be asked again.
        retry_after_seconds: Option<u64>,
    },
    /// 301, 302, 303, 307, 308: the offer is to be posted elsewhere.
    #[error("the server sends clients elsewhere (HTTP {status})")]
    Redirect {
        /// The status.
        status: u16,
        /// Where to.
        to: Url,
    },
    /// 201 or 200 without an answer.
    #[error("the server made a session and sent no answer (HTTP {0})")]
    NoAnswer(u16),
    /// Any other status.
    #[error("the server answered HTTP {0}")]
    Status(u16),
}

/// Reads the response to the posted offer. `fields` are all of the response.
///
/// Servers are borne that say 200 for 201, give no content type, or a relative `Location`.
///
/// # Errors
///
/// A [`Refusal`] when there is no session.
pub fn session(request: &Url, status: u16, fields: &Fields, body: &str) -> Result<Session, Refusal> {
    let location = fields.get("location").and_then(|location| request.join(location).ok());
    let is_description = body.trim_start().starts_with("v=0");
    match status {
        200 | 201 if is_description => Ok(Session {
            sdp: body.to_owned(),
            resource: location,
            entity_tag: fields.get("etag").map(str::to_owned),
            ice_servers: fields.all("link").flat_map(links).take(MOST_SERVERS).collect(),
            trickles: fields.all("accept-patch").flat_map(|types| types.split(',')).any(is_trickle),
        }),
        200 | 201 => Err(Refusal::NoAnswer(status)),
        301 | 302 | 303 | 307 | 308 => {
            Err(location.map_or(Refusal::Status(status), |to| Refusal::Redirect { status, to }))
        }
        401 | 403 => Err(Refusal::Unauthorised(status)),
        406 | 409 if is_description => Err(Refusal::CounterOffer { status, sdp: body.to_owned() }),
        404 | 409 => Err(Refusal::NoStream(status)),
        406 | 415 | 422 => Err(Refusal::NotAcceptable(status)),
        429 | 503 => {
            let retry_after_seconds = fields.get("retry-after").and_then(|seconds| seconds.parse().ok());
            Err(Refusal::Busy { status, retry_after_seconds })
        }
        _ => Err(Refusal::Status(status)),
    }
}

/// Whether a media type is that of candidates that come later; it may have parameters.
fn is_trickle(kind: &str) -> bool {
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(TRICKLE))
}

/// What the response to a patch of candidates means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PatchOutcome {
    /// 200, 204: taken.
    Taken,
    /// 405, 415, 501, and 404 of servers that know no sessions: there is no trickling here; all is in the offer.
    NotSupported,
    /// 412, 428: the tag was wrong or missing.
    WrongTag,
    /// Any other status.
    Failed(u16),
}

impl PatchOutcome {
    /// The meaning of a status.
    pub fn of(status: u16) -> Self {
        match status {
            200 | 204 => Self::Taken,
            404 | 405 | 415 | 501 => Self::NotSupported,
            412 | 428 => Self::WrongTag,
            other => Self::Failed(other),
        }
    }
}

/// The body of a patch with candidates (RFC 8840 section 4.4).
pub fn trickle(user_fragment: &str, password: &str, media_identifier: &str, candidates: &[String]) -> String {
    let mut body = format!(
        "a=ice-ufrag:{user_fragment}\r\na=ice-pwd:{password}\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\n\
         a=mid:{media_identifier}\r\n"
    );
    for candidate in candidates {
        body.push_str("a=candidate:");
        body.push_str(candidate);
        body.push_str("\r\n");
    }
    body.push_str("a=end-of-candidates\r\n");
    body
}

/// How many candidates of a fragment are taken.
const MOST_CANDIDATES: usize = 32;

/// The longest user fragment or password (RFC 8839 section 5.4: 256 characters).
const LONGEST_CREDENTIAL: usize = 256;

/// A server's side behind an ICE restart that it has agreed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restarted {
    /// `a=ice-ufrag`.
    pub user_fragment: String,
    /// `a=ice-pwd`.
    pub password: String,
    /// `a=candidate`, if it names others than before.
    pub candidates: Vec<String>,
}

/// Reads the fragment with which a server answers a restart (RFC 9725 section 4.3.3, RFC 8840); `None` without credentials.
pub fn restarted(fragment: &str) -> Option<Restarted> {
    let value = |name: &str| {
        let found = fragment.lines().find_map(|line| line.trim_end().strip_prefix(name));
        found.filter(|value| (1..=LONGEST_CREDENTIAL).contains(&value.len())).map(str::to_owned)
    };
    let candidates = fragment.lines().filter_map(|line| line.trim_end().strip_prefix("a=candidate:"));
    Some(Restarted {
        user_fragment: value("a=ice-ufrag:")?,
        password: value("a=ice-pwd:")?,
        candidates: candidates.take(MOST_CANDIDATES).map(str::to_owned).collect(),
    })
}

/// The ICE servers in a `Link` header (RFC 9725 section 4.6): `<turn:…>; rel="ice-server"; username="…"; …`, several
/// behind commas.
fn links(header: &str) -> Vec<super::oven::IceServer> {
    let mut servers = Vec::new();
    let mut rest = header;
    while let Some((_, behind)) = rest.split_once('<') {
        let Some((target, behind)) = behind.split_once('>') else { break };
        let parameters;
        (parameters, rest) = parameters_of(behind);
        let value = |name: &str| {
            let parameter = parameters.iter().find(|(this, _)| this.eq_ignore_ascii_case(name));
            parameter.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        if value("rel").eq_ignore_ascii_case("ice-server") && servers.len() < MOST_SERVERS {
            servers.push(super::oven::IceServer {
                urls: vec![target.to_owned()],
                username: value("username"),
                credential: value("credential"),
            });
        }
    }
    servers
}

/// The parameters up to the comma that ends the link, and what is behind it. Values may be quoted.
fn parameters_of(text: &str) -> (Vec<(String, String)>, &str) {
    let mut parameters = Vec::new();
    let (mut name, mut value) = (String::new(), None::<String>);
    let (mut quoted, mut escaped) = (false, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => {
                escaped = false;
                value.get_or_insert_default().push(character);
            }
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ';' | ',' if !quoted => {
                parameters.push((std::mem::take(&mut name), value.take().unwrap_or_default()));
                if character == ',' {
                    return (parameters, &text[at + 1..]);
                }
            }
            '=' if !quoted && value.is_none() => value = Some(String::new()),
            _ if !quoted && character.is_whitespace() => {}
            _ => value.as_mut().unwrap_or(&mut name).push(character),
        }
    }
    parameters.push((name, value.unwrap_or_default()));
    (parameters, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(status: u16, headers: &[(&str, &str)], body: &str) -> Result<Session, Refusal> {
        let request = Url::parse("http://127.0.0.1:1985/rtc/v1/whep/?app=live&stream=x").unwrap();
        session(&request, status, &headers.iter().copied().collect(), body)
    }

    #[test]
    fn a_location_may_be_absolute_or_relative() {
        for (location, resource) in [
            (
                "/rtc/v1/whip/?action=delete&token=t",
                "http://127.0.0.1:1985/rtc/v1/whip/?action=delete&token=t",
            ),
            ("session/5", "http://127.0.0.1:1985/rtc/v1/whep/session/5"),
            ("https://other:8/5", "https://other:8/5"),
        ] {
            let session = read(201, &[("location", location), ("ETag", "\"7\"")], "v=0\r\n").unwrap();
            assert_eq!(session.resource.unwrap().as_str(), resource);
            assert_eq!(session.entity_tag.as_deref(), Some("\"7\""));
        }
        assert_eq!(read(200, &[], "v=0\r\n").unwrap().resource, None);
    }

    #[test]
    fn links_name_servers_with_their_credentials() {
        let header = r#"<stun:a:3478>; rel="ice-server", <turn:b:3478?transport=tcp>; rel=ice-server; username="u;\"1,"; credential="c"; credential-type="password", <https://c>; rel="next""#;
        let servers = read(201, &[("Link", header)], "v=0\r\n").unwrap().ice_servers;
        let servers: Vec<_> =
            servers.iter().map(|server| (&*server.urls[0], &*server.username, &*server.credential)).collect();
        assert_eq!(servers, [("stun:a:3478", "", ""), ("turn:b:3478?transport=tcp", "u;\"1,", "c")]);
    }

    #[test]
    fn trickling_is_offered_by_its_media_type() {
        for (value, trickles) in [
            ("application/trickle-ice-sdpfrag", true),
            ("text/plain, Application/Trickle-ICE-SDPFrag;v=1", true),
            ("application/sdp", false),
        ] {
            assert_eq!(
                read(201, &[("Accept-Patch", value)], "v=0\r\n").unwrap().trickles,
                trickles,
                "{value}"
            );
        }
        assert!(!read(201, &[], "v=0\r\n").unwrap().trickles);
    }

    #[test]
    fn refusals_are_told_apart() {
        let refusal = |status, headers: &[(&str, &str)], body| read(status, headers, body).unwrap_err();
        assert_eq!(refusal(401, &[], ""), Refusal::Unauthorised(401));
        assert_eq!(refusal(404, &[], ""), Refusal::NoStream(404));
        assert_eq!(refusal(409, &[], "not published"), Refusal::NoStream(409));
        assert_eq!(
            refusal(406, &[], "v=0\n"),
            Refusal::CounterOffer { status: 406, sdp: "v=0\n".to_owned() }
        );
        assert_eq!(refusal(406, &[], ""), Refusal::NotAcceptable(406));
        let busy = Refusal::Busy { status: 503, retry_after_seconds: Some(5) };
        assert_eq!(refusal(503, &[("Retry-After", "5")], ""), busy);
        assert_eq!(refusal(201, &[], "{}"), Refusal::NoAnswer(201));
        assert_eq!(refusal(500, &[], ""), Refusal::Status(500));
        let to = Url::parse("http://other/x").unwrap();
        assert_eq!(
            refusal(307, &[("Location", "http://other/x")], ""),
            Refusal::Redirect { status: 307, to }
        );
    }

    #[test]
    fn a_server_that_refuses_trickling_is_told_from_one_that_fails() {
        assert_eq!(PatchOutcome::of(204), PatchOutcome::Taken);
        assert_eq!(PatchOutcome::of(405), PatchOutcome::NotSupported);
        assert_eq!(PatchOutcome::of(412), PatchOutcome::WrongTag);
        assert_eq!(PatchOutcome::of(500), PatchOutcome::Failed(500));
        let body = trickle("u", "p", "0", &["1 1 udp".to_owned()]);
        assert!(body.ends_with("a=mid:0\r\na=candidate:1 1 udp\r\na=end-of-candidates\r\n"));
    }

    #[test]
    fn a_restart_is_answered_with_new_credentials_and_perhaps_with_candidates() {
        let candidates = ["1 1 udp 2130706431 192.0.2.1 5000 typ host".to_owned()];
        let body = trickle("u2", "p2", "0", &candidates);
        let (user_fragment, password) = ("u2".to_owned(), "p2".to_owned());
        let candidates = candidates.to_vec();
        assert_eq!(restarted(&body), Some(Restarted { user_fragment, password, candidates }));
        assert!(restarted("a=ice-ufrag:u\na=ice-pwd:p\n").is_some_and(|it| it.candidates.is_empty()));
        assert_eq!(restarted("a=ice-pwd:p\r\n"), None);
        assert_eq!(restarted(&format!("a=ice-ufrag:u\r\na=ice-pwd:{}\r\n", "p".repeat(257))), None);
        assert_eq!(restarted(&"a=candidate:x\r\n".repeat(99)), None);
    }

    proptest! {
        #[test]
        fn any_link_is_read_without_harm(header in r#"[<>;,="\\a-z \u{e9}]{0,60}"#) {
            prop_assert!(links(&header).len() <= MOST_SERVERS);
        }
    }
}
