//! nginx with libnginx-mod-rtmp, on free loopback ports.

use crate::free_port;
use crate::process::{KilledOnDrop, program, soon};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A running nginx, ended with the test.
pub struct Nginx {
    process: KilledOnDrop,
    /// Where it plays and publishes.
    address: SocketAddr,
    http: u16,
    https: u16,
    /// Over TLS, where a connection carries twenty requests.
    brief_https: u16,
    directory: TempDir,
}

impl Nginx {
    /// One with room for 256 connections.
    pub fn start() -> Self {
        Self::with_connections(256)
    }

    /// A server whose worker has this many connections, its own included.
    pub fn with_connections(connections: u32) -> Self {
        Self::at(Ipv4Addr::LOCALHOST, connections)
    }

    /// The same, at an address of this machine.
    pub fn at(host: Ipv4Addr, connections: u32) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (port, http, https, brief_https) = (free_port(), free_port(), free_port(), free_port());
        let path = directory.path().display();
        let module = "/usr/lib/nginx/modules/ngx_rtmp_module.so";
        let there = Path::new(module).exists();
        assert!(there, "{module} is missing; apt-get install nginx libnginx-mod-rtmp");
        let over_tls = |port: u16, rule: &str| {
            format!(
                "server {{ listen 127.0.0.1:{port} ssl http2; access_log {path}/versions.log versions; {rule}
                    ssl_certificate {path}/chain.pem; ssl_certificate_key {path}/key.pem;
                    location /hls {{ root {path}; add_header Cache-Control no-cache; }}
                    location ~ ^/to/(\\d+)(/.*)$ {{ proxy_pass http://127.0.0.1:$1$2$is_args$args; proxy_buffering off;
                        proxy_http_version 1.1; proxy_set_header Connection ''; proxy_read_timeout 30s; }} }}"
            )
        };
        let secure = [over_tls(https, ""), over_tls(brief_https, "keepalive_requests 20;")].concat();
        let configuration = format!(
            "load_module {module};
             daemon off; worker_processes 1; pid {path}/pid; error_log {path}/error.log notice;
             events {{ worker_connections {connections}; }}
             http {{ access_log off; log_format members '$remote_port $cookie_member $status';
                 log_format versions '$remote_port $server_protocol $status';
                 map $cookie_member $joining {{ '' 'member=$request_id; Path=/members; HttpOnly'; }}
                 client_body_temp_path {path}/body; proxy_temp_path {path}/proxy;
                 fastcgi_temp_path {path}/fastcgi; uwsgi_temp_path {path}/uwsgi; scgi_temp_path {path}/scgi;
                 server {{ listen 127.0.0.1:{http}; location / {{ rtmp_stat all; }}
                    location /hls {{ root {path}; add_header Cache-Control no-cache; }}
                    location ~ ^/members/(.*m3u8)$ {{ alias {path}/hls/$1; add_header Set-Cookie $joining; }}
                    location ~ ^/members/(.*ts)$ {{ alias {path}/hls/$1; access_log {path}/members.log members;
                        if ($cookie_member = '') {{ return 403; }} }} }}
                 {secure} }}
             rtmp {{ access_log off; server {{ listen {host}:{port}; chunk_size 4096;
                 application live {{ live on; }}
                 application hls {{ live on; hls on; hls_path {path}/hls; hls_fragment 1s; hls_playlist_length 8s;
                    hls_cleanup off; }} }} }}"
        );
        // It would remove folders of others below its own while they are empty: nothing there is cleaned up. Its worker, which may be
        // another user's, writes there.
        let hls = directory.path().join("hls");
        std::fs::create_dir(&hls).unwrap();
        for path in [directory.path(), &hls] {
            std::fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
        }
        self_signed(directory.path());
        let file = directory.path().join("nginx.conf");
        std::fs::write(&file, configuration).unwrap();
        let mut command = program("/usr/sbin/nginx", "nginx libnginx-mod-rtmp");
        command.arg("-c").arg(&file).arg("-e").arg(directory.path().join("start.log"));
        let process = KilledOnDrop::start(&mut command);
        soon("nginx listens", || {
            let local = [http, https, brief_https].map(|port| (Ipv4Addr::LOCALHOST, port));
            local.iter().chain([&(host, port)]).all(|place| TcpStream::connect(place).is_ok())
        });
        Self { process, address: (host, port).into(), http, https, brief_https, directory }
    }

    /// Where a stream is published and played by RTMP.
    pub fn url(&self, stream: &str) -> String {
        format!("rtmp://{}/live/{stream}", self.address)
    }

    /// Where it has its playlists and segments, and serves whatever lies there.
    pub fn hls(&self) -> PathBuf {
        self.directory.path().join("hls")
    }

    /// The playlist of a stream, or one below [`Self::hls`].
    pub fn playlist(&self, stream: &str) -> String {
        format!("http://127.0.0.1:{}/hls/{stream}.m3u8", self.http)
    }

    /// The same over TLS, by HTTP/2 or HTTP/1.1, whichever the client asks for.
    pub fn secure_playlist(&self, stream: &str) -> String {
        format!("https://127.0.0.1:{}/hls/{stream}.m3u8", self.https)
    }

    /// A path of another server of this machine, over TLS.
    pub fn secure_way_to(&self, server: SocketAddr, path: &str) -> String {
        format!("https://127.0.0.1:{}/to/{}{path}", self.https, server.port())
    }

    /// The same, where nginx ends each connection after twenty requests (`keepalive_requests`).
    pub fn briefly(&self, url: &str) -> String {
        url.replace(&format!(":{}/", self.https), &format!(":{}/", self.brief_https))
    }

    /// The certificate that it shows there.
    pub fn certificate(&self) -> String {
        self.directory.path().join("chain.pem").display().to_string()
    }

    /// Of each request over TLS since the last call: the client's port, the version of HTTP, and the status of the answer.
    pub fn take_versions(&self) -> Vec<[String; 3]> {
        let log = self.directory.path().join("versions.log");
        let text = std::fs::read_to_string(&log).unwrap();
        std::fs::write(&log, "").unwrap();
        text.lines().map(three_words).collect()
    }

    /// The same playlist, for those who send back the cookie that comes with it: others are refused its segments.
    pub fn playlist_of_members(&self, stream: &str) -> String {
        format!("http://127.0.0.1:{}/members/{stream}.m3u8", self.http)
    }

    /// Of each segment that one of these was sent: port and cookie of who asked for it, and the status of the answer.
    pub fn members(&self) -> Vec<[String; 3]> {
        let log = std::fs::read_to_string(self.directory.path().join("members.log")).unwrap();
        log.lines().map(three_words).collect()
    }

    /// How many segments a playlist names.
    pub fn segments(&self, stream: &str) -> usize {
        let playlist = std::fs::read_to_string(self.hls().join(format!("{stream}.m3u8")));
        playlist.map_or(0, |text| text.matches("#EXTINF").count())
    }

    /// The process that started its worker.
    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }

    /// What it has written into its log of errors.
    pub fn errors(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("error.log")).unwrap()
    }

    /// Its own statistics, as XML.
    pub fn statistics(&self) -> String {
        let mut link = TcpStream::connect(("127.0.0.1", self.http)).unwrap();
        link.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut page = String::new();
        link.read_to_string(&mut page).unwrap();
        page
    }
}

fn three_words(line: &str) -> [String; 3] {
    line.split(' ').map(str::to_owned).collect::<Vec<_>>().try_into().unwrap()
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // TERM lets the master end its workers; KILL would orphan them.
        let _ = kill_process(Pid::from_child(&self.process.0), Signal::TERM);
        let _ = self.process.0.wait();
    }
}

/// A certificate for 127.0.0.1 that no authority has signed, as PEM: the chain and its key, in files of this folder.
///
/// # Panics
/// It cannot be made or written.
pub fn self_signed(folder: &Path) -> [String; 2] {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let pem = [("chain.pem", made.cert.pem()), ("key.pem", made.signing_key.serialize_pem())];
    pem.map(|(name, pem)| {
        let path = folder.join(name);
        std::fs::write(&path, pem).unwrap();
        path.to_str().unwrap().to_owned()
    })
}

/// The first number in an element of nginx's page.
pub fn number_in(page: &str, element: &str) -> Option<f64> {
    let (_, rest) = page.split_once(&format!("<{element}>"))?;
    rest.split_once('<')?.0.parse().ok()
}
