//! Whether pictures of H.264 may be sent as fields, two of which a decoder shows as one frame: then the number of frames is not that of
//! the access units.

/// Profiles whose sequence parameter sets say something of colours first (ITU-T H.264 section 7.3.2.1.1).
const WITH_CHROMA_FORMAT: [u32; 13] = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135];

/// Whether a sequence parameter set allows fields, or does not say that it allows none.
pub(super) fn may_have_fields(unit: &[u8]) -> bool {
    frame_mbs_only(unit) != Some(true)
}

/// `frame_mbs_only_flag` (section 7.3.2.1.1).
fn frame_mbs_only(unit: &[u8]) -> Option<bool> {
    let mut bits = Bits::behind_header(unit);
    let profile = bits.number(8)?;
    bits.number(16)?;
    bits.golomb()?;
    if WITH_CHROMA_FORMAT.contains(&profile) {
        let chroma_format = bits.golomb()?;
        if chroma_format == 3 {
            bits.number(1)?;
        }
        bits.golomb()?;
        bits.golomb()?;
        bits.number(1)?;
        if bits.number(1)? == 1 {
            for list in 0..if chroma_format == 3 { 12 } else { 8 } {
                if bits.number(1)? == 1 {
                    bits.scaling_list(if list < 6 { 16 } else { 64 })?;
                }
            }
        }
    }
    bits.golomb()?;
    match bits.golomb()? {
        0 => _ = bits.golomb()?,
        1 => {
            bits.number(1)?;
            bits.golomb()?;
            bits.golomb()?;
            // num_ref_frames_in_pic_order_cnt_cycle (section 7.4.2.1.1).
            for _ in 0..bits.golomb().filter(|count| *count <= 255)? {
                bits.golomb()?;
            }
        }
        _ => {}
    }
    bits.golomb()?;
    bits.number(1)?;
    bits.golomb()?;
    bits.golomb()?;
    Some(bits.number(1)? == 1)
}

/// Bits of a NAL unit, the most significant first.
struct Bits {
    /// Without bytes that prevent the emulation of start codes.
    bytes: Vec<u8>,
    at: usize,
}

/// A sequence parameter set with all scaling lists up to the flag is shorter.
const LONGEST_HEAD: usize = 1024;

impl Bits {
    fn behind_header(unit: &[u8]) -> Self {
        let mut zeros = 0;
        let bytes = unit.iter().skip(1).copied().take(LONGEST_HEAD).filter(|byte| {
            let is_escape = zeros >= 2 && *byte == 3;
            zeros = if *byte == 0 { zeros + 1 } else { 0 };
            !is_escape
        });
        Self { bytes: bytes.collect(), at: 0 }
    }

    fn number(&mut self, count: usize) -> Option<u32> {
        let mut number = 0;
        for at in self.at..self.at + count {
            let byte = self.bytes.get(at / 8)?;
            number = number << 1 | u32::from(byte >> (7 - at % 8) & 1);
        }
        self.at += count;
        Some(number)
    }

    /// An unsigned Exp-Golomb code (section 9.1); a signed one has the same length.
    fn golomb(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while self.number(1)? == 0 {
            zeros += 1;
            if zeros == 32 {
                return None;
            }
        }
        Some((1 << zeros) - 1 + self.number(zeros)?)
    }

    fn signed_golomb(&mut self) -> Option<i32> {
        let code = self.golomb()?;
        let magnitude = code.div_ceil(2) as i32;
        Some(if code % 2 == 1 { magnitude } else { -magnitude })
    }

    /// Section 7.3.2.1.1.1.
    fn scaling_list(&mut self, length: usize) -> Option<()> {
        let (mut last, mut next) = (8, 8);
        for _ in 0..length {
            if next != 0 {
                next = (last + self.signed_golomb()?).rem_euclid(256);
            }
            last = if next == 0 { last } else { next };
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_and_fields_are_told_apart() {
        // Of x264: baseline, high, and high with fields.
        for (unit, fields) in [
            (&[0x67, 0x42, 0xC0, 0x0D, 0xD9, 0x01, 0x41, 0xFA, 0x10, 0x00, 0x00, 0x03][..], false),
            (&[0x67, 0x64, 0x00, 0x0D, 0xAC, 0xD9, 0x41, 0x41, 0xFA, 0x10, 0x00, 0x00, 0x03], false),
            (&[0x67, 0x64], true),
            (&[], true),
            (&[0x67, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], true),
        ] {
            assert_eq!(may_have_fields(unit), fields, "{unit:x?}");
        }
    }
}
