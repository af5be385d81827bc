//! Dates of `EXT-X-PROGRAM-DATE-TIME`, which are ISO 8601 (RFC 8216, section 4.3.2.6), and of HTTP's `Date` (RFC 9110, section 5.6.7).

/// Nanoseconds since 1970.
pub(super) type Date = i64;

/// A day in seconds.
const DAY: i64 = 86_400;

/// Reads a date and a time with the zone that it has; without one it is taken as UTC, as players do. The zone may be written without a
/// colon, as ffmpeg's muxer does.
pub(super) fn read(text: &str) -> Option<Date> {
    let text = text.trim();
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let mut date = date.splitn(3, '-').map(|it| digits(it, 4));
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let zone_at = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
    let (time, zone) = time.split_at(zone_at);
    let mut time = time.splitn(3, ':');
    let (hour, minute) = (digits(time.next()?, 2)?, digits(time.next()?, 2)?);
    let (second, fraction) = match time.next() {
        Some(seconds) => seconds.split_once(['.', ',']).unwrap_or((seconds, "")),
        None => ("0", ""),
    };
    let nanoseconds = match fraction {
        "" => 0,
        _ => {
            let kept = &fraction[..fraction.len().min(9)];
            digits(kept, 9)? * 10_i64.pow(9 - kept.len() as u32)
        }
    };
    let seconds = seconds_since_1970(year, month, day)? + hour * 3_600 + minute * 60 + digits(second, 2)?;
    (seconds - offset(zone)?).checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

/// Reads HTTP's date, `Sun, 06 Nov 1994 08:49:37 GMT`, in seconds since 1970.
pub(super) fn read_http(text: &str) -> Option<i64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = text.split_once(", ")?.1.split(' ');
    let (day, month, year) = (words.next()?, words.next()?, words.next()?);
    let month = MONTHS.iter().position(|it| *it == month)? as i64 + 1;
    let mut time = words.next()?.splitn(3, ':').map(|it| digits(it, 2));
    let (hour, minute, second) = (time.next()??, time.next()??, time.next()??);
    let midnight = seconds_since_1970(digits(year, 4)?, month, digits(day, 2)?)?;
    (words.next() == Some("GMT")).then_some(midnight + hour * 3_600 + minute * 60 + second)
}

/// Seconds that a zone is ahead of UTC.
fn offset(zone: &str) -> Option<i64> {
    let (sign, rest) = match zone.chars().next() {
        None | Some('Z' | 'z') => return Some(0),
        Some('-') => (-1, &zone[1..]),
        Some(_) => (1, &zone[1..]),
    };
    let rest = rest.replace(':', "");
    let (hours, minutes) = rest.split_at_checked(2)?;
    let minutes = if minutes.is_empty() { 0 } else { digits(minutes, 2)? };
    Some(sign * (digits(hours, 2)? * 3_600 + minutes * 60))
}

/// A number of this many digits at the most and nothing else.
fn digits(text: &str, most: usize) -> Option<i64> {
    let is_number = !text.is_empty() && text.len() <= most && text.bytes().all(|it| it.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// Midnight of a day of the Gregorian calendar.
fn seconds_since_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years that begin in March: leap days come last. 719,468 days lie between 0000-03-01 and 1970-01-01.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = of_era * 365 + of_era / 4 - of_era / 100 + day_of_year;
    Some((era * 146_097 + day_of_era - 719_468) * DAY)
}

/// A date as servers write it.
#[cfg(test)]
pub(super) fn write(date: Date) -> String {
    let (milliseconds, millisecond) =
        (date.div_euclid(1_000_000), date.div_euclid(1_000_000).rem_euclid(1_000));
    let (day, second) =
        (milliseconds.div_euclid(1_000).div_euclid(DAY), milliseconds.div_euclid(1_000).rem_euclid(DAY));
    let day = day + 719_468;
    let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!(
        "{:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z",
        era * 400 + year_of_era + later
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dates_are_read_as_servers_write_them() {
        let noon = 1_709_208_000; // 2024-02-29T12:00:00Z
        for (text, expected) in [
            ("2024-02-29T12:00:00.000Z", Some(noon * 1_000_000_000)),
            ("2024-02-29T13:30:00.25+01:30", Some(noon * 1_000_000_000 + 250_000_000)),
            // ffmpeg's muxer.
            ("2024-02-29T12:00:00.040+0000", Some(noon * 1_000_000_000 + 40_000_000)),
            ("2024-02-29T04:00:00-08", Some(noon * 1_000_000_000)),
            ("2024-02-29t12:00:00.123456789z", Some(noon * 1_000_000_000 + 123_456_789)),
            ("2024-02-29 12:00", Some(noon * 1_000_000_000)),
            ("1970-01-01T00:00:00Z", Some(0)),
            ("1969-12-31T23:59:59Z", Some(-1_000_000_000)),
            ("2024-13-01T00:00:00Z", None),
            ("2024-02-29", None),
            ("2024-02-29T12:00:00.Z", Some(noon * 1_000_000_000)),
            ("2024-02-29T12:00:00+é", None),
            ("-2024-02-29T12:00:00Z", None),
            ("", None),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
        // The example of RFC 9110, section 5.6.7.
        assert_eq!(read_http("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        for wrong in ["Sunday, 06-Nov-94 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 CET", "", "now"] {
            assert_eq!(read_http(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(milliseconds in -9_000_000_000_000_i64..9_000_000_000_000) {
            let date = milliseconds * 1_000_000;
            prop_assert_eq!(read(&write(date)), Some(date));
        }

        #[test]
        fn nothing_breaks_it(text in "[0-9TZ:+., -]{0,40}", other in ".{0,40}") {
            let _ = (read(&text), read(&other), read_http(&text), read_http(&other));
        }
    }
}
