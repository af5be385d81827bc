//! What a service plays, and why it cannot.

use std::path::PathBuf;
use weir_media::SyntheticError;
use weir_metrics::BitRate;
use weir_ts::remux::LoopError;

/// What a service plays.
#[derive(Clone, Debug, PartialEq)]
pub enum Material {
    /// Made H.264 and AAC with null packets up to this constant rate, all packets included.
    Synthetic(BitRate),
    /// A stored transport stream in a loop, at its own rate.
    File(PathBuf),
}

/// Why a service cannot play.
#[derive(Debug, thiserror::Error)]
pub enum MaterialError {
    /// It cannot be made at this rate.
    #[error("a transport stream of {} cannot be made: {source}", rate.exact())]
    Synthetic {
        /// The rate that was asked for.
        rate: BitRate,
        /// The settings' error.
        source: SyntheticError,
    },
    /// It cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The system's words.
        source: std::io::Error,
    },
    /// It cannot be looped.
    #[error("{path}: {source}")]
    Loop {
        /// The file.
        path: String,
        /// What the file lacks for a loop.
        source: LoopError,
    },
}
