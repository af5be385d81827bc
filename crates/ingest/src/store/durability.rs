//! How much of a commit is on the disk when it returns.

use std::str::FromStr;

/// What of a commit is on the disk when it returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// All of it: it is there after a crash of the machine.
    #[default]
    Full,
    /// Nothing need be. A crash of the machine may take the last commits, and leaves the others whole.
    Normal,
    /// As `Normal`, and SQLite waits for the disk nowhere: a crash of the machine may damage the file.
    Off,
}

/// A text that is no durability.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a durability level; write full, normal or off")]
pub struct UnknownDurability(String);

impl FromStr for Durability {
    type Err = UnknownDurability;

    fn from_str(text: &str) -> Result<Self, UnknownDurability> {
        match text {
            "full" => Ok(Self::Full),
            "normal" => Ok(Self::Normal),
            "off" => Ok(Self::Off),
            other => Err(UnknownDurability(other.to_owned())),
        }
    }
}

impl Durability {
    /// As SQLite calls it (`PRAGMA synchronous`).
    pub(super) fn of_sqlite(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Normal => "normal",
            Self::Off => "off",
        }
    }

    /// As PostgreSQL calls it (`synchronous_commit`). It has nothing that a session could switch off beyond that.
    pub(super) fn of_postgresql(self) -> &'static str {
        match self {
            Self::Full => "on",
            Self::Normal | Self::Off => "off",
        }
    }
}
