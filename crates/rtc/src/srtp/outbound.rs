//! Packets that go: protected where they lie, at the end of the caller's buffer.

use super::cipher::{Cipher, RTCP_HEADER};
use super::derivation::Protocol;
use super::inbound::MAX_STREAMS;
use super::{MasterKey, SrtpError};
use crate::rtp::Packet;

/// The first index beyond what one key may protect (RFC 3711 section 9.2).
const RTP_END: u64 = 1 << 48;
const RTCP_END: u32 = 1 << 31;

/// The sending direction of a transport.
#[derive(Debug)]
pub struct Outbound {
    rtp: Cipher,
    rtcp: Cipher,
    /// The highest index of each source.
    streams: Vec<(u32, u64)>,
    /// Of the last RTCP packet of all sources: the first one has 1, as everywhere.
    rtcp_index: u32,
}

impl Outbound {
    /// Protects with this key.
    ///
    /// # Errors
    ///
    /// When the cryptographic library refuses the key.
    pub fn new(key: &MasterKey) -> Result<Self, SrtpError> {
        Ok(Self {
            rtp: Cipher::new(key, Protocol::Rtp)?,
            rtcp: Cipher::new(key, Protocol::Rtcp)?,
            streams: Vec::new(),
            rtcp_index: 0,
        })
    }

    /// Protects the RTP packet that `buffer` ends with, from byte `at` on, and appends its tag.
    ///
    /// A packet that is sent again is protected as it was the first time. What is sent under a number that was used
    /// before must therefore be the same, or both are laid open.
    ///
    /// # Errors
    ///
    /// When it is no RTP packet, there are too many sources, or the keys are used up.
    pub fn protect_rtp(&mut self, buffer: &mut Vec<u8>, at: usize) -> Result<(), SrtpError> {
        let header = Packet::parse(buffer.get(at..).unwrap_or(&[]))?;
        let (ssrc, number, header_length) = (header.ssrc(), header.sequence_number(), header.header_length());
        let stream = self.stream(ssrc, number)?;
        let step = number.wrapping_sub(*stream as u16) as i16;
        let index = stream.checked_add_signed(step.into()).ok_or(SrtpError::TooOld)?;
        if index >= RTP_END {
            return Err(SrtpError::Exhausted);
        }
        *stream = index.max(*stream);
        self.rtp.seal_rtp((ssrc, index), header_length, buffer, at)
    }

    /// Protects the compound RTCP packet that `buffer` ends with, from byte `at` on, and appends its tag and index.
    ///
    /// # Errors
    ///
    /// When it is too short, or the keys are used up.
    pub fn protect_rtcp(&mut self, buffer: &mut Vec<u8>, at: usize) -> Result<(), SrtpError> {
        let packet = buffer.get(at..).unwrap_or(&[]);
        let header: Option<&[u8; RTCP_HEADER]> = packet.first_chunk();
        let &[_, _, _, _, a, b, c, d] = header.ok_or(SrtpError::TooShort(packet.len()))?;
        if self.rtcp_index + 1 >= RTCP_END {
            return Err(SrtpError::Exhausted);
        }
        self.rtcp_index += 1;
        self.rtcp.seal_rtcp((u32::from_be_bytes([a, b, c, d]), self.rtcp_index), buffer, at)
    }

    fn stream(&mut self, ssrc: u32, number: u16) -> Result<&mut u64, SrtpError> {
        let place = match self.streams.iter().position(|(this, _)| *this == ssrc) {
            Some(place) => place,
            None if self.streams.len() >= MAX_STREAMS => return Err(SrtpError::TooManyStreams),
            None => {
                self.streams.push((ssrc, number.into()));
                self.streams.len() - 1
            }
        };
        Ok(&mut self.streams[place].1)
    }
}
