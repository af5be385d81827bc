//! What is known of a workload before it runs.

use crate::scenario::role::Role;
use serde::{Deserialize, Serialize};
use weir_metrics::BitRate;

/// What is known of a workload before it runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorkloadFacts {
    /// Its name.
    pub name: String,
    /// What its clients do.
    pub role: Role,
    /// Its protocol, which says the figures.
    pub protocol: String,
    /// Where to, without secrets.
    pub targets: Vec<String>,
    /// What each client's source sends, where the scenario says so.
    pub expect: Option<BitRate>,
    /// Time between two frames of what it publishes.
    pub frame_time_seconds: Option<f64>,
    /// How many messages a second each of its publishers is to send, if they send messages.
    #[serde(default)]
    pub messages_per_second: Option<f64>,
    /// How long a viewer that plays may get no media.
    #[serde(default)]
    pub timeout_seconds: f64,
    /// Whether it is there only to disturb the others.
    #[serde(default)]
    pub background: bool,
    /// The servers that its clients go to, if there are several.
    #[serde(default)]
    pub servers: Vec<String>,
    /// What was known of it before it began that a person should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The host of a URL, without a port.
pub(crate) fn host(url: &str) -> Option<&str> {
    let (_, place) = url.split_once("://")?;
    let authority = place.split(['/', '?']).next()?;
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    Some(match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|it| it.is_ascii_digit()) => host,
        _ => authority,
    })
}

#[cfg(test)]
mod tests {
    use super::host;

    #[test]
    fn a_host_is_the_same_at_each_of_its_ports() {
        for url in ["rtmp://h/live/a", "whep+http://h:1985/rtc?app=live", "srt://u:p@h:9000", "http://h?a"] {
            assert_eq!(host(url), Some("h"), "{url}");
        }
        assert_eq!(
            [host("rtsp://[::1]:554/a"), host("rtmp://[::1]/a"), host("a")],
            [Some("[::1]"), Some("[::1]"), None]
        );
    }
}
