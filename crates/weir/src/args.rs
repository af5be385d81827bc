//! The command line.

use crate::codec::libraries::Library;
use crate::listen::{ListenOptions, listen_address};
use crate::live_page::LiveOptions;
use crate::options::{OptionsOf, Plays, Publishes};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueHint};
use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use weir_clients::mqtt::MqttVersion;
use weir_engine::arrival::Arrival;
use weir_engine::capacity::LoadKind;
use weir_engine::checks::CheckName;
use weir_engine::compare::ChangeLimit;
use weir_engine::lifetime::Lifetime;
use weir_engine::scenario::{BitRateText, Span, StageSpec};
use weir_engine::threshold::Threshold;
use weir_observe::InterfaceName;
use weir_origin::{ChannelType, Fault};
use weir_ts::PacketSize;

/// weir puts a live streaming server under a real load and writes down what it carried.
///
/// Exit codes: 0 passed · 1 internal error · 2 usage · 96 regression · 97 target died or gave no answer · 98 run invalid ·
/// 99 thresholds failed · 104 bad scenario · 105 interrupted · 108 aborted by a threshold.
///
/// WEIR_LOG=debug shows the dialogue of each client on stderr, WEIR_LOG=rtc=debug that of WebRTC alone.
#[derive(Debug, Parser)]
#[command(name = "weir", version, max_term_width = 100, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Everything on this machine, nothing else installed: origin, publisher, viewers, report
    Demo(Demo),
    /// Viewers of a server: rtmp:// rtmps:// · ws:// wss:// (OvenMediaEngine) · whep+http:// whep+https:// ·
    /// http:// https:// (MPEG-TS) · http+flv:// https+flv:// · mirakurun+http:// mirakurun+https:// · mqtt:// mqtts://
    Play(Play),
    /// Publishers to one or several servers: rtmp:// rtmps:// · whip+http:// whip+https:// · mqtt:// mqtts://
    Publish(Publish),
    /// Messages of a broker into a table: received, decoded, saved, then acknowledged; mqtt:// mqtts://
    Ingest(Box<Ingest>),
    /// A scenario file: several workloads, stages, thresholds
    Run(Run),
    /// How many clients a server carries: the largest number at which every threshold holds, and the smallest at which one
    /// does not
    Capacity(Box<Capacity>),
    /// Run every variant of a scenario in random order: which setting of a server is best, or carries most
    Sweep(Box<Sweep>),
    /// Watch a server's processes without a load
    Watch(Watch),
    /// The small server that weir carries: RTMP, WebRTC, MPEG-TS over HTTP as Mirakurun and mirakc serve it, MQTT
    Origin(Origin),
    /// Print or write again the report of a run directory
    Report(Report),
    /// Is it better: runs against runs, figure by figure, each with its interval
    Compare(Compare),
    /// Since when: a figure over all runs of a name, and the runs at which it changed
    History(History),
    /// Check a stored transport stream, packet by packet
    Check(Check),
    /// Avro against JSON: what decoding a record of a schema costs in each
    Codec(Codec),
    /// What this machine can generate, and what stands in the way
    Doctor(Doctor),
    /// Print a JSON Schema: of scenario files, of summary.json of a run, a series, a search or a sweep, or of what compare, history, check and codec write
    Schema(Schema),
}

/// What every load takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct Load {
    /// Clients at once [default: 1, or one a URL and stream for publishers]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) clients: Option<u32>,
    /// Clients started a second while a stage ramps, evenly spaced (20/s) or as a Poisson process (poisson:20/s) [default: 50/s,
    /// or faster to ramp within 5 s]
    #[arg(long, value_name = "RATE", value_parser = spaced)]
    pub(crate) arrival: Option<String>,
    /// Time that a client stays before another comes in its place: 30s, or exp:30s for exponentially distributed times with that
    /// mean [default: as long as it is held]
    #[arg(long, value_name = "TIME")]
    pub(crate) life: Option<Lifetime>,
    /// Time to hold all clients: 30s, 10m; 0 for until Ctrl-C [default: 30s, or as long as --count takes]
    #[arg(short, long, value_name = "TIME")]
    pub(crate) duration: Option<Span>,
    /// A stage, N clients held for TIME, instead of -c and -d; repeat for a table: 500@15s
    #[arg(long = "stage", value_name = "N@TIME", value_parser = stage, conflicts_with_all = ["clients", "duration"])]
    pub(crate) stages: Vec<StageSpec>,
    #[command(flatten)]
    pub(crate) of_clients: ClientOptions,
}

/// How clients come to a server, whatever their number.
#[derive(Clone, Debug, Args)]
pub(crate) struct ClientOptions {
    /// Streams that `{i}` in a URL stands for, 0 to N - 1; each of the two needs the other
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) streams: Option<u32>,
    /// Time after each ramp that is left out of the figures [default: 2s]
    #[arg(long, value_name = "TIME")]
    pub(crate) warmup: Option<Span>,
    /// Time given for goodbyes at the end [default: 1s]
    #[arg(long, value_name = "TIME")]
    pub(crate) drain: Option<Span>,
    /// Longest stay in each phase before playing: connect, handshake, request, media [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<Span>,
    /// Local address to connect from; repeat to use several in turn
    #[arg(long, value_name = "IP")]
    pub(crate) bind_addr: Vec<IpAddr>,
    /// Take any certificate of the servers that are played from or published to; not of --prometheus and --node-exporter
    #[arg(long, conflicts_with = "cacert")]
    pub(crate) insecure: bool,
    /// PEM file of certificates to trust; the server's own may be among them
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) cacert: Option<PathBuf>,
    /// PEM file of the certificate to show to a server that asks for one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// PEM file of its private key
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Name of the run in reports [default: the verb]
    #[arg(long, value_name = "TEXT")]
    pub(crate) name: Option<String>,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
}

impl ClientOptions {
    /// Whether any option of clients is given.
    pub(crate) fn is_any(&self) -> bool {
        let Self { streams, warmup, drain, timeout, bind_addr, insecure, cacert, cert, key, name, seed } =
            self;
        let spans = [warmup, drain, timeout].into_iter().any(Option::is_some);
        let files = [cacert, cert, key].into_iter().any(Option::is_some);
        streams.is_some()
            || spans
            || files
            || name.is_some()
            || *insecure
            || *seed != 0
            || !bind_addr.is_empty()
    }
}

/// What every run takes.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "The run")]
pub(crate) struct RunOptions {
    /// The target's processes: name=nginx (name=nginx+ if several servers are meant), pid=123 or port=1935; repeatable
    #[arg(long, value_name = "WHAT", value_parser = watch_text)]
    pub(crate) watch: Vec<String>,
    /// What is asked of the target, exit code 99 if it fails: 'startup.p99 < 1s'; repeatable
    #[arg(long = "threshold", value_name = "EXPR")]
    pub(crate) thresholds: Vec<Threshold>,
    /// A threshold that ends the run as soon as it fails, exit code 108; repeatable
    #[arg(long, value_name = "EXPR")]
    pub(crate) abort: Vec<Threshold>,
    /// Checks of the verdict whose reasons are waived, and shown as waived: steal,generator-pause; repeatable
    #[arg(long, value_name = "CHECKS", value_delimiter = ',')]
    pub(crate) accept: Vec<CheckName>,
    /// Threads for viewers [default: half the cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) shards: Option<u32>,
    /// A label that the run carries: site=lab; repeatable
    #[arg(long = "tag", value_name = "K=V", value_parser = tag)]
    pub(crate) tags: Vec<(String, String)>,
    /// Run directory, new or empty [default: weir-runs/NAME-TIME]
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) print: Print,
    /// Show and write down the keys of RTMP streams, what stands behind the application in a URL; without it a number stands
    /// for each: rtmp://host/app/…1
    #[arg(long)]
    pub(crate) show_keys: bool,
    /// No live view; plain lines, as into a pipe
    #[arg(long)]
    pub(crate) no_tui: bool,
    /// A plain line every second instead of every five; twice (`-vv`): each client's dialogue with the server, too
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    // Behind a flattened struct arguments stand under its heading, so it comes last.
    #[command(flatten)]
    pub(crate) live: LiveOptions,
    #[command(flatten)]
    pub(crate) machine: Machine,
    /// Time before the load in which the target's machine is read, so that increases can be told
    /// [default: 3s with --prometheus or --node-exporter, otherwise none]
    #[arg(long, value_name = "TIME")]
    pub(crate) base: Option<Span>,
}

/// How the target's machine is read.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "The target's machine")]
pub(crate) struct Machine {
    /// A Prometheus that collects from the target's machine: http://host:9090
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) prometheus: Option<String>,
    /// Which machine of that Prometheus, by its label `instance`: target:9100
    #[arg(long, value_name = "NAME", requires = "prometheus")]
    pub(crate) prometheus_instance: Option<String>,
    /// The node_exporter of the target's machine, asked once a second: http://host:9100
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) node_exporter: Option<String>,
    /// An interface of the target's machine whose bytes count: eth0, en*; repeatable
    /// [default: eth* and en*; lo for a target on this machine]
    #[arg(long = "interface", value_name = "NAME")]
    pub(crate) interfaces: Vec<InterfaceName>,
}

/// What is printed at the end.
#[derive(Clone, Debug, Args)]
pub(crate) struct Print {
    /// Where the summary goes as JSON; - for stdout, instead of the text
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
    /// What is printed at the end
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = weir_report::FORMATS)]
    pub(crate) format: String,
    /// Print errors only; the artefacts are written all the same
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// `weir play`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Play {
    /// Where to play: rtmp://host:1935/app/stream, ws://host:3333/app/stream, whep+http://host/whep/stream,
    /// http://host/x.ts, http://host/app/stream.flv, mirakurun+http://host:40772, mqtt://host/topic/#; of several, viewers take one after the other
    #[arg(required = true, value_name = "URL")]
    pub(crate) urls: Vec<String>,
    #[command(flatten)]
    pub(crate) load: Load,
    /// What the source sends to each viewer [default: read off the stream]
    #[arg(long, value_name = "BITRATE")]
    pub(crate) expect: Option<BitRateText>,
    #[command(flatten)]
    pub(crate) options: OptionsOf<Plays>,
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

/// `weir publish`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Publish {
    /// Where to publish: rtmp://host:1935/app/stream, whip+http://host/whip/stream, mqtt://host/topic/{seq};
    /// several get the same stream
    #[arg(required = true, value_name = "URL")]
    pub(crate) urls: Vec<String>,
    #[command(flatten)]
    pub(crate) load: Load,
    /// RTMP: play each stream with one viewer of weir's own, and fail if its pictures or its sound never come; a server takes
    /// a codec that it cannot handle, and shows nothing of it
    #[arg(long, conflicts_with = "stages")]
    pub(crate) verify: bool,
    #[command(flatten)]
    pub(crate) options: OptionsOf<Publishes>,
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

/// `weir ingest`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Ingest {
    /// What to subscribe to: mqtt://host/topic/#, mqtts://user@host/$share/NAME/topic/#
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// Where rows go: sqlite:FILE, postgres://user@host:port/database, or parquet:DIR, to which each batch adds a file:
    /// give it large ones
    #[arg(long, value_name = "WHERE")]
    pub(crate) save: String,
    /// File whose first line is the password of the database [environment: the password itself in PGPASSWORD]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) save_password_file: Option<PathBuf>,
    /// The Avro schema of the records (.avsc) [default: none; payloads are saved as they come]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) schema: Option<PathBuf>,
    /// How records are encoded: avro or json
    #[arg(long, value_name = "FORMAT", default_value = "avro", value_parser = ["avro", "json"])]
    pub(crate) format: String,
    /// What is around records in Avro: schemaless, single-object or container
    #[arg(long, value_name = "NAME", default_value = "schemaless", value_parser = ["schemaless", "single-object", "container"])]
    pub(crate) avro_encoding: String,
    /// The table; made from the schema, or found to fit it [default: the schema's name]
    #[arg(long, value_name = "NAME")]
    pub(crate) table: Option<String>,
    /// Records that are committed together, at most; 1 for one insert a record [default: 1000; of Parquet 50000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) batch: Option<u32>,
    /// How long the first record of a batch waits for others, at most [default: 50ms; of Parquet 1s]
    #[arg(long, value_name = "TIME")]
    pub(crate) linger: Option<Span>,
    /// Stop after N records, dead letters included [default: go on until SIGTERM or Ctrl-C]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// Stop after TIME
    #[arg(short, long, value_name = "TIME")]
    pub(crate) duration: Option<Span>,
    /// The largest message that is taken; what is larger goes to the dead letters
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = size)]
    pub(crate) max_message: usize,
    /// Answer Prometheus at this address under /metrics; a bare :port is on 127.0.0.1, port 0 picks a free one
    #[arg(long, value_name = "[HOST]:PORT", value_parser = listen_address)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Quality of service: 1, 2, or 0, which loses what is not saved when weir ends; `-q 1` for short
    #[arg(long, value_name = "QOS", default_value_t = 1, value_parser = clap::value_parser!(u8).range(..=2))]
    pub(crate) qos: u8,
    /// Version of the protocol: 5 or 3.1.1
    #[arg(long, value_name = "VERSION", default_value = "5", value_parser = weir_protocols::mqtt::version)]
    pub(crate) mqtt_version: MqttVersion,
    /// User name [environment: WEIR_MQTT_USER]; or in the URL
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// File whose first line is the password [environment: the password itself in WEIR_MQTT_PASSWORD]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) password_file: Option<PathBuf>,
    /// The name that the broker keeps the session under [default: made from URL, place and table, so that the same
    /// command goes on where it ended]
    #[arg(long, value_name = "TEXT")]
    pub(crate) client_id: Option<String>,
    /// How long the broker keeps messages for an ingester that is gone (MQTT 5; in 3.1.1 for any time)
    #[arg(long, value_name = "TIME", default_value = "24h")]
    pub(crate) session: Span,
    /// Longest silence of weir; 0s for any
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) keep_alive: Span,
    /// Messages that may be unacknowledged (MQTT 5; a broker of 3.1.1 decides itself) [default: four batches, 100 at
    /// least]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) window: Option<u16>,
    /// Take any certificate of the broker
    #[arg(long, conflicts_with = "cacert")]
    pub(crate) insecure: bool,
    /// PEM file of certificates to trust; the server's own may be among them
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) cacert: Option<PathBuf>,
    /// PEM file of the certificate to show to a server that asks for one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// PEM file of its private key
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Where the summary goes as JSON; - for stdout, instead of the lines
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
    /// Print errors only
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// `weir run`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Run {
    /// The scenario file (YAML; `weir schema scenario` prints its schema)
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Replace HOST:PORT in every URL of the scenario. The file's `watch` stays unless --watch is given; its `prometheus` and
    /// `node_exporter`, which are about another machine, are left out
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) target: Option<String>,
    /// Clients, instead of those that the scenario says, of its one workload that plays, or publishes if none plays
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) clients: Option<u32>,
    /// Time to hold them, instead of each `duration` and of each stage's `hold`; 0 for until Ctrl-C
    #[arg(short, long, value_name = "TIME")]
    pub(crate) duration: Option<Span>,
    /// Any other key of the scenario, as if it stood in the file: seed=3, workloads.0.bitrate=2mbps, workloads.NAME.clients=5;
    /// repeatable
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = tag)]
    pub(crate) set: Vec<(String, String)>,
    /// Instead of `ingest`: leave the messages to another consumer, and ask what came of them: http://HOST:PORT/csp/mqtt/rest of
    /// an IRIS gateway, or sql:postgres://user@host/database#TABLE (password: save_password_file, or PGPASSWORD)
    #[arg(long, value_name = "URL")]
    pub(crate) probe: Option<String>,
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

/// `weir capacity`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Capacity {
    /// A URL to play, as `weir play` takes it, or to publish to for --of messages and publishers; or a scenario file: its one
    /// workload that plays, or publishes if none plays, is given ever more clients
    #[arg(value_name = "URL|FILE")]
    pub(crate) what: String,
    #[command(flatten)]
    pub(crate) search: SearchOptions,
    /// FILE: any other key of the scenario, as if it stood in the file: seed=3, workloads.0.bitrate=2mbps; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = tag)]
    pub(crate) set: Vec<(String, String)>,
    /// What the source sends to each viewer [default: read off the stream]
    #[arg(long, value_name = "BITRATE")]
    pub(crate) expect: Option<BitRateText>,
    #[command(flatten)]
    pub(crate) of_clients: ClientOptions,
    #[command(flatten)]
    pub(crate) options: OptionsOf<Plays>,
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

/// How a capacity is searched for.
#[derive(Clone, Debug, Args)]
pub(crate) struct SearchOptions {
    /// What is counted: clients; clients a second of --clients (arrivals); MQTT messages a second of all publishers; publishers;
    /// or streams with their viewers [default: what the scenario says at `find`, clients otherwise]
    #[arg(long, value_name = "WHAT", value_parser = load_kind())]
    pub(crate) of: Option<LoadKind>,
    /// --of arrivals: how many clients come at each rate [default: those of the scenario]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) clients: Option<u32>,
    /// The load to begin with [default: 10; 1,000 messages a second; 1 stream]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) from: Option<u32>,
    /// The largest load that may be tried [default: what the open files allowed here, `ulimit -Hn`, are enough for]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) most: Option<u32>,
    /// How far the number that is too much may lie above the one that is carried
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = precision)]
    pub(crate) precision: f64,
    /// Clients started a second while a load is approached from below
    #[arg(long, value_name = "RATE", default_value = "100/s", value_parser = arrival)]
    pub(crate) arrival: String,
    /// Time that a load is held to find the bounds, in slices of --slice
    #[arg(long, value_name = "TIME", default_value = "15s")]
    pub(crate) hold: Span,
    /// Time that a bound is held to confirm it: three times the lower one, twice the upper one
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) confirm: Span,
    /// Time over which thresholds are judged; at least two groups of pictures
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub(crate) slice: Span,
    /// Time for a whole search: what is known then is said as it is
    #[arg(long, value_name = "TIME", default_value = "20m")]
    pub(crate) budget: Span,
    /// A command that is run before each trial: a restart of the server
    #[arg(long, value_name = "CMD")]
    pub(crate) prepare: Option<String>,
}

/// `weir sweep`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Sweep {
    /// The scenario file with `variants` or a `matrix`
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// What is found out about each variant, instead of one run's figures [default: what the scenario says at `find`]
    #[arg(long, value_name = "WHAT", value_parser = ["capacity"])]
    pub(crate) find: Option<String>,
    /// Without a search: the figure that says which variant is best, such as startup.p99, cpu.nginx or bitrate [default: the
    /// CPU that what is watched needs for each client; the median startup if nothing is]
    #[arg(long, value_name = "FIGURE")]
    pub(crate) by: Option<String>,
    /// Replace HOST:PORT in every URL of the scenario, as `weir run` does
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) target: Option<String>,
    /// Any other key of the scenario, as if it stood in the file: repeat=4, order=interleaved, workloads.NAME.clients=5;
    /// repeatable
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = tag)]
    pub(crate) set: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) search: SearchOptions,
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

/// `weir demo`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Demo {
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

/// `weir watch`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Watch {
    /// The server of this name; with + at its end all servers of it
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Vec<String>,
    /// This process
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Vec<u32>,
    /// Whoever listens on this TCP port
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Vec<u16>,
    /// PEM file of certificates to trust
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) cacert: Option<PathBuf>,
    /// Take any certificate of --prometheus and --node-exporter
    #[arg(long, conflicts_with = "cacert")]
    pub(crate) insecure: bool,
    /// For how long [default: until Ctrl-C]
    #[arg(short, long, value_name = "TIME")]
    pub(crate) duration: Option<Span>,
    /// One line of JSON a second instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) machine: Machine,
}

/// `weir origin`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Origin {
    #[command(flatten)]
    pub(crate) listen: ListenOptions,
    /// --rtc: a TURN server that viewers are told of: all by WHEP, and ws://…?transport=tcp. It is reached over TCP, with
    /// ?transport=udp over UDP, with turns: over TLS. Others can read the command line, but not this variable of the
    /// environment
    #[arg(
        long,
        value_name = "turn:USER:PASSWORD@HOST[:PORT]",
        env = "WEIR_TURN",
        hide_env_values = true,
        requires = "rtc"
    )]
    pub(crate) turn: Option<String>,
    /// --http: made services, all GR or a number of each kind: 8, or GR:4,BS:3,CS:1 [default: 8, or none beside --file]
    #[arg(long, value_name = "N", value_parser = services, requires = "http")]
    pub(crate) services: Option<Services>,
    /// --http: constant bit rate of each made service, null packets included
    #[arg(long, value_name = "BITRATE", default_value = "15mbps")]
    pub(crate) bitrate: BitRateText,
    /// --http: a stored transport stream as a service, looped without a break; repeatable
    #[arg(long = "file", value_name = "FILE", value_hint = ValueHint::FilePath, requires = "http")]
    pub(crate) files: Vec<PathBuf>,
    /// Certificate chain (PEM): listen for RTMPS, HTTPS, WSS and MQTTS instead
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// The certificate's key (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Worker threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) workers: u16,
    /// Time for which packets to a viewer are merged into one write; 0s sends each at once [default: 350ms, 40ms of a tuner]
    #[arg(long, value_name = "TIME")]
    pub(crate) merge: Option<Span>,
    /// Start viewers at the next keyframe instead of at the last one
    #[arg(long)]
    pub(crate) no_gop_cache: bool,
    /// Media that a slow viewer may fall behind before it loses some [default: 10s, 2s of a tuner]
    #[arg(long, value_name = "TIME")]
    pub(crate) queue: Option<Span>,
    /// Refuse viewers of a stream that nobody publishes, instead of letting them wait
    #[arg(long)]
    pub(crate) refuse_missing: bool,
    /// Publish what comes in to another server too: rtmp://host/app; repeatable
    #[arg(long, value_name = "URL")]
    pub(crate) forward: Vec<String>,
    /// A scripted fault, such as 'delay 80ms' or 'drop unit=every:100 viewer=3'; repeatable
    #[arg(long = "fault", value_name = "FAULT")]
    pub(crate) faults: Vec<Fault>,
    /// End a connection whose peer has not said what it wants, TLS included [default: 15s]
    #[arg(long, value_name = "TIME")]
    pub(crate) request_timeout: Option<Span>,
    /// End a connection whose peer neither sends nor acknowledges anything [default: 10m]
    #[arg(long, value_name = "TIME")]
    pub(crate) idle_timeout: Option<Span>,
    /// For how long [default: until Ctrl-C]
    #[arg(short, long, value_name = "TIME")]
    pub(crate) duration: Option<Span>,
    /// Name streams by their keys in what is printed; without it a number stands for each
    #[arg(long)]
    pub(crate) show_keys: bool,
    /// End when stdin ends, as it does when whoever started it is gone
    #[arg(long, hide = true)]
    pub(crate) until_stdin_ends: bool,
}

/// `weir report`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Report {
    /// A run directory
    #[arg(value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
    #[command(flatten)]
    pub(crate) print: Print,
    /// Also write summary.json and the reports into the run directory again
    #[arg(long)]
    pub(crate) write: bool,
}

/// `weir compare`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Compare {
    /// The base, and what is compared with it: a run directory, a folder of runs, a series, or a variant of one (DIR:VARIANT). One
    /// series alone: its variants with its first
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath, required_unless_present = "base", conflicts_with_all = ["base", "to"])]
    pub(crate) sides: Vec<String>,
    /// Directories that are the base together: --base weir-runs/old-* --to weir-runs/new-*
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, num_args = 1.., requires = "to")]
    pub(crate) base: Vec<String>,
    /// Directories that are compared with it together
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, num_args = 1.., requires = "base")]
    pub(crate) to: Vec<String>,
    /// The largest change that is none: a figure whose interval lies within it is the same
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = margin)]
    pub(crate) margin: f64,
    /// A change that is a regression, exit code 96 if its interval lies wholly beyond it: 'startup.p99 > +10%', 'fps < -1';
    /// repeatable
    #[arg(long, value_name = "EXPR")]
    pub(crate) fail_on: Vec<ChangeLimit>,
    /// A figure to compare, or a part of its name; repeatable [default: those of a series' table]
    #[arg(long = "figure", value_name = "NAME")]
    pub(crate) figures: Vec<String>,
    /// Compare what is not alike, and say so: other loads, machines, versions of weir, runs that cannot be believed
    #[arg(long)]
    pub(crate) anyway: bool,
    /// Where the comparison goes as JSON; - for stdout, instead of the text
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
    /// What is printed
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = weir_report::COMPARISON_FORMATS)]
    pub(crate) format: String,
    /// Print errors only
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// `weir history`.
#[derive(Clone, Debug, Args)]
pub(crate) struct History {
    /// A folder with run directories, at any depth up to four: weir-runs
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
    /// Name of the runs; needed if there are several
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// A label that the runs carry: site=lab; repeatable
    #[arg(long = "tag", value_name = "K=V", value_parser = tag)]
    pub(crate) tags: Vec<(String, String)>,
    /// A figure to look at, or a part of its name; repeatable [default: those of a series' table]
    #[arg(long = "figure", value_name = "NAME")]
    pub(crate) figures: Vec<String>,
    /// Where the history goes as JSON; - for stdout, instead of the text
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
    /// What is printed
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = weir_report::COMPARISON_FORMATS)]
    pub(crate) format: String,
}

/// `weir check`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Check {
    /// A transport stream; - for stdin
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// What is asked of the stream, exit code 99 if it fails: 'ts.lost_packets == 0'; repeatable
    #[arg(long = "threshold", value_name = "EXPR")]
    pub(crate) thresholds: Vec<Threshold>,
    /// Bytes from one sync byte to the next: 188, 192 or 204 [default: found out]
    #[arg(long, value_name = "BYTES", value_parser = packet_size)]
    pub(crate) packet_size: Option<PacketSize>,
    /// Findings of each kind that are listed; the rest is counted only
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(..=10_000))]
    pub(crate) findings: u32,
    /// Where the result goes as JSON; - for stdout, instead of the text
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
    /// Print errors only
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// `weir codec`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Codec {
    /// The Avro schema of a record (.avsc)
    #[arg(value_name = "SCHEMA", value_hint = ValueHint::FilePath)]
    pub(crate) schema: PathBuf,
    /// Different records to decode, made from the seed
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) records: u32,
    /// Who decodes: weir, apache-avro, serde_json, sonic-rs; by commas. The first of each encoding are
    /// compared, weir where none is named; the others stand beside them
    #[arg(
        long = "decoder",
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "weir",
        hide_possible_values = true,
        conflicts_with = "save"
    )]
    pub(crate) decoders: Vec<Library>,
    /// How often each encoding is measured, alternately
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub(crate) repetitions: u32,
    /// What is around a record in Avro: schemaless, single-object or container
    #[arg(long, value_name = "NAME", default_value = "schemaless", value_parser = ["schemaless", "single-object", "container"])]
    pub(crate) avro_encoding: String,
    /// Save the records as well: sqlite:FILE, postgres://user@host/database or parquet:DIR; may be repeated. The tables weir_codec_avro
    /// and weir_codec_json are emptied first
    #[arg(long, value_name = "PLACE")]
    pub(crate) save: Vec<String>,
    /// File whose first line is the password of the database; else PGPASSWORD
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) save_password_file: Option<PathBuf>,
    /// Records of a transaction
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) batch: u32,
    /// Seed of the records
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Where the result goes as JSON; - for stdout, instead of the text
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
    /// Print errors only
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// `weir doctor`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Doctor {
    /// Look at the limits only, measure nothing
    #[arg(long)]
    pub(crate) no_load: bool,
    /// Highest number of clients to try
    #[arg(long, value_name = "N", default_value_t = 8_000, value_parser = clap::value_parser!(u32).range(100..))]
    pub(crate) most: u32,
}

/// `weir schema`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Schema {
    /// Of what
    #[arg(value_parser = ["scenario", "summary", "check", "codec", "series", "capacity", "sweep", "compare", "history"])]
    pub(crate) what: String,
}

/// `-q 1` asks for a quality of service, as other MQTT clients have it; a bare `-q` for quiet.
pub(crate) fn qos_spelled_out(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut spelled: Vec<OsString> = Vec::new();
    for argument in arguments {
        let is_qos = ["0", "1", "2"].iter().any(|qos| argument == *qos);
        if let Some(last) = spelled.last_mut().filter(|last| is_qos && *last == "-q") {
            *last = "--qos".into();
        }
        spelled.push(argument);
    }
    spelled
}

fn stage(text: &str) -> Result<StageSpec, String> {
    let wrong = || format!("'{text}' is not a stage; write clients@time, such as 500@15s");
    let (clients, hold) = text.split_once('@').ok_or_else(wrong)?;
    let clients = clients.trim().parse().map_err(|_| wrong())?;
    let hold: Span = hold.trim().parse().map_err(|error| format!("{error}"))?;
    Ok(StageSpec { clients, hold, ramp: None })
}

fn spaced(text: &str) -> Result<String, String> {
    text.parse::<Arrival>().map(|_| text.to_owned()).map_err(|error| error.to_string())
}

fn arrival(text: &str) -> Result<String, String> {
    weir_metrics::parse_rate(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

fn load_kind() -> impl TypedValueParser<Value = LoadKind> {
    let names = LoadKind::ALL.map(LoadKind::name);
    PossibleValuesParser::new(names).map(|name| LoadKind::named(&name).unwrap_or_default())
}

fn precision(text: &str) -> Result<f64, String> {
    let share = weir_metrics::parse_quantity(text).map_err(|error| error.to_string())?.value;
    let fits = (0.001..=1.0).contains(&share);
    if fits {
        Ok(share)
    } else {
        Err(format!("'{text}' is no share from 0.1% to 100%; write for example 5%"))
    }
}

fn margin(text: &str) -> Result<f64, String> {
    let share = weir_metrics::parse_quantity(text).map_err(|error| error.to_string())?.value;
    let fits = (0.0..=1.0).contains(&share);
    if fits { Ok(share) } else { Err(format!("'{text}' is no share up to 100%; write for example 2%")) }
}

fn watch_text(text: &str) -> Result<String, String> {
    text.parse::<weir_observe::Watch>().map(|_| text.to_owned()).map_err(|error| error.to_string())
}

fn packet_size(text: &str) -> Result<PacketSize, String> {
    match text {
        "188" => Ok(PacketSize::Plain),
        "192" => Ok(PacketSize::Timestamped),
        "204" => Ok(PacketSize::ReedSolomon),
        _ => Err(format!("'{text}' is no size of a packet; known: 188, 192, 204")),
    }
}

fn tag(text: &str) -> Result<(String, String), String> {
    let (key, value) =
        text.split_once('=').ok_or_else(|| format!("'{text}' is not a tag; write key=value"))?;
    Ok((key.to_owned(), value.to_owned()))
}

/// How many made services, of which kinds.
pub(crate) type Services = Vec<(ChannelType, u16)>;

/// `8`, or `GR:4,BS:2`.
fn services(text: &str) -> Result<Services, String> {
    let wrong = || format!("'{text}' is no number of services; write 8, or GR:4,BS:3,CS:1");
    let number = |text: &str| text.trim().parse::<u16>().ok().filter(|n| (1..=1_000).contains(n));
    if let Some(all) = number(text) {
        return Ok(vec![(ChannelType::Gr, all)]);
    }
    let kinds = text.split(',').map(|part| {
        let (kind, count) = part.split_once(':').ok_or_else(wrong)?;
        Ok((kind.trim().parse().map_err(|_| wrong())?, number(count).ok_or_else(wrong)?))
    });
    kinds.collect()
}

/// `955`, `64KiB`, `16MiB`, up to what MQTT has room for.
fn size(text: &str) -> Result<usize, String> {
    let wrong = || format!("'{text}' is no size; write 955, 64KiB or 16MiB, at most 256MiB");
    let (number, unit) = match text.trim() {
        text if text.ends_with("MiB") => (text.trim_end_matches("MiB"), 1 << 20),
        text if text.ends_with("KiB") => (text.trim_end_matches("KiB"), 1 << 10),
        text => (text, 1),
    };
    let number: usize = number.trim().parse().map_err(|_| wrong())?;
    number.checked_mul(unit).filter(|size| (1..=256 << 20).contains(size)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_bare_port_listens_on_loopback_only() {
        assert_eq!(listen_address(":1935").unwrap().to_string(), "127.0.0.1:1935");
        assert_eq!(listen_address("0.0.0.0:1935").unwrap().to_string(), "0.0.0.0:1935");
        assert!(listen_address("1935").is_err());
    }

    #[test]
    fn services_are_counted_by_kind() {
        assert_eq!(services("8").unwrap(), [(ChannelType::Gr, 8)]);
        assert_eq!(services("gr:4,BS:2").unwrap(), [(ChannelType::Gr, 4), (ChannelType::Bs, 2)]);
        assert!(services("0").is_err() && services("GR").is_err() && services("XX:1").is_err());
    }

    #[test]
    fn q_with_a_number_is_the_quality_of_service_and_without_one_quiet() {
        let parse = |text: &str| {
            let Verb::Publish(args) =
                Cli::parse_from(qos_spelled_out(text.split(' ').map(OsString::from))).verb
            else {
                panic!("{text}")
            };
            (args.options.given().texts("qos").concat(), args.run.print.quiet)
        };
        assert_eq!(parse("weir publish mqtt://h/t -q 1 -c 2"), ("1".to_owned(), false));
        assert_eq!(parse("weir publish -q mqtt://h/t"), (String::new(), true));
        assert_eq!(parse("weir publish -q 2 -q mqtt://h/t"), ("2".to_owned(), true));
    }

    #[test]
    fn a_stage_is_clients_at_time() {
        assert_eq!(stage("500@15s").unwrap().clients, 500);
        assert!(stage("500").is_err() && stage("@15s").is_err() && stage("5@x").is_err());
    }
}
