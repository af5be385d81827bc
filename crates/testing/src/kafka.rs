//! Kafka from Maven Central, a cluster of one broker (KRaft) on free ports, and its own tools.

use crate::process::{Kept, program, soon};
use crate::{free_port, maven};
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;
use tempfile::TempDir;

/// The version that the tests run, and the last of those before, which many clusters still are.
pub const KAFKA: &str = "4.1.1";
/// The last version before 4.
pub const KAFKA_3: &str = "3.9.1";

/// How long a consumer has for its first record: on a busy machine it takes ten seconds to start.
const FIRST_RECORD: Duration = Duration::from_secs(60);
/// How long nothing may come behind a record before that was all.
const NEXT_RECORD: Duration = Duration::from_secs(4);

/// What all its programs are in.
const POM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/kafka/pom.xml");

/// A running broker, ended with the test.
pub struct Kafka {
    version: &'static str,
    port: u16,
    directory: TempDir,
    process: Kept,
}

/// A record as Kafka's own consumer shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KafkaRecord {
    /// The partition.
    pub partition: u32,
    /// Names and values of its headers.
    pub headers: Vec<(String, String)>,
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
}

impl KafkaRecord {
    /// The value of a header; empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }
}

impl Kafka {
    /// A broker whose topics have two partitions, and which creates none by itself.
    pub fn start() -> Self {
        Self::with(KAFKA, "")
    }

    /// One of a version, with more lines of configuration.
    pub fn with(version: &'static str, lines: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (port, controller) = (free_port(), free_port());
        let place = directory.path().display();
        let lines = format!(
            "process.roles=broker,controller\nnode.id=1\n\
             listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
             advertised.listeners=PLAINTEXT://127.0.0.1:{port}\ncontroller.listener.names=CONTROLLER\n\
             controller.quorum.voters=1@127.0.0.1:{controller}\nlog.dirs={place}/data\nnum.partitions=2\n\
             auto.create.topics.enable=false\noffsets.topic.num.partitions=1\noffsets.topic.replication.factor=1\n\
             group.initial.rebalance.delay.ms=0\n{lines}\n"
        );
        std::fs::write(directory.path().join("properties"), lines).unwrap();
        let mut format = java(version, "64m", "kafka.tools.StorageTool");
        format
            .args(["format", "-t", "AAAAAAAAAAAAAAAAAAAAAA", "-c"])
            .arg(directory.path().join("properties"));
        let made = format.output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let process = Self::process(version, &directory, port);
        Self { version, port, directory, process }
    }

    fn process(version: &str, directory: &TempDir, port: u16) -> Kept {
        let mut command = java(version, "256m", "kafka.Kafka");
        command.arg(directory.path().join("properties"));
        let process = Kept::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
        soon("Kafka listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        process
    }

    /// Its address, `127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The URL of a topic.
    pub fn url(&self, topic: &str) -> String {
        format!("kafka://{}/{topic}", self.address())
    }

    /// Its process identifier.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Ends it as a crash would.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again.
    pub fn go_on(&mut self) {
        self.process = Self::process(self.version, &self.directory, self.port);
    }

    /// Creates a topic with these settings, by Kafka's own tool.
    pub fn create(&self, topic: &str, settings: &[&str]) {
        let mut command = java(self.version, "64m", "org.apache.kafka.tools.TopicCommand");
        command.args(["--bootstrap-server", &self.address(), "--create", "--topic", topic]);
        command.args(settings.iter().flat_map(|setting| ["--config", setting]));
        let made = command.output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stdout));
    }

    /// How many records there are in a topic, by Kafka's own tool; `None` if there is no such topic.
    pub fn count(&self, topic: &str) -> Option<u64> {
        let mut command = java(self.version, "64m", "org.apache.kafka.tools.GetOffsetShell");
        command.args(["--bootstrap-server", &self.address(), "--topic", topic]);
        let out = String::from_utf8(command.output().unwrap().stdout).unwrap();
        // `topic:partition:offset`
        let ends = out.lines().map(|line| line.rsplit(':').next()?.parse::<u64>().ok());
        let ends: Vec<_> = ends.collect::<Option<_>>()?;
        (!ends.is_empty()).then(|| ends.iter().sum())
    }

    /// All records of a topic, as Kafka's own consumer prints them. None may hold a tab, a line feed, or a comma in a header.
    pub fn records(&self, topic: &str) -> Vec<KafkaRecord> {
        self.consume(topic, true)
    }

    /// The same without their values, which may be any bytes.
    pub fn heads(&self, topic: &str) -> Vec<KafkaRecord> {
        self.consume(topic, false)
    }

    fn consume(&self, topic: &str, with_values: bool) -> Vec<KafkaRecord> {
        let mut command = java(self.version, "128m", "org.apache.kafka.tools.consumer.ConsoleConsumer");
        command.args(["--bootstrap-server", &self.address(), "--topic", topic, "--from-beginning"]);
        for what in ["partition", "headers", "key"] {
            command.args(["--property", &format!("print.{what}=true")]);
        }
        command.args(["--property", &format!("print.value={with_values}")]);
        let mut consumer = Kept::start(command.stdout(Stdio::piped()).stderr(Stdio::null()));
        let lines = BufReader::new(consumer.0.stdout.take().unwrap()).lines().map_while(Result::ok);
        let (sender, receiver) = channel();
        let reader = std::thread::spawn(move || lines.for_each(|line| sender.send(line).unwrap_or_default()));
        // `Partition:0	name:value,name:value	key	value`
        let mut records = Vec::new();
        let mut patience = FIRST_RECORD;
        while let Ok(line) = receiver.recv_timeout(patience) {
            patience = NEXT_RECORD;
            records.extend(record(&line));
        }
        consumer.kill();
        reader.join().unwrap();
        records
    }
}

fn record(line: &str) -> Option<KafkaRecord> {
    let mut fields = line.strip_prefix("Partition:")?.splitn(4, '\t');
    let partition = fields.next()?.parse().ok()?;
    let headers = fields.next()?.split(',').filter_map(|header| header.split_once(':'));
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let (key, value) = (fields.next()?.to_owned(), fields.next().unwrap_or_default().to_owned());
    Some(KafkaRecord { partition, headers, key, value })
}

/// A program of Kafka's, with this much memory. It is compiled as fast as can be: none of them runs for long.
fn java(version: &str, memory: &str, class: &str) -> Command {
    let mut command = program("java", "maven");
    command.args([&format!("-Xmx{memory}"), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp"]);
    let version_option = format!("-Dkafka={version}");
    let archives = maven(&format!("kafka-{version}"), POM, &["-DincludeScope=runtime", &version_option]);
    command.arg(archives.join("*")).arg(class);
    command
}
