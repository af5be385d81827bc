//! What messages are filled with.

use super::mark::HEADER_LEN;
use std::path::PathBuf;
use std::sync::Arc;

/// What the payload of a message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filling {
    /// So many bytes, random ones.
    Size(usize),
    /// The content of a file.
    File(PathBuf),
}

impl Default for Filling {
    fn default() -> Self {
        Self::Size(256)
    }
}

/// A payload that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum FillingError {
    /// The file cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The system's words.
        source: std::io::Error,
    },
    /// No packet has room for it.
    #[error("a payload of {bytes} bytes is more than a packet of MQTT has room for; send less than 256 MiB")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
}

impl Filling {
    /// The payload, the same for the same seed.
    ///
    /// # Errors
    /// A file that cannot be read; more than a packet has room for.
    pub(super) fn bytes(&self, seed: u64) -> Result<Arc<[u8]>, FillingError> {
        let bytes: Vec<u8> = match self {
            Self::Size(size) => {
                check(*size)?;
                noise(*size, seed)
            }
            Self::File(path) => std::fs::read(path)
                .map_err(|source| FillingError::Read { path: path.display().to_string(), source })?,
        };
        check(bytes.len())?;
        Ok(bytes.into())
    }

    /// How many bytes it has, as far as that can be known without reading it.
    pub fn size(&self) -> Option<usize> {
        match self {
            Self::Size(size) => Some(*size),
            Self::File(path) => std::fs::metadata(path).ok().map(|file| file.len() as usize),
        }
    }
}

fn check(bytes: usize) -> Result<(), FillingError> {
    // A topic, properties and a mark have to fit as well.
    let most = weir_mqtt::MAX_REMAINING_LENGTH - 2 * weir_mqtt::MAX_FIELD_LENGTH - HEADER_LEN;
    if bytes > most { Err(FillingError::TooLong { bytes }) } else { Ok(()) }
}

/// Bytes that do not compress: a linear congruential generator's upper bits.
fn noise(size: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..size).map(|_| next()).collect()
}
