//! A table that cannot take the rows is one line that says what to do.

use crate::bench::settings;
use std::sync::Arc;
use weir_ingest::{Counts, Decode, Destination, run};
use weir_record::{Format, Framing, Schema};

#[test]
fn a_table_that_does_not_fit_is_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rows.db");
    let text = r#"{"type": "record", "name": "T", "fields": [{"name": "a", "type": "string"}]}"#;
    let schema = Schema::parse(text).unwrap();
    let table = rusqlite::Connection::open(&file).unwrap();
    table.execute_batch("CREATE TABLE T (b TEXT); CREATE TABLE U (a TEXT, must TEXT NOT NULL, topic, publisher, seq, record, received, payload_hash, conflict)").unwrap();
    for (table, words) in
        [("T", "table T has no column a; add it (ALTER TABLE"), ("U", "column must that is NOT NULL")]
    {
        // The store is looked at before the broker.
        let settings = settings("127.0.0.1:9", "a", Destination::Sqlite(file.clone()), table);
        let mut decode = Decode::records(&schema, Format::Avro(Framing::Schemaless));
        let counts = Arc::<Counts>::default();
        let error = run(&settings, &mut decode, &counts, &Arc::default(), &|_| ()).unwrap_err().to_string();
        assert!(error.contains(words) && error.lines().count() == 1, "{error}");
    }
}
