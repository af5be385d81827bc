//! The keys `before` and `after`: what is done around each run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Something to do before or after each run. Commands run in a shell, in the scenario file's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// A command that must end well: `psql -c 'truncate t'`.
    Run(String),
    /// A command that goes on beside the run, such as a server in the foreground, and is ended after it.
    Start(String),
    /// `host:port` that must take a TCP connection, within 30 s.
    Wait(String),
    /// A file of the target with `{key}` in it, filled with the variant's values.
    Fill(Fill),
}

impl Step {
    /// Leaves of a command what may be shown.
    pub(crate) fn forget_secrets(&mut self) {
        if let Self::Run(command) | Self::Start(command) = self {
            *command = shown_command(command);
        }
    }
}

/// The program that a command of a shell runs, without its directory: `mosquitto` of `exec /usr/sbin/mosquitto -c FILE`.
pub fn program(command: &str) -> Option<&str> {
    let word = command.split_whitespace().find(|word| *word != "exec" && !word.contains('='))?;
    word.rsplit('/').next()
}

/// A command as it may be shown: its program, as a password may be among its words.
pub fn shown_command(command: &str) -> String {
    let program = command.split_whitespace().next().unwrap_or_default();
    // A shell's assignment before the program may be the password itself.
    if program.contains('=') { "…".to_owned() } else { format!("{program} …") }
}

/// A file that is written again before each run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fill {
    /// The file with `{key}` in it.
    pub from: PathBuf,
    /// Where it is written.
    pub to: PathBuf,
}
