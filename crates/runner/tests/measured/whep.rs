//! WHEP's dialogue as a server hears it: goodbyes, tokens.

use crate::rtc::{on_air, whep};
use crate::support::{measure, play, start};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weir_runner::ErrorKind::Interrupted;
use weir_testing::soon;

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
    let air = on_air(&[]);
    let clerk = Clerk::before(air.origin.address("rtc").unwrap());
    let url = clerk.url("whep+http");
    let measuring = start(&format!("drain: 1s\nworkloads: [{{play: '{url}', clients: 5, duration: 60s}}]"));
    soon("all are connected", || air.origin.rtc().connected == 5);
    measuring.interrupt();
    assert_eq!(measuring.finish().missed, Some(Interrupted));
    soon("all have said goodbye", || clerk.heard("DELETE").len() == 5);
    let mut places =
        clerk.heard("DELETE").iter().map(|head| head.lines().next().unwrap().to_owned()).collect::<Vec<_>>();
    places.dedup();
    assert_eq!(places.len(), 5, "each its own: {places:?}");
    assert_eq!(air.origin.counts().present(), 0);

    // Sessions that were made, and brought nothing.
    let nobody = clerk.url("whep+http").replace("live/a", "live/nobody");
    let run = measure(&format!(
        "drain: 500ms\nworkloads: [{{play: '{nobody}', clients: 3, duration: 3s, timeout: 1500ms}}]"
    ));
    assert_eq!((&*run.failure().0, clerk.heard("DELETE").len()), ("no_media", 8));
}

#[test]
fn a_token_comes_out_of_a_file_and_is_in_every_request() {
    let air = on_air(&[]);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "t0ken-of-the-file\n").unwrap();
    let clerk = Clerk::before(air.origin.address("rtc").unwrap());
    let token = "t0ken-of-the-file";
    let keys = format!("clients: 1, duration: 2s, token_file: '{}'", file.path().display());
    let run = play(&clerk.url("whep+http"), &keys);
    assert_eq!((run.well(), run.total("played")), (1, 1.0), "{:?}", run.failures());
    for method in ["POST", "DELETE"] {
        let heads = clerk.heard(method);
        assert_eq!(heads.len(), 1, "{method}");
        let field = format!("Authorization: Bearer {token}");
        assert!(heads[0].lines().any(|line| line == field), "{heads:?}");
    }
    assert!(!run.summary.to_string().contains("t0ken"), "it is in no output");
}

#[test]
fn a_server_that_wants_a_token_is_named() {
    let air = on_air(&["unauthorized phase=play"]);
    let run = play(&whep(&air), "clients: 1, duration: 2s");
    let (kind, _, side, words) = run.failure();
    assert_eq!((&*kind, &*side), ("unauthorized", "remote"));
    assert!(words.contains("token"), "{words}");
}
