//! WHEP's dialogue as a server hears it: goodbyes, tokens, certificates that weir has no use for.

use crate::rtc::{on_air, whep};
use crate::support::{Run, shared, soon, start_measuring, weir};
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
fn whoever_is_interrupted_or_fails_deletes_its_session() {
    let _machine = shared();
    let air = on_air(&[]);
    let clerk = Clerk::before(air.origin.address("rtc").unwrap());
    let mut command = weir();
    command.args(["play", &clerk.url("whep+http"), "-c", "5", "-d", "60s", "--warmup", "0s"]);
    let measuring = start_measuring(&mut command);
    soon("all are connected", || air.origin.rtc().connected == 5);
    measuring.process.interrupt();
    assert_eq!(measuring.finish().code, 105);
    soon("all have said goodbye", || clerk.heard("DELETE").len() == 5);
    let mut places =
        clerk.heard("DELETE").iter().map(|head| head.lines().next().unwrap().to_owned()).collect::<Vec<_>>();
    places.dedup();
    assert_eq!(places.len(), 5, "each its own: {places:?}");
    assert_eq!(air.origin.counts().present(), 0);

    // Sessions that were made, and brought nothing.
    let nobody = clerk.url("whep+http").replace("live/a", "live/nobody");
    let run = crate::support::play(&nobody, "-c 3 -d 3s --timeout 1500ms --warmup 0s --drain 500ms");
    assert_eq!((&*run.failure().0, clerk.heard("DELETE").len()), ("no_media", 8));
}

fn play_with(url: &str, token: impl FnOnce(&mut std::process::Command)) -> Run {
    let mut command = weir();
    command.args(["play", url, "-c", "1", "-d", "2s", "--warmup", "0s", "--drain", "200ms"]);
    token(&mut command);
    start_measuring(&mut command).finish()
}

#[test]
fn a_token_comes_out_of_a_file_or_the_environment_and_is_in_every_request() {
    let _machine = shared();
    let air = on_air(&[]);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "t0ken-of-the-file\n").unwrap();
    for from_file in [true, false] {
        let clerk = Clerk::before(air.origin.address("rtc").unwrap());
        let run = play_with(&clerk.url("whep+http"), |command| {
            if from_file {
                command.arg("--token-file").arg(file.path());
            } else {
                command.env("WEIR_RTC_TOKEN", "t0ken-of-the-environment");
            }
        });
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

#[test]
fn a_server_that_wants_a_token_is_named() {
    let _machine = shared();
    let air = on_air(&["unauthorized phase=play"]);
    let run = play_with(&whep(&air), |_| {});
    let (kind, _, side, words) = run.failure();
    assert_eq!((&*kind, &*side), ("unauthorized", "remote"));
    assert!(words.contains("token"), "{words}");
}

#[test]
fn a_certificate_of_rsa_is_said_with_its_remedy() {
    let _machine = shared();
    for role in ["passive", "active"] {
        let server = crate::aiortc::Server::with(&["rsa", role]);
        let url = format!("whep+http://{}/whep", server.address);
        let run = crate::support::play(&url, "-c 1 -d 30s --timeout 25s --warmup 0s --drain 200ms");
        let (kind, clients, side, words) = run.failure();
        assert_eq!((&*kind, clients, &*side), ("dtls_failed", 1, "protocol"), "{role}: {words}");
        assert!(words.contains("RSA") && words.contains("ECDSA"), "{role}: {words}");
    }
}
