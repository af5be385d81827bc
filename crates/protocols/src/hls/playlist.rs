//! Playlists, read from bytes by `quick-m3u8` line by line (RFC 8216, section 4). Knows no link and no time.

mod lines;

use self::lines::{Lines, nanoseconds};
use super::date::Date;
use super::decryption::InitializationVector;
use super::playlist_error::PlaylistError;
use super::recent::RecentCache;
use super::variables::{self, Variables, expand};
use super::variant::Variant;
use quick_m3u8::config::ParsingOptionsBuilder;
use quick_m3u8::tag::KnownTag;
use quick_m3u8::{HlsLine, Reader};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

/// The longest playlist that is read: 13,000 segments under signed URLs of 600 bytes, which is a day of segments of six seconds.
pub(super) const LONGEST_PLAYLIST: usize = 8 << 20;

/// The longest playlist that is kept for the next viewer of it: longer ones are those of recordings, which a viewer loads once.
const LONGEST_KEPT: usize = 64 << 10;

thread_local! {
    /// The last playlists that viewers of this generator thread were sent.
    static RECENT_PLAYLISTS: RefCell<RecentCache<Box<[u8]>, Arc<Playlist>>> = const { RefCell::new(RecentCache::new()) };
}

/// The shortest Part Target Duration that is believed: three pictures at 60 a second. Servers use 200 ms and more.
const SHORTEST_PART: Duration = Duration::from_millis(50);

/// The tag that dates are read of here: the library takes no zone without a colon, as ffmpeg's muxer writes it.
const DATE: &[u8] = b"#EXT-X-PROGRAM-DATE-TIME:";

/// The longest segment and target duration that are believed.
const LONGEST: Duration = Duration::from_secs(3_600);

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Playlist {
    Multivariant(Multivariant),
    Media(MediaPlaylist),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Multivariant {
    /// Its Variant Streams, in their order. Never empty.
    pub(super) variants: Vec<Variant>,
    /// What its Media Playlists may import.
    pub(super) variables: Variables,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct MediaPlaylist {
    pub(super) target: Duration,
    /// The Media Sequence Number of the first segment of these.
    pub(super) first: u64,
    pub(super) segments: Vec<Segment>,
    /// Partial Segments, of these segments and of the one behind them, in their order.
    pub(super) parts: Vec<Part>,
    /// Of a playlist with Partial Segments.
    pub(super) low_latency: Option<LowLatency>,
    /// Whether a request for what is not there yet is held until it is (`CAN-BLOCK-RELOAD`).
    pub(super) can_block: bool,
    /// How far from its end a viewer of whole segments begins at the least (`HOLD-BACK`).
    pub(super) hold_back: Option<Duration>,
    /// How far from its end a playlist may leave out what a client knows (`CAN-SKIP-UNTIL`).
    pub(super) skip_until: Option<Duration>,
    /// Segments in front of these that it leaves out (`EXT-X-SKIP`).
    pub(super) left_out: u64,
    /// Whether no more will come (`EXT-X-ENDLIST`).
    pub(super) has_ended: bool,
    /// Where to begin (`EXT-X-START`).
    pub(super) start: Option<StartOffset>,
    /// The part that is to come (`EXT-X-PRELOAD-HINT`).
    pub(super) hint: Option<PreloadHint>,
    /// How far other Renditions are (`EXT-X-RENDITION-REPORT`).
    pub(super) reports: Vec<RenditionReport>,
    /// A range has no offset, and what it would follow on is not there: taken as 0, as players do, which is wrong if it was left out.
    pub(super) lacks_offset: bool,
}

/// Where the author wants viewers to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StartOffset {
    pub(super) offset: Duration,
    /// Counted back from the end of the playlist.
    pub(super) from_end: bool,
}

/// A Partial Segment that a client may ask for before it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PreloadHint {
    pub(super) resource: Resource,
    /// What has to be loaded before it.
    pub(super) map: Option<Arc<Resource>>,
    /// Whether it is encrypted, if nothing changes that before it is named.
    pub(super) is_encrypted: bool,
    /// Whether the playlist says so: a Delta Update may have left the tag out.
    pub(super) names_key: bool,
}

/// The last segment, and part of it, that another Rendition has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RenditionReport {
    pub(super) uri: String,
    pub(super) segment: u64,
    pub(super) part: Option<u32>,
}

/// What a segment is decrypted with (`EXT-X-KEY` of `METHOD=AES-128`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) uri: String,
    /// `IV`, if it has one.
    pub(super) iv: Option<InitializationVector>,
}

/// What a playlist with Partial Segments says of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LowLatency {
    /// The Part Target Duration.
    pub(super) part_target: Duration,
    /// How far from its end a viewer begins (`PART-HOLD-BACK`).
    pub(super) hold_back: Duration,
}

/// A Partial Segment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    /// The Media Sequence Number of its segment.
    pub(super) segment: u64,
    /// Its Part Index there.
    pub(super) index: u32,
    /// Media time of its segment that lies before it.
    pub(super) begin: Duration,
    /// The part as it is loaded.
    pub(super) media: Segment,
    /// Whether it has a picture that a player can begin with.
    pub(super) is_independent: bool,
}

/// A Media Segment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Segment {
    pub(super) resource: Resource,
    pub(super) duration: Duration,
    /// What has to be loaded before it (`EXT-X-MAP`).
    pub(super) map: Option<Arc<Resource>>,
    /// The key that a player loads before it.
    pub(super) key: Option<Arc<Key>>,
    /// The key that what is loaded before it is encrypted with.
    pub(super) map_key: Option<Arc<Key>>,
    /// Its Media Sequence Number, or that of the segment that it is a part of.
    pub(super) number: u64,
    /// Whether it is encrypted in a way that needs more than a key (SAMPLE-AES, or a format of keys of a system of rights).
    pub(super) is_sealed: bool,
    /// Whether a tag before it says how it is encrypted, or that it is not: a Delta Update may have left that out.
    pub(super) names_key: bool,
    /// Whether it is not there (`EXT-X-GAP`).
    pub(super) is_gap: bool,
    /// Whether it is a Partial Segment.
    pub(super) is_part: bool,
    /// Whether it has other timestamps than what comes before it (`EXT-X-DISCONTINUITY`).
    pub(super) is_discontinuous: bool,
    /// Whether its viewer left out what comes before it, which no playlist says.
    pub(super) follows_skip: bool,
    /// When its beginning was captured, by the server (`EXT-X-PROGRAM-DATE-TIME`).
    pub(super) date: Option<Date>,
}

impl MediaPlaylist {
    /// Media time of the segments that it names.
    pub(super) fn duration(&self) -> Duration {
        self.segments.iter().map(|it| it.duration).sum()
    }
}

impl Part {
    /// Media time of its segment up to its end.
    pub(super) fn end(&self) -> Duration {
        self.begin + self.media.duration
    }
}

impl Segment {
    /// When its end was captured.
    pub(super) fn end_date(&self) -> Option<Date> {
        self.date.map(|date| date.saturating_add(nanoseconds(self.duration)))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resource {
    pub(super) uri: String,
    /// Its first byte and its length, if it is not all of what is there.
    pub(super) range: Option<(u64, u64)>,
}

impl Playlist {
    /// As [`Self::parse`], of bytes that other viewers were sent as well.
    pub(super) fn parse_shared(
        bytes: &[u8],
        imports: &Variables,
        query: &str,
    ) -> Result<Arc<Self>, PlaylistError> {
        RECENT_PLAYLISTS.with_borrow_mut(|recent| {
            if let Some(playlist) = recent.get(|kept| **kept == *bytes) {
                return Ok(playlist);
            }
            let playlist = Arc::new(Self::parse(bytes, imports, query)?);
            // What defines variables depends on more than its bytes.
            if bytes.len() <= LONGEST_KEPT && !variables::are_defined(bytes) {
                recent.put(bytes.into(), Arc::clone(&playlist));
            }
            Ok(playlist)
        })
    }

    /// Reads a playlist, which may import these variables and those of the query of its URL.
    pub(super) fn parse(bytes: &[u8], imports: &Variables, query: &str) -> Result<Self, PlaylistError> {
        let text = std::str::from_utf8(bytes).map_err(|_| PlaylistError::NotText)?;
        // RFC 8216, section 4.1 forbids a byte order mark; players pass over it.
        let text = text.trim_start_matches('\u{FEFF}');
        if !text.starts_with("#EXTM3U") {
            let text = text.trim_ascii_start();
            let begins = |with: &str| text.get(..with.len()).is_some_and(|it| it.eq_ignore_ascii_case(with));
            let is_page = ["<!doctype html", "<html", "<head", "<body"].into_iter().any(begins);
            return Err(if is_page { PlaylistError::Page } else { PlaylistError::NoPlaylist });
        }
        let (text, variables) = expand(text, imports, query)?;
        let mut lines = Lines::default();
        let options = ParsingOptionsBuilder::new()
            .with_parsing_for_targetduration()
            .with_parsing_for_media_sequence()
            .with_parsing_for_endlist()
            .with_parsing_for_inf()
            .with_parsing_for_byterange()
            .with_parsing_for_map()
            .with_parsing_for_gap()
            .with_parsing_for_discontinuity()
            .with_parsing_for_stream_inf()
            .with_parsing_for_media()
            .with_parsing_for_server_control()
            .with_parsing_for_part_inf()
            .with_parsing_for_part()
            .with_parsing_for_skip()
            .with_parsing_for_key()
            .with_parsing_for_start()
            .with_parsing_for_preload_hint()
            .with_parsing_for_rendition_report()
            .build();
        let mut reader = Reader::from_str(&text, options);
        loop {
            match reader.read_line() {
                Ok(Some(HlsLine::KnownTag(KnownTag::Hls(tag)))) => lines.tag(&tag)?,
                Ok(Some(HlsLine::Uri(uri))) => lines.uri(uri.trim())?,
                Ok(Some(HlsLine::UnknownTag(tag))) => {
                    let date = tag.as_bytes().strip_prefix(DATE).and_then(|it| std::str::from_utf8(it).ok());
                    date.into_iter().for_each(|date| lines.date(date));
                }
                // RFC 8216, section 6.3.1: what a client does not know it passes over.
                Ok(Some(_)) | Err(_) => {}
                Ok(None) => return lines.end(variables),
            }
        }
    }
}

#[cfg(test)]
mod tests;
