//! Opus of any weight (RFC 6716): silence, filled up with padding. Padding is inside the packet, where no server looks.

/// Samples of one packet, at the only rate that Opus has: 20 ms.
pub(crate) const SAMPLES_PER_PACKET: u32 = 960;

/// Samples a second.
pub(crate) const SAMPLE_RATE: u32 = 48_000;

/// The most bytes of one packet that is made: what fits a datagram with its headers.
pub(crate) const MAX_PACKET_BYTES: u64 = 1_100;

/// Configuration 31: CELT, full band, 20 ms (section 3.1, table 2).
const CELT_FULL_BAND_20_MS: u8 = 31 << 3;

/// A frame of CELT that says that it is silent, and ends.
const SILENCE: [u8; 2] = [0xFF, 0xFE];

/// The largest value of a byte of the padding's length, and how much padding it stands for when another follows
/// (section 3.2.5).
const MORE: usize = 254;

/// One packet of silence, `length` bytes long, or as few more as silence takes.
pub(crate) fn silence(channels: u8, length: usize) -> Vec<u8> {
    let contents = CELT_FULL_BAND_20_MS | u8::from(channels > 1) << 2;
    // Code 0: one frame (section 3.2.2).
    let mut packet = vec![contents];
    if length > 3 {
        // Code 3: a number of frames, here one, and padding (section 3.2.5).
        packet[0] |= 3;
        let rest = length - 4;
        packet.push(u8::from(rest > 0) << 6 | 1);
        if rest > 0 {
            // Each byte of 255 stands for 254 of padding and is followed by another.
            let lengths = (rest - 1) / (MORE + 1) + 1;
            let padding = rest - lengths;
            packet.resize(packet.len() + lengths - 1, 255);
            packet.push((padding - (lengths - 1) * MORE) as u8);
        }
    }
    packet.extend(SILENCE);
    packet.resize(packet.len().max(length), 0);
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The length of a packet's padding, and of its only frame, by section 3.2.5.
    fn read(packet: &[u8]) -> (usize, &[u8]) {
        match packet[0] & 3 {
            0 => (0, &packet[1..]),
            3 if packet[1] == 1 => (0, &packet[2..]),
            3 => {
                assert_eq!(packet[1], 0x41);
                let more = packet[2..].iter().take_while(|&&byte| byte == 255).count();
                let padding = more * 254 + usize::from(packet[2 + more]);
                (padding, &packet[3 + more..packet.len() - padding])
            }
            other => panic!("code {other}"),
        }
    }

    #[test]
    fn every_length_is_met_and_holds_one_frame() {
        for length in 3..=1_275 {
            let packet = silence(2, length);
            assert_eq!(packet.len(), length);
            assert_eq!(read(&packet).1, SILENCE, "{length}");
            assert_eq!(packet[0] & !3, 0xFC);
        }
        assert_eq!(silence(1, 0), [0xF8, 0xFF, 0xFE]);
    }
}
