//! What a viewer plays of one playlist: what it has loaded of it, and what is next.

use super::link::Media;
use super::reading::Reading;
use crate::hls::decryption::{Decryption, InitializationVector, KeyBytes};
use crate::hls::figures::SEALED;
use crate::hls::inspector::AnnouncedUnit;
use crate::hls::playlist::{Key, Playlist, PreloadHint, Resource, Segment};
use crate::hls::recent::RecentCache;
use crate::hls::schedule::{Directives, Schedule};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;
use weir_clients::{End, Request};
use weir_metrics::{Failure, Moment, Recorder};

/// What a request was made of: the one that its reference is relative to, the reference, and the range.
type Reference = (Arc<Request>, Box<str>, Option<(u64, u64)>);

thread_local! {
    /// The last requests of viewers of this generator thread.
    static RECENT_REQUESTS: RefCell<RecentCache<Reference, Arc<Request>>> = const { RefCell::new(RecentCache::new()) };
}

/// The request for what a playlist names, which is the same for all viewers of the playlist.
fn shared_request(
    base: &Arc<Request>,
    reference: &str,
    range: Option<(u64, u64)>,
) -> Result<Arc<Request>, String> {
    RECENT_REQUESTS.with_borrow_mut(|recent| {
        let is_this =
            |(of, it, part): &Reference| Arc::ptr_eq(of, base) && **it == *reference && *part == range;
        if let Some(request) = recent.get(is_this) {
            return Ok(request);
        }
        let request = Arc::new(base.named(reference, range)?);
        recent.put((Arc::clone(base), reference.into(), range), Arc::clone(&request));
        Ok(request)
    })
}

pub(super) struct Track {
    /// The playlist to load: the one of the URL, then the Media Playlist of the variant that was chosen.
    pub(super) playlist: Arc<Request>,
    /// Whether it was loaded, and is a Media Playlist.
    pub(super) is_media: bool,
    /// Where redirects led for the playlist: its URIs are relative to that (RFC 3986, section 5.1.3).
    pub(super) base: Option<Arc<Request>>,
    pub(super) schedule: Schedule,
    /// The last two keys that were loaded, the last first: a Media Initialization Section may have another than its segments.
    keys: [Option<(Arc<Key>, KeyBytes)>; 2],
    /// The last Media Initialization Section that was loaded.
    pub(super) map: Option<Arc<Resource>>,
    /// The playlist of a recording, of a viewer that goes to other places of it.
    pub(super) recording: Option<Arc<Playlist>>,
    /// What is to be buffered before playback starts; `None` before the first segment is named.
    pub(super) start: Option<Duration>,
    /// Media time that was loaded.
    pub(super) loaded: Duration,
    /// What of it lies before the place that the player began to show.
    pub(super) lead: Duration,
    /// The part that was asked for before it was there, and is whole, and how many bytes it has.
    pub(super) hinted: Option<(Resource, u64)>,
    /// The hint that came to nothing.
    pub(super) failed_hint: Option<Resource>,
    /// A segment was met that is encrypted in a way that is not read.
    is_sealed: bool,
    /// Whether parts that are ranges of an encrypted segment are encrypted each alone, once that is known.
    pub(super) ranges_are_alone: Option<bool>,
}

impl Track {
    pub(super) fn new(playlist: Arc<Request>, schedule: Schedule) -> Self {
        Self {
            playlist,
            is_media: false,
            base: None,
            schedule,
            keys: [None, None],
            map: None,
            recording: None,
            start: None,
            loaded: Duration::ZERO,
            lead: Duration::ZERO,
            hinted: None,
            failed_hint: None,
            is_sealed: false,
            ranges_are_alone: None,
        }
    }

    /// How a witness reads a segment: what it is encrypted with was loaded before it. A part has the key and the vector of its segment,
    /// and is encrypted alone: its padding is its own. Whether one that is a range of its segment is, no playlist says: the first range of
    /// one does, by its padding.
    pub(super) fn reading(&self, segment: &Segment) -> Reading {
        let Some(key) = &segment.key else { return Reading::Clear };
        let iv = key.iv.unwrap_or(InitializationVector::of_segment(segment.number));
        match (segment.resource.range.filter(|_| segment.is_part), self.ranges_are_alone) {
            // One noise in 256 ends as padding does: each segment is asked.
            (Some((0, _)), None | Some(true)) => match self.decryption(key, iv) {
                Reading::Encrypted(decryption) => Reading::FirstRange(decryption),
                reading => reading,
            },
            (None, _) | (Some(_), Some(true)) => self.decryption(key, iv),
            (Some(_), None | Some(false)) => Reading::Opaque,
        }
    }

    /// How a witness reads what is loaded before a segment: by the key that the playlist names before it (RFC 8216, section 4.3.2.4). That has
    /// to have a vector (section 4.3.2.5), since it has no Media Sequence Number: without one it is not read.
    pub(super) fn map_reading(&self, segment: &Segment) -> Reading {
        match &segment.map_key {
            None => Reading::Clear,
            Some(key) => key.iv.map_or(Reading::Opaque, |iv| self.decryption(key, iv)),
        }
    }

    fn decryption(&self, key: &Key, iv: InitializationVector) -> Reading {
        let loaded = self.keys.iter().flatten().find(|(loaded, _)| loaded.uri == key.uri);
        loaded.map_or(Reading::Opaque, |(_, bytes)| Reading::Encrypted(Box::new(Decryption::new(*bytes, iv))))
    }

    /// The key that is to be loaded before a segment, or before the map that it needs.
    pub(super) fn lacking_key(&self, segment: &Segment, map: Option<&Arc<Resource>>) -> Option<Arc<Key>> {
        let of_map = segment.map_key.as_ref().filter(|_| map.is_some());
        let lacks = |key: &&Arc<Key>| !self.keys.iter().flatten().any(|(loaded, _)| loaded.uri == key.uri);
        segment.key.as_ref().into_iter().chain(of_map).find(lacks).cloned()
    }

    /// The next playlist is that of another variant: the same names may mean something else there.
    pub(super) fn forget(&mut self) {
        (self.map, self.keys, self.recording, self.ranges_are_alone) = (None, [None, None], None, None);
    }

    pub(super) fn take_key(&mut self, key: Arc<Key>, bytes: KeyBytes) {
        self.keys.rotate_right(1);
        self.keys[0] = Some((key, bytes));
    }

    /// A segment, or a part, cannot be read by a key alone: told of once.
    pub(super) fn seal(&mut self, recorder: &mut Recorder) {
        if !std::mem::replace(&mut self.is_sealed, true) {
            recorder.count(SEALED, 1);
        }
    }

    /// Media time that is there to be shown.
    pub(super) fn shown(&self) -> Duration {
        self.loaded.saturating_sub(self.lead)
    }

    /// The request for what the playlist names.
    pub(super) fn named(&self, resource: &Resource) -> Result<Arc<Request>, End> {
        let base = self.base.as_ref().unwrap_or(&self.playlist);
        shared_request(base, &resource.uri, resource.range).map_err(|cause| {
            (Failure::MalformedInput, format!("the playlist names what is no URL of HTTP: {cause}"))
        })
    }

    /// The query that the playlist was asked for with.
    pub(super) fn query(&self) -> &str {
        self.playlist.target().path.split_once('?').map_or("", |(_, query)| query)
    }

    /// The request for the playlist, with what it is to be answered with (draft-pantos-hls-rfc8216bis-22, section 6.2.5): behind the
    /// query that its URL has.
    pub(super) fn with_directives(&self, directives: Directives) -> Result<Arc<Request>, End> {
        let mut asked = Vec::new();
        if let Some((segment, part)) = directives.until {
            asked.push(format!("_HLS_msn={segment}"));
            asked.extend(part.map(|part| format!("_HLS_part={part}")));
        }
        if directives.skips {
            asked.push("_HLS_skip=YES".to_owned());
        }
        if asked.is_empty() {
            return Ok(Arc::clone(&self.playlist));
        }
        let query = Some(self.query()).filter(|query| !query.is_empty());
        let query: Vec<_> = query.into_iter().chain(asked.iter().map(String::as_str)).collect();
        let query = format!("?{}", query.join("&"));
        shared_request(&self.playlist, &query, None).map_err(|cause| (Failure::MalformedInput, cause))
    }

    /// The part to ask for before it is there: what the last playlist says will follow on all that it names.
    pub(super) fn hint(&self) -> Option<PreloadHint> {
        let hint = self.schedule.hint().filter(|hint| hint.map == self.map)?;
        let is_new = self.failed_hint.as_ref() != Some(&hint.resource)
            && self.hinted.as_ref().is_none_or(|(it, _)| *it != hint.resource);
        is_new.then(|| hint.clone())
    }

    /// Whether the playlist was asked for, or is to be.
    pub(super) fn wants_playlist(&self, now: Moment, has_own_link: bool) -> bool {
        !self.is_media || self.schedule.reload_at(now, has_own_link).is_some_and(|at| at <= now)
    }
}

impl Media {
    pub(super) fn of(segment: &Segment, is_hinted: bool) -> Self {
        let Segment { duration, is_part, number, is_discontinuous, .. } = *segment;
        Self { duration, is_part, end_date: segment.end_date(), is_hinted, number, is_discontinuous }
    }

    /// What the playlist says of it to who looks into it.
    pub(super) fn announced(&self) -> AnnouncedUnit {
        let Self { duration, number, is_discontinuous, .. } = *self;
        AnnouncedUnit { duration, number, is_discontinuous }
    }
}
