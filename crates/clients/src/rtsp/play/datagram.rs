//! Of which track of a viewer a datagram is.

use super::super::figures::STRAYS;
use super::{TrackReceiver, Viewer};
use crate::shard_recorder::ShardRecorder;
use std::net::SocketAddr;
use weir_metrics::Moment;
use weir_rtc::Datagram;

impl Viewer {
    /// A datagram came. Some servers send the tracks of all their sessions from one pair of ports, so that the port alone says little: a
    /// packet is of a track that was described with its payload type; of several, of the one whose server's port it came from, and
    /// then of the one that has its source. A report is of the track that has its source, or else of the port's.
    pub(super) fn datagram(
        &mut self,
        from: SocketAddr,
        bytes: &[u8],
        now: Moment,
        shard: &mut ShardRecorder,
    ) {
        let kind = Datagram::of(bytes);
        let is_packet = kind == Datagram::Rtp;
        let port = from.port();
        let payload_type = bytes.get(1).map_or(0, |second| second & 0x7F);
        // Where a packet has its source (RFC 3550 section 5.1), and a report that of its sender (section 6.4).
        let source = if is_packet { bytes.get(8..12) } else { bytes.get(4..8) };
        let source = source.and_then(<[u8]>::first_chunk).map(|it| u32::from_be_bytes(*it));
        let fit = |track: &TrackReceiver| {
            let is_of_port = track.route.is_some_and(|(rtp, rtcp)| rtp == port || rtcp == port);
            let is_source = track.source().map(|known| Some(known) == source);
            let is_its = if is_packet { track.has(payload_type) } else { is_source == Some(true) };
            // A track whose source is not known yet may be that of a new one.
            (is_its, is_of_port, is_source.map_or(1, |it| 2 * u8::from(it)))
        };
        let best = self.tracks.iter_mut().rev().max_by_key(|track| fit(track));
        let track = best.filter(|track| matches!(fit(track), (true, ..) | (_, true, _)));
        match (kind, track) {
            (Datagram::Rtp, Some(track)) => {
                let began = *self.began.get_or_insert(now);
                (self.ended, self.source) = (None, Some(from.ip()));
                if let Some((_, until)) = &mut self.hung_up {
                    *until = now + self.common.end_grace;
                }
                track.rtp(bytes, now.since(began), &mut self.flv, now, shard);
            }
            (Datagram::Rtcp, Some(track)) => {
                track.rtcp(now, bytes, shard.of(self.flv.state.planned()));
                self.note_end(now);
            }
            _ => shard.of(self.planned()).count(STRAYS, 1),
        }
    }
}
