//! `weir capacity`, and how a capacity is searched for.

use super::values::{arrival, load_kind, precision, setting};
use super::{ClientOptions, RunOptions};
use crate::options::{OptionsOf, Searches};
use clap::Args;
use weir_engine::scenario::{BitRateText, LoadKind, Span};
use weir_metrics::parse_rate;
use weir_runner::capacity::SearchSettings;
use weir_runner::{ErrorKind, RunError};

/// `weir capacity`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Capacity {
    /// A URL to play, as `weir play` takes it, or to publish to for --of messages and publishers; or a scenario file: its one
    /// workload that plays, or publishes if none plays, is given ever more clients
    #[arg(value_name = "URL|FILE")]
    pub(crate) what: String,
    /// One load, and whether it is carried, instead of the largest: exit code 0 as soon as that is confirmed, 99 as soon as it
    /// is sure that it is not, 98 if the time is over before
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "The search")]
    pub(crate) at_least: Option<u32>,
    #[command(flatten)]
    pub(crate) search: SearchOptions,
    /// FILE: any other key of the scenario, as if it stood in the file: seed=3, workloads.0.bitrate=2mbps; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting, help_heading = "Load")]
    pub(crate) set: Vec<(String, String)>,
    /// What the source sends to each viewer [default: read off the stream]
    #[arg(long, value_name = "BITRATE", help_heading = "Load")]
    pub(crate) expect: Option<BitRateText>,
    #[command(flatten)]
    pub(crate) of_clients: ClientOptions,
    #[command(flatten)]
    pub(crate) options: OptionsOf<Searches>,
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

/// How a capacity is searched for.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "The search")]
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
    /// Time that a load is held to find the bounds, in slices of --slice [default: 15s; of less than 20m of --budget an 80th of it,
    /// and two slices at least; HLS: as --confirm]
    #[arg(long, value_name = "TIME")]
    pub(crate) hold: Option<Span>,
    /// Time that a bound is held to confirm it: three times the lower one, twice the upper one [default: 60s; of less than 20m of
    /// --budget a 20th of it]
    #[arg(long, value_name = "TIME")]
    pub(crate) confirm: Option<Span>,
    /// Time over which thresholds are judged; at least two groups of pictures
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub(crate) slice: Span,
    /// Time for a whole search: then it reports what it has
    #[arg(long, value_name = "TIME", default_value = "20m")]
    pub(crate) budget: Span,
    /// A command that is run before each trial: a restart of the server
    #[arg(long, value_name = "CMD")]
    pub(crate) prepare: Option<String>,
}

impl SearchOptions {
    /// The same for the search itself.
    ///
    /// # Errors
    /// The rate is malformed.
    pub(crate) fn settings(&self) -> Result<SearchSettings, RunError> {
        Ok(SearchSettings {
            of: self.of,
            clients: self.clients,
            from: self.from,
            most: self.most,
            precision: self.precision,
            arrivals_per_second: parse_rate(&self.arrival).map_err(RunError::with(ErrorKind::Usage))?,
            hold: self.hold.as_ref().map(Span::get),
            confirm: self.confirm.as_ref().map(Span::get),
            slice: self.slice.get(),
            budget: self.budget.get(),
            prepare: self.prepare.clone(),
        })
    }
}
