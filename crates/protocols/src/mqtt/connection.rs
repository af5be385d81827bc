//! How clients of MQTT connect: options of CONNECT, users, wills, the path of a WebSocket.

use super::{socket_path, version};
use crate::secret::{first_line, variable};
use clap::{Args, ValueHint};
use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;
use weir_clients::mqtt::{MqttVersion, Qos, Will};
use weir_clients::{Credentials, WorkloadError};
use weir_metrics::parse_duration;
use weir_setting::WILL;

/// The variables with user and password.
const USER: &str = "WEIR_MQTT_USER";
const PASSWORD: &str = "WEIR_MQTT_PASSWORD";

/// What a client's CONNECT says, of a run's clients and of `weir ingest`.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "MQTT")]
pub struct ConnectOptions {
    /// Version of the protocol: 5 or 3.1.1
    #[arg(long, value_name = "VERSION", default_value = "5", value_parser = version)]
    pub mqtt_version: MqttVersion,
    /// User name [environment: WEIR_MQTT_USER]; or in the URL. Of clients of a run a template, as --client-id
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// File whose first line is the password, also of a user in the URL [environment: the password itself in WEIR_MQTT_PASSWORD]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub password_file: Option<PathBuf>,
    /// What client identifiers begin with; the client's number follows. Or a template with {client}, {user} or {random:8} in
    /// it [default: a name of this run's own; of `weir ingest` made from URL, place and table, so that the same command goes on
    /// where it ended]
    #[arg(long, value_name = "TEXT")]
    pub client_id: Option<String>,
    /// Keep sessions, and messages for them, on the broker for TIME after their clients have gone (MQTT 3.1.1: for any time)
    /// [default: clean sessions; of `weir ingest` 24h]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub session: Option<Duration>,
    /// Longest silence of a client; 0s for any
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    pub keep_alive: Duration,
    /// Topic aliases that the broker may use towards a client (MQTT 5); 0 for one that mistakes them
    #[arg(long, value_name = "N", default_value = "64")]
    pub topic_alias_maximum: u16,
}

/// How clients of a run connect.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "MQTT")]
pub struct Connection {
    /// What their CONNECT says.
    #[command(flatten)]
    pub connect: ConnectOptions,
    /// End a client whose broker or link breaks, instead of connecting again for up to a minute
    #[arg(long)]
    pub no_reconnect: bool,
    /// Try the first connection of a client again as well, for up to a minute [default: one that got none has failed]
    #[arg(long)]
    pub retry_connect: bool,
    /// A last will of each client
    #[arg(long, value_name = "TOPIC=TEXT", value_parser = will)]
    pub will: Option<Will>,
    /// Quality of service of the will [default: 0]
    #[arg(long, value_name = "QOS", value_parser = clap::value_parser!(u8).range(..=2))]
    pub will_qos: Option<u8>,
    /// Ask the broker to keep the will
    #[arg(long)]
    pub will_retain: bool,
    /// How long the broker waits for a client to come back before it publishes its will (MQTT 5), in whole seconds
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub will_delay: Option<Duration>,
}

/// Where WebSockets are.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "MQTT")]
pub struct SocketPath {
    /// Path at which a broker of mqtt+ws:// or mqtt+wss:// is asked for a WebSocket
    #[arg(long, value_name = "PATH", default_value = "/mqtt", value_parser = socket_path)]
    pub ws_path: String,
}

/// Users of many clients.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "MQTT")]
pub struct Users {
    /// CSV file with a user and a password a line: each client has the next, and the first again behind the last
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub credentials: Option<PathBuf>,
}

impl Users {
    /// Users and passwords of the file, if one is given.
    ///
    /// # Errors
    /// A file that cannot be read, or a line without a user.
    pub(super) fn read(&self) -> Result<Vec<Credentials>, WorkloadError> {
        let Some(path) = &self.credentials else { return Ok(Vec::new()) };
        let wrong = |words: &dyn Display| WorkloadError::Options(format!("{}: {words}", path.display()));
        let not_csv = || wrong(&"not a file of CSV in UTF-8; write USER,PASSWORD a line");
        let text = weir_files::read_secret(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::InvalidData => not_csv(),
            _ => wrong(&error),
        })?;
        let mut reader =
            csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
        let mut credentials = Vec::new();
        for record in reader.records() {
            // Its words would have what is in the file.
            let record = record.map_err(|_| not_csv())?;
            let field = |position| record.get(position).unwrap_or_default().to_owned();
            let (user, password) = (field(0), field(1));
            if user.is_empty() || record.len() > 2 {
                let line = record.position().map_or(0, csv::Position::line);
                return Err(wrong(&format_args!(
                    "line {line} is not USER,PASSWORD; a comma in either needs quotes"
                )));
            }
            credentials.push(Credentials { user, password });
        }
        if credentials.is_empty() {
            return Err(wrong(&"no user is in it; write USER,PASSWORD a line"));
        }
        Ok(credentials)
    }
}

impl ConnectOptions {
    /// The password of the file, or of the environment.
    pub(super) fn password(&self) -> Result<Option<String>, WorkloadError> {
        self.password_file
            .as_deref()
            .map_or_else(|| Ok(variable(PASSWORD)), |path| first_line(path).map(Some))
    }

    /// The user of flags and environment; one of a URL comes before it.
    pub(super) fn user(&self) -> Option<String> {
        self.user.clone().or_else(|| variable(USER))
    }
}

impl Connection {
    /// The will, with what belongs to it.
    pub(super) fn will(&self) -> Result<Option<Will>, WorkloadError> {
        let Self { will_qos, will_retain, will_delay, .. } = *self;
        let Some(will) = &self.will else {
            if will_qos.is_some() || will_retain || will_delay.is_some() {
                let will = WILL.to("TOPIC=TEXT").beside_flag(" (`will`)");
                let words = format!("will_qos, will_retain and will_delay are of a will; give one by {will}");
                return Err(WorkloadError::Options(words));
            }
            return Ok(None);
        };
        let qos = will_qos.and_then(Qos::from_bits).unwrap_or_default();
        let delay = will_delay.unwrap_or_default();
        Ok(Some(Will { qos, retain: will_retain, delay, ..will.clone() }))
    }
}

impl From<ConnectOptions> for Connection {
    /// Connects again whenever the link breaks, and leaves no will.
    fn from(connect: ConnectOptions) -> Self {
        Self {
            connect,
            no_reconnect: false,
            retry_connect: false,
            will: None,
            will_qos: None,
            will_retain: false,
            will_delay: None,
        }
    }
}

fn will(text: &str) -> Result<Will, String> {
    let (topic, payload) = text.split_once('=').ok_or("write TOPIC=TEXT")?;
    let (topic, payload) = (topic.to_owned(), payload.as_bytes().to_vec());
    Ok(Will { topic, payload, qos: Qos::AtMostOnce, retain: false, delay: Duration::ZERO })
}
