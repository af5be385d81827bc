//! What figures are measured in, in summaries.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_clients::ColumnUnit;
use weir_metrics::Unit;

/// Units as printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BaseUnit {
    /// Plain number.
    Count,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// Bits a second.
    BitsPerSecond,
}

impl BaseUnit {
    /// The ending of a key in machine-readable output, as [`Unit::suffix`].
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Count => "",
            Self::Bytes => "_bytes",
            Self::Seconds => "_seconds",
            Self::BitsPerSecond => "_bps",
        }
    }
}

impl From<ColumnUnit> for BaseUnit {
    fn from(unit: ColumnUnit) -> Self {
        match unit {
            ColumnUnit::Bytes => Self::Bytes,
            ColumnUnit::Seconds => Self::Seconds,
            ColumnUnit::BitsPerSecond => Self::BitsPerSecond,
            ColumnUnit::Count | ColumnUnit::PerSecond | ColumnUnit::Word(_) => Self::Count,
        }
    }
}

impl From<Unit> for BaseUnit {
    fn from(unit: Unit) -> Self {
        match unit {
            Unit::Count => Self::Count,
            Unit::Bytes => Self::Bytes,
            Unit::Micros => Self::Seconds,
        }
    }
}

/// What a figure of runs is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FigureUnit {
    /// Plain number.
    Count,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// Bits a second.
    BitsPerSecond,
    /// Percent of one core.
    Percent,
    /// 0 to 1.
    Ratio,
}

impl From<BaseUnit> for FigureUnit {
    fn from(unit: BaseUnit) -> Self {
        match unit {
            BaseUnit::Count => Self::Count,
            BaseUnit::Bytes => Self::Bytes,
            BaseUnit::Seconds => Self::Seconds,
            BaseUnit::BitsPerSecond => Self::BitsPerSecond,
        }
    }
}
