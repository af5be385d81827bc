//! Dates, times, decimals and UUIDs as SQL writes them.

use crate::column::ColumnKind;
use crate::decode::a_second;
use crate::rows::Cell;
use chrono::DateTime;
use num_bigint::BigInt;
use uuid::Uuid;
use weir_record::TimeUnit;

const DAY_SECONDS: i64 = 86_400;

/// The text of a date, a time, a decimal or a UUID. `None` for other kinds, and for a value that its kind cannot have: that
/// value is stored as it is.
#[inline]
pub(super) fn of(cell: Cell<'_>, kind: ColumnKind) -> Option<String> {
    match (cell, kind) {
        (Cell::Integer(days), ColumnKind::Date) => date(days),
        (Cell::Integer(value), ColumnKind::Time(unit)) => time(value.into(), unit),
        (Cell::Long(value), ColumnKind::Time(unit)) => time(value, unit),
        (Cell::Long(value), ColumnKind::Timestamp { unit, .. }) => timestamp(value, unit),
        (Cell::Bytes(bytes), ColumnKind::Decimal { scale, .. }) => Some(decimal(bytes, scale)),
        (Cell::Bytes(bytes), ColumnKind::Uuid) => uuid(bytes),
        _ => None,
    }
}

/// `2026-11-25`; `None` for a year that a calendar does not have.
fn date(days: i32) -> Option<String> {
    let day = DateTime::from_timestamp(i64::from(days) * DAY_SECONDS, 0)?;
    Some(day.format("%Y-%m-%d").to_string())
}

/// `18:05:00.000`, with as many digits as the unit has.
fn time(value: i64, unit: TimeUnit) -> Option<String> {
    Some(moment(value, unit)?.format(&format!("%H:%M:%S%.{}f", digits(unit))).to_string())
}

/// `2026-11-25 18:05:00.000`, the form of SQLite's own functions.
fn timestamp(value: i64, unit: TimeUnit) -> Option<String> {
    Some(moment(value, unit)?.format(&format!("%Y-%m-%d %H:%M:%S%.{}f", digits(unit))).to_string())
}

/// An integer in two's complement, with the last `scale` of its digits behind the point.
pub(super) fn decimal(bytes: &[u8], scale: u32) -> String {
    let (negative, digits) = integer(bytes);
    let scale = scale as usize;
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (before, after) = digits.split_at(digits.len() - scale);
    let sign = if negative { "-" } else { "" };
    if after.is_empty() { format!("{sign}{before}") } else { format!("{sign}{before}.{after}") }
}

/// Appends a decimal in PostgreSQL's binary form, without its length: groups of four digits, the place of the first, the
/// sign, the digits after the point (`numeric_send` in PostgreSQL's `numeric.c`).
pub(super) fn put_numeric(bytes: &[u8], scale: u32, out: &mut Vec<u8>) {
    let (negative, mut digits) = integer(bytes);
    // The point stands between two groups.
    let (scale, zeros) = (scale as usize, (4 - scale as usize % 4) % 4);
    digits.extend(std::iter::repeat_n('0', zeros));
    let behind = (scale + zeros) / 4;
    let width = digits.len().div_ceil(4).max(behind) * 4;
    let digits = format!("{digits:0>width$}");
    let groups: Vec<i16> = digits
        .as_bytes()
        .chunks(4)
        .map(|group| group.iter().fold(0, |sum, digit| sum * 10 + i16::from(digit - b'0')))
        .collect();
    let first = groups.iter().position(|group| *group != 0).unwrap_or(groups.len());
    let last = groups.iter().rposition(|group| *group != 0).map_or(first, |last| last + 1);
    let weight = (groups.len() - behind) as i16 - first as i16 - 1;
    let sign: u16 = if negative { 0x4000 } else { 0 };
    out.extend_from_slice(&((last - first) as i16).to_be_bytes());
    out.extend_from_slice(&(if first == last { 0 } else { weight }).to_be_bytes());
    out.extend_from_slice(&sign.to_be_bytes());
    out.extend_from_slice(&(scale as i16).to_be_bytes());
    out.extend(groups[first..last].iter().flat_map(|group| group.to_be_bytes()));
}

/// A UUID with its hyphens; `None` unless there are 16 bytes.
pub(super) fn uuid(bytes: &[u8]) -> Option<String> {
    Some(Uuid::from_slice(bytes).ok()?.hyphenated().to_string())
}

/// Whether an integer in two's complement is negative, and its digits.
fn integer(bytes: &[u8]) -> (bool, String) {
    let value = BigInt::from_signed_bytes_be(bytes);
    (value.sign() == num_bigint::Sign::Minus, value.magnitude().to_string())
}

fn moment(value: i64, unit: TimeUnit) -> Option<DateTime<chrono::Utc>> {
    let second = a_second(unit);
    let nanos = value.rem_euclid(second) * (1_000_000_000 / second);
    DateTime::from_timestamp(value.div_euclid(second), nanos as u32)
}

fn digits(unit: TimeUnit) -> u32 {
    a_second(unit).ilog10()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times_are_written_as_sql_has_them() {
        assert_eq!(date(0).unwrap(), "1970-01-01");
        assert_eq!(date(-719_528).unwrap(), "0000-01-01");
        assert_eq!(date(20_782).unwrap(), "2026-11-25");
        assert_eq!(date(i32::MAX), None);
        assert_eq!(time(65_100_007, TimeUnit::Millis).unwrap(), "18:05:00.007");
        assert_eq!(timestamp(-1, TimeUnit::Micros).unwrap(), "1969-12-31 23:59:59.999999");
        assert_eq!(timestamp(1_000_000_001, TimeUnit::Nanos).unwrap(), "1970-01-01 00:00:01.000000001");
    }

    #[test]
    fn decimals_have_their_point_where_the_scale_says() {
        for (value, scale, text) in [
            (0_i64, 0, "0"),
            (0, 2, "0.00"),
            (5, 3, "0.005"),
            (-5, 3, "-0.005"),
            (1_234_567, 2, "12345.67"),
            (-100, 0, "-100"),
            (i64::MIN, 4, "-922337203685477.5808"),
        ] {
            assert_eq!(decimal(&value.to_be_bytes(), scale), text);
        }
        assert_eq!(decimal(&[], 1), "0.0");
    }

    #[test]
    fn a_numeric_of_postgresql_has_no_empty_groups_at_its_ends() {
        let numeric = |value: i64, scale| {
            let mut out = Vec::new();
            put_numeric(&value.to_be_bytes(), scale, &mut out);
            out.as_chunks().0.iter().map(|pair| i16::from_be_bytes(*pair)).collect::<Vec<_>>()
        };
        assert_eq!(numeric(0, 2), [0, 0, 0, 2]);
        assert_eq!(numeric(1_234_567, 2), [3, 1, 0, 2, 1, 2345, 6700]);
        assert_eq!(numeric(-5, 3), [1, -1, 0x4000, 3, 50]);
        assert_eq!(numeric(5, 9), [1, -3, 0, 9, 5000]);
        assert_eq!(numeric(100_000_000, 0), [1, 2, 0, 0, 1]);
    }
}
