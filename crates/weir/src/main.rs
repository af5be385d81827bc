//! The command line: arguments in, exit code out.

mod args;
mod background;
mod check;
mod codec;
mod conduct;
mod demo;
mod doctor;
mod exit;
mod experiment;
mod ingest;
mod live;
mod load;
mod machine;
mod mqtt;
mod origin;
mod prepare;
mod report;
mod rtc;
mod saving;
mod watch;

use args::{Cli, Verb};
use clap::Parser;
use exit::{Exit, Failure};
use std::io::Write;
use std::process::ExitCode;
use weir_engine::scenario::{Scenario, ScenarioError};

fn main() -> ExitCode {
    let cli = Cli::parse_from(args::qos_spelled_out(std::env::args_os()));
    match dispatch(cli.verb) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            // A closed terminal cannot be told.
            let _ = writeln!(std::io::stderr(), "weir: {failure}");
            failure.exit.into()
        }
    }
}

fn dispatch(verb: Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::Demo(args) => demo::demo(&args),
        Verb::Play(args) => conduct::conduct(prepare::prepare(load::of_play(&args), Exit::Usage)?, &args.run),
        Verb::Publish(args) => {
            conduct::conduct(prepare::prepare(load::of_publish(&args), Exit::Usage)?, &args.run)
        }
        Verb::Run(args) => {
            let mut scenario = Scenario::read(&args.file).map_err(|error| match error {
                ScenarioError::Read { .. } => Failure::new(Exit::Usage, error.to_string()),
                _ => Failure::new(Exit::Scenario, error.to_string()),
            })?;
            if let Some(target) = &args.target {
                load::retarget(&mut scenario, target);
            }
            load::add_options(&mut scenario, &args.run);
            if let Some(probe) = &args.probe {
                experiment::leave_to(&mut scenario, probe)?;
            }
            let _far_end = background::far_end(&mut scenario)?;
            if let Some(spec) = &scenario.experiment {
                return experiment::experiment(&scenario, spec, &args);
            }
            conduct::conduct(prepare::prepare(scenario, Exit::Scenario)?, &args.run)
        }
        Verb::Ingest(args) => ingest::ingest(&args),
        Verb::Watch(args) => watch::watch(&args),
        Verb::Origin(args) => origin::origin(&args),
        Verb::Report(args) => report::report(&args),
        Verb::Check(args) => check::check(&args),
        Verb::Codec(args) => codec::codec(&args),
        Verb::Doctor(args) => doctor::doctor(&args),
        Verb::Schema(args) => {
            let text = match args.what.as_str() {
                "scenario" => Scenario::schema(),
                "check" => weir_report::check_schema(),
                "codec" => weir_report::codec_schema(),
                "experiment" => weir_report::experiment_schema(),
                _ => weir_report::schema(),
            };
            let _ = writeln!(std::io::stdout(), "{text}");
            Ok(Exit::Passed)
        }
    }
}
