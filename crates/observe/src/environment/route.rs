//! Which network interface leads to an address, by the kernel's main routing table.

use std::fs;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};

/// The interface on the way to an address of this or another machine; none where no route is known. Routes that a policy chooses by
/// more than the destination (`ip rule`) are not read.
pub(super) fn interface_towards(address: IpAddr) -> Option<String> {
    if is_here(address) {
        return Some("lo".to_owned());
    }
    match address {
        IpAddr::V4(address) => longest(
            fs::read_to_string("/proc/net/route").ok()?.lines().skip(1).filter_map(route_v4),
            u32::from(address).into(),
            32,
        ),
        IpAddr::V6(address) => longest(
            fs::read_to_string("/proc/net/ipv6_route").ok()?.lines().filter_map(route_v6),
            address.into(),
            128,
        ),
    }
}

/// Whether the kernel answers for an address itself: what is sent there comes from there. A UDP socket that is connected sends nothing.
fn is_here(address: IpAddr) -> bool {
    let any: SocketAddr = match address {
        IpAddr::V4(_) => ([0; 4], 0).into(),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let local = UdpSocket::bind(any).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    local.is_ok_and(|local| local.ip() == address) || address.is_loopback()
}

/// A network, the length of its prefix, and the interface that leads there.
type Route<'a> = (u128, u32, &'a str);

/// The interface of the network with the longest prefix that has the address.
fn longest<'a>(routes: impl Iterator<Item = Route<'a>>, address: u128, bits: u32) -> Option<String> {
    let has = |(network, length, _): &Route<'_>| {
        let beyond = bits - (*length).min(bits);
        (address ^ network).checked_shr(beyond).unwrap_or(0) == 0
    };
    // Of equals the first is the one with the lowest metric.
    let best = routes.filter(has).reduce(|best, other| if other.1 > best.1 { other } else { best });
    best.map(|(_, _, name)| name.to_owned())
}

/// A line of `/proc/net/route`: interface, destination, gateway, flags, …, mask; addresses are in hexadecimal as they lie in memory.
fn route_v4(line: &str) -> Option<Route<'_>> {
    let mut fields = line.split_ascii_whitespace();
    let name = fields.next()?;
    let mut number = |skip: usize| u32::from_str_radix(fields.nth(skip)?, 16).ok();
    let (destination, mask) = (number(0)?, number(5)?);
    // What a machine of the other byte order prints is what lies in its memory as well.
    Some((u32::from_be_bytes(destination.to_ne_bytes()).into(), mask.count_ones(), name))
}

/// A line of `/proc/net/ipv6_route`: destination, length of its prefix, …, interface last.
fn route_v6(line: &str) -> Option<Route<'_>> {
    let mut fields = line.split_ascii_whitespace();
    let network = u128::from_str_radix(fields.next()?, 16).ok()?;
    let length = u32::from_str_radix(fields.next()?, 16).ok()?;
    Some((network, length, fields.last()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const V4: &str = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n\
        eth0 00000000 0102A8C0 0003 0 0 100 00000000 0 0 0\n\
        eth0 0002A8C0 00000000 0001 0 0 100 00FFFFFF 0 0 0\n\
        docker0 000011AC 00000000 0001 0 0 0 0000FFFF 0 0 0\n";

    #[test]
    fn the_longest_prefix_names_the_interface() {
        let towards = |address: Ipv4Addr| {
            longest(V4.lines().skip(1).filter_map(route_v4), u32::from(address).into(), 32)
        };
        assert_eq!(towards(Ipv4Addr::new(192, 168, 2, 7)).as_deref(), Some("eth0"));
        assert_eq!(towards(Ipv4Addr::new(172, 17, 0, 3)).as_deref(), Some("docker0"));
        assert_eq!(towards(Ipv4Addr::new(8, 8, 8, 8)).as_deref(), Some("eth0"));
        assert_eq!(longest([].into_iter(), 1, 32), None);
    }

    #[test]
    fn the_same_of_ipv6() {
        let text = "20010db8000000000000000000000000 20 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth1\n\
            00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003     eth0\n";
        let towards = |address: &str| {
            longest(text.lines().filter_map(route_v6), address.parse::<Ipv6Addr>().unwrap().into(), 128)
        };
        assert_eq!(towards("2001:db8::7").as_deref(), Some("eth1"));
        assert_eq!(towards("2001:db9::7").as_deref(), Some("eth0"));
    }

    #[test]
    fn what_is_sent_to_this_machine_goes_over_loopback() {
        assert_eq!(interface_towards(Ipv4Addr::LOCALHOST.into()).as_deref(), Some("lo"));
        assert_eq!(interface_towards(Ipv6Addr::LOCALHOST.into()).as_deref(), Some("lo"));
    }
}
