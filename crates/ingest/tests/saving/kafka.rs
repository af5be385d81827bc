//! Records of Kafka, of the last version before 4 as well; its own consumer judges what they are.

use crate::PATIENT;
use crate::bench::{Ingester, kafka, send, settings};
use weir_ingest::{Decode, Destination, Durability, Loader, StoreError};
use weir_record::{Format, Schema};
use weir_testing::{KAFKA, KAFKA_3, Kafka, Mosquitto, free_port};

fn place(server: &Kafka, topic: &str) -> Destination {
    server.url(topic).parse().unwrap()
}

fn decode() -> Decode {
    let text = r#"{"type": "record", "name": "R", "fields": [
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "list", "type": {"type": "array", "items": "long"}},
        {"name": "text", "type": ["null", "string"]}]}"#;
    Decode::records(&Schema::parse(text).unwrap(), Format::Json)
}

fn payload(number: i64) -> Vec<u8> {
    format!(r#"{{"day": {number}, "list": [1, {number}], "text": null}}"#).into_bytes()
}

#[test]
fn a_row_is_a_record_and_what_comes_again_is_recognised() {
    let server = kafka(KAFKA_3);
    let (destination, mut decode) = (place(&server, "rows"), decode());
    let payloads: Vec<_> = (0..10).map(payload).collect();
    let mut loader = Loader::new(&destination, "unused", &decode, Durability::Full);
    loader.open(&PATIENT).unwrap();
    assert_eq!(loader.fill(&mut decode, &payloads, 7, 0).unwrap().rows, 10);
    assert_eq!(loader.fill(&mut decode, &payloads[..6], 7, 0).unwrap().rows, 0);
    // Another process, which knows by reading, and then writes beside this one.
    let mut other = Loader::new(&destination, "unused", &decode, Durability::Full);
    other.open(&PATIENT).unwrap();
    assert_eq!(other.fill(&mut decode, &payloads, 7, 0).unwrap().rows, 0);
    assert_eq!(other.fill(&mut decode, &[payload(50)], 7, 20).unwrap().rows, 1);
    assert_eq!(loader.fill(&mut decode, &[payload(50)], 7, 20).unwrap().rows, 0);
    // Another payload under the same mark is kept beside it, once.
    assert_eq!(loader.fill(&mut decode, &[payload(99)], 7, 3).unwrap().rows, 1);
    assert_eq!(other.fill(&mut decode, &[payload(99)], 7, 3).unwrap().rows, 0);
    let contents = loader.contents(&PATIENT).unwrap();
    assert_eq!((contents.rows, contents.dead), (12, 0));

    let records = server.records("rows");
    assert_eq!(records.len(), 12);
    for (number, record) in records[..10].iter().enumerate() {
        assert_eq!((record.key.as_str(), record.header("seq")), ("7", &*number.to_string()));
        let day = number + 1;
        let value = format!(r#"{{"day":"1970-01-{day:02}","list":[1,{number}],"text":null}}"#);
        assert_eq!((record.value.as_str(), record.header("topic")), (&*value, "weir"));
    }
    let beside: Vec<_> = records.iter().filter(|record| record.header("conflict") == "true").collect();
    assert!(beside.len() == 1 && beside[0].value.contains("[1,99]"), "{beside:?}");

    loader.empty(&PATIENT).unwrap();
    assert_eq!(loader.contents(&PATIENT).unwrap().rows, 0);
    assert_eq!(loader.fill(&mut decode, &payloads, 7, 0).unwrap().rows, 10);
    assert_eq!(loader.contents(&PATIENT).unwrap().rows, 10);
}

#[test]
fn what_a_topic_does_not_take_is_a_dead_letter_and_stops_nothing() {
    let (server, broker) = (kafka(KAFKA), Mosquitto::start());
    server.create("small", &["max.message.bytes=2000"]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("large");
    std::fs::write(&file, "x".repeat(3_000)).unwrap();
    let mut settings = settings(&broker.address(), "z/#", place(&server, "small"), "small");
    settings.count = Some(3);
    let ingester = Ingester::start(settings, Decode::raw());
    // Kept by the broker, so that the order does not matter.
    send(&broker, &["-r", "-t", "z/1", "-m", "one"]);
    send(&broker, &["-r", "-t", "z/2", "-f", file.to_str().unwrap()]);
    send(&broker, &["-r", "-t", "z/3", "-m", "three"]);
    let totals = ingester.ended();
    assert_eq!((totals.saved, totals.dead_lettered, totals.unmarked), (2, 1, 3));
    let mut rows: Vec<_> =
        server.records("small").into_iter().map(|record| (record.key, record.value)).collect();
    rows.sort();
    assert_eq!(
        rows,
        [("z/1", "one"), ("z/3", "three")].map(|(key, value)| (key.to_owned(), value.to_owned()))
    );
    let dead = server.records("small_dead").remove(0);
    assert!(dead.header("reason").contains("small takes 2000 (max.message.bytes"), "{dead:?}");
    assert_eq!((dead.header("size"), dead.value.len()), ("3000", 3_000));

    let refused = |destination: &Destination| {
        Loader::new(destination, "t", &Decode::raw(), Durability::Full).open(&PATIENT).unwrap_err()
    };
    // Nobody there, and somebody who is no Kafka.
    let nobody: Destination = format!("kafka://127.0.0.1:{}/t", free_port()).parse().unwrap();
    let StoreError::Unavailable(words) = refused(&nobody) else { panic!() };
    assert!(words.starts_with("kafka://127.0.0.1:") && words.contains("refused"), "{words}");
    let other: Destination = format!("kafka://{}/t", broker.address()).parse().unwrap();
    let StoreError::Unavailable(words) = refused(&other) else { panic!() };
    assert!(words.contains("is this a listener of Kafka"), "{words}");
}
