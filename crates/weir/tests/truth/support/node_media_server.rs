//! node-media-server of npm, on free loopback ports.

use super::{free_port, npm};
use std::net::TcpStream;
use std::process::Stdio;
use weir_testing::{KilledOnDrop, soon};

/// A running server, ended with the test.
pub(crate) struct NodeMediaServer {
    _process: KilledOnDrop,
    rtmp: u16,
    http: u16,
}

impl NodeMediaServer {
    pub(crate) fn start() -> Self {
        let (rtmp, http) = (free_port(), free_port());
        let mut command = npm::node("node-media-server", "server.js");
        command.args([rtmp, http].map(|port| port.to_string()));
        let process = KilledOnDrop::start(command.stdin(Stdio::piped()).stdout(Stdio::null()));
        soon("node-media-server listens", || {
            [rtmp, http].iter().all(|port| TcpStream::connect(("127.0.0.1", *port)).is_ok())
        });
        Self { _process: process, rtmp, http }
    }

    /// Where to publish, and where to play it.
    pub(crate) fn urls(&self, stream: &str) -> [String; 2] {
        [
            format!("rtmp://127.0.0.1:{}/live/{stream}", self.rtmp),
            format!("http+flv://127.0.0.1:{}/live/{stream}.flv", self.http),
        ]
    }
}
