//! Passwords, tokens and fields that leave this machine as they are: the scheme of the URL is the user's word for it, and one note says what
//! that means.

use crate::machine::is_here;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Once;
use weir_clients::Workload;
use weir_shard::{Endpoint, Transport};

/// The note is printed once.
static NOTED: Once = Once::new();

/// Notes that clients send a secret over a link without TLS, if they do.
pub fn note_of_workload(workload: &Workload) {
    if !workload.sends_secret {
        return;
    }
    let endpoints = (0..).zip(workload.targets()).map(|(client, _)| workload.endpoint(client));
    if let Some(address) = endpoints.into_iter().find_map(exposed) {
        note_exposed(&address.to_string());
    }
}

/// The same of the connection of an ingester.
pub fn note_of_endpoint(endpoint: &Endpoint) {
    if let Some(address) = exposed(endpoint) {
        note_exposed(&address.to_string());
    }
}

/// The same of a server that is asked over HTTP with a user. One whose name has no address is asked nothing.
pub fn note_of_host(host: &str) {
    let addresses = (host, 0).to_socket_addrs().into_iter().flatten();
    if addresses.into_iter().any(|address| !is_here(&address.ip())) {
        note_exposed(host);
    }
}

/// Where a link leads over which everything can be read.
fn exposed(endpoint: &Endpoint) -> Option<SocketAddr> {
    let is_plain = matches!(
        endpoint.transport,
        Transport::Tcp | Transport::Udp | Transport::BoundUdp | Transport::SharedUdp(_)
    );
    (is_plain && !is_here(&endpoint.address.ip())).then_some(endpoint.address)
}

/// Notes, once, that a secret goes to a server by a scheme without TLS.
fn note_exposed(server: &str) {
    NOTED.call_once(|| {
        weir_files::warn(&format!(
            "a password, token or field goes to {server} without TLS, and anyone on the way can read it; use the scheme with TLS \
             (mqtts, mqtt+wss, https) unless the way is safe"
        ));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_link_without_tls_that_leaves_the_machine_shows_what_is_sent() {
        for (address, is_exposed) in
            [("127.0.0.1:1883", false), ("[::1]:1883", false), ("192.0.2.1:1883", true)]
        {
            let endpoint = Endpoint::tcp(address.parse().unwrap());
            assert_eq!(exposed(&endpoint).is_some(), is_exposed, "{address}");
        }
    }
}
