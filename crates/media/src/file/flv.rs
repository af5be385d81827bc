//! The index of an FLV file, by one pass over its tags (FLV 10.1, annex E).

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};

use weir_rtmp::amf0::{self, Value};
use weir_rtmp::flv::{
    AudioCodec, AudioPacketType, AudioTag, FourCc, Limits, Reader, Tag, VideoCodec, VideoTag,
};
use weir_rtmp::message::MediaKind;

use super::index::{MAX_SAMPLES, RawSample, RawTrack};
use super::{Contents, damaged};
use crate::{AudioConfig, FileFault, FrameRate, PictureCodec, Track, VideoConfig, aac};

/// Reads the index of an FLV file.
pub(super) fn read(file: &File) -> Result<Contents, FileFault> {
    let mut scan = Scan::default();
    scan.tags(file)?;
    scan.finish()
}

/// A pass over the tags.
#[derive(Default)]
struct Scan {
    /// Out of `onMetaData`, which an FLV file need not have.
    resolution: Option<(u16, u16)>,
    frame_rate: Option<FrameRate>,
    video: TrackScan,
    audio: TrackScan,
}

/// What has been seen of a track.
#[derive(Default)]
struct TrackScan {
    /// The codec's own, out of the sequence header.
    configuration: Option<Vec<u8>>,
    samples: Vec<RawSample>,
}

const NANOS_PER_MILLI: i64 = 1_000_000;

impl Scan {
    fn tags(&mut self, mut file: &File) -> Result<(), FileFault> {
        file.seek(SeekFrom::Start(0))?;
        let mut reader = Reader::new(Limits::default());
        let mut buffer = vec![0; 1 << 18];
        let mut position = 0;
        loop {
            let length = match file.read(&mut buffer) {
                Ok(0) => return Ok(()), // A tag cut off at the end is left out.
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            position += length as u64;
            let mut input = &buffer[..length];
            while let Some(tag) = reader.next(&mut input).map_err(|error| damaged(error.to_string()))? {
                // The tag's body is the last of what the reader has taken.
                self.tag(&tag, position - input.len() as u64 - tag.body.len() as u64)?;
            }
        }
    }

    /// Takes in a tag whose body starts at `offset`.
    fn tag(&mut self, tag: &Tag<'_>, offset: u64) -> Result<(), FileFault> {
        match tag.kind {
            MediaKind::Video if !tag.body.is_empty() => self.video_tag(tag, offset),
            MediaKind::Audio if !tag.body.is_empty() => self.audio_tag(tag, offset),
            MediaKind::Data => {
                self.metadata(tag.body);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Script data (annex E.5). What cannot be read is passed over: nothing hangs on it.
    fn metadata(&mut self, body: &[u8]) {
        let Ok(values) = amf0::decode(body) else { return };
        let [name, properties, ..] = &values[..] else { return };
        if name.as_str() != Some("onMetaData") {
            return;
        }
        let number = |name| properties.get(name).and_then(Value::as_number);
        let pixels =
            |name| number(name).filter(|&value| (1.0..=65535.0).contains(&value)).map(|value| value as u16);
        self.resolution = pixels("width").zip(pixels("height"));
        self.frame_rate = number("framerate").and_then(FrameRate::from_decimal);
    }

    fn video_tag(&mut self, tag: &Tag<'_>, offset: u64) -> Result<(), FileFault> {
        let header = VideoTag::parse(tag.body).map_err(|error| damaged(error.to_string()))?;
        let name = match header.codec {
            VideoCodec::FourCc(FourCc::AVC) => None,
            VideoCodec::Unnamed => return Ok(()),
            VideoCodec::FourCc(other) => Some(other.to_string()),
            VideoCodec::Legacy(number) => Some(number.to_string()),
        };
        if let Some(name) = name {
            return Err(codec(format!("video codec {name}"), "-c:v libx264"));
        }
        if header.multitrack.is_some() {
            return Err(multitrack());
        }
        let payload = tag.body.get(header.payload_offset..).unwrap_or_default();
        if header.is_sequence_header() {
            return self.configure(Track::Video, payload);
        }
        if !header.is_frame() || payload.is_empty() {
            return Ok(());
        }
        self.sample(
            Track::Video,
            tag.timestamp,
            RawSample {
                offset: offset + header.payload_offset as u64,
                length: payload.len() as u32,
                keyframe: header.is_keyframe(),
                decode_nanos: 0,
                composition_nanos: i64::from(header.composition_time) * NANOS_PER_MILLI,
            },
        )
    }

    fn audio_tag(&mut self, tag: &Tag<'_>, offset: u64) -> Result<(), FileFault> {
        let header = AudioTag::parse(tag.body).map_err(|error| damaged(error.to_string()))?;
        let name = match header.codec {
            AudioCodec::FourCc(FourCc::AAC) => None,
            AudioCodec::FourCc(other) => Some(other.to_string()),
            AudioCodec::Legacy(number) => Some(number.to_string()),
        };
        if let Some(name) = name {
            return Err(codec(format!("audio codec {name}"), "-c:a aac"));
        }
        if header.multitrack.is_some() {
            return Err(multitrack());
        }
        let payload = tag.body.get(header.payload_offset..).unwrap_or_default();
        match header.packet_type {
            AudioPacketType::SequenceStart => self.configure(Track::Audio, payload),
            AudioPacketType::CodedFrames if !payload.is_empty() => self.sample(
                Track::Audio,
                tag.timestamp,
                RawSample {
                    offset: offset + header.payload_offset as u64,
                    length: payload.len() as u32,
                    keyframe: true,
                    decode_nanos: 0,
                    composition_nanos: 0,
                },
            ),
            _ => Ok(()),
        }
    }

    /// A configuration may come several times, and be corrected as long as no frame has come.
    fn configure(&mut self, track: Track, configuration: &[u8]) -> Result<(), FileFault> {
        let scan = self.scan_of(track);
        match scan.configuration.replace(configuration.to_owned()) {
            Some(before) if before != configuration && !scan.samples.is_empty() => {
                Err(layout("a codec configuration that changes midway", "-c:v libx264 -c:a aac"))
            }
            _ => Ok(()),
        }
    }

    fn sample(&mut self, track: Track, timestamp: u32, sample: RawSample) -> Result<(), FileFault> {
        let decode_nanos = i64::from(timestamp) * NANOS_PER_MILLI;
        let samples = &mut self.scan_of(track).samples;
        if samples.last().is_some_and(|last| last.decode_nanos > decode_nanos) {
            return Err(layout("a timestamp that goes back", "-c:v libx264 -c:a aac"));
        }
        if samples.len() == MAX_SAMPLES {
            return Err(FileFault::TooLarge(format!("a track of over {MAX_SAMPLES} frames")));
        }
        samples.push(RawSample { decode_nanos, ..sample });
        Ok(())
    }

    fn scan_of(&mut self, track: Track) -> &mut TrackScan {
        match track {
            Track::Video => &mut self.video,
            Track::Audio => &mut self.audio,
        }
    }

    fn finish(self) -> Result<Contents, FileFault> {
        let mut contents = Contents::default();
        if !self.video.samples.is_empty() {
            let (configuration, track) = self.video.finish("H.264")?;
            let mut config = video_config(configuration)?;
            (config.resolution, config.frame_rate) = (self.resolution, self.frame_rate);
            contents.video = Some((config, track));
        }
        if !self.audio.samples.is_empty() {
            let (configuration, track) = self.audio.finish("AAC")?;
            contents.audio = Some((audio_config(configuration)?, track));
        }
        Ok(contents)
    }
}

impl TrackScan {
    /// The last frame is taken to last as long as the others do on average; FLV does not say.
    fn finish(self, codec: &str) -> Result<(Vec<u8>, RawTrack), FileFault> {
        let Self { configuration, samples } = self;
        let configuration =
            configuration.ok_or_else(|| damaged(format!("{codec} without its configuration")))?;
        let first = samples.first().map_or(0, |sample| sample.decode_nanos);
        let last = samples.last().map_or(0, |sample| sample.decode_nanos);
        let steps = (samples.len() as i64 - 1).max(1);
        Ok((configuration, RawTrack { end_nanos: last + (last - first) / steps, samples }))
    }
}

fn video_config(decoder_configuration: Vec<u8>) -> Result<VideoConfig, FileFault> {
    // lengthSizeMinusOne
    if decoder_configuration.get(4).is_none_or(|byte| byte & 3 != 3) {
        return Err(layout("a NAL unit length of other than 4 bytes", "-c:v libx264"));
    }
    Ok(VideoConfig {
        codec: PictureCodec::H264,
        decoder_configuration,
        resolution: None,
        frame_rate: None,
        bit_rate: None,
    })
}

fn audio_config(specific_config: Vec<u8>) -> Result<AudioConfig, FileFault> {
    let (sample_rate, channels) = aac::parse_specific_config(&specific_config)
        .ok_or_else(|| damaged("an AudioSpecificConfig that cannot be read"))?;
    Ok(AudioConfig { codec: crate::AudioCodec::Aac, specific_config, sample_rate, channels, bit_rate: None })
}

fn codec(codec: String, remedy: &'static str) -> FileFault {
    FileFault::Codec { codec, remedy }
}

fn layout(layout: &'static str, remedy: &'static str) -> FileFault {
    FileFault::Layout { layout, remedy }
}

fn multitrack() -> FileFault {
    layout("FLV with several tracks of a kind", "-map 0:v:0 -map 0:a:0 -c copy")
}
