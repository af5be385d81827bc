//! The civil date of a Unix time, in UTC.

/// A second of the calendar.
pub(crate) struct Date {
    year: u64,
    month: u64,
    day: u64,
    /// Seconds since midnight.
    rest: u64,
}

impl Date {
    /// Of seconds since the Unix epoch, by Howard Hinnant's `civil_from_days`.
    pub(crate) fn of_unix(seconds: u64) -> Self {
        let (days, rest) = (seconds / 86_400, seconds % 86_400);
        let shifted = days + 719_468;
        let era = shifted / 146_097;
        let day_of_era = shifted % 146_097;
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        Self { year: year_of_era + era * 400 + u64::from(month <= 2), month, day, rest }
    }

    /// `2026-11-21 10:49:57`.
    pub(crate) fn spaced(&self) -> String {
        let Self { year, month, day, rest } = self;
        format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", rest / 3_600, rest / 60 % 60, rest % 60)
    }

    /// `20261121T104957Z`.
    pub(crate) fn compact(&self) -> String {
        let Self { year, month, day, rest } = self;
        format!("{year:04}{month:02}{day:02}T{:02}{:02}{:02}Z", rest / 3_600, rest / 60 % 60, rest % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unix_time_is_written_as_its_civil_date() {
        let written = |seconds| Date::of_unix(seconds).compact();
        assert_eq!(written(0), "19700101T000000Z");
        assert_eq!(written(951_827_696), "20000229T123456Z");
        assert_eq!(written(1_795_258_197), "20261121T104957Z");
        assert_eq!(Date::of_unix(1_795_258_197).spaced(), "2026-11-21 10:49:57");
    }
}
