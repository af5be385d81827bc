//! Units as fragmented MPEG-4 (ISO/IEC 14496-12): an initialization section, and a fragment a part.

use super::iso_box::Boxes;
use super::unit::{Sound, Tracks, Unit};
use weir_media::{PictureCodec, aac_format};

/// Ticks of video a second.
const VIDEO_TIMESCALE: u32 = 90_000;
/// Samples of an AAC frame (ISO/IEC 14496-3, section 4.5.1.1: frameLengthFlag 0).
const AAC_FRAME: u32 = 1_024;
/// Samples of an Opus packet of 20 ms at 48 kHz, as browsers send them.
const OPUS_FRAME: u32 = 960;
/// Samples by which the time of sound may differ from its timestamps, which are of whole milliseconds: a twentieth of a second.
const MOST_DRIFT_SHARE: u64 = 20;
/// Decoding times count from here, so that none is negative: seconds.
const FIRST_DECODING: i64 = 10;

/// sample_flags (section 8.8.3.1): depends on no other.
const SYNC_SAMPLE: u32 = 0x0200_0000;
/// Depends on others, and is no sync sample.
const OTHER_SAMPLE: u32 = 0x0101_0000;

/// Writes the units of one publication, as long as their tracks are the same.
#[derive(Debug)]
pub(super) struct FragmentWriter {
    tracks: Tracks,
    /// The decoding time of the first unit, in milliseconds.
    first: i64,
    sequence_number: u32,
    video: Samples,
    audio: Samples,
    sound: Option<SoundTrack>,
}

#[derive(Clone, Copy, Debug)]
struct SoundTrack {
    rate: u32,
    channels: u16,
    /// Samples of a frame.
    frame: u32,
    /// The decoding time of the next frame.
    next: Option<u64>,
}

/// The samples of one track in the fragment under way.
#[derive(Debug, Default)]
struct Samples {
    entries: Vec<Sample>,
    payload: Vec<u8>,
    /// Of the sample before the first of the next fragment.
    last_duration: u32,
}

#[derive(Debug)]
struct Sample {
    decoding: u64,
    size: u32,
    flags: u32,
    composition: i32,
}

impl FragmentWriter {
    pub(super) fn new(tracks: &Tracks, first: i64) -> Self {
        let sound = tracks.audio.as_ref().and_then(|sound| match sound {
            Sound::Aac(config) => aac_format(config).map(|format| SoundTrack {
                rate: format.sample_rate,
                channels: format.channels.unwrap_or(2).into(),
                frame: AAC_FRAME,
                next: None,
            }),
            // RFC 7845, section 5.1: the count of channels is byte 9.
            Sound::Opus(head) => Some(SoundTrack {
                rate: 48_000,
                channels: head.get(9).copied().unwrap_or(2).into(),
                frame: OPUS_FRAME,
                next: None,
            }),
        });
        let (video, audio) = (Samples::default(), Samples::default());
        Self { tracks: tracks.clone(), first, sequence_number: 0, video, audio, sound }
    }

    pub(super) fn write(&mut self, unit: &Unit<'_>) {
        let ticks = |time: i64, scale: u32| {
            let since = (time - self.first + FIRST_DECODING * 1_000).max(0);
            (since as u64 * u64::from(scale)) / 1_000
        };
        let size = unit.bytes.len() as u32;
        if unit.is_video {
            if self.tracks.video.is_none() {
                return;
            }
            let decoding = ticks(unit.decoding, VIDEO_TIMESCALE);
            let composition = (unit.presentation - unit.decoding) as i32 * 90;
            let flags = if unit.keyframe { SYNC_SAMPLE } else { OTHER_SAMPLE };
            self.video.push(Sample { decoding, size, flags, composition }, unit.bytes);
        } else if let Some(sound) = &mut self.sound {
            // Timestamps of whole milliseconds would leave gaps and overlaps of a few samples between frames.
            let exact = ticks(unit.decoding, sound.rate);
            let most = u64::from(sound.rate) / MOST_DRIFT_SHARE;
            let decoding = sound.next.filter(|next| next.abs_diff(exact) <= most).unwrap_or(exact);
            sound.next = Some(decoding + u64::from(sound.frame));
            self.audio.push(Sample { decoding, size, flags: SYNC_SAMPLE, composition: 0 }, unit.bytes);
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.video.payload.len() + self.audio.payload.len()
    }

    /// What was written since the last time, as a fragment; the last picture is shown until `end`, in milliseconds.
    pub(super) fn take(&mut self, end: i64) -> Vec<u8> {
        self.sequence_number += 1;
        let since = (end - self.first + FIRST_DECODING * 1_000).max(0) as u64;
        let end = since * u64::from(VIDEO_TIMESCALE) / 1_000;
        let video = std::mem::take(&mut self.video);
        let audio = std::mem::take(&mut self.audio);
        let audio_end = self.sound.and_then(|sound| sound.next);
        let mut offsets = Vec::new();
        let mut boxes = Boxes::default();
        let last = [video.last_duration, audio.last_duration];
        let ends = [Some(end), audio_end];
        boxes.plain(b"moof", |moof| {
            moof.full(b"mfhd", 0, 0, |mfhd| mfhd.word(self.sequence_number));
            for (id, samples, end) in [(1, &video, ends[0]), (2, &audio, ends[1])] {
                if !samples.entries.is_empty() {
                    moof.plain(b"traf", |traf| offsets.push(samples.traf(id, end, traf)));
                }
            }
        });
        // data_offset counts from the first byte of the moof (default-base-is-moof); 8 bytes are the head of the mdat.
        let mut at = boxes.0.len() + 8;
        let tracks = [&video, &audio].into_iter().filter(|samples| !samples.entries.is_empty());
        for (offset, samples) in offsets.into_iter().zip(tracks) {
            boxes.put(offset, at as u32);
            at += samples.payload.len();
        }
        boxes.plain(b"mdat", |mdat| {
            mdat.bytes(&video.payload);
            mdat.bytes(&audio.payload);
        });
        (self.video.last_duration, self.audio.last_duration) =
            (video.end_duration(ends[0]).unwrap_or(last[0]), audio.end_duration(ends[1]).unwrap_or(last[1]));
        boxes.0
    }

    /// The Media Initialization Section.
    pub(super) fn map(&self) -> Vec<u8> {
        let mut boxes = Boxes::default();
        boxes.plain(b"ftyp", |ftyp| {
            ftyp.bytes(b"iso6");
            ftyp.word(0);
            ftyp.bytes(b"iso6cmfcmp41");
        });
        let has_video = self.tracks.video.is_some();
        boxes.plain(b"moov", |moov| {
            moov.full(b"mvhd", 0, 0, |mvhd| {
                mvhd.zeros(8);
                mvhd.word(1_000);
                mvhd.word(0);
                mvhd.word(0x1_0000); // rate
                mvhd.short(0x100); // volume
                mvhd.zeros(10);
                mvhd.matrix();
                mvhd.zeros(24);
                mvhd.word(3); // next_track_ID
            });
            if let Some(record) = &self.tracks.video {
                let format = PictureCodec::H264.format_of_record(record);
                let (width, height) = format.map_or((0, 0), |format| format.size);
                track(moov, 1, b"vide", VIDEO_TIMESCALE, (width, height), |stsd| {
                    stsd.plain(b"avc1", |avc1| {
                        avc1.zeros(6);
                        avc1.short(1); // data_reference_index
                        avc1.zeros(16);
                        avc1.short(width as u16);
                        avc1.short(height as u16);
                        avc1.word(0x48_0000); // 72 dpi
                        avc1.word(0x48_0000);
                        avc1.word(0);
                        avc1.short(1); // frame_count
                        avc1.zeros(32);
                        avc1.short(24); // depth
                        avc1.short(0xFFFF);
                        avc1.plain(b"avcC", |avc_c| avc_c.bytes(record));
                    });
                });
            }
            if let (Some(sound), Some(config)) = (self.sound, &self.tracks.audio) {
                track(moov, 2, b"soun", sound.rate, (0, 0), |stsd| sound_entry(stsd, sound, config));
            }
            moov.plain(b"mvex", |mvex| {
                for (id, is_there) in [(1, has_video), (2, self.sound.is_some())] {
                    if is_there {
                        mvex.full(b"trex", 0, 0, |trex| {
                            trex.word(id);
                            trex.word(1); // default_sample_description_index
                            trex.zeros(12);
                        });
                    }
                }
            });
        });
        boxes.0
    }
}

impl Samples {
    fn push(&mut self, sample: Sample, bytes: &[u8]) {
        self.entries.push(sample);
        self.payload.extend_from_slice(bytes);
    }

    /// How long the last sample lasts, if it ends at `end`.
    fn end_duration(&self, end: Option<u64>) -> Option<u32> {
        let last = self.entries.last()?;
        Some(end?.saturating_sub(last.decoding).min(u32::MAX.into()) as u32)
    }

    /// Appends the boxes of a track's fragment (sections 8.8.7, 8.8.8 and 8.8.12). Where its data_offset is to be put.
    fn traf(&self, id: u32, end: Option<u64>, traf: &mut Boxes) -> usize {
        const DEFAULT_BASE_IS_MOOF: u32 = 0x02_0000;
        // data-offset, sample-duration, sample-size, sample-flags and sample-composition-time-offsets are present.
        const ALL: u32 = 0x0F01;
        let mut offset = 0;
        traf.full(b"tfhd", 0, DEFAULT_BASE_IS_MOOF, |tfhd| tfhd.word(id));
        traf.full(b"tfdt", 1, 0, |tfdt| tfdt.long(self.entries.first().map_or(0, |sample| sample.decoding)));
        traf.full(b"trun", 1, ALL, |trun| {
            trun.word(self.entries.len() as u32);
            offset = trun.0.len();
            trun.word(0);
            for (place, sample) in self.entries.iter().enumerate() {
                let duration = match self.entries.get(place + 1) {
                    Some(next) => next.decoding.saturating_sub(sample.decoding).min(u32::MAX.into()) as u32,
                    None => self.end_duration(end).unwrap_or(self.last_duration),
                };
                trun.word(duration);
                trun.word(sample.size);
                trun.word(sample.flags);
                trun.word(sample.composition as u32);
            }
        });
        offset
    }
}

/// Appends a track (section 8.3).
fn track(
    moov: &mut Boxes,
    id: u32,
    handler: &[u8; 4],
    timescale: u32,
    (width, height): (u32, u32),
    entry: impl FnOnce(&mut Boxes),
) {
    moov.plain(b"trak", |trak| {
        // Enabled, and in the presentation.
        trak.full(b"tkhd", 0, 3, |tkhd| {
            tkhd.zeros(8);
            tkhd.word(id);
            tkhd.zeros(8);
            tkhd.zeros(8);
            tkhd.zeros(4); // layer, alternate_group
            tkhd.short(if handler == b"soun" { 0x100 } else { 0 }); // volume
            tkhd.zeros(2);
            tkhd.matrix();
            tkhd.word(width << 16);
            tkhd.word(height << 16);
        });
        trak.plain(b"mdia", |mdia| {
            mdia.full(b"mdhd", 0, 0, |mdhd| {
                mdhd.zeros(8);
                mdhd.word(timescale);
                mdhd.word(0);
                mdhd.short(0x55C4); // und
                mdhd.short(0);
            });
            mdia.full(b"hdlr", 0, 0, |hdlr| {
                hdlr.word(0);
                hdlr.bytes(handler);
                hdlr.zeros(12);
                hdlr.bytes(b"weir\0");
            });
            mdia.plain(b"minf", |minf| {
                if handler == b"vide" {
                    minf.full(b"vmhd", 0, 1, |vmhd| vmhd.zeros(8));
                } else {
                    minf.full(b"smhd", 0, 0, |smhd| smhd.zeros(4));
                }
                minf.plain(b"dinf", |dinf| {
                    dinf.full(b"dref", 0, 0, |dref| {
                        dref.word(1);
                        // The media are in this file.
                        dref.full(b"url ", 0, 1, |_| {});
                    });
                });
                minf.plain(b"stbl", |stbl| {
                    stbl.full(b"stsd", 0, 0, |stsd| {
                        stsd.word(1);
                        entry(stsd);
                    });
                    stbl.full(b"stts", 0, 0, |stts| stts.word(0));
                    stbl.full(b"stsc", 0, 0, |stsc| stsc.word(0));
                    stbl.full(b"stsz", 0, 0, |stsz| stsz.zeros(8));
                    stbl.full(b"stco", 0, 0, |stco| stco.word(0));
                });
            });
        });
    });
}

/// Appends the sample entry of sound (section 12.2.3).
fn sound_entry(stsd: &mut Boxes, sound: SoundTrack, config: &Sound) {
    let kind = if matches!(config, Sound::Aac(_)) { b"mp4a" } else { b"Opus" };
    stsd.plain(kind, |entry| {
        entry.zeros(6);
        entry.short(1); // data_reference_index
        entry.zeros(8);
        entry.short(sound.channels);
        entry.short(16);
        entry.zeros(4);
        entry.word(if sound.rate <= 0xFFFF { sound.rate << 16 } else { 0 });
        match config {
            // ISO/IEC 14496-14, section 5.6; ISO/IEC 14496-1, section 7.2.6.
            Sound::Aac(config) => entry.full(b"esds", 0, 0, |esds| {
                esds.descriptor(3, |es| {
                    es.short(2); // ES_ID
                    es.zeros(1);
                    es.descriptor(4, |decoder| {
                        // MPEG-4 audio, an audio stream.
                        decoder.bytes(&[0x40, 0x15, 0, 0, 0]);
                        decoder.zeros(8);
                        // No profile of AAC that is in use has more.
                        decoder.descriptor(5, |specific| specific.bytes(&config[..config.len().min(64)]));
                    });
                    es.descriptor(6, |sl| sl.bytes(&[2]));
                });
            }),
            // "Encapsulation of Opus in ISO Base Media File Format", section 4.3.2: the identification header of RFC 7845 without
            // its name, version 0, in network byte order.
            Sound::Opus(_) => entry.plain(b"dOps", |d_ops| {
                d_ops.bytes(&[0, sound.channels as u8]);
                d_ops.short(0);
                d_ops.word(48_000);
                d_ops.short(0);
                d_ops.bytes(&[0]);
            }),
        }
    });
}
