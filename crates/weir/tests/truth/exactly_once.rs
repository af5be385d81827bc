//! Links of an ingester that break: at QoS 2 each message is one row, whoever has published it (MQTT-4.3.3-10, section 4.1).

use crate::support::{Ingester, Mosquitto, paho_publisher, shared, soon};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weir_mqtt::{Event, Limits, Packet, PacketId, Reader, Version};
use weir_origin::{ANY_PORT, MQTT, Origin, OriginConfig};

const MESSAGES: usize = 6_000;
const RATE: usize = 1_500;
const CUTS: usize = 20;

/// What stands between a client and its broker, can break all of its links at once, and sees what the broker may not send again.
struct Relay {
    address: SocketAddr,
    links: Arc<Mutex<Vec<TcpStream>>>,
    stop: Arc<AtomicBool>,
    account: Arc<Mutex<Account>>,
}

/// What the broker may not send again. mosquitto 2.0.11 sends a message again whose PUBREL it had sent, after two links that break before
/// it has sent again what was in flight (`db__message_reconnect_reset_outgoing` takes a PUBREL that waits to be sent for a PUBLISH
/// that does). MQTT-4.3.3-6 forbids it, and a receiver that had the PUBREL has to take it for a new one: a row of its own.
#[derive(Debug, Default)]
struct Account {
    /// Payload, and whether it is released and the client has said so.
    messages: HashMap<PacketId, (Vec<u8>, bool, bool)>,
    /// Messages that came again though they were released, and those of them that the client had completed.
    repeated: (usize, usize),
}

impl Account {
    fn note(&mut self, packet: &Packet<'_>) {
        match packet {
            Packet::Publish(message) => {
                let Some(id) = message.packet_id else { return };
                let before = self.messages.insert(id, (message.payload.to_vec(), false, false));
                let Some((_, released, completed)) = before.filter(|it| it.0 == message.payload) else {
                    return;
                };
                self.repeated.0 += usize::from(released);
                self.repeated.1 += usize::from(completed);
            }
            Packet::Pubrel(of) => {
                self.messages.entry(of.packet_id).and_modify(|it| it.1 = true);
            }
            Packet::Pubcomp(of) => {
                self.messages.entry(of.packet_id).and_modify(|it| it.2 = true);
            }
            _ => {}
        }
    }
}

impl Relay {
    fn to(broker: SocketAddr, version: Version) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let (links, stop) = (Arc::<Mutex<Vec<TcpStream>>>::default(), Arc::<AtomicBool>::default());
        let account = Arc::<Mutex<Account>>::default();
        let (theirs, halt, noted) = (links.clone(), stop.clone(), account.clone());
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
                    let (reader, noted) = (Reader::new(version, Limits::default()), noted.clone());
                    std::thread::spawn(move || forward(from, to, reader, &noted));
                }
                theirs.lock().unwrap().extend([client, server]);
            }
        });
        Self { address, links, stop, account }
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

fn forward(mut from: TcpStream, mut to: TcpStream, mut reader: Reader, account: &Mutex<Account>) {
    let mut buffer = [0; 4_096];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let mut bytes = &buffer[..length];
        while let Some(event) = reader.next(&mut bytes).unwrap() {
            if let Event::Packet(packet) = event {
                account.lock().unwrap().note(&packet);
            }
        }
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

fn each_message_is_one_row(broker: SocketAddr, version: &str) -> (usize, usize) {
    let (mqtt, level) = if version == "5" { (Version::V5, "5") } else { (Version::V311, "4") };
    let relay = Relay::to(broker, mqtt);
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
    let repeated = relay.account.lock().unwrap().repeated;
    let (all, different) = rows().unwrap();
    assert_eq!((settled.code, different), (Some(0), MESSAGES as i64), "{}", settled.err);
    // Whether the last PUBREL before a cut has reached the client, the relay does not see.
    let expected = MESSAGES + repeated.1..=MESSAGES + repeated.0;
    assert!(expected.contains(&(all as usize)), "{all} rows, {expected:?}: {}", settled.err);
    // It came back often, with its session.
    assert!(settled.total("reconnects") >= 3, "{}", settled.err);
    assert_eq!((settled.total("sessions_lost"), settled.total("unmarked")), (0, all as u64));
    repeated
}

#[test]
fn six_thousand_messages_of_paho_through_twenty_cuts_are_six_thousand_rows_with_mosquitto() {
    let _machine = shared();
    for version in ["5", "3.1.1"] {
        let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
        each_message_is_one_row(broker.address().parse().unwrap(), version);
    }
}

#[test]
fn six_thousand_messages_of_paho_through_twenty_cuts_are_six_thousand_rows_with_the_origin() {
    let _machine = shared();
    for version in ["5", "3.1.1"] {
        let origin = Origin::start(&OriginConfig::default().listening(&MQTT, ANY_PORT)).unwrap();
        assert_eq!(each_message_is_one_row(origin.address("mqtt").unwrap(), version), (0, 0));
    }
}
