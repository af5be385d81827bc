//! The command line: the verbs, and one file each for what they take.

mod agents;
mod capacity;
mod check;
mod codec;
mod compare;
mod completions;
mod demo;
mod doctor;
mod figures;
mod help;
mod history;
mod ingest;
mod init;
mod load;
mod machine;
mod man;
mod origin;
mod play;
mod print;
mod publish;
mod relay;
mod report;
mod run;
mod run_options;
mod schema;
mod sweep;
mod tls;
mod values;
mod watch;

pub(crate) use agents::{Agent, AgentList, AgentOptions};
pub(crate) use capacity::{Capacity, SearchOptions};
pub(crate) use check::Check;
pub(crate) use codec::Codec;
pub(crate) use compare::Compare;
pub(crate) use completions::Completions;
pub(crate) use demo::Demo;
pub(crate) use doctor::Doctor;
pub(crate) use figures::Figures;
pub(crate) use help::Help;
pub(crate) use history::History;
pub(crate) use ingest::Ingest;
pub(crate) use init::Init;
pub(crate) use load::{ClientOptions, Load};
pub(crate) use machine::Machine;
pub(crate) use man::Man;
pub(crate) use origin::Origin;
pub(crate) use play::Play;
pub(crate) use print::Print;
pub(crate) use publish::Publish;
pub(crate) use relay::Relay;
pub(crate) use report::Report;
pub(crate) use run::Run;
pub(crate) use run_options::RunOptions;
pub(crate) use schema::Schema;
pub(crate) use sweep::Sweep;
pub(crate) use tls::Tls;
pub(crate) use watch::Watch;

use clap::{Parser, Subcommand};
use std::ffi::OsString;

/// weir puts a live streaming server under a real load and writes down what it carried.
///
/// Exit codes: 0 passed · 1 internal error · 2 usage · 96 regression · 97 target died or gave no answer · 98 run invalid ·
/// 99 thresholds failed · 104 bad scenario · 105 interrupted · 108 aborted by a threshold.
///
/// WEIR_LOG=debug shows the dialogue of each client on stderr, WEIR_LOG=rtc=debug that of WebRTC alone.
#[derive(Debug, Parser)]
#[command(
    name = "weir",
    version,
    long_version = LONG_VERSION,
    max_term_width = 100,
    propagate_version = true,
    disable_help_flag = true,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Version, commit and target, as `weir --version` prints them.
const LONG_VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("WEIR_BUILD"));

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Everything on this machine, nothing else installed: origin, publisher, viewers, report
    Demo(Demo),
    /// Viewers of a server: RTMP, HTTP-FLV, HLS, RTSP, SRT, WebRTC, MPEG-TS, Mirakurun, MQTT
    ///
    /// `weir help urls` lists the schemes of what can be played.
    Play(Play),
    /// Publishers to one or several servers: RTMP, RTSP, SRT, WebRTC, MQTT
    ///
    /// `weir help urls` lists the schemes of what can be published to.
    Publish(Publish),
    /// Messages of an MQTT broker into a table: received, decoded, saved, then acknowledged
    Ingest(Box<Ingest>),
    /// A scenario file: several workloads, stages, thresholds
    Run(Run),
    /// Write a first scenario for a URL, with comments
    Init(Init),
    /// How many clients a server carries
    ///
    /// The largest number at which every threshold holds, and the smallest at which one does not.
    Capacity(Box<Capacity>),
    /// Which variant of a scenario is best, or carries most: all of them in random order
    Sweep(Box<Sweep>),
    /// Is it better: runs against runs, figure by figure, each with its interval
    Compare(Compare),
    /// Since when: a figure over all runs of a name, and the runs at which it changed
    History(History),
    /// Print or write again the report of a run directory
    Report(Report),
    /// Watch a server's processes without a load
    Watch(Watch),
    /// The small server that weir carries: RTMP, WebRTC, MPEG-TS over HTTP, MQTT
    ///
    /// It serves MPEG-TS over HTTP as Mirakurun and mirakc do.
    Origin(Origin),
    /// A bad link over UDP: loss, delay, jitter, order and rate, by a seed
    Relay(Relay),
    /// Check a stored transport stream, packet by packet
    Check(Check),
    /// Avro against JSON: what decoding a record of a schema costs in each
    Codec(Codec),
    /// What this machine can generate, and what stands in the way
    Doctor(Doctor),
    /// What is measured: figures with their units and meanings
    Figures(Figures),
    /// Generate load for a run that was started elsewhere with --agents
    Agent(Agent),
    /// List the agents that wait at a NATS server
    Agents(AgentList),
    /// Print a JSON Schema of what weir reads or writes
    ///
    /// Of scenario files, of summary.json of a run, a series, a search or a sweep, or of what compare, history, check and
    /// codec write.
    Schema(Schema),
    /// Print completions for a shell
    Completions(Completions),
    /// Write man pages into a directory
    Man(Man),
    /// More on a command or a topic
    Help(Help),
}

impl Verb {
    /// What it says of agents, if it makes load.
    pub(crate) fn agents(&mut self) -> Option<&mut AgentOptions> {
        match self {
            Self::Demo(args) => Some(&mut args.run.agents),
            Self::Play(args) => Some(&mut args.run.agents),
            Self::Publish(args) => Some(&mut args.run.agents),
            Self::Run(args) => Some(&mut args.run.agents),
            Self::Capacity(args) => Some(&mut args.run.agents),
            Self::Sweep(args) => Some(&mut args.run.agents),
            _ => None,
        }
    }
}

/// `-q 1` asks for a quality of service, as other MQTT clients have it; a bare `-q` for quiet.
pub(crate) fn qos_spelled_out(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut spelled: Vec<OsString> = Vec::new();
    for argument in arguments {
        // No URL is a number: one that is no quality of service is refused by the name of that flag.
        let is_qos = argument.to_str().is_some_and(|text| text.parse::<u32>().is_ok());
        if let Some(last) = spelled.last_mut().filter(|last| is_qos && *last == "-q") {
            *last = "--qos".into();
        }
        spelled.push(argument);
    }
    spelled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listen::listen_address;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_bare_port_listens_on_loopback_only() {
        assert_eq!(listen_address(":1935").unwrap().to_string(), "127.0.0.1:1935");
        assert_eq!(listen_address("1935").unwrap().to_string(), "127.0.0.1:1935");
        assert_eq!(listen_address("localhost:1935").unwrap().to_string(), "127.0.0.1:1935");
        assert_eq!(listen_address("0.0.0.0:1935").unwrap().to_string(), "0.0.0.0:1935");
        assert!(listen_address("99999").is_err() && listen_address("localhost1935").is_err());
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
}
