//! The civil date of a Unix time, in UTC.

use chrono::DateTime;

/// The end of the year 9999, the last that RFC 3339 writes, in seconds since the Unix epoch.
pub(crate) const LATEST_SECONDS: f64 = 253_402_300_799.0;

/// A Unix time in a form of strftime(3): `%Y%m%dT%H%M%SZ`.
pub fn date(seconds: f64, form: &str) -> String {
    let time = DateTime::from_timestamp(seconds.clamp(0.0, LATEST_SECONDS) as i64, 0);
    time.unwrap_or_default().format(form).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unix_time_is_written_as_its_civil_date() {
        let written = |seconds| date(seconds, "%Y%m%dT%H%M%SZ");
        assert_eq!(written(0.0), "19700101T000000Z");
        assert_eq!(written(951_827_696.0), "20000229T123456Z");
        assert_eq!(written(1_795_258_197.0), "20261121T104957Z");
        assert_eq!(date(1_795_258_197.0, "%Y-%m-%d %H:%M:%S"), "2026-11-21 10:49:57");
        assert_eq!(written(1e300), "99991231T235959Z", "a file may say anything");
    }
}
