//! Which of the two standards a connection speaks.

use std::fmt;

/// A version of the protocol, as CONNECT says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// MQTT 3.1.1, protocol level 4.
    V311,
    /// MQTT 5, protocol version 5.
    #[default]
    V5,
}

impl Version {
    /// The byte after the protocol name (MQTT 5 section 3.1.2.2).
    pub const fn level(self) -> u8 {
        match self {
            Self::V311 => 4,
            Self::V5 => 5,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V311 => "MQTT 3.1.1",
            Self::V5 => "MQTT 5",
        })
    }
}
