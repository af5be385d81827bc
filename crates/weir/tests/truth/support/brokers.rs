//! Brokers of others that nobody tuned for weir, and clients of others.

use super::{free_port, go, npm};
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use weir_testing::{KilledOnDrop, program, soon};

/// A running broker on free loopback ports, ended with the test.
pub(crate) struct OtherBroker {
    _process: KilledOnDrop,
    tcp: u16,
    socket: u16,
}

impl OtherBroker {
    /// mochi, in Go.
    pub(crate) fn mochi() -> Self {
        let ports = [free_port(), free_port()];
        let mut command = Command::new(go::program("mochi"));
        Self::start(command.args(ports.map(|port| format!("127.0.0.1:{port}"))), ports)
    }

    /// aedes, in JavaScript.
    pub(crate) fn aedes() -> Self {
        let ports = [free_port(), free_port()];
        Self::start(npm::node("mqtt-js", "broker.js").args(ports.map(|port| port.to_string())), ports)
    }

    fn start(command: &mut Command, ports: [u16; 2]) -> Self {
        let process = KilledOnDrop::start(command.stdin(Stdio::piped()).stdout(Stdio::null()));
        soon("the broker listens", || {
            ports.iter().all(|port| TcpStream::connect(("127.0.0.1", *port)).is_ok())
        });
        let [tcp, socket] = ports;
        Self { _process: process, tcp, socket }
    }

    /// Topics on it, over TCP and in a WebSocket.
    pub(crate) fn urls(&self, topic: &str) -> [String; 2] {
        let (tcp, socket) = (self.tcp, self.socket);
        [format!("mqtt://127.0.0.1:{tcp}/{topic}"), format!("mqtt+ws://127.0.0.1:{socket}/{topic}")]
    }
}

/// What a client of MQTT.js hears of its own messages, this many of each QoS.
pub(crate) fn mqtt_js(url: &str, version: &str, count: usize) -> Vec<String> {
    heard(npm::node("mqtt-js", "client.js").args([url, version, &count.to_string()]))
}

/// What a client of paho hears of its own messages, this many of each QoS.
pub(crate) fn paho(address: SocketAddr, transport: &str, version: &str, count: usize) -> Vec<String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/truth/support/paho_client.py");
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    let mut command = program("/usr/bin/python3", "python3-paho-mqtt");
    heard(command.args([script, &host, &port, transport, version, &count.to_string()]))
}

/// A publisher of paho, which sends a number of messages of QoS 2 at a rate a second.
pub(crate) fn paho_publisher(address: SocketAddr, version: &str, count: usize, rate: usize) -> KilledOnDrop {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/truth/support/paho_publisher.py");
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    let mut command = program("/usr/bin/python3", "python3-paho-mqtt");
    KilledOnDrop::start(command.args([script, &host, &port, version, &count.to_string(), &rate.to_string()]))
}

/// A responder of paho to requests on a topic, once it is subscribed.
pub(crate) fn paho_responder(address: SocketAddr, topic: &str) -> KilledOnDrop {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/truth/support/paho_responder.py");
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    let mut command = program("/usr/bin/python3", "python3-paho-mqtt");
    let mut responder =
        KilledOnDrop::start(command.args([script, &host, &port, topic]).stdout(Stdio::piped()));
    let mut line = String::new();
    let read = responder.0.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
    assert!(matches!(read, Some(Ok(1..))), "it is subscribed: {read:?}");
    responder
}

fn heard(command: &mut Command) -> Vec<String> {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut lines: Vec<_> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}
