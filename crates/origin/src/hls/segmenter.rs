//! Cuts one publication into segments and parts, and puts them on its shelf.

use super::fragments::FragmentWriter;
use super::settings::{HlsSettings, PART_ROUNDING, SegmentContainer};
use super::shelf::{Shelf, Shelves};
use super::transport::TransportWriter;
use super::unit::{Tracks, Unit, UnitReader};
use super::window::{Map, Segment, Window};
use crate::fault::{Script, Subject};
use crate::stream::Packet;
use crate::worker::Worker;
use std::sync::Arc;
use std::time::Duration;
use weir_metrics::Moment;

/// Timestamps have whole milliseconds: what is a period of frames late or early by rounding is not. Milliseconds.
const ROUNDING: i64 = 5;
/// The longest first segment while no keyframe comes, milliseconds: a player starts after three.
pub(super) const LONGEST_FIRST: i64 = 30_000;
/// A step of timestamps from which on they are others: no encoder sends a frame so seldom. Milliseconds.
const LONGEST_STEP: i64 = 10_000;
/// How far timestamps may go back without being others: frames of two tracks are not always in order. Milliseconds.
const LONGEST_STEP_BACK: i64 = 1_000;
/// Units that are written again when a track turns up behind them, and their bytes: half a second of 60 frames and 50 of sound a second, of
/// 16 Mbit/s. By WebRTC the first sound comes just behind the first picture.
const MOST_FIRST_UNITS: usize = 55;
const MOST_FIRST_BYTES: usize = 1 << 20;
/// Bytes of the part in the making: a minute of 8 Mbit/s.
const MOST_WAITING: usize = 64 << 20;

/// Makes segments of what is published.
#[derive(Debug)]
pub(crate) struct Segmenter {
    shelf: Arc<Shelf>,
    reader: UnitReader,
    cutter: Cutter,
    /// The faults of the stream.
    script: Option<Box<Script>>,
    /// What the wall clock is ahead of the clock of moments, in nanoseconds.
    wall_offset: i64,
}

impl Segmenter {
    /// Of a publication that begins now, when the wall clock shows this.
    pub(crate) fn new(shelves: &Shelves, name: &Arc<str>, worker: &Worker, now: Moment, wall: u64) -> Self {
        let script = Script::of(&worker.settings().faults, Subject::Stream(name.clone()));
        Self {
            shelf: shelves.begin(name),
            reader: UnitReader::default(),
            cutter: Cutter::new(shelves.settings().clone()),
            script: script.filter(|script| script.leaves_gaps()),
            wall_offset: wall as i64 - now.as_nanos() as i64,
        }
    }

    /// Takes the next packet.
    pub(crate) fn take(&mut self, packet: &Packet, arrived: Moment, worker: &mut Worker) {
        let Self { shelf, reader, cutter, script, wall_offset } = self;
        let wall = arrived.as_nanos() as i64 + *wall_offset;
        let mut gap = || script.as_mut().is_some_and(|script| script.leaves_gap(arrived));
        reader.read(packet, |tracks, unit| {
            shelf.change(|window| cutter.take(tracks, &unit, wall, &mut gap, window));
        });
        if let Some(script) = script {
            worker.note(script.take_effects());
        }
    }

    /// The publication is over.
    pub(crate) fn end(mut self, shelves: &Shelves) {
        self.shelf.change(|window| {
            self.cutter.finish(window);
            true
        });
        shelves.end(&self.shelf);
    }
}

/// Where segments and parts end.
#[derive(Debug)]
struct Cutter {
    settings: HlsSettings,
    writer: Option<(Tracks, Writer)>,
    map: Option<Arc<Map>>,
    /// The units of the writer up to now, while its tracks may still be others.
    first_units: Option<Vec<FirstUnit>>,
    open: Option<Open>,
    /// The last frame that cuts were decided at, and how far it was from the one before it.
    last: Option<(i64, i64)>,
    /// A time of the stream in milliseconds, and when it was in nanoseconds since 1970.
    anchor: Option<(i64, i64)>,
}

/// One of the first units of a publication.
#[derive(Debug)]
struct FirstUnit {
    is_video: bool,
    keyframe: bool,
    decoding: i64,
    presentation: i64,
    bytes: Box<[u8]>,
}

/// The segment in the making.
#[derive(Debug)]
struct Open {
    begin: i64,
    part_begin: i64,
    part_is_independent: bool,
}

#[derive(Debug)]
enum Writer {
    Transport(Box<TransportWriter>),
    Fragments(Box<FragmentWriter>),
}

impl Writer {
    fn write(&mut self, unit: &Unit<'_>) {
        match self {
            Self::Transport(writer) => writer.write(unit),
            Self::Fragments(writer) => writer.write(unit),
        }
    }

    fn waiting(&self) -> usize {
        match self {
            Self::Transport(writer) => writer.waiting(),
            Self::Fragments(writer) => writer.waiting(),
        }
    }
}

impl Cutter {
    fn new(settings: HlsSettings) -> Self {
        Self { settings, writer: None, map: None, first_units: None, open: None, last: None, anchor: None }
    }

    /// Takes a frame that came when the wall clock showed `wall`. Whether there is something new to load.
    fn take(
        &mut self,
        tracks: &Tracks,
        unit: &Unit<'_>,
        wall: i64,
        gap: &mut dyn FnMut() -> bool,
        window: &mut Window,
    ) -> bool {
        // Sound between two pictures belongs to the first.
        let decides = unit.is_video || tracks.video.is_none();
        let is_new = decides && self.cut(tracks, unit, wall, gap, window);
        if self.open.is_some() && (decides || self.belongs(unit)) {
            self.complete_tracks(tracks, window);
            if let Some((_, writer)) = &mut self.writer {
                writer.write(unit);
                self.keep_first(unit);
            }
        }
        is_new
    }

    /// A track has turned up behind the first units: the segment has it from its beginning, and needs no discontinuity soon after.
    fn complete_tracks(&mut self, tracks: &Tracks, window: &mut Window) {
        let is_other = self.writer.as_ref().is_some_and(|(written, _)| written != tracks);
        let Some(begin) = self.open.as_ref().filter(|_| is_other).map(|open| open.begin) else { return };
        let Some(units) = self.first_units.take() else { return };
        self.renew_writer(tracks, begin, window);
        window.set_map(self.map.clone());
        let Some((_, writer)) = &mut self.writer else { return };
        for FirstUnit { is_video, keyframe, decoding, presentation, bytes } in &units {
            let (is_video, keyframe, bytes) = (*is_video, *keyframe, &bytes[..]);
            let (decoding, presentation) = (*decoding, *presentation);
            writer.write(&Unit { is_video, keyframe, decoding, presentation, bytes });
        }
        self.first_units = Some(units);
    }

    fn keep_first(&mut self, unit: &Unit<'_>) {
        let Some(units) = &mut self.first_units else { return };
        let bytes: usize = units.iter().map(|unit| unit.bytes.len()).sum();
        if units.len() == MOST_FIRST_UNITS || bytes + unit.bytes.len() > MOST_FIRST_BYTES {
            self.first_units = None;
            return;
        }
        let Unit { is_video, keyframe, decoding, presentation, bytes } = *unit;
        units.push(FirstUnit { is_video, keyframe, decoding, presentation, bytes: bytes.into() });
    }

    fn renew_writer(&mut self, tracks: &Tracks, now: i64, window: &Window) {
        let writer = match self.settings.container {
            SegmentContainer::TransportStream => {
                Writer::Transport(Box::new(TransportWriter::new(tracks, now)))
            }
            SegmentContainer::FragmentedMp4 => {
                let writer = FragmentWriter::new(tracks, now);
                // Parts are counted over all publications: no two maps have the number of one.
                self.map = Some(Arc::new(Map { id: window.next_part(), bytes: writer.map().into() }));
                Writer::Fragments(Box::new(writer))
            }
        };
        self.writer = Some((tracks.clone(), writer));
    }

    /// Whether sound is of about the time of the pictures beside it: far from them, the clock would have to run on for hours; and
    /// whether there is room for it.
    fn belongs(&self, unit: &Unit<'_>) -> bool {
        let waiting = self.writer.as_ref().map_or(0, |(_, writer)| writer.waiting());
        let is_near = |(last, _): (i64, i64)| (unit.decoding - last).abs() <= LONGEST_STEP;
        waiting <= MOST_WAITING && self.last.is_some_and(is_near)
    }

    fn cut(
        &mut self,
        tracks: &Tracks,
        unit: &Unit<'_>,
        wall: i64,
        gap: &mut dyn FnMut() -> bool,
        window: &mut Window,
    ) -> bool {
        let is_other = self.writer.as_ref().is_none_or(|(written, _)| written != tracks);
        let (now, step, jumps) = match self.last {
            Some((last, _)) if unit.decoding > last + LONGEST_STEP => (unit.decoding, 0, true),
            Some((last, _)) if unit.decoding < last - LONGEST_STEP_BACK => (unit.decoding, 0, true),
            Some((last, step)) if unit.decoding <= last => (last, step, false),
            Some((last, _)) => (unit.decoding, unit.decoding - last, false),
            None => (unit.decoding, 0, false),
        };
        let end_of_last = self.last.map_or(now, |(last, step)| last + step);
        self.last = Some((now, step));
        let Some(open) = &self.open else {
            if unit.keyframe {
                let discontinuity = !window.is_empty();
                self.begin(now, unit.keyframe, discontinuity, tracks, (wall, gap), window);
            }
            return false;
        };
        if jumps {
            self.end_segment(end_of_last, window);
            self.anchor = None;
            self.begin(now, unit.keyframe, true, tracks, (wall, gap), window);
            return true;
        }
        // Segments begin with keyframes, unless there are too few.
        let elapsed = now - open.begin;
        let is_due = elapsed + ROUNDING >= self.settings.segment.as_millis() as i64;
        let longest = window.target().map_or(LONGEST_FIRST, |target| target as i64 * 1_000 + 499);
        let waiting = self.writer.as_ref().map_or(0, |(_, writer)| writer.waiting());
        if unit.keyframe && (is_due || is_other) || elapsed + step > longest || waiting > MOST_WAITING {
            self.end_segment(now, window);
            // RFC 8216, section 4.3.2.3: "The EXT-X-DISCONTINUITY tag MUST be present if there is a change in any of the following
            // characteristics: o file format o number, type, and identifiers of tracks o timestamp sequence".
            let discontinuity = is_other && unit.keyframe;
            self.begin(now, unit.keyframe, discontinuity, tracks, (wall, gap), window);
            return true;
        }
        let Some(part) = self.settings.part else { return false };
        // draft-pantos-hls-rfc8216bis-22, section 4.4.3.7: no part is longer than the part target duration.
        let is_whole = now + step - open.part_begin > (part + PART_ROUNDING).as_millis() as i64;
        if !is_whole {
            return false;
        }
        self.end_part(now, window);
        if let Some(open) = &mut self.open {
            (open.part_begin, open.part_is_independent) = (now, unit.keyframe);
        }
        true
    }

    fn begin(
        &mut self,
        now: i64,
        keyframe: bool,
        discontinuity: bool,
        tracks: &Tracks,
        (wall, gap): (i64, &mut dyn FnMut() -> bool),
        window: &mut Window,
    ) {
        let (anchor, anchor_wall) = *self.anchor.get_or_insert((now, wall));
        if discontinuity || self.writer.is_none() {
            self.renew_writer(tracks, now, window);
            self.first_units = Some(Vec::new());
        }
        if let Some((_, Writer::Transport(writer))) = &mut self.writer {
            writer.begin_segment();
        }
        let date = anchor_wall + (now - anchor) * 1_000_000;
        window.begin(Segment::new(date, discontinuity, gap(), self.map.clone()));
        self.open = Some(Open { begin: now, part_begin: now, part_is_independent: keyframe });
    }

    fn end_part(&mut self, now: i64, window: &mut Window) {
        self.first_units = None;
        let (Some(open), Some((_, writer))) = (&self.open, &mut self.writer) else { return };
        let bytes = match writer {
            Writer::Transport(writer) => writer.take(),
            Writer::Fragments(writer) => writer.take(now),
        };
        // Of frames with one timestamp; a duration of zero would be none.
        let duration = Duration::from_millis((now - open.part_begin).max(1) as u64);
        window.push(bytes, duration, open.part_is_independent);
    }

    fn end_segment(&mut self, now: i64, window: &mut Window) {
        self.end_part(now, window);
        window.finish();
        self.open = None;
    }

    fn finish(&mut self, window: &mut Window) {
        if let (Some(_), Some((last, step))) = (&self.open, self.last) {
            self.end_segment(last + step, window);
        }
        window.end();
    }
}

#[cfg(test)]
mod tests;
