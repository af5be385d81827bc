//! What stands on a link to a TURN server, one frame behind the other: STUN messages and channel data (RFC 8656
//! section 12.5, RFC 8489 section 6.2.2).

/// Bytes before the payload of channel data.
const CHANNEL_HEADER: usize = 4;
/// Bytes before the attributes of a message.
const MESSAGE_HEADER: usize = 20;
/// What is kept of a buffer that a long frame has made grow.
const KEPT: usize = 4 << 10;

/// One frame. It may be changed where it lies.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A STUN message, header included.
    Message(&'a mut [u8]),
    /// A datagram of the peer that the channel is bound to.
    Channel(u16, &'a mut [u8]),
}

/// Bytes that are neither; where the next frame begins is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum FrameError {
    /// A first byte that neither a message nor channel data has.
    #[error("a frame that begins with byte 0x{0:02x} is neither a STUN message nor channel data")]
    Kind(u8),
    /// A message whose length is no multiple of four (RFC 8489 section 5).
    #[error("a STUN message of {0} bytes of attributes, which is not a multiple of 4")]
    Length(u16),
}

/// Takes frames out of pieces of any size. A frame that is whole in a piece is not copied.
#[derive(Debug, Default)]
pub struct Frames {
    /// The beginning of a frame, or the one that was handed out last.
    kept: Vec<u8>,
    handed_out: bool,
}

impl Frames {
    /// The next frame off the front of `input`; `None` when it is used up.
    ///
    /// # Errors
    ///
    /// When the bytes are no frame; there is no more to be had of this link.
    pub fn take<'a, 'b: 'a>(&'a mut self, input: &mut &'b mut [u8]) -> Result<Option<Frame<'a>>, FrameError> {
        if std::mem::take(&mut self.handed_out) {
            self.kept.clear();
            self.kept.shrink_to(KEPT);
        }
        if self.kept.is_empty()
            && let Some((length, padded)) = lengths(input)?
            && padded <= input.len()
        {
            let (frame, rest) = std::mem::take(input).split_at_mut(padded);
            *input = rest;
            return Ok(Some(Frame::of(&mut frame[..length])));
        }
        // First the header with the length, then the rest.
        self.fill(CHANNEL_HEADER, input);
        let Some((length, padded)) = lengths(&self.kept)? else { return Ok(None) };
        self.fill(padded, input);
        if self.kept.len() < padded {
            return Ok(None);
        }
        self.handed_out = true;
        Ok(Some(Frame::of(&mut self.kept[..length])))
    }

    /// Keeps bytes from the front of `input` until there are `length`.
    fn fill(&mut self, length: usize, input: &mut &mut [u8]) {
        let missing = length.saturating_sub(self.kept.len()).min(input.len());
        let (taken, rest) = std::mem::take(input).split_at_mut(missing);
        self.kept.extend_from_slice(taken);
        *input = rest;
    }
}

impl<'a> Frame<'a> {
    /// The frame in a datagram (TURN over UDP), which needs no padding; `None` if it is malformed.
    #[inline]
    pub fn of_datagram(datagram: &'a mut [u8]) -> Option<Self> {
        let (length, _) = lengths(datagram).ok()??;
        (length <= datagram.len()).then(|| Self::of(&mut datagram[..length]))
    }

    fn of(bytes: &'a mut [u8]) -> Self {
        if bytes[0] < 0x40 {
            return Self::Message(bytes);
        }
        let number = u16::from_be_bytes([bytes[0], bytes[1]]);
        Self::Channel(number, &mut bytes[CHANNEL_HEADER..])
    }
}

/// Length of the frame that begins with these bytes, without and with what fills it up to a multiple of four.
fn lengths(bytes: &[u8]) -> Result<Option<(usize, usize)>, FrameError> {
    // Bytes that cannot begin a frame are refused as soon as they are seen.
    if let Some(&first) = bytes.first()
        && !matches!(first, 0x00..=0x4F)
    {
        return Err(FrameError::Kind(first));
    }
    let Some(&[first, _, high, low]) = bytes.first_chunk() else { return Ok(None) };
    let told = u16::from_be_bytes([high, low]);
    let length = usize::from(told);
    if first < 0x40 {
        if told % 4 != 0 {
            return Err(FrameError::Length(told));
        }
        return Ok(Some((MESSAGE_HEADER + length, MESSAGE_HEADER + length)));
    }
    let length = CHANNEL_HEADER + length;
    Ok(Some((length, length.next_multiple_of(4))))
}

/// Takes what a client wants sent apart into datagrams, one a frame, for a server that is reached over UDP.
pub fn datagrams(mut frames: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (_, padded) = lengths(frames).ok()??;
        let (frame, rest) = frames.split_at_checked(padded)?;
        frames = rest;
        Some(frame)
    })
}

/// Appends a datagram as channel data, filled up as it must be over TCP. One over 65,535 bytes is left out.
pub(super) fn append_channel(number: u16, datagram: &[u8], out: &mut Vec<u8>) {
    let Ok(length) = u16::try_from(datagram.len()) else { return };
    out.extend(number.to_be_bytes());
    out.extend(length.to_be_bytes());
    out.extend_from_slice(datagram);
    out.extend(std::iter::repeat_n(0, datagram.len().next_multiple_of(4) - datagram.len()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Owned, to be compared.
    fn all(bytes: &[u8], piece: usize) -> Result<Vec<(u16, Vec<u8>)>, FrameError> {
        let (mut frames, mut found) = (Frames::default(), Vec::new());
        for piece in bytes.chunks(piece.max(1)) {
            let mut piece = piece.to_vec();
            let mut input = &mut piece[..];
            while let Some(frame) = frames.take(&mut input)? {
                found.push(match frame {
                    Frame::Message(bytes) => (0, bytes.to_vec()),
                    Frame::Channel(number, bytes) => (number, bytes.to_vec()),
                });
            }
        }
        Ok(found)
    }

    #[test]
    fn channel_data_is_filled_up_and_a_message_is_not() {
        let mut bytes = Vec::new();
        append_channel(0x4001, b"abcde", &mut bytes);
        assert_eq!(bytes, [0x40, 1, 0, 5, b'a', b'b', b'c', b'd', b'e', 0, 0, 0]);
        let mut message = vec![1, 3, 0, 4];
        message.resize(24, 7);
        bytes.extend(&message);
        append_channel(0x4FFF, b"", &mut bytes);
        let expected = vec![(0x4001, b"abcde".to_vec()), (0, message), (0x4FFF, Vec::new())];
        for piece in 1..=bytes.len() {
            assert_eq!(all(&bytes, piece).as_ref(), Ok(&expected), "pieces of {piece}");
        }
    }

    #[test]
    fn a_datagram_is_one_frame_and_need_not_be_filled_up() {
        let mut sent = Vec::new();
        append_channel(0x4001, b"abcde", &mut sent);
        let mut message = vec![1, 3, 0, 4];
        message.resize(24, 7);
        sent.extend(&message);
        let apart: Vec<&[u8]> = datagrams(&sent).collect();
        assert_eq!(apart, [&sent[..12], &message[..]]);
        for end in [9, 12] {
            let mut datagram = sent[..end].to_vec();
            assert_eq!(
                Frame::of_datagram(&mut datagram),
                Some(Frame::Channel(0x4001, &mut b"abcde".to_vec()[..]))
            );
        }
        assert_eq!(Frame::of_datagram(&mut message.clone()), Some(Frame::Message(&mut message)));
        for none in [&[][..], &[0x40], &[0x40, 1, 0, 5, b'a'], &[0, 1, 0, 3, 0, 0, 0], &[0x80; 12]] {
            assert_eq!(Frame::of_datagram(&mut none.to_vec()), None, "{none:?}");
        }
    }

    #[test]
    fn what_is_no_frame_is_refused_at_its_first_byte() {
        for first in [0x50, 0x7F, 0x80, 0xFF] {
            assert_eq!(all(&[first], 1), Err(FrameError::Kind(first)));
        }
        assert_eq!(all(&[0, 1, 0, 3], 4), Err(FrameError::Length(3)));
    }

    #[test]
    fn a_long_frame_does_not_keep_its_memory() {
        let mut bytes = Vec::new();
        append_channel(0x4000, &[1; 60_000], &mut bytes);
        let mut frames = Frames::default();
        let (mut first, mut rest) = (bytes[..9].to_vec(), bytes[9..].to_vec());
        assert_eq!(frames.take(&mut &mut first[..]), Ok(None));
        let mut input = &mut rest[..];
        assert!(
            matches!(frames.take(&mut input), Ok(Some(Frame::Channel(0x4000, bytes))) if bytes.len() == 60_000)
        );
        assert_eq!(frames.take(&mut input), Ok(None));
        assert!(frames.kept.capacity() <= KEPT);
    }

    proptest! {
        #[test]
        fn every_split_of_a_link_gives_the_same_frames(
            datagrams in proptest::collection::vec(
                (0x4000_u16..0x5000, proptest::collection::vec(any::<u8>(), 0..60)), 0..8,
            ),
            piece in 1_usize..50,
        ) {
            let mut bytes = Vec::new();
            for (number, datagram) in &datagrams {
                append_channel(*number, datagram, &mut bytes);
            }
            prop_assert_eq!(all(&bytes, piece), Ok(datagrams));
        }

        #[test]
        fn any_bytes_are_frames_or_none(
            bytes in proptest::collection::vec(any::<u8>(), 0..200), piece in 1_usize..50,
        ) {
            let (whole, split) = (all(&bytes, bytes.len()), all(&bytes, piece));
            prop_assert_eq!(whole.is_ok(), split.is_ok());
        }
    }
}
