//! Where the clients of a workload go, whatever they speak there.

use crate::target::{Link, Scheme, Target, TargetError};
use crate::workload_error::WorkloadError;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use weir_address::networks;
use weir_shard::tls::{self, ClientConfig, ClientTls};
use weir_shard::{Endpoint, Transport};

/// Targets in the order of their URLs, with the way there and what to ask for. Client n goes to target n modulo
/// their number.
pub struct Endpoints<Request> {
    pub(crate) targets: Vec<Target>,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) requests: Vec<Arc<Request>>,
}

/// Finds the endpoints of targets. Resolves each name once, and makes TLS settings once.
pub struct EndpointFinder {
    schemes: &'static [Scheme],
    tls: ClientTls,
    addresses: HashMap<(String, u16), SocketAddr>,
    config: Option<Arc<ClientConfig>>,
}

impl EndpointFinder {
    /// The ways to targets of these schemes.
    pub fn new(schemes: &'static [Scheme], tls: &ClientTls) -> Self {
        Self { schemes, tls: tls.clone(), addresses: HashMap::new(), config: None }
    }

    /// The way to a target. Asks the resolver, so it may take a while.
    ///
    /// # Errors
    /// A name without an address, or TLS settings that cannot be made.
    pub fn find(&mut self, target: &Target) -> Result<Endpoint, WorkloadError> {
        let address = match self.addresses.get(&(target.host.clone(), target.port)) {
            Some(address) => *address,
            None => target.resolve()?,
        };
        self.find_at(target, address)
    }

    /// The way to a target that has this address.
    ///
    /// # Errors
    /// TLS settings that cannot be made, or an address that this process may not connect to.
    pub(crate) fn find_at(
        &mut self,
        target: &Target,
        address: SocketAddr,
    ) -> Result<Endpoint, WorkloadError> {
        networks::check(address.ip())?;
        self.addresses.insert((target.host.clone(), target.port), address);
        let transport = match self.link(target) {
            Link::Tls => {
                let config = match &self.config {
                    Some(config) => Arc::clone(config),
                    None => Arc::clone(self.config.insert(tls::client_config(&self.tls)?)),
                };
                Transport::Tls(config, target.server_name()?)
            }
            Link::Tcp => Transport::Tcp,
            Link::Udp => Transport::Udp,
        };
        Ok(Endpoint { transport, ..Endpoint::tcp(address) })
    }

    /// Whether [`Self::find`] would answer at once.
    pub(crate) fn knows(&self, target: &Target) -> bool {
        let place = (target.host.clone(), target.port);
        let named = self.addresses.contains_key(&place) || target.host.parse::<IpAddr>().is_ok();
        named && (self.config.is_some() || self.link(target) != Link::Tls)
    }

    fn link(&self, target: &Target) -> Link {
        let scheme = self.schemes.iter().find(|scheme| scheme.name == target.scheme);
        scheme.map_or(Link::Tcp, |scheme| scheme.link)
    }
}

impl<Request> Endpoints<Request> {
    /// Reads the URLs, finds the way to each, and makes a request for each.
    ///
    /// # Errors
    /// A URL that leads nowhere, or TLS settings that cannot be made.
    pub fn find(
        verb: &'static str,
        urls: &[String],
        endpoints: &mut EndpointFinder,
        request: impl Fn(Target) -> Result<Request, TargetError>,
    ) -> Result<Self, WorkloadError> {
        let targets = urls.iter().map(|url| Target::parse(url, verb, endpoints.schemes));
        Self::of(targets.collect::<Result<_, _>>()?, endpoints, request)
    }

    /// Finds the way to each target, and makes a request for each.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn of(
        targets: Vec<Target>,
        endpoints: &mut EndpointFinder,
        request: impl Fn(Target) -> Result<Request, TargetError>,
    ) -> Result<Self, WorkloadError> {
        let mut places = Self { targets, endpoints: Vec::new(), requests: Vec::new() };
        for target in &places.targets {
            places.requests.push(Arc::new(request(target.clone())?));
            places.endpoints.push(endpoints.find(target)?);
        }
        Ok(places)
    }
}
