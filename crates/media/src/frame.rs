//! One coded frame on its way from a source to a publisher.

use std::time::Duration;

/// What a frame belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Track {
    /// Pictures.
    Video,
    /// AAC or Opus.
    Audio,
}

/// One access unit of one track. Keep one and hand it to [`Source::next`](crate::Source::next) again and
/// again: its buffer grows to the largest frame and stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The track.
    pub track: Track,
    /// When to decode it, from the start of the source. Frames of one track rise; frames of both come in
    /// the order of this time.
    pub decode_time: Duration,
    /// When to show it, never before [`Self::decode_time`]. The two differ in streams with B pictures.
    pub presentation_time: Duration,
    /// Whether a player can start here (of H.264 an IDR picture); always true of audio.
    pub keyframe: bool,
    /// Video: the NAL units of one access unit of H.264 or H.265, each after its length in four bytes (ISO/IEC 14496-15,
    /// clause 5.3.3); one frame of VP8, frames of one time of VP9; the OBUs of one temporal unit of AV1 (section 5.2). AAC: one raw_data_block (ISO/IEC 14496-3, clause 4.4.2.1), without ADTS header. Opus: one
    /// packet (RFC 6716, section 3).
    pub payload: Vec<u8>,
}

impl Frame {
    /// A frame to be filled.
    pub fn empty() -> Self {
        Self {
            track: Track::Video,
            decode_time: Duration::ZERO,
            presentation_time: Duration::ZERO,
            keyframe: false,
            payload: Vec::new(),
        }
    }

    /// How long after [`Self::decode_time`] the frame is shown: `composition time offset` of FLV and MP4.
    pub fn composition_offset(&self) -> Duration {
        self.presentation_time.saturating_sub(self.decode_time)
    }
}

impl Default for Frame {
    fn default() -> Self {
        Self::empty()
    }
}
