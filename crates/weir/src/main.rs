//! The command line: arguments in, exit code out.

mod agents;
mod answer;
mod args;
mod capacity;
mod check;
mod codec;
mod compare;
mod completions;
mod console;
mod demo;
mod doctor;
#[cfg(test)]
mod documentation;
mod exit;
mod figures;
mod flags;
mod help;
mod history;
mod ingest;
mod ingest_live;
mod ingest_progress;
mod init;
mod interrupt;
mod listen;
mod live;
mod live_agents;
mod live_page;
mod load;
mod log;
mod man;
mod options;
mod origin;
mod outlets;
mod outline;
mod print;
mod push;
mod relay;
mod report;
mod rows;
mod run;
mod schema;
mod screen;
mod series;
mod sweep;
mod turn;
mod watch;

use args::{Cli, Verb};
use clap::FromArgMatches;
use exit::Exit;
use std::process::ExitCode;
use weir_runner::{ErrorKind, RunError, prepare, url_lists};

fn main() -> ExitCode {
    weir_setting::spell(flags::flag);
    weir_files::warn_with(|line| print::note(format_args!("weir: {line}")));
    let arguments = outlets::live_address_joined(args::qos_spelled_out(std::env::args_os()));
    let matches = help::command().get_matches_from(arguments);
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match log::begin(&cli.verb).and_then(|()| dispatch(cli.verb)) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            print::note(format_args!("weir: {failure}"));
            Exit::Failed(failure.kind()).into()
        }
    }
}

fn dispatch(mut verb: Verb) -> Result<Exit, RunError> {
    // Ends with weir.
    let _nats = verb.agents().map(agents::spawn).transpose()?;
    match verb {
        Verb::Demo(args) => demo::demo(&args),
        Verb::Play(args) => url_lists::read_or(load::of_play(&args), ErrorKind::Usage)
            .and_then(|scenario| run::start(scenario, ErrorKind::Usage, &args.run)),
        Verb::Publish(args) if args.verify && !prepare::can_be_verified(&args.urls) => Err(RunError::new(
            ErrorKind::Usage,
            "--verify plays a stream at the URL that it is published to, which rtmp:// and rtmps:// alone have; leave it out",
        )),
        Verb::Publish(args) => url_lists::read_or(load::of_publish(&args), ErrorKind::Usage)
            .and_then(|scenario| run::start(scenario, ErrorKind::Usage, &args.run)),
        Verb::Run(args) => series::run(&args),
        Verb::Init(args) => init::init(&args),
        Verb::Capacity(args) => capacity::capacity(&args),
        Verb::Sweep(args) => sweep::sweep(&args),
        Verb::Ingest(args) => ingest::ingest(&args),
        Verb::Watch(args) => watch::watch(&args),
        Verb::Origin(args) => origin::origin(&args),
        Verb::Relay(args) => relay::relay(&args),
        Verb::Report(args) => report::report(&args),
        Verb::Compare(args) => compare::compare(&args),
        Verb::History(args) => history::history(&args),
        Verb::Check(args) => check::check(&args),
        Verb::Codec(args) => codec::codec(&args),
        Verb::Doctor(args) => doctor::doctor(&args),
        Verb::Figures(args) => figures::figures(&args),
        Verb::Completions(args) => completions::completions(&args),
        Verb::Man(args) => man::man(&args),
        Verb::Help(args) => help::help(&args),
        Verb::Agent(args) => agents::serve(&args),
        Verb::Agents(args) => agents::list(&args),
        Verb::Schema(args) => schema::schema(&args),
    }
}
