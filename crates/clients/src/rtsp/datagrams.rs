//! What a publisher sends as datagrams: from ports of its own for each track to those that the server has named for it.

use crate::shard_recorder::ShardRecorder;
use std::net::{IpAddr, SocketAddr};
use weir_rtsp::{Deinterleaver, Transport};
use weir_shard::Context;

/// Where the datagrams of a publisher come from and go to.
pub(super) struct DatagramRoutes {
    /// Its own ports for RTP of each track; those for RTCP are the next ones. A server that has one pair for all of its publishers may
    /// tell their tracks apart by nothing else.
    ports: Vec<u16>,
    /// The server's address.
    server: IpAddr,
    /// The server's ports for RTP and RTCP of each track.
    tracks: Vec<[SocketAddr; 2]>,
    deinterleaver: Deinterleaver,
}

impl DatagramRoutes {
    /// From these ports to a server.
    pub(super) fn new(ports: Vec<u16>, server: IpAddr) -> Self {
        Self { ports, server, tracks: Vec::new(), deinterleaver: Deinterleaver::default() }
    }

    /// What is asked for to carry the next track.
    pub(super) fn wanted(&self) -> Transport {
        let port = self.ports.get(self.tracks.len()).copied().unwrap_or_default();
        Transport::udp((port, port.saturating_add(1)))
    }

    /// The next track goes where the server wants it. Whether it says where that is.
    pub(super) fn add(&mut self, transport: &Transport) -> bool {
        let Some((rtp, rtcp)) = transport.server_port.filter(|(rtp, _)| *rtp > 0) else { return false };
        // RFC 2326 section 12.39, `source`: "If the source address for the stream is different than can be derived from the RTSP
        // endpoint address". Servers name it for both directions, and some name an address that only they themselves reach: what
        // they listen at is where they were found.
        self.tracks.push([rtp, rtcp].map(|port| SocketAddr::new(self.server, port)));
        true
    }

    /// Sends interleaved packets, each to where its channel leads: two channels a track. Bytes that were sent.
    pub(super) fn send(&mut self, interleaved: &[u8], context: &mut Context<'_, ShardRecorder>) -> usize {
        let (tracks, mut sent, mut link) = (&self.tracks, 0, context.split().1);
        self.deinterleaver.take(interleaved, &mut |channel, bytes, length| {
            let channel = usize::from(channel);
            let Some(to) = tracks.get(channel / 2).map(|ports| ports[channel % 2]) else { return };
            let taken = link.send_datagrams_from(channel, to, bytes, length);
            sent += (taken * length).min(bytes.len());
        });
        sent
    }
}
