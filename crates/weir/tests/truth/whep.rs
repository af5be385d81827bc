//! A token of WHEP that the environment has, as a server hears it.

use crate::support::webrtc::on_air;
use crate::support::{shared, start_measuring, weir};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Stands between weir and a server, hands on what both say, and remembers the heads of requests.
struct Clerk {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Clerk {
    fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, heads) = (listener.local_addr().unwrap(), Arc::default());
        let clerk = Self { address, heads: Arc::clone(&heads) };
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let heads = heads.clone();
                std::thread::spawn(move || hand_on(stream.unwrap(), server, &heads));
            }
        });
        clerk
    }

    fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{}/live/a", self.address)
    }

    /// The heads of all requests of this method.
    fn heard(&self, method: &str) -> Vec<String> {
        let heads = self.heads.lock().unwrap();
        heads.iter().filter(|head| head.starts_with(&format!("{method} "))).cloned().collect()
    }
}

fn hand_on(mut client: TcpStream, server: SocketAddr, heads: &Mutex<Vec<String>>) {
    client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut request = Vec::new();
    let mut piece = [0; 4_096];
    loop {
        let n = client.read(&mut piece).unwrap_or(0);
        request.extend_from_slice(&piece[..n]);
        let text = String::from_utf8_lossy(&request).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            if n == 0 {
                return;
            }
            continue;
        };
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            heads.lock().unwrap().push(head.to_owned());
            break;
        }
    }
    let mut upstream = TcpStream::connect(server).unwrap();
    upstream.write_all(&request).unwrap();
    // As it comes: the server leaves it to the client to close the link.
    while let Ok(n @ 1..) = upstream.read(&mut piece) {
        if client.write_all(&piece[..n]).is_err() {
            return;
        }
    }
}

#[test]
fn a_token_comes_out_of_a_file_or_the_environment_and_is_in_every_request() {
    let _machine = shared();
    let air = on_air(&[]);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "t0ken-of-the-file\n").unwrap();
    for from_file in [true, false] {
        let clerk = Clerk::before(air.origin.address("rtc").unwrap());
        let mut command = weir();
        command.args([
            "play",
            &clerk.url("whep+http"),
            "-c",
            "1",
            "-d",
            "2s",
            "--warmup",
            "0s",
            "--drain",
            "200ms",
        ]);
        if from_file {
            command.arg("--token-file").arg(file.path());
        } else {
            command.env("WEIR_RTC_TOKEN", "t0ken-of-the-environment");
        }
        let run = start_measuring(&mut command).finish();
        assert_eq!((run.well(), run.total("played")), (1, 1.0), "{:?}", run.failures());
        let token = if from_file { "t0ken-of-the-file" } else { "t0ken-of-the-environment" };
        for method in ["POST", "DELETE"] {
            let heads = clerk.heard(method);
            assert_eq!(heads.len(), 1, "{method}");
            let field = format!("Authorization: Bearer {token}");
            assert!(heads[0].lines().any(|line| line == field), "{heads:?}");
        }
        assert!(!run.summary.to_string().contains("t0ken"), "it is in no output");
    }
}
