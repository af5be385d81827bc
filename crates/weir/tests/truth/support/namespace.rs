//! Two network namespaces and a wire between them that carries so much and no more: two machines of a test's own.

use std::ffi::OsStr;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use weir_testing::program;

/// The addresses of the two ends.
pub(crate) const ENDS: [&str; 2] = ["10.231.0.1", "10.231.0.2"];

/// The wire; it goes with the test.
pub(crate) struct Wire {
    names: [String; 2],
}

impl Wire {
    /// `tc tbf` limits both directions to this many megabits a second.
    pub(crate) fn limited(mbps: u32) -> Self {
        Self::shaped(mbps, "50ms")
    }

    /// One before which a minute of what it carries may wait, so that senders fill their own sockets.
    pub(crate) fn queued(mbps: u32) -> Self {
        Self::shaped(mbps, "60s")
    }

    fn shaped(mbps: u32, queue: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let wire = Self { names: ["a", "b"].map(|end| format!("weir-{}-{number}{end}", std::process::id())) };
        for name in &wire.names {
            run(program("ip", "iproute2").args(["netns", "add", name]));
        }
        let [a, b] = &wire.names;
        // An interface's name has 15 characters at most; each is in a namespace where no other can be.
        run(program("ip", "iproute2")
            .args(["-n", a, "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", b]));
        let rate = format!("{mbps}mbit");
        for (name, address) in wire.names.iter().zip(ENDS) {
            let address = format!("{address}/24");
            for words in [
                &["address", "add", &address, "dev", "wire"][..],
                &["link", "set", "wire", "up"],
                &["link", "set", "lo", "up"],
            ] {
                run(program("ip", "iproute2").args(["-n", name]).args(words));
            }
            let shape = [
                "qdisc", "add", "dev", "wire", "root", "tbf", "rate", &rate, "burst", "32kb", "latency",
                queue,
            ];
            run(program("tc", "iproute2").args(["-n", name]).args(shape));
        }
        wire
    }

    /// A command that runs at one of the ends.
    pub(crate) fn at(&self, end: usize, command: &Command) -> Command {
        let mut inside = program("ip", "iproute2");
        inside.args(["netns", "exec", &self.names[end]]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        inside
    }

    /// Bytes that have come to an end, frames of Ethernet and all.
    pub(crate) fn received(&self, end: usize) -> u64 {
        let mut command = Command::new("cat");
        command.arg("/sys/class/net/wire/statistics/rx_bytes");
        let output = self.at(end, &command).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        for name in &self.names {
            // The wire goes with its ends.
            let _ = program("ip", "iproute2").args(["netns", "delete", name]).output();
        }
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?} {:?}: {words}", command.get_program(), arguments(command));
}

fn arguments(command: &Command) -> Vec<&OsStr> {
    command.get_args().collect()
}
