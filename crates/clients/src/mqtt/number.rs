//! A range of numbers in a template: `1..100`, or `18.5..24.0` with as many decimals as its bounds are written with.

use fastrand::Rng;
use std::fmt::Write;

/// Decimals that a number may have: what a double can tell apart between two integers of nine digits.
const MOST_DECIMALS: usize = 6;

/// Numbers from one bound to the other, both included, all as likely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NumberRange {
    /// Bounds in units of the last decimal.
    least: i64,
    most: i64,
    decimals: usize,
}

impl NumberRange {
    /// Reads `LEAST..MOST`; `None` for any other text.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (least, most) = text.split_once("..")?;
        let decimals_of = |text: &str| text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let decimals = decimals_of(least).max(decimals_of(most));
        if decimals > MOST_DECIMALS {
            return None;
        }
        let (least, most) = (units(least, decimals)?, units(most, decimals)?);
        (least <= most).then_some(Self { least, most, decimals })
    }

    /// Writes one of them.
    pub(super) fn write(self, random: &mut Rng, out: &mut impl Write) {
        let units = random.i64(self.least..=self.most);
        let scale = 10_u64.pow(self.decimals as u32);
        let (sign, units) = (if units < 0 { "-" } else { "" }, units.unsigned_abs());
        // Texts take all.
        let _ = if self.decimals == 0 {
            write!(out, "{sign}{units}")
        } else {
            write!(out, "{sign}{}.{:0width$}", units / scale, units % scale, width = self.decimals)
        };
    }

    /// Bytes of the longest.
    pub(super) fn longest(self) -> usize {
        // Sign, digits of 64 bits, point.
        22
    }
}

/// A number in units of its last decimal.
fn units(text: &str, decimals: usize) -> Option<i64> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) || digits.ends_with('.') {
        return None;
    }
    let digits: i64 = format!("{whole}{fraction:0<decimals$}").parse().ok()?;
    digits.checked_mul(sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_both_bounds_and_the_decimals_that_they_are_written_with() {
        let mut random = Rng::with_seed(3);
        for (text, all) in [
            ("1..3", &["1", "2", "3"][..]),
            ("-1..1", &["-1", "0", "1"]),
            ("0.5..0.7", &["0.5", "0.6", "0.7"]),
            ("-0.1..0", &["-0.1", "0.0"]),
            ("7..7", &["7"]),
        ] {
            let range = NumberRange::parse(text).unwrap();
            let mut found: Vec<String> = (0..200)
                .map(|_| {
                    let mut out = String::new();
                    range.write(&mut random, &mut out);
                    out
                })
                .collect();
            found.sort();
            found.dedup();
            let mut all = all.to_vec();
            all.sort_unstable();
            assert_eq!(found, all, "{text}");
        }
        let widest = format!("{}..{}", -i64::MAX, i64::MAX);
        assert!(NumberRange::parse(&widest).is_some());
        for text in [
            "",
            "1",
            "1..",
            "..2",
            "2..1",
            "a..b",
            "1.0000001..2",
            "1..9223372036854775808",
            "1.5.2..3",
            "+1..2",
            "1...2",
        ] {
            assert_eq!(NumberRange::parse(text), None, "{text}");
        }
    }
}
