//! Which of the addresses of a server's name its clients go to.

use crate::target::{Target, TargetError};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::str::FromStr;
use std::time::Duration;
use weir_address::networks;

/// How long an address of several may take to take a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Addresses of a name that are looked at: a response of DNS over UDP has no more than 29 of IPv4 (RFC 1035 section 4.2.1: 512 bytes), and
/// each is a row of the report.
const MOST: usize = 32;

/// Gives the addresses of a name, as the system does.
pub(crate) type Resolver = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

/// Which of the addresses of a name clients go to. An address in the place of a name is itself, whichever of these is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resolve {
    /// All, in turn, as browsers of different people do.
    #[default]
    All,
    /// The first that takes a connection.
    First,
    /// All of IPv4, in turn.
    V4,
    /// All of IPv6, in turn.
    V6,
}

/// A text that is no choice of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no choice of addresses; write all, first, 4 or 6")]
pub struct UnknownResolve(String);

/// The addresses of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Addresses {
    /// Those that clients go to, in turn.
    pub(crate) chosen: Vec<SocketAddr>,
    /// Those that take no connection, with the system's words.
    pub(crate) left_out: Vec<(IpAddr, String)>,
}

impl Resolve {
    const WORDS: [(Self, &'static str); 4] =
        [(Self::All, "all"), (Self::First, "first"), (Self::V4, "4"), (Self::V6, "6")];

    fn takes(self, address: &SocketAddr) -> bool {
        match self {
            Self::All | Self::First => true,
            Self::V4 => address.is_ipv4(),
            Self::V6 => address.is_ipv6(),
        }
    }

    /// The addresses of a target. Of several, those that take no connection now are left out, as long as one does: `localhost` is
    /// an IPv6 address as well on most systems, where few servers listen. If none does, clients go to the first, and say why they fail.
    ///
    /// # Errors
    /// The name has no such address.
    pub(crate) fn addresses(self, target: &Target, resolver: Resolver) -> Result<Addresses, TargetError> {
        let error = |words: String| TargetError::NotResolved {
            url: target.to_string(),
            host: target.host.clone(),
            words,
        };
        if let Ok(address) = target.host.parse::<IpAddr>() {
            let chosen = vec![SocketAddr::new(address, target.port)];
            return Ok(Addresses { chosen, left_out: Vec::new() });
        }
        let found = resolver(&target.host, target.port).map_err(|failure| error(failure.to_string()))?;
        let found = networks::permitted(found).map_err(|forbidden| error(forbidden.to_string()))?;
        let mut addresses: Vec<SocketAddr> = Vec::new();
        for address in found.iter().filter(|address| self.takes(address)) {
            if !addresses.contains(address) && addresses.len() < MOST {
                addresses.push(*address);
            }
        }
        let Some(first) = addresses.first().copied() else {
            let words = match (self, found.is_empty()) {
                (Self::V4, false) => "it has none of IPv4",
                (Self::V6, false) => "it has none of IPv6",
                _ => "the resolver gave none",
            };
            return Err(error(words.to_owned()));
        };
        if addresses.len() == 1 {
            return Ok(Addresses { chosen: addresses, left_out: Vec::new() });
        }
        let refusals = refusals(&addresses);
        let (mut chosen, mut left_out) = (Vec::new(), Vec::new());
        for (address, refusal) in addresses.into_iter().zip(refusals) {
            match refusal {
                None => chosen.push(address),
                Some(words) => left_out.push((address.ip(), words)),
            }
        }
        if chosen.is_empty() {
            return Ok(Addresses { chosen: vec![first], left_out: Vec::new() });
        }
        if self == Self::First {
            chosen.truncate(1);
            left_out.clear();
        }
        Ok(Addresses { chosen, left_out })
    }
}

/// Why each of these takes no connection, if it does not. All are asked at once: one that is silent takes a second.
fn refusals(addresses: &[SocketAddr]) -> Vec<Option<String>> {
    let ask = |address: SocketAddr| {
        TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).err().map(|it| it.to_string())
    };
    std::thread::scope(|scope| {
        let asked: Vec<_> = addresses.iter().map(|address| scope.spawn(move || ask(*address))).collect();
        asked.into_iter().map(|thread| thread.join().unwrap_or(None)).collect()
    })
}

/// The system's resolver.
pub(crate) fn system(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok((host, port).to_socket_addrs()?.collect())
}

impl Addresses {
    /// What a person should know of those that are left out, `localhost: 1 of 2 addresses takes no connection and is left out: ::1 (…)`.
    pub(crate) fn warning(&self, host: &str) -> Option<String> {
        let (first, all) = (self.left_out.first()?, self.left_out.len() + self.chosen.len());
        let (takes, are) = if self.left_out.len() == 1 { ("takes", "is") } else { ("take", "are") };
        let each: Vec<_> = self.left_out.iter().map(|(address, _)| address.to_string()).collect();
        Some(format!(
            "{host}: {} of its {all} addresses {takes} no connection and {are} left out: {} ({})",
            self.left_out.len(),
            each.join(", "),
            first.1
        ))
    }
}

impl fmt::Display for Resolve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = Self::WORDS.iter().find(|(choice, _)| choice == self);
        f.write_str(word.map_or("all", |(_, word)| word))
    }
}

impl FromStr for Resolve {
    type Err = UnknownResolve;

    fn from_str(text: &str) -> Result<Self, UnknownResolve> {
        let known = Self::WORDS.iter().find(|(_, word)| *word == text);
        known.map(|(choice, _)| *choice).ok_or_else(|| UnknownResolve(text.chars().take(40).collect()))
    }
}

impl Serialize for Resolve {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Resolve {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ResolveVisitor)
    }
}

/// In YAML `4` is a number.
struct ResolveVisitor;

impl Visitor<'_> for ResolveVisitor {
    type Value = Resolve;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("all, first, 4 or 6")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Resolve, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Resolve, E> {
        self.visit_str(&number.to_string())
    }
}

impl schemars::JsonSchema for Resolve {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Resolve".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "enum": ["all", "first", "4", "6", 4, 6] })
    }
}

impl Target {
    /// The address of the server; of a name with several the first that takes a connection.
    ///
    /// # Errors
    /// The name has no address.
    pub fn resolve(&self) -> Result<SocketAddr, TargetError> {
        let mut found = Resolve::First.addresses(self, system)?;
        Ok(found.chosen.remove(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Scheme;
    use std::net::TcpListener;

    fn target(url: &str) -> Target {
        Target::parse(url, "play", &[Scheme::tcp("rtmp", 1935)]).unwrap()
    }

    /// A name with four addresses of this machine, the first of them twice, and one of IPv6.
    fn edges(_: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let hosts = ["127.0.0.4", "127.0.0.2", "127.0.0.4", "127.0.0.3", "::1"];
        Ok(hosts.iter().map(|host| SocketAddr::new(host.parse().unwrap(), port)).collect())
    }

    #[test]
    fn clients_go_to_all_addresses_that_take_connections_and_the_others_are_named() {
        let second = TcpListener::bind("127.0.0.2:0").unwrap();
        let port = second.local_addr().unwrap().port();
        let Ok(third) = TcpListener::bind(("127.0.0.3", port)) else { return };
        let name = target(&format!("rtmp://edges.test:{port}/live/a"));
        let hosts = |resolve: Resolve| {
            let found = resolve.addresses(&name, edges).unwrap();
            let chosen = found.chosen.iter().map(|address| address.ip().to_string()).collect::<Vec<_>>();
            (chosen.join(" "), found.warning("edges.test").unwrap_or_default())
        };
        let (chosen, warning) = hosts(Resolve::All);
        assert_eq!(chosen, "127.0.0.2 127.0.0.3");
        let begin = "edges.test: 2 of its 4 addresses take no connection and are left out: 127.0.0.4, ::1 (";
        assert!(warning.starts_with(begin), "{warning}");
        assert_eq!(hosts(Resolve::First), ("127.0.0.2".to_owned(), String::new()));
        assert_eq!(hosts(Resolve::V4).0, "127.0.0.2 127.0.0.3");
        // One alone is not asked, and of several that all refuse it is the first.
        assert_eq!(hosts(Resolve::V6), ("::1".to_owned(), String::new()));
        drop((second, third));
        assert_eq!(hosts(Resolve::All), ("127.0.0.4".to_owned(), String::new()));
    }

    #[test]
    fn a_name_without_such_an_address_is_an_error_and_an_address_is_itself() {
        let four: Resolver = |_, port| Ok(vec![SocketAddr::from(([127, 0, 0, 1], port))]);
        let said = Resolve::V6.addresses(&target("rtmp://four.test/a/b"), four).unwrap_err().to_string();
        assert!(said.contains("four.test has no address (it has none of IPv6)"), "{said}");
        let literal = Resolve::V6.addresses(&target("rtmp://127.0.0.9/a/b"), four).unwrap();
        assert_eq!(literal.chosen, ["127.0.0.9:1935".parse().unwrap()]);
    }

    #[test]
    fn a_choice_is_a_word_or_a_number() {
        for (choice, word) in Resolve::WORDS {
            assert_eq!((choice.to_string().as_str(), word.parse()), (word, Ok(choice)));
            assert_eq!(serde_json::from_value::<Resolve>(word.into()).unwrap(), choice);
        }
        assert_eq!(serde_json::from_value::<Resolve>(6.into()).unwrap(), Resolve::V6);
        let said = "5".parse::<Resolve>().unwrap_err().to_string();
        assert_eq!(said, "'5' is no choice of addresses; write all, first, 4 or 6");
    }
}
