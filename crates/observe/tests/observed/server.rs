//! A server that answers what a test tells it to, and the node_exporter of Debian.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The head of a request.
pub(crate) struct Request {
    /// Path and query.
    pub(crate) path: String,
    /// `name: value`, the name in small letters.
    pub(crate) headers: Vec<String>,
}

/// Answers every request with the bytes that `answer` makes of it, one link after the other, until the end
/// of the test. An answer of no bytes leaves the client waiting.
pub(crate) fn serve(answer: impl Fn(&Request) -> Vec<u8> + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let mut kept = Vec::new();
        for link in listener.incoming() {
            let Ok(mut link) = link else { return };
            let Some(request) = request(&link) else { continue };
            let bytes = answer(&request);
            if bytes.is_empty() {
                kept.push(link);
                continue;
            }
            // A client that has heard enough may be gone.
            let _ = link.write_all(&bytes);
        }
    });
    address
}

fn request(link: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(link).lines().map_while(Result::ok);
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers = lines.take_while(|line| !line.is_empty());
    let small = |line: String| match line.split_once(':') {
        Some((name, value)) => format!("{}:{value}", name.to_lowercase()),
        None => line,
    };
    Some(Request { path, headers: headers.map(small).collect() })
}

/// A whole answer, after which the link is closed.
pub(crate) fn answer(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}").into_bytes()
}

/// A program of Debian on a free port, ended with the test.
pub(crate) struct Program {
    pub(crate) child: Child,
    pub(crate) address: String,
}

impl Program {
    /// node_exporter, `lo` included, which Debian leaves out.
    pub(crate) fn node_exporter() -> Self {
        let address = free_address();
        let arguments = [
            format!("--web.listen-address={address}"),
            "--collector.netdev.device-exclude=^none$".to_owned(),
        ];
        Self::start("prometheus-node-exporter", &arguments, address)
    }

    /// Prometheus, which collects once a second from these, and has done so for some seconds.
    pub(crate) fn prometheus(exporters: &[&Self], directory: &Path) -> Self {
        let address = free_address();
        let targets: Vec<String> = exporters.iter().map(|it| format!("'{}'", it.address)).collect();
        let configuration = format!(
            "global: {{scrape_interval: 1s}}\nscrape_configs:\n  - job_name: node\n    static_configs: [{{targets: [{}]}}]\n",
            targets.join(", ")
        );
        let file = directory.join("prometheus.yml");
        std::fs::write(&file, configuration).unwrap();
        let arguments = [
            format!("--web.listen-address={address}"),
            format!("--config.file={}", file.display()),
            format!("--storage.tsdb.path={}", directory.join("data").display()),
        ];
        let program = Self::start("prometheus", &arguments, address);
        let began = Instant::now();
        let collected = "/api/v1/query?query=min(count_over_time(node_load1[1m]))%3E4";
        while !get(&program.address, collected).contains("\"value\"") {
            assert!(began.elapsed() < Duration::from_secs(60), "Prometheus does not collect");
            thread::sleep(Duration::from_millis(200));
        }
        program
    }

    pub(crate) fn start(name: &str, arguments: &[String], address: String) -> Self {
        let mut command = Command::new(name);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|error| panic!("{name}: {error}; apt-get install it"));
        let mut program = Self { child, address };
        let began = Instant::now();
        while TcpStream::connect(&program.address).is_err() {
            assert!(began.elapsed() < Duration::from_secs(60), "{name} does not listen within a minute");
            assert!(program.child.try_wait().unwrap().is_none(), "{name} has ended");
            thread::sleep(Duration::from_millis(20));
        }
        program
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port of this machine that is free at the moment.
pub(crate) fn free_address() -> String {
    format!("127.0.0.1:{}", weir_testing::free_port())
}

/// A whole answer, head and body, as text.
pub(crate) fn get(address: &str, path: &str) -> String {
    let mut link = TcpStream::connect(address).unwrap();
    write!(link, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    link.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// Sends `bytes` over `lo`, evenly over `span`, and returns when they have arrived.
pub(crate) fn send_over_loopback(bytes: u64, span: Duration) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut link = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    let (done, sent) = mpsc::channel();
    let reader = thread::spawn(move || std::io::copy(&mut peer, &mut std::io::sink()).unwrap());
    thread::spawn(move || {
        const PIECES: u64 = 100;
        let piece = vec![0; (bytes / PIECES) as usize];
        let began = Instant::now();
        for number in 1..=PIECES as u32 {
            link.write_all(&piece).unwrap();
            thread::sleep((span * number / PIECES as u32).saturating_sub(began.elapsed()));
        }
        drop(link);
        done.send(()).unwrap();
    });
    sent.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(reader.join().unwrap(), bytes);
}
