//! Numbers that are drawn from a seed and the number of a message: the same for the same run, whatever was drawn before, so that a message
//! that is sent again is the same.

use fastrand::Rng;

/// Mixes a seed with a number (SplitMix64, Steele, Lea and Flood 2014).
pub(super) fn mixed(seed: u64, number: u64) -> u64 {
    let mut mixed = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

/// Random numbers of a message.
pub(super) fn of_message(seed: u64, number: u64) -> Rng {
    Rng::with_seed(mixed(seed, number))
}

/// A number from 0, which may be it, to 1, which is not.
pub(super) fn fraction(seed: u64, number: u64) -> f64 {
    // 53 bits are what a double has.
    (mixed(seed, number) >> 11) as f64 / (1_u64 << 53) as f64
}
