//! Established connections of a target.

use std::net::TcpStream;

use weir_observe::{Sampler, Watch};
use weir_testing::soon;

use crate::puppet::Puppet;

const LATER: u64 = 100_000_000_000;

#[test]
fn connections_are_counted_exactly_by_pid_name_and_port() {
    let mut puppet = Puppet::start();
    let [port, other] = ["127.0.0.1", "::1"].map(|address| puppet.listen(address));
    let watches = [Watch::Pid(puppet.pid()), Watch::Name(puppet.name().into()), Watch::Port(port)];
    let mut sampler = Sampler::new(watches).unwrap();
    let counts = |sampler: &mut Sampler, now_ns| {
        let counts = sampler.sample(now_ns).targets.into_iter().map(|it| it.connections.unwrap().established);
        counts.collect::<Vec<_>>()
    };
    assert_eq!(counts(&mut sampler, 0), [0, 0, 0]);
    // Each time of this clock, costly readings are due again; the kernel tells a link's other end later than its own.
    let mut times = (1..).map(|round| round * LATER);
    let mut until = |expected: [u64; 3]| {
        soon("each is counted", || counts(&mut sampler, times.next().unwrap()) == expected);
    };

    let mut four: Vec<_> = (0..120).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
    let _six: Vec<_> = (0..5).map(|_| TcpStream::connect(("::1", other)).unwrap()).collect();
    until([125, 125, 120]);
    four.truncate(20);
    until([25, 25, 20]);
}

#[test]
fn a_port_that_is_opened_later_is_found() {
    let mut puppet = Puppet::start();
    let mut sampler = puppet.sampler();
    let target = sampler.sample(0).targets.remove(0);
    assert_eq!((target.ports, target.connections), (vec![], None));
    let port = puppet.listen("127.0.0.1");
    let _stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut times = (1..).map(|round| round * LATER);
    soon("its connection is counted", || {
        let target = sampler.sample(times.next().unwrap()).targets.remove(0);
        assert_eq!(target.ports, [port]);
        target.connections.unwrap().established == 1
    });
}

#[test]
fn the_ports_of_another_network_namespace_are_seen() {
    let mut puppet = Puppet::start_by(&["unshare", "--net"]);
    let port = puppet.listen("0.0.0.0");
    let target = puppet.sampler().sample(0).targets.remove(0);
    assert_eq!(target.ports, [port]);
    assert_eq!(target.connections.unwrap().established, 0);
}
