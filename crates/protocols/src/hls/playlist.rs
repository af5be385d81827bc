//! Playlists, read from bytes by `quick-m3u8` line by line (RFC 8216, section 4). Knows no link and no time.

use super::variant::Variant;
use quick_m3u8::config::ParsingOptionsBuilder;
use quick_m3u8::tag::KnownTag;
use quick_m3u8::tag::hls::{self, EnumeratedString, MediaType, Tag};
use quick_m3u8::{HlsLine, Reader};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// The longest playlist that is read: a day of segments of four seconds, 48 bytes each.
pub(super) const LONGEST_PLAYLIST: usize = 1 << 20;

/// The shortest Part Target Duration that is believed: three pictures at 60 a second. Servers use 200 ms and more.
const SHORTEST_PART: Duration = Duration::from_millis(50);

/// The longest segment and target duration that are believed.
const LONGEST: Duration = Duration::from_secs(3_600);

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Playlist {
    /// A Multivariant Playlist: its Variant Streams, in their order. Never empty.
    Multivariant(Vec<Variant>),
    Media(MediaPlaylist),
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
    /// Whether it is not there (`EXT-X-GAP`).
    pub(super) is_gap: bool,
    /// Whether it is a Partial Segment.
    pub(super) is_part: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resource {
    pub(super) uri: String,
    /// Its first byte and its length, if it is not all of what is there.
    pub(super) range: Option<(u64, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum PlaylistError {
    #[error("the answer is no playlist: it does not begin with #EXTM3U")]
    NoPlaylist,
    #[error("the playlist is not text in UTF-8")]
    NotText,
    #[error("the playlist names no segment, no variant and no target duration")]
    Empty,
    #[error("the playlist has segments and no EXT-X-TARGETDURATION")]
    NoTargetDuration,
    #[error("the playlist has a segment without a duration that can be believed (EXTINF)")]
    Duration,
    #[error("the playlist's Media Sequence Numbers go beyond 64 bits")]
    Sequence,
}

impl Playlist {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, PlaylistError> {
        let text = std::str::from_utf8(bytes).map_err(|_| PlaylistError::NotText)?;
        // RFC 8216, section 4.1 forbids a byte order mark; players pass over it.
        let text = text.trim_start_matches('\u{FEFF}');
        if !text.starts_with("#EXTM3U") {
            return Err(PlaylistError::NoPlaylist);
        }
        let mut lines = Lines::default();
        let options = ParsingOptionsBuilder::new()
            .with_parsing_for_targetduration()
            .with_parsing_for_media_sequence()
            .with_parsing_for_endlist()
            .with_parsing_for_inf()
            .with_parsing_for_byterange()
            .with_parsing_for_map()
            .with_parsing_for_gap()
            .with_parsing_for_stream_inf()
            .with_parsing_for_media()
            .with_parsing_for_server_control()
            .with_parsing_for_part_inf()
            .with_parsing_for_part()
            .with_parsing_for_skip()
            .build();
        let mut reader = Reader::from_str(text, options);
        loop {
            match reader.read_line() {
                Ok(Some(HlsLine::KnownTag(KnownTag::Hls(tag)))) => lines.tag(&tag)?,
                Ok(Some(HlsLine::Uri(uri))) => lines.uri(uri.trim())?,
                // RFC 8216, section 6.3.1: what a client does not know it passes over.
                Ok(Some(_)) | Err(_) => {}
                Ok(None) => return lines.end(),
            }
        }
    }
}

/// A duration that can be believed.
fn seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok().filter(|it| *it <= LONGEST)
}

/// What was read so far.
#[derive(Debug, Default)]
struct Lines {
    media: MediaPlaylist,
    target: Option<Duration>,
    variants: Vec<Variant>,
    /// The groups of audio renditions of the variants, in their order.
    audio: Vec<Option<String>>,
    /// Groups in which a rendition has a playlist of its own.
    audio_apart: HashSet<String>,
    /// The next URI is that of a variant with this bandwidth and group of audio renditions.
    variant: Option<(u64, Option<String>)>,
    /// What was said of the next segment.
    duration: Option<f64>,
    is_gap: bool,
    part_target: Option<Duration>,
    part_hold_back: Option<Duration>,
    range: Option<(u64, Option<u64>)>,
    map: Option<Arc<Resource>>,
}

impl Lines {
    fn tag(&mut self, tag: &Tag<'_>) -> Result<(), PlaylistError> {
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
            Tag::Skip(tag) => self.media.left_out = tag.skipped_segments(),
            Tag::Map(tag) => {
                let range = tag.byterange().map(|range| (range.offset, range.length));
                self.map = Some(Arc::new(Resource { uri: tag.uri().to_owned(), range }));
            }
            Tag::StreamInf(tag) => {
                self.variant = Some((tag.bandwidth(), tag.audio().map(str::to_owned)));
            }
            // RFC 8216, section 4.3.4.2.1: without a URI, the rendition is in the playlist of the variant.
            Tag::Media(tag)
                if tag.media_type() == EnumeratedString::Known(MediaType::Audio) && tag.uri().is_some() =>
            {
                self.audio_apart.insert(tag.group_id().to_owned());
            }
            _ => {}
        }
        Ok(())
    }

    fn uri(&mut self, uri: &str) -> Result<(), PlaylistError> {
        if uri.is_empty() {
            return Ok(());
        }
        if let Some((bandwidth, audio)) = self.variant.take() {
            self.variants.push(Variant { uri: uri.to_owned(), bandwidth, has_audio_apart: false });
            self.audio.push(audio);
            return Ok(());
        }
        let duration = self.duration.take().and_then(seconds).ok_or(PlaylistError::Duration)?;
        let range = self.range.take().map(|(length, offset)| (self.offset(uri, offset), length));
        let resource = Resource { uri: uri.to_owned(), range };
        let (map, is_gap) = (self.map.clone(), std::mem::take(&mut self.is_gap));
        self.media.segments.push(Segment { resource, duration, map, is_gap, is_part: false });
        Ok(())
    }

    fn part(&mut self, tag: &hls::Part<'_>) -> Result<(), PlaylistError> {
        let duration = seconds(tag.duration()).ok_or(PlaylistError::Duration)?;
        let before = self.media.parts.last();
        let segment = self.segment().ok_or(PlaylistError::Sequence)?;
        let index = before.filter(|it| it.segment == segment).map_or(0, |it| it.index + 1);
        // A range without an offset begins where that of the part before it ends (draft-pantos-hls-rfc8216bis-22, section 4.4.4.9).
        let range = tag.byterange().map(|range| {
            let before = before.map(|it| &it.media.resource).filter(|it| it.uri == tag.uri());
            let end =
                before.and_then(|it| it.range).map_or(0, |(first, length)| first.saturating_add(length));
            (range.offset.unwrap_or(end), range.length)
        });
        let resource = Resource { uri: tag.uri().to_owned(), range };
        let (map, is_gap) = (self.map.clone(), tag.gap());
        let media = Segment { resource, duration, map, is_gap, is_part: true };
        self.media.parts.push(Part { segment, index, media, is_independent: tag.independent() });
        Ok(())
    }

    /// The Media Sequence Number of the segment that is being described.
    fn segment(&self) -> Option<u64> {
        let listed = self.media.left_out.checked_add(self.media.segments.len() as u64)?;
        self.media.first.checked_add(listed)
    }

    /// RFC 8216, section 4.3.2.2: a range without an offset begins where that of the segment before ends.
    fn offset(&self, uri: &str, offset: Option<u64>) -> u64 {
        let before = self.media.segments.last().map(|it| &it.resource).filter(|it| it.uri == uri);
        let end = before.and_then(|it| it.range).map_or(0, |(first, length)| first.saturating_add(length));
        offset.unwrap_or(end)
    }

    fn end(self) -> Result<Playlist, PlaylistError> {
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
                let first = self.media.first + self.media.left_out;
                Ok(Playlist::Media(MediaPlaylist { target, first, low_latency, ..self.media }))
            }
            None if !self.variants.is_empty() => {
                let mut variants = self.variants;
                for (variant, audio) in variants.iter_mut().zip(self.audio) {
                    variant.has_audio_apart = audio.is_some_and(|group| self.audio_apart.contains(&group));
                }
                Ok(Playlist::Multivariant(variants))
            }
            None if !self.media.segments.is_empty() => Err(PlaylistError::NoTargetDuration),
            None => Err(PlaylistError::Empty),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn media(text: &str) -> MediaPlaylist {
        match Playlist::parse(text.as_bytes()) {
            Ok(Playlist::Media(media)) => media,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_playlist_of_nginx_is_read() {
        let read = media(
            "#EXTM3U\r\n#EXT-X-VERSION:3\r\n#EXT-X-MEDIA-SEQUENCE:7\r\n#EXT-X-TARGETDURATION:2\r\n#EXT-X-DISCONTINUITY\r\n#EXTINF:2.000,\r\ns-7.ts\r\n\r\n#EXTINF:1.960,title\r\ns-8.ts?a=b\r\n",
        );
        assert_eq!((read.target, read.first, read.has_ended), (Duration::from_secs(2), 7, false));
        let segments: Vec<_> =
            read.segments.iter().map(|it| (&*it.resource.uri, it.duration.as_millis())).collect();
        assert_eq!(segments, [("s-7.ts", 2_000), ("s-8.ts?a=b", 1_960)]);
    }

    #[test]
    fn variants_are_told_from_segments_whatever_else_stands_between() {
        // A group may be described behind the variants that name it.
        let text = "#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"n\",URI=\"a.m3u8\"\n#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO=\"b\"\n# a comment\nlow.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=2,AUDIO=\"a\"\nmiddle.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=3,AUDIO=\"c\"\nhigh.m3u8\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"b\",NAME=\"n\"\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"c\",NAME=\"n\",URI=\"c.m3u8\"\n#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"b\",NAME=\"n\",URI=\"b.m3u8\"\n";
        let variants = [("low.m3u8", 1, false), ("middle.m3u8", 2, true), ("high.m3u8", 3, true)];
        let variants = variants.map(|(uri, bandwidth, has_audio_apart)| Variant {
            uri: uri.to_owned(),
            bandwidth,
            has_audio_apart,
        });
        assert_eq!(Playlist::parse(text.as_bytes()), Ok(Playlist::Multivariant(variants.to_vec())));
    }

    #[test]
    fn ranges_maps_gaps_and_the_end_are_read() {
        let read = media(
            "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MAP:URI=\"init.mp4\",BYTERANGE=\"10@0\"\n#EXT-X-BYTERANGE:100@10\n#EXTINF:4,\na.mp4\n#EXT-X-BYTERANGE:50\n#EXTINF:4,\na.mp4\n#EXT-X-GAP\n#EXTINF:4,\nb.mp4\n#EXT-X-ENDLIST\n",
        );
        let ranges: Vec<_> = read.segments.iter().map(|it| it.resource.range).collect();
        assert_eq!(ranges, [Some((10, 100)), Some((110, 50)), None]);
        assert_eq!(read.segments.iter().map(|it| it.is_gap).collect::<Vec<_>>(), [false, false, true]);
        let map = read.segments[0].map.as_ref().unwrap();
        assert_eq!((&*map.uri, map.range, read.has_ended), ("init.mp4", Some((0, 10)), true));
    }

    #[test]
    fn parts_are_numbered_in_their_segments_and_what_is_left_out_is_counted() {
        let read = media(
            "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.5,CAN-SKIP-UNTIL=24.0\n#EXT-X-PART-INF:PART-TARGET=0.5\n#EXT-X-MEDIA-SEQUENCE:100\n#EXT-X-SKIP:SKIPPED-SEGMENTS=7\n#EXT-X-PART:DURATION=0.5,URI=\"a.mp4\",BYTERANGE=\"10@0\",INDEPENDENT=YES\n#EXT-X-PART:DURATION=0.4,URI=\"a.mp4\",BYTERANGE=\"20\"\n#EXTINF:0.9,\na.mp4\n#EXT-X-PART:DURATION=0.5,URI=\"b.0.mp4\",GAP=YES\n#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"b.1.mp4\"\n",
        );
        let parts: Vec<_> = read
            .parts
            .iter()
            .map(|it| (it.segment, it.index, it.media.resource.range, it.is_independent))
            .collect();
        assert_eq!(
            parts,
            [(107, 0, Some((0, 10)), true), (107, 1, Some((10, 20)), false), (108, 0, None, false)]
        );
        assert_eq!((read.first, read.left_out, read.segments.len()), (107, 7, 1));
        assert!(read.can_block && read.parts[2].media.is_gap && read.parts[2].media.is_part);
        let [part_target, hold_back] = [500, 1_500].map(Duration::from_millis);
        assert_eq!(read.low_latency, Some(LowLatency { part_target, hold_back }));
        assert_eq!(read.skip_until, Some(Duration::from_secs(24)));
        // Without a hold-back of its own, three parts.
        let bare = media("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-PART-INF:PART-TARGET=0\n");
        assert_eq!(bare.low_latency.unwrap().hold_back, 3 * SHORTEST_PART);
    }

    #[test]
    fn what_is_no_playlist_is_named() {
        for (text, expected) in [
            ("<html>", PlaylistError::NoPlaylist),
            ("", PlaylistError::NoPlaylist),
            ("#EXTM3U\n", PlaylistError::Empty),
            ("#EXTM3U\n#EXTINF:2,\na.ts\n", PlaylistError::NoTargetDuration),
            ("#EXTM3U\n#EXT-X-TARGETDURATION:2\na.ts\n", PlaylistError::Duration),
            ("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:-1,\na.ts\n", PlaylistError::Duration),
            ("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:1e300,\na.ts\n", PlaylistError::Duration),
        ] {
            assert_eq!(Playlist::parse(text.as_bytes()), Err(expected), "{text}");
        }
        assert_eq!(Playlist::parse(b"#EXTM3U\n\xFF"), Err(PlaylistError::NotText));
        let beyond = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:18446744073709551614\n#EXTINF:2,\na.ts\n";
        assert_eq!(Playlist::parse(beyond.as_bytes()), Err(PlaylistError::Sequence));
        let never = media("#EXTM3U\n#EXT-X-TARGETDURATION:0\n");
        assert_eq!((never.target, never.segments.len()), (Duration::from_secs(1), 0));
    }

    proptest! {
        #[test]
        fn nothing_that_comes_can_break_it(lines in prop::collection::vec(prop::sample::select(vec![
            "#EXTINF:2,", "#EXTINF:nan,", "#EXTINF:", "a.ts", "#EXT-X-TARGETDURATION:2", "#EXT-X-BYTERANGE:18446744073709551615@9",
            "#EXT-X-BYTERANGE:9", "#EXT-X-MAP:URI=\"a\"", "#EXT-X-MAP:", "#EXT-X-STREAM-INF:BANDWIDTH=1", "#EXT-X-STREAM-INF:AUDIO=\"a\"",
            "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"\",URI=\"a\"", "#EXT-X-GAP", "#", "\u{e9}",
            "#EXT-X-MEDIA-SEQUENCE:99999999999999999999", "#EXT-X-MEDIA-SEQUENCE:18446744073709551615",
            "#EXT-X-PART-INF:PART-TARGET=0.2", "#EXT-X-PART:DURATION=0.2,URI=\"a\"", "#EXT-X-PART:DURATION=-1,URI=\"a\"",
            "#EXT-X-PART:DURATION=0.2,URI=\"a\",BYTERANGE=\"18446744073709551615\"", "#EXT-X-SKIP:SKIPPED-SEGMENTS=18446744073709551615",
            "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=nan,CAN-SKIP-UNTIL=1e308",
        ]), 0..40)) {
            let _ = Playlist::parse(format!("#EXTM3U\n{}", lines.join("\n")).as_bytes());
        }
    }
}
