//! The index of an MP4 file out of its sample tables (ISO/IEC 14496-12, clause 8).

use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};

use mp4_atom::{
    Atom, Avcc, Codec, Encode, FourCC, Header, Hvcc, Moof, Moov, Mp4a, ReadFrom, Stbl, StszSamples, Trak,
};

use super::index::{MAX_SAMPLES, RawSample, RawTrack};
use super::{Contents, damaged};
use crate::{AudioCodec, AudioConfig, FileFault, FrameRate, PictureCodec, VideoConfig, aac};

/// The largest `moov` box that is read.
const MAX_MOOV_BYTES: usize = 256 << 20;

/// Reads the index of an MP4 file.
pub(super) fn read(file: &File, codecs: &[PictureCodec]) -> Result<Contents, FileFault> {
    let file_length = file.metadata()?.len();
    let moov = moov(file)?;
    if moov.mvex.is_some() {
        return Err(FRAGMENTED);
    }
    let mut contents = Contents::default();
    for trak in &moov.trak {
        let handler: [u8; 4] = trak.mdia.hdlr.handler.into();
        let frames = || frames(trak, moov.mvhd.timescale, file_length);
        match &handler {
            b"vide" if contents.video.is_none() => {
                contents.video = Some((video_config(trak, codecs)?, frames()?));
            }
            b"soun" if contents.audio.is_none() => contents.audio = Some((audio_config(trak)?, frames()?)),
            _ => {}
        }
    }
    Ok(contents)
}

const FRAGMENTED: FileFault = FileFault::Layout { layout: "fragmented MP4", remedy: "-c copy" };

/// The movie box, wherever it is.
fn moov(file: &File) -> Result<Moov, FileFault> {
    let mut reader = BufReader::new(file);
    reader.seek(SeekFrom::Start(0))?;
    while let Some(header) =
        Option::<Header>::read_from(&mut reader).map_err(|error| damaged(error.to_string()))?
    {
        match header.kind {
            Moov::KIND => {
                let size = header.size.unwrap_or(usize::MAX);
                if size > MAX_MOOV_BYTES {
                    return Err(FileFault::TooLarge(format!("a moov box of {size} bytes")));
                }
                return mp4_atom::ReadAtom::read_atom(&header, &mut reader)
                    .map_err(|error| damaged(error.to_string()));
            }
            Moof::KIND => return Err(FRAGMENTED),
            _ => {}
        }
        let Some(size) = header.size.and_then(|size| i64::try_from(size).ok()) else { break };
        reader.seek_relative(size)?;
    }
    Err(damaged("no moov box; was its recording cut off?"))
}

/// The frames of a track.
fn frames(trak: &Trak, movie_timescale: u32, file_length: u64) -> Result<RawTrack, FileFault> {
    let timescale = trak.mdia.mdhd.timescale;
    if timescale == 0 || movie_timescale == 0 {
        return Err(damaged("a timescale of 0"));
    }
    let nanos = |ticks: i64| {
        i64::try_from(i128::from(ticks) * 1_000_000_000 / i128::from(timescale))
            .map_err(|_| damaged("a time beyond 292 years"))
    };
    let stbl = &trak.mdia.minf.stbl;
    let places = places(stbl, file_length)?;
    let mut decode_deltas = stbl
        .stts
        .entries
        .iter()
        .flat_map(|entry| std::iter::repeat_n(entry.sample_delta, entry.sample_count as usize));
    let mut offsets = stbl
        .ctts
        .iter()
        .flat_map(|ctts| &ctts.entries)
        .flat_map(|entry| std::iter::repeat_n(entry.sample_offset, entry.sample_count as usize));
    let mut sync_samples =
        stbl.stss.as_ref().map(|stss| stss.entries.iter().map(|number| number.wrapping_sub(1)).peekable());
    let mut ticks = 0i64;
    let shift = edit_shift(trak, timescale, movie_timescale);
    let mut samples = Vec::with_capacity(places.len());
    for (number, (offset, length)) in (0..).zip(places) {
        let keyframe = sync_samples.as_mut().is_none_or(|sync| {
            while sync.next_if(|&sync| sync < number).is_some() {}
            sync.peek() == Some(&number)
        });
        samples.push(RawSample {
            offset,
            length,
            keyframe,
            decode_nanos: nanos(ticks.saturating_add(shift))?,
            composition_nanos: nanos(offsets.next().unwrap_or(0))?,
        });
        let delta = decode_deltas.next().ok_or_else(|| damaged("a frame without a time"))?;
        ticks = ticks.saturating_add(delta.into());
    }
    let end_nanos = nanos(ticks.saturating_add(shift))?;
    Ok(RawTrack { samples, end_nanos })
}

/// By how many ticks an edit list moves a track (clause 8.6.6): an empty edit delays it, the start of
/// the first other edit cuts it. What is cut stays in, before time zero, as decoders need it.
fn edit_shift(trak: &Trak, timescale: u32, movie_timescale: u32) -> i64 {
    let mut shift = 0i64;
    for edit in trak.edts.iter().filter_map(|edts| edts.elst.as_ref()).flat_map(|elst| &elst.entries) {
        match edit.media_time {
            None => {
                let ticks =
                    u128::from(edit.segment_duration) * u128::from(timescale) / u128::from(movie_timescale);
                shift = shift.saturating_add(i64::try_from(ticks).unwrap_or(i64::MAX));
            }
            Some(start) => return shift.saturating_sub(i64::try_from(start).unwrap_or(i64::MAX)),
        }
    }
    shift
}

/// Where the samples of a track are, and how long (clauses 8.7.3 to 8.7.5).
fn places(stbl: &Stbl, file_length: u64) -> Result<Vec<(u64, u32)>, FileFault> {
    let count = match &stbl.stsz.samples {
        StszSamples::Identical { count, .. } => *count as usize,
        StszSamples::Different { sizes } => sizes.len(),
    };
    if count > MAX_SAMPLES {
        return Err(FileFault::TooLarge(format!("a track of {count} frames")));
    }
    let length = |number: usize| match &stbl.stsz.samples {
        StszSamples::Identical { size, .. } => *size,
        StszSamples::Different { sizes } => sizes[number],
    };
    let chunks: Vec<u64> = match (&stbl.stco, &stbl.co64) {
        (_, Some(co64)) => co64.entries.clone(),
        (Some(stco), None) => stco.entries.iter().map(|&offset| offset.into()).collect(),
        (None, None) => return Err(damaged("neither stco nor co64")),
    };
    let mut runs = stbl.stsc.entries.iter().peekable();
    let mut run = None;
    let mut places = Vec::with_capacity(count);
    for (chunk, &chunk_offset) in (1u32..).zip(&chunks) {
        if let Some(next) = runs.next_if(|next| next.first_chunk <= chunk) {
            if next.sample_description_index > 1 {
                return Err(FileFault::Layout {
                    layout: "more than one sample description",
                    remedy: "-c:v libx264 -c:a aac",
                });
            }
            run = Some(next);
        }
        let samples = run.ok_or_else(|| damaged("a chunk without frames"))?.samples_per_chunk;
        let mut offset = chunk_offset;
        for _ in 0..samples {
            if places.len() == count {
                return Ok(places);
            }
            let length = length(places.len());
            let end = offset.checked_add(length.into()).filter(|&end| end <= file_length);
            let number = places.len() + 1;
            places.push((offset, length));
            offset = end.ok_or_else(|| damaged(format!("frame {number} lies beyond the end")))?;
        }
    }
    if places.len() < count {
        return Err(damaged(format!("{count} frames, of which {} have a place", places.len())));
    }
    Ok(places)
}

fn video_config(trak: &Trak, codecs: &[PictureCodec]) -> Result<VideoConfig, FileFault> {
    let entry = trak.mdia.minf.stbl.stsd.codecs.first();
    let of_h264 = |avcc: &Avcc| Ok((PictureCodec::H264, avcc.length_size, body(avcc)?));
    let of_h265 = |hvcc: &Hvcc| Ok((PictureCodec::H265, hvcc.length_size_minus_one + 1, body(hvcc)?));
    let (visual, read) = match entry {
        Some(Codec::Avc1(avc1)) => (&avc1.visual, of_h264(&avc1.avcc)),
        Some(Codec::Avc3(avc3)) => (&avc3.visual, of_h264(&avc3.avcc)),
        Some(Codec::Hvc1(hvc1)) => (&hvc1.visual, of_h265(&hvc1.hvcc)),
        Some(Codec::Hev1(hev1)) => (&hev1.visual, of_h265(&hev1.hvcc)),
        Some(Codec::Av01(av01)) => {
            (&av01.visual, body(&av01.av1c).map(|body| (PictureCodec::Av1, UNIT_LENGTH, body)))
        }
        Some(Codec::Vp08(vp08)) => (&vp08.visual, Ok((PictureCodec::Vp8, UNIT_LENGTH, Vec::new()))),
        Some(Codec::Vp09(vp09)) => (&vp09.visual, Ok((PictureCodec::Vp9, UNIT_LENGTH, Vec::new()))),
        other => return Err(unsupported("video", other, "-c:v libx264")),
    };
    let (codec, unit_length, decoder_configuration) = read?;
    if !codecs.contains(&codec) {
        return Err(unsupported("video", entry, "-c:v libx264"));
    }
    if unit_length != UNIT_LENGTH {
        return Err(FileFault::Layout {
            layout: "a NAL unit length of other than 4 bytes",
            remedy: "-c:v libx264",
        });
    }
    Ok(VideoConfig {
        codec,
        decoder_configuration,
        resolution: Some((visual.width, visual.height)),
        frame_rate: frame_rate(trak),
        bit_rate: None,
    })
}

/// Bytes of the length in front of a NAL unit.
const UNIT_LENGTH: u8 = 4;

/// A box without its header.
fn body(of: &impl Atom) -> Result<Vec<u8>, FileFault> {
    let mut body = Vec::new();
    of.encode_body(&mut body).map_err(|error| damaged(error.to_string()))?;
    Ok(body)
}

fn audio_config(trak: &Trak) -> Result<AudioConfig, FileFault> {
    let codec = trak.mdia.minf.stbl.stsd.codecs.first();
    let Some(Codec::Mp4a(Mp4a { esds, .. })) = codec else {
        return Err(unsupported("audio", codec, "-c:a aac"));
    };
    let decoder = &esds.es_desc.dec_config;
    // objectTypeIndication (ISO/IEC 14496-1, table 5): AAC by MPEG-4 and by MPEG-2.
    if !matches!(decoder.object_type_indication, 0x40 | 0x66..=0x68) {
        return Err(FileFault::Codec {
            codec: format!("audio codec mp4a.{:02x}", decoder.object_type_indication),
            remedy: "-c:a aac",
        });
    }
    let specific = decoder.dec_specific.as_ref().ok_or_else(|| damaged("AAC without its configuration"))?;
    // The configuration is what decoders go by; the fields of the sample entry are often templates.
    let (sample_rate, channels) = aac::parse_specific_config(&specific.raw)
        .ok_or_else(|| damaged("an AudioSpecificConfig that cannot be read"))?;
    Ok(AudioConfig {
        codec: AudioCodec::Aac,
        specific_config: specific.raw.clone(),
        sample_rate,
        channels,
        bit_rate: None,
    })
}

fn unsupported(track: &str, codec: Option<&Codec>, remedy: &'static str) -> FileFault {
    let name = match codec {
        None => "none".to_owned(),
        Some(Codec::Unknown(name, _)) => name.to_string(),
        Some(known) => {
            // A sample entry is a box; its name stands behind its length.
            let mut bytes = Vec::new();
            let name = known.encode(&mut bytes).ok().and_then(|()| bytes.get(4..8)?.try_into().ok());
            name.map_or_else(|| "unknown".to_owned(), |name: [u8; 4]| FourCC::from(name).to_string())
        }
    };
    let codec = format!("{track} codec {name}");
    FileFault::Codec { codec, remedy }
}

/// The rate of the commonest frame duration, if nine in ten frames have it.
fn frame_rate(trak: &Trak) -> Option<FrameRate> {
    let entries = &trak.mdia.minf.stbl.stts.entries;
    let total: u64 = entries.iter().map(|entry| u64::from(entry.sample_count)).sum();
    let commonest = entries.iter().max_by_key(|entry| entry.sample_count)?;
    (u64::from(commonest.sample_count) * 10 >= total * 9)
        .then(|| FrameRate::new(trak.mdia.mdhd.timescale, commonest.sample_delta))?
}
