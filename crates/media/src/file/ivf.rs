//! The index of an IVF file, the plain container of VP8, VP9 and AV1: a header of 32 bytes, and 12 bytes in front of each frame. It has no
//! standard but the tools of the codecs (libvpx `ivfdec.c`, libaom `ivfdec.c`).

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::index::{MAX_SAMPLES, RawSample, RawTrack};
use super::{Contents, check, damaged};
use crate::{FileFault, FrameRate, PictureCodec, VideoConfig};

const FILE_HEADER: usize = 32;
const FRAME_HEADER: u64 = 12;

/// Bytes of a frame that are looked at for what it is: a sequence header, metadata and the first bytes of a frame of AV1.
const FRAME_HEAD: usize = 512;

/// Reads the index of an IVF file. A frame that is cut off at the end is left out.
pub(super) fn read(file: &File, codecs: &[PictureCodec]) -> Result<Contents, FileFault> {
    let file_length = file.metadata()?.len();
    let mut header = [0; FILE_HEADER];
    file.read_exact_at(&mut header, 0)
        .map_err(|_| damaged("no header of 32 bytes; was its recording cut off?"))?;
    let half = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let name = String::from_utf8_lossy(&header[8..12]).into_owned();
    let codec = match &header[8..12] {
        b"VP80" => PictureCodec::Vp8,
        b"VP90" => PictureCodec::Vp9,
        b"AV01" => PictureCodec::Av1,
        _ => return Err(FileFault::Codec { codec: format!("video codec {name}"), remedy: "-c:v libvpx" }),
    };
    check(codec, &name, codecs)?;
    // Times are in `scale` of `rate` parts of a second.
    let (rate, scale) = (word(16), word(20));
    if rate == 0 || scale == 0 {
        return Err(damaged("a timescale of 0"));
    }
    let (ticks, samples) = samples(file, codec, (half(6).into(), file_length), (rate, scale))?;
    let (first, last) = (samples.first().map_or(0, decode), samples.last().map_or(0, decode));
    let steps = (samples.len() as i64 - 1).max(1);
    let config = VideoConfig {
        codec,
        decoder_configuration: Vec::new(),
        resolution: Some((half(12), half(14))),
        frame_rate: frame_rate(&ticks, (rate, scale)),
        bit_rate: None,
    };
    let track = RawTrack { end_nanos: last.saturating_add((last - first) / steps), samples };
    Ok(Contents { video: Some((config, track)), audio: None })
}

fn decode(sample: &RawSample) -> i64 {
    sample.decode_nanos
}

/// The frames, and their times in the file's own parts of a second.
fn samples(
    file: &File,
    codec: PictureCodec,
    (mut offset, file_length): (u64, u64),
    (rate, scale): (u32, u32),
) -> Result<(Vec<u64>, Vec<RawSample>), FileFault> {
    let (mut ticks, mut samples) = (Vec::new(), Vec::<RawSample>::new());
    let mut head = [0; FRAME_HEADER as usize + FRAME_HEAD];
    loop {
        let length = read_up_to(file, &mut head, offset)?;
        let Some((header, rest)) = head[..length].split_first_chunk::<{ FRAME_HEADER as usize }>() else {
            break;
        };
        let [a, b, c, d, time @ ..] = *header;
        let size = u32::from_le_bytes([a, b, c, d]);
        let time = u64::from_le_bytes(time);
        let begin = offset + FRAME_HEADER;
        offset = begin + u64::from(size);
        if offset > file_length {
            break;
        }
        if size == 0 {
            // A frame that the encoder has dropped.
            continue;
        }
        if samples.len() == MAX_SAMPLES {
            return Err(FileFault::TooLarge(format!("a track of over {MAX_SAMPLES} frames")));
        }
        let nanos = u128::from(time) * u128::from(scale) * 1_000_000_000 / u128::from(rate);
        let decode_nanos = i64::try_from(nanos).map_err(|_| damaged("a time beyond 292 years"))?;
        if samples.last().is_some_and(|last| last.decode_nanos > decode_nanos) {
            return Err(FileFault::Layout { layout: "a timestamp that goes back", remedy: "-c:v libvpx" });
        }
        let keyframe = codec.is_keyframe(&rest[..rest.len().min(size as usize)]);
        ticks.push(time);
        samples.push(RawSample { offset: begin, length: size, keyframe, decode_nanos, composition_nanos: 0 });
    }
    Ok((ticks, samples))
}

/// As much as there is.
fn read_up_to(file: &File, into: &mut [u8], offset: u64) -> Result<usize, FileFault> {
    let mut length = 0;
    while length < into.len() {
        match file.read_at(&mut into[length..], offset + length as u64) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(length)
}

/// The rate of the first step, if nine in ten have it.
fn frame_rate(ticks: &[u64], (rate, scale): (u32, u32)) -> Option<FrameRate> {
    let steps = || ticks.windows(2).map(|pair| pair[1] - pair[0]);
    let first = steps().next()?;
    let alike = steps().filter(|step| *step == first).count();
    let duration = u32::try_from(first).ok()?.checked_mul(scale)?;
    (alike * 10 >= (ticks.len() - 1) * 9).then(|| FrameRate::new(rate, duration))?
}
