//! Packets that come: opened in place.

use super::cipher::{Cipher, ENCRYPTED, RTCP_HEADER};
use super::derivation::Protocol;
use super::window::Window;
use super::{MasterKey, SrtpError};
use crate::rtp::Packet;

/// How many sources one transport may have.
pub const MAX_STREAMS: usize = 64;

/// The receiving direction of a transport.
#[derive(Debug)]
pub struct Inbound {
    rtp: Cipher,
    rtcp: Cipher,
    rtp_streams: Streams,
    rtcp_streams: Streams,
}

/// What each source has sent. Sources come into being with their first authentic packet.
#[derive(Debug, Default)]
struct Streams(Vec<(u32, Window)>);

impl Streams {
    fn find(&self, ssrc: u32) -> Option<usize> {
        self.0.iter().position(|(this, _)| *this == ssrc)
    }

    fn accept(&mut self, place: Option<usize>, ssrc: u32, index: u64) {
        let place = place.unwrap_or_else(|| {
            self.0.push((ssrc, Window::default()));
            self.0.len() - 1
        });
        self.0[place].1.accept(index);
    }

    /// The index of a packet and the place of its source, if both are new or known.
    fn look_up(
        &self,
        ssrc: u32,
        index: impl FnOnce(&Window) -> Result<u64, SrtpError>,
    ) -> Result<(Option<usize>, u64), SrtpError> {
        match self.find(ssrc) {
            Some(place) => {
                let window = &self.0[place].1;
                let index = index(window)?;
                window.check(index)?;
                Ok((Some(place), index))
            }
            None if self.0.len() >= MAX_STREAMS => Err(SrtpError::TooManyStreams),
            None => Ok((None, index(&Window::default())?)),
        }
    }
}

impl Inbound {
    /// Opens what was protected with this key.
    ///
    /// # Errors
    ///
    /// When the cryptographic library refuses the key.
    pub fn new(key: &MasterKey) -> Result<Self, SrtpError> {
        Ok(Self {
            rtp: Cipher::new(key, Protocol::Rtp)?,
            rtcp: Cipher::new(key, Protocol::Rtcp)?,
            rtp_streams: Streams::default(),
            rtcp_streams: Streams::default(),
        })
    }

    /// Opens an RTP packet in place and gives it back without its tag.
    ///
    /// # Errors
    ///
    /// When it is malformed, came before, is too old, or is not authentic. Its bytes mean nothing then.
    pub fn open_rtp<'a>(&mut self, packet: &'a mut [u8]) -> Result<&'a mut [u8], SrtpError> {
        let header = Packet::parse(packet)?;
        let (ssrc, number, header_length) = (header.ssrc(), header.sequence_number(), header.header_length());
        let (place, index) = self.rtp_streams.look_up(ssrc, |window| window.index(number))?;
        let length = self.rtp.open_rtp((ssrc, index), header_length, packet)?;
        self.rtp_streams.accept(place, ssrc, index);
        Ok(&mut packet[..length])
    }

    /// Opens a compound RTCP packet in place and gives it back without tag and index.
    ///
    /// # Errors
    ///
    /// When it is too short, came before, is too old, or is not authentic. Its bytes mean nothing then.
    pub fn open_rtcp<'a>(&mut self, packet: &'a mut [u8]) -> Result<&'a mut [u8], SrtpError> {
        let too_short = SrtpError::TooShort(packet.len());
        let word = self.rtcp.rtcp_word(packet).ok_or(too_short)?;
        let ssrc =
            packet[..RTCP_HEADER].last_chunk().map(|ssrc| u32::from_be_bytes(*ssrc)).ok_or(too_short)?;
        let (place, index) = self.rtcp_streams.look_up(ssrc, |_| Ok(u64::from(word & !ENCRYPTED)))?;
        let length = self.rtcp.open_rtcp(ssrc, word, packet)?;
        self.rtcp_streams.accept(place, ssrc, index);
        Ok(&mut packet[..length])
    }
}
