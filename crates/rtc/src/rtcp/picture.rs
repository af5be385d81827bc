//! Requests for a keyframe: PLI (RFC 4585 section 6.3.1) and FIR (RFC 5104 section 4.3.1).

use super::{begin, end, format, kind, u32_at};

/// A full intra request.
#[derive(Clone, Copy, Debug)]
pub struct FullIntraRequest<'a> {
    /// The SSRC of the receiver that asks.
    pub sender: u32,
    entries: &'a [u8],
}

/// One stream of a full intra request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FullIntraEntry {
    /// The stream that needs a keyframe.
    pub media: u32,
    /// The command's number: a request that is repeated has the same.
    pub number: u8,
}

impl<'a> FullIntraRequest<'a> {
    pub(super) fn parse(body: &'a [u8]) -> Option<Self> {
        let entries = body.get(8..).filter(|entries| entries.len().is_multiple_of(8))?;
        Some(Self { sender: u32_at(body, 0)?, entries })
    }

    /// The streams.
    pub fn entries(&self) -> impl Iterator<Item = FullIntraEntry> + use<'a> {
        self.entries.as_chunks::<8>().0.iter().map(|&[a, b, c, d, number, ..]| FullIntraEntry {
            media: u32::from_be_bytes([a, b, c, d]),
            number,
        })
    }
}

/// Appends a picture loss indication.
pub fn append_picture_loss(sender: u32, media: u32, out: &mut Vec<u8>) {
    let start = begin(format::PICTURE_LOSS, kind::PAYLOAD_FEEDBACK, out);
    out.extend(sender.to_be_bytes());
    out.extend(media.to_be_bytes());
    end(start, out);
}

/// Appends a full intra request for one stream.
pub fn append_full_intra_request(sender: u32, entry: FullIntraEntry, out: &mut Vec<u8>) {
    let start = begin(format::FULL_INTRA_REQUEST, kind::PAYLOAD_FEEDBACK, out);
    out.extend(sender.to_be_bytes());
    // The media source of the header is unused and zero (section 4.3.1.2).
    out.extend([0; 4]);
    out.extend(entry.media.to_be_bytes());
    out.extend([entry.number, 0, 0, 0]);
    end(start, out);
}

#[cfg(test)]
mod tests {
    use super::super::{Compound, Packet};
    use super::*;

    #[test]
    fn requests_are_read_as_they_are_written() {
        let entry = FullIntraEntry { media: 7, number: 200 };
        let mut bytes = Vec::new();
        append_picture_loss(1, 2, &mut bytes);
        append_full_intra_request(3, entry, &mut bytes);
        let mut packets = Compound::new(&bytes);
        assert!(matches!(packets.next(), Some(Ok(Packet::PictureLoss { sender: 1, media: 2 }))));
        let Some(Ok(Packet::FullIntraRequest(request))) = packets.next() else { panic!("no request") };
        assert_eq!((request.sender, request.entries().collect::<Vec<_>>()), (3, vec![entry]));
    }
}
