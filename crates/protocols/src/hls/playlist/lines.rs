//! What the lines of a playlist add up to.

use super::{
    Key, LONGEST, LowLatency, MediaPlaylist, Multivariant, Part, Playlist, PlaylistError, PreloadHint,
    RenditionReport, Resource, SHORTEST_PART, Segment, StartOffset,
};
use crate::hls::date::{self, Date};
use crate::hls::decryption::InitializationVector;
use crate::hls::variables::Variables;
use crate::hls::variant::Variant;
use quick_m3u8::tag::hls::{self, EnumeratedString, MediaType, Method, PreloadHintType, Tag};
use std::sync::Arc;
use std::time::Duration;

/// A playlist reports on its Renditions, of which Multivariant Playlists name tens.
const MOST_REPORTS: usize = 256;

/// A duration that can be believed.
fn seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok().filter(|it| *it <= LONGEST)
}

/// What was read so far.
#[derive(Debug, Default)]
pub(super) struct Lines {
    media: MediaPlaylist,
    target: Option<Duration>,
    variants: Vec<Variant>,
    /// The groups of audio renditions of the variants, in their order.
    audio: Vec<Option<String>>,
    /// Renditions of sound, in their order.
    renditions: Vec<AudioRendition>,
    /// The next URI is that of a variant with this bandwidth and group of audio renditions.
    variant: Option<(u64, Option<String>)>,
    /// What was said of the next segment.
    duration: Option<f64>,
    is_gap: bool,
    is_discontinuous: bool,
    part_target: Option<Duration>,
    part_hold_back: Option<Duration>,
    range: Option<(u64, Option<u64>)>,
    map: Option<Arc<Resource>>,
    key: Option<Arc<Key>>,
    /// The key of `map`: one that is named before it (RFC 8216, section 4.3.2.4).
    map_key: Option<Arc<Key>>,
    /// The next segments are encrypted in a way that is not read.
    is_sealed: bool,
    /// A tag has said by now whether they are encrypted.
    names_key: bool,
    /// When the next segment begins.
    date: Option<Date>,
}

/// A rendition of sound (`EXT-X-MEDIA`).
#[derive(Debug)]
struct AudioRendition {
    group: String,
    /// Its playlist; without one, it is in that of the variant (RFC 8216, section 4.3.4.2.1).
    uri: Option<String>,
    is_default: bool,
}

impl Lines {
    pub(super) fn tag(&mut self, tag: &Tag<'_>) -> Result<(), PlaylistError> {
        match tag {
            Tag::Targetduration(tag) => {
                // One of 0 would have playlists loaded without end.
                let target = Duration::from_secs(tag.target_duration().max(1));
                self.target = Some(target.min(LONGEST));
            }
            Tag::MediaSequence(tag) => self.media.first = tag.media_sequence(),
            Tag::Endlist(_) => self.media.has_ended = true,
            Tag::Inf(tag) => self.duration = Some(tag.duration()),
            Tag::Byterange(tag) => self.range = Some((tag.length(), tag.offset())),
            Tag::Gap(_) => self.is_gap = true,
            Tag::Discontinuity(_) => self.is_discontinuous = true,
            Tag::Key(tag) => self.key(tag),
            Tag::Start(tag) => {
                let offset = tag.time_offset();
                let from_end = offset.is_sign_negative();
                self.media.start = seconds(offset.abs()).map(|offset| StartOffset { offset, from_end });
            }
            Tag::ServerControl(tag) => {
                self.media.can_block = tag.can_block_reload();
                self.media.skip_until = tag.can_skip_until().and_then(seconds);
                self.media.hold_back = tag.hold_back().and_then(seconds);
                self.part_hold_back = tag.part_hold_back().and_then(seconds);
            }
            // A target of 0 would have playlists asked for without end.
            Tag::PartInf(tag) => {
                self.part_target = seconds(tag.part_target()).map(|it| it.max(SHORTEST_PART));
            }
            Tag::Part(tag) => self.part(tag)?,
            Tag::PreloadHint(tag) if tag.hint_type() == EnumeratedString::Known(PreloadHintType::Part) => {
                // Without a length it goes to the end of the resource, which is the part if it begins with it.
                let range = tag.byterange_length().map(|length| (tag.byterange_start(), length));
                let is_known = range.is_some() || tag.byterange_start() == 0;
                let resource = Resource { uri: tag.uri().to_owned(), range };
                let (names_key, is_encrypted) = (self.names_key, self.key.is_some() || self.is_sealed);
                let map = self.map.clone();
                self.media.hint = is_known.then_some(PreloadHint { resource, map, is_encrypted, names_key });
            }
            Tag::RenditionReport(tag) if self.media.reports.len() < MOST_REPORTS => {
                let part = tag.last_part().and_then(|part| u32::try_from(part).ok());
                let (uri, segment) = (tag.uri().to_owned(), tag.last_msn());
                self.media.reports.push(RenditionReport { uri, segment, part });
            }
            Tag::Skip(tag) => self.media.left_out = tag.skipped_segments(),
            Tag::Map(tag) => {
                let range = tag.byterange().map(|range| (range.offset, range.length));
                self.map = Some(Arc::new(Resource { uri: tag.uri().to_owned(), range }));
                self.map_key.clone_from(&self.key);
            }
            Tag::StreamInf(tag) => {
                self.variant = Some((tag.bandwidth(), tag.audio().map(str::to_owned)));
            }
            Tag::Media(tag) if tag.media_type() == EnumeratedString::Known(MediaType::Audio) => {
                let (group, uri) = (tag.group_id().to_owned(), tag.uri().map(str::to_owned));
                self.renditions.push(AudioRendition { group, uri, is_default: tag.default() });
            }
            _ => {}
        }
        Ok(())
    }

    /// `EXT-X-PROGRAM-DATE-TIME`. One that cannot be read is passed over.
    pub(super) fn date(&mut self, text: &str) {
        self.date = date::read(text).or(self.date);
    }

    /// Several with different formats are ways to the same segments (RFC 8216, section 4.3.2.4).
    fn key(&mut self, tag: &hls::Key<'_>) {
        self.names_key = true;
        match (tag.method(), tag.uri()) {
            (EnumeratedString::Known(Method::None), _) => (self.key, self.is_sealed) = (None, false),
            (EnumeratedString::Known(Method::Aes128), Some(uri)) if tag.keyformat() == "identity" => {
                let iv = tag.iv().map(InitializationVector::read);
                // With a vector that is none, no key decrypts.
                match iv {
                    Some(None) => (self.key, self.is_sealed) = (None, true),
                    _ => self.key = Some(Arc::new(Key { uri: uri.to_owned(), iv: iv.flatten() })),
                }
            }
            _ => self.is_sealed = true,
        }
    }

    pub(super) fn uri(&mut self, uri: &str) -> Result<(), PlaylistError> {
        if uri.is_empty() {
            return Ok(());
        }
        if let Some((bandwidth, audio)) = self.variant.take() {
            self.variants.push(Variant { uri: uri.to_owned(), bandwidth, audio: None });
            self.audio.push(audio);
            return Ok(());
        }
        let duration = self.duration.take().and_then(seconds).ok_or(PlaylistError::Duration)?;
        let range = self.range.take().map(|(length, offset)| (self.offset(uri, offset), length));
        let resource = Resource { uri: uri.to_owned(), range };
        let date = self.date;
        self.number_parts(duration);
        self.date_parts(duration);
        let is_gap = std::mem::take(&mut self.is_gap);
        let segment = self.loaded_as(resource, duration, is_gap);
        self.is_discontinuous = false;
        self.media.segments.push(Segment { date, ..segment });
        Ok(())
    }

    fn loaded_as(&self, resource: Resource, duration: Duration, is_gap: bool) -> Segment {
        Segment {
            resource,
            duration,
            map: self.map.clone(),
            key: self.key.clone(),
            map_key: self.map_key.clone(),
            number: self.segment().unwrap_or_default(),
            is_sealed: self.is_sealed && self.key.is_none(),
            names_key: self.names_key,
            is_gap,
            is_part: false,
            is_discontinuous: self.is_discontinuous,
            follows_skip: false,
            date: None,
        }
    }

    fn part(&mut self, tag: &hls::Part<'_>) -> Result<(), PlaylistError> {
        let duration = seconds(tag.duration()).ok_or(PlaylistError::Duration)?;
        let before = self.media.parts.last();
        let segment = self.segment().ok_or(PlaylistError::Sequence)?;
        let beside = before.filter(|it| it.segment == segment);
        let index = beside.map_or(0, |it| it.index.saturating_add(1));
        let begin = beside.map_or(Duration::ZERO, Part::end);
        // A range without an offset begins where that of the part before it ends (draft-pantos-hls-rfc8216bis-22, section 4.4.4.9).
        let range = tag.byterange().map(|range| {
            let before = before.map(|it| &it.media.resource).filter(|it| it.uri == tag.uri());
            let end = end_of_range(before);
            self.media.lacks_offset |= range.offset.is_none() && before.is_none();
            (range.offset.unwrap_or(end), range.length)
        });
        let resource = Resource { uri: tag.uri().to_owned(), range };
        let is_discontinuous = self.is_discontinuous && index == 0;
        let media =
            Segment { is_part: true, is_discontinuous, ..self.loaded_as(resource, duration, tag.gap()) };
        self.media.parts.push(Part { segment, index, begin, media, is_independent: tag.independent() });
        Ok(())
    }

    /// The parts of the segment that is being described, which are the last that were read.
    fn parts_of_segment(&mut self) -> &mut [Part] {
        let segment = self.segment();
        let parts = &mut self.media.parts;
        let count = parts.iter().rev().take_while(|it| Some(it.segment) == segment).count();
        let first = parts.len() - count;
        &mut parts[first..]
    }

    /// Parts leave a playlist one by one (draft-pantos-hls-rfc8216bis-22, section 6.2.2: "EXT-X-PART tags SHOULD be removed from the Playlist
    /// after they are greater than three Target Durations from the end of the Playlist"), and those behind them keep their Part Index, which
    /// is their place in the segment (section 3.2). The duration of a whole segment says how much of it has left.
    fn number_parts(&mut self, duration: Duration) {
        let part_target = self.part_target;
        let parts = self.parts_of_segment();
        let longest = parts.iter().map(|it| it.media.duration).max().unwrap_or_default();
        let left = duration.saturating_sub(parts.iter().map(|it| it.media.duration).sum());
        let each = part_target.unwrap_or(longest);
        // Servers round durations.
        if each.is_zero() || left < each / 2 {
            return;
        }
        let count = left.div_duration_f64(each).round() as u32;
        for part in parts {
            (part.index, part.begin) = (part.index.saturating_add(count), part.begin + left);
        }
    }

    /// Gives the parts of the segment that is described, which is this long, their dates, and moves the date to its end.
    fn date_parts(&mut self, duration: Duration) {
        let Some(date) = self.date else { return };
        for part in self.parts_of_segment() {
            part.media.date = Some(date.saturating_add(nanoseconds(part.begin)));
        }
        self.date = Some(date.saturating_add(nanoseconds(duration)));
    }

    /// The Media Sequence Number of the segment that is being described.
    fn segment(&self) -> Option<u64> {
        let listed = self.media.left_out.checked_add(self.media.segments.len() as u64)?;
        self.media.first.checked_add(listed)
    }

    /// RFC 8216, section 4.3.2.2: a range without an offset begins where that of the segment before ends.
    fn offset(&mut self, uri: &str, offset: Option<u64>) -> u64 {
        let before = self.media.segments.last().map(|it| &it.resource).filter(|it| it.uri == uri);
        self.media.lacks_offset |= offset.is_none() && before.is_none();
        offset.unwrap_or(end_of_range(before))
    }

    pub(super) fn end(mut self, variables: Variables) -> Result<Playlist, PlaylistError> {
        // RFC 8216, section 4.2: a Media Sequence Number has 64 bits; that of each segment and of the one behind them is to be counted.
        self.segment().and_then(|last| last.checked_add(2)).ok_or(PlaylistError::Sequence)?;
        match self.target {
            Some(target) => {
                // draft-pantos-hls-rfc8216bis-22, section 4.4.3.8: PART-HOLD-BACK must be at least twice the Part Target Duration, and
                // should be at least three times that; a playlist with parts has to have one.
                let low_latency = self.part_target.map(|part_target| LowLatency {
                    part_target,
                    hold_back: self.part_hold_back.unwrap_or(3 * part_target).max(2 * part_target),
                });
                self.date_parts(Duration::ZERO);
                date_backwards(&mut self.media.segments);
                let first = self.media.first + self.media.left_out;
                Ok(Playlist::Media(MediaPlaylist { target, first, low_latency, ..self.media }))
            }
            None if !self.variants.is_empty() => {
                let mut variants = std::mem::take(&mut self.variants);
                for (variant, audio) in variants.iter_mut().zip(&self.audio) {
                    variant.audio = audio.as_ref().and_then(|group| self.rendition(group));
                }
                Ok(Playlist::Multivariant(Multivariant { variants, variables }))
            }
            None if !self.media.segments.is_empty() => Err(PlaylistError::NoTargetDuration),
            None => Err(PlaylistError::Empty),
        }
    }

    /// The playlist of the sound that a player begins with, of this group; `None` if it is in that of the variant.
    fn rendition(&self, group: &str) -> Option<String> {
        let mut of_group = self.renditions.iter().filter(|it| it.group == group);
        let first = of_group.clone().next();
        of_group.find(|it| it.is_default).or(first)?.uri.clone()
    }
}

fn end_of_range(resource: Option<&Resource>) -> u64 {
    resource.and_then(|it| it.range).map_or(0, |(first, length)| first.saturating_add(length))
}

pub(super) fn nanoseconds(duration: Duration) -> Date {
    duration.as_nanos() as Date
}

/// draft-pantos-hls-rfc8216bis-22, section 6.3.3: "If the first EXT-X-PROGRAM-DATE-TIME tag in a Playlist appears after one or more Media Segment
/// URIs, the Client SHOULD extrapolate backward from that tag (using EXTINF durations and/or media timestamps)".
fn date_backwards(segments: &mut [Segment]) {
    let Some(dated) = segments.iter().position(|it| it.date.is_some()) else { return };
    for index in (0..dated).rev() {
        let next = segments[index + 1].date;
        segments[index].date = next.map(|it| it.saturating_sub(nanoseconds(segments[index].duration)));
    }
}
