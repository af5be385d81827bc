//! One GOP, coded once, and how its bytes are dealt out among the frames.

use std::time::Duration;

use super::audio::AudioClip;
use super::{ClipSettings, SyntheticError, VideoSettings};
use crate::h264::level::{Demand, level_idc};
use crate::h264::parameter_sets::{Sequence, decoder_configuration};
use crate::h264::picture::{Kind, MIN_MACROBLOCKS, Picture, Scene, Weight};
use crate::rate::{bytes_in, rate_of_bytes};
use crate::stamp::{ClockReading, Stamp};
use crate::{AudioConfig, FrameRate, PictureCodec, VideoConfig};

/// A prepared GOP with its sound: immutable, so that any number of sources and threads share one.
#[derive(Debug)]
pub struct Clip {
    config: VideoConfig,
    frame_rate: FrameRate,
    gop_frames: u32,
    /// The access units, length prefixed, one behind the other.
    pictures: Vec<u8>,
    /// Where each access unit ends in `pictures`.
    ends: Vec<usize>,
    audio: Option<AudioClip>,
}

impl Clip {
    /// Codes a clip; takes some milliseconds, and as much memory as a GOP has bytes.
    ///
    /// # Errors
    ///
    /// When the settings contradict each other or H.264 and AAC; each error says what would be possible.
    pub fn prepare(settings: &ClipSettings) -> Result<Self, SyntheticError> {
        let audio = settings.audio.as_ref().map(AudioClip::new).transpose()?;
        let video = &settings.video;
        let coder = Coder::new(video, settings.seed)?;
        let (columns, rows) = (coder.columns, coder.rows);
        let (pictures, ends) = coder.code()?;
        let largest = (0..ends.len()).map(|index| range(&ends, index).len()).max().unwrap_or(0);
        let rate = video.frame_rate;
        let macroblocks = u64::from(columns) * u64::from(rows);
        let level_idc = level_idc(Demand {
            columns,
            rows,
            macroblocks_per_second: (macroblocks * u64::from(rate.numerator()))
                .div_ceil(rate.denominator().into()),
            bits_per_second: video.bit_rate.whole_bps(),
            picture_bits: largest as u64 * 8,
        })
        .ok_or(SyntheticError::BeyondLevels)?;
        let VideoSettings { width, height, frame_rate, gop_frames, bit_rate, .. } = *video;
        let sequence = Sequence { width, height, frame_rate, level_idc };
        let config = VideoConfig {
            codec: PictureCodec::H264,
            decoder_configuration: decoder_configuration(&sequence),
            resolution: Some((width, height)),
            frame_rate: Some(frame_rate),
            bit_rate: Some(bit_rate),
        };
        Ok(Self { config, frame_rate, gop_frames, pictures, ends, audio })
    }

    /// What a receiver must know of the pictures.
    pub fn video_config(&self) -> &VideoConfig {
        &self.config
    }

    /// What a receiver must know of the sound.
    pub fn audio_config(&self) -> Option<&AudioConfig> {
        self.audio.as_ref().map(|audio| &audio.config)
    }

    /// The access unit of picture `index`, from 0, length prefixed; the clip repeats. If stamped, its stamp
    /// is all zeros, to be written over by [`Stamp::put`].
    pub fn picture(&self, index: u64) -> &[u8] {
        &self.pictures[range(&self.ends, (index % self.ends.len() as u64) as usize)]
    }

    /// Whether picture `index` is an IDR picture.
    pub fn is_keyframe(&self, index: u64) -> bool {
        index.is_multiple_of(self.gop_frames.into())
    }

    /// When picture `index` is due.
    pub fn time_of(&self, index: u64) -> Duration {
        self.frame_rate.time_of(index)
    }

    pub(super) fn audio(&self) -> Option<&AudioClip> {
        self.audio.as_ref()
    }
}

/// The largest GOP that is kept.
const MAX_GOP_BYTES: u64 = 512 << 20;

/// The block moves no further between two pictures: every level allows 2,048 pixels (annex A.3.1).
const MAX_STEP: u32 = 1024;

fn range(ends: &[usize], index: usize) -> std::ops::Range<usize> {
    let start = if index == 0 { 0 } else { ends[index - 1] };
    start..ends[index]
}

/// Codes the pictures of one clip.
struct Coder<'a> {
    settings: &'a VideoSettings,
    columns: u32,
    rows: u32,
    scene: Scene,
    /// The most that noise can add to a picture.
    noise_bytes: u64,
    /// Two for a GOP of one, because neighbouring IDR pictures need different ids (clause 7.4.3).
    frames: u32,
    /// What the clip is to weigh, in bytes.
    budget: u64,
}

impl<'a> Coder<'a> {
    fn new(settings: &'a VideoSettings, seed: u64) -> Result<Self, SyntheticError> {
        let VideoSettings { width, height, gop_frames, keyframe_ratio, frame_rate, bit_rate, .. } = *settings;
        let (columns, rows) = (u32::from(width).div_ceil(16), u32::from(height).div_ceil(16));
        if columns.min(rows) < MIN_MACROBLOCKS || width % 2 + height % 2 > 0 {
            return Err(SyntheticError::Resolution { width, height });
        }
        let scene = Scene::new(columns, rows, seed);
        let noise_bytes = scene.noise_bytes().ok_or(SyntheticError::Resolution { width, height })?;
        if gop_frames == 0 {
            return Err(SyntheticError::EmptyGop);
        }
        if !(1.0..=1e6).contains(&keyframe_ratio) {
            return Err(SyntheticError::KeyframeRatio(keyframe_ratio));
        }
        let frames = gop_frames.max(2);
        let seconds = u64::from(frames) * u64::from(frame_rate.denominator());
        let budget = bytes_in(bit_rate, seconds, frame_rate.numerator().into());
        let bytes = budget.max(u64::from(frames) * MIN_PICTURE_BYTES);
        if bytes > MAX_GOP_BYTES {
            return Err(SyntheticError::GopTooLarge { bytes, limit: MAX_GOP_BYTES });
        }
        Ok(Self { settings, columns, rows, scene, noise_bytes, frames, budget })
    }

    /// The access units, and where each ends.
    fn code(mut self) -> Result<(Vec<u8>, Vec<usize>), SyntheticError> {
        let bare = self.bare_sizes();
        let least: u64 = bare.iter().sum();
        self.check_rate(least)?;
        let mut pictures = Vec::with_capacity(self.budget as usize + 1024);
        let mut ends = Vec::with_capacity(bare.len());
        let mut bytes_left = self.budget;
        let mut bare_left = least;
        let mut shares_left: f64 = (0..self.frames).map(|index| self.share(index)).sum();
        for (index, bare) in (0..).zip(bare) {
            // The share of what is left, so that one frame's rounding is made good by the next; but never
            // so much that the smallest possible pictures after it do not fit.
            let share = self.share(index);
            bare_left -= bare;
            let target = (bytes_left as f64 * share / shares_left) as u64;
            let target = target.min(bytes_left.saturating_sub(bare_left));
            let mut picture = self.picture(index);
            let extra = target.saturating_sub(bare);
            picture.weight = Weight::of_bytes(picture.kind, extra.min(self.noise_bytes));
            let start = pictures.len();
            self.append(&picture, &mut pictures);
            ends.push(pictures.len());
            bytes_left = bytes_left.saturating_sub((pictures.len() - start) as u64);
            shares_left -= share;
        }
        Ok((pictures, ends))
    }

    /// What every picture weighs without noise, in bytes.
    fn bare_sizes(&mut self) -> Vec<u64> {
        let mut access_unit = Vec::new();
        (0..self.frames)
            .map(|index| {
                access_unit.clear();
                let picture = self.picture(index);
                self.append(&picture, &mut access_unit);
                access_unit.len() as u64
            })
            .collect()
    }

    fn check_rate(&self, least: u64) -> Result<(), SyntheticError> {
        let asked = self.settings.bit_rate;
        let rate = self.settings.frame_rate;
        let seconds = u64::from(self.frames) * u64::from(rate.denominator());
        let rate_of = |bytes| rate_of_bytes(bytes, seconds, rate.numerator().into());
        if self.budget < least {
            return Err(SyntheticError::VideoRateTooLow { asked, minimum: rate_of(least) });
        }
        let most = least + u64::from(self.frames) * self.noise_bytes;
        if self.budget > most {
            return Err(SyntheticError::VideoRateTooHigh { asked, maximum: rate_of(most) });
        }
        Ok(())
    }

    /// Picture `index` without noise.
    fn picture(&self, index: u32) -> Picture {
        let index_in_gop = index % self.settings.gop_frames;
        let kind = match index_in_gop {
            0 => Kind::Idr { idr_pic_id: index / self.settings.gop_frames % 2 },
            index => Kind::Predicted { index, previous_block: self.block(index - 1) },
        };
        Picture { kind, block: self.block(index_in_gop), weight: Weight::default() }
    }

    /// Where the block is: it crosses the lane once a GOP.
    fn block(&self, index_in_gop: u32) -> u32 {
        let gop_frames = u64::from(self.settings.gop_frames);
        let travel = u64::from(self.scene.block_travel()).min(gop_frames * u64::from(MAX_STEP));
        (travel * u64::from(index_in_gop) / gop_frames) as u32
    }

    /// The size of picture `index` relative to a P picture.
    fn share(&self, index: u32) -> f64 {
        if index.is_multiple_of(self.settings.gop_frames) { self.settings.keyframe_ratio } else { 1.0 }
    }

    /// Appends a picture as an access unit, with room for a stamp.
    fn append(&mut self, picture: &Picture, out: &mut Vec<u8>) {
        if self.settings.stamped {
            let nal = Stamp { captured: ClockReading::ZERO, sequence_number: 0 }.to_nal();
            out.extend_from_slice(&(nal.len() as u32).to_be_bytes());
            out.extend_from_slice(&nal);
        }
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        self.scene.code(picture, out);
        let length = (out.len() - at - 4) as u32;
        out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }
}

/// No picture is smaller: length, headers, and a skipped run.
const MIN_PICTURE_BYTES: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn settings() -> impl Strategy<Value = ClipSettings> {
        let size = (64u16..=200, 48u16..=200);
        let rate = prop_oneof![Just((25, 1)), Just((24000, 1001)), Just((30000, 1001)), Just((60, 1))];
        (size, rate, 1u32..=40, 20u64..=5000, 1.0..20.0, any::<bool>(), any::<u64>()).prop_map(
            |((width, height), (frames, seconds), gop_frames, kbps, keyframe_ratio, stamped, seed)| {
                ClipSettings {
                    video: VideoSettings {
                        width: width * 2,
                        height: height * 2,
                        frame_rate: FrameRate::new(frames, seconds).unwrap(),
                        gop_frames,
                        bit_rate: weir_metrics::BitRate::from_kbps(kbps),
                        keyframe_ratio,
                        stamped,
                    },
                    audio: None,
                    seed,
                }
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn a_gop_weighs_what_was_asked_or_the_error_says_what_can_be(mut settings in settings()) {
            match Clip::prepare(&settings) {
                Ok(_) => {}
                Err(SyntheticError::VideoRateTooLow { minimum, .. }) => settings.video.bit_rate = minimum,
                Err(SyntheticError::VideoRateTooHigh { maximum, .. }) => settings.video.bit_rate = maximum,
                Err(error) => return Err(TestCaseError::fail(error.to_string())),
            }
            let clip = Clip::prepare(&settings).unwrap();
            let rate = settings.video.frame_rate;
            let frames = clip.ends.len() as u64;
            let asked = bytes_in(settings.video.bit_rate,
                frames * u64::from(rate.denominator()),
                rate.numerator().into(),
            );
            let made = clip.pictures.len() as u64;
            // One grain is 14 bytes; a picture of noise almost all over saves some bits on its bars.
            prop_assert!(made <= asked + 2 && asked <= made + 16 + asked / 200, "{made} bytes instead of {asked}");
        }
    }
}
