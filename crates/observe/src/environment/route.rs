//! Which network interface leads to an address, by the kernel's main routing table.

use std::cmp::Reverse;
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

/// `RTF_REJECT` of `include/uapi/linux/route.h`: what is sent there is refused.
const REJECT: u32 = 0x0200;

/// A route of the main table.
struct Route<'a> {
    network: u128,
    prefix_length: u32,
    metric: u32,
    /// Whether what is sent there is refused.
    refuses: bool,
    interface: &'a str,
}

/// The interface of the network with the longest prefix that has the address; of equals that with the lowest metric. None if that one
/// refuses: nothing is sent then.
fn longest<'a>(routes: impl Iterator<Item = Route<'a>>, address: u128, bits: u32) -> Option<String> {
    let has = |route: &Route<'_>| {
        let beyond = bits - route.prefix_length.min(bits);
        (address ^ route.network).checked_shr(beyond).unwrap_or(0) == 0
    };
    let rank = |route: &Route<'_>| (Reverse(route.prefix_length), route.metric);
    let best = routes.filter(has).min_by_key(rank).filter(|route| !route.refuses);
    best.map(|route| route.interface.to_owned())
}

/// A line of `/proc/net/route`: interface, destination, gateway, flags, reference count, use, metric, mask; addresses are in
/// hexadecimal as they lie in memory, the metric is decimal.
fn route_v4(line: &str) -> Option<Route<'_>> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let &[interface, destination, _, flags, _, _, metric, mask, ..] = &fields[..] else { return None };
    let number = |text| u32::from_str_radix(text, 16).ok();
    // What a machine of the other byte order prints is what lies in its memory as well.
    let network = u32::from_be_bytes(number(destination)?.to_ne_bytes()).into();
    let prefix_length = number(mask)?.count_ones();
    let refuses = number(flags)? & REJECT != 0;
    Some(Route { network, prefix_length, metric: metric.parse().ok()?, refuses, interface })
}

/// A line of `/proc/net/ipv6_route`: destination, length of its prefix, source and its prefix, next hop, metric, reference count, use,
/// flags, interface. None of a route that is for some sources only.
fn route_v6(line: &str) -> Option<Route<'_>> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let &[destination, length, _, source_length, _, metric, _, _, flags, interface] = &fields[..] else {
        return None;
    };
    let number = |text| u32::from_str_radix(text, 16).ok();
    let route = Route {
        network: u128::from_str_radix(destination, 16).ok()?,
        prefix_length: number(length)?,
        metric: number(metric)?,
        refuses: number(flags)? & REJECT != 0,
        interface,
    };
    (number(source_length)? == 0).then_some(route)
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

    // In the kernel's form (fib_route_seq_show): a cable and a wireless card in one network, a tunnel, and a network that is refused.
    const TWO_CARDS: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
        wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n\
        eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
        wlan0\t0001A8C0\t00000000\t0001\t0\t0\t600\t00FFFFFF\t0\t0\t0\n\
        eth0\t0001A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n\
        *\t0000000A\t00000000\t0200\t0\t0\t0\t000000FF\t0\t0\t0\n\
        wg0\t0000140A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n";

    #[test]
    fn of_two_ways_the_one_with_the_lower_metric_is_taken_and_none_that_refuses() {
        let towards = |address: [u8; 4]| {
            let address = u32::from(Ipv4Addr::from(address)).into();
            longest(TWO_CARDS.lines().skip(1).filter_map(route_v4), address, 32)
        };
        assert_eq!(towards([192, 168, 1, 9]).as_deref(), Some("eth0"));
        assert_eq!(towards([203, 0, 113, 1]).as_deref(), Some("eth0"));
        assert_eq!(towards([10, 20, 0, 1]).as_deref(), Some("wg0"));
        // `ip route add unreachable 10.0.0.0/8`: no card carries what is sent there.
        assert_eq!(towards([10, 9, 0, 1]), None);
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
        // What a kernel without a way to IPv6 has: a route through `lo` that refuses.
        let none = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo\n";
        assert_eq!(longest(none.lines().filter_map(route_v6), 1, 128), None);
    }

    // Recorded on this project's machine (Linux 6.18), /proc/net/route with its trailing spaces and /proc/net/ipv6_route, shortened.
    const OWN_V4: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT             \n\
        eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0                \n\
        eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0                \n";
    const OWN_V6: &str = "fd000000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0\n\
        00000000000000000000000000000000 00 00000000000000000000000000000000 00 fd000000000000000000000000000001 00000400 00000003 00000000 00000003     eth0\n\
        00000000000000000000000000000001 80 00000000000000000000000000000000 00 00000000000000000000000000000000 00000000 00000004 00000000 80200001       lo\n";

    #[test]
    fn the_files_of_a_kernel_are_read() {
        let towards = |address: u32| longest(OWN_V4.lines().skip(1).filter_map(route_v4), address.into(), 32);
        assert_eq!(towards(u32::from(Ipv4Addr::new(198, 51, 100, 1))).as_deref(), Some("eth0"));
        let towards = |address: u128| longest(OWN_V6.lines().filter_map(route_v6), address, 128);
        assert_eq!([1, 2].map(towards), [Some("lo".to_owned()), Some("eth0".to_owned())]);
    }

    #[test]
    fn what_is_sent_to_this_machine_goes_over_loopback() {
        assert_eq!(interface_towards(Ipv4Addr::LOCALHOST.into()).as_deref(), Some("lo"));
        assert_eq!(interface_towards(Ipv6Addr::LOCALHOST.into()).as_deref(), Some("lo"));
    }
}
