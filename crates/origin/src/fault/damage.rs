//! How a packet of a transport stream is damaged.

use super::Damage;
use crate::stream::Packet;

/// Noise never has a sync byte in it, so that a search for packets finds none there.
const SYNC: u8 = weir_ts::packet::SYNC_BYTE;

/// What is sent in the place of a packet: the pieces, in order. `damages` are those that meet it.
pub(crate) fn damaged(packet: &Packet, damages: &[Damage]) -> Vec<Packet> {
    let mut bytes = packet.bare().to_vec();
    let mut pieces = Vec::new();
    let mut cropped = 0;
    for damage in damages {
        match *damage {
            Damage::Counter(by) => change(&mut bytes, 3, |byte| byte & 0xF0 | (byte.wrapping_add(by) & 15)),
            Damage::Error => change(&mut bytes, 1, |byte| byte | 0x80),
            Damage::Scrambling(control) => change(&mut bytes, 3, |byte| byte & 0x3F | control << 6),
            Damage::Sync => change(&mut bytes, 0, |_| 0),
            Damage::Crop(count) => cropped = cropped.max(count.min(bytes.len())),
            Damage::Junk { bytes, of } => pieces.push(packet.replaced(0, junk(bytes, of))),
        }
    }
    // What is cut short is no whole unit any more.
    pieces.push(packet.replaced(u32::from(cropped == 0), bytes.split_off(cropped)));
    pieces.retain(|piece| piece.len() > 0);
    pieces
}

fn change(bytes: &mut [u8], at: usize, by: impl Fn(u8) -> u8) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte = by(*byte);
    }
}

fn junk(count: usize, of: Option<u8>) -> Vec<u8> {
    let noise = |n: usize| {
        let byte = (n as u32).wrapping_mul(2_654_435_761).rotate_left(9) as u8;
        if byte == SYNC { !SYNC } else { byte }
    };
    (0..count).map(|n| of.unwrap_or_else(|| noise(n))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Kind;

    fn bytes(damages: &[Damage]) -> Vec<u8> {
        let mut bytes = [0xFF; 188];
        bytes[..4].copy_from_slice(&[0x47, 0x01, 0x00, 0x1E]);
        let packet = Packet::units(Kind::Transport, 1, &bytes[..], (0, 0));
        damaged(&packet, damages).iter().flat_map(|piece| piece.bare().to_vec()).collect()
    }

    #[test]
    fn a_header_is_changed_where_the_damage_says() {
        for (damage, header) in [
            (Damage::Counter(3), [0x47, 0x01, 0x00, 0x11]),
            (Damage::Error, [0x47, 0x81, 0x00, 0x1E]),
            (Damage::Scrambling(2), [0x47, 0x01, 0x00, 0x9E]),
            (Damage::Sync, [0x00, 0x01, 0x00, 0x1E]),
        ] {
            assert_eq!(bytes(&[damage])[..4], header, "{damage:?}");
            assert_eq!(bytes(&[damage]).len(), 188);
        }
        assert_eq!(bytes(&[Damage::Error, Damage::Counter(1)])[..4], [0x47, 0x81, 0x00, 0x1F]);
    }

    #[test]
    fn bytes_are_put_in_and_left_out() {
        assert_eq!(bytes(&[Damage::Crop(100)]).len(), 88);
        assert_eq!(bytes(&[Damage::Crop(188)]).len(), 0);
        let with_noise = bytes(&[Damage::Junk { bytes: 5_000, of: None }]);
        assert_eq!(with_noise.len(), 5_188);
        assert!(!with_noise[..5_000].contains(&SYNC));
        assert_eq!(bytes(&[Damage::Junk { bytes: 3, of: Some(SYNC) }])[..4], [SYNC; 4]);
    }
}
