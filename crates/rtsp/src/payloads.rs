//! The pictures of a stream as payloads of RTP, each keyframe behind its parameter sets, and as a description has them: the other way round than
//! [`crate::TagReader`]. Nothing here knows what carries them.

use weir_media::{PictureCodec, VideoConfig};
use weir_rtc::sdp::{Format, Profile};
use weir_rtc::{Packetiser, VideoCodec, h264, h265};

/// Cuts pictures into payloads.
#[derive(Clone, Debug)]
pub struct PicturePayloads {
    codec: PictureCodec,
    packetiser: Packetiser,
    /// What is described apart from the pictures.
    sets: Vec<Vec<u8>>,
    /// Whether parameter sets among the pictures stay, and what is described is for keyframes without any.
    keeps_own: bool,
}

impl PicturePayloads {
    /// Pictures of a file's track, in payloads of up to `limit` bytes; `number` is that of the first. What the file describes is sent in front
    /// of every keyframe, whatever there is of it among the pictures.
    pub fn of_track(config: Option<&VideoConfig>, limit: usize, number: u16) -> Self {
        let codec = config.map_or(PictureCodec::H264, |config| config.codec);
        let mut payloads = Self::of_stream(codec, limit, number);
        payloads.describe(config.map_or(&[], |config| &config.decoder_configuration));
        payloads.keeps_own = false;
        payloads
    }

    /// Pictures of a stream as they come, whose parameter sets may change among them.
    pub fn of_stream(codec: PictureCodec, limit: usize, number: u16) -> Self {
        let packetiser = Packetiser::new(video_codec(codec), limit, number);
        Self { codec, packetiser, sets: Vec::new(), keeps_own: true }
    }

    /// From now on this decoder configuration record describes them.
    pub fn describe(&mut self, record: &[u8]) {
        self.sets = self.codec.sets_of_record(record).into_iter().map(<[u8]>::to_vec).collect();
    }

    /// The codec of the pictures.
    pub fn codec(&self) -> PictureCodec {
        self.codec
    }

    /// Gives each payload of a picture, a frame as [`weir_media::Frame::payload`] has it, and whether it is the last. Gives the picture's length, as
    /// those who receive it count it.
    pub fn packetise(&mut self, picture: &[u8], is_keyframe: bool, emit: impl FnMut(&[u8], bool)) -> usize {
        let (codec, sets) = (self.codec, &self.sets);
        let has_own = || self.keeps_own && codec.units_of(picture).any(|unit| codec.is_set(unit));
        let is_described = is_keyframe && !sets.is_empty() && !has_own();
        let replaces = !self.keeps_own && !sets.is_empty();
        let is_left_out = |unit: &&[u8]| codec.is_delimiter(unit) || replaces && codec.is_set(unit);
        let described = sets.iter().filter(|_| is_described).map(Vec::as_slice);
        let units = described.chain(codec.units_of(picture).filter(|unit| !is_left_out(unit)));
        self.packetiser.packetise(units, is_keyframe, emit)
    }
}

/// The codec as RTP knows it.
pub fn video_codec(codec: PictureCodec) -> VideoCodec {
    match codec {
        PictureCodec::H264 => VideoCodec::H264,
        PictureCodec::H265 => VideoCodec::H265,
        PictureCodec::Vp8 => VideoCodec::Vp8,
        PictureCodec::Vp9 => VideoCodec::Vp9,
        PictureCodec::Av1 => VideoCodec::Av1,
    }
}

/// The codec of RTP's as files have it.
pub fn picture_codec(codec: VideoCodec) -> PictureCodec {
    match codec {
        VideoCodec::H264 => PictureCodec::H264,
        VideoCodec::H265 => PictureCodec::H265,
        VideoCodec::Vp8 => PictureCodec::Vp8,
        VideoCodec::Vp9 => PictureCodec::Vp9,
        VideoCodec::Av1 => PictureCodec::Av1,
    }
}

/// The format of pictures that this decoder configuration record describes, as a camera's description has it: with its parameter sets, and of
/// codecs without such with the profile, where it is known.
pub fn described_format(codec: PictureCodec, payload_type: u8, record: &[u8]) -> Format {
    let sets = codec.sets_of_record(record);
    let video = video_codec(codec);
    match codec {
        PictureCodec::H264 => h264::described_format(payload_type, &sets),
        PictureCodec::H265 => h265::described_format(payload_type, &sets),
        PictureCodec::Vp8 | PictureCodec::Vp9 | PictureCodec::Av1 => Format {
            payload_type,
            name: video.encoding_name().to_owned(),
            clock_rate: h264::CLOCK_RATE,
            parameters: Profile::of_record(video, record).map(Profile::parameters).unwrap_or_default(),
            ..Format::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(codec: PictureCodec, decoder_configuration: &[u8]) -> VideoConfig {
        let decoder_configuration = decoder_configuration.to_vec();
        VideoConfig { codec, decoder_configuration, resolution: None, frame_rate: None, bit_rate: None }
    }

    fn cut(mut cut: PicturePayloads, keyframe: bool, picture: &[u8]) -> (Vec<Vec<u8>>, usize) {
        let mut payloads = Vec::new();
        let length = cut.packetise(picture, keyframe, |payload, _| payloads.push(payload.to_vec()));
        (payloads, length)
    }

    fn payloads(config: &VideoConfig, keyframe: bool, picture: &[u8]) -> (Vec<Vec<u8>>, usize) {
        cut(PicturePayloads::of_track(Some(config), 100, 7), keyframe, picture)
    }

    #[test]
    fn described_sets_are_in_front_of_each_keyframe_once() {
        // One list of a VPS in `hvcC`, and in the picture a delimiter, the same VPS and a slice.
        let mut record = vec![0; 23];
        record[22] = 1;
        record.extend([0x20, 0, 1, 0, 3, 0x40, 1, 7]);
        let h265 = config(PictureCodec::H265, &record);
        let picture = [0, 0, 0, 2, 0x46, 1, 0, 0, 0, 3, 0x40, 1, 9, 0, 0, 0, 3, 0x26, 1, 0xAF];
        let together = vec![0x60, 1, 0, 3, 0x40, 1, 7, 0, 3, 0x26, 1, 0xAF];
        assert_eq!(payloads(&h265, true, &picture), (vec![together], 14));
        // Not described: the file's own stay.
        let bare = config(PictureCodec::H265, &[]);
        let together = vec![0x60, 1, 0, 3, 0x40, 1, 9, 0, 3, 0x26, 1, 0xAF];
        assert_eq!(payloads(&bare, true, &picture), (vec![together.clone()], 14));
        // Of a stream they stay as well, and what is described is for keyframes without any.
        let stream = || {
            let mut stream = PicturePayloads::of_stream(PictureCodec::H265, 100, 7);
            stream.describe(&record);
            stream
        };
        assert_eq!(cut(stream(), true, &picture), (vec![together], 14));
        let alone = vec![0x60, 1, 0, 3, 0x40, 1, 7, 0, 3, 0x26, 1, 0xAF];
        assert_eq!(cut(stream(), true, &picture[13..]), (vec![alone], 14));
        assert_eq!(cut(stream(), false, &picture[13..]), (vec![vec![0x26, 1, 0xAF]], 7));
    }

    #[test]
    fn a_format_says_the_profile_where_there_are_no_parameter_sets() {
        let parameters = |codec, record: &[u8]| described_format(codec, 96, record).parameters;
        assert_eq!(parameters(PictureCodec::Vp9, &[2, 31, 0xA2, 2, 2, 2, 0, 0]), "profile-id=2");
        assert_eq!(parameters(PictureCodec::Av1, &[0x81, 8, 0x0C, 0]), "level-idx=8;profile=0;tier=0");
        assert_eq!(
            (parameters(PictureCodec::Vp8, &[]), parameters(PictureCodec::Vp9, &[])),
            Default::default()
        );
        for codec in PictureCodec::ALL {
            assert_eq!(picture_codec(video_codec(codec)), codec);
        }
    }

    #[test]
    fn obus_lose_their_sizes_and_delimiters_and_frames_stay_whole() {
        let av1 = config(PictureCodec::Av1, &[]);
        let unit = [0x12, 0, 0x0A, 2, 1, 2, 0x32, 2, 0x10, 9];
        assert_eq!(payloads(&av1, true, &unit), (vec![vec![0x28, 3, 0x08, 1, 2, 0x30, 0x10, 9]], 14));
        let vp8 = config(PictureCodec::Vp8, &[]);
        assert_eq!(payloads(&vp8, false, &[0x11, 2]), (vec![vec![0x90, 0x80, 0x80, 7, 0x11, 2]], 2));
        let vp9 = config(PictureCodec::Vp9, &[]);
        assert_eq!(payloads(&vp9, false, &[0x86, 2]), (vec![vec![0xCC, 0x80, 7, 0x86, 2]], 2));
    }
}
