//! What the source of a session has sent, whatever of it came.

use super::Receiver;
use crate::playback_model::SourceFrames;
use weir_rtc::sdp::MediaKind;

impl Receiver {
    /// Bytes that were sent and did not arrive, beyond those that were reported before: once a second there may be some.
    pub(in crate::rtc) fn take_missing(&mut self) -> u64 {
        std::mem::take(&mut self.missing)
    }

    /// How many frames the source has in `media` microseconds of media time, by the intervals between frames that are shown
    /// one behind the other, and in how much of that time: in none while they are too different to be a rate, nor in its pauses.
    pub(in crate::rtc) fn source_frames(&mut self, media: i64) -> SourceFrames {
        let video = self.tracks.iter().find(|track| track.kind == MediaKind::Video);
        let known =
            video.and_then(|track| Some((&track.account, track.account.frame_ticks()?, track.clock_rate)));
        self.untimed += media.max(0);
        let Some((account, ticks, rate)) = known else { return SourceFrames::default() };
        let paused = account.paused_ticks();
        let new_pause = paused.wrapping_sub(std::mem::replace(&mut self.paused, paused));
        let new_pause = u64::from(new_pause) * 1_000_000 / u64::from(rate);
        // Of pictures that are not sent in their order a pause is known some frames later: what was counted too much is taken off what follows.
        self.untimed = self.untimed.saturating_sub_unsigned(new_pause);
        if self.untimed < 0 || !account.is_frame_rate_steady() {
            self.untimed = self.untimed.min(0);
            return SourceFrames::default();
        }
        let micros = std::mem::take(&mut self.untimed).unsigned_abs();
        self.source_frames += micros as f64 * 1e-6 * f64::from(rate) / f64::from(ticks);
        let whole = self.source_frames.floor();
        self.source_frames -= whole;
        SourceFrames { count: whole as u64, micros }
    }
}
