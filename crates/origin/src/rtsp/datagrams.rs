//! What goes to a peer as datagrams: from the session's pair of ports to the ports that the peer has named for each track.
//!
//! A session frames all that it sends as interleaved packets; here the channel of each says where it goes.

use std::net::SocketAddr;
use weir_rtsp::Deinterleaver;
use weir_shard::Outgoing;

/// Where the datagrams of a session come from and go to.
#[derive(Debug)]
pub(super) struct DatagramRoutes {
    /// The session's own ports for RTP and RTCP.
    pub(super) ports: (u16, u16),
    /// Tracks that were set up, with the peer's addresses for RTP and RTCP.
    peers: Vec<(usize, SocketAddr, SocketAddr)>,
    deinterleaver: Deinterleaver,
    /// RTP packets that the kernel took.
    pub(super) sent: u64,
}

/// The channels by which a session of datagrams has those of a track, and one of a connection if its peer has not chosen any.
pub(super) fn channels_of(track: usize) -> (u8, u8) {
    let first = 2 * track.min(usize::from(u8::MAX / 2)) as u8;
    (first, first + 1)
}

impl DatagramRoutes {
    /// From these ports.
    pub(super) fn new(ports: (u16, u16)) -> Self {
        Self { ports, peers: Vec::new(), deinterleaver: Deinterleaver::default(), sent: 0 }
    }

    /// Sends a track to these addresses from now on.
    pub(super) fn set(&mut self, track: usize, rtp: SocketAddr, rtcp: SocketAddr) {
        self.peers.retain(|(known, ..)| *known != track);
        self.peers.push((track, rtp, rtcp));
    }

    /// Forgets all tracks.
    pub(super) fn clear(&mut self) {
        self.peers.clear();
    }

    /// Sends interleaved packets, each to where its channel leads.
    pub(super) fn send(&mut self, interleaved: &[u8], link: &mut Outgoing<'_>) {
        let (peers, sent) = (&self.peers, &mut self.sent);
        self.deinterleaver.take(interleaved, &mut |channel, bytes, length| {
            let track = usize::from(channel / 2);
            let Some((_, rtp, rtcp)) = peers.iter().find(|(known, ..)| *known == track) else { return };
            if channel.is_multiple_of(2) {
                *sent += link.send_datagrams(*rtp, bytes, length) as u64;
            } else {
                link.send_datagrams_from(1, *rtcp, bytes, length);
            }
        });
    }
}
