//! What a witness sees inside segments and parts: frames, and what is missing of them by continuity counters, sequence numbers and
//! decoding times. Knows neither links nor playlists.

mod fragments;
mod frame_rate;
mod transport;

use self::fragments::FragmentReader;
use self::frame_rate::FrameRate;
use self::transport::TransportReader;
use std::time::Duration;

/// Decoding times that are farther than this from where they were expected have jumped, microseconds: half a second, as of transport
/// streams.
const JUMP: i64 = 500_000;

/// What an EXTINF of whole seconds may be off by rounding (RFC 8216, section 4.3.2.1: before version 3 it "MUST" be an integer), in
/// microseconds.
const ROUNDING_OF_SECONDS: f64 = 500_000.0;

/// The first bytes of a unit say what it is.
const FRONT: usize = 8;

/// What is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnitKind {
    /// A Media Initialization Section.
    Map,
    Segment,
    /// A Partial Segment, which may go on where the one before it has ended.
    Part,
}

/// What a playlist says of a unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnnouncedUnit {
    pub(super) duration: Duration,
    /// The Media Sequence Number of the segment, or of the segment that it is a part of.
    pub(super) number: u64,
    /// It has other timestamps than what comes before it (`EXT-X-DISCONTINUITY`).
    pub(super) is_discontinuous: bool,
}

/// What was in a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Inspection {
    /// Pictures: PES packets, or samples.
    pub(super) frames: u64,
    pub(super) keyframes: u64,
    /// Pictures that its duration stands for.
    pub(super) announced: u64,
    /// Packets of a transport stream that are missing in it, by continuity counters.
    pub(super) lost_packets: u64,
    /// Places where sequence numbers of fragments show that some are missing.
    pub(super) fragment_gaps: u64,
    /// Places where decoding times of pictures jump, the one at its beginning included.
    pub(super) time_jumps: u64,
}

/// A picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame {
    /// When it is decoded, in microseconds, if that is said.
    time: Option<i64>,
    keyframe: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Container {
    TransportStream,
    FragmentedMp4,
    /// One that is not read: packed audio, subtitles, what could not be decrypted.
    Other,
}

/// What the unit under way has.
#[derive(Debug, Default)]
struct UnitTotals {
    frames: u64,
    keyframes: u64,
    time_jumps: u64,
    first: Option<i64>,
    last: Option<i64>,
}

#[derive(Debug, Default)]
pub(super) struct Inspector {
    transport: TransportReader,
    fragments: FragmentReader,
    kind: Option<UnitKind>,
    container: Option<Container>,
    /// The first bytes of the unit under way, until its container is known.
    front: Vec<u8>,
    totals: UnitTotals,
    rate: FrameRate,
    /// The segment that the unit before this is of, unless what comes next does not follow on it.
    before: Option<u64>,
    /// The time of the last picture before this unit.
    latest: Option<i64>,
    /// What of a picture is announced and not counted yet.
    owed: f64,
}

impl Inspector {
    /// A unit was asked for.
    pub(super) fn begin(&mut self, kind: UnitKind) {
        // What came of one that did not end is not known to be all of it.
        if self.container.is_some() || !self.front.is_empty() {
            self.interrupt();
        }
        self.kind = Some(kind);
        self.clear();
        match kind {
            UnitKind::Map => self.fragments.begin_map(),
            UnitKind::Segment | UnitKind::Part => self.fragments.begin(),
        }
    }

    /// The next bytes of it.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        let Some(kind) = self.kind else { return };
        if kind == UnitKind::Map {
            self.fragments.take_map(bytes);
            return;
        }
        match self.container {
            Some(_) => self.read(bytes),
            None => {
                self.front.extend_from_slice(bytes);
                if self.front.len() >= FRONT {
                    let front = std::mem::take(&mut self.front);
                    let container = container_of(&front);
                    if container == Container::TransportStream {
                        self.transport.begin(kind == UnitKind::Part, &front);
                    }
                    self.container = Some(container);
                    self.read(&front);
                }
            }
        }
    }

    fn read(&mut self, bytes: &[u8]) {
        let Self { transport, fragments, totals, rate, .. } = self;
        let each = &mut |frame: Frame| totals.count(frame, rate);
        match self.container {
            Some(Container::TransportStream) => transport.take(bytes, each),
            Some(Container::FragmentedMp4) => fragments.take(bytes, each),
            Some(Container::Other) | None => {}
        }
    }

    /// The map is whole.
    pub(super) fn finish_map(&mut self) {
        if self.fragments.finish_map() {
            // Other tracks have timestamps of their own.
            (self.latest, self.rate) = (None, FrameRate::default());
        }
        self.kind = None;
    }

    /// The unit is whole. What was in it, if it could be read.
    pub(super) fn finish(&mut self, announced: AnnouncedUnit) -> Option<Inspection> {
        let Self { transport, fragments, totals, rate, .. } = self;
        let each = &mut |frame: Frame| totals.count(frame, rate);
        let losses = match self.container {
            Some(Container::TransportStream) => transport.finish(each).map(|lost| (lost, 0)),
            Some(Container::FragmentedMp4) => fragments.finish().map(|gaps| (0, gaps)),
            Some(Container::Other) | None => None,
        };
        let Some((lost_packets, fragment_gaps)) = losses else {
            self.interrupt();
            self.clear();
            return None;
        };
        let follows = !announced.is_discontinuous
            && self.before.is_some_and(|before| matches!(announced.number.checked_sub(before), Some(0 | 1)));
        if announced.is_discontinuous {
            // What was learnt of the frames of this unit is learnt again: it was held against those of another stream.
            (self.rate, self.totals.time_jumps) = (FrameRate::default(), 0);
        }
        // A part of it may go on with the counters of the segment before.
        let lost_packets = if announced.is_discontinuous { 0 } else { lost_packets };
        let before = self.latest.filter(|_| follows);
        let mut time_jumps = self.totals.time_jumps;
        if let Some((before, first)) = before.zip(self.totals.first) {
            time_jumps += u64::from(self.rate.step(first.saturating_sub(before)));
        }
        let due = self.due(announced.duration, before);
        let UnitTotals { frames, keyframes, last, .. } = std::mem::take(&mut self.totals);
        self.latest = last.or(before);
        self.before = Some(announced.number);
        let announced = self.book(due.unwrap_or(frames as f64));
        self.clear();
        Some(Inspection { frames, keyframes, announced, lost_packets, fragment_gaps, time_jumps })
    }

    /// Pictures of the unit under way, by its duration; `None` while their rate is not known.
    fn due(&self, duration: Duration, before: Option<i64>) -> Option<f64> {
        let mean = self.rate.mean()?;
        let announced = duration.as_micros() as f64;
        if duration.subsec_nanos() == 0
            && let Some((first, last)) = self.totals.first.zip(self.totals.last)
        {
            // From the end of the unit before to the end of this one, so that what is missing at its end is missing in the next one.
            let by_times = before.map_or((last - first) as f64 + mean, |before| (last - before) as f64);
            if (by_times - announced).abs() <= ROUNDING_OF_SECONDS {
                return Some(by_times / mean);
            }
        }
        Some(announced / mean)
    }

    /// Whole pictures of what is announced; the rest is kept.
    fn book(&mut self, due: f64) -> u64 {
        self.owed += due;
        let whole = self.owed.round().max(0.0);
        self.owed -= whole;
        whole as u64
    }

    /// A unit is not there. Pictures that it should have had.
    pub(super) fn missed(&mut self, announced: AnnouncedUnit) -> u64 {
        self.interrupt();
        self.clear();
        if announced.is_discontinuous {
            // What comes next is of another stream as well.
            self.rate = FrameRate::default();
        }
        self.skipped(announced.duration)
    }

    /// So much is never asked for, whatever is under way. Pictures that it should have had.
    pub(super) fn skipped(&mut self, duration: Duration) -> u64 {
        let due = self.rate.mean().map(|mean| duration.as_micros() as f64 / mean);
        due.map_or(0, |due| self.book(due))
    }

    /// What comes next does not follow on what came.
    pub(super) fn interrupt(&mut self) {
        (self.before, self.latest) = (None, None);
        self.transport.interrupt();
    }

    /// What came of the unit under way means nothing.
    pub(super) fn forget(&mut self) {
        self.container = Some(Container::Other);
    }

    fn clear(&mut self) {
        self.container = None;
        self.front.clear();
        self.totals = UnitTotals::default();
    }
}

impl UnitTotals {
    fn count(&mut self, frame: Frame, rate: &mut FrameRate) {
        self.frames += 1;
        self.keyframes += u64::from(frame.keyframe);
        let Some(time) = frame.time else { return };
        match self.last.replace(time) {
            Some(before) => self.time_jumps += u64::from(rate.step(time.saturating_sub(before))),
            None => self.first = Some(time),
        }
    }
}

/// What a unit is that begins with these bytes.
fn container_of(front: &[u8]) -> Container {
    match front {
        [weir_ts::packet::SYNC_BYTE, ..] => Container::TransportStream,
        [_, _, _, _, kind @ ..] if fragments::BOXES.iter().any(|it| kind.starts_with(it)) => {
            Container::FragmentedMp4
        }
        _ => Container::Other,
    }
}

#[cfg(test)]
pub(super) mod tests;
