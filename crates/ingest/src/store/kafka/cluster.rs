//! A Kafka cluster as a URL names it: brokers that know the others, and a topic.

use crate::error::ClusterError;
use std::fmt;
use std::str::FromStr;

/// The port of a broker that is named without one.
const PORT: u16 = 9092;

/// Characters of a topic's name, at most (`Topic.MAX_NAME_LENGTH`), less what that of its dead letters has more.
const LONGEST_TOPIC: usize = 249 - "_dead".len();

/// `kafka://host:9092,other:9092/topic`: brokers to begin with, one of which is enough, and a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
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
}

/// Whether a topic may be called so (`Topic.validate`).
fn is_topic(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !matches!(name, "." | "..") && name.len() <= LONGEST_TOPIC && name.bytes().all(is_allowed)
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
        let rest = text.strip_prefix("kafka://").ok_or(ClusterError::Unknown)?;
        let (hosts, topic) = rest.split_once('/').unwrap_or((rest, ""));
        if rest.contains('@') || rest.contains('?') {
            return Err(ClusterError::Login);
        }
        let brokers = hosts.split(',').map(broker).collect::<Option<Vec<_>>>();
        let brokers = brokers.ok_or(ClusterError::Unknown)?;
        if !is_topic(topic) {
            return Err(ClusterError::Topic);
        }
        Ok(Self { brokers, topic: (!topic.is_empty()).then(|| topic.to_owned()) })
    }
}

impl fmt::Display for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("kafka://")?;
        for (position, (host, port)) in self.brokers.iter().enumerate() {
            let comma = if position > 0 { "," } else { "" };
            let (open, close) = if host.contains(':') { ("[", "]") } else { ("", "") };
            write!(f, "{comma}{open}{host}{close}:{port}")?;
        }
        self.topic.as_ref().map_or(Ok(()), |topic| write!(f, "/{topic}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_brokers_and_a_topic() {
        for (text, shown) in [
            ("kafka://h/t", "kafka://h:9092/t"),
            ("kafka://h:1,[::1]:2,[fe80::1]/a.b_c-D", "kafka://h:1,[::1]:2,[fe80::1]:9092/a.b_c-D"),
            ("kafka://h", "kafka://h:9092"),
        ] {
            assert_eq!(text.parse::<Cluster>().unwrap().to_string(), shown);
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
            ("kafka://me:secret@h/t", ClusterError::Login),
        ] {
            assert_eq!(text.parse::<Cluster>().unwrap_err(), error, "{text}");
        }
    }
}
