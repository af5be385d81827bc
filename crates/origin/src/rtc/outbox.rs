//! What is on its way to one viewer: packets that leave together.

use crate::stream::Packet;
use std::net::SocketAddr;
use weir_rtc::Bundle;
use weir_rtc::rtp::Header;
use weir_rtc::srtp::Outbound;
use weir_shard::Outgoing;

/// What is on its way to one peer.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    bundle: Bundle,
    words: Vec<u8>,
}

impl Outbox {
    /// Protects a unit and puts it to the others. Whether it will be sent.
    pub(super) fn add(
        &mut self,
        header: &Header,
        unit: &Packet,
        keys: &mut Outbound,
        path: SocketAddr,
        link: &mut Outgoing<'_>,
    ) -> bool {
        let mut send = |bytes: &[u8], length: usize| {
            link.send_datagrams(path, bytes, length);
        };
        self.bundle.add(header, unit.bare(), keys, &mut send)
    }

    pub(super) fn flush(&mut self, path: SocketAddr, link: &mut Outgoing<'_>) {
        self.bundle.flush(&mut |bytes, length| {
            link.send_datagrams(path, bytes, length);
        });
    }

    /// An empty buffer for something else.
    pub(super) fn words(&mut self) -> &mut Vec<u8> {
        self.words.clear();
        &mut self.words
    }
}
