//! What of a stream can be loaded: the Media Segments that a playlist names, those that it named, and the one in the making.
//! Knows no link and no clock.

use super::settings::HlsSettings;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that are kept for one stream: 20 s of 50 Mbit/s. What is more goes, the oldest first.
const MOST_BYTES: usize = 128 << 20;

/// A Media Initialization Section.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Map {
    pub(super) id: u64,
    pub(super) bytes: Arc<[u8]>,
}

/// A Partial Segment, or a whole one where there are no parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Counts the parts of the stream, whatever segment they are of: the name of the next is known before it is.
    pub(super) id: u64,
    pub(super) bytes: Arc<[u8]>,
    pub(super) duration: Duration,
    /// It begins with a keyframe.
    pub(super) independent: bool,
}

/// A Media Segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Its Media Sequence Number.
    pub(super) number: u64,
    /// When its first frame came: nanoseconds since 1970, counted in media time from the publication's first frame.
    pub(super) date: i64,
    /// Of one in the making, up to now.
    pub(super) duration: Duration,
    pub(super) parts: Vec<Part>,
    /// What comes before it has other timestamps, or other tracks.
    pub(super) discontinuity: bool,
    /// It is named and not there.
    pub(super) gap: bool,
    pub(super) map: Option<Arc<Map>>,
    /// Media seconds that had been cut when playlists named it for the last time.
    retired: Option<Duration>,
    /// Its clear text, while it is in the making and will be encrypted as a whole.
    clear: Vec<u8>,
    /// All of it, encrypted, if that is not what its parts are one after the other.
    encrypted: Option<Arc<[u8]>>,
}

impl Segment {
    /// A segment without a part.
    pub(super) fn new(date: i64, discontinuity: bool, gap: bool, map: Option<Arc<Map>>) -> Self {
        let (number, duration, parts, retired) = (0, Duration::ZERO, Vec::new(), None);
        let (clear, encrypted) = (Vec::new(), None);
        Self { number, date, duration, parts, discontinuity, gap, map, retired, clear, encrypted }
    }

    /// Bytes of it as a whole.
    fn sent(&self) -> usize {
        self.bytes() - self.encrypted.as_ref().map_or(0, |it| it.len())
    }

    /// Bytes that are kept of it.
    pub(super) fn bytes(&self) -> usize {
        let map = self.map.as_ref().map_or(0, |map| map.bytes.len());
        let encrypted = self.encrypted.as_ref().map_or(0, |it| it.len());
        map + encrypted + self.parts.iter().map(|part| part.bytes.len()).sum::<usize>()
    }
}

/// Whether something can be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    Found(Vec<Arc<[u8]>>),
    /// It is announced, and not whole yet.
    NotYet,
    Missing,
}

/// What of a stream can be loaded.
#[derive(Debug)]
pub(super) struct Window {
    settings: HlsSettings,
    /// The target duration in seconds, once it is known.
    target: Option<u64>,
    /// Whole segments: first those that playlists do not name any more.
    segments: VecDeque<Segment>,
    /// How many those are.
    retired: usize,
    making: Option<Segment>,
    next_number: u64,
    next_part: u64,
    /// Discontinuities of segments that playlists do not name any more.
    discontinuities: u64,
    has_ended: bool,
    bytes: usize,
    /// Media seconds of all segments so far, and of the longest playlist.
    cut: Duration,
    longest: Duration,
}

impl Window {
    pub(super) fn new(settings: HlsSettings) -> Self {
        Self {
            settings,
            target: None,
            segments: VecDeque::new(),
            retired: 0,
            making: None,
            next_number: 0,
            next_part: 0,
            discontinuities: 0,
            has_ended: false,
            bytes: 0,
            cut: Duration::ZERO,
            longest: Duration::ZERO,
        }
    }

    /// The target duration in seconds; `None` before the first segment is whole.
    pub(super) fn target(&self) -> Option<u64> {
        self.target
    }

    /// The whole segments that a playlist names.
    pub(super) fn listed(&self) -> impl ExactSizeIterator<Item = &Segment> + Clone {
        self.segments.range(self.retired..)
    }

    /// The segment in the making, whose parts a playlist names.
    pub(super) fn making(&self) -> Option<&Segment> {
        self.making.as_ref().filter(|_| self.settings.part.is_some())
    }

    /// The Media Sequence Number of the next segment that is cut, and how many parts of it are there.
    pub(super) fn next(&self) -> (u64, u64) {
        let parts = self.making().map_or(0, |segment| segment.parts.len() as u64);
        (self.next_number - u64::from(self.making.is_some()), parts)
    }

    /// How many parts a whole segment has, if it is one that is kept.
    pub(super) fn parts_of(&self, number: u64) -> Option<u64> {
        let first = self.segments.front()?.number;
        let place = usize::try_from(number.checked_sub(first)?).ok()?;
        self.segments.get(place).map(|segment| segment.parts.len() as u64)
    }

    /// The highest bit rate of the segments that a playlist names, and their average; `None` before the first is whole.
    pub(super) fn bit_rates(&self) -> Option<(u64, u64)> {
        let rate = |bytes: usize, span: Duration| (bytes as f64 * 8.0 / span.as_secs_f64().max(0.001)) as u64;
        let peak = self.listed().map(|it| rate(it.sent(), it.duration)).max()?;
        let bytes = self.listed().map(Segment::sent).sum();
        Some((peak, rate(bytes, self.listed().map(|it| it.duration).sum())))
    }

    /// The name of the next part.
    pub(super) fn next_part(&self) -> u64 {
        self.next_part
    }

    pub(super) fn discontinuities(&self) -> u64 {
        self.discontinuities
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// A publication begins: the playlist goes on.
    pub(super) fn resume(&mut self) {
        self.has_ended = false;
    }

    /// The publication is over.
    pub(super) fn end(&mut self) {
        self.has_ended = true;
    }

    /// A segment begins.
    pub(super) fn begin(&mut self, segment: Segment) {
        self.bytes += segment.bytes();
        self.making = Some(Segment { number: self.next_number, ..segment });
        self.next_number += 1;
    }

    /// The segment in the making, of which no part is whole yet, has other tracks than was thought.
    pub(super) fn set_map(&mut self, map: Option<Arc<Map>>) {
        let Some(making) = &mut self.making else { return };
        self.bytes -= making.bytes();
        making.map = map;
        self.bytes += making.bytes();
    }

    /// A part of it is whole.
    pub(super) fn push(&mut self, bytes: Vec<u8>, duration: Duration, independent: bool) {
        let Some(making) = &mut self.making else { return };
        let bytes: Arc<[u8]> = match &self.settings.key {
            _ if making.gap => Arc::new([]),
            Some(key) => {
                if self.settings.part.is_some() {
                    making.clear.extend_from_slice(&bytes);
                }
                key.encrypt(&bytes, making.number).into()
            }
            None => bytes.into(),
        };
        self.bytes += bytes.len();
        making.duration += duration;
        making.parts.push(Part { id: self.next_part, bytes, duration, independent });
        self.next_part += 1;
    }

    /// The segment is whole.
    pub(super) fn finish(&mut self) {
        let Some(mut segment) = self.making.take() else { return };
        let clear = std::mem::take(&mut segment.clear);
        // CBC and padding are of all of a segment: its parts are encrypted each on its own.
        if let Some(key) = self.settings.key.filter(|_| segment.parts.len() > 1 && !segment.gap) {
            let encrypted: Arc<[u8]> = key.encrypt(&clear, segment.number).into();
            self.bytes += encrypted.len();
            segment.encrypted = Some(encrypted);
        }
        self.cut += segment.duration;
        // RFC 8216, section 4.3.3.1: "The EXTINF duration of each Media Segment in the Playlist file, when rounded to the
        // nearest integer, MUST be less than or equal to the target duration"; section 6.2.1: "The value of the
        // EXT-X-TARGETDURATION tag in the Media Playlist MUST NOT change." So the first segment decides, and the cutter ends
        // later ones in time, without a keyframe if it has to.
        let longest = self.settings.segment.as_millis().div_ceil(1_000);
        let first = (segment.duration.as_millis() + 500) / 1_000;
        self.target.get_or_insert(longest.max(first).max(1) as u64);
        self.segments.push_back(segment);
        self.slide();
        self.longest = self.longest.max(self.listed().map(|segment| segment.duration).sum());
        self.forget();
    }

    /// Takes segments out of the playlist.
    fn slide(&mut self) {
        let Some(target) = self.target else { return };
        // RFC 8216, section 6.2.2: "The server MUST NOT remove a Media Segment from a Playlist file without an EXT-X-ENDLIST
        // tag if that would produce a Playlist whose duration is less than three times the target duration."
        let least = Duration::from_secs(3 * target);
        let mut listed: Duration = self.listed().map(|segment| segment.duration).sum();
        while self.listed().len() > self.settings.segments.max(1) {
            let Some(first) = self.segments.get_mut(self.retired) else { return };
            if listed - first.duration < least {
                return;
            }
            listed -= first.duration;
            first.retired = Some(self.cut);
            // Section 6.2.2: the EXT-X-DISCONTINUITY-SEQUENCE counts the EXT-X-DISCONTINUITY tags that were removed.
            self.discontinuities += u64::from(first.discontinuity);
            self.retired += 1;
        }
    }

    /// Forgets segments that nobody may load any more, or that there is no room for.
    fn forget(&mut self) {
        while let Some(first) = self.segments.front() {
            // Section 6.2.2: "When the server removes a Media Segment URI from the Playlist, the corresponding Media Segment MUST
            // remain available to clients for a period of time equal to the duration of the segment plus the duration of the longest
            // Playlist file distributed by the server containing that segment."
            let is_over = first.retired.is_some_and(|at| self.cut >= at + first.duration + self.longest);
            if !is_over && (self.bytes <= MOST_BYTES || self.segments.len() == 1) {
                return;
            }
            self.bytes -= first.bytes();
            if first.retired.is_none() {
                self.discontinuities += u64::from(first.discontinuity);
            }
            self.retired = self.retired.saturating_sub(1);
            self.segments.pop_front();
        }
    }

    /// A segment, by its Media Sequence Number.
    pub(super) fn segment(&self, number: u64) -> Lookup {
        let first = self.segments.front().map_or(0, |segment| segment.number);
        let place = number.checked_sub(first).and_then(|place| usize::try_from(place).ok());
        match place.and_then(|place| self.segments.get(place)) {
            Some(segment) if !segment.gap => Lookup::Found(match &segment.encrypted {
                Some(encrypted) => vec![encrypted.clone()],
                None => segment.parts.iter().map(|part| part.bytes.clone()).collect(),
            }),
            _ => Lookup::Missing,
        }
    }

    /// A part, by its name; the next one is waited for while the publication goes on.
    pub(super) fn part(&self, id: u64) -> Lookup {
        if id == self.next_part && !self.has_ended {
            return Lookup::NotYet;
        }
        let mut all = self.making.iter().chain(self.segments.iter().rev());
        let found = all.find_map(|segment| {
            let part = segment.parts.iter().find(|part| part.id == id)?;
            (!segment.gap).then(|| part.bytes.clone())
        });
        found.map_or(Lookup::Missing, |bytes| Lookup::Found(vec![bytes]))
    }

    /// What segments are encrypted with.
    pub(super) fn key(&self) -> Lookup {
        let octets = self.settings.key.as_ref().map(|key| vec![Arc::from(key.octets())]);
        octets.map_or(Lookup::Missing, Lookup::Found)
    }

    /// A Media Initialization Section.
    pub(super) fn map(&self, id: u64) -> Lookup {
        let mut maps = self.making.iter().chain(&self.segments).filter_map(|segment| segment.map.as_ref());
        maps.find(|map| map.id == id).map_or(Lookup::Missing, |map| Lookup::Found(vec![map.bytes.clone()]))
    }

    #[cfg(test)]
    pub(super) fn kept(&self) -> impl Iterator<Item = u64> {
        self.segments.iter().map(|segment| segment.number)
    }
}
