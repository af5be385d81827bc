//! What ends a run, a series or a search, or has it not begin.

use std::io::ErrorKind as IoErrorKind;
use std::path::Path;
use weir_answers::series::{Ending, RunFailure};
use weir_engine::scenario::lines::Part;
use weir_engine::summary::{Outcome, Summary, VerdictState};

/// What went wrong, or what was not met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// weir or the system failed.
    Internal,
    /// What was asked for is wrong: a flag, a value of a caller.
    Usage,
    /// The target is not there: its processes were all gone, or it gave no answer, to any client or to what must be
    /// asked before a run.
    TargetDied,
    /// The load generator was the bottleneck.
    Invalid,
    /// A threshold did not hold.
    Thresholds,
    /// The scenario file is wrong.
    Scenario,
    /// It was told to stop; artefacts were written.
    Interrupted,
    /// A threshold ended the run.
    Aborted,
}

impl ErrorKind {
    /// Every one.
    pub const ALL: [Self; 8] = [
        Self::Internal,
        Self::Usage,
        Self::TargetDied,
        Self::Invalid,
        Self::Thresholds,
        Self::Scenario,
        Self::Interrupted,
        Self::Aborted,
    ];

    /// The number that stands for it in files, as the `exit_code` of what failed.
    pub fn code(self) -> u8 {
        match self {
            Self::Internal => 1,
            Self::Usage => 2,
            Self::TargetDied => 97,
            Self::Invalid => 98,
            Self::Thresholds => 99,
            Self::Scenario => 104,
            Self::Interrupted => 105,
            Self::Aborted => 108,
        }
    }

    /// What a number in a file stands for. One that stands for nothing is of a file that weir did not write.
    pub fn of_code(code: u8) -> Self {
        Self::ALL.into_iter().find(|kind| kind.code() == code).unwrap_or(Self::Internal)
    }

    /// What a finished run did not meet, if anything. How it ended says more than what it measured, and whether it
    /// can be believed more than whether it passed.
    pub fn of_summary(summary: &Summary) -> Option<Self> {
        match &summary.outcome {
            Outcome::Interrupted | Outcome::Running => Some(Self::Interrupted),
            Outcome::TargetDied => Some(Self::TargetDied),
            Outcome::AgentLost => Some(Self::Invalid),
            Outcome::Aborted(_) => Some(Self::Aborted),
            Outcome::Completed | Outcome::NobodyLeft => {
                let failed = summary.thresholds.iter().any(|threshold| !threshold.passed);
                match summary.verdict.state {
                    _ if summary.is_unanswered() => Some(Self::TargetDied),
                    VerdictState::Invalid => Some(Self::Invalid),
                    VerdictState::NothingMeasured => Some(Self::Thresholds),
                    _ => failed.then_some(Self::Thresholds),
                }
            }
        }
    }
}

/// Why there is no run, or no answer: one line for people, which says what, where and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{line}")]
pub struct RunError {
    kind: ErrorKind,
    line: String,
    /// What of a scenario it is about, if one part alone.
    part: Option<Part>,
}

impl RunError {
    /// What went wrong, or what was not met.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// With these words.
    pub fn new(kind: ErrorKind, line: impl Into<String>) -> Self {
        Self { kind, line: line.into(), part: None }
    }

    /// For a file that cannot be opened, read or written. A full disk is nothing that was asked for wrongly.
    pub fn of_file(path: &Path, error: &std::io::Error) -> Self {
        if error.kind() == IoErrorKind::StorageFull {
            return Self::new(ErrorKind::Internal, format!("{}: {error}; make room there", path.display()));
        }
        if error.kind() == IoErrorKind::IsADirectory {
            return Self::new(ErrorKind::Usage, format!("{}: is a directory; give a file", path.display()));
        }
        Self::new(ErrorKind::Usage, format!("{}: {error}", path.display()))
    }

    /// What it makes of the series in which it happened.
    pub fn ending(&self) -> Ending {
        Ending::Failed(RunFailure { words: self.line.clone(), exit_code: self.kind.code() })
    }

    /// The same about this part of a scenario, if another is not known.
    pub fn of(self, part: Part) -> Self {
        Self { part: self.part.or(Some(part)), ..self }
    }

    /// The same with the place in the scenario's file in front, if the file says what is wrong, else with the file alone.
    pub fn in_file(self, file: &Path) -> Self {
        let text = weir_files::read_text(file, weir_files::MOST_TEXT).ok();
        match self.part.zip(text).and_then(|(part, text)| part.line(&text)) {
            Some(line) if self.kind == ErrorKind::Scenario => {
                Self { line: format!("{}:{line}: {}", file.display(), self.line), ..self }
            }
            None if self.kind == ErrorKind::Scenario && !self.line.contains(&*file.to_string_lossy()) => {
                Self { line: format!("{}: {}", file.display(), self.line), ..self }
            }
            _ => self,
        }
    }

    /// For `map_err`: the error's own words, of this kind.
    pub fn with<E: ToString>(kind: ErrorKind) -> impl Fn(E) -> Self {
        move |error| Self::new(kind, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_that_failed_ends_with_the_kind_of_what_failed_whenever_it_is_read() {
        for kind in ErrorKind::ALL {
            let Ending::Failed(failure) = RunError::new(kind, "why").ending() else { panic!("it failed") };
            assert_eq!(ErrorKind::of_code(failure.exit_code), kind);
            assert_eq!(failure.words, "why");
        }
        assert_eq!(ErrorKind::of_code(77), ErrorKind::Internal);
    }
}
