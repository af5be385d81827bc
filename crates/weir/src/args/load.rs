//! What every load takes: how many clients, for how long, and how they come to a server.

use super::values::{spaced, stage};
use clap::{Args, ValueHint};
use std::net::IpAddr;
use std::path::PathBuf;
use weir_engine::lifetime::Lifetime;
use weir_engine::scenario::{Span, StageSpec};

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
