//! Why a question to a cluster was not answered as hoped, and what a broker's words are to a person.

use std::fmt::Display;
use std::io;
use weir_kafka::ErrorCode;

/// What is shown of a broker's own words.
const WORDS: usize = 300;

/// What is said of a connection that the broker has closed.
pub(super) const CLOSED: &str = "it has closed the connection";

/// Why a question was not answered as hoped.
#[derive(Clone, Debug)]
pub(super) enum RequestFailure {
    /// A broker cannot be reached, or has stopped answering.
    Away(String),
    /// A broker has closed the connection.
    Closed,
    /// A broker says no: what it was about, and why.
    Refused(String, ErrorCode),
    /// A broker lets nobody in with this user and this password.
    AccessDenied(String),
    /// The cluster or the topic is not as it must be.
    Unfit(String),
}

impl RequestFailure {
    /// The same with the place where it happened.
    pub(super) fn at(self, place: impl Display) -> Self {
        let of = |words: String| format!("{place}: {words}");
        match self {
            Self::Away(words) => Self::Away(of(words)),
            Self::Closed => Self::Away(of(CLOSED.to_owned())),
            Self::Refused(what, code) => Self::Refused(of(what), code),
            Self::AccessDenied(words) => Self::AccessDenied(of(words)),
            Self::Unfit(words) => Self::Unfit(of(words)),
        }
    }
}

impl From<io::Error> for RequestFailure {
    fn from(error: io::Error) -> Self {
        Self::Away(error.to_string())
    }
}

/// A broker's own words on one line.
pub(super) fn one_line(words: &str) -> String {
    words.chars().filter(|letter| !letter.is_control()).take(WORDS).collect()
}
