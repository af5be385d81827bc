//! Transform coefficients in CAVLC (H.264, clause 9.2), for blocks whose neighbours have no coefficients
//! (nC is 0) and whose coefficients leave no gaps in front (total_zeros is 0).

use crate::bits::BitWriter;

/// Which block is coded: it decides the table of coeff_token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Block {
    /// Intra16x16DCLevel with nC 0: up to 16 coefficients.
    LumaDc,
    /// ChromaDCLevel of 4:2:0, nC −1.
    ChromaDc,
}

/// A block with no coefficient or with the first one only.
pub(crate) fn write_dc(bits: &mut BitWriter, block: Block, level: i32) {
    let (token, token_bits) = match (block, level) {
        (Block::LumaDc, 0) => (0b1, 1),
        (Block::LumaDc, -1 | 1) => (0b01, 2),
        (Block::LumaDc, _) => (0b00_0101, 6),
        (Block::ChromaDc, 0) => (0b01, 2),
        (Block::ChromaDc, -1 | 1) => (0b1, 1),
        (Block::ChromaDc, _) => (0b00_0111, 6),
    };
    bits.bits(token, token_bits);
    match level {
        0 => return,
        -1 | 1 => bits.flag(level < 0), // trailing_ones_sign_flag
        _ => write_levels(bits, &[level]),
    }
    bits.flag(true); // total_zeros 0, tables 9-7 and 9-9
}

/// A luma DC block with all 16 coefficients, each of magnitude 2 or more.
pub(crate) fn write_full_luma_dc(bits: &mut BitWriter, levels: &[i32; 16]) {
    bits.bits(0b0000_0000_0000_0100, 16); // coeff_token: 16 coefficients, no trailing one, nC 0
    write_levels(bits, levels);
}

/// level_prefix and level_suffix of coefficients with no trailing ones before them (clause 9.2.2.1).
fn write_levels(bits: &mut BitWriter, levels: &[i32]) {
    let mut suffix_length = u32::from(levels.len() > 10);
    for (index, &level) in levels.iter().enumerate() {
        let magnitude = level.unsigned_abs();
        let mut code = if level > 0 { 2 * magnitude - 2 } else { 2 * magnitude - 1 };
        if index == 0 {
            code -= 2; // a first level of magnitude 1 would have been a trailing one
        }
        if suffix_length == 0 && (14..30).contains(&code) {
            bits.bits(1, 15);
            bits.bits(code - 14, 4);
        } else if code >= 15 << suffix_length.max(1) {
            // level_prefix 15, then twelve bits
            let escape = if suffix_length == 0 { 30 } else { 15 << suffix_length };
            bits.bits(1, 16);
            bits.bits(code - escape, 12);
        } else {
            bits.bits(1, (code >> suffix_length) + 1);
            bits.bits(code & ((1 << suffix_length) - 1), suffix_length);
        }
        suffix_length = suffix_length.max(1);
        if magnitude > 3 << (suffix_length - 1) && suffix_length < 6 {
            suffix_length += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// level_prefix and level_suffix read as clause 9.2.2.1 says, step by step.
    fn read_levels(bits: &str, count: usize) -> Vec<i32> {
        let mut rest = bits;
        let mut levels = Vec::new();
        let mut suffix_length = if count > 10 { 1 } else { 0 };
        for index in 0..count {
            let prefix = rest.find('1').unwrap();
            rest = &rest[prefix + 1..];
            let suffix_size = match (prefix, suffix_length) {
                (14, 0) => 4,
                (15.., _) => prefix - 3,
                _ => suffix_length,
            };
            let suffix = i32::from_str_radix(&format!("0{}", &rest[..suffix_size]), 2).unwrap();
            rest = &rest[suffix_size..];
            let mut code = (prefix.min(15) << suffix_length) as i32 + suffix;
            if prefix >= 15 && suffix_length == 0 {
                code += 15;
            }
            if index == 0 {
                code += 2;
            }
            let level = if code % 2 == 0 { (code + 2) >> 1 } else { (-code - 1) >> 1 };
            levels.push(level);
            if suffix_length == 0 {
                suffix_length = 1;
            }
            if level.abs() > 3 << (suffix_length - 1) && suffix_length < 6 {
                suffix_length += 1;
            }
        }
        assert_eq!(rest, "");
        levels
    }

    fn written(levels: &[i32]) -> String {
        let mut bits = BitWriter::default();
        write_levels(&mut bits, levels);
        let length = bits.len_bits();
        bits.align();
        let text: String = bits.finish().iter().map(|byte| format!("{byte:08b}")).collect();
        text[..length].to_owned()
    }

    #[test]
    fn every_single_level_reads_back() {
        for level in (-2000..=2000).filter(|level: &i32| level.abs() >= 2) {
            assert_eq!(read_levels(&written(&[level]), 1), [level]);
        }
    }

    proptest::proptest! {
        #[test]
        fn rows_of_levels_read_back(levels in proptest::collection::vec((2i32..1000, proptest::bool::ANY), 1..=16)) {
            let levels: Vec<_> = levels.into_iter().map(|(level, minus)| if minus { -level } else { level }).collect();
            proptest::prop_assert_eq!(read_levels(&written(&levels), levels.len()), levels);
        }
    }
}
