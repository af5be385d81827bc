//! A Kafka cluster as a URL names it: brokers that know the others, and a topic.

use crate::error::ClusterError;
use crate::store::clear_text::IN_WORDS;
use percent_encoding::percent_decode_str;
use std::fmt;
use std::str::FromStr;
use weir_http::HttpTrust;
use weir_shard::tls::Trust;

/// The port of a broker that is named without one.
const PORT: u16 = 9092;

/// Characters of a topic's name, at most (`Topic.MAX_NAME_LENGTH`), less what that of its dead letters has more.
const LONGEST_TOPIC: usize = 249 - "_dead".len();

/// `kafka://user@host:9092,other:9092/topic`: brokers to begin with, one of which is enough, and a topic; `kafkas://` by TLS.
/// Shown without user and password; a remedy may name the user.
#[derive(Clone)]
pub struct Cluster {
    is_encrypted: bool,
    /// Whether a password may go over the wire as it is.
    allows_clear_text: bool,
    user: Option<String>,
    password: Option<String>,
    trust: HttpTrust,
    /// Hosts and ports; an address of IPv6 without its brackets.
    pub(super) brokers: Vec<(String, u16)>,
    topic: Option<String>,
}

impl Cluster {
    /// The topic, if the URL names one.
    pub fn topic(&self) -> Option<&str> {
        self.topic.as_deref()
    }

    /// Names or addresses of the brokers to begin with.
    pub(crate) fn hosts(&self) -> Vec<String> {
        self.brokers.iter().map(|(host, _)| host.clone()).collect()
    }

    /// The same cluster with another topic.
    #[must_use]
    pub fn with_topic(mut self, topic: &str) -> Self {
        self.topic = Some(topic.to_owned());
        self
    }

    /// The password, for a URL that names a user and none.
    ///
    /// # Errors
    /// There is a zero byte in it.
    pub fn set_password(&mut self, password: &str) -> Result<(), ClusterError> {
        self.password = Some(credential(password)?);
        Ok(())
    }

    /// Whether the URL names a password.
    pub fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// Whether the URL names a user, who logs in.
    pub fn has_user(&self) -> bool {
        self.user.is_some()
    }

    /// The certificates that brokers of `kafkas://` may show.
    pub fn set_trust(&mut self, trust: HttpTrust) {
        self.trust = trust;
    }

    /// Whether the URL asks in words for what anyone on the way can read.
    pub(super) fn allows_clear_text(&self) -> bool {
        self.allows_clear_text
    }

    pub(super) fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    pub(super) fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// The certificates that brokers may show; `None` without TLS.
    pub(super) fn trust(&self) -> Option<Trust> {
        self.is_encrypted.then(|| match &self.trust {
            HttpTrust::System => Trust::System,
            HttpTrust::File(path) => Trust::File(path.clone()),
            HttpTrust::Anyone => Trust::Anyone,
        })
    }
}

/// Whether a topic may be called so (`Topic.validate`).
fn is_topic(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !matches!(name, "." | "..") && name.len() <= LONGEST_TOPIC && name.bytes().all(is_allowed)
}

/// User or password, of a URL or not: a login parts them by a zero byte (RFC 4616 section 2).
fn credential(text: &str) -> Result<String, ClusterError> {
    if text.contains('\0') { Err(ClusterError::Credentials) } else { Ok(text.to_owned()) }
}

fn broker(text: &str) -> Option<(String, u16)> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(text) => text.split_once(']')?,
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let port = match rest.strip_prefix(':') {
        Some(port) => port.parse().ok()?,
        None if rest.is_empty() => PORT,
        None => return None,
    };
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

impl FromStr for Cluster {
    type Err = ClusterError;

    fn from_str(text: &str) -> Result<Self, ClusterError> {
        let (scheme, rest) = text.split_once("://").ok_or(ClusterError::Unknown)?;
        let is_encrypted = match scheme {
            "kafka" => false,
            "kafkas" => true,
            _ => return Err(ClusterError::Unknown),
        };
        // A password may hold what ends other parts of a URL, and a place has no @.
        let (credentials, place) = rest.rsplit_once('@').unwrap_or(("", rest));
        let (place, options) = place.split_once('?').unwrap_or((place, ""));
        if !matches!(options, "" | IN_WORDS) || is_encrypted && !options.is_empty() {
            return Err(ClusterError::Options);
        }
        let (user, password) = match credentials.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (credentials, None),
        };
        if user.is_empty() && !credentials.is_empty() {
            return Err(ClusterError::User);
        }
        let written = |text: &str| {
            let text = percent_decode_str(text).decode_utf8().map_err(|_| ClusterError::Credentials)?;
            credential(&text)
        };
        let (hosts, topic) = place.split_once('/').unwrap_or((place, ""));
        let brokers = hosts.split(',').map(broker).collect::<Option<Vec<_>>>();
        let brokers = brokers.ok_or(ClusterError::Unknown)?;
        if !is_topic(topic) {
            return Err(ClusterError::Topic);
        }
        Ok(Self {
            is_encrypted,
            allows_clear_text: !options.is_empty(),
            user: (!user.is_empty()).then(|| written(user)).transpose()?,
            password: password.map(written).transpose()?,
            trust: HttpTrust::System,
            brokers,
            topic: (!topic.is_empty()).then(|| topic.to_owned()),
        })
    }
}

impl fmt::Display for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_encrypted { "kafkas://" } else { "kafka://" })?;
        for (position, (host, port)) in self.brokers.iter().enumerate() {
            let comma = if position > 0 { "," } else { "" };
            let (open, close) = if host.contains(':') { ("[", "]") } else { ("", "") };
            write!(f, "{comma}{open}{host}{close}:{port}")?;
        }
        self.topic.as_ref().map_or(Ok(()), |topic| write!(f, "/{topic}"))
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cluster({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Destination;

    #[test]
    fn a_url_names_brokers_and_a_topic() {
        for (text, shown) in [
            ("kafka://h/t", "kafka://h:9092/t"),
            ("kafka://h:1,[::1]:2,[fe80::1]/a.b_c-D", "kafka://h:1,[::1]:2,[fe80::1]:9092/a.b_c-D"),
            ("kafka://h", "kafka://h:9092"),
            ("kafkas://me:secret@h:9093,i:9093/t", "kafkas://h:9093,i:9093/t"),
            ("kafka://me:secret@h/t?sslmode=disable", "kafka://h:9092/t"),
        ] {
            let cluster: Cluster = text.parse().unwrap();
            assert_eq!(cluster.to_string(), shown);
            assert_eq!(format!("{cluster:?}"), format!("Cluster({shown})"));
        }
        for (text, error) in [
            ("kafka:h/t", ClusterError::Unknown),
            ("kafka:///t", ClusterError::Unknown),
            ("kafka://h:port/t", ClusterError::Unknown),
            ("kafka://h,/t", ClusterError::Unknown),
            ("kafka://[::1/t", ClusterError::Unknown),
            ("kafka://h/a/b", ClusterError::Topic),
            ("kafka://h/..", ClusterError::Topic),
            ("kafka://h/ä", ClusterError::Topic),
            ("kafkaz://h/t", ClusterError::Unknown),
            ("kafka://me:secret@h/t?acks=1", ClusterError::Options),
            ("kafkas://me:secret@h/t?sslmode=disable", ClusterError::Options),
            ("kafka://:secret@h/t", ClusterError::User),
            ("kafka://me:s%ff@h/t", ClusterError::Credentials),
            ("kafka://m%00e:secret@h/t", ClusterError::Credentials),
        ] {
            assert_eq!(text.parse::<Cluster>().unwrap_err(), error, "{text}");
        }
    }

    #[test]
    fn a_user_and_a_password_may_hold_any_character() {
        for (text, user, password) in [
            ("kafka://h/t", None, None),
            ("kafka://me@h/t", Some("me"), None),
            ("kafkas://me:s3/c?r@t:,@h/t", Some("me"), Some("s3/c?r@t:,")),
            ("kafkas://a%3Ab:100%25%40@h/t", Some("a:b"), Some("100%@")),
        ] {
            let cluster: Cluster = text.parse().unwrap();
            assert_eq!((cluster.user(), cluster.password()), (user, password), "{text}");
            // What is sent to agents asks for that.
            assert_eq!(text.parse::<Destination>().unwrap().has_password(), password.is_some());
        }
    }
}
