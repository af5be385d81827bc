//! Logical types: what the numbers and bytes of a type mean (Apache Avro 1.12, "Logical Types").

use std::fmt;

/// What the values of a type mean. A type that is annotated otherwise than the specification has it is what it is without
/// the annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Logical {
    /// Days since 1970-01-01, as an `int`.
    Date,
    /// Time since midnight: milliseconds as an `int`, microseconds as a `long`.
    Time(TimeUnit),
    /// Time since 1970-01-01 00:00 UTC, as a `long`.
    Timestamp(TimeUnit),
    /// Time since 1970-01-01 00:00 of a clock on a wall that is not said, as a `long`.
    LocalTimestamp(TimeUnit),
    /// A number as `bytes` or `fixed`: an integer, most significant byte first, in two's complement, divided by 10 to the
    /// power of `scale`.
    Decimal {
        /// Digits that it may have.
        precision: u32,
        /// Digits after the point.
        scale: u32,
    },
    /// A UUID, as a `string` or as a `fixed` of 16 bytes (RFC 9562).
    Uuid,
}

/// What a time is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// Thousandths of a second.
    Millis,
    /// Millionths.
    Micros,
    /// Billionths.
    Nanos,
}

impl Logical {
    /// Whether values mean the same. Milliseconds that are read as microseconds, or a decimal with its point elsewhere, would
    /// be other values, without an error. What only one side annotates is read as the other has it.
    pub(crate) fn agree(one: Option<Self>, other: Option<Self>) -> bool {
        match (one, other) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        }
    }
}

impl fmt::Display for Logical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Date => f.write_str("date"),
            Self::Time(unit) => write!(f, "time-{unit}"),
            Self::Timestamp(unit) => write!(f, "timestamp-{unit}"),
            Self::LocalTimestamp(unit) => write!(f, "local-timestamp-{unit}"),
            Self::Decimal { precision, scale } => write!(f, "decimal({precision}, {scale})"),
            Self::Uuid => f.write_str("uuid"),
        }
    }
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Millis => "millis",
            Self::Micros => "micros",
            Self::Nanos => "nanos",
        })
    }
}
