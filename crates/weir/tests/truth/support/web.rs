//! nginx as a web server, in clear and over TLS, on free loopback ports.

use super::free_port;
use rustix::process::{Pid, Signal, kill_process};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use weir_testing::{KilledOnDrop, program, soon};

/// A running nginx that serves the files of [`Self::root`]; what is asked for below `/to-tls/` is sent on to TLS.
pub(crate) struct WebServer {
    process: KilledOnDrop,
    plain: u16,
    secure: u16,
    directory: TempDir,
}

impl WebServer {
    pub(crate) fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (plain, secure) = (free_port(), free_port());
        let path = directory.path().display();
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        std::fs::create_dir(directory.path().join("root")).unwrap();
        std::fs::write(directory.path().join("chain.pem"), made.cert.pem()).unwrap();
        std::fs::write(directory.path().join("key.pem"), made.signing_key.serialize_pem()).unwrap();
        let configuration = format!(
            "daemon off; worker_processes 1; pid {path}/pid; error_log {path}/error.log notice;
             events {{ worker_connections 256; }}
             http {{ access_log off; client_body_temp_path {path}/body; proxy_temp_path {path}/proxy;
                 fastcgi_temp_path {path}/fastcgi; uwsgi_temp_path {path}/uwsgi; scgi_temp_path {path}/scgi;
                 ssl_certificate {path}/chain.pem; ssl_certificate_key {path}/key.pem; root {path}/root;
                 server {{ listen 127.0.0.1:{plain}; listen 127.0.0.1:{secure} ssl;
                     location ~ ^/to-tls(/.*) {{ return 302 https://127.0.0.1:{secure}$1; }} }} }}"
        );
        let file = directory.path().join("nginx.conf");
        std::fs::write(&file, configuration).unwrap();
        // nginx's workers are another user if it is started by root.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(directory.path(), open).unwrap();
        let mut command = program("/usr/sbin/nginx", "nginx");
        command.arg("-c").arg(&file).arg("-e").arg(directory.path().join("start.log"));
        let process = KilledOnDrop::start(&mut command);
        soon("nginx listens", || {
            [plain, secure].iter().all(|port| TcpStream::connect(("127.0.0.1", *port)).is_ok())
        });
        Self { process, plain, secure, directory }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.directory.path().join("root")
    }

    pub(crate) fn certificate(&self) -> PathBuf {
        Path::join(self.directory.path(), "chain.pem")
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.plain)
    }

    pub(crate) fn secure_url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.secure)
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        // TERM lets the master end its workers; KILL would orphan them.
        let _ = kill_process(Pid::from_child(&self.process.0), Signal::TERM);
        let _ = self.process.0.wait();
    }
}
