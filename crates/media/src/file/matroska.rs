//! The index of a Matroska or WebM file (RFC 9559), by one pass over its clusters: EBML elements (RFC 8794), each an identifier, a length and
//! a body.

use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::FileExt;

use super::index::{MAX_SAMPLES, RawSample, RawTrack};
use super::{Contents, check, damaged};
use crate::{AudioCodec, AudioConfig, FileFault, FrameRate, PictureCodec, VideoConfig, aac};

/// Identifiers of elements, with their length's marker (RFC 9559 section 27.1).
mod id {
    pub(super) const EBML: u32 = 0x1A45_DFA3;
    pub(super) const SEGMENT: u32 = 0x1853_8067;
    pub(super) const INFO: u32 = 0x1549_A966;
    pub(super) const TIMESTAMP_SCALE: u32 = 0x2A_D7B1;
    pub(super) const TRACKS: u32 = 0x1654_AE6B;
    pub(super) const TRACK_ENTRY: u32 = 0xAE;
    pub(super) const TRACK_NUMBER: u32 = 0xD7;
    pub(super) const TRACK_TYPE: u32 = 0x83;
    pub(super) const CODEC_ID: u32 = 0x86;
    pub(super) const CODEC_PRIVATE: u32 = 0x63A2;
    pub(super) const DEFAULT_DURATION: u32 = 0x23_E383;
    pub(super) const CONTENT_ENCODINGS: u32 = 0x6D80;
    pub(super) const VIDEO: u32 = 0xE0;
    pub(super) const PIXEL_WIDTH: u32 = 0xB0;
    pub(super) const PIXEL_HEIGHT: u32 = 0xBA;
    pub(super) const CLUSTER: u32 = 0x1F43_B675;
    pub(super) const TIMESTAMP: u32 = 0xE7;
    pub(super) const SIMPLE_BLOCK: u32 = 0xA3;
    pub(super) const BLOCK_GROUP: u32 = 0xA0;
    pub(super) const BLOCK: u32 = 0xA1;
    pub(super) const REFERENCE_BLOCK: u32 = 0xFB;
}

/// TrackType (section 5.1.4.1.3).
const VIDEO_TRACK: u64 = 1;
const AUDIO_TRACK: u64 = 2;

/// The largest Tracks element, and body of an element in it, that is read.
const MAX_TRACKS_BYTES: u64 = 1 << 20;

/// The most elements that are read: four for each frame of two tracks, as in groups of blocks.
const MAX_ELEMENTS: usize = 8 * MAX_SAMPLES;

/// Bytes in front of a frame in a block, at the most: a track number of eight, a time and flags.
const BLOCK_HEADER: usize = 11;

/// The latest time, in nanoseconds: 73 years, so that no difference of two overflows.
const MAX_TIME: i64 = 1 << 61;

/// The longest DefaultDuration that is believed, in nanoseconds: a minute, as of a slide show.
const MAX_DURATION: u64 = 60_000_000_000;

/// Reads the index of a Matroska or WebM file: its first segment. A block that is cut off at the end is left out.
pub(super) fn read(file: &File, codecs: &[PictureCodec]) -> Result<Contents, FileFault> {
    let length = file.metadata()?.len();
    let bytes = Bytes { file, length, elements: Cell::new(0) };
    let mut scan = Scan { bytes, scale: 1_000_000, video: None, audio: None, opaque: None };
    let mut at = 0;
    // A segment that is cut off ends beyond the file.
    while let Some(element) = scan.bytes.element(at, u64::MAX)? {
        if element.id == id::SEGMENT {
            scan.segment(&element, codecs)?;
            break;
        }
        at = element.end;
    }
    scan.finish()
}

/// The file.
struct Bytes<'a> {
    file: &'a File,
    length: u64,
    /// How many have been read.
    elements: Cell<usize>,
}

/// Where the body of an element is.
#[derive(Clone, Copy)]
struct Element {
    id: u32,
    begin: u64,
    end: u64,
    /// Its length is unknown, as of what is written while it is recorded: it ends with its parent, or the first element that cannot be in it.
    is_open: bool,
}

impl Bytes<'_> {
    /// The element at `at` in a parent that ends at `end`; `None` at the end, and where it is cut off. It ends within its parent, so that no
    /// byte is read as part of two.
    fn element(&self, at: u64, end: u64) -> Result<Option<Element>, FileFault> {
        let mut header = [0; 12];
        let room = end.min(self.length).saturating_sub(at).min(header.len() as u64) as usize;
        if room < 2 {
            return Ok(None);
        }
        if self.elements.replace(self.elements.get() + 1) == MAX_ELEMENTS {
            return Err(FileFault::TooLarge(format!("a file of over {MAX_ELEMENTS} elements")));
        }
        self.file.read_exact_at(&mut header[..room], at)?;
        let header = &header[..room];
        let wrong = || damaged(format!("no element of Matroska at byte {at}"));
        let id_length = header[0].leading_zeros() as usize + 1;
        if id_length > 4 {
            return Err(wrong());
        }
        let Some(id) = header.get(..id_length) else { return Ok(None) };
        let id = id.iter().fold(0, |id, byte| id << 8 | u32::from(*byte));
        let Some((size, size_length)) = variable(&header[id_length..]) else { return Ok(None) };
        let begin = at + (id_length + size_length) as u64;
        match size {
            // Of no others it may be unknown (RFC 9559 section 5.1).
            None if matches!(id, id::SEGMENT | id::CLUSTER) => {
                Ok(Some(Element { id, begin, end, is_open: true }))
            }
            None => Err(wrong()),
            Some(size) => {
                let ends = begin.checked_add(size).filter(|ends| *ends <= end).ok_or_else(wrong)?;
                Ok(Some(Element { id, begin, end: ends, is_open: false }))
            }
        }
    }

    fn body(&self, element: &Element, most: u64) -> Result<Vec<u8>, FileFault> {
        let length = element.end.saturating_sub(element.begin);
        if length > most {
            return Err(FileFault::TooLarge(format!("a description of {length} bytes")));
        }
        let mut body = vec![0; length as usize];
        self.file.read_exact_at(&mut body, element.begin)?;
        Ok(body)
    }

    fn number(&self, element: &Element) -> Result<u64, FileFault> {
        Ok(unsigned(&self.body(element, 8)?))
    }
}

/// A number of variable length, `None` where all its bits are 1 ("unknown"), and how many bytes it has (RFC 8794 section 4).
fn variable(bytes: &[u8]) -> Option<(Option<u64>, usize)> {
    let length = bytes.first()?.leading_zeros() as usize + 1;
    let number = bytes.get(..length.min(9)).filter(|_| length <= 8)?;
    let mask = (1u64 << (7 * length)) - 1;
    let value = number.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)) & mask;
    Some(((value != mask).then_some(value), length))
}

fn unsigned(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// A pass over the file.
struct Scan<'a> {
    bytes: Bytes<'a>,
    /// Nanoseconds of a tick of clusters and blocks (TimestampScale).
    scale: u64,
    video: Option<TrackScan<VideoConfig>>,
    audio: Option<TrackScan<AudioConfig>>,
    /// Why a track of sound is none that is published.
    opaque: Option<FileFault>,
}

/// What has been seen of a track.
struct TrackScan<Config> {
    number: u64,
    config: Config,
    /// Nanoseconds of a frame (DefaultDuration).
    duration: Option<u64>,
    /// Offset, length, whether it is a keyframe, and when it is shown, in nanoseconds.
    frames: Vec<(u64, u32, bool, i64)>,
}

impl<Config> TrackScan<Config> {
    fn take(&mut self, offset: u64, length: u64, keyframe: bool, shown: i64) -> Result<(), FileFault> {
        if self.frames.len() == MAX_SAMPLES {
            return Err(FileFault::TooLarge(format!("a track of over {MAX_SAMPLES} frames")));
        }
        let length = u32::try_from(length).map_err(|_| damaged("a frame of over 4 GiB"))?;
        self.frames.push((offset, length, keyframe, shown));
        Ok(())
    }

    /// Blocks say when a frame is shown, in the order of decoding: the n-th is decoded when the n-th of all is shown, and what is then shown
    /// before it is decoded moves the whole track.
    fn finish(self) -> Option<(Config, RawTrack)> {
        let mut times: Vec<i64> = self.frames.iter().map(|frame| frame.3).collect();
        times.sort_unstable();
        let (first, last) = (*times.first()?, *times.last()?);
        let average = (last - first) / (times.len() as i64 - 1).max(1);
        let duration = self.duration.and_then(|nanos| i64::try_from(nanos).ok()).unwrap_or(average);
        let samples = self.frames.iter().zip(times);
        let samples = samples.map(|(&(offset, length, keyframe, shown), decode_nanos)| RawSample {
            offset,
            length,
            keyframe,
            decode_nanos,
            composition_nanos: shown - decode_nanos,
        });
        let track = RawTrack { samples: samples.collect(), end_nanos: last.saturating_add(duration) };
        Some((self.config, track))
    }
}

impl Scan<'_> {
    fn segment(&mut self, segment: &Element, codecs: &[PictureCodec]) -> Result<(), FileFault> {
        let mut at = segment.begin;
        let mut has_tracks = false;
        while let Some(element) = self.bytes.element(at, segment.end)? {
            let begin = std::mem::replace(&mut at, element.end);
            match element.id {
                id::INFO => self.info(&element)?,
                id::TRACKS => {
                    self.tracks(&element, codecs)?;
                    has_tracks = true;
                }
                id::CLUSTER => {
                    if !has_tracks {
                        self.description(begin, segment.end, codecs)?;
                        has_tracks = true;
                    }
                    at = self.cluster(&element)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Looks behind clusters for what they are described by: only clusters of a known length can be passed over.
    fn description(&mut self, begin: u64, end: u64, codecs: &[PictureCodec]) -> Result<(), FileFault> {
        let mut at = begin;
        while let Some(element) = self.bytes.element(at, end)? {
            at = element.end;
            match element.id {
                id::INFO => self.info(&element)?,
                id::TRACKS => return self.tracks(&element, codecs),
                id::CLUSTER if element.is_open => {
                    let layout = "Matroska with clusters of unknown length in front of its tracks";
                    return Err(FileFault::Layout { layout, remedy: "-c copy" });
                }
                _ => {}
            }
        }
        Err(damaged("clusters without a description of their tracks"))
    }

    fn info(&mut self, info: &Element) -> Result<(), FileFault> {
        let mut at = info.begin;
        while let Some(element) = self.bytes.element(at, info.end)? {
            at = element.end;
            if element.id == id::TIMESTAMP_SCALE {
                self.scale = self.bytes.number(&element)?.max(1);
            }
        }
        Ok(())
    }

    fn tracks(&mut self, tracks: &Element, codecs: &[PictureCodec]) -> Result<(), FileFault> {
        let mut at = tracks.begin;
        while let Some(element) = self.bytes.element(at, tracks.end)? {
            at = element.end;
            if element.id == id::TRACK_ENTRY {
                self.track(&Entry::read(&self.bytes, &element)?, codecs)?;
            }
        }
        Ok(())
    }

    fn track(&mut self, entry: &Entry, codecs: &[PictureCodec]) -> Result<(), FileFault> {
        let is_encoded = || FileFault::Layout {
            layout: "Matroska with compressed or encrypted frames",
            remedy: "-c copy",
        };
        match entry.kind {
            VIDEO_TRACK if self.video.is_none() => {
                let config = entry.video_config(codecs)?;
                if entry.is_encoded {
                    return Err(is_encoded());
                }
                let (number, duration) = (entry.number, entry.duration);
                self.video = Some(TrackScan { number, config, duration, frames: Vec::new() });
            }
            AUDIO_TRACK if self.audio.is_none() => {
                match entry.audio_config() {
                    Ok(_) if entry.is_encoded => return Err(is_encoded()),
                    Ok(config) => {
                        let (number, duration) = (entry.number, entry.duration);
                        self.audio = Some(TrackScan { number, config, duration, frames: Vec::new() });
                    }
                    // WebM has Opus and Vorbis, which publishers of files leave out beside pictures.
                    Err(fault) if matches!(&*entry.codec, "A_OPUS" | "A_VORBIS") => {
                        self.opaque.get_or_insert(fault);
                    }
                    Err(fault) => return Err(fault),
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Where the cluster ends.
    fn cluster(&mut self, cluster: &Element) -> Result<u64, FileFault> {
        let mut time = 0;
        let mut at = cluster.begin;
        while let Some(element) = self.bytes.element(at, cluster.end)? {
            // What is no child of a cluster ends one of unknown length (RFC 8794 section 6.2).
            if cluster.is_open && matches!(element.id, id::CLUSTER | id::EBML | id::SEGMENT | 0x1000_0000..) {
                return Ok(at);
            }
            at = element.end;
            match element.id {
                // The file was cut off inside of it.
                id::TIMESTAMP if element.end > self.bytes.length => return Ok(cluster.end),
                id::TIMESTAMP => time = self.bytes.number(&element)?,
                id::SIMPLE_BLOCK => self.block(&element, time, None)?,
                id::BLOCK_GROUP => self.block_group(&element, time)?,
                _ => {}
            }
        }
        Ok(cluster.end)
    }

    fn block_group(&mut self, group: &Element, time: u64) -> Result<(), FileFault> {
        let (mut block, mut keyframe) = (None, true);
        let mut at = group.begin;
        while let Some(element) = self.bytes.element(at, group.end)? {
            at = element.end;
            match element.id {
                id::BLOCK => block = Some(element),
                id::REFERENCE_BLOCK => keyframe = false,
                _ => {}
            }
        }
        block.map_or(Ok(()), |block| self.block(&block, time, Some(keyframe)))
    }

    /// Section 10: a track's number, a time that is relative to the cluster's, flags, and a frame. `keyframe` is that of a group; a simple block
    /// has it in its flags.
    fn block(&mut self, block: &Element, time: u64, keyframe: Option<bool>) -> Result<(), FileFault> {
        if block.end > self.bytes.length {
            return Ok(());
        }
        let mut header = [0; BLOCK_HEADER];
        let room = (block.end - block.begin).min(BLOCK_HEADER as u64) as usize;
        self.bytes.file.read_exact_at(&mut header[..room], block.begin)?;
        let header = &header[..room];
        let wrong = || damaged("a block without its header");
        let (number, length) = variable(header).ok_or_else(wrong)?;
        let &[high, low, flags] = header.get(length..length + 3).ok_or_else(wrong)? else {
            return Err(wrong());
        };
        let (offset, end) = (block.begin + length as u64 + 3, block.end);
        // A frame that the encoder has dropped.
        if offset == end {
            return Ok(());
        }
        let ticks = i128::from(time) + i128::from(i16::from_be_bytes([high, low]));
        let shown = ticks.checked_mul(self.scale.into()).and_then(|nanos| i64::try_from(nanos).ok());
        let shown = shown
            .filter(|nanos| nanos.unsigned_abs() <= MAX_TIME as u64)
            .ok_or_else(|| damaged("a time beyond 73 years"))?;
        let keyframe = keyframe.unwrap_or(flags & 0x80 != 0);
        let is_laced = flags & 0x06 != 0;
        let laced =
            || FileFault::Layout { layout: "Matroska with several frames in a block", remedy: "-c copy" };
        if let Some(video) = self.video.as_mut().filter(|track| Some(track.number) == number) {
            return if is_laced { Err(laced()) } else { video.take(offset, end - offset, keyframe, shown) };
        }
        if let Some(audio) = self.audio.as_mut().filter(|track| Some(track.number) == number) {
            return if is_laced { Err(laced()) } else { audio.take(offset, end - offset, true, shown) };
        }
        Ok(())
    }

    fn finish(self) -> Result<Contents, FileFault> {
        let contents = Contents {
            video: self.video.and_then(TrackScan::finish),
            audio: self.audio.and_then(TrackScan::finish),
        };
        match self.opaque {
            Some(fault) if contents.video.is_none() && contents.audio.is_none() => Err(fault),
            _ => Ok(contents),
        }
    }
}

/// A description of a track (section 5.1.4.1).
#[derive(Default)]
struct Entry {
    number: u64,
    kind: u64,
    codec: String,
    private: Vec<u8>,
    duration: Option<u64>,
    is_encoded: bool,
    size: (u64, u64),
}

impl Entry {
    fn read(bytes: &Bytes<'_>, of: &Element) -> Result<Self, FileFault> {
        let mut entry = Self::default();
        let mut at = of.begin;
        while let Some(element) = bytes.element(at, of.end)? {
            at = element.end;
            match element.id {
                id::TRACK_NUMBER => entry.number = bytes.number(&element)?,
                id::TRACK_TYPE => entry.kind = bytes.number(&element)?,
                id::CODEC_ID => {
                    let name = bytes.body(&element, 256)?;
                    entry.codec = String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned();
                }
                id::CODEC_PRIVATE => entry.private = bytes.body(&element, MAX_TRACKS_BYTES)?,
                id::DEFAULT_DURATION => {
                    let nanos = bytes.number(&element)?;
                    entry.duration = (1..=MAX_DURATION).contains(&nanos).then_some(nanos);
                }
                id::CONTENT_ENCODINGS => entry.is_encoded = true,
                id::VIDEO => {
                    let mut at = element.begin;
                    while let Some(side) = bytes.element(at, element.end)? {
                        at = side.end;
                        match side.id {
                            id::PIXEL_WIDTH => entry.size.0 = bytes.number(&side)?,
                            id::PIXEL_HEIGHT => entry.size.1 = bytes.number(&side)?,
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(entry)
    }

    /// Codec mappings: RFC 9559 section 21 and its registry.
    fn video_config(&self, codecs: &[PictureCodec]) -> Result<VideoConfig, FileFault> {
        let codec = match &*self.codec {
            "V_MPEG4/ISO/AVC" => PictureCodec::H264,
            "V_MPEGH/ISO/HEVC" => PictureCodec::H265,
            "V_VP8" => PictureCodec::Vp8,
            "V_VP9" => PictureCodec::Vp9,
            "V_AV1" => PictureCodec::Av1,
            other => {
                return Err(FileFault::Codec {
                    codec: format!("video codec {other}"),
                    remedy: "-c:v libx264",
                });
            }
        };
        check(codec, &self.codec, codecs)?;
        // lengthSizeMinusOne of `avcC` and `hvcC`.
        let length_at = match codec {
            PictureCodec::H264 => Some(4),
            PictureCodec::H265 => Some(21),
            _ => None,
        };
        if length_at.is_some_and(|at| self.private.get(at).is_none_or(|byte| byte & 3 != 3)) {
            return Err(FileFault::Layout {
                layout: "a NAL unit length of other than 4 bytes",
                remedy: "-c:v libx264",
            });
        }
        let is_record = !matches!(codec, PictureCodec::Vp8 | PictureCodec::Vp9);
        let side = |side: u64| u16::try_from(side).ok().filter(|side| *side > 0);
        Ok(VideoConfig {
            codec,
            decoder_configuration: if is_record { self.private.clone() } else { Vec::new() },
            resolution: side(self.size.0).zip(side(self.size.1)),
            frame_rate: self.duration.and_then(|nanos| FrameRate::from_decimal(1e9 / nanos as f64)),
            bit_rate: None,
        })
    }

    fn audio_config(&self) -> Result<AudioConfig, FileFault> {
        if !self.codec.starts_with("A_AAC") {
            return Err(FileFault::Codec {
                codec: format!("audio codec {}", self.codec),
                remedy: "-c:a aac",
            });
        }
        let (sample_rate, channels) = aac::parse_specific_config(&self.private)
            .ok_or_else(|| damaged("an AudioSpecificConfig that cannot be read"))?;
        let specific_config = self.private.clone();
        Ok(AudioConfig { codec: AudioCodec::Aac, specific_config, sample_rate, channels, bit_rate: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// An element: identifier, length, body.
    fn element(id: u32, body: &[u8]) -> Vec<u8> {
        let id = id.to_be_bytes();
        let start = id.iter().position(|byte| *byte != 0).unwrap();
        [&id[start..], &(1 << 56 | body.len() as u64).to_be_bytes(), body].concat()
    }

    fn track(body: &[u8]) -> Vec<u8> {
        let described = [element(id::TRACK_NUMBER, &[1]), element(id::TRACK_TYPE, &[1])].concat();
        let named = [&described[..], &element(id::CODEC_ID, b"V_VP8"), body].concat();
        element(id::TRACKS, &element(id::TRACK_ENTRY, &named))
    }

    fn segment(parts: &[Vec<u8>]) -> Vec<u8> {
        [element(id::EBML, &[]), element(id::SEGMENT, &parts.concat())].concat()
    }

    fn cluster(time: &[u8], block: &[u8]) -> Vec<u8> {
        let inside = [element(id::TIMESTAMP, time), element(id::SIMPLE_BLOCK, block)].concat();
        element(id::CLUSTER, &inside)
    }

    fn contents(bytes: &[u8]) -> Result<usize, String> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        let contents = read(&file, &PictureCodec::ALL).map_err(|fault| fault.to_string())?;
        Ok(contents.video.map_or(0, |(_, track)| track.samples.len()))
    }

    const KEYFRAME: [u8; 8] = [0x81, 0, 0, 0x80, 0x10, 0, 0, 0x9D];

    #[test]
    fn clusters_in_front_of_their_tracks_are_read_if_they_say_how_long_they_are() {
        let early = |count: usize| vec![cluster(&[0], &KEYFRAME); count];
        for count in [1, 3] {
            let file = segment(&[&early(count)[..], &[track(&[]), cluster(&[40], &KEYFRAME)]].concat());
            assert_eq!(contents(&file), Ok(count + 1));
        }
        let nothing = contents(&segment(&early(2))).unwrap_err();
        assert!(nothing.contains("clusters without a description of their tracks"), "{nothing}");
        // A length of which all bits are 1 is unknown.
        let mut open = cluster(&[0], &KEYFRAME);
        let body = open.split_off(4);
        let length = body[0].leading_zeros() as usize + 1;
        let open = [&open[..], &[0xFF], &body[length..]].concat();
        let refused = contents(&segment(&[open, track(&[])])).unwrap_err();
        assert!(refused.contains("unknown length in front of its tracks is not supported"), "{refused}");
    }

    #[test]
    fn lengths_that_lie_are_refused() {
        let whole = segment(&[track(&[]), cluster(&[0], &KEYFRAME), cluster(&[40], &KEYFRAME)]);
        assert_eq!(contents(&whole), Ok(2));
        assert_eq!(contents(&whole[..whole.len() - 1]), Ok(1), "the last block is cut off");
        assert_eq!(contents(&[whole.clone(), whole.clone()].concat()), Ok(2), "the first segment alone");
        // An element that ends behind its parent would have the same bytes read again for each parent.
        let mut beyond = element(id::CODEC_PRIVATE, &[0; 4]);
        beyond[9] = 200;
        let refused = contents(&segment(&[track(&beyond), cluster(&[0], &KEYFRAME)])).unwrap_err();
        assert!(refused.contains("no element of Matroska at byte"), "{refused}");
        let large = vec![0; MAX_TRACKS_BYTES as usize + 1];
        let refused = contents(&segment(&[track(&element(id::CODEC_PRIVATE, &large))])).unwrap_err();
        assert!(refused.contains("a description of 1048577 bytes is more than is read"), "{refused}");
        let refused = contents(&segment(&[vec![0xAE, 0xFF]])).unwrap_err();
        assert!(refused.contains("no element"), "of unknown length, and no cluster: {refused}");
    }

    #[test]
    fn times_that_overflow_are_refused() {
        let scale = element(id::INFO, &element(id::TIMESTAMP_SCALE, &[0xFF; 8]));
        for (scale, time) in [(&scale, &[0xFF; 8][..]), (&vec![], &[0x7F; 7]), (&scale, &[1])] {
            let refused = contents(&segment(&[scale.clone(), track(&[]), cluster(time, &KEYFRAME)]));
            assert!(refused.unwrap_err().contains("a time beyond 73 years"), "{time:?}");
        }
        let endless = element(id::DEFAULT_DURATION, &[0x7F; 8]);
        assert_eq!(contents(&segment(&[track(&endless), cluster(&[0], &KEYFRAME)])), Ok(1));
    }

    #[test]
    fn several_frames_in_a_block_are_named() {
        for lacing in [2, 4, 6] {
            let mut block = KEYFRAME;
            block[3] |= lacing;
            let refused = contents(&segment(&[track(&[]), cluster(&[0], &block)])).unwrap_err();
            assert!(refused.contains("several frames in a block"), "{refused}");
        }
        let short = contents(&segment(&[track(&[]), cluster(&[0], &KEYFRAME[..3])])).unwrap_err();
        assert!(short.contains("a block without its header"), "{short}");
    }
}
