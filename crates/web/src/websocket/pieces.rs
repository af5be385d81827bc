//! Binary messages in pieces, for protocols to which the bounds of messages mean nothing (MQTT 5 section 6): however long a message is,
//! nothing of it waits for its end. Of frames, the heads are read, and each piece of a payload gets a head that makes it a
//! message of its own; everything else, and what is malformed, goes on as it came, to be judged there.

use std::collections::VecDeque;

/// The longest piece, in bytes.
pub(super) const PIECE: usize = 16 << 10;

/// Bits of a head's first two bytes (RFC 6455 section 5.2).
const FIN: u8 = 0x80;
const OPCODE: u8 = 0x0F;
const MASK: u8 = 0x80;

/// Opcodes of data frames.
const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;

/// An opcode without a meaning, and the end of a message that did not begin: they are refused as what they stand for.
const RESERVED: u8 = 3;
const NO_MESSAGE: u8 = FIN | CONTINUATION;

/// What cuts the frames of one direction.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// What has come of a head: 14 bytes at most.
    head: Vec<u8>,
    /// The payload under way.
    payload: Option<Payload>,
    /// The opcode of the message under way, if it comes in several frames.
    message: Option<u8>,
}

#[derive(Debug)]
struct Payload {
    left: u64,
    /// The first byte of the head of each piece; `None` where the frame goes on as it is.
    first: Option<u8>,
    /// The key of what comes next.
    mask: Option<[u8; 4]>,
}

impl Pieces {
    /// Appends what came to `out`.
    pub(super) fn take(&mut self, mut bytes: &[u8], out: &mut VecDeque<u8>) {
        while let Some((byte, rest)) = bytes.split_first() {
            if let Some(payload) = &mut self.payload {
                payload.take(&mut bytes, out);
                self.payload.take_if(|payload| payload.left == 0);
                continue;
            }
            self.head.push(*byte);
            bytes = rest;
            if self.head.len() >= 2 && self.head.len() == head_length(self.head[1]) {
                self.begin(out);
                self.head.clear();
            }
        }
    }

    /// A head is whole.
    fn begin(&mut self, out: &mut VecDeque<u8>) {
        let head = &self.head[..];
        let (first, opcode) = (head[0], head[0] & OPCODE);
        let (length, key) = head[2..].split_at(extended(head[1]));
        let mask = key.try_into().ok();
        let left = if length.is_empty() {
            u64::from(head[1] & !MASK)
        } else {
            length.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        };
        let is_binary = opcode == BINARY || opcode == CONTINUATION && self.message == Some(BINARY);
        let interrupts = opcode == BINARY && self.message == Some(BINARY);
        if matches!(opcode, CONTINUATION | TEXT | BINARY) {
            self.message = (first & FIN == 0).then_some(self.message.unwrap_or(opcode));
        }
        let first = if !is_binary {
            out.extend(head);
            None
        } else if interrupts {
            Some(NO_MESSAGE)
        } else if left >> 63 == 1 {
            // Section 5.2: the highest bit of a length is zero.
            Some(FIN | RESERVED)
        } else {
            Some(first & !OPCODE | FIN | BINARY)
        };
        let mut payload = Payload { left, first, mask };
        if left == 0 {
            // A message without a byte.
            payload.put_head(0, out);
        } else {
            self.payload = Some(payload);
        }
    }
}

impl Payload {
    fn take(&mut self, bytes: &mut &[u8], out: &mut VecDeque<u8>) {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(PIECE);
        let (piece, rest) = bytes.split_at(bytes.len().min(most));
        self.put_head(piece.len(), out);
        out.extend(piece);
        *bytes = rest;
        self.left -= piece.len() as u64;
        if let Some(mask) = &mut self.mask {
            // Byte i is masked with byte i modulo 4 of the key (section 5.3).
            mask.rotate_left(piece.len() % 4);
        }
    }

    /// The head of a piece.
    fn put_head(&mut self, length: usize, out: &mut VecDeque<u8>) {
        let Some(first) = self.first else { return };
        let masks = if self.mask.is_some() { MASK } else { 0 };
        out.push_back(first);
        if length < 126 {
            out.push_back(masks | length as u8);
        } else {
            // A piece is shorter than two bytes can say.
            out.push_back(masks | 126);
            out.extend((length as u16).to_be_bytes());
        }
        out.extend(self.mask.iter().flatten());
    }
}

/// Bytes of the extended length behind a head's second byte.
fn extended(second: u8) -> usize {
    match second & !MASK {
        126 => 2,
        127 => 8,
        _ => 0,
    }
}

/// Bytes of a head with this second byte.
fn head_length(second: u8) -> usize {
    2 + extended(second) + if second & MASK == 0 { 0 } else { 4 }
}

#[cfg(test)]
mod tests {
    use super::super::{Incoming, Role, WebSocket, WebSocketError};
    use super::*;
    use proptest::prelude::*;

    /// The bytes of all messages in these pieces, how they end, and the longest message.
    fn hear(role: Role, pieces: &[&[u8]]) -> (Vec<u8>, Option<WebSocketError>, usize) {
        let (mut socket, mut heard, mut longest) = (WebSocket::in_pieces(role), Vec::new(), 0);
        for piece in pieces {
            socket.input(piece);
            loop {
                match socket.poll(&mut Vec::new()) {
                    Ok(Some(Incoming::Binary(bytes))) => {
                        longest = longest.max(bytes.len());
                        heard.extend(bytes);
                    }
                    Ok(Some(other)) => panic!("{other:?}"),
                    Ok(None) => break,
                    Err(error) => return (heard, Some(error), longest),
                }
            }
        }
        (heard, None, longest)
    }

    #[test]
    fn what_has_come_of_a_message_is_there_before_its_end_and_the_message_may_have_any_length() {
        // Of a message of 2^62 bytes.
        let head = [0x82, 127, 0x40, 0, 0, 0, 0, 0, 0, 0];
        let body = vec![7; 3 * PIECE + 5];
        let (heard, error, longest) = hear(Role::Client, &[&head[..], &body]);
        assert_eq!((heard.len(), error, longest), (body.len(), None, PIECE));
    }

    #[test]
    fn what_breaks_the_standard_is_named_as_without_pieces() {
        for (bytes, error) in [
            // Masked by a server, reserved bits, a reserved opcode.
            (&[0x82, 0x81, 0, 0, 0, 0, 1][..], WebSocketError::Mask),
            (&[0xC2, 1, 1], WebSocketError::Frame),
            (&[0x83, 0], WebSocketError::Frame),
            (&[0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 1, 1], WebSocketError::Frame),
            // A continuation of nothing, a message inside another, a text inside another.
            (&[0x80, 1, 1], WebSocketError::Order),
            (&[0x02, 1, 1, 0x82, 1, 1], WebSocketError::Order),
            (&[0x02, 1, 1, 0x80, 1, 1, 0x80, 1, 1], WebSocketError::Order),
            (&[0x01, 1, b'a', 0x82, 1, 1], WebSocketError::Order),
            // An empty frame that should have been masked.
            (&[0x82, 0x80, 0, 0, 0, 0], WebSocketError::Mask),
        ] {
            assert_eq!(hear(Role::Client, &[bytes]).1, Some(error), "{bytes:x?}");
        }
    }

    proptest! {
        #[test]
        fn every_split_of_messages_in_any_frames_reads_the_same(
            frames in prop::collection::vec(
                (prop::collection::vec(any::<u8>(), 0..300), any::<bool>(), any::<bool>(), any::<[u8; 4]>()), 1..8),
            long in 0usize..70_000,
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
            to_server: bool,
        ) {
            let (role, masks) = if to_server { (Role::Server, MASK) } else { (Role::Client, 0) };
            let (mut wire, mut whole, mut inside) = (Vec::new(), Vec::new(), false);
            let last = (vec![5; long], true, false, [1, 2, 3, 4]);
            for (payload, ends, pings, mask) in frames.iter().chain([&last]) {
                let mut put = |first: u8, payload: &[u8]| {
                    wire.push(first);
                    match payload.len() {
                        length @ 0..126 => wire.push(masks | length as u8),
                        length @ 126..65_536 => {
                            wire.push(masks | 126);
                            wire.extend((length as u16).to_be_bytes());
                        }
                        length => {
                            wire.push(masks | 127);
                            wire.extend((length as u64).to_be_bytes());
                        }
                    }
                    let key = if to_server { *mask } else { [0; 4] };
                    wire.extend(mask.iter().filter(|_| to_server));
                    wire.extend(payload.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key));
                };
                let opcode = if inside { CONTINUATION } else { BINARY };
                put(opcode | if *ends { FIN } else { 0 }, payload);
                if *pings {
                    put(0x89, b"ping");
                }
                inside = !ends;
                whole.extend(payload);
            }
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(wire.len() + 1)).chain([0, wire.len()]).collect();
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &wire[cut[0]..cut[1]]).collect();
            let (heard, error, longest) = hear(role, &pieces);
            prop_assert_eq!((heard, error), (whole, None));
            prop_assert!(longest <= PIECE);
        }

        #[test]
        fn any_bytes_are_cut_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..80), server: bool) {
            let mut socket = WebSocket::in_pieces(if server { Role::Server } else { Role::Client });
            socket.input(&bytes);
            while let Ok(Some(_)) = socket.poll(&mut Vec::new()) {}
        }
    }
}
