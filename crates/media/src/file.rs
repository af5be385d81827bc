//! Files of pictures and sound, played in a loop. A [`MediaFile`] is the index of one file, read once and shared;
//! a [`LoopedFile`] plays it for ever, and reads each frame from the file when it is asked for.

mod flv;
mod index;
mod ivf;
mod matroska;
mod mp4;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::{AudioConfig, FileFault, Frame, PictureCodec, Source, SourceError, Track, VideoConfig};
use index::{Index, RawTrack};

/// Larger than any frame: a picture of 8192 × 4352 takes 53 MB without compression. A frame is read into memory as a whole.
const MAX_FRAME_BYTES: u32 = 64 << 20;

/// An open file and the index of its frames, in some 32 bytes a frame: immutable, so that any number of
/// sources and threads share one.
#[derive(Debug)]
pub struct MediaFile {
    path: PathBuf,
    file: File,
    index: Index,
    video_config: Option<VideoConfig>,
    audio_config: Option<AudioConfig>,
}

impl MediaFile {
    /// Opens a file of H.264 and AAC: see [`Self::open_of`].
    ///
    /// # Errors
    ///
    /// As [`Self::open_of`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SourceError> {
        Self::open_of(path, &[PictureCodec::H264])
    }

    /// Opens an MP4, Matroska, WebM, FLV or IVF file, whichever its first bytes say, and reads its index. The first video and
    /// the first audio track are taken. MP4 must not be fragmented; an edit list may delay a track or cut
    /// its start, and what else it does is left out. FLV is read with H.264 alone.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is none of them, is damaged, or carries something else than pictures of these codecs and AAC.
    /// Each error says what would help.
    pub fn open_of(path: impl AsRef<Path>, codecs: &[PictureCodec]) -> Result<Self, SourceError> {
        let path = path.as_ref();
        Self::read(path, codecs).map_err(|fault| SourceError { path: path.to_owned(), fault })
    }

    /// The codec of the pictures, if there are any.
    pub fn picture_codec(&self) -> Option<PictureCodec> {
        self.video_config.as_ref().map(|config| config.codec)
    }

    /// The time after which the file starts again: the length of its longer track.
    pub fn duration(&self) -> Duration {
        self.index.period()
    }

    /// The frames of a track.
    pub fn frame_count(&self, track: Track) -> usize {
        self.index.samples(track).len()
    }

    /// Whether pictures are shown in another order than they are decoded in: it has B-frames.
    pub fn has_b_frames(&self) -> bool {
        self.index.shows_in_another_order()
    }

    fn read(path: &Path, codecs: &[PictureCodec]) -> Result<Self, FileFault> {
        let file = File::open(path)?;
        let mut start = [0; 8];
        let contents = match file.read_at(&mut start, 0)? {
            8 if start.starts_with(b"FLV") => flv::read(&file)?,
            8 if start.ends_with(b"ftyp") => mp4::read(&file, codecs)?,
            8 if start.starts_with(b"DKIF") => ivf::read(&file, codecs)?,
            8 if start.starts_with(&[0x1A, 0x45, 0xDF, 0xA3]) => matroska::read(&file, codecs)?,
            _ => return Err(FileFault::Format),
        };
        let (mut video_config, video) = contents.video.unzip();
        let (mut audio_config, audio) = contents.audio.unzip();
        if let (Some(config), Some(track)) = (&mut video_config, &video) {
            config.bit_rate = track.bit_rate();
        }
        if let (Some(config), Some(track)) = (&mut audio_config, &audio) {
            config.bit_rate = track.bit_rate();
        }
        let longest = [&video, &audio].into_iter().flatten().flat_map(|track| &track.samples);
        if let Some(length @ MAX_FRAME_BYTES..) = longest.map(|sample| sample.length).max() {
            return Err(FileFault::TooLarge(format!("a frame of {length} bytes")));
        }
        let index = Index::new(video, audio).ok_or(FileFault::Empty)?;
        Ok(Self { path: path.to_owned(), file, index, video_config, audio_config })
    }
}

/// What a file format gives.
#[derive(Default)]
struct Contents {
    video: Option<(VideoConfig, RawTrack)>,
    audio: Option<(AudioConfig, RawTrack)>,
}

/// Refuses pictures of a codec that is none of those wanted.
fn check(codec: PictureCodec, name: &str, codecs: &[PictureCodec]) -> Result<(), FileFault> {
    if codecs.contains(&codec) {
        return Ok(());
    }
    Err(FileFault::Codec { codec: format!("video codec {name}"), remedy: "-c:v libx264" })
}

fn damaged(reason: impl Into<String>) -> FileFault {
    FileFault::Malformed(reason.into())
}

/// A source that repeats a [`MediaFile`] with timestamps that go on rising. Where one track of the file is
/// shorter than the other, it rests until both start again.
#[derive(Debug, Clone)]
pub struct LoopedFile {
    file: Arc<MediaFile>,
    video: Position,
    audio: Position,
}

/// Where a track is.
#[derive(Debug, Clone, Copy, Default)]
struct Position {
    next: usize,
    /// What the passes before this one took.
    passed: Duration,
}

impl LoopedFile {
    /// Plays `file` from its first frame, at time zero.
    pub fn new(file: Arc<MediaFile>) -> Self {
        Self { file, video: Position::default(), audio: Position::default() }
    }

    fn decode_time(&self, track: Track) -> Option<Duration> {
        let position = match track {
            Track::Video => self.video,
            Track::Audio => self.audio,
        };
        let sample = self.file.index.samples(track).get(position.next)?;
        Some(position.passed + sample.decode_time())
    }
}

impl Source for LoopedFile {
    fn video_config(&self) -> Option<&VideoConfig> {
        self.file.video_config.as_ref()
    }

    fn audio_config(&self) -> Option<&AudioConfig> {
        self.file.audio_config.as_ref()
    }

    fn next(&mut self, frame: &mut Frame) -> Result<(), SourceError> {
        let track = match (self.decode_time(Track::Video), self.decode_time(Track::Audio)) {
            (Some(video), Some(audio)) if audio < video => Track::Audio,
            (Some(_), _) => Track::Video,
            (None, _) => Track::Audio,
        };
        let MediaFile { path, file, index, .. } = &*self.file;
        let samples = index.samples(track);
        let position = match track {
            Track::Video => &mut self.video,
            Track::Audio => &mut self.audio,
        };
        let sample = &samples[position.next];
        frame.payload.resize(sample.length as usize, 0);
        file.read_exact_at(&mut frame.payload, sample.offset)
            .map_err(|error| SourceError { path: path.clone(), fault: error.into() })?;
        frame.track = track;
        frame.keyframe = sample.keyframe;
        frame.decode_time = position.passed + sample.decode_time();
        frame.presentation_time = frame.decode_time + sample.composition_offset();
        position.next += 1;
        if position.next == samples.len() {
            *position = Position { next: 0, passed: position.passed + index.period() };
        }
        Ok(())
    }
}
