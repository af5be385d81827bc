//! Which parts of a segment a playlist lists, where it does not list all: those that were known before keep their Part Index.

use super::Schedule;
use crate::hls::playlist::{MediaPlaylist, Part, Resource};
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// A part that a playlist has listed.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownPart {
    segment: u64,
    index: u32,
    begin: Duration,
    /// A hash of what it is loaded from: each viewer keeps it.
    resource: u64,
}

fn hash(resource: &Resource) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&resource.uri, resource.range).hash(&mut hasher);
    hasher.finish()
}

impl KnownPart {
    pub(super) fn of(part: &Part) -> Self {
        let resource = hash(&part.media.resource);
        Self { segment: part.segment, index: part.index, begin: part.begin, resource }
    }

    /// Where its Part Index and its beginning are, if a playlist lists it elsewhere.
    fn found_elsewhere(&self, parts: &[Part]) -> Option<Shift> {
        let is_same = |part: &&Part| hash(&part.media.resource) == self.resource;
        let mut of_segment = parts.iter().filter(|it| it.segment == self.segment);
        let at_index = of_segment.clone().find(|it| it.index == self.index);
        // All parts may have one name.
        if at_index.as_ref().is_some_and(is_same) {
            return None;
        }
        let listed = of_segment.find(is_same)?;
        Some(Shift {
            segment: self.segment,
            index: (listed.index, self.index),
            begin: (listed.begin, self.begin),
        })
    }
}

/// What is wrong with the numbers of the parts of a segment: what the playlist alone says of one of them, and what it is.
struct Shift {
    segment: u64,
    index: (u32, u32),
    begin: (Duration, Duration),
}

impl Shift {
    fn apply(&self, parts: &mut [Part]) {
        for part in parts.iter_mut().filter(|it| it.segment == self.segment) {
            part.index = part.index.saturating_add(self.index.1).saturating_sub(self.index.0);
            part.begin = (part.begin + self.begin.1).saturating_sub(self.begin.0);
        }
    }
}

impl Schedule {
    /// Gives parts the numbers that they had before. Of a segment that is not whole yet, a playlist alone does not say whether it lists its
    /// first parts; of a whole one it says so by durations, which are rounded.
    pub(super) fn number_parts<'a>(&self, mut playlist: Cow<'a, MediaPlaylist>) -> Cow<'a, MediaPlaylist> {
        for known in [self.last_queued, self.last_announced].into_iter().flatten() {
            if let Some(shift) = known.found_elsewhere(&playlist.parts) {
                shift.apply(&mut playlist.to_mut().parts);
            }
        }
        if let Some(shift) = self.by_time(&playlist) {
            shift.apply(&mut playlist.to_mut().parts);
        }
        playlist
    }

    /// Where the last part that was queued has left a whole segment, media time says which of the others follow on it.
    fn by_time(&self, playlist: &MediaPlaylist) -> Option<Shift> {
        let (next, last) = (self.next?, self.last_queued?);
        let end = playlist.first.saturating_add(playlist.segments.len() as u64);
        let mut listed = playlist.parts.iter().filter(|it| it.segment == last.segment);
        let is_last = |part: &Part| part.index == last.index && hash(&part.media.resource) == last.resource;
        if last.segment >= end || listed.clone().any(is_last) {
            return None;
        }
        let follows = listed.find(|it| it.begin + it.media.duration / 2 > self.parts_of_next)?;
        let is_next = follows.begin < self.parts_of_next + follows.media.duration / 2;
        let index = if is_next { next.part } else { follows.index.max(next.part.saturating_add(1)) };
        let begin = (follows.begin, follows.begin);
        (index != follows.index).then_some(Shift {
            segment: last.segment,
            index: (follows.index, index),
            begin,
        })
    }
}
