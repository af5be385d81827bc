//! Links of an ingester that break: at QoS 2 each message is one row, whoever has published it (MQTT-4.3.3-10, section 4.1).

use crate::support::{Ingester, Mosquitto, paho_publisher, shared, soon};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weir_origin::{ANY_PORT, MQTT, Origin, OriginConfig};

const MESSAGES: usize = 6_000;
const RATE: usize = 1_500;
const CUTS: usize = 20;

/// What stands between a client and its broker, and can break all of its links at once.
struct Relay {
    address: SocketAddr,
    links: Arc<Mutex<Vec<TcpStream>>>,
    stop: Arc<AtomicBool>,
}

impl Relay {
    fn to(broker: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let (links, stop) = (Arc::<Mutex<Vec<TcpStream>>>::default(), Arc::<AtomicBool>::default());
        let (theirs, halt) = (links.clone(), stop.clone());
        std::thread::spawn(move || {
            while !halt.load(Relaxed) {
                let Ok((client, _)) = listener.accept() else {
                    std::thread::sleep(Duration::from_millis(2));
                    continue;
                };
                let Ok(server) = TcpStream::connect(broker) else { continue };
                client.set_nonblocking(false).unwrap();
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    std::thread::spawn(move || forward(from, to));
                }
                theirs.lock().unwrap().extend([client, server]);
            }
        });
        Self { address, links, stop }
    }

    fn cut(&self) {
        for link in self.links.lock().unwrap().drain(..) {
            let _ = link.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.cut();
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = [0; 4_096];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

fn each_message_is_one_row(broker: SocketAddr, version: &str, level: &str) {
    let relay = Relay::to(broker);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rows.db");
    let (url, place) = (format!("mqtt://{}/cuts/#", relay.address), format!("sqlite:{}", file.display()));
    let arguments =
        ["-q", "2", "--mqtt-version", version, "--batch", "50", "--linger", "20ms", "--save", &place];
    let ingester = Ingester::start([url.as_str()].into_iter().chain(arguments));
    ingester.wait_for_subscription();
    let mut publisher = paho_publisher(broker, level, MESSAGES, RATE);
    // Moments without a rhythm.
    let mut random = 0x9e37_79b9_7f4a_7c15_u64 ^ u64::from(std::process::id());
    for _ in 0..CUTS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_millis(80 + (random >> 33) % 220));
        relay.cut();
    }
    assert!(publisher.ended().success());
    let rows = || {
        let table = rusqlite::Connection::open(&file).ok()?;
        let query = "SELECT count(*), count(DISTINCT payload) FROM messages";
        table.query_row(query, (), |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))).ok()
    };
    soon("all are saved", || rows().is_some_and(|(_, different)| different >= MESSAGES as i64));
    let settled = ingester.stop();
    assert_eq!(
        (settled.code, rows()),
        (Some(0), Some((MESSAGES as i64, MESSAGES as i64))),
        "{}",
        settled.err
    );
    // It came back often, with its session.
    assert!(settled.total("reconnects") >= 3, "{}", settled.err);
    assert_eq!((settled.total("sessions_lost"), settled.total("unmarked") as usize), (0, MESSAGES));
}

#[test]
fn six_thousand_messages_of_paho_through_twenty_cuts_are_six_thousand_rows_with_mosquitto() {
    let _machine = shared();
    for (version, level) in [("5", "5"), ("3.1.1", "4")] {
        let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
        each_message_is_one_row(broker.address().parse().unwrap(), version, level);
    }
}

#[test]
fn six_thousand_messages_of_paho_through_twenty_cuts_are_six_thousand_rows_with_the_origin() {
    let _machine = shared();
    for (version, level) in [("5", "5"), ("3.1.1", "4")] {
        let origin = Origin::start(&OriginConfig::default().listening(&MQTT, ANY_PORT)).unwrap();
        each_message_is_one_row(origin.address("mqtt").unwrap(), version, level);
    }
}
