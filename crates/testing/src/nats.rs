//! A NATS server that is not weir's.

use crate::free_port;
use crate::process::{KilledOnDrop, program, soon};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

/// nats-server on a free port of 127.0.0.1, ended with the test.
pub struct NatsServer {
    port: u16,
    arguments: Vec<String>,
    process: KilledOnDrop,
}

impl NatsServer {
    /// One that lets everybody in.
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// One with more arguments.
    pub fn with(arguments: &[&str]) -> Self {
        let port = free_port();
        let arguments: Vec<_> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let process = Self::process(port, &arguments);
        Self { port, arguments, process }
    }

    fn process(port: u16, arguments: &[String]) -> KilledOnDrop {
        let mut command = program("nats-server", "nats-server");
        command.args(["-a", "127.0.0.1", "-p", &port.to_string()]).args(arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let process = KilledOnDrop::start(&mut command);
        soon("nats-server listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        process
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends it as a crash would.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again.
    pub fn go_on(&mut self) {
        self.process = Self::process(self.port, &self.arguments);
    }
}

/// A connection that says what it likes, by the protocol of NATS's clients, a line and the bytes; and how many
/// subjects it has asked for.
pub struct RawClient(TcpStream, u32);

impl NatsServer {
    /// A client that sends no name.
    pub fn client(&self) -> RawClient {
        let mut link = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        // After a failed test no more messages come.
        link.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        link.write_all(b"CONNECT {\"verbose\":false,\"pedantic\":false}\r\n").unwrap();
        RawClient(link, 0)
    }
}

impl RawClient {
    /// Publishes these bytes.
    pub fn publish(&mut self, subject: &str, bytes: &[u8]) {
        write!(self.0, "PUB {subject} {}\r\n", bytes.len()).unwrap();
        self.0.write_all(bytes).unwrap();
        self.0.write_all(b"\r\n").unwrap();
    }

    /// Asks for the messages of a subject.
    pub fn subscribe(&mut self, subject: &str) {
        self.1 += 1;
        write!(self.0, "SUB {subject} {}\r\n", self.1).unwrap();
    }

    /// The next message, once one comes; `None` when the connection ends, or nothing comes for 20 s.
    pub fn message(&mut self) -> Option<Vec<u8>> {
        loop {
            let mut line = Vec::new();
            while !line.ends_with(b"\r\n") {
                let mut byte = [0];
                self.0.read_exact(&mut byte).ok()?;
                line.push(byte[0]);
            }
            let line = String::from_utf8(line).unwrap();
            if line.starts_with("PING") {
                self.0.write_all(b"PONG\r\n").ok()?;
            }
            if line.starts_with("MSG ") {
                let length: usize = line.split_whitespace().next_back()?.parse().unwrap();
                let mut bytes = vec![0; length + 2];
                self.0.read_exact(&mut bytes).ok()?;
                bytes.truncate(length);
                return Some(bytes);
            }
        }
    }

    /// Waits until the server has taken all.
    pub fn flush(&mut self) {
        self.0.write_all(b"PING\r\n").unwrap();
        let mut heard = Vec::new();
        while !heard.ends_with(b"PONG\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            heard.push(byte[0]);
        }
    }
}
