//! What publishers send: frames as a transport stream, or a stored stream in a loop.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use weir_clients::{HostClock, Material, MaterialOptions, PublishOptions, WorkloadError};
use weir_media::{AudioCodec, Frame, Source, SourceError, Stamp, Track, append_adts, append_annex_b};
use weir_metrics::Moment;
use weir_setting::AUDIO_CODEC;
use weir_ts::mux::{AccessUnit, MuxSettings, Muxer};
use weir_ts::remux::Loop;

/// Bytes of a packet of MPEG-TS.
pub(super) const PACKET: usize = 188;
/// How much of a stored stream is sent at a time.
const SLICE: Duration = Duration::from_millis(10);
/// How long before its decoding time a frame is sent, by the stream's clock: 27 MHz ticks.
const LEAD: u64 = 27_000 * 200;
/// Decoding times count from here, so that no clock reference is negative; 90 kHz ticks.
const FIRST_DECODING: u64 = 90_000;
/// The longest stored stream: the whole of it is in memory.
const LONGEST_FILE: usize = 2 << 30;

/// What all publishers of a workload send.
pub(super) enum Content {
    /// Frames, and the clock for their stamps.
    Frames(Material, Option<HostClock>),
    /// A stored stream.
    Stored(Loop),
}

/// What one publisher sends.
pub(super) enum Feed {
    Frames(Box<FrameFeed>),
    Stored(StoredFeed),
}

/// What stands for one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    /// Pictures.
    pub(super) frames: u64,
    /// Those of them that are keyframes.
    pub(super) keyframes: u64,
}

pub(super) struct FrameFeed {
    content: Arc<Content>,
    source: Box<dyn Source + Send>,
    frame: Frame,
    muxer: Muxer,
    stamps: u32,
    unit: Vec<u8>,
}

pub(super) struct StoredFeed {
    content: Arc<Content>,
    pass: u64,
    packet: usize,
    /// When the next packets are due, from the start.
    due: Duration,
}

impl Content {
    /// Makes or reads it; and what a person should know of it.
    pub(super) fn prepare(options: &PublishOptions) -> Result<(Self, Option<String>), WorkloadError> {
        if let MaterialOptions::File(path) = &options.material
            && is_transport_stream(path)
        {
            let failed = |words: String| WorkloadError::Options(format!("{}: {words}", path.display()));
            let bytes = weir_files::read(path, LONGEST_FILE).map_err(|error| failed(error.to_string()))?;
            let stored = Loop::new(&bytes, None).map_err(|error| failed(error.to_string()))?;
            return Ok((Self::Stored(stored), None));
        }
        let material = Material::prepare(&options.material, options.stamp)?;
        let has_opus = material.audio().is_some_and(|audio| audio.codec == AudioCodec::Opus);
        if has_opus && matches!(options.material, MaterialOptions::Synthetic { .. }) {
            let opus = AUDIO_CODEC.to("opus");
            let words = format!("sound in a transport stream is AAC: leave {opus} out");
            return Err(WorkloadError::Options(words));
        }
        let warning =
            has_opus.then(|| "the file's sound is Opus, which is left out of a transport stream".to_owned());
        Ok((Self::Frames(material, options.stamp.then(HostClock::read)), warning))
    }

    /// From its beginning.
    ///
    /// # Errors
    /// The first frame cannot be read.
    pub(super) fn feed(self: &Arc<Self>) -> Result<Feed, SourceError> {
        match &**self {
            Self::Stored(_) => {
                let content = Arc::clone(self);
                Ok(Feed::Stored(StoredFeed { content, pass: 0, packet: 0, due: Duration::ZERO }))
            }
            Self::Frames(material, _) => {
                let source = material.source();
                let usual = MuxSettings::default();
                let has_aac = source.audio_config().is_some_and(|audio| audio.codec == AudioCodec::Aac);
                let settings = MuxSettings {
                    video: usual.video.filter(|_| source.video_config().is_some()),
                    audio: usual.audio.filter(|_| has_aac),
                    lead: LEAD,
                    ..usual
                };
                let muxer = Muxer::new(settings);
                let (content, frame) = (Arc::clone(self), Frame::empty());
                let mut feed = FrameFeed { content, source, frame, muxer, stamps: 0, unit: Vec::new() };
                feed.fetch()?;
                Ok(Feed::Frames(Box::new(feed)))
            }
        }
    }
}

fn is_transport_stream(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| ["ts", "m2ts", "mts"].iter().any(|it| ending.eq_ignore_ascii_case(it)))
}

impl Feed {
    /// When the next packets are due, from the start.
    pub(super) fn due(&self) -> Duration {
        match self {
            Self::Frames(feed) => feed.frame.decode_time,
            Self::Stored(feed) => feed.due,
        }
    }

    /// Appends the packets that are due, and goes on to the next.
    ///
    /// # Errors
    /// The next frame cannot be read.
    pub(super) fn take(&mut self, now: Moment, out: &mut Vec<u8>) -> Result<Sent, SourceError> {
        match self {
            Self::Frames(feed) => feed.take(now, out),
            Self::Stored(feed) => {
                feed.take(out);
                Ok(Sent::default())
            }
        }
    }
}

impl FrameFeed {
    /// The next frame that goes into a transport stream.
    fn fetch(&mut self) -> Result<(), SourceError> {
        loop {
            self.source.next(&mut self.frame)?;
            let takes_sound = self.source.audio_config().is_some_and(|audio| audio.codec == AudioCodec::Aac);
            if self.frame.track == Track::Video || takes_sound {
                return Ok(());
            }
        }
    }

    fn take(&mut self, now: Moment, out: &mut Vec<u8>) -> Result<Sent, SourceError> {
        let ticks = |time: Duration| (time.as_nanos() * 9 / 100_000) as u64 + FIRST_DECODING;
        let (pts, dts) = (ticks(self.frame.presentation_time), ticks(self.frame.decode_time));
        self.unit.clear();
        let mut sent = Sent::default();
        match self.frame.track {
            Track::Video => {
                if let Content::Frames(_, Some(clock)) = &*self.content {
                    let stamp = Stamp { captured: clock.at(now), sequence_number: self.stamps };
                    stamp.put(&mut self.frame.payload);
                    self.stamps = self.stamps.wrapping_add(1);
                }
                sent = Sent { frames: 1, keyframes: u64::from(self.frame.keyframe) };
                if let Some(config) = self.source.video_config() {
                    append_annex_b(config, &self.frame, &mut self.unit);
                }
                let unit = AccessUnit { pts, dts, random_access: self.frame.keyframe, bytes: &self.unit };
                self.muxer.video(&unit, out);
            }
            Track::Audio => {
                if let Some(config) = self.source.audio_config() {
                    append_adts(config, &self.frame, &mut self.unit);
                }
                self.muxer.audio(&AccessUnit { pts, dts, random_access: true, bytes: &self.unit }, out);
            }
        }
        self.fetch()?;
        Ok(sent)
    }
}

impl StoredFeed {
    fn take(&mut self, out: &mut Vec<u8>) {
        let Content::Stored(stored) = &*self.content else { return };
        let whole = stored.packets();
        self.due += SLICE;
        // Nanoseconds of one pass; a tick of 27 MHz is 1,000/27 ns.
        let pass = u128::from(stored.duration()) * 1_000 / 27;
        let until = self.due.as_nanos() * whole as u128 / pass.max(1);
        let at = u128::from(self.pass) * whole as u128 + self.packet as u128;
        let mut count = until.saturating_sub(at) as usize;
        while count > 0 {
            let end = (self.packet + count).min(whole);
            stored.extend(self.pass, self.packet..end, out);
            count -= end - self.packet;
            self.packet = end;
            if self.packet == whole {
                (self.pass, self.packet) = (self.pass + 1, 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_ts::{Analyser, Options};

    #[test]
    fn frames_become_a_stream_without_a_fault_and_a_stored_one_goes_on_past_its_end() {
        let (content, warning) = Content::prepare(&PublishOptions::default()).unwrap();
        assert!(warning.is_none());
        let mut feed = Arc::new(content).feed().unwrap();
        let (mut out, mut sent) = (Vec::new(), Sent::default());
        while feed.due() < Duration::from_secs(4) {
            let of_frame = feed.take(Moment::from_nanos(1), &mut out).unwrap();
            sent = Sent {
                frames: sent.frames + of_frame.frames,
                keyframes: sent.keyframes + of_frame.keyframes,
            };
        }
        assert_eq!((sent.frames, sent.keyframes), (100, 2));
        let check = |bytes: &[u8]| {
            let mut analyser = Analyser::new(Options::default());
            analyser.feed(bytes);
            analyser.finish();
            let counts = analyser.counts();
            assert_eq!((counts.gap_events, counts.pcr_discontinuities, counts.skipped_bytes), (0, 0, 0));
            counts.packets
        };
        let packets = check(&out);
        let stored = Arc::new(Content::Stored(Loop::new(&out, None).unwrap()));
        let mut feed = stored.feed().unwrap();
        let mut twice = Vec::new();
        while feed.due() < Duration::from_secs(8) {
            feed.take(Moment::from_nanos(1), &mut twice).unwrap();
        }
        assert!(check(&twice).abs_diff(2 * packets) < packets / 10);
    }

    #[test]
    fn a_file_of_packets_is_told_by_its_name() {
        assert!(is_transport_stream(Path::new("a/b.TS")) && is_transport_stream(Path::new("b.m2ts")));
        assert!(!is_transport_stream(Path::new("b.mp4")) && !is_transport_stream(Path::new("ts")));
    }
}
