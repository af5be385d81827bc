//! The exit codes, which scripts rely on.

use std::process::ExitCode;
use weir_engine::summary::{Outcome, Summary, VerdictState};

/// How weir ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is well.
    Passed = 0,
    /// weir or the system failed.
    Internal = 1,
    /// The command line asks for what cannot be.
    Usage = 2,
    /// The target's processes were all gone, or it did not answer what must be asked before a run.
    TargetDied = 97,
    /// The instrument was at fault.
    Invalid = 98,
    /// A threshold did not hold.
    Thresholds = 99,
    /// The scenario file is wrong.
    Scenario = 104,
    /// Ctrl-C; artefacts were written.
    Interrupted = 105,
    /// A threshold ended the run.
    Aborted = 108,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl Exit {
    /// What a finished run comes to. How it ended says more than what it measured, and whether it
    /// can be believed more than whether it passed.
    pub(crate) fn of(summary: &Summary) -> Self {
        match &summary.outcome {
            Outcome::Interrupted => Self::Interrupted,
            Outcome::TargetDied => Self::TargetDied,
            Outcome::Aborted(_) => Self::Aborted,
            Outcome::Completed | Outcome::NobodyLeft => {
                let failed = summary.thresholds.iter().any(|threshold| !threshold.passed);
                match summary.verdict.state {
                    VerdictState::Invalid => Self::Invalid,
                    _ if failed => Self::Thresholds,
                    _ => Self::Passed,
                }
            }
        }
    }
}

/// A failure with its one line for people and its exit code.
#[derive(Debug, thiserror::Error)]
#[error("{line}")]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    line: String,
}

impl Failure {
    pub(crate) fn new(exit: Exit, line: impl Into<String>) -> Self {
        Self { exit, line: line.into() }
    }

    /// For `map_err`: the error's own words with this exit code.
    pub(crate) fn with<E: ToString>(exit: Exit) -> impl Fn(E) -> Self {
        move |error| Self::new(exit, error.to_string())
    }
}
