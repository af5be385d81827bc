//! Packets to one peer that leave in one system call: all of one length, but for the last (UDP GSO).

use crate::rtp::Header;
use crate::srtp::Outbound;

/// Bytes of one system call.
const MOST: usize = 60_000;

/// Protected packets that wait for those behind them. Keeps its buffer.
#[derive(Debug, Default)]
pub struct Bundle {
    bytes: Vec<u8>,
    /// Length of the first.
    length: usize,
}

impl Bundle {
    /// Protects a packet and puts it to the others. `send` gets those that cannot wait for it: their bytes, and how long
    /// each but the last is. Whether the packet will be sent.
    pub fn add(
        &mut self,
        header: &Header,
        payload: &[u8],
        keys: &mut Outbound,
        send: &mut dyn FnMut(&[u8], usize),
    ) -> bool {
        let at = self.bytes.len();
        // Without elements nothing is refused.
        let _ = header.append(&[], &mut self.bytes);
        self.bytes.extend_from_slice(payload);
        if keys.protect_rtp(&mut self.bytes, at).is_err() {
            self.bytes.truncate(at);
            return false;
        }
        let length = self.bytes.len() - at;
        if at == 0 {
            self.length = length;
        } else if length > self.length {
            // It cannot go with those before it.
            send(&self.bytes[..at], self.length);
            self.bytes.drain(..at);
            self.length = length;
        }
        if length < self.length || self.bytes.len() > MOST {
            self.flush(send);
        }
        true
    }

    /// Sends what waits.
    pub fn flush(&mut self, send: &mut dyn FnMut(&[u8], usize)) {
        if !self.bytes.is_empty() {
            send(&self.bytes, self.length);
            self.bytes.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::srtp::{MasterKey, Profile};

    #[test]
    fn packets_of_one_length_leave_together_and_a_shorter_one_is_their_last() {
        let key = MasterKey::new(Profile::AeadAes128Gcm, &[1; 16], &[2; 12]).unwrap();
        let mut keys = Outbound::new(&key).unwrap();
        let mut bundle = Bundle::default();
        let mut sent = Vec::new();
        let lengths = [50, 900, 900, 900, 400, 900, 900];
        for (sequence_number, length) in (0..).zip(lengths) {
            let header = Header { marker: false, payload_type: 96, sequence_number, timestamp: 0, ssrc: 1 };
            let mut send = |bytes: &[u8], length: usize| sent.push((bytes.len().div_ceil(length), length));
            assert!(bundle.add(&header, &vec![7; length], &mut keys, &mut send));
        }
        bundle.flush(&mut |bytes, length| sent.push((bytes.len().div_ceil(length), length)));
        let whole = |payload: usize| payload + 12 + 16;
        assert_eq!(sent, [(1, whole(50)), (4, whole(900)), (2, whole(900))]);
    }
}
