//! Passwords that a login sends as they are, or nearly so: they leave this machine by TLS, or if the URL asks for it in words. One rule for
//! all stores.

use std::net::{IpAddr, ToSocketAddrs};

/// What a URL ends with that asks for a link without TLS, whatever that shows: libpq's word ("SSL Support", `sslmode`).
pub(super) const IN_WORDS: &str = "sslmode=disable";

/// Whether a login that sends the password as it is, or nearly so, would show it to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Exposure {
    /// It is encrypted, does not leave this machine, or the URL asks for it in words.
    #[default]
    Safe,
    /// Anyone on the way could learn the password.
    Exposed,
}

impl Exposure {
    /// Of a link that is encrypted or not, that the URL asks for in words or does not, to this machine or another.
    pub(super) fn of(is_encrypted: bool, is_asked_for: bool, is_here: bool) -> Self {
        if is_encrypted || is_asked_for || is_here { Self::Safe } else { Self::Exposed }
    }
}

/// Why a password is not sent, which would go over the wire `sent`; `tls` is what encrypts the link.
pub(super) fn refusal(sent: &str, tls: &str) -> String {
    format!(
        "the password would go over the wire {sent}, and anyone on the way could read it; {tls}, or end the URL with ?{IN_WORDS} if the way \
         is safe"
    )
}

/// Whether an address is this machine's own loop.
pub(super) fn is_here(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Whether all addresses of a host are this machine's own loop. One without an address is not: whoever connects says so.
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
