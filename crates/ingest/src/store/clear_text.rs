//! Passwords that a login sends as they are, or nearly so: they leave this machine by TLS, or if the URL asks for it in words. One rule for
//! all stores.

use std::net::{IpAddr, ToSocketAddrs};

/// What a URL ends with that asks for a link without TLS, whatever that shows: libpq's word ("SSL Support", `sslmode`).
pub(super) const IN_WORDS: &str = "sslmode=disable";

/// Whether an address is this machine's own loop.
pub(super) fn is_here(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Whether all addresses of a host are this machine's own loop. One without an address is none: whoever connects says so.
pub(super) fn is_host_here(host: &str) -> bool {
    (host, 0).to_socket_addrs().is_ok_and(|addresses| {
        let mut addresses = addresses.peekable();
        addresses.peek().is_some() && addresses.all(|address| is_here(address.ip()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_loop_of_this_machine_needs_no_tls() {
        for (address, is_loop) in [
            ("127.0.0.1", true),
            ("127.8.0.1", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("10.0.0.1", false),
            ("0.0.0.0", false),
            ("::ffff:10.0.0.1", false),
            ("fe80::1", false),
        ] {
            assert_eq!(is_here(address.parse().unwrap()), is_loop, "{address}");
            assert_eq!(is_host_here(address), is_loop, "{address}");
        }
    }
}
