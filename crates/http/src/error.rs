//! Why there was no answer, in words that hold no secret.

use crate::MOST_BYTES;
use crate::address::SHOWN_CHARACTERS;
use std::path::PathBuf;
use thiserror::Error;

/// Why a server gave no answer that can be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HttpError {
    /// The PEM file of certificates could not be read.
    #[error("{}: {words}; give a PEM file with certificates", path.display())]
    Certificates {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        words: String,
    },
    /// The host's name has no address.
    #[error("the host has no address; check its name")]
    NoAddress,
    /// No link could be made, or it broke.
    #[error("{0}")]
    Link(String),
    /// Certificate, name or version of TLS.
    #[error("TLS failed: {0}")]
    Tls(String),
    /// The answer was not whole in time.
    #[error("no whole answer within {seconds} s")]
    Timeout {
        /// Seconds that it had.
        seconds: u64,
    },
    /// The answer was longer than anything that is asked for here.
    #[error("the answer is longer than {} MiB", MOST_BYTES >> 20)]
    TooLong,
    /// The server refused.
    #[error("HTTP status {status}{words}")]
    Status {
        /// Its status.
        status: u16,
        /// What to do about it, or its own first words.
        words: String,
    },
}

/// What a status says that is not a success: what to do about it, or the server's own first words.
pub fn refusal(status: u16, body: &[u8]) -> HttpError {
    let words = match status {
        401 | 403 => {
            " (not allowed): put user and password into the URL, http://user:password@host".to_owned()
        }
        404 => " (not found): check the path".to_owned(),
        300..=399 => " (it leads elsewhere): give the URL that it leads to".to_owned(),
        _ => words(body),
    };
    HttpError::Status { status, words }
}

/// The first line of a server's plain answer.
fn words(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('<'));
    let line: String = line
        .unwrap_or_default()
        .chars()
        .filter(|character| !character.is_control())
        .take(SHOWN_CHARACTERS)
        .collect();
    if line.is_empty() { line } else { format!(": {line}") }
}
