//! Floating point numbers: from decimal digits to the nearest double, exactly.
//!
//! Most of the time of reading JSON is spent here. What programs write, up to 19 digits and a small power of ten, is
//! rounded by one or two multiplications, as D. Lemire, "Number Parsing at a Gigabyte per Second" (2021), has it; all
//! else is left to a library that knows every case.

/// A number as it stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    negative: bool,
    /// Its digits as one number, if there are no more than 19 from the first that is not 0.
    digits: Option<u64>,
    /// The power of ten to multiply that with.
    power: i32,
    /// Where it ends.
    pub(super) end: usize,
}

/// The powers of ten that the table has: for them 128 bits are enough, whatever the digits are (section 8).
const POWERS: i32 = 27;

/// 128 bits of 5 to the power of −27 up to 27, the highest bit set: those below 1 rounded up, the others exact.
const FIVES: [u128; 2 * POWERS as usize + 1] = {
    let mut table = [0; 2 * POWERS as usize + 1];
    let (mut power, mut five) = (0, 1_u128);
    while power <= POWERS as usize {
        table[POWERS as usize + power] = five << five.leading_zeros();
        // 2 to the power of 127 and of the bits of the divisor, divided bit by bit.
        let (mut quotient, mut rest, mut bit) = (0_u128, five.next_power_of_two(), 0);
        while bit < 128 {
            let fits = rest >= five;
            quotient = quotient << 1 | fits as u128;
            rest = if fits { rest - five } else { rest } << 1;
            bit += 1;
        }
        if power > 0 {
            table[POWERS as usize - power] = quotient + 1;
        }
        five *= 5;
        power += 1;
    }
    table
};

const TENS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

impl Decimal {
    /// Reads a number as the grammar has it (RFC 8259, section 6).
    #[inline(always)]
    pub(super) fn read(input: &[u8], begin: usize) -> Option<Self> {
        let text = input.get(begin..)?;
        let (negative, unsigned) = match text {
            [b'-', rest @ ..] => (true, rest),
            _ => (false, text),
        };
        // Most often there is one digit before the point, and that is 0.
        let (mut digits, mut rest, mut count) = match unsigned {
            [b'0', b'0'..=b'9', ..] => return None,
            [b'0', rest @ ..] => (0, rest, 0),
            [b'1'..=b'9', ..] => {
                let (digits, rest) = singly(unsigned, 0);
                (digits, rest, unsigned.len() - rest.len())
            }
            _ => return None,
        };
        let mut power = 0;
        if let [b'.', after @ ..] = rest {
            (digits, rest) = fraction(after, digits);
            let places = after.len() - rest.len();
            if places == 0 {
                return None;
            }
            count += places;
            // A payload has less than four thousand million bytes, and more than 19 digits are not used.
            power = -(places.min(i32::MAX as usize) as i32);
        }
        if let [b'e' | b'E', after @ ..] = rest {
            let exponent = exponent(after)?;
            power = power.saturating_add(exponent.0);
            rest = exponent.1;
        }
        let end = input.len() - rest.len();
        Some(Self { negative, digits: (count <= 19).then_some(digits), power, end })
    }

    /// The nearest double, if the digits are as usual.
    #[inline(always)]
    pub(super) fn double(&self) -> Option<f64> {
        let digits = self.digits?;
        let sign = u64::from(self.negative) << 63;
        if digits == 0 {
            return Some(f64::from_bits(sign));
        }
        if self.power < -POWERS || self.power > POWERS {
            return None;
        }
        Some(f64::from_bits(nearest(digits, self.power) | sign))
    }
}

/// Reads digits after `digits`, and gives them all and what follows.
#[inline(always)]
fn fraction(mut rest: &[u8], mut digits: u64) -> (u64, &[u8]) {
    while let Some((chunk, after)) = rest.split_first_chunk() {
        // '0' to '9' become 0 to 9; all else has a high bit, or gets one by what is added.
        let word = u64::from_le_bytes(*chunk) ^ 0x3030_3030_3030_3030;
        let other = (word.wrapping_add(0x7676_7676_7676_7676) | word) & 0x8080_8080_8080_8080;
        if other == 0 {
            digits = digits.wrapping_mul(TENS[8]).wrapping_add(eight(word));
            rest = after;
            continue;
        }
        let count = other.trailing_zeros() / 8;
        // The digits move up, and zeros come in front of them; the first byte that is not a digit goes last.
        let word = (word << 8) << (56 - 8 * count);
        let digits = digits.wrapping_mul(TENS[count as usize]).wrapping_add(eight(word));
        return (digits, &rest[count as usize..]);
    }
    singly(rest, digits)
}

/// The same, one by one.
#[inline]
fn singly(mut rest: &[u8], mut digits: u64) -> (u64, &[u8]) {
    while let [digit @ b'0'..=b'9', after @ ..] = rest {
        digits = digits.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
        rest = after;
    }
    (digits, rest)
}

/// Eight digits, one a byte, the first in the lowest: by twos, by fours, all.
#[inline(always)]
fn eight(word: u64) -> u64 {
    const TWOS: u64 = 0x0000_00FF_0000_00FF;
    let twos = word.wrapping_mul(10).wrapping_add(word >> 8);
    let high = (twos & TWOS).wrapping_mul(100 + (1_000_000 << 32));
    let low = (twos >> 16 & TWOS).wrapping_mul(1 + (10_000 << 32));
    high.wrapping_add(low) >> 32
}

/// What follows an `e`, and what follows that.
fn exponent(text: &[u8]) -> Option<(i32, &[u8])> {
    let (negative, mut rest) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let before = rest.len();
    let mut value = 0_i32;
    while let [digit @ b'0'..=b'9', after @ ..] = rest {
        value = value.saturating_mul(10).saturating_add(i32::from(digit - b'0'));
        rest = after;
    }
    (rest.len() < before).then_some((if negative { -value } else { value }, rest))
}

/// The bits of the double that is nearest to `digits` times ten to the power of `power`, the even one of two that are
/// equally near. There are digits, and the power is in the table, so that the number is neither tiny nor huge.
#[inline(always)]
fn nearest(digits: u64, power: i32) -> u64 {
    let zeros = digits.leading_zeros();
    let digits = digits << zeros;
    let five = FIVES[(power + POWERS) as usize];
    let mut product = u128::from(digits) * (five >> 64);
    // Nine bits below the mantissa and its rounding are all set: what was left out of the power may carry into them.
    if (product >> 64) as u64 & 0x1FF == 0x1FF {
        product += (u128::from(digits) * u128::from(five as u64)) >> 64;
    }
    let (high, low) = ((product >> 64) as u64, product as u64);
    let upper = (high >> 63) as u32;
    // 53 bits and one to round by.
    let mut mantissa = high >> (upper + 9);
    // Halfway between two, and not just seemingly: only powers that have so few bits give that.
    if low <= 1 && (-4..=23).contains(&power) && mantissa & 3 == 1 && mantissa << (upper + 9) == high {
        mantissa &= !1;
    }
    mantissa = (mantissa + (mantissa & 1)) >> 1;
    // The integer part of the binary logarithm of ten to that power, and the bits of the digits.
    let exponent = ((power * 217_706) >> 16) + 63 + upper as i32 - zeros as i32 + 1_023;
    // The mantissa's highest bit is 1 and adds one to the exponent; so does rounding up to the next power of two.
    ((exponent as u64 - 1) << 52) + mantissa
}

/// The whole number that a number of the grammar with a fraction or an exponent stands for, exactly; `None` if it has a
/// fraction, or more than 64 bits.
#[cold]
pub(super) fn whole(text: &str) -> Option<i64> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let (sign, before) = before.strip_prefix('-').map_or(("", before), |before| ("-", before));
    let digits = format!("{before}{after}");
    let digits = digits.trim_start_matches('0');
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return Some(0);
    }
    let dropped = (digits.len() - significant.len()) as i64;
    let zeros = exponent.parse::<i64>().ok()?.checked_sub(after.len() as i64)?.checked_add(dropped)?;
    // No number of 64 bits has more than 19 digits.
    let zeros = usize::try_from(zeros).ok().filter(|zeros| significant.len() + zeros <= 19)?;
    format!("{sign}{significant}{}", "0".repeat(zeros)).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_those_without_a_fraction_however_they_are_written() {
        for (text, value) in [
            ("1.0", 1),
            ("-0.0", 0),
            ("1e3", 1_000),
            ("-12.50E+1", -125),
            ("1200e-2", 12),
            ("9007199254740993.0", 9_007_199_254_740_993),
            ("-9223372036854775808.00", i64::MIN),
            ("0e999999999999999999", 0),
        ] {
            assert_eq!(whole(text), Some(value), "{text}");
        }
        for text in ["1.5", "1e-1", "9223372036854775808.0", "1e19", "1e999999999999999999999", "1.0e-1"] {
            assert_eq!(whole(text), None, "{text}");
        }
    }
    use proptest::prelude::*;

    fn double(text: &str) -> Option<f64> {
        let decimal = Decimal::read(text.as_bytes(), 0)?;
        assert_eq!(decimal.end, text.len(), "{text}");
        decimal.double()
    }

    fn agrees(text: &str) {
        let expected: f64 = text.parse().unwrap();
        if let Some(found) = double(text) {
            assert_eq!(found.to_bits(), expected.to_bits(), "{text}: {found:e} {expected:e}");
        }
    }

    #[test]
    fn numbers_halfway_go_to_the_even_one() {
        for text in [
            "9007199254740992",
            "9007199254740993",
            "9007199254740995",
            "9007199254740994.5",
            "9007199254740992.5",
            "4503599627370496.5",
            "4503599627370497.5",
            "1e23",
            "8.5e22",
            "0.5",
            "0.1",
            "18014398509481986",
            "5e-324",
            "0.30000000000000004",
            "1.7976931348623157e308",
            "9999999999999999999",
            "0.000000000000000000000000001",
            "123456789012345678e-27",
            "1e-27",
            "1e27",
            "-0.0",
            "0e5",
        ] {
            agrees(text);
        }
    }

    #[test]
    fn usual_numbers_need_no_library() {
        for text in ["0.8444218515250481", "123456.789", "-1e-5", "1E+22", "0.0", "17"] {
            assert!(double(text).is_some(), "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn digits_and_powers_agree_with_the_standard_library(digits: u64, shift in 0_u32..64, power in -30_i32..30) {
            agrees(&format!("{}e{power}", digits >> shift));
        }

        #[test]
        fn shortest_numbers_agree_with_the_standard_library(bits: u64, near_one in 0.0_f64..1.0) {
            for number in [f64::from_bits(bits), near_one, near_one * 1e6] {
                if number.is_finite() {
                    agrees(&format!("{number:?}"));
                    agrees(&format!("{number:.9}"));
                }
            }
        }

        #[test]
        fn numbers_halfway_agree_with_the_standard_library(mantissa in 1_u64 << 52..1 << 53, shift in 0_u32..11) {
            agrees(&format!("{}", (u128::from(mantissa) << 1 | 1) << shift));
        }
    }
}
