//! OvenMediaEngine's signalling: JSON in text frames of a WebSocket, as its version 0.19 speaks it.
//!
//! The client asks for an offer and answers it; the server says nothing more when all is well. What is not known is
//! passed over.

use serde::{Deserialize, Serialize};

/// The longest message that is read, in bytes.
pub const MOST_BYTES: usize = 256 << 10;

/// How many candidates and servers of a message are taken.
const MOST_ENTRIES: usize = 64;

/// What the client says first.
pub const REQUEST_OFFER: &str = r#"{"command":"request_offer"}"#;

/// What a server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// An offer.
    Offer(Offer),
    /// It refuses; the socket may stay open.
    Refused {
        /// Such as 404.
        code: u32,
        /// The server's reason.
        error: String,
    },
    /// Something that weir has no use for, by its command.
    Other(String),
}

/// An offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The session, to be named in the answer.
    pub id: u64,
    /// The description.
    pub sdp: String,
    /// Candidates, as in `a=candidate`, beside those of the description.
    pub candidates: Vec<String>,
    /// TURN servers; there are some with `?transport=tcp`.
    pub ice_servers: Vec<IceServer>,
}

/// A TURN server.
#[derive(Clone, PartialEq, Eq)]
pub struct IceServer {
    /// Such as `turn:127.0.0.1:3478?transport=tcp`.
    pub urls: Vec<String>,
    /// The user.
    pub username: String,
    /// The password; it is not printed.
    pub credential: String,
}

impl std::fmt::Debug for IceServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("IceServer").field("urls", &self.urls).finish_non_exhaustive()
    }
}

/// Why a message cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// Far above the largest offers of browsers, which are tens of kilobytes.
    #[error("a signalling message of {0} bytes; {MOST_BYTES} are read")]
    TooLong(usize),
    /// It is no JSON of the kind that OvenMediaEngine sends.
    #[error("not a signalling message of OvenMediaEngine")]
    Json(#[source] serde_json::Error),
    /// An offer without a description.
    #[error("an offer without a session description")]
    NoDescription,
}

impl Message {
    /// Reads a text frame.
    ///
    /// # Errors
    ///
    /// When it is too long, no JSON object, or an offer without a description.
    pub fn parse(text: &str) -> Result<Self, MessageError> {
        if text.len() > MOST_BYTES {
            return Err(MessageError::TooLong(text.len()));
        }
        let wire: Wire = serde_json::from_str(text).map_err(MessageError::Json)?;
        match (wire.command.as_deref(), wire.code, wire.error) {
            (Some("offer"), ..) => {
                let sdp = wire.sdp.ok_or(MessageError::NoDescription)?.sdp;
                let candidates = wire.candidates.unwrap_or_default().into_iter().take(MOST_ENTRIES);
                let servers = wire.ice_servers.or(wire.old_ice_servers).unwrap_or_default();
                Ok(Self::Offer(Offer {
                    id: wire.id.unwrap_or(0),
                    sdp,
                    candidates: candidates.map(|candidate| candidate.candidate).collect(),
                    ice_servers: servers.into_iter().take(MOST_ENTRIES).map(IceServer::from).collect(),
                }))
            }
            (_, Some(code), error) if error.is_some() || code >= 400 => {
                Ok(Self::Refused { code, error: error.unwrap_or_default() })
            }
            (_, None, Some(error)) => Ok(Self::Refused { code: 0, error }),
            (command, ..) => Ok(Self::Other(command.unwrap_or_default().to_owned())),
        }
    }
}

/// The client's answer to an offer.
pub fn answer(id: u64, sdp: &str) -> String {
    let description = WireDescription { kind: "answer".to_owned(), sdp: sdp.to_owned() };
    let answer = serde_json::json!({
        "command": "answer", "id": id, "peer_id": 0, "sdp": description, "candidates": null
    });
    answer.to_string()
}

/// The client's command that ends the session.
pub fn stop(id: u64) -> String {
    serde_json::json!({ "command": "stop", "id": id }).to_string()
}

/// The server's offer.
pub fn offer(offer: &Offer) -> String {
    let description = WireDescription { kind: "offer".to_owned(), sdp: offer.sdp.clone() };
    let candidates: Vec<_> = offer
        .candidates
        .iter()
        .map(|candidate| {
            serde_json::json!({ "candidate": format!("candidate:{candidate}"), "sdpMLineIndex": 0 })
        })
        .collect();
    let servers: Vec<_> = offer
        .ice_servers
        .iter()
        .map(|server| {
            serde_json::json!({
                "urls": server.urls, "username": server.username, "credential": server.credential
            })
        })
        .collect();
    let mut message = serde_json::json!({
        "command": "offer", "id": offer.id, "peer_id": 0, "code": 200, "sdp": description,
        "candidates": candidates
    });
    if !servers.is_empty() {
        message["iceServers"] = servers.into();
    }
    message.to_string()
}

/// The server's refusal.
pub fn refusal(code: u32, error: &str) -> String {
    serde_json::json!({ "code": code, "error": error }).to_string()
}

/// A message of a client, as a server reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// It requests an offer.
    Offer,
    /// It answers an offer.
    Answer {
        /// The session.
        id: u64,
        /// The description.
        sdp: String,
        /// Candidates beside those of the description.
        candidates: Vec<String>,
    },
    /// It ends the session.
    Stop,
    /// Something that weir has no use for, by its command.
    Other(String),
}

impl Request {
    /// Reads a text frame.
    ///
    /// # Errors
    ///
    /// When it is too long, no JSON object, or an answer without a description.
    pub fn parse(text: &str) -> Result<Self, MessageError> {
        if text.len() > MOST_BYTES {
            return Err(MessageError::TooLong(text.len()));
        }
        let wire: Wire = serde_json::from_str(text).map_err(MessageError::Json)?;
        Ok(match wire.command.as_deref() {
            Some("request_offer") => Self::Offer,
            Some("answer") => {
                let sdp = wire.sdp.ok_or(MessageError::NoDescription)?.sdp;
                let candidates = wire.candidates.unwrap_or_default().into_iter().take(MOST_ENTRIES);
                let candidates = candidates.map(|candidate| candidate.candidate).collect();
                Self::Answer { id: wire.id.unwrap_or(0), sdp, candidates }
            }
            Some("stop") => Self::Stop,
            command => Self::Other(command.unwrap_or_default().to_owned()),
        })
    }
}

/// All that any message has.
#[derive(Deserialize)]
struct Wire {
    command: Option<String>,
    id: Option<u64>,
    code: Option<u32>,
    error: Option<String>,
    sdp: Option<WireDescription>,
    candidates: Option<Vec<WireCandidate>>,
    #[serde(rename = "iceServers")]
    ice_servers: Option<Vec<WireServer>>,
    /// As versions before 0.13 say it, and later ones say it again.
    #[serde(rename = "ice_servers")]
    old_ice_servers: Option<Vec<WireServer>>,
}

#[derive(Deserialize, Serialize)]
struct WireDescription {
    #[serde(rename = "type", default)]
    kind: String,
    sdp: String,
}

#[derive(Deserialize)]
struct WireCandidate {
    candidate: String,
}

#[derive(Deserialize)]
struct WireServer {
    #[serde(default)]
    urls: WireUrls,
    #[serde(alias = "user_name", default)]
    username: String,
    #[serde(default)]
    credential: String,
}

/// Several, or one alone, as W3C's RTCIceServer has it.
#[derive(Deserialize)]
#[serde(untagged)]
enum WireUrls {
    Many(Vec<String>),
    One(String),
}

impl Default for WireUrls {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl From<WireServer> for IceServer {
    fn from(server: WireServer) -> Self {
        let urls = match server.urls {
            WireUrls::Many(urls) => urls,
            WireUrls::One(url) => vec![url],
        };
        Self { urls, username: server.username, credential: server.credential }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_offer_is_read_with_its_candidates_and_servers() {
        for servers in [
            r#""iceServers":[{"urls":["turn:127.0.0.1:3478?transport=tcp"],"username":"ome","credential":"airen"}]"#,
            r#""ice_servers":[{"urls":["turn:127.0.0.1:3478?transport=tcp"],"user_name":"ome","credential":"airen"}]"#,
            r#""iceServers":[{"urls":"turn:127.0.0.1:3478?transport=tcp","username":"ome","credential":"airen"}]"#,
        ] {
            let text = format!(
                r#"{{"command":"offer","id":506764844,"peer_id":0,"code":200,"sdp":{{"type":"offer","sdp":"v=0\r\n"}},
                "candidates":[{{"candidate":"candidate:0 1 UDP 50 127.0.0.1 10000 typ host","sdpMLineIndex":0}}],{servers}}}"#
            );
            let Ok(Message::Offer(offer)) = Message::parse(&text) else { panic!("no offer") };
            assert_eq!((offer.id, &*offer.sdp), (506_764_844, "v=0\r\n"));
            assert_eq!(offer.candidates, ["candidate:0 1 UDP 50 127.0.0.1 10000 typ host"]);
            let [server] = &offer.ice_servers[..] else { panic!("{:?}", offer.ice_servers) };
            assert_eq!((&*server.username, &*server.credential), ("ome", "airen"));
            assert!(!format!("{server:?}").contains("airen"));
        }
    }

    #[test]
    fn a_refusal_is_read_with_its_reason() {
        let refused = Message::Refused { code: 404, error: "Cannot create offer".to_owned() };
        assert_eq!(Message::parse(r#"{"code":404,"error":"Cannot create offer"}"#).unwrap(), refused);
        assert_eq!(Message::parse(&refusal(404, "Cannot create offer")).unwrap(), refused);
        let other = Message::parse(r#"{"command":"notification","type":"playlist"}"#).unwrap();
        assert_eq!(other, Message::Other("notification".to_owned()));
    }

    #[test]
    fn both_sides_read_what_the_other_writes() {
        assert_eq!(Request::parse(REQUEST_OFFER).unwrap(), Request::Offer);
        let said = Request::Answer { id: 7, sdp: "v=0\r\n".to_owned(), candidates: Vec::new() };
        assert_eq!(Request::parse(&answer(7, "v=0\r\n")).unwrap(), said);
        assert_eq!(Request::parse(&stop(7)).unwrap(), Request::Stop);
        let sent = Offer {
            id: 3,
            sdp: "v=0\r\n".to_owned(),
            candidates: vec!["1 1 udp".to_owned()],
            ice_servers: vec![IceServer {
                urls: vec!["turn:h?transport=tcp".to_owned()],
                username: "u".to_owned(),
                credential: "c".to_owned(),
            }],
        };
        let Ok(Message::Offer(read)) = Message::parse(&offer(&sent)) else { panic!("no offer") };
        assert_eq!(read.ice_servers, sent.ice_servers);
        assert_eq!((read.id, read.sdp, read.candidates), (3, sent.sdp, vec!["candidate:1 1 udp".to_owned()]));
    }

    #[test]
    fn what_is_too_long_or_nested_or_no_json_is_refused() {
        assert!(matches!(Message::parse(&" ".repeat(MOST_BYTES + 1)), Err(MessageError::TooLong(_))));
        assert!(matches!(Message::parse(&"[".repeat(10_000)), Err(MessageError::Json(_))));
        assert!(matches!(Message::parse(r#"{"command":"offer"}"#), Err(MessageError::NoDescription)));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_harm(text in r#"[{}\[\]":,a-z0-9\\ ]{0,80}"#) {
            let _ = Message::parse(&text);
            let _ = Request::parse(&text);
        }
    }
}
