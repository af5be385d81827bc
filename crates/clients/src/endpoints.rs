//! Where the clients of a workload go, whatever they speak there.

use crate::resolve::{self, Resolve, Resolver};
use crate::target::{Link, Scheme, Target, TargetError};
use crate::workload_error::WorkloadError;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use weir_address::networks;
use weir_shard::tls::{self, ClientConfig, ClientTls};
use weir_shard::{Endpoint, Sharing, Transport};

/// Targets in the order of their URLs, with the ways there and what to ask for. Client n goes to target n modulo
/// their number, and the clients of a target take its ways in turn.
pub struct Endpoints<Request> {
    pub(crate) targets: Vec<Target>,
    /// Of each target, one for each address that its clients go to; none is without.
    pub(crate) ways: Vec<Vec<Endpoint>>,
    pub(crate) requests: Vec<Arc<Request>>,
    /// What a person should know of the ways.
    pub(crate) warnings: Vec<String>,
}

/// Finds the endpoints of targets. Resolves each name once, and makes TLS settings once.
pub struct EndpointFinder {
    schemes: &'static [Scheme],
    tls: ClientTls,
    resolve: Resolve,
    resolver: Resolver,
    addresses: HashMap<(String, u16), Vec<SocketAddr>>,
    config: Option<Arc<ClientConfig>>,
    /// What links of TLS offer by ALPN.
    protocols: &'static [&'static [u8]],
    warnings: Vec<String>,
}

impl EndpointFinder {
    /// The ways to targets of these schemes.
    pub fn new(schemes: &'static [Scheme], tls: &ClientTls) -> Self {
        Self {
            schemes,
            tls: tls.clone(),
            resolve: Resolve::default(),
            resolver: resolve::system,
            addresses: HashMap::new(),
            config: None,
            protocols: &[],
            warnings: Vec::new(),
        }
    }

    /// The same, to these of a name's addresses.
    #[must_use]
    pub fn resolving(self, resolve: Resolve) -> Self {
        Self { resolve, ..self }
    }

    /// The same, on links that offer these protocols by ALPN if they are of TLS, the most wanted first.
    #[must_use]
    pub fn offering(self, protocols: &'static [&'static [u8]]) -> Self {
        Self { protocols, ..self }
    }

    /// The way to a target, the first of several. Asks the resolver, so it may take a while.
    ///
    /// # Errors
    /// A name without an address, or TLS settings that cannot be made.
    pub fn find(&mut self, target: &Target) -> Result<Endpoint, WorkloadError> {
        let first = self.addresses(target)?[0];
        self.find_at(target, first)
    }

    /// The ways to a target.
    ///
    /// # Errors
    /// As [`Self::find`].
    fn find_all(&mut self, target: &Target) -> Result<Vec<Endpoint>, WorkloadError> {
        self.addresses(target)?.into_iter().map(|address| self.find_at(target, address)).collect()
    }

    /// The addresses of a target, one at the least.
    fn addresses(&mut self, target: &Target) -> Result<Vec<SocketAddr>, WorkloadError> {
        let place = (target.host.clone(), target.port);
        if let Some(known) = self.addresses.get(&place) {
            return Ok(known.clone());
        }
        let found = self.resolve.addresses(target, self.resolver)?;
        self.warnings.extend(found.warning(&target.host));
        self.addresses.insert(place, found.chosen.clone());
        Ok(found.chosen)
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
        self.addresses.entry((target.host.clone(), target.port)).or_insert_with(|| vec![address]);
        let transport = match target.scheme.link {
            Link::Tls => {
                let config = match &self.config {
                    Some(config) => Arc::clone(config),
                    None => {
                        let made = tls::client_config_offering(&self.tls, self.protocols)?;
                        Arc::clone(self.config.insert(made))
                    }
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
        named && (self.config.is_some() || target.scheme.link != Link::Tls)
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
        let mut found = Self { targets, ways: Vec::new(), requests: Vec::new(), warnings: Vec::new() };
        for target in &found.targets {
            found.requests.push(Arc::new(request(target.clone())?));
            found.ways.push(endpoints.find_all(target)?);
        }
        found.warnings = std::mem::take(&mut endpoints.warnings);
        Ok(found)
    }
}

impl<Request> Endpoints<Request> {
    /// Those to which a request says so are addresses of this machine, which others send datagrams to.
    #[must_use]
    pub fn bound_where(mut self, is_bound: impl Fn(&Request) -> bool) -> Self {
        for (ways, request) in self.ways.iter_mut().zip(&self.requests) {
            if is_bound(request) {
                ways.truncate(1);
                ways.iter_mut().for_each(|way| way.transport = Transport::BoundUdp);
            }
        }
        self
    }

    /// The same, whose clients share sockets of UDP, except for those that are bound.
    #[must_use]
    pub fn sharing(mut self, sharing: Sharing) -> Self {
        let sharing = Arc::new(sharing);
        for way in self.ways.iter_mut().flatten() {
            if let Transport::Udp = way.transport {
                way.transport = Transport::SharedUdp(Arc::clone(&sharing));
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_session::ClientSession;
    use crate::client_state::ClientState;
    use crate::workload::{NewClient, Workload};
    use std::io;
    use std::net::TcpListener;
    use weir_metrics::Schema;

    const SCHEMES: &[Scheme] = &[Scheme::tcp("rtmp", 1935)];

    struct Nothing(ClientState);

    impl ClientSession for Nothing {
        fn state(&self) -> &ClientState {
            &self.0
        }

        fn state_mut(&mut self) -> &mut ClientState {
            &mut self.0
        }
    }

    fn two(_: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(vec![SocketAddr::from(([127, 0, 0, 2], port)), SocketAddr::from(([127, 0, 0, 3], port))])
    }

    #[test]
    fn the_clients_of_each_target_take_the_addresses_of_its_name_in_turn_and_each_is_a_server() {
        let second = TcpListener::bind("127.0.0.2:0").unwrap();
        let port = second.local_addr().unwrap().port();
        let Ok(_third) = TcpListener::bind(("127.0.0.3", port)) else { return };
        let mut finder =
            EndpointFinder { resolver: two, ..EndpointFinder::new(SCHEMES, &ClientTls::default()) };
        let urls = [format!("rtmp://edges.test:{port}/live/a"), format!("rtmp://127.0.0.9:{port}/live/b")];
        let endpoints = Endpoints::find("play", &urls, &mut finder, |_| Ok(())).unwrap();
        let workload = Workload::new(Schema::new(&[]), endpoints, |_: NewClient<'_, ()>, _| -> Nothing {
            unreachable!()
        });
        let ways: Vec<_> = (0..6)
            .map(|client| (workload.endpoint(client).address.ip().to_string(), workload.server(client)))
            .collect();
        let ways: Vec<_> = ways.iter().map(|(address, server)| (&**address, *server)).collect();
        let other = ("127.0.0.9", 2);
        let (a, b) = (("127.0.0.2", 0), ("127.0.0.3", 1));
        assert_eq!(ways, [a, other, b, other, a, other]);
        assert_eq!(
            workload.servers(),
            [
                format!("edges.test:{port} (127.0.0.2)"),
                format!("edges.test:{port} (127.0.0.3)"),
                format!("127.0.0.9:{port}")
            ]
        );
        assert_eq!(workload.endpoints().count(), 3);
    }
}
