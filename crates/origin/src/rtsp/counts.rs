//! What an origin has done by RTSP.

use crate::protocol_states::{ProtocolState, StateReport};

/// What an origin has done by RTSP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RtspCounts {
    /// Publishers that began to send.
    pub publishers: u64,
    /// RTP packets of publishers that came, each number once.
    pub packets: u64,
    /// Packets of publishers that are missing.
    pub lost: u64,
    /// RTP packets that were sent to viewers as datagrams.
    pub datagrams: u64,
}

impl RtspCounts {
    pub(crate) fn add(&mut self, other: &Self) {
        let Self { publishers, packets, lost, datagrams } = other;
        self.publishers += publishers;
        self.packets += packets;
        self.lost += lost;
        self.datagrams += datagrams;
    }
}

impl ProtocolState for RtspCounts {
    fn report(&self) -> StateReport {
        Box::new(*self)
    }
}
