//! What every load takes: how many clients, for how long, and how they come to a server.

use super::Tls;
use super::values::spaced;
use clap::Args;
use std::net::IpAddr;
use weir_clients::Resolve;
use weir_engine::plan::lifetime::Lifetime;
use weir_engine::scenario::{Span, StageSpec};

/// What every load takes.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct Load {
    /// Concurrent clients [default: 1; publishers: one per URL and stream]
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
    #[arg(long = "stage", value_name = "N@TIME", conflicts_with_all = ["clients", "duration"])]
    pub(crate) stages: Vec<StageSpec>,
    #[command(flatten)]
    pub(crate) of_clients: ClientOptions,
}

/// How clients come to a server, whatever their number.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct ClientOptions {
    /// Streams that `{i}` in a URL stands for, 0 to N - 1; each of the two needs the other
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) streams: Option<u32>,
    /// Time after each ramp that is left out of the figures [default: 2s]
    #[arg(long, value_name = "TIME")]
    pub(crate) warmup: Option<Span>,
    /// Time given for goodbyes at the end [default: 1s]
    #[arg(long, value_name = "TIME", help_heading = "Connections")]
    pub(crate) drain: Option<Span>,
    /// Longest stay in each phase before playing: connect, handshake, request, media [default: 10s]
    #[arg(long, value_name = "TIME", help_heading = "Connections")]
    pub(crate) timeout: Option<Span>,
    /// Addresses of a server's name that clients go to: all in turn, the first that takes a connection, or all of IPv4 or IPv6. Of several,
    /// those that refuse before the run while another accepts are left out [default: all]
    #[arg(long, value_name = "all|first|4|6", help_heading = "Connections")]
    pub(crate) resolve: Option<Resolve>,
    /// Local address to connect from; repeat to use several in turn
    #[arg(long, value_name = "IP", help_heading = "Connections")]
    pub(crate) bind_addr: Vec<IpAddr>,
    /// Name of the run in reports [default: the verb]
    #[arg(long, value_name = "TEXT", help_heading = "The run")]
    pub(crate) name: Option<String>,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "The run")]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) tls: Tls,
}

impl ClientOptions {
    /// Whether any option of clients is given.
    pub(crate) fn is_any(&self) -> bool {
        let Self { streams, warmup, drain, timeout, resolve, bind_addr, name, seed, tls } = self;
        let spans = [warmup, drain, timeout].into_iter().any(Option::is_some);
        streams.is_some()
            || spans
            || resolve.is_some()
            || name.is_some()
            || *seed != 0
            || !bind_addr.is_empty()
            || tls.is_any()
    }
}
