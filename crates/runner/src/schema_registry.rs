//! Where the schemas of writers are: a registry of Confluent's or Apicurio's, which is asked over HTTP, or a file.
//!
//! A registry is asked once for each id, by the thread that decodes, and may take five seconds for its answer. One that does not
//! answer, or not as a registry, is asked again by whoever waits for the schema: nothing is acknowledged before. That there is no
//! such schema only the registry itself can say (Confluent, "Schema Registry API Reference", error code 40403).

use crate::clear_text::note_of_host;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};
use weir_http::{Http, HttpAddress, HttpTrust, shown_text};
use weir_record::{Schema, SchemaUnavailable, WriterId, WriterSchemas};

/// How long a registry that does not know an id is not asked for it again.
const LEFT_ALONE: Duration = Duration::from_secs(5);

/// Ids that a registry does not know and that are remembered: what is sent to exhaust memory has any number of them.
const REMEMBERED: usize = 1_024;

/// What a registry may be asked in: its own type, and that of any server.
const ACCEPT: &str = "application/vnd.schemaregistry.v1+json, application/json";

/// The variables with user and password.
const USER: &str = "WEIR_REGISTRY_USER";
const PASSWORD: &str = "WEIR_REGISTRY_PASSWORD";

/// The schemas of a registry by its URL, or of a file.
pub(crate) fn writer_schemas(place: &str, trust: &HttpTrust) -> Result<Box<dyn WriterSchemas>, String> {
    let is_url = place.split_once("://").is_some();
    if !is_url {
        return Ok(Box::new(SchemaFile::read(Path::new(place))?));
    }
    let address = HttpAddress::parse(place).ok_or_else(|| {
        format!(
            "'{}' is no URL of a registry; write http://HOST:8081, or the name of a file",
            shown_text(place)
        )
    })?;
    let variable = |name| std::env::var(name).unwrap_or_default();
    let user = variable(USER);
    let address = if user.is_empty() { address } else { address.with_user(&user, &variable(PASSWORD)) };
    if address.shows_secret() {
        note_of_host(address.host());
    }
    let http = Http::new(&address, trust).map_err(|error| format!("{address}: {error}"))?;
    Ok(Box::new(Registry { http, address, lack: SchemaUnavailable::Lasting, unknown: HashMap::new() }))
}

/// A registry on a server.
struct Registry {
    http: Http,
    address: HttpAddress,
    /// What it means that the last schema could not be had.
    lack: SchemaUnavailable,
    /// What it has said of ids that cannot be had, and when.
    unknown: HashMap<u64, (Instant, String)>,
}

/// What a registry answers (Confluent, "Schema Registry API Reference", `GET /schemas/ids/{id}`).
#[derive(Deserialize)]
struct Answer {
    schema: String,
    #[serde(rename = "schemaType")]
    schema_type: Option<String>,
    #[serde(default)]
    references: Vec<Reference>,
}

#[derive(Deserialize)]
struct Reference {
    #[serde(default)]
    name: String,
}

/// The body of an error (Confluent, "Schema Registry API Reference", "Errors").
#[derive(Deserialize)]
struct ErrorAnswer {
    error_code: u32,
}

/// The registry has no schema with this id.
const NO_SUCH_SCHEMA: u32 = 40403;

impl Registry {
    fn ask(&self, id: u64) -> Result<Schema, (SchemaUnavailable, String)> {
        let place = self.address.below(&format!("schemas/ids/{id}"));
        let passing = |words: String| (SchemaUnavailable::Passing, format!("{}: {words}", self.address));
        let unknown = |words: String| (SchemaUnavailable::Lasting, format!("{}: {words}", self.address));
        let (status, body) = self.http.answer(&place, ACCEPT).map_err(|error| passing(error.to_string()))?;
        match status {
            200..=299 => {}
            // The page of a proxy says nothing of schemas.
            404 if error_code(&body) == Some(NO_SUCH_SCHEMA) => {
                return Err(unknown("it knows no such id".to_owned()));
            }
            401 | 403 => {
                let line = format!("{}: HTTP status {status}: set {USER} and {PASSWORD}", self.address);
                return Err((SchemaUnavailable::Forbidden, line));
            }
            status => return Err(passing(format!("HTTP status {status}"))),
        }
        let answer: Answer = serde_json::from_slice(&body)
            .map_err(|_| passing("its answer is not a schema registry's".to_owned()))?;
        if let Some(other) = answer.schema_type.filter(|kind| kind != "AVRO") {
            return Err(unknown(format!("it is a schema of {}, not of Avro", shown_text(&other))));
        }
        Schema::parse(&answer.schema).map_err(|error| {
            let names: Vec<_> = answer.references.iter().map(|it| shown_text(&it.name)).collect();
            let more = match names[..] {
                [] => String::new(),
                _ => format!(
                    "; it refers to schemas of other subjects, which are not read: {}",
                    names.join(", ")
                ),
            };
            unknown(format!("{error}{more}"))
        })
    }
}

impl WriterSchemas for Registry {
    fn find(&mut self, writer: WriterId) -> Result<Schema, String> {
        self.lack = SchemaUnavailable::Lasting;
        let WriterId::Id(id) = writer else {
            return Err(format!("{}: a registry knows ids, and no fingerprints", self.address));
        };
        let is_recent = |since: &Instant| since.elapsed() < LEFT_ALONE;
        if let Some((_, words)) = self.unknown.get(&id).filter(|(since, _)| is_recent(since)) {
            return Err(words.clone());
        }
        match self.ask(id) {
            Ok(schema) => {
                self.unknown.remove(&id);
                Ok(schema)
            }
            Err((lack @ (SchemaUnavailable::Passing | SchemaUnavailable::Forbidden), words)) => {
                self.lack = lack;
                Err(words)
            }
            Err((SchemaUnavailable::Lasting, words)) => {
                if self.unknown.len() >= REMEMBERED {
                    self.unknown.clear();
                }
                if self.unknown.insert(id, (Instant::now(), words.clone())).is_none() {
                    weir_files::warn(&format!("schema {id}: {words}; its records go to the dead letters"));
                }
                Err(words)
            }
        }
    }

    fn lack(&self) -> SchemaUnavailable {
        self.lack
    }
}

/// The code of an error, if a registry has said it.
fn error_code(body: &[u8]) -> Option<u32> {
    serde_json::from_slice::<ErrorAnswer>(body).ok().map(|answer| answer.error_code)
}

/// The schemas of a file, `{"7": "old.avsc", "8": {"type": "record", …}}`. Files are found beside it.
#[derive(Debug)]
struct SchemaFile {
    name: String,
    schemas: HashMap<u64, Schema>,
}

impl SchemaFile {
    fn read(path: &Path) -> Result<Self, String> {
        let name = path.display().to_string();
        let read = |path: &Path| {
            weir_files::read_text(path, weir_files::MOST_TEXT)
                .map_err(|error| format!("{}: {error}", path.display()))
        };
        let json: HashMap<String, Value> = serde_json::from_str(&read(path)?)
            .map_err(|error| format!("{name}: {error}; write for example {{\"7\": \"old.avsc\"}}"))?;
        let mut schemas = HashMap::new();
        for (id, schema) in json {
            let id = id
                .parse()
                .map_err(|_| format!("{name}: '{}' is not an id; write a number", shown_text(&id)))?;
            let (place, text) = match schema {
                Value::String(file) => {
                    let file = path.parent().unwrap_or(Path::new("")).join(file);
                    (file.display().to_string(), read(&file)?)
                }
                schema => (format!("{name}: {id}"), schema.to_string()),
            };
            schemas.insert(id, Schema::parse(&text).map_err(|error| format!("{place}: {error}"))?);
        }
        Ok(Self { name, schemas })
    }
}

impl WriterSchemas for SchemaFile {
    fn find(&mut self, writer: WriterId) -> Result<Schema, String> {
        let found = match writer {
            WriterId::Id(id) => self.schemas.get(&id),
            WriterId::Fingerprint(it) => self.schemas.values().find(|schema| schema.fingerprint() == it),
        };
        found.cloned().ok_or_else(|| format!("{}: it has no such schema", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    const SCHEMA: &str = r#"{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}"#;

    /// A server that gives each request the next of these answers, and then what was asked.
    fn server(answers: Vec<(&'static str, String)>) -> (String, std::thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = format!("http://me:s3cr3t@{}/apis/ccompat/v7", listener.local_addr().unwrap());
        let thread = std::thread::spawn(move || {
            let mut asked = Vec::new();
            for (status, body) in answers {
                let (mut link, _) = listener.accept().unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    link.read_exact(&mut byte).unwrap();
                    head.push(byte[0]);
                }
                asked.push(String::from_utf8(head).unwrap());
                let length = body.len();
                write!(
                    link,
                    "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                )
                .unwrap();
            }
            asked
        });
        (place, thread)
    }

    fn answer(schema: &str, more: &str) -> String {
        format!(r#"{{"schema": {}{more}}}"#, Value::from(schema))
    }

    #[test]
    fn a_registry_is_asked_for_ids_and_unknown_ones_are_not_asked_for_again_at_once() {
        let (place, server) = server(vec![
            ("200 OK", answer(SCHEMA, "")),
            ("404 Not Found", r#"{"error_code": 40403, "message": "Schema not found"}"#.to_owned()),
            ("200 OK", answer("syntax = 1", r#", "schemaType": "PROTOBUF""#)),
            ("200 OK", answer(&SCHEMA.replace("int", "x.Other"), r#", "references": [{"name": "x.Other"}]"#)),
        ]);
        let mut registry = writer_schemas(&place, &HttpTrust::System).unwrap();
        let shown = place.replace("me:s3cr3t@", "");
        assert_eq!(registry.find(WriterId::Id(7)).unwrap(), Schema::parse(SCHEMA).unwrap());
        for _ in 0..3 {
            let unknown = registry.find(WriterId::Id(8)).unwrap_err();
            assert_eq!(unknown, format!("{shown}: it knows no such id"));
        }
        let other = registry.find(WriterId::Id(9)).unwrap_err();
        assert_eq!(other, format!("{shown}: it is a schema of PROTOBUF, not of Avro"));
        let referring = registry.find(WriterId::Id(10)).unwrap_err();
        assert!(
            referring.ends_with("it refers to schemas of other subjects, which are not read: x.Other"),
            "{referring}"
        );
        let asked = server.join().unwrap();
        assert!(asked[0].starts_with("GET /apis/ccompat/v7/schemas/ids/7 HTTP/1.1\r\n"), "{}", asked[0]);
        assert!(asked[0].to_lowercase().contains("authorization: basic bwu6cznjcjn0"), "{}", asked[0]);
    }

    #[test]
    fn a_registry_that_does_not_answer_may_later_and_its_password_is_not_shown() {
        let place = format!("http://me:s3cr3t@127.0.0.1:{}", weir_testing::free_port());
        let mut registry = writer_schemas(&place, &HttpTrust::System).unwrap();
        let first = registry.find(WriterId::Id(1)).unwrap_err();
        assert!(first.ends_with("connection refused: nothing listens there"), "{first}");
        assert!(!first.contains("s3cr3t"), "{first}");
        assert_eq!(registry.lack(), SchemaUnavailable::Passing);
    }

    #[test]
    fn only_a_registry_itself_says_that_it_has_no_such_schema_and_one_answer_says_nothing_of_other_ids() {
        let hiccups = [
            ("503 Service Unavailable", "<html>try later</html>"),
            ("429 Too Many Requests", "{}"),
            ("404 Not Found", "<html>no such page</html>"),
            ("404 Not Found", r#"{"error_code": 404, "message": "HTTP 404 Not Found"}"#),
            ("500 Internal Server Error", r#"{"error_code": 50001}"#),
            ("200 OK", "<html>maintenance</html>"),
        ];
        let unknown = ("404 Not Found", r#"{"error_code": 40403, "message": "Schema not found"}"#);
        let mut answers: Vec<_> =
            hiccups.iter().map(|(status, body)| (*status, (*body).to_owned())).collect();
        answers.extend([
            (unknown.0, unknown.1.to_owned()),
            ("200 OK", answer(SCHEMA, "")),
            ("401 Unauthorized", String::new()),
        ]);
        let (place, server) = server(answers);
        let mut registry = writer_schemas(&place, &HttpTrust::System).unwrap();
        for (status, _) in hiccups {
            registry.find(WriterId::Id(7)).unwrap_err();
            assert_eq!(registry.lack(), SchemaUnavailable::Passing, "{status}");
        }
        registry.find(WriterId::Id(8)).unwrap_err();
        assert_eq!(registry.lack(), SchemaUnavailable::Lasting);
        assert_eq!(registry.find(WriterId::Id(7)).unwrap(), Schema::parse(SCHEMA).unwrap());
        let refused = registry.find(WriterId::Id(9)).unwrap_err();
        assert!(
            refused.ends_with("HTTP status 401: set WEIR_REGISTRY_USER and WEIR_REGISTRY_PASSWORD"),
            "{refused}"
        );
        assert_eq!(registry.lack(), SchemaUnavailable::Forbidden);
        server.join().unwrap();
    }

    #[test]
    fn a_file_has_schemas_by_id_and_by_fingerprint() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ids.json");
        std::fs::write(directory.path().join("old.avsc"), SCHEMA).unwrap();
        let other = SCHEMA.replace("int", "long");
        std::fs::write(&path, format!(r#"{{"7": "old.avsc", "8": {other}}}"#)).unwrap();
        let mut schemas = writer_schemas(path.to_str().unwrap(), &HttpTrust::System).unwrap();
        let (old, new) = (Schema::parse(SCHEMA).unwrap(), Schema::parse(&other).unwrap());
        assert_eq!(schemas.find(WriterId::Id(7)), Ok(old.clone()));
        assert_eq!(schemas.find(WriterId::Fingerprint(new.fingerprint())), Ok(new));
        assert!(schemas.find(WriterId::Id(9)).unwrap_err().ends_with("ids.json: it has no such schema"));
        for (text, words) in [
            ("[]", "write for example {\"7\": \"old.avsc\"}"),
            (r#"{"x": "old.avsc"}"#, "'x' is not an id; write a number"),
            (r#"{"7": "none.avsc"}"#, "none.avsc: No such file or directory (os error 2)"),
            (r#"{"7": "int"}"#, "int: No such file or directory (os error 2)"),
            (r#"{"7": 5}"#, "ids.json: 7: schema: a type is a name, an object or an array; this is a number"),
        ] {
            std::fs::write(&path, text).unwrap();
            let refused = writer_schemas(path.to_str().unwrap(), &HttpTrust::System).err().unwrap();
            assert!(refused.ends_with(words), "{refused}");
        }
    }
}
