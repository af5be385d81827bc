//! Where the frames of a file are and when they are due, on a timeline that starts at zero. It knows no file
//! format.

use std::time::Duration;

use crate::Track;
use crate::rate::rate_of_bytes;
use weir_metrics::BitRate;

/// The most frames that a file may have: an index of 128 MiB, about 14 hours of pictures and sound.
pub(super) const MAX_SAMPLES: usize = 4 << 20;

/// One frame in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    /// In bytes from the start of the file.
    pub(super) offset: u64,
    /// In bytes.
    pub(super) length: u32,
    pub(super) keyframe: bool,
    decode_nanos: u64,
    composition_nanos: u64,
}

impl Sample {
    pub(super) fn decode_time(&self) -> Duration {
        Duration::from_nanos(self.decode_nanos)
    }

    pub(super) fn composition_offset(&self) -> Duration {
        Duration::from_nanos(self.composition_nanos)
    }
}

/// A frame as the file's tables give it.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawSample {
    pub(super) offset: u64,
    pub(super) length: u32,
    pub(super) keyframe: bool,
    /// On the file's own timeline, in nanoseconds.
    pub(super) decode_nanos: i64,
    /// Presentation minus decoding.
    pub(super) composition_nanos: i64,
}

/// The frames of one track, in decode order.
#[derive(Debug, Default)]
pub(super) struct RawTrack {
    pub(super) samples: Vec<RawSample>,
    /// When the last frame ends.
    pub(super) end_nanos: i64,
}

impl RawTrack {
    /// The average; `None` of a track that takes no time.
    pub(super) fn bit_rate(&self) -> Option<BitRate> {
        let bytes: u64 = self.samples.iter().map(|sample| u64::from(sample.length)).sum();
        let nanos = self.end_nanos.abs_diff(self.samples.first()?.decode_nanos);
        (nanos > 0).then(|| rate_of_bytes(bytes, nanos, 1_000_000_000))
    }

    /// By how much decoding must start earlier than the file says: some write composition offsets below
    /// zero (ctts version 1).
    fn lead_nanos(&self) -> i64 {
        let earliest = self.samples.iter().map(|sample| sample.composition_nanos).min();
        earliest.unwrap_or(0).min(0).saturating_neg()
    }

    /// When the first frame is decoded.
    fn start_nanos(&self) -> Option<i64> {
        Some(self.samples.first()?.decode_nanos.saturating_sub(self.lead_nanos()))
    }

    /// From the first frame's decoding to the last frame's end; more than from the first to the last.
    fn span_nanos(&self) -> Option<u64> {
        let (first, last) = (self.samples.first()?.decode_nanos, self.samples.last()?.decode_nanos);
        Some(self.end_nanos.abs_diff(first).max(last.abs_diff(first) + 1))
    }

    fn on_timeline(self, start: i64) -> Vec<Sample> {
        let lead = self.lead_nanos();
        let sample = |sample: RawSample| Sample {
            offset: sample.offset,
            length: sample.length,
            keyframe: sample.keyframe,
            decode_nanos: sample.decode_nanos.saturating_sub(lead).abs_diff(start),
            composition_nanos: sample.composition_nanos.saturating_add(lead).unsigned_abs(),
        };
        self.samples.into_iter().map(sample).collect()
    }
}

/// The frames of both tracks, each in the order of decoding, on one timeline.
#[derive(Debug)]
pub(super) struct Index {
    video: Vec<Sample>,
    audio: Vec<Sample>,
    period: Duration,
}

impl Index {
    /// Puts the tracks on one timeline; `None` if there is no frame.
    pub(super) fn new(video: Option<RawTrack>, audio: Option<RawTrack>) -> Option<Self> {
        let tracks = [video, audio].map(Option::unwrap_or_default);
        let start = tracks.iter().filter_map(RawTrack::start_nanos).min()?;
        let longest = tracks.iter().filter_map(RawTrack::span_nanos).max()?;
        let [video, audio] = tracks.map(|track| track.on_timeline(start));
        Some(Self { video, audio, period: Duration::from_nanos(longest) })
    }

    /// The frames of a track.
    pub(super) fn samples(&self, track: Track) -> &[Sample] {
        match track {
            Track::Video => &self.video,
            Track::Audio => &self.audio,
        }
    }

    /// How long the longer track takes; no track is due to start again before it has ended.
    pub(super) fn period(&self) -> Duration {
        self.period
    }
}

impl Index {
    /// Whether a picture is shown before one that is decoded earlier: there are B-frames.
    pub(super) fn shows_in_another_order(&self) -> bool {
        let shown = |sample: &Sample| sample.decode_nanos.saturating_add(sample.composition_nanos);
        self.video.windows(2).any(|pair| shown(&pair[1]) < shown(&pair[0]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn track(times: &[(i64, i64)], end_nanos: i64) -> Option<RawTrack> {
        let sample = |&(decode_nanos, composition_nanos)| RawSample {
            offset: 0,
            length: 0,
            keyframe: true,
            decode_nanos,
            composition_nanos,
        };
        Some(RawTrack { samples: times.iter().map(sample).collect(), end_nanos })
    }

    fn times(index: &Index, track: Track) -> Vec<(u64, u64)> {
        let sample = |sample: &Sample| (sample.decode_nanos, sample.composition_nanos);
        index.samples(track).iter().map(sample).collect()
    }

    #[test]
    fn the_earliest_frame_of_all_is_decoded_at_zero() {
        let video = track(&[(-40, 80), (0, 120), (40, 40)], 80);
        let audio = track(&[(-20, 0), (0, 0), (20, 0), (40, 0)], 60);
        let index = Index::new(video, audio).unwrap();
        assert_eq!(times(&index, Track::Video), [(0, 80), (40, 120), (80, 40)]);
        assert_eq!(times(&index, Track::Audio), [(20, 0), (40, 0), (60, 0), (80, 0)]);
        assert_eq!(index.period(), Duration::from_nanos(120));
        assert!(index.shows_in_another_order());
        let late = Index::new(track(&[(0, 80), (40, 80), (80, 80)], 120), None).unwrap();
        assert!(!late.shows_in_another_order(), "all of them are shown later, in one order");
    }

    #[test]
    fn frames_shown_before_they_are_decoded_are_decoded_earlier() {
        let video = track(&[(0, 0), (40, 40), (80, -40)], 120);
        let audio = track(&[(0, 0)], 20);
        let index = Index::new(video, audio).unwrap();
        assert_eq!(times(&index, Track::Video), [(0, 40), (40, 80), (80, 0)]);
        assert_eq!(times(&index, Track::Audio), [(40, 0)]);
        assert_eq!(index.period(), Duration::from_nanos(120));
    }

    #[test]
    fn no_frame_no_index() {
        assert!(Index::new(None, None).is_none());
        assert!(Index::new(None, track(&[], 0)).is_none());
    }
}
