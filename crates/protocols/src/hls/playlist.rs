//! Playlists, read from bytes by `quick-m3u8` line by line (RFC 8216, section 4). Knows no link and no time.

use super::variant::Variant;
use quick_m3u8::config::ParsingOptionsBuilder;
use quick_m3u8::tag::KnownTag;
use quick_m3u8::tag::hls::{EnumeratedString, MediaType, Tag};
use quick_m3u8::{HlsLine, Reader};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// The longest playlist that is read: a day of segments of four seconds, 48 bytes each.
pub(super) const LONGEST_PLAYLIST: usize = 1 << 20;

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
    /// The Media Sequence Number of the first segment.
    pub(super) first: u64,
    pub(super) segments: Vec<Segment>,
    /// Whether no more will come (`EXT-X-ENDLIST`).
    pub(super) has_ended: bool,
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
        let seconds = self.duration.take().ok_or(PlaylistError::Duration)?;
        let duration = Duration::try_from_secs_f64(seconds).ok().filter(|it| *it <= LONGEST);
        let duration = duration.ok_or(PlaylistError::Duration)?;
        let range = self.range.take().map(|(length, offset)| (self.offset(uri, offset), length));
        let resource = Resource { uri: uri.to_owned(), range };
        let (map, is_gap) = (self.map.clone(), std::mem::take(&mut self.is_gap));
        self.media.segments.push(Segment { resource, duration, map, is_gap });
        Ok(())
    }

    /// RFC 8216, section 4.3.2.2: a range without an offset begins where that of the segment before ends.
    fn offset(&self, uri: &str, offset: Option<u64>) -> u64 {
        let before = self.media.segments.last().map(|it| &it.resource).filter(|it| it.uri == uri);
        let end = before.and_then(|it| it.range).map_or(0, |(first, length)| first.saturating_add(length));
        offset.unwrap_or(end)
    }

    fn end(self) -> Result<Playlist, PlaylistError> {
        // RFC 8216, section 4.2: a Media Sequence Number has 64 bits; that of each segment and of the one behind them is to be counted.
        let count = self.media.segments.len() as u64;
        self.media.first.checked_add(count + 1).ok_or(PlaylistError::Sequence)?;
        match self.target {
            Some(target) => Ok(Playlist::Media(MediaPlaylist { target, ..self.media })),
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
            "#EXT-X-MEDIA-SEQUENCE:99999999999999999999",
        ]), 0..40)) {
            let _ = Playlist::parse(format!("#EXTM3U\n{}", lines.join("\n")).as_bytes());
        }
    }
}
