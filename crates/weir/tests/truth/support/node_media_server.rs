//! node-media-server of npm, on free loopback ports.

use super::free_port;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use weir_testing::{Kept, program, soon};

/// A running server, ended with the test.
pub(crate) struct NodeMediaServer {
    _process: Kept,
    rtmp: u16,
    http: u16,
}

impl NodeMediaServer {
    pub(crate) fn start() -> Self {
        let (rtmp, http) = (free_port(), free_port());
        let mut command = program("node", "nodejs");
        command.current_dir(installed()).arg("server.js").args([rtmp, http].map(|port| port.to_string()));
        let process = Kept::start(command.stdin(Stdio::piped()).stdout(Stdio::null()));
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

/// Where it is installed, once.
fn installed() -> &'static Path {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/truth/node-media-server");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("node-media-server");
        std::fs::create_dir_all(&folder).unwrap();
        let names = ["package.json", "package-lock.json", "server.js"];
        let is_same =
            |name: &&str| std::fs::read(folder.join(name)).ok() == std::fs::read(sources.join(name)).ok();
        let whole = folder.join("installed");
        if names.iter().all(is_same) && whole.exists() {
            return folder;
        }
        for name in names {
            std::fs::copy(sources.join(name), folder.join(name)).unwrap();
        }
        let mut command = program("npm", "nodejs npm");
        let output = command.args(["ci", "--no-audit", "--no-fund"]).current_dir(&folder).output().unwrap();
        assert!(output.status.success(), "npm: {}", String::from_utf8_lossy(&output.stderr));
        std::fs::write(whole, "").unwrap();
        folder
    })
}
