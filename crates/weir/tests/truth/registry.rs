//! `weir ingest --schema-registry`: records that say by which schema they were written, through the whole program. What a
//! registry may answer is tested beside the code that asks it.

use crate::support::{Ingester, Mosquitto, free_port, measure, program, shared, soon};
use std::net::TcpStream;
use std::path::Path;
use weir_testing::KilledOnDrop;

const OLD: &str = r#"{"type": "record", "name": "Reading", "fields": [
    {"name": "gone", "type": "string"}, {"name": "celsius", "type": "int"}]}"#;

const NEW: &str = r#"{"type": "record", "name": "Reading", "fields": [
    {"name": "celsius", "type": "double"}, {"name": "place", "type": "string", "default": "Kyiv"}]}"#;

/// It answers as Confluent's does, an unknown id with its error code.
const REGISTRY: &str = r#"
import http.server, os, sys
class Registry(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path = os.path.join(sys.argv[1], self.path.split("?")[0].lstrip("/"))
        known = os.path.isfile(path)
        body = open(path, "rb").read() if known else b'{"error_code": 40403, "message": "Schema not found"}'
        self.send_response(200 if known else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Registry).serve_forever()
"#;

/// A registry of files: what it is asked for is what they are called.
fn registry(directory: &Path, id: u64, schema: &str) -> (KilledOnDrop, String) {
    let ids = directory.join("schemas/ids");
    std::fs::create_dir_all(&ids).unwrap();
    let answer = serde_json::json!({"schema": schema}).to_string();
    std::fs::write(ids.join(id.to_string()), answer).unwrap();
    let port = free_port();
    let mut command = program("python3", "python3");
    command.args(["-c", REGISTRY]).arg(directory);
    command.arg(port.to_string()).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let server = KilledOnDrop::start(&mut command);
    soon("the registry listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    (server, format!("http://127.0.0.1:{port}"))
}

#[test]
fn records_are_read_by_the_schema_that_the_registry_has_for_their_id() {
    let _machine = shared();
    let directory = tempfile::tempdir().unwrap();
    let [old, new, ids] = ["old.avsc", "new.avsc", "ids.json"].map(|name| directory.path().join(name));
    std::fs::write(&old, OLD).unwrap();
    std::fs::write(&new, NEW).unwrap();
    std::fs::write(&ids, r#"{"7": "old.avsc"}"#).unwrap();
    let (_server, url) = registry(directory.path(), 7, OLD);
    let broker = Mosquitto::start();
    for (encoding, place, unknown) in [
        ("confluent", &*url, format!("schema 8: {url}: it knows no such id; its records go to the dead")),
        ("apicurio", ids.to_str().unwrap(), String::new()),
    ] {
        let file = directory.path().join(format!("{encoding}.db"));
        let (save, port) = (format!("sqlite:{}", file.display()), free_port());
        let (all, live) = (broker.url(&format!("{encoding}/#")), format!(":{port}"));
        let arguments =
            [&all, "--schema", new.to_str().unwrap(), "--save", &save, "--avro-encoding", encoding];
        let ingester =
            Ingester::start(arguments.iter().chain(&["--schema-registry", place, "--live", &live]));
        let has = |line: &str| Ingester::page(port).is_some_and(|page| page.lines().any(|it| it == line));
        soon("it is subscribed", || has("weir_ingest_subscribed 1"));
        let topic = broker.url(&format!("{encoding}/{{seq}}"));
        let payload = format!("avro:{}", old.display());
        for (id, count) in [("7", "20"), ("8", "5")] {
            let message = ["publish", &topic, "-q", "1", "--rate", "200/s", "--payload", &payload];
            let framed = ["--count", count, "--avro-encoding", encoding, "--schema-id", id];
            assert_eq!(
                measure(message.iter().chain(&framed)).total("mqtt.acknowledged"),
                count.parse::<f64>().unwrap()
            );
        }
        soon("they came", || has("weir_ingest_messages_total 25"));
        let settled = ingester.stop();
        assert_eq!((settled.total("saved"), settled.total("dead_lettered")), (20, 5), "{}", settled.err);
        assert!(settled.err.contains(&unknown), "{}", settled.err);
        let table = rusqlite::Connection::open(&file).unwrap();
        let count = |query: &str| table.query_row(query, (), |row| row.get::<_, i64>(0)).unwrap();
        let whole = "SELECT count(*) FROM reading WHERE place = 'Kyiv' AND celsius = round(celsius)";
        assert_eq!(count(whole), 20);
        let reasons = "SELECT count(*) FROM reading_dead WHERE reason LIKE '%the schema with id 8 that it was written by%'";
        assert_eq!(count(reasons), 5);
    }
}
