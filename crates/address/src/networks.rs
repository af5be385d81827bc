//! The networks that this process may connect to: all of them, unless it is an agent, whose owner names them (`weir agent --only`).
//!
//! It is one value a process, and asked where a socket is connected: what a server, a name server or a scenario of others leads to
//! (redirects, ICE candidates, TURN servers, other addresses of a name) meets it wherever it comes from.

use ipnet::IpNet;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;
use weir_setting::ONLY;

static ALLOWED: OnceLock<Networks> = OnceLock::new();

/// Some networks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Networks(Vec<IpNet>);

impl Networks {
    /// These.
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    /// Each of them, as it is written.
    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }

    /// Refuses an address that is in none of them.
    ///
    /// # Errors
    /// With what to do.
    pub fn check(&self, address: IpAddr) -> Result<(), Forbidden> {
        // A mapped address is the one that it stands for (RFC 4291, 2.5.5.2).
        let address = address.to_canonical();
        if self.0.iter().any(|network| network.contains(&address)) {
            return Ok(());
        }
        Err(Forbidden { address, only: self.names() })
    }

    /// From now on this process connects to addresses in these networks and to no others. What was said first holds.
    pub fn restrict(self) {
        let _ = ALLOWED.set(self);
    }
}

/// An address that an agent's owner does not let it connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forbidden {
    address: IpAddr,
    only: Vec<String>,
}

impl fmt::Display for Forbidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, only } = self;
        write!(
            f,
            "its owner lets it load {} only, and {address} is not there; start it with {ONLY}",
            only.join(", ")
        )
    }
}

impl std::error::Error for Forbidden {}

impl From<Forbidden> for io::Error {
    fn from(forbidden: Forbidden) -> Self {
        Self::new(io::ErrorKind::PermissionDenied, forbidden)
    }
}

/// Whether this process may connect there.
///
/// # Errors
/// It may not.
pub fn check(address: IpAddr) -> Result<(), Forbidden> {
    ALLOWED.get().map_or(Ok(()), |networks| networks.check(address))
}

/// Whether there are networks that this process may not connect to.
pub fn is_restricted() -> bool {
    ALLOWED.get().is_some()
}

/// Of the addresses of a name those that this process may connect to.
///
/// # Errors
/// There are some, and it may connect to none of them.
pub fn permitted(addresses: impl IntoIterator<Item = SocketAddr>) -> Result<Vec<SocketAddr>, Forbidden> {
    let (mut allowed, mut last) = (Vec::new(), None);
    for address in addresses {
        match check(address.ip()) {
            Ok(()) => allowed.push(address),
            Err(forbidden) => last = Some(forbidden),
        }
    }
    last.filter(|_| allowed.is_empty()).map_or(Ok(allowed), Err)
}
