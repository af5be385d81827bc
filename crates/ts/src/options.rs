//! How a transport stream is to be looked at.

use crate::alignment::PacketSize;
use crate::text::TextCoding;
use std::time::Duration;

/// How a stream is to be looked at.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The packet size; `None`: found out, also when it changes.
    pub packet_size: Option<PacketSize>,
    /// How many findings of each kind are kept; the rest is counted only.
    pub findings_per_kind: u32,
    /// How long a video or audio PID may be away before it is a PID_error (TR 101 290 1.6 leaves it to the user).
    pub pid_timeout: Duration,
    /// How names are written.
    pub text: TextCoding,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            packet_size: None,
            findings_per_kind: 100,
            pid_timeout: Duration::from_secs(5),
            text: TextCoding::Detect,
        }
    }
}
