//! Pictures and missing packets of segments that are MPEG-2 Transport Streams (ISO/IEC 13818-1).

use super::Frame;
use weir_ts::pes::timestamp_since;
use weir_ts::{Analyser, ElementaryStreams, Options};

/// PIDs up to here are those of tables (ISO/IEC 13818-1, table 2-3; ETSI EN 300 468, table 1).
const LAST_PID_OF_TABLES: u16 = 0x1F;

#[derive(Debug, Default)]
pub(super) struct TransportReader {
    /// Of the segment under way, whose tables are in it. RFC 8216, section 3, has counters of continuity "continue uninterrupted" from one
    /// segment to the next, but servers begin again in each, and players do not mind: they are not followed from one to the next.
    analyser: Option<Box<Analyser>>,
    /// Packets that were missing before the unit under way.
    lost_before: u64,
    /// Whether its tables have named pictures or sound that came.
    knows_tracks: bool,
    /// The last decoding time in ticks, and as it goes on in microseconds.
    latest: Option<(u64, i64)>,
    /// The first PID of pictures: those of other programs, or from other sides, are not counted.
    video: Option<u16>,
}

impl TransportReader {
    /// A unit begins with these bytes. A part without tables goes on with those of its segment.
    pub(super) fn begin(&mut self, is_part: bool, front: &[u8]) {
        let pid = front.get(1..3).map_or(0, |it| u16::from_be_bytes([it[0], it[1]]) & 0x1FFF);
        if !is_part || pid <= LAST_PID_OF_TABLES {
            let mut analyser = Analyser::new(Options { findings_per_kind: 0, ..Options::default() });
            analyser.keep_elementary(Some(ElementaryStreams::Beginnings));
            (self.analyser, self.knows_tracks, self.video) = (Some(Box::new(analyser)), false, None);
        }
        self.lost_before = self.lost();
    }

    fn lost(&self) -> u64 {
        self.analyser.as_ref().map_or(0, |it| it.counts().lost_packets)
    }

    pub(super) fn take(&mut self, bytes: &[u8], each: &mut impl FnMut(Frame)) {
        if let Some(analyser) = &mut self.analyser {
            analyser.feed(bytes);
            self.hand_out(each);
        }
    }

    fn hand_out(&mut self, each: &mut impl FnMut(Frame)) {
        let Self { analyser, knows_tracks, latest, video, .. } = self;
        let Some(analyser) = analyser else { return };
        analyser.take_elementary(|piece| {
            *knows_tracks = true;
            if !piece.start || !piece.codec.is_video() || *video.get_or_insert(piece.pid) != piece.pid {
                return;
            }
            // ISO/IEC 13818-1, section 2.4.3.7: a PES packet of a known length has 64 KiB at the most, and a longer picture goes on in
            // the next, which has no times.
            if piece.times.is_none() && latest.is_some() {
                return;
            }
            let time = piece.times.map(|(_, decoded)| {
                let time = latest.map_or(0, |(before, time)| {
                    time.saturating_add(timestamp_since(decoded, before) * 100 / 9)
                });
                *latest = Some((decoded, time));
                time
            });
            each(Frame { time, keyframe: piece.random_access });
        });
    }

    /// The unit is whole. How many packets are missing in it; `None` if it could not be read.
    pub(super) fn finish(&mut self, each: &mut impl FnMut(Frame)) -> Option<u64> {
        self.analyser.as_mut()?.finish();
        self.hand_out(each);
        self.knows_tracks.then(|| self.lost() - self.lost_before)
    }

    /// What comes next does not follow on what came.
    pub(super) fn interrupt(&mut self) {
        self.analyser = None;
    }
}
