//! Opus in RTP (RFC 7587): one Opus packet is one payload. Its first byte says how long it plays (RFC 6716 section 3.1).

/// Ticks of Opus' RTP clock a second, whatever the sample rate (RFC 7587 section 4.1).
pub const CLOCK_RATE: u32 = 48_000;

/// The longest that a packet may play, in ticks: 120 ms (RFC 6716 section 3.4, R5).
const LONGEST: u32 = 5760;

/// How long a packet plays, in ticks of 1/48000 s; `None` when it is malformed.
pub fn duration_ticks(packet: &[u8]) -> Option<u32> {
    let &table_of_contents = packet.first()?;
    let configuration = table_of_contents >> 3;
    let frame = match configuration {
        0..=11 => [480, 960, 1920, 2880][usize::from(configuration & 3)],
        12..=15 => [480, 960][usize::from(configuration & 1)],
        _ => [120, 240, 480, 960][usize::from(configuration & 3)],
    };
    let frames = match table_of_contents & 3 {
        0 => 1,
        1 | 2 => 2,
        _ => u32::from(packet.get(1)? & 0x3F),
    };
    Some(frame * frames).filter(|ticks| (1..=LONGEST).contains(ticks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_says_how_long_a_packet_plays() {
        // CELT of 20 ms, one frame: what browsers send.
        assert_eq!(duration_ticks(&[0xFC, 1, 2]), Some(960));
        // SILK of 60 ms, two frames; hybrid of 10 ms; CELT of 2.5 ms, three frames.
        assert_eq!(duration_ticks(&[3 << 3 | 1]), Some(5760));
        assert_eq!(duration_ticks(&[12 << 3]), Some(480));
        assert_eq!(duration_ticks(&[16 << 3 | 3, 3]), Some(360));
    }

    #[test]
    fn no_packet_plays_for_no_time_or_over_120_ms() {
        assert_eq!(duration_ticks(&[]), None);
        assert_eq!(duration_ticks(&[3]), None);
        assert_eq!(duration_ticks(&[3, 0]), None);
        assert_eq!(duration_ticks(&[3 << 3 | 3, 3]), None);
    }
}
