//! Interleaved packets taken apart: for a peer that gets them as datagrams, of which the kernel takes several of one length in one
//! call.

/// Bytes that are handed on in one call: below what one call of UDP takes (65,507).
const MOST: usize = 60_000;

/// In front of each packet: a dollar sign, its channel and its length (RFC 2326 section 10.12).
const HEADER: usize = 4;

/// Takes interleaved packets apart. Keeps its buffer.
#[derive(Debug, Default)]
pub struct Deinterleaver {
    joined: Vec<u8>,
}

impl Deinterleaver {
    /// Takes whole packets, as [`append_frame_header`](crate::append_frame_header) has framed them. `send` gets packets of one channel
    /// that follow each other: the channel, their bytes, and how long each but the last is, which may be shorter. What is not
    /// a packet ends it.
    pub fn take(&mut self, mut bytes: &[u8], send: &mut dyn FnMut(u8, &[u8], usize)) {
        let mut run: Option<(u8, usize)> = None;
        while let Some((channel, packet, behind)) = first(bytes) {
            bytes = behind;
            let fits = run.is_some_and(|(of, length)| {
                let is_open = self.joined.len().is_multiple_of(length);
                of == channel && packet.len() <= length && is_open && self.joined.len() + packet.len() <= MOST
            });
            if !fits {
                self.flush(run, send);
                run = (!packet.is_empty()).then_some((channel, packet.len()));
            }
            self.joined.extend_from_slice(packet);
        }
        self.flush(run, send);
    }

    fn flush(&mut self, run: Option<(u8, usize)>, send: &mut dyn FnMut(u8, &[u8], usize)) {
        if let Some((channel, length)) = run {
            send(channel, &self.joined, length);
        }
        self.joined.clear();
    }
}

/// The first packet, its channel, and what lies behind it.
fn first(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let [b'$', channel, high, low] = *bytes.first_chunk::<HEADER>()? else { return None };
    let end = HEADER + usize::from(u16::from_be_bytes([high, low]));
    Some((channel, bytes.get(HEADER..end)?, &bytes[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::append_frame_header;
    use proptest::prelude::*;

    fn framed(packets: &[(u8, usize)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (channel, length) in packets {
            append_frame_header(*channel, *length as u16, &mut bytes);
            bytes.resize(bytes.len() + length, *channel);
        }
        bytes
    }

    #[test]
    fn packets_of_one_channel_and_length_go_together_and_a_shorter_one_is_their_last() {
        let packets = [(0, 100), (0, 100), (0, 30), (0, 30), (0, 100), (1, 100), (1, 0), (0, 7)];
        let mut sent = Vec::new();
        let bytes = [framed(&packets), b"$\0\0\x09cut".to_vec()].concat();
        Deinterleaver::default().take(&bytes, &mut |channel, bytes, length| {
            sent.push((channel, bytes.len(), length));
        });
        assert_eq!(sent, [(0, 230, 100), (0, 30, 30), (0, 100, 100), (1, 100, 100), (0, 7, 7)]);
    }

    proptest! {
        #[test]
        fn what_is_handed_on_is_every_packet_once_and_in_order(
            packets in prop::collection::vec((0_u8..3, prop::sample::select(vec![0_usize, 1, 2, 1_412, 30_000])), 0..60),
        ) {
            let mut sent = Vec::new();
            Deinterleaver::default().take(&framed(&packets), &mut |channel, bytes, length| {
                assert!(bytes.len() <= MOST);
                sent.extend(bytes.chunks(length).map(|bytes| (channel, bytes.len())));
            });
            let expected: Vec<_> = packets.into_iter().filter(|(_, length)| *length > 0).collect();
            prop_assert_eq!(sent, expected);
        }
    }
}
