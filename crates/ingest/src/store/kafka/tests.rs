//! What a store does when a broker refuses a part of what it is sent, or has lost a part of what it had.

use super::record_mark::identity_in;
use super::scripted::{Answer, Logs, broker, cluster};
use super::*;
use crate::decode::DecodeFailure;
use crate::inbound::{InboundMessage, Origin, ReadBuffer};
use std::sync::Arc;
use weir_kafka::{Budget, partition_of, read_batches};

const TOO_LARGE: usize = 600;

fn store(port: u16) -> Kafka {
    let cluster = format!("kafka://127.0.0.1:{port}/t").parse().unwrap();
    let mut store = Kafka::new(cluster, Table::new("t".to_owned(), Decode::raw().columns()));
    store.open().unwrap();
    store
}

/// Messages of these publishers with these numbers and this many bytes; dead letters instead of rows if `is_dead`.
fn batch(messages: impl IntoIterator<Item = (u64, u64)>, length: usize, is_dead: bool) -> Batch {
    let mut buffer = ReadBuffer::default();
    for (publisher, sequence_number) in messages {
        let (topic, payload) = (buffer.put(b"a"), buffer.put(&vec![b'x'; length]));
        let origin = Some(Origin { publisher, sequence_number });
        buffer.messages.push(InboundMessage {
            topic,
            payload,
            too_large: 0,
            origin,
            packet: None,
            received: 0,
        });
    }
    let mut batch = Batch::new(1);
    let count = buffer.messages.len();
    batch.open(&Arc::new(buffer));
    let mut decode = Decode::raw();
    for position in 0..count {
        let added = batch.add(position, |message, buffer, rows| {
            if is_dead {
                Err(DecodeFailure::Dead("why".to_owned()))
            } else {
                decode.decode(buffer.payload(message), 1 << 20, rows)
            }
        });
        added.unwrap();
    }
    batch
}

/// Saves as the writer does; returns how often it was tried.
fn save(store: &mut Kafka, batch: &Batch) -> (u32, Result<Saved, StoreError>) {
    for tries in 1.. {
        let (rows, dead) = (0..batch.rows.len(), 0..batch.dead_count());
        match store.save(batch, &Part { rows, dead, again: tries > 1 }) {
            Err(StoreError::Unavailable(words)) => {
                assert!(tries < 10, "{words}");
                store.open().unwrap();
            }
            outcome => return (tries, outcome),
        }
    }
    unreachable!()
}

/// Publishers and numbers of what a topic has, in their order.
fn marks(logs: &Logs, topic: &str) -> Vec<(u64, u64)> {
    let mut marks = Vec::new();
    for ((name, _), log) in logs.lock().unwrap().iter() {
        let bytes: Vec<_> = log.batches.iter().flat_map(|(_, batch)| batch.clone()).collect();
        if name == topic {
            let mark = |record: &weir_kafka::RecordRef<'_>| {
                identity_in(record).map(|((publisher, number, _), _)| (publisher, number))
            };
            read_batches(&bytes, &mut Budget::default(), |record| marks.extend(mark(record))).unwrap();
        }
    }
    marks.sort_unstable();
    marks
}

/// A publisher whose records are in this of two partitions.
fn publisher(partition: usize) -> u64 {
    (1_u64..).find(|it| partition_of(it.to_string().as_bytes(), 2) == partition).unwrap()
}

fn refuse(partition: i32, _records: i32, bytes: usize) -> ErrorCode {
    if partition == 1 && bytes > TOO_LARGE { ErrorCode::MESSAGE_TOO_LARGE } else { ErrorCode::NONE }
}

#[test]
fn what_one_partition_took_is_not_appended_again_when_another_refuses_its_share() {
    let (port, logs, _) = cluster(refuse);
    let mut store = store(port);
    let messages = || (0..8).flat_map(|number| [0, 1].map(|partition| (publisher(partition), number)));
    let (tries, saved) = save(&mut store, &batch(messages(), 200, false));
    assert!(saved.is_ok() && tries > 1, "{tries} {saved:?}");
    let mut all: Vec<_> = messages().collect();
    all.sort_unstable();
    assert_eq!(marks(&logs, "t"), all);
    // The topic's setting says otherwise each time, and what was learned holds.
    store.open().unwrap();
    let more = (8..16).map(|number| (publisher(1), number));
    let (tries, saved) = save(&mut store, &batch(more, 200, false));
    assert_eq!((tries, saved.unwrap().rows), (1, 8));
}

#[test]
fn a_record_that_is_too_large_alone_is_refused_and_a_dead_letter_is_cut() {
    let (port, logs, _) = cluster(refuse);
    let mut store = store(port);
    let one = || [(publisher(1), 1)];
    let (tries, saved) = save(&mut store, &batch(one(), 1_000, false));
    assert!(matches!(&saved, Err(StoreError::Refused(words)) if words.contains("a record of")), "{saved:?}");
    assert_eq!((tries, marks(&logs, "t").len()), (2, 0));
    // Another that is smaller goes in.
    assert_eq!(save(&mut store, &batch(one(), 200, false)).1.unwrap().rows, 1);
    let (tries, saved) = save(&mut store, &batch(one(), 100_000, true));
    assert!(saved.is_ok() && tries < 10, "{saved:?}");
    assert_eq!(marks(&logs, "t_dead"), one());
}

#[test]
fn what_is_left_of_a_log_that_has_lost_its_beginning_is_recognised() {
    let (port, logs, _) = cluster(refuse);
    let mut first = store(port);
    let mut second = store(port);
    for number in 0..3 {
        let one = batch([(publisher(0), number)], 200, false);
        assert_eq!(save(&mut second, &one).1.unwrap().rows, 1);
    }
    if let Some(log) = logs.lock().unwrap().get_mut(&("t".to_owned(), 0)) {
        log.start = 1;
        log.batches.remove(0);
    }
    let again = batch((1..4).map(|number| (publisher(0), number)), 200, false);
    let saved = save(&mut first, &again).1.unwrap();
    assert_eq!((saved.rows, saved.duplicate), (1, 2));
}

#[test]
fn what_can_never_be_read_is_said_with_its_offset_and_not_asked_for_again() {
    let (port, logs, _) = cluster(refuse);
    let mut first = store(port);
    let mut second = store(port);
    assert_eq!(save(&mut second, &batch([(publisher(0), 0)], 200, false)).1.unwrap().rows, 1);
    if let Some(log) = logs.lock().unwrap().get_mut(&("t".to_owned(), 0)) {
        let mut damaged = log.batches[0].1.clone();
        damaged[..8].copy_from_slice(&1_i64.to_be_bytes());
        // It says that it is compressed by zstd, and the checksum of all that follows it is right.
        damaged[22] = 4;
        let sum = weir_kafka::checksum(&damaged[21..]);
        damaged[17..21].copy_from_slice(&sum.to_be_bytes());
        log.batches.push((1, damaged));
        log.end = 2;
    }
    let (_, saved) = save(&mut first, &batch([(publisher(0), 1)], 200, false));
    let Err(StoreError::Unfit(words)) = saved else { panic!("{saved:?}") };
    assert!(words.contains("partition 0: at offset 1: ") && words.ends_with("name another topic"), "{words}");
}

#[test]
fn a_topic_that_was_not_asked_for_is_not_created() {
    let (port, asked) = broker(|key, _| {
        assert_eq!(key, 3);
        // No brokers, no controller, and a topic that is not there.
        let head = Answer::default().number([0; 4 + 4]).number([0xFF; 2 + 4]).number(1_i32.to_be_bytes());
        let head = head.number(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.0.to_be_bytes());
        head.text("another\u{1b}[2J").number([0; 1 + 4])
    });
    let cluster = format!("kafka://127.0.0.1:{port}/t").parse().unwrap();
    let mut store = Kafka::new(cluster, Table::new("t".to_owned(), Decode::raw().columns()));
    let Err(StoreError::Unavailable(words)) = store.open() else { panic!() };
    assert!(words.ends_with("no answer on topic t"), "{words}");
    assert_eq!(asked.try_iter().collect::<Vec<_>>(), [18, 3]);
}
