//! Quantities as a report prints them: few digits, and the unit beside them, so that columns stay narrow.
//! What was not measured is a dash.

use weir_engine::summary::units::FigureUnit;

pub(crate) use weir_metrics::{grouped as count, several, several_of};

/// In place of what was not measured.
pub(crate) const NOTHING: &str = "–";

/// The blank between a number and its unit: no line is broken there.
pub(crate) const TIE: char = '\u{a0}';

/// The units of one dimension, the largest first: what one of it is in base units, and its name.
pub(crate) type Units = &'static [(f64, &'static str)];

pub(crate) const BIT_RATE: Units = &[(1e9, "Gbps"), (1e6, "Mbps"), (1e3, "kbps"), (1.0, "bps")];
pub(crate) const BYTES: Units = &[(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")];
pub(crate) const SECONDS: Units = &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")];
pub(crate) const COUNT: Units = &[(1e9, "G"), (1e6, "M"), (1.0, "")];
pub(crate) const PERCENT: Units = &[(1.0, "%")];

/// The largest unit in which the value, as it will be printed, is not below 1.
pub(crate) fn unit_of(value: f64, units: Units) -> (f64, &'static str) {
    let smallest = units[units.len() - 1];
    units.iter().copied().find(|(scale, _)| value.abs() / scale >= 0.9995).unwrap_or(smallest)
}

/// The number in its unit, and the unit.
fn scaled(value: f64, units: Units, digits: usize) -> (String, &'static str) {
    if !value.is_finite() {
        return (NOTHING.to_owned(), "");
    }
    if value == 0.0 {
        let base = units.iter().find(|(scale, _)| *scale == 1.0).map_or("", |(_, name)| name);
        return ("0".to_owned(), base);
    }
    let (scale, unit) = unit_of(value, units);
    let number = value.abs() / scale;
    let whole = if number < 9.995 {
        1
    } else if number < 99.95 {
        2
    } else {
        3
    };
    let sign = if value < 0.0 { "−" } else { "" };
    (format!("{sign}{number:.0$}", digits.saturating_sub(whole)), unit)
}

/// Bits a second: number and unit.
pub(crate) fn bit_rate(bps: f64) -> (String, &'static str) {
    scaled(bps, BIT_RATE, 3)
}

/// A span of time in one unit: `812 ms`.
pub(crate) fn seconds(seconds: f64) -> String {
    joined(scaled(seconds, SECONDS, 3))
}

/// Bytes: `43 MB`.
pub(crate) fn bytes(bytes: f64) -> String {
    joined(scaled(bytes, BYTES, 2))
}

/// A number with its unit, or the dash.
pub(crate) fn joined((number, unit): (String, &str)) -> String {
    if unit.is_empty() { number } else { format!("{number}{TIE}{unit}") }
}

/// Percent: `3.4%`, `104%`.
pub(crate) fn percent(percent: f64) -> String {
    match percent {
        p if !p.is_finite() => NOTHING.to_owned(),
        0.0 => "0%".to_owned(),
        p if p.abs() < 0.095 => format!("{p:.2}%"),
        p if p.abs() < 9.95 => format!("{p:.1}%"),
        p => format!("{p:.0}%"),
    }
    .replace('-', "−")
}

/// A part of a whole, where the last parts in a hundred matter: `99.6%`.
pub(crate) fn share(ratio: f64) -> String {
    match ratio * 100.0 {
        p if !p.is_finite() => NOTHING.to_owned(),
        0.0 => "0%".to_owned(),
        p if p.abs() < 0.095 || (p > 99.95 && p < 100.0) => format!("{p:.2}%"),
        p => format!("{p:.1}%"),
    }
    .replace('-', "−")
}

/// A number that need not be whole: whole from 100 up.
pub(crate) fn number(value: f64) -> String {
    match value {
        v if !v.is_finite() => NOTHING.to_owned(),
        v if v.fract() == 0.0 || v.abs() >= 99.95 => {
            let sign = if v.round() < 0.0 { "−" } else { "" };
            format!("{sign}{}", count(v.abs().round() as u64))
        }
        v if v.abs() < 0.995 => format!("{v:.3}").replace('-', "−"),
        v => format!("{v:.1}").replace('-', "−"),
    }
}

/// A value in its unit.
pub(crate) fn in_figure_unit(unit: FigureUnit, value: f64) -> String {
    match unit {
        FigureUnit::Count => number(value),
        FigureUnit::Bytes => bytes(value),
        FigureUnit::Seconds => seconds(value),
        FigureUnit::BitsPerSecond => joined(bit_rate(value)),
        FigureUnit::Percent => percent(value),
        FigureUnit::Ratio => share(value),
    }
}

/// A length of a run: `45 s`, `10 min 5 s`, `2 h 10 min`.
pub(crate) fn span(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return NOTHING.to_owned();
    }
    if seconds < 59.5 {
        let digits = usize::from(seconds < 9.95 && seconds.fract() > 0.05);
        return format!("{seconds:.digits$}{TIE}s");
    }
    let whole = seconds.round() as u64;
    let (hours, minutes, rest) = (whole / 3_600, whole / 60 % 60, whole % 60);
    let parts = if hours > 0 { [(hours, "h"), (minutes, "min")] } else { [(minutes, "min"), (rest, "s")] };
    let parts = parts.iter().filter(|(number, _)| *number > 0);
    parts.map(|(number, unit)| format!("{number}{TIE}{unit}")).collect::<Vec<_>>().join(" ")
}

/// A moment as ISO 8601 has it, in UTC to the second, with `between` date and time.
pub(crate) fn moment(epoch_seconds: f64, between: char) -> String {
    weir_engine::date(epoch_seconds, &format!("%Y-%m-%d{between}%H:%M:%S"))
}

/// A name of no more than `most` letters.
pub(crate) fn shortened(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    name.chars().take(most - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_keeps_three_digits_and_changes_its_unit_where_it_would_print_a_thousand() {
        for (value, text) in [
            (0.0, "0 s"),
            (0.000_000_4, "0.40 µs"),
            (0.0034, "3.40 ms"),
            (0.8124, "812 ms"),
            (0.999_6, "1.00 s"),
            (12.34, "12.3 s"),
            (4_321.0, "4321 s"),
            (-0.0123, "−12.3 ms"),
            (f64::NAN, NOTHING),
        ] {
            assert_eq!(seconds(value).replace(TIE, " "), text, "{value}");
        }
        assert_eq!(bit_rate(1.2149e9), ("1.21".to_owned(), "Gbps"));
        assert_eq!(bit_rate(235_000.0), ("235".to_owned(), "kbps"));
        assert_eq!([43.4e6, 1.25e9].map(bytes), ["43\u{a0}MB", "1.2\u{a0}GB"]);
        assert_eq!([0.0, 0.03, 3.44, 98.6, 104.2].map(percent), ["0%", "0.03%", "3.4%", "99%", "104%"]);
    }

    #[test]
    fn numbers_and_spans_read_as_people_write_them() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([2_499.6, 12.34, 7.0, -3.0].map(number), ["2,500", "12.3", "7", "−3"]);
        assert_eq!([-0.25, -69.8].map(number), ["−0.250", "−69.8"]);
        assert_eq!((percent(-3.44).as_str(), share(-0.24).as_str()), ("−3.4%", "−24.0%"));
        let spans = [3.25, 45.0, 59.7, 605.0, 7_800.0].map(|it| span(it).replace(TIE, " "));
        assert_eq!(spans, ["3.2 s", "45 s", "1 min", "10 min 5 s", "2 h 10 min"]);
        assert_eq!(
            [0.0, 0.0004, 0.24, 0.9962, 0.9998, 1.0].map(share),
            ["0%", "0.04%", "24.0%", "99.6%", "99.98%", "100.0%"]
        );
    }

    #[test]
    fn a_moment_is_a_date_of_the_calendar() {
        assert_eq!(moment(0.0, 'T'), "1970-01-01T00:00:00");
        assert_eq!(moment(951_827_696.9, ' '), "2000-02-29 12:34:56");
        assert_eq!(moment(f64::NAN, 'T'), "1970-01-01T00:00:00");
    }
}
