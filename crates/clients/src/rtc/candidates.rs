//! Candidates of the server that have a name in place of an address (RFC 8839 section 5.1): each is looked up on a thread of
//! its own.

use crate::redirect::{Redirect, Redirects};
use crate::target::Target;
use std::net::IpAddr;
use std::time::Duration;
use weir_metrics::Moment;
use weir_shard::Endpoint;

use super::relay::SCHEMES;

/// How often a name that is being resolved is asked for.
const AGAIN: Duration = Duration::from_millis(20);
/// Names of one description that are looked up: each takes a thread.
const MOST: usize = 4;
/// Where a candidate has its address, of words behind `candidate:` and with the foundation as the first.
const ADDRESS: usize = 4;
/// Names under it are those of multicast DNS (RFC 6762 section 3), by which browsers hide addresses from all but their own
/// network.
const MULTICAST: &str = ".local";

/// Candidates with names.
#[derive(Default)]
pub(super) struct NamedCandidates {
    /// Those that are being resolved, as their words.
    sought: Vec<(Target, Vec<String>)>,
    /// What there is to say of those that lead nowhere.
    lost: Vec<String>,
    due: Option<Moment>,
}

impl NamedCandidates {
    /// Takes a candidate if it has a name; whether it has one.
    pub(super) fn take(&mut self, now: Moment, candidate: &str) -> bool {
        let words: Vec<String> = candidate.split_whitespace().map(str::to_owned).collect();
        let (Some(name), Some(port)) = (words.get(ADDRESS), words.get(ADDRESS + 1)) else { return false };
        // Names have no colon (RFC 8839 section 5.1): an address with a zone, for example, is not one.
        if name.contains(':') || name.parse::<IpAddr>().is_ok() {
            return false;
        }
        if name.trim_end_matches('.').to_ascii_lowercase().ends_with(MULTICAST) {
            self.lost.push(format!("{name} (multicast DNS)"));
        } else if self.sought.len() == MOST {
            self.lost.push(format!("{name} (not looked up: over {MOST})"));
        } else {
            match Target::parse(&format!("turn://{name}:{port}"), "play", SCHEMES) {
                Ok(target) => {
                    self.sought.push((target, words));
                    self.due = Some(now);
                }
                Err(_) => self.lost.push(format!("{name} (no name of a host)")),
            }
        }
        // A description has at most this many of which anything is said.
        self.lost.truncate(MOST);
        true
    }

    /// Whether nothing is known to come of them any more.
    pub(super) fn are_resolved(&self) -> bool {
        self.sought.is_empty()
    }

    /// When to call [`Self::resolve`].
    pub(super) fn poll_timeout(&self) -> Option<Moment> {
        self.due
    }

    /// The candidates whose addresses are known by now.
    pub(super) fn resolve(&mut self, now: Moment, redirects: &Redirects) -> Vec<String> {
        let mut found = Vec::new();
        let lost = &mut self.lost;
        self.sought.retain_mut(|(target, words)| match redirects.find(target) {
            Redirect::Sought => true,
            Redirect::Found(Endpoint { address, .. }) => {
                words[ADDRESS] = address.ip().to_string();
                found.push(words.join(" "));
                false
            }
            Redirect::None(_) => {
                lost.push(format!("{} (not found)", words[ADDRESS]));
                false
            }
        });
        self.due = (!self.sought.is_empty()).then(|| now + AGAIN);
        found
    }

    /// What there is to say of names that lead nowhere, or nowhere yet.
    pub(super) fn words(&self) -> Option<String> {
        let sought = self.sought.iter().map(|(_, words)| format!("{} (not found in time)", words[ADDRESS]));
        let all: Vec<String> = self.lost.iter().cloned().chain(sought).collect();
        (!all.is_empty()).then(|| format!("without an address: {}", all.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_addresses_and_those_of_multicast_dns_are_not_looked_up() {
        let mut names = NamedCandidates::default();
        let mut take = |address: &str| {
            names
                .take(Moment::from_nanos(1), &format!("candidate:1 1 udp 2130706431 {address} 3478 typ host"))
        };
        for address in ["127.0.0.1", "::1", "fe80::1%eth0", "fe80::x"] {
            assert!(!take(address), "{address}");
        }
        for name in ["0f612a90-ee2e-4785-b9b7-72f8434cba27.local", "edge.example", "EDGE.LOCAL."] {
            assert!(take(name), "{name}");
        }
        assert_eq!(names.sought.len(), 1);
        let words = names.words().unwrap();
        assert!(words.contains("cba27.local (multicast DNS)"), "{words}");
        assert!(words.contains("edge.example (not found in time)"), "{words}");
        assert!(!names.take(Moment::from_nanos(1), "candidate:1 1 udp"));
    }

    #[test]
    fn what_a_server_names_is_bounded() {
        let mut names = NamedCandidates::default();
        for at in 0..1_000 {
            names.take(Moment::from_nanos(1), &format!("1 1 udp 1 h{at}.example 9 typ host"));
            names.take(Moment::from_nanos(1), &format!("1 1 udp 1 h{at}.local 9 typ host"));
        }
        assert_eq!((names.sought.len(), names.lost.len()), (MOST, MOST));
    }
}
