//! A message that cannot be decoded, or a row that a store refuses, becomes a dead letter, and stops nothing.

use crate::bench::{Ingester, postgresql, send, settings};
use crate::values::{Payloads, SCHEMA};
use std::sync::atomic::Ordering::Relaxed;
use weir_ingest::{Decode, Destination};
use weir_mqtt::Qos;
use weir_record::{Codec, Encoder, Format, Framing, Schema};
use weir_testing::{Mosquitto, Postgresql, soon};

#[test]
fn what_is_no_record_is_a_dead_letter_and_stops_nothing() {
    let payloads = Payloads::make();
    let broker = Mosquitto::start();
    let file = payloads.file("rows.db");
    let avro = std::fs::read(payloads.file("avro")).unwrap();
    for (name, bytes) in [
        ("truncated", &avro[..avro.len() - 20]),
        ("garbage", &b"\xff\xfe no container at all"[..]),
        ("empty", &b""[..]),
        ("whole", &avro[..]),
    ] {
        std::fs::write(payloads.file(name), bytes).unwrap();
    }
    let other = SCHEMA.replace("Sample", "Another").replace("\"small\"", "\"tiny\"");
    let other = Schema::parse(&other).unwrap();
    let mut encoder = Encoder::new(&other, Format::Avro(Framing::Container));
    encoder.push(weir_record::Generator::new(&other, 1).record(0).unwrap()).unwrap();
    let mut bytes = Vec::new();
    encoder.finish(&mut bytes);
    std::fs::write(payloads.file("other"), bytes).unwrap();

    // Three blocks, of which the second has one bit that is not its codec's.
    let format = Format::Avro(Framing::Container);
    let mut encoder = Encoder::new(&payloads.schema, format).compressed(Codec::Snappy);
    let (mut head, mut whole) = (Vec::new(), Vec::new());
    encoder.finish(&mut head);
    encoder.push(weir_record::Generator::new(&payloads.schema, 1).record(0).unwrap()).unwrap();
    encoder.finish(&mut whole);
    let block = &whole[head.len()..];
    let mut damaged = block.to_vec();
    // In the sum behind the compressed records, which the marker follows.
    damaged[block.len() - 17] ^= 1;
    std::fs::write(payloads.file("damaged"), [&whole[..], &damaged, block].concat()).unwrap();

    let mut settings = settings(&broker.address(), "x/+", Destination::Sqlite(file.clone()), "Sample");
    settings.source.qos = Qos::ExactlyOnce;
    let ingester = Ingester::start(settings, Decode::records(&payloads.schema, format));
    soon("it is subscribed", || ingester.counts().subscribed.load(Relaxed) == 1);
    for name in ["truncated", "garbage", "other", "empty", "damaged", "whole"] {
        send(&broker, &["-q", "2", "-t", &format!("x/{name}"), "-f", payloads.file(name).to_str().unwrap()]);
    }
    soon("all are settled", || ingester.counts().records.load(Relaxed) == 16);
    let totals = ingester.stop();
    assert_eq!((totals.saved, totals.dead_lettered, totals.acknowledged), (11, 5, 6));
    assert_eq!(totals.received, 16);
    let table = rusqlite::Connection::open(&file).unwrap();
    for (name, words) in [
        ("truncated", "byte"),
        ("garbage", "container"),
        ("other", "cannot be read as"),
        ("empty", "container"),
        ("damaged", "a block of snappy cannot be decompressed: it is damaged"),
    ] {
        let query = "SELECT reason, payload FROM Sample_dead WHERE mqtt_topic = ?";
        let (reason, payload): (String, Vec<u8>) =
            table.query_row(query, [format!("x/{name}")], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        assert!(reason.contains(words) && !reason.contains('\n'), "{name}: {reason}");
        assert_eq!(payload, std::fs::read(payloads.file(name)).unwrap(), "{name}");
    }
}

#[test]
fn a_row_that_postgresql_refuses_is_a_dead_letter_and_the_others_go_in() {
    let (broker, server) = (Mosquitto::start(), Postgresql::start());
    let directory = tempfile::tempdir().unwrap();
    let payload = directory.path().join("p.json");
    let text = r#"{"type": "record", "name": "T", "fields": [{"name": "a", "type": "string"}]}"#;
    // Avro and JSON allow U+0000 in a text, PostgreSQL does not.
    std::fs::write(&payload, r#"[{"a": "one"}, {"a": "t\u0000wo"}, {"a": "three"}, {"a": "four"}]"#).unwrap();
    let mut settings = settings(&broker.address(), "n/#", postgresql(&server), "T");
    settings.count = Some(4);
    let decode = Decode::records(&Schema::parse(text).unwrap(), Format::Json);
    let ingester = Ingester::start(settings, decode);
    send(&broker, &["-r", "-t", "n/1", "-f", payload.to_str().unwrap()]);
    let totals = ingester.ended();
    assert_eq!((totals.saved, totals.dead_lettered), (3, 1));
    let row = server.client().query_one("SELECT record, reason, payload FROM \"T_dead\"", &[]).unwrap();
    assert_eq!(row.get::<_, i32>(0), 1);
    assert!(row.get::<_, String>(1).contains("0x00"), "{}", row.get::<_, String>(1));
    assert_eq!(row.get::<_, Vec<u8>>(2), std::fs::read(&payload).unwrap());
}
