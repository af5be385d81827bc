//! Kafka from Maven Central, a cluster of one broker (KRaft) on free ports, and its own tools.

use crate::process::{KilledOnDrop, program, soon};
use crate::{free_port, maven};
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;
use tempfile::TempDir;

/// The version that the tests run, and the last of those before, which many clusters still are.
pub const KAFKA: &str = "4.1.1";
/// The last version before 4.
pub const KAFKA_3: &str = "3.9.1";

/// How long a consumer has for a record: on a busy machine it takes ten seconds to start.
const NEXT_RECORD: Duration = Duration::from_secs(60);

/// What all its programs are in.
const POM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/kafka/pom.xml");

/// A way into a broker: what its listener wants of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// Nothing.
    Open,
    /// TLS.
    Tls,
    /// A login by these mechanisms.
    Login(&'static [&'static str]),
    /// Both, with all mechanisms.
    TlsLogin,
    /// A login by SCRAM-SHA-512 that holds for [`SESSION`].
    ShortLogin,
}

/// How long a login of [`Listener::ShortLogin`] holds.
pub const SESSION: Duration = Duration::from_secs(10);

/// Mechanisms of a login.
const MECHANISMS: [&str; 3] = ["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"];

impl Listener {
    /// Those of [`Kafka::guarded`].
    const ALL: [Self; 7] = [
        Self::Open,
        Self::Tls,
        Self::Login(&["PLAIN"]),
        Self::Login(&["SCRAM-SHA-256"]),
        Self::Login(&["SCRAM-SHA-512"]),
        Self::TlsLogin,
        Self::ShortLogin,
    ];

    fn mechanisms(self) -> &'static [&'static str] {
        match self {
            Self::Open | Self::Tls => &[],
            Self::Login(mechanisms) => mechanisms,
            Self::TlsLogin => &MECHANISMS,
            Self::ShortLogin => &["SCRAM-SHA-512"],
        }
    }

    fn is_tls(self) -> bool {
        matches!(self, Self::Tls | Self::TlsLogin)
    }

    /// Its lines of configuration, as the listener of this name.
    fn lines(self, name: &str) -> String {
        let name = format!("listener.name.{}", name.to_lowercase());
        let mut lines = String::new();
        if !self.mechanisms().is_empty() {
            lines += &format!("{name}.sasl.enabled.mechanisms={}\n", self.mechanisms().join(","));
        }
        for mechanism in self.mechanisms() {
            let module = if *mechanism == "PLAIN" {
                let users = USERS.map(|(user, password)| format!("user_{user}=\"{password}\"")).join(" ");
                format!("plain.PlainLoginModule required {users}")
            } else {
                "scram.ScramLoginModule required".to_owned()
            };
            let mechanism = mechanism.to_lowercase();
            lines +=
                &format!("{name}.{mechanism}.sasl.jaas.config=org.apache.kafka.common.security.{module};\n");
        }
        if self == Self::ShortLogin {
            lines += &format!("{name}.connections.max.reauth.ms={}\n", SESSION.as_millis());
        }
        lines
    }
}

/// Who may log in to a broker of [`Kafka::guarded`], and by which password: `me` may do anything there, `guest` nothing.
pub const USERS: [(&str, &str); 2] = [("me", "s3cr3t"), ("guest", "gu3st")];

/// A user who has no password for SCRAM-SHA-512 and PLAIN, and may do anything.
pub const OLD_USER: (&str, &str) = ("old", "0ld");

/// A running broker, ended with the test.
pub struct Kafka {
    version: &'static str,
    port: u16,
    /// Ways in and their ports.
    listeners: Vec<(Listener, u16)>,
    directory: TempDir,
    process: KilledOnDrop,
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
        Self::with(KAFKA)
    }

    /// One of a version.
    pub fn with(version: &'static str) -> Self {
        Self::listening(version, &[Listener::Open])
    }

    /// One of a version with a listener of each kind, who lets [users](USERS) do what they may. Who comes by [`Listener::Open`] or
    /// [`Listener::Tls`] may do anything.
    pub fn guarded(version: &'static str) -> Self {
        Self::listening(version, &Listener::ALL)
    }

    fn listening(version: &'static str, listeners: &[Listener]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let controller = free_port();
        let place = directory.path().display();
        let listeners: Vec<_> = listeners.iter().map(|listener| (*listener, free_port())).collect();
        let (mut addresses, mut protocols, mut more) = (Vec::new(), Vec::new(), String::new());
        for (number, (listener, port)) in listeners.iter().enumerate() {
            let name = format!("WAY{number}");
            let sasl = if listener.mechanisms().is_empty() { "" } else { "SASL_" };
            let way = if listener.is_tls() { "SSL" } else { "PLAINTEXT" };
            addresses.push(format!("{name}://127.0.0.1:{port}"));
            protocols.push(format!("{name}:{sasl}{way}"));
            more += &listener.lines(&name);
        }
        let is_guarded = listeners.len() > 1;
        if is_guarded {
            let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
            let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
            std::fs::write(directory.path().join("keystore.pem"), key + &certificate).unwrap();
            std::fs::write(directory.path().join("certificate.pem"), certificate).unwrap();
            more += &format!(
                "ssl.keystore.type=PEM\nssl.keystore.location={place}/keystore.pem\n\
                 authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n\
                 super.users=User:ANONYMOUS;User:me;User:old\n"
            );
        }
        let (addresses, protocols) = (addresses.join(","), protocols.join(","));
        let lines = format!(
            "process.roles=broker,controller\nnode.id=1\n\
             listeners={addresses},CONTROLLER://127.0.0.1:{controller}\nadvertised.listeners={addresses}\n\
             listener.security.protocol.map={protocols},CONTROLLER:PLAINTEXT\ninter.broker.listener.name=WAY0\n\
             controller.listener.names=CONTROLLER\ncontroller.quorum.voters=1@127.0.0.1:{controller}\n\
             log.dirs={place}/data\nnum.partitions=2\n\
             auto.create.topics.enable=false\noffsets.topic.num.partitions=1\noffsets.topic.replication.factor=1\n\
             group.initial.rebalance.delay.ms=0\n{more}\n"
        );
        std::fs::write(directory.path().join("properties"), lines).unwrap();
        let mut format = java(version, "64m", "kafka.tools.StorageTool");
        format
            .args(["format", "-t", "AAAAAAAAAAAAAAAAAAAAAA", "-c"])
            .arg(directory.path().join("properties"));
        if is_guarded {
            let of = |mechanism: &str, (user, password): (&str, &str)| {
                format!("{mechanism}=[name={user},password={password}]")
            };
            format.arg("--add-scram").arg(of("SCRAM-SHA-256", OLD_USER));
            for user in USERS {
                format.arg("--add-scram").arg(of("SCRAM-SHA-256", user));
                format.arg("--add-scram").arg(of("SCRAM-SHA-512", user));
            }
        }
        let made = format.output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let port = listeners[0].1;
        let process = Self::process(version, &directory, &listeners);
        Self { version, port, listeners, directory, process }
    }

    fn process(version: &str, directory: &TempDir, listeners: &[(Listener, u16)]) -> KilledOnDrop {
        let mut command = java(version, "256m", "kafka.Kafka");
        command.arg(directory.path().join("properties"));
        let process = KilledOnDrop::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
        // One after the other.
        for (_, port) in listeners {
            soon("Kafka listens", || TcpStream::connect(("127.0.0.1", *port)).is_ok());
        }
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

    /// The address of a listener of [`Kafka::guarded`], `127.0.0.1:PORT`.
    ///
    /// # Panics
    /// It has none like this.
    pub fn address_of(&self, listener: Listener) -> String {
        let found = self.listeners.iter().find(|(it, _)| *it == listener).unwrap();
        format!("127.0.0.1:{}", found.1)
    }

    /// The certificate of its listeners with TLS, as PEM.
    pub fn certificate(&self) -> PathBuf {
        self.directory.path().join("certificate.pem")
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
        self.process = Self::process(self.version, &self.directory, &self.listeners);
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
        self.offsets(topic, "latest")
    }

    /// The sum of the ends of its partitions (`latest`), or of their beginnings (`earliest`).
    fn offsets(&self, topic: &str, time: &str) -> Option<u64> {
        let mut command = java(self.version, "64m", "org.apache.kafka.tools.GetOffsetShell");
        command.args(["--bootstrap-server", &self.address(), "--topic", topic, "--time", time]);
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
        let [first, end] = ["earliest", "latest"].map(|time| self.offsets(topic, time).unwrap_or_default());
        let there = end - first;
        let mut command = java(self.version, "128m", "org.apache.kafka.tools.consumer.ConsoleConsumer");
        command.args(["--bootstrap-server", &self.address(), "--topic", topic, "--from-beginning"]);
        for what in ["partition", "headers", "key"] {
            command.args(["--property", &format!("print.{what}=true")]);
        }
        command.args(["--property", &format!("print.value={with_values}")]);
        let mut consumer = KilledOnDrop::start(command.stdout(Stdio::piped()).stderr(Stdio::null()));
        let lines = BufReader::new(consumer.0.stdout.take().unwrap()).lines().map_while(Result::ok);
        let (sender, receiver) = channel();
        let reader = std::thread::spawn(move || lines.for_each(|line| sender.send(line).unwrap_or_default()));
        // `Partition:0	name:value,name:value	key	value`
        let mut records = Vec::new();
        while (records.len() as u64) < there
            && let Ok(line) = receiver.recv_timeout(NEXT_RECORD)
        {
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
