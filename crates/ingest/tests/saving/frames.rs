//! Frames say by which schema a record was written: it is read by that, and saved by the table's own.

use crate::bench::{Ingester, send, settings};
use weir_ingest::{Decode, Destination};
use weir_record::{Decoder, Encoder, Format, Framing, Schema, WriterId, WriterSchemas};
use weir_testing::Mosquitto;

const WRITER: &str = r#"{"type": "record", "name": "Reading", "fields": [
    {"name": "gone", "type": "string"}, {"name": "celsius", "type": "int"}]}"#;

const READER: &str = r#"{"type": "record", "name": "Reading", "fields": [
    {"name": "celsius", "type": "double"}, {"name": "place", "type": "string", "default": "Kyiv"}]}"#;

/// A registry with one schema.
struct One(u64, Schema);

impl WriterSchemas for One {
    fn find(&mut self, writer: WriterId) -> Result<Schema, String> {
        if writer == WriterId::Id(self.0) {
            Ok(self.1.clone())
        } else {
            Err("it is not known here".to_owned())
        }
    }
}

#[test]
fn records_of_another_schema_are_rows_and_of_an_unknown_one_dead_letters() {
    let (writer, reader) = (Schema::parse(WRITER).unwrap(), Schema::parse(READER).unwrap());
    let format = Format::Avro(Framing::Confluent);
    let directory = tempfile::tempdir().unwrap();
    let (broker, file) = (Mosquitto::start(), directory.path().join("rows.db"));
    let mut settings = settings(&broker.address(), "r/+", Destination::Sqlite(file.clone()), "readings");
    settings.count = Some(3);
    let decode = Decode::records(&reader, format).with_writers(Box::new(One(7, writer.clone())));
    let ingester = Ingester::start(settings, decode);
    let json = br#"{"gone": "x", "celsius": -3}"#;
    for (name, id, records) in [("known", 7, 2), ("unknown", 8, 1)] {
        let mut encoder = Encoder::new(&writer, format).schema_id(id);
        let mut decoder = Decoder::new(&writer, Format::Json);
        for _ in 0..records {
            encoder.push(decoder.one(json).unwrap()).unwrap();
        }
        let mut payload = Vec::new();
        encoder.finish(&mut payload);
        let path = directory.path().join(name);
        std::fs::write(&path, payload).unwrap();
        // Kept by the broker, so that the order does not matter.
        send(&broker, &["-r", "-t", &format!("r/{name}"), "-f", path.to_str().unwrap()]);
    }
    let totals = ingester.ended();
    assert_eq!((totals.saved, totals.dead_lettered), (2, 1));
    let table = rusqlite::Connection::open(&file).unwrap();
    let row = |query: &str| {
        table.query_row(query, (), |row| Ok((row.get::<_, f64>(0)?, row.get::<_, String>(1)?))).unwrap()
    };
    assert_eq!(row("SELECT celsius, place FROM readings WHERE record = 1"), (-3.0, "Kyiv".to_owned()));
    let reason = "byte 1: the schema with id 8 that it was written by cannot be had: it is not known here";
    assert_eq!(row("SELECT 0.0, reason FROM readings_dead"), (0.0, reason.to_owned()));
}
