//! The exit codes, which scripts rely on.

use std::process::ExitCode;
use weir_engine::summary::Summary;
use weir_runner::ErrorKind;

/// How weir ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is well.
    Passed,
    /// A change lies wholly beyond what `compare --fail-on` allows.
    Regression,
    /// This went wrong, or was not met.
    Failed(ErrorKind),
}

impl Exit {
    /// 0, 96, or the number of what went wrong.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::Regression => 96,
            Self::Failed(kind) => kind.code(),
        }
    }

    /// What a finished run comes to.
    pub(crate) fn of(summary: &Summary) -> Self {
        ErrorKind::of_summary(summary).into()
    }
}

impl From<ErrorKind> for Exit {
    fn from(kind: ErrorKind) -> Self {
        Self::Failed(kind)
    }
}

impl From<Option<ErrorKind>> for Exit {
    fn from(kind: Option<ErrorKind>) -> Self {
        kind.map_or(Self::Passed, Self::Failed)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}
