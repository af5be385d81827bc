//! Pictures into payloads: the other way round than [`crate::Assembler`].

mod av1;
mod h265;
mod vpx;

use crate::{VideoCodec, h264};

/// Cuts the pictures of a stream into payloads of a bounded length. Keeps its buffers.
#[derive(Clone, Debug)]
pub struct Packetiser {
    codec: VideoCodec,
    writer: Writer,
}

#[derive(Clone, Debug)]
enum Writer {
    H264(h264::Packetiser),
    H265(h265::Writer),
    Av1(av1::Writer),
    Vp8(vpx::Writer),
    Vp9(vpx::Writer),
}

impl Packetiser {
    /// Payloads of up to `limit` bytes; at least 16, and no more than 65,535. `number` is that of the first picture, where the codec's
    /// payloads have such: it is random (RFC 7741 section 4.2, RFC 9628 section 4.2).
    pub fn new(codec: VideoCodec, limit: usize, number: u16) -> Self {
        let limit = limit.clamp(LEAST, usize::from(u16::MAX));
        let writer = match codec {
            VideoCodec::H264 => Writer::H264(h264::Packetiser::new(limit)),
            VideoCodec::H265 => Writer::H265(h265::Writer::new(limit)),
            VideoCodec::Av1 => Writer::Av1(av1::Writer::new(limit)),
            VideoCodec::Vp8 => Writer::Vp8(vpx::Writer::new(limit, number)),
            VideoCodec::Vp9 => Writer::Vp9(vpx::Writer::new(limit, number)),
        };
        Self { codec, writer }
    }

    /// The codec of its pictures.
    pub fn codec(&self) -> VideoCodec {
        self.codec
    }

    /// Cuts one picture, given as its NAL units without start codes and lengths, its OBUs with or without their sizes, or its one frame of
    /// VP8 or VP9. `emit` gets each payload, and whether it is the last: the one that has the marker. Gives the length of the picture as
    /// [`crate::AccessUnit::length`] does.
    pub fn packetise<'a>(
        &mut self,
        units: impl IntoIterator<Item = &'a [u8]>,
        is_keyframe: bool,
        mut emit: impl FnMut(&[u8], bool),
    ) -> usize {
        let mut length = 0;
        match &mut self.writer {
            Writer::H264(writer) => {
                let units = units.into_iter().filter(|unit| !unit.is_empty());
                writer.packetise(units.inspect(|unit| length += 4 + unit.len()), emit);
            }
            Writer::H265(writer) => {
                let units = units.into_iter().filter(|unit| unit.len() >= h265::HEADER);
                writer.packetise(units.inspect(|unit| length += 4 + unit.len()), &mut emit);
            }
            Writer::Av1(writer) => length = writer.packetise(units, is_keyframe, &mut emit),
            Writer::Vp8(writer) => {
                let frames = units.into_iter().inspect(|frame| length += frame.len());
                frames.for_each(|frame| writer.packetise(frame, vpx::vp8_descriptor, is_keyframe, &mut emit));
            }
            Writer::Vp9(writer) => {
                let frames = units.into_iter().inspect(|frame| length += frame.len());
                frames.for_each(|frame| writer.packetise(frame, vpx::vp9_descriptor, is_keyframe, &mut emit));
            }
        }
        length
    }
}

/// The least payload that makes sense: the longest header, and some bytes.
const LEAST: usize = 16;

/// Parts of about the same length, of `room` bytes at the most: the last one is not a stub.
fn parts(bytes: &[u8], room: usize) -> impl Iterator<Item = &[u8]> {
    let count = bytes.len().div_ceil(room.max(1)).max(1);
    bytes.chunks(bytes.len().div_ceil(count).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Assembler;
    use proptest::prelude::*;

    /// A unit of this codec with this body: a slice of a keyframe if it is the last of one, or else what may come in front of it.
    fn unit(codec: VideoCodec, body: &[u8], is_key: bool, is_first: bool) -> Vec<u8> {
        let header: &[u8] = match (codec, is_key, is_first) {
            (VideoCodec::H264, true, _) => &[0x65, 0x88],
            (VideoCodec::H264, ..) => &[0x41, 0x9A],
            (VideoCodec::H265, true, _) => &[0x26, 0x01, 0xAF],
            (VideoCodec::H265, ..) => &[0x02, 0x01, 0xD0],
            (VideoCodec::Av1, true, true) => &[0x08],
            (VideoCodec::Av1, true, false) => &[0x30, 0x10],
            (VideoCodec::Av1, ..) => &[0x30, 0x30],
            (VideoCodec::Vp8, true, _) => &[0x10],
            (VideoCodec::Vp8, ..) => &[0x11],
            (VideoCodec::Vp9, true, _) => &[0x82],
            (VideoCodec::Vp9, ..) => &[0x86],
        };
        [header, body].concat()
    }

    /// What an assembler gives of it: a length in front of each unit, or the frame itself.
    fn framed(codec: VideoCodec, units: &[Vec<u8>]) -> Vec<u8> {
        let length = |unit: &Vec<u8>| (unit.len() as u32).to_be_bytes();
        match codec.has_units() {
            true => units.iter().flat_map(|unit| [&length(unit)[..], unit].concat()).collect(),
            false => units.concat(),
        }
    }

    proptest! {
        #[test]
        fn pictures_of_every_codec_come_out_as_they_went_in(
            pictures in prop::collection::vec(
                (any::<bool>(), prop::collection::vec(prop::collection::vec(any::<u8>(), 3..300), 1..6)),
                1..5,
            ),
            limit in LEAST..400,
            sized in any::<bool>(),
        ) {
            for codec in VideoCodec::ALL {
                let mut packetiser = Packetiser::new(codec, limit, 0x7FFE);
                let mut assembler = Assembler::new(codec, usize::MAX);
                let mut number = 0;
                for (at, (is_key, bodies)) in (0u32..).zip(&pictures) {
                    // Two of AV1's keyframe at the least: a sequence header and a frame.
                    let least = if codec == VideoCodec::Av1 && *is_key { 2 } else { 1 };
                    let bodies: Vec<_> = bodies.iter().cycle().take(bodies.len().max(least)).collect();
                    let bodies = if codec.has_units() { &bodies[..] } else { &bodies[..1] };
                    let units: Vec<_> = bodies.iter().enumerate()
                        .map(|(at, body)| unit(codec, body, *is_key, at == 0 && bodies.len() > 1)).collect();
                    let given: Vec<_> = units.iter().map(|unit| match sized && codec == VideoCodec::Av1 {
                        true => with_size(unit),
                        false => unit.clone(),
                    }).collect();
                    let mut payloads = Vec::new();
                    let length = packetiser.packetise(given.iter().map(Vec::as_slice), *is_key, |payload, last| {
                        payloads.push((payload.to_vec(), last));
                    });
                    let mut whole = Vec::new();
                    for (place, (payload, last)) in payloads.iter().enumerate() {
                        prop_assert!(payload.len() <= limit, "{codec}: {} of {limit}", payload.len());
                        prop_assert_eq!(*last, place + 1 == payloads.len());
                        // Each slice of H.264 and H.265 here is a picture's first.
                        let is_known = !codec.is_key_by_unit() || place == 0;
                        prop_assert!(!is_known || codec.hints(payload).start != Some(place > 0), "{codec} {place}");
                        assembler.push(number, at, *last, payload, |unit| {
                            whole.push((unit.bytes.to_vec(), unit.length, unit.complete, unit.keyframe));
                        });
                        number += 1;
                    }
                    prop_assert_eq!(whole, [(framed(codec, &units), length, true, *is_key)], "{}", codec);
                }
            }
        }
    }

    /// The same OBU with its size (AV1 section 5.3.1).
    fn with_size(obu: &[u8]) -> Vec<u8> {
        let mut length = Vec::new();
        av1::append_leb128(obu.len() - 1, &mut length);
        [&[obu[0] | 0x02], &length[..], &obu[1..]].concat()
    }
}
