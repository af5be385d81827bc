//! Where a TURN server is, as a URI says it (RFC 7065).

use std::fmt;
use std::str::FromStr;

/// The port if the URL has none (RFC 7065 section 3.1).
const PORT: u16 = 3478;
/// The same over TLS.
const SECURE_PORT: u16 = 5349;

/// What a server is reached over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Carrier {
    /// UDP, the default.
    Udp,
    /// TCP.
    Tcp,
    /// TLS over TCP.
    Tls,
}

/// A server's place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TurnServer {
    /// Name or address; `None` if it is left out or means any address, so that the server is where the URI came from.
    pub host: Option<String>,
    /// The port.
    pub port: u16,
    /// What it is reached over.
    pub carrier: Carrier,
}

/// A text that is no URI of a TURN server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no URI of a TURN server")]
pub struct ParseTurnServerError;

impl FromStr for TurnServer {
    type Err = ParseTurnServerError;

    fn from_str(text: &str) -> Result<Self, ParseTurnServerError> {
        let (scheme, rest) = text.trim().split_once(':').ok_or(ParseTurnServerError)?;
        let secure = match scheme.to_ascii_lowercase().as_str() {
            "turn" => false,
            "turns" => true,
            _ => return Err(ParseTurnServerError),
        };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let transport = query.split('&').find_map(|pair| pair.strip_prefix("transport="));
        let carrier = match transport.map(str::to_ascii_lowercase).as_deref() {
            None if secure => Carrier::Tls,
            None | Some("udp") => Carrier::Udp,
            Some("tcp") if secure => Carrier::Tls,
            Some("tcp") => Carrier::Tcp,
            Some(_) => return Err(ParseTurnServerError),
        };
        // Some write it as a URL.
        let place = place.trim_start_matches("//").trim_end_matches('/');
        let (host, port) = match place.strip_prefix('[') {
            Some(inner) => {
                let (host, rest) = inner.split_once(']').ok_or(ParseTurnServerError)?;
                (host, rest.strip_prefix(':').unwrap_or_default())
            }
            None => place.split_once(':').unwrap_or((place, "")),
        };
        let usual = if secure { SECURE_PORT } else { PORT };
        let port = if port.is_empty() { usual } else { port.parse().map_err(|_| ParseTurnServerError)? };
        if port == 0 || host.contains(|c: char| c.is_whitespace() || c.is_control() || "/@#".contains(c)) {
            return Err(ParseTurnServerError);
        }
        let host = Some(host).filter(|host| !matches!(*host, "" | "0.0.0.0" | "::" | "*")).map(str::to_owned);
        Ok(Self { host, port, carrier })
    }
}

impl fmt::Display for TurnServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Some(host) if host.contains(':') => write!(formatter, "[{host}]:{}", self.port),
            Some(host) => write!(formatter, "{host}:{}", self.port),
            None => write!(formatter, ":{}", self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_uri_are_told_apart() {
        for (text, host, port, carrier) in [
            ("turn:127.0.0.1:3478?transport=tcp", Some("127.0.0.1"), 3478, Carrier::Tcp),
            ("TURN:host?transport=TCP", Some("host"), 3478, Carrier::Tcp),
            ("turn:[::1]:7?transport=tcp", Some("::1"), 7, Carrier::Tcp),
            ("turn:[::1]", Some("::1"), 3478, Carrier::Udp),
            ("turn:host:9?transport=udp", Some("host"), 9, Carrier::Udp),
            ("turns:host", Some("host"), 5349, Carrier::Tls),
            ("turn:0.0.0.0:3478?transport=tcp", None, 3478, Carrier::Tcp),
            ("turn:*:3478?transport=tcp", None, 3478, Carrier::Tcp),
            ("turn::3479?transport=tcp", None, 3479, Carrier::Tcp),
            ("turn:?transport=tcp", None, 3478, Carrier::Tcp),
            ("turn://host:1/?transport=tcp", Some("host"), 1, Carrier::Tcp),
        ] {
            let host = host.map(str::to_owned);
            assert_eq!(text.parse(), Ok(TurnServer { host, port, carrier }), "{text}");
        }
        for text in [
            "stun:host",
            "turn",
            "turn:host:x",
            "turn:host:0",
            "turn:host?transport=sctp",
            "turn:[::1",
            "turn:a b",
        ] {
            assert_eq!(text.parse::<TurnServer>(), Err(ParseTurnServerError), "{text}");
        }
    }
}
