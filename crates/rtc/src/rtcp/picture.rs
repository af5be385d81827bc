//! Requests for a keyframe: PLI (RFC 4585 section 6.3.1) and FIR (RFC 5104 section 4.3.1).

use super::{begin, end, format, kind};

/// Appends a picture loss indication.
pub fn append_picture_loss(sender: u32, media: u32, out: &mut Vec<u8>) {
    let start = begin(format::PICTURE_LOSS, kind::PAYLOAD_FEEDBACK, out);
    out.extend(sender.to_be_bytes());
    out.extend(media.to_be_bytes());
    end(start, out);
}

#[cfg(test)]
mod tests {
    use super::super::{Compound, Packet};
    use super::*;

    #[test]
    fn requests_are_read() {
        let mut bytes = Vec::new();
        append_picture_loss(1, 2, &mut bytes);
        // A full intra request of sender 3 for stream 7, number 200.
        bytes.extend([0x84, 206, 0, 4, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 7, 200, 0, 0, 0]);
        let mut packets = Compound::new(&bytes);
        assert!(matches!(packets.next(), Some(Ok(Packet::PictureLoss { sender: 1, media: 2 }))));
        assert!(matches!(packets.next(), Some(Ok(Packet::FullIntraRequest))));
    }
}
