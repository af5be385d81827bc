//! What comes again in a stream of its own (RFC 4588).

use super::super::figures::{OPENED, REPLAYED, STRANGE, UNAUTHENTIC};
use super::{ReadTotals, Receiver};
use weir_metrics::{Moment, Recorder};
use weir_rtc::account::Hints;
use weir_rtc::reorder::Unit;
use weir_rtc::rtp::Packet;
use weir_rtc::sdp::MediaKind;
use weir_rtc::srtp::SrtpError;
use weir_rtc::{AccessUnit, VideoCodec, rtx};

impl Receiver {
    /// A packet of another payload type: a retransmission in a stream of its own, which says inside what it repeats.
    #[cold]
    pub(super) fn repair(
        &mut self,
        now: Moment,
        bytes: &mut [u8],
        totals: &mut ReadTotals,
        recorder: &mut Recorder,
        shown: &mut dyn FnMut(VideoCodec, &AccessUnit<'_>, &mut Recorder),
    ) {
        let Ok(packet) = Packet::parse(bytes) else { return };
        let payload_type = packet.payload_type();
        let (timestamp, marker) = (packet.timestamp(), packet.marker());
        let mut found = None;
        for track in &mut self.tracks {
            if let Some(codec) = track.repaired_by(payload_type) {
                found = Some((track, codec));
                break;
            }
        }
        let Some((track, codec)) = found else { return recorder.count(STRANGE, 1) };
        let opened = match self.inbound.open_rtp(bytes) {
            Ok(opened) => Packet::parse(opened).ok(),
            Err(SrtpError::Replayed | SrtpError::TooOld) => return recorder.count(REPLAYED, 1),
            Err(_) => return recorder.count(UNAUTHENTIC, 1),
        };
        recorder.count(OPENED, 1);
        totals.packets += 1;
        let Some((original, payload)) = opened.and_then(|it| it.payload()).and_then(rtx::parse) else {
            return;
        };
        totals.media += payload.len() as u64;
        track.media += payload.len() as u64;
        if let Some(beginning) = &mut track.beginning
            && codec == track.codec
        {
            beginning.payload(timestamp, payload);
        }
        let hints = match (track.kind, codec) {
            (MediaKind::Video, Some(codec)) => codec.hints(payload),
            _ => Hints::default(),
        };
        let repaired = track.account.repair(now, original, timestamp, marker, hints);
        if let Some(number) = repaired {
            track.spans.late(number);
        }
        track.note_repair();
        let Some(narrow) = &mut track.narrow else { return };
        narrow.came.repair(now, original, timestamp, marker, hints);
        if let Some(number) = repaired.filter(|_| narrow.orders() && codec == track.codec) {
            track.assemble(now, Unit { number, timestamp, marker, payload }, totals, recorder, shown);
        }
    }
}
