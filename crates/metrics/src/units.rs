//! Quantities as people write them: `10m`, `20/s`, `4mbps`, `0.1%`.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A text that is not a quantity; says what would be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not {expected}")]
pub struct ParseUnitError {
    text: String,
    expected: &'static str,
}

fn wrong(text: &str, expected: &'static str) -> ParseUnitError {
    ParseUnitError { text: text.to_owned(), expected }
}

/// A number and what follows it, which may be nothing.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, text[end..].trim()))
}

/// A span of time: `250ms`, `10s`, `10m`, `1h30m`; a bare number is seconds.
///
/// # Errors
/// The text is not such a span, or longer than a year.
pub fn parse_duration(text: &str) -> Result<Duration, ParseUnitError> {
    const EXPECTED: &str = "a duration such as 250ms, 10s, 10m or 1h30m";
    let mut rest = text.trim();
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let (number, tail) = split(rest).ok_or_else(|| wrong(text, EXPECTED))?;
        let unit_end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        seconds += number * seconds_of(tail[..unit_end].trim()).ok_or_else(|| wrong(text, EXPECTED))?;
        rest = &tail[unit_end..];
    }
    if text.trim().is_empty() || seconds > 366.0 * 86_400.0 {
        return Err(wrong(text, EXPECTED));
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong(text, EXPECTED))
}

fn seconds_of(unit: &str) -> Option<f64> {
    Some(match unit {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        _ => return None,
    })
}

/// Events a second: `20/s`, `100/m`, `0.5/s`; a bare number is a second's.
///
/// # Errors
/// The text is not a positive rate.
pub fn parse_rate(text: &str) -> Result<f64, ParseUnitError> {
    let error = || wrong(text, "a rate above zero such as 20/s or 100/m");
    let (number, unit) = split(text).ok_or_else(error)?;
    let per = match unit {
        "" | "/s" => 1.0,
        "/m" | "/min" => 60.0,
        "/h" => 3_600.0,
        _ => return Err(error()),
    };
    if number > 0.0 { Ok(number / per) } else { Err(error()) }
}

/// A number of a threshold, in base units: seconds, bytes, bits a second, ratio, count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    /// The number.
    pub value: f64,
    /// What its unit measures.
    pub measure: Measure,
}

/// What a unit measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// No unit was given.
    Plain,
    /// Time, in seconds.
    Time,
    /// Bytes.
    Bytes,
    /// Bits a second.
    BitRate,
    /// A part of a whole, 0 to 1.
    Ratio,
    /// Events a second.
    Rate,
}

/// A number of bytes: `955B`, `64KiB`, `1MB`.
///
/// # Errors
/// The text is not a number of bytes, or has no unit.
pub fn parse_bytes(text: &str) -> Result<u64, ParseUnitError> {
    match parse_quantity(text) {
        Ok(Quantity { value, measure: Measure::Bytes }) if value >= 0.0 => Ok(value as u64),
        _ => Err(wrong(text, "a number of bytes such as 955B, 64KiB or 1MB")),
    }
}

/// Any quantity of a threshold.
///
/// # Errors
/// The unit is unknown.
pub fn parse_quantity(text: &str) -> Result<Quantity, ParseUnitError> {
    let error = || wrong(text, "a quantity such as 0, 1s, 250ms, 0.1%, 20/s, 16kB or 4mbps");
    let (sign, magnitude) = match text.trim().strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.trim()),
    };
    let (number, unit) = split(magnitude).ok_or_else(error)?;
    let (scale, measure) = match unit {
        "" => (1.0, Measure::Plain),
        "%" => (0.01, Measure::Ratio),
        "/s" => (1.0, Measure::Rate),
        "/m" | "/min" => (1.0 / 60.0, Measure::Rate),
        "/h" => (1.0 / 3_600.0, Measure::Rate),
        "B" => (1.0, Measure::Bytes),
        "kB" => (1e3, Measure::Bytes),
        "KiB" => (1_024.0, Measure::Bytes),
        "MB" => (1e6, Measure::Bytes),
        "MiB" => (1_048_576.0, Measure::Bytes),
        "GB" => (1e9, Measure::Bytes),
        _ => match (seconds_of(unit), bits_of(unit)) {
            (Some(seconds), _) => (seconds, Measure::Time),
            (None, Some(bits)) => (bits, Measure::BitRate),
            (None, None) => return Err(error()),
        },
    };
    Ok(Quantity { value: sign * number * scale, measure })
}

fn bits_of(unit: &str) -> Option<f64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "bps" | "bit/s" => 1.0,
        "kbps" | "kbit/s" => 1e3,
        "mbps" | "mbit/s" => 1e6,
        "gbps" | "gbit/s" => 1e9,
        _ => return None,
    })
}

/// Bits a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BitRate(f64);

impl BitRate {
    /// From bits a second.
    pub const fn from_bps(bps: f64) -> Self {
        Self(bps)
    }

    /// From thousands of bits a second.
    pub const fn from_kbps(kbps: u64) -> Self {
        Self((kbps * 1000) as f64)
    }

    /// Bits a second.
    pub const fn bps(self) -> f64 {
        self.0
    }

    /// Whole bits a second, rounded down.
    pub const fn whole_bps(self) -> u64 {
        self.0 as u64
    }

    /// The rate with all of its digits, so that a limit that is read can be typed again.
    pub fn exact(self) -> impl fmt::Display {
        match self.0 {
            bps if bps >= 1e6 => format!("{} Mbit/s", bps / 1e6),
            bps if bps >= 1e3 => format!("{} kbit/s", bps / 1e3),
            bps => format!("{bps} bit/s"),
        }
    }
}

impl FromStr for BitRate {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || wrong(text, "a bit rate such as 500kbps or 4mbps");
        let (number, unit) = split(text).ok_or_else(error)?;
        let scale = if unit.is_empty() { 1.0 } else { bits_of(unit).ok_or_else(error)? };
        if number > 0.0 { Ok(Self(number * scale)) } else { Err(error()) }
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bps if bps >= 1e9 => write!(f, "{:.2} Gbps", bps / 1e9),
            bps if bps >= 1e6 => write!(f, "{:.2} Mbps", bps / 1e6),
            bps if bps >= 1e3 => write!(f, "{:.0} kbps", bps / 1e3),
            bps => write!(f, "{bps:.0} bps"),
        }
    }
}

/// A part of a whole, 0 to 1; 0 of 0 is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ratio(f64);

impl Ratio {
    /// `part` of `whole`.
    pub fn of(part: f64, whole: f64) -> Self {
        Self(if whole == 0.0 { 0.0 } else { part / whole })
    }

    /// 0 to 1.
    pub const fn get(self) -> f64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_people_write_them() {
        assert_eq!(parse_duration("1h30m"), Ok(Duration::from_secs(5_400)));
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_duration("1.5"), Ok(Duration::from_millis(1_500)));
        assert_eq!(parse_rate("120/m"), Ok(2.0));
        assert_eq!("4mbps".parse(), Ok(BitRate(4e6)));
        let quantity = |value, measure| Ok(Quantity { value, measure });
        assert_eq!(parse_quantity("0.1%"), quantity(0.001, Measure::Ratio));
        assert_eq!(parse_quantity("-2ms"), quantity(-0.002, Measure::Time));
        assert_eq!(parse_quantity("16KiB"), quantity(16_384.0, Measure::Bytes));
        assert_eq!(parse_quantity("4mbps"), quantity(4e6, Measure::BitRate));
        assert_eq!(parse_quantity("10000/s"), quantity(10_000.0, Measure::Rate));
        assert_eq!(parse_quantity("30/m"), quantity(0.5, Measure::Rate));
        assert_eq!(parse_quantity("7"), quantity(7.0, Measure::Plain));
    }

    #[test]
    fn what_is_no_quantity_is_refused_in_one_line() {
        for text in ["", "ten", "10 parsecs", "1e400", "9999999d", "m"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        assert!(parse_rate("0/s").is_err());
        assert!("0mbps".parse::<BitRate>().is_err());
        assert_eq!(
            parse_duration("10 parsecs").unwrap_err().to_string(),
            "'10 parsecs' is not a duration such as 250ms, 10s, 10m or 1h30m"
        );
    }
}
