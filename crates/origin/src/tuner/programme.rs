//! What a service plays, prepared once, and one playing of it, packet by packet without end.

use super::material::{Material, MaterialError};
use super::service::Service;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use weir_media::{
    AudioSettings, Clip, ClipSettings, Frame, Source, Synthetic, Track, VideoSettings, append_adts,
    append_annex_b,
};
use weir_metrics::BitRate;
use weir_ts::TICKS_PER_SECOND;
use weir_ts::mux::{AccessUnit, Muxer};
use weir_ts::packet::PACKET_LENGTH;
use weir_ts::remux::Loop;

/// Bytes of a packet.
pub(super) const PACKET: usize = PACKET_LENGTH;
/// From this rate on, the pictures are of 1280x720 and the sound has its usual rate.
const HIGH_RATE: u64 = 2_000_000;
/// Decoding times count from here, so that clock references before them are not negative; 90 kHz ticks.
const FIRST_DECODING: u64 = 90_000;

/// What a service plays: immutable, and shared by all who play it.
#[derive(Clone, Debug)]
pub(crate) enum Programme {
    Made { clip: Arc<Clip>, settings: weir_ts::mux::MuxSettings },
    Stored(Arc<Loop>),
}

/// Clips that were made, by rate: services of one rate share theirs.
pub(super) type Clips = HashMap<u64, Arc<Clip>>;

impl Programme {
    pub(super) fn prepare(service: &Service, clips: &mut Clips) -> Result<Self, MaterialError> {
        match &service.material {
            Material::Synthetic(rate) => {
                let clip = match clips.get(&rate.whole_bps()) {
                    Some(clip) => clip.clone(),
                    None => {
                        let made = Clip::prepare(&pictures(*rate))
                            .map_err(|source| MaterialError::Synthetic { rate: *rate, source })?;
                        clips.entry(rate.whole_bps()).or_insert(Arc::new(made)).clone()
                    }
                };
                let settings = weir_ts::mux::MuxSettings {
                    transport_stream_id: service.service_id,
                    original_network_id: service.network_id,
                    program_number: service.service_id,
                    provider: "weir".into(),
                    name: service.name.clone(),
                    bit_rate: Some(rate.whole_bps()),
                    ..weir_ts::mux::MuxSettings::default()
                };
                Ok(Self::Made { clip, settings })
            }
            Material::File(path) => {
                let shown = || path.display().to_string();
                let stored =
                    std::fs::read(path).map_err(|source| MaterialError::Read { path: shown(), source })?;
                let looped = Loop::new(&stored, None)
                    .map_err(|source| MaterialError::Loop { path: shown(), source })?;
                Ok(Self::Stored(Arc::new(looped)))
            }
        }
    }
}

/// The clip for a stream of this rate: an IDR picture every half second, as broadcasters send them, and
/// room for the packets around them.
fn pictures(whole: BitRate) -> ClipSettings {
    // The default frame rate of clips.
    const FRAMES: u64 = 30;
    // What becomes null packets: one in twenty, about.
    const NULL_SHARE: u64 = 20;
    // Tables ten times a second, three packets.
    const TABLES: u64 = 10 * 3 * PACKET as u64 * 8;
    // The PES header, the delimiter, and half a packet of stuffing a picture.
    const PER_PICTURE: u64 = FRAMES * (20 + PACKET as u64 / 2) * 8;
    let high = whole.whole_bps() >= HIGH_RATE;
    let sound = BitRate::from_kbps(if high { 128 } else { 32 });
    // A frame of sound fills two packets, of 46.9 a second.
    let sound_packets = 47 * 2 * PACKET as u64 * 8;
    let whole = whole.whole_bps();
    let rest = whole - whole / NULL_SHARE;
    let rest = rest.saturating_sub(TABLES + sound_packets) * 180 / PACKET as u64;
    let (width, height) = if high { (1280, 720) } else { (320, 180) };
    ClipSettings {
        video: VideoSettings {
            width,
            height,
            gop_frames: FRAMES as u32 / 2,
            bit_rate: BitRate::from_bps(rest.saturating_sub(PER_PICTURE) as f64),
            stamped: false,
            ..VideoSettings::default()
        },
        audio: Some(AudioSettings { bit_rate: sound, ..AudioSettings::default() }),
        seed: 1,
    }
}

/// One playing of a programme.
#[derive(Debug)]
pub(super) enum Player {
    Made(Box<Made>),
    Stored { looped: Arc<Loop>, pass: u64, next: usize },
}

/// A stream that is muxed as it goes.
#[derive(Debug)]
pub(super) struct Made {
    source: Synthetic,
    muxer: Muxer,
    rate: u64,
    frame: Frame,
    unit: Vec<u8>,
    /// Packets that were muxed, of which `taken` bytes have been played.
    ready: Vec<u8>,
    taken: usize,
}

impl Player {
    pub(super) fn new(programme: &Programme) -> Self {
        match programme {
            Programme::Made { clip, settings } => Self::Made(Box::new(Made {
                source: Synthetic::new(clip.clone()),
                muxer: Muxer::new(settings.clone()),
                rate: settings.bit_rate.unwrap_or(0),
                frame: Frame::empty(),
                unit: Vec::new(),
                ready: Vec::new(),
                taken: 0,
            })),
            Programme::Stored(looped) => Self::Stored { looped: looped.clone(), pass: 0, next: 0 },
        }
    }

    /// Packets that a tuner has sent after `elapsed`: those whose last bit has come.
    pub(super) fn due(&self, elapsed: Duration) -> u64 {
        let (packets, span) = match self {
            Self::Made(made) => (made.rate, PACKET as u64 * 8 * TICKS_PER_SECOND),
            Self::Stored { looped, .. } => (looped.packets() as u64, looped.duration()),
        };
        let ticks = elapsed.as_nanos() * u128::from(TICKS_PER_SECOND) / 1_000_000_000;
        (ticks * u128::from(packets) / u128::from(span.max(1))) as u64
    }

    /// Appends the next packets.
    pub(super) fn play(&mut self, packets: usize, out: &mut Vec<u8>) {
        match self {
            Self::Made(made) => made.play(packets * PACKET, out),
            Self::Stored { looped, pass, next } => {
                let mut left = packets;
                while left > 0 {
                    let now = left.min(looped.packets() - *next);
                    looped.extend(*pass, *next..*next + now, out);
                    left -= now;
                    *next += now;
                    if *next == looped.packets() {
                        (*pass, *next) = (*pass + 1, 0);
                    }
                }
            }
        }
    }
}

impl Made {
    fn play(&mut self, bytes: usize, out: &mut Vec<u8>) {
        while self.ready.len() - self.taken < bytes {
            // Rarely, so that what is left is not moved over and over.
            if self.taken > self.ready.len() / 2 {
                self.ready.drain(..std::mem::take(&mut self.taken));
            }
            self.mux();
        }
        out.extend_from_slice(&self.ready[self.taken..self.taken + bytes]);
        self.taken += bytes;
    }

    /// Muxes the next picture or frame of sound.
    fn mux(&mut self) {
        // Made material does not fail.
        if self.source.next(&mut self.frame).is_err() {
            return;
        }
        self.unit.clear();
        let ticks = |time: Duration| FIRST_DECODING + (time.as_nanos() * 9 / 100_000) as u64;
        let (dts, pts) = (ticks(self.frame.decode_time), ticks(self.frame.presentation_time));
        let random_access = self.frame.keyframe;
        match (self.frame.track, self.source.video_config(), self.source.audio_config()) {
            (Track::Video, Some(config), _) => {
                append_annex_b(config, &self.frame, &mut self.unit);
                self.muxer.video(&AccessUnit { pts, dts, random_access, bytes: &self.unit }, &mut self.ready);
            }
            (Track::Audio, _, Some(config)) => {
                append_adts(config, &self.frame, &mut self.unit);
                self.muxer.audio(&AccessUnit { pts, dts, random_access, bytes: &self.unit }, &mut self.ready);
            }
            _ => {}
        }
    }
}
