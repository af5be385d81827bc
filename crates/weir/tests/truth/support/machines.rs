//! Network namespaces on one bridge: machines of a test's own, which share nothing but the wire and the kernel.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU32, Ordering};
use weir_testing::program;

/// The address of the first machine, which has the bridge.
pub(crate) const FIRST: Ipv4Addr = Ipv4Addr::new(10, 232, 0, 1);
/// Where all of them are.
pub(crate) const NETWORK: &str = "10.232.0.0/24";

/// The machines; they go with the test.
pub(crate) struct Machines {
    names: Vec<String>,
}

impl Machines {
    /// The first one, and this many others.
    pub(crate) fn start(others: usize) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = |machine| format!("weir-{}-{number}m{machine}", std::process::id());
        let machines = Self { names: (0..=others).map(name).collect() };
        for name in &machines.names {
            ip(&["netns", "add", name]);
            ip(&["-n", name, "link", "set", "lo", "up"]);
        }
        let first = &machines.names[0];
        ip(&["-n", first, "link", "add", "bridge", "type", "bridge"]);
        ip(&["-n", first, "address", "add", &format!("{FIRST}/24"), "dev", "bridge"]);
        ip(&["-n", first, "link", "set", "bridge", "up"]);
        for (number, name) in machines.names.iter().enumerate().skip(1) {
            let port = format!("port{number}");
            ip(&["-n", first, "link", "add", &port, "type", "veth", "peer", "name", "wire", "netns", name]);
            ip(&["-n", first, "link", "set", &port, "master", "bridge", "up"]);
            let address = format!("{}/24", Ipv4Addr::from_bits(FIRST.to_bits() + number as u32));
            ip(&["-n", name, "address", "add", &address, "dev", "wire"]);
            ip(&["-n", name, "link", "set", "wire", "up"]);
        }
        machines
    }

    /// How many there are beside the first.
    pub(crate) fn others(&self) -> usize {
        self.names.len() - 1
    }

    /// What a thread on one of them makes of this; threads and processes that it starts are on that machine too.
    pub(crate) fn at<T: Send>(&self, machine: usize, work: impl FnOnce() -> T + Send) -> T {
        let namespace = File::open(format!("/run/netns/{}", self.names[machine])).unwrap();
        let there = || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        };
        std::thread::scope(|scope| scope.spawn(there).join()).unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Pulls the wire of one, or puts it back.
    pub(crate) fn set_wire(&self, machine: usize, is_up: bool) {
        let state = if is_up { "up" } else { "down" };
        ip(&["-n", &self.names[0], "link", "set", &format!("port{machine}"), state]);
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for name in &self.names {
            // Bridge and wires go with them.
            let _ = program("ip", "iproute2").args(["netns", "delete", name]).output();
        }
    }
}

fn ip(words: &[&str]) {
    let output = program("ip", "iproute2").args(words).output().unwrap();
    assert!(output.status.success(), "ip {words:?}: {}", String::from_utf8_lossy(&output.stderr));
}
