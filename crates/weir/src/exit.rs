//! The exit codes, which scripts rely on.

use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;
use weir_engine::lines::Part;
use weir_engine::series::{Ending, RunFailure};
use weir_engine::summary::{Outcome, Summary, VerdictState};
use weir_ingest::{Destination, StoreError};

/// How weir ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is well.
    Passed = 0,
    /// weir or the system failed.
    Internal = 1,
    /// Invalid command line.
    Usage = 2,
    /// A change lies wholly beyond what `compare --fail-on` allows.
    Regression = 96,
    /// The target is not there: its processes were all gone, or it gave no answer, to any client or to what must be
    /// asked before a run.
    TargetDied = 97,
    /// The load generator was the bottleneck.
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
    /// Every one.
    const ALL: [Self; 10] = [
        Self::Passed,
        Self::Internal,
        Self::Usage,
        Self::Regression,
        Self::TargetDied,
        Self::Invalid,
        Self::Thresholds,
        Self::Scenario,
        Self::Interrupted,
        Self::Aborted,
    ];

    /// What a code in a summary means. One that is no code of weir's is of a file that weir did not write.
    pub(crate) fn of_code(code: u8) -> Self {
        Self::ALL.into_iter().find(|exit| *exit as u8 == code).unwrap_or(Self::Internal)
    }

    /// What an error of a store comes to: a database that is not there is 97, as any server; one that asks for a password,
    /// or has no such role, is as `wrong` as any other mistake of a command line (2) or of a scenario (104).
    pub(crate) fn of_store(destination: &Destination, error: &StoreError, wrong: Self) -> Self {
        match error {
            StoreError::Unavailable(_) if destination.is_server() => Self::TargetDied,
            StoreError::Locked(_) => wrong,
            _ => Self::Internal,
        }
    }

    /// What a finished run comes to. How it ended says more than what it measured, and whether it
    /// can be believed more than whether it passed.
    pub(crate) fn of(summary: &Summary) -> Self {
        match &summary.outcome {
            Outcome::Interrupted | Outcome::Running => Self::Interrupted,
            Outcome::TargetDied => Self::TargetDied,
            Outcome::AgentLost => Self::Invalid,
            Outcome::Aborted(_) => Self::Aborted,
            Outcome::Completed | Outcome::NobodyLeft => {
                let failed = summary.thresholds.iter().any(|threshold| !threshold.passed);
                match summary.verdict.state {
                    _ if summary.is_unanswered() => Self::TargetDied,
                    VerdictState::Invalid => Self::Invalid,
                    VerdictState::NothingMeasured => Self::Thresholds,
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
    /// What of a scenario it is about, if one part alone.
    part: Option<Part>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, line: impl Into<String>) -> Self {
        Self { exit, line: line.into(), part: None }
    }

    /// For a file that cannot be opened, read or written. A full disk is nothing that was asked for wrongly.
    pub(crate) fn of_file(path: &Path, error: &std::io::Error) -> Self {
        if error.kind() == ErrorKind::StorageFull {
            return Self::new(Exit::Internal, format!("{}: {error}; make room there", path.display()));
        }
        if error.kind() == ErrorKind::IsADirectory {
            return Self::new(Exit::Usage, format!("{}: is a directory; give a file", path.display()));
        }
        Self::new(Exit::Usage, format!("{}: {error}", path.display()))
    }

    /// What it makes of the series in which it happened.
    pub(crate) fn ending(&self) -> Ending {
        Ending::Failed(RunFailure { words: self.line.clone(), exit_code: self.exit as u8 })
    }

    /// The same about this part of a scenario, if another is not known.
    pub(crate) fn of(self, part: Part) -> Self {
        Self { part: self.part.or(Some(part)), ..self }
    }

    /// The same with the place in the scenario's file in front, if the file says what is wrong, else with the file alone.
    pub(crate) fn in_file(self, file: &Path) -> Self {
        let text = weir_files::read_text(file, weir_files::MOST_TEXT).ok();
        match self.part.zip(text).and_then(|(part, text)| part.line(&text)) {
            Some(line) if self.exit == Exit::Scenario => {
                Self { line: format!("{}:{line}: {}", file.display(), self.line), ..self }
            }
            None if self.exit == Exit::Scenario && !self.line.contains(&*file.to_string_lossy()) => {
                Self { line: format!("{}: {}", file.display(), self.line), ..self }
            }
            _ => self,
        }
    }

    /// For `map_err`: the error's own words with this exit code.
    pub(crate) fn with<E: ToString>(exit: Exit) -> impl Fn(E) -> Self {
        move |error| Self::new(exit, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_that_failed_ends_with_the_code_of_what_failed_whenever_it_is_read() {
        for exit in Exit::ALL {
            let Ending::Failed(failure) = Failure::new(exit, "why").ending() else { panic!("it failed") };
            assert_eq!(Exit::of_code(failure.exit_code), exit);
            assert_eq!(failure.words, "why");
        }
        assert_eq!(Exit::of_code(77), Exit::Internal);
    }

    #[test]
    fn a_store_that_is_not_there_is_a_server_that_does_not_answer() {
        let of = |place: &str, error: fn(String) -> StoreError| {
            Exit::of_store(&place.parse().unwrap(), &error(String::new()), Exit::Scenario)
        };
        assert_eq!(of("postgres://h/d", StoreError::Unavailable), Exit::TargetDied);
        assert_eq!(of("clickhouse://h/d", StoreError::Unavailable), Exit::TargetDied);
        assert_eq!(of("postgres://h/d", StoreError::Locked), Exit::Scenario);
        assert_eq!(of("postgres://h/d", StoreError::Unfit), Exit::Internal);
        assert_eq!(
            of("sqlite:/no/such/file", StoreError::Unavailable),
            Exit::Internal,
            "a file is not a server"
        );
    }
}
