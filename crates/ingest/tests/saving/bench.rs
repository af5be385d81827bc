//! An ingester in threads of this process, and messages for it from mosquitto's own client.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_ingest::{
    ClientOptions, Counts, Decode, Destination, Durability, Ended, IngestError, IngestSettings, Outcome,
    Source, Totals, run,
};
use weir_mqtt::{Qos, Version};
use weir_shard::Endpoint;
use weir_testing::{ClickHouseServer, KAFKA, Kafka, Mosquitto, Postgresql};

/// What an ingester does that takes the messages of a topic and saves them into a table.
pub(crate) fn settings(address: &str, filter: &str, destination: Destination, table: &str) -> IngestSettings {
    let source = Source {
        endpoint: Endpoint::tcp(address.parse().unwrap()),
        socket: None,
        filter: filter.to_owned(),
        name: format!("mqtt://{address}/{filter}"),
        options: ClientOptions::new(Version::V5, format!("ingester-{table}")),
        qos: Qos::AtLeastOnce,
        ends_session: false,
    };
    IngestSettings {
        source,
        durability: durability(&destination),
        destination,
        table: table.to_owned(),
        batch: 1_000,
        linger: Duration::from_millis(50),
        count: None,
        max_message: 64 << 20,
        queue: 16 << 20,
        waits: false,
    }
}

/// The most that a place can do: Debian's ClickHouse waits for no disk.
pub(crate) fn durability(destination: &Destination) -> Durability {
    if matches!(destination, Destination::ClickHouse(_)) { Durability::Normal } else { Durability::Full }
}

/// The database of a server, with its password.
pub(crate) fn postgresql(server: &Postgresql) -> Destination {
    let mut destination = server.place().parse().unwrap();
    if let Destination::Postgres(database) = &mut destination {
        database.set_password(std::fs::read_to_string(server.password_file()).unwrap().trim_end());
    }
    destination
}

/// The same of ClickHouse.
pub(crate) fn clickhouse(server: &ClickHouseServer) -> Destination {
    let mut destination = server.place().parse().unwrap();
    if let Destination::ClickHouse(place) = &mut destination {
        place.set_password(std::fs::read_to_string(server.password_file()).unwrap().trim_end());
    }
    destination
}

/// A broker of this version, guarded, that tests which run at the same time share: it takes seconds to start.
pub(crate) fn kafka(version: &'static str) -> Arc<Kafka> {
    static SHARED: [Mutex<Weak<Kafka>>; 2] = [const { Mutex::new(Weak::new()) }; 2];
    let mut shared = SHARED[usize::from(version == KAFKA)].lock().unwrap_or_else(PoisonError::into_inner);
    shared.upgrade().unwrap_or_else(|| {
        let started = Arc::new(Kafka::guarded(version));
        *shared = Arc::downgrade(&started);
        started
    })
}

/// Sends a message with mosquitto's own client.
pub(crate) fn send(broker: &Mosquitto, arguments: &[&str]) {
    let address = broker.address();
    let mut command = Command::new("mosquitto_pub");
    command.args(["-h", "127.0.0.1", "-q", "1", "-p", address.split(':').next_back().unwrap()]);
    let status = command.args(arguments).stdin(Stdio::null()).status();
    let status = status.expect("mosquitto_pub is missing; apt-get install mosquitto-clients");
    assert!(status.success(), "{arguments:?}");
}

/// A running ingester.
pub(crate) struct Ingester {
    counts: Arc<Counts>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Outcome, IngestError>>,
}

impl Ingester {
    pub(crate) fn start(settings: IngestSettings, mut decode: Decode) -> Self {
        let (counts, stop) = (Arc::<Counts>::default(), Arc::<AtomicBool>::default());
        let thread = std::thread::spawn({
            let (counts, stop) = (counts.clone(), stop.clone());
            move || run(&settings, &mut decode, &counts, &stop, &|line| panic!("{line}"))
        });
        Self { counts, stop, thread }
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Waits until it has as many records as were asked for.
    pub(crate) fn ended(self) -> Totals {
        self.outcome(Ended::Enough)
    }

    /// Asks it to stop, and waits for that.
    pub(crate) fn stop(self) -> Totals {
        self.stop.store(true, Relaxed);
        self.outcome(Ended::Stopped)
    }

    fn outcome(self, ended: Ended) -> Totals {
        let outcome = self.thread.join().unwrap().unwrap();
        assert_eq!(outcome.ended, Ok(ended));
        let Totals { received, saved, dead_lettered, duplicate, .. } = outcome.totals;
        assert_eq!(received, saved + dead_lettered + duplicate);
        outcome.totals
    }
}
