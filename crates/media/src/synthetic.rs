//! Made material: H.264 and AAC or Opus of any bit rate, out of nothing. A [`Clip`] is one GOP, coded once and
//! shared; a [`Synthetic`] plays it for ever. What the pictures show is in `h264/picture.rs`.

mod audio;
mod clip;
mod settings;

use std::sync::Arc;
use std::time::Duration;

pub use clip::Clip;
pub use settings::{AudioSettings, ClipSettings, SyntheticError, VideoSettings};

use crate::{AudioConfig, Frame, Source, SourceError, Track, VideoConfig};

/// A source that repeats a [`Clip`] with rising timestamps. Any number of them share one clip.
#[derive(Debug, Clone)]
pub struct Synthetic {
    clip: Arc<Clip>,
    video: Position,
    audio: Position,
}

/// The next frame of a track.
#[derive(Debug, Clone, Copy, Default)]
struct Position {
    index: u64,
    time: Duration,
}

impl Synthetic {
    /// Plays `clip` from its first keyframe, at time zero.
    pub fn new(clip: Arc<Clip>) -> Self {
        Self { clip, video: Position::default(), audio: Position::default() }
    }
}

impl Source for Synthetic {
    fn video_config(&self) -> Option<&VideoConfig> {
        Some(self.clip.video_config())
    }

    fn audio_config(&self) -> Option<&AudioConfig> {
        self.clip.audio_config()
    }

    fn next(&mut self, frame: &mut Frame) -> Result<(), SourceError> {
        frame.payload.clear();
        match self.clip.audio() {
            Some(audio) if self.audio.time < self.video.time => {
                frame.track = Track::Audio;
                frame.keyframe = true;
                frame.decode_time = self.audio.time;
                frame.payload.extend_from_slice(audio.unit(self.audio.index));
                self.audio.index += 1;
                self.audio.time = audio.time_of(self.audio.index);
            }
            _ => {
                frame.track = Track::Video;
                frame.keyframe = self.clip.is_keyframe(self.video.index);
                frame.decode_time = self.video.time;
                frame.payload.extend_from_slice(self.clip.picture(self.video.index));
                self.video.index += 1;
                self.video.time = self.clip.time_of(self.video.index);
            }
        }
        frame.presentation_time = frame.decode_time;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClockReading, Stamp};

    #[test]
    fn nothing_is_allocated_once_the_largest_frame_has_come() {
        let mut source = Synthetic::new(Arc::new(Clip::prepare(&ClipSettings::default()).unwrap()));
        let mut frame = Frame::empty();
        source.next(&mut frame).unwrap();
        let buffer = frame.payload.as_ptr();
        for _ in 0..1000 {
            source.next(&mut frame).unwrap();
            if frame.track == Track::Video {
                Stamp { captured: ClockReading::ZERO, sequence_number: 7 }.put(&mut frame.payload);
            }
            assert_eq!(frame.payload.as_ptr(), buffer);
        }
    }
}
