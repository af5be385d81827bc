//! How streams are cut.

use super::encryption::SegmentKey;
use std::time::Duration;

/// What Media Segments are written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SegmentContainer {
    /// MPEG-2 Transport Streams: H.264 and AAC.
    #[default]
    TransportStream,
    /// Fragmented MPEG-4: H.264, AAC and Opus.
    FragmentedMp4,
}

/// Parts may be longer by this than was asked for: six frames of a 30th of a second are 199 to 201 ms by their timestamps, and five
/// would be too few (draft-pantos-hls-rfc8216bis-22, section 4.4.4.9: 85 % of the part target duration at least).
pub(super) const PART_ROUNDING: Duration = Duration::from_millis(2);

/// How streams are cut into Media Segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HlsSettings {
    /// A segment ends at the first keyframe from this duration on.
    pub segment: Duration,
    /// How many segments a playlist names: more if they are shorter than three target durations together.
    pub segments: usize,
    /// The longest Partial Segment of Low-Latency HLS; `None`: there are none.
    pub part: Option<Duration>,
    /// What segments are written in.
    pub container: SegmentContainer,
    /// What segments and parts are encrypted with; `None`: they are not.
    pub key: Option<SegmentKey>,
}

impl Default for HlsSettings {
    fn default() -> Self {
        Self {
            segment: Duration::from_secs(2),
            segments: 6,
            part: None,
            container: SegmentContainer::TransportStream,
            key: None,
        }
    }
}
