//! A store that another crate implements is given what a broker sends, and decides what is acknowledged.

use crate::bench::{Ingester, send, settings};
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use weir_ingest::store::{Batch, Cell, Contents, Part, Saved, Store, StoreFactory, Table};
use weir_ingest::{Decode, Destination, Durability, StoreError};
use weir_testing::{Mosquitto, soon};

/// Payloads, and reasons of dead letters.
#[derive(Clone, Debug, Default)]
struct Memory(Arc<Mutex<(Vec<String>, Vec<String>)>>);

struct MemoryStore(Memory);

impl Store for MemoryStore {
    fn open(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn save(&mut self, batch: &Batch, part: &Part) -> Result<Saved, StoreError> {
        let text = |row| match batch.cells(row).next() {
            Some(Cell::Bytes(bytes)) => Ok(String::from_utf8_lossy(bytes).into_owned()),
            other => Err(StoreError::Unfit(format!("one column of bytes is saved, and not {other:?}"))),
        };
        let rows = part.rows.clone().map(text).collect::<Result<Vec<_>, _>>()?;
        if rows.iter().any(|row| row == "poison") {
            return Err(StoreError::Refused("poison is refused".to_owned()));
        }
        let saved = Saved { rows: rows.len() as u64, dead: part.dead.len() as u64, ..Saved::default() };
        let mut memory = (self.0).0.lock().unwrap();
        memory.0.extend(rows);
        let dead = batch.dead_letters(part.dead.clone());
        memory.1.extend(dead.map(|dead| format!("{} on {}", dead.reason, dead.source.topic)));
        Ok(saved)
    }

    fn clear(&mut self) -> Result<(), StoreError> {
        *(self.0).0.lock().unwrap() = Default::default();
        Ok(())
    }

    fn contents(&mut self) -> Result<Contents, StoreError> {
        let memory = (self.0).0.lock().unwrap();
        Ok(Contents { rows: memory.0.len() as u64, dead: memory.1.len() as u64, bytes: 0 })
    }

    fn name(&self) -> String {
        self.0.to_string()
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("memory")
    }
}

impl StoreFactory for Memory {
    fn store(&self, table: Table, _: Durability) -> Box<dyn Store> {
        assert_eq!((table.name.as_str(), table.columns.len()), ("messages", 1));
        Box::new(MemoryStore(self.clone()))
    }
}

#[test]
fn a_store_of_another_crate_saves_and_what_it_refuses_is_a_dead_letter() {
    let broker = Mosquitto::start();
    let memory = Memory::default();
    let destination = Destination::Other(Arc::new(memory.clone()));
    assert!(!destination.is_server() && destination.to_string() == "memory");
    let settings = settings(&broker.address(), "x/+", destination, "messages");
    let ingester = Ingester::start(settings, Decode::raw());
    soon("it is subscribed", || ingester.counts().subscribed.load(Relaxed) == 1);
    for (topic, payload) in [("x/a", "one"), ("x/b", "poison"), ("x/a", "two")] {
        send(&broker, &["-q", "1", "-t", topic, "-m", payload]);
    }
    soon("all are settled", || ingester.counts().records.load(Relaxed) == 3);
    let totals = ingester.stop();
    assert_eq!((totals.saved, totals.dead_lettered, totals.acknowledged), (2, 1, 3));
    let mut memory = memory.0.lock().unwrap();
    // Each came from a publisher of its own, and what was refused was asked for part by part: no order is promised.
    memory.0.sort();
    assert_eq!(memory.0, ["one", "two"]);
    assert_eq!(memory.1, ["poison is refused on x/b"]);
}
