//! The pictures of what is published as payloads of RTP, each keyframe behind its parameter sets. Nothing here knows what carries them.

use weir_media::{Frame, PictureCodec, VideoConfig};
use weir_rtc::{Packetiser, VideoCodec};

/// Cuts pictures into payloads.
pub(crate) struct PicturePayloads {
    codec: PictureCodec,
    packetiser: Packetiser,
    /// What the file describes apart from its pictures.
    sets: Vec<Vec<u8>>,
}

impl PicturePayloads {
    /// Pictures of this track, in payloads of up to `limit` bytes; `number` is that of the first.
    pub(crate) fn new(config: Option<&VideoConfig>, limit: usize, number: u16) -> Self {
        let codec = config.map_or(PictureCodec::H264, |config| config.codec);
        let sets = config.map(VideoConfig::parameter_sets).unwrap_or_default();
        Self {
            codec,
            packetiser: Packetiser::new(video_codec(codec), limit, number),
            sets: sets.into_iter().map(<[u8]>::to_vec).collect(),
        }
    }

    /// The codec of the pictures.
    pub(crate) fn codec(&self) -> VideoCodec {
        self.packetiser.codec()
    }

    /// Gives each payload of a picture, and whether it is the last. Gives the picture's length, as those who receive it count it.
    pub(crate) fn packetise(&mut self, frame: &Frame, emit: impl FnMut(&[u8], bool)) -> usize {
        let (codec, sets) = (self.codec, &self.sets);
        // What is described is sent in front of every keyframe, whatever the file has of it there.
        let is_left_out = |unit: &&[u8]| is_delimiter(codec, unit) || !sets.is_empty() && is_set(codec, unit);
        let described = sets.iter().filter(|_| frame.keyframe).map(Vec::as_slice);
        let units = described.chain(codec.units_of(&frame.payload).filter(|unit| !is_left_out(unit)));
        self.packetiser.packetise(units, frame.keyframe, emit)
    }
}

/// The codec as RTP knows it.
pub(crate) fn video_codec(codec: PictureCodec) -> VideoCodec {
    match codec {
        PictureCodec::H264 => VideoCodec::H264,
        PictureCodec::H265 => VideoCodec::H265,
        PictureCodec::Vp8 => VideoCodec::Vp8,
        PictureCodec::Vp9 => VideoCodec::Vp9,
        PictureCodec::Av1 => VideoCodec::Av1,
    }
}

/// Whether a unit only says that a picture begins (ITU-T H.264 table 7-1, H.265 table 7-1). A packetiser leaves those of AV1 out.
fn is_delimiter(codec: PictureCodec, unit: &[u8]) -> bool {
    unit.first().is_some_and(|first| match codec {
        PictureCodec::H264 => first & 0x1F == 9,
        PictureCodec::H265 => first >> 1 & 0x3F == 35,
        PictureCodec::Vp8 | PictureCodec::Vp9 | PictureCodec::Av1 => false,
    })
}

/// Whether a unit is a parameter set, or a sequence header of AV1 (section 6.2.2).
fn is_set(codec: PictureCodec, unit: &[u8]) -> bool {
    unit.first().is_some_and(|first| match codec {
        PictureCodec::H264 => matches!(first & 0x1F, 7 | 8),
        PictureCodec::H265 => matches!(first >> 1 & 0x3F, 32..=34),
        PictureCodec::Av1 => first >> 3 & 0x0F == 1,
        PictureCodec::Vp8 | PictureCodec::Vp9 => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(codec: PictureCodec, decoder_configuration: &[u8]) -> VideoConfig {
        let decoder_configuration = decoder_configuration.to_vec();
        VideoConfig { codec, decoder_configuration, resolution: None, frame_rate: None, bit_rate: None }
    }

    fn payloads(config: &VideoConfig, keyframe: bool, payload: &[u8]) -> (Vec<Vec<u8>>, usize) {
        let frame = Frame { keyframe, payload: payload.to_vec(), ..Frame::empty() };
        let mut payloads = Vec::new();
        let mut cut = PicturePayloads::new(Some(config), 100, 7);
        let length = cut.packetise(&frame, |payload, _| payloads.push(payload.to_vec()));
        (payloads, length)
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
        assert_eq!(payloads(&bare, true, &picture), (vec![together], 14));
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
