//! Media Playlists, and what a request for one may wait for.
//!
//! Quoted are RFC 8216 and draft-pantos-hls-rfc8216bis-22 ("bis").

use super::path::Resource;
use super::settings::{HlsSettings, PART_ROUNDING, SegmentContainer};
use super::window::{Part, Segment, Window};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use weir_web::Request;

/// A playlist, shared by all who are sent it.
pub(super) type Playlist = Arc<[u8]>;

/// A day in seconds.
const DAY: i64 = 86_400;

/// The playlist of a stream; `None` before its first segment is whole.
pub(super) fn write(window: &Window, stream: &str, skips: bool, settings: &HlsSettings) -> Option<Playlist> {
    let target = window.target()?;
    let part_target = settings.part.map(|part| (part + PART_ROUNDING).as_secs_f64());
    // Bis, section 6.2.5.1: "A Server MUST ignore the _HLS_skip directive if the Playlist does not contain the CAN-SKIP-UNTIL attribute,
    // or if it contains an EXT-X-ENDLIST tag."
    let skips = skips && part_target.is_some() && !window.has_ended();
    let skipped = if skips { skipped(window, target) } else { 0 };
    let mut text = String::new();
    let mut line = |line: std::fmt::Arguments<'_>| {
        // A string takes all.
        let _ = writeln!(text, "{line}");
    };
    // RFC 8216, section 4.3.1.1: "It MUST be the first line of every Media Playlist and every Master Playlist."
    line(format_args!("#EXTM3U"));
    // Section 7: 3 for durations with a fraction, 6 for EXT-X-MAP without EXT-X-I-FRAMES-ONLY; bis, section 8: 9 for EXT-X-SKIP.
    let version = match settings.container {
        _ if part_target.is_some() => 9,
        SegmentContainer::FragmentedMp4 => 6,
        SegmentContainer::TransportStream => 3,
    };
    line(format_args!("#EXT-X-VERSION:{version}"));
    line(format_args!("#EXT-X-TARGETDURATION:{target}"));
    if let Some(part_target) = part_target {
        // Bis, section 4.4.3.8: three part target durations are the least that PART-HOLD-BACK should be, and six target durations the
        // least that CAN-SKIP-UNTIL must be.
        line(format_args!(
            "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK={:.3},CAN-SKIP-UNTIL={}",
            part_target * 3.0,
            target * 6
        ));
        line(format_args!("#EXT-X-PART-INF:PART-TARGET={part_target:.3}"));
    }
    let first = window.listed().next().map_or(0, |segment| segment.number);
    line(format_args!("#EXT-X-MEDIA-SEQUENCE:{first}"));
    if window.discontinuities() > 0 {
        line(format_args!("#EXT-X-DISCONTINUITY-SEQUENCE:{}", window.discontinuities()));
    }
    if skipped > 0 {
        line(format_args!("#EXT-X-SKIP:SKIPPED-SEGMENTS={skipped}"));
    }
    let (mut map, mut is_encrypted) = (None, false);
    // Bis, section 6.2.2: "EXT-X-PART tags SHOULD be removed from the Playlist after they are greater than three Target Durations from
    // the end of the Playlist."
    let listed = window.listed();
    let mut left: Duration = listed.clone().map(|segment| segment.duration).sum();
    let parts_from = Duration::from_secs(3 * target);
    let whole = listed.map(|segment| (segment, true));
    for (place, (segment, is_whole)) in whole.chain(window.making().map(|it| (it, false))).enumerate() {
        let has_parts = part_target.is_some() && left <= parts_from;
        left = left.saturating_sub(segment.duration);
        if place < skipped {
            map.clone_from(&segment.map);
            continue;
        }
        // A segment that has only begun has nothing to say yet.
        if !is_whole && segment.parts.is_empty() {
            break;
        }
        if segment.discontinuity {
            line(format_args!("#EXT-X-DISCONTINUITY"));
        }
        if let Some(new) = segment.map.as_ref().filter(|new| map.as_ref() != Some(new)) {
            let uri = Resource::Map(new.id).uri(stream, settings.container);
            // RFC 8216, section 4.3.2.4: a key "applies to every Media Segment and to every Media Initialization Section declared by an
            // EXT-X-MAP tag that appears between it and the next EXT-X-KEY tag", and section 4.3.2.5 that such a section needs an `IV`: it
            // is not encrypted. A client of a Delta Update knows of a key that was left out.
            if std::mem::take(&mut is_encrypted) || settings.key.is_some() && skipped > 0 {
                line(format_args!("#EXT-X-KEY:METHOD=NONE"));
            }
            line(format_args!("#EXT-X-MAP:URI=\"{uri}\""));
            map = Some(new.clone());
        }
        if settings.key.is_some() && !std::mem::replace(&mut is_encrypted, true) {
            let uri = Resource::Key.uri(stream, settings.container);
            line(format_args!("#EXT-X-KEY:METHOD=AES-128,URI=\"{uri}\""));
        }
        line(format_args!("#EXT-X-PROGRAM-DATE-TIME:{}", date_time(segment.date)));
        if has_parts {
            segment.parts.iter().for_each(|it| part(it, segment, stream, settings, &mut line));
        }
        if is_whole {
            if segment.gap {
                line(format_args!("#EXT-X-GAP"));
            }
            line(format_args!("#EXTINF:{:.3},", segment.duration.as_secs_f64()));
            line(format_args!("{}", Resource::Segment(segment.number).uri(stream, settings.container)));
        }
    }
    if window.has_ended() {
        line(format_args!("#EXT-X-ENDLIST"));
    } else if part_target.is_some() {
        let uri = Resource::Part(window.next_part()).uri(stream, settings.container);
        line(format_args!("#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"{uri}\""));
    }
    Some(text.into_bytes().into())
}

fn part(
    part: &Part,
    segment: &Segment,
    stream: &str,
    settings: &HlsSettings,
    line: &mut impl FnMut(std::fmt::Arguments<'_>),
) {
    let uri = Resource::Part(part.id).uri(stream, settings.container);
    let independent = if part.independent { ",INDEPENDENT=YES" } else { "" };
    let gap = if segment.gap { ",GAP=YES" } else { "" };
    let duration = part.duration.as_secs_f64();
    line(format_args!("#EXT-X-PART:DURATION={duration:.3},URI=\"{uri}\"{independent}{gap}"));
}

/// How many segments lie before the Skip Boundary.
fn skipped(window: &Window, target: u64) -> usize {
    // Bis, section 6.2.5.1: a delta update is one "in which Media Segments that are further from the end of the last (Parent) Media
    // Segment in the Playlist than the Skip Boundary […] are replaced by an EXT-X-SKIP tag".
    let boundary = Duration::from_secs(6 * target);
    let mut behind = window.making().map_or(Duration::ZERO, |segment| segment.duration);
    behind += window.listed().map(|segment| segment.duration).sum::<Duration>();
    let mut count = 0;
    for segment in window.listed() {
        behind = behind.saturating_sub(segment.duration);
        if behind < boundary {
            break;
        }
        count += 1;
    }
    count
}

/// ISO 8601 with milliseconds, of nanoseconds since 1970 (RFC 8216, section 4.3.2.6).
fn date_time(nanoseconds: i64) -> String {
    let milliseconds = nanoseconds.div_euclid(1_000_000);
    let (seconds, fraction) = (milliseconds.div_euclid(1_000), milliseconds.rem_euclid(1_000));
    let (day, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    let (year, month, date) = civil(day);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}.{fraction:03}Z")
}

/// Year, month and date of a day since 1970.
pub(super) fn civil(day: i64) -> (i64, i64, i64) {
    // Years of 365.2425 days that begin in March: leap days come last. 719,468 days lie between 0000-03-01 and 1970-01-01.
    let day = day + 719_468;
    let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year_of_era + later, month, date)
}

/// A Multivariant Playlist of streams with these windows, whose paths are relative to it.
pub(super) fn write_multivariant(variants: &[(String, u64, u64)], settings: &HlsSettings) -> Playlist {
    let mut text = "#EXTM3U\n#EXT-X-INDEPENDENT-SEGMENTS\n".to_owned();
    for (stream, peak, average) in variants {
        let uri = Resource::Playlist.uri(stream, settings.container);
        // A string takes all. RFC 8216, section 4.3.4.2: BANDWIDTH "represents the peak segment bit rate of the Variant Stream".
        let _ = write!(text, "#EXT-X-STREAM-INF:BANDWIDTH={peak},AVERAGE-BANDWIDTH={average}\n{uri}\n");
    }
    text.into_bytes().into()
}

/// What a request for a playlist says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Directives {
    /// The segment that the playlist has to have, and the part of it.
    pub(super) wanted: Option<(u64, Option<u64>)>,
    pub(super) skips: bool,
}

impl Directives {
    /// Reads a query; `None` of one that is malformed.
    pub(super) fn read(request: &Request) -> Option<Self> {
        let number = |key| request.asks(key).map(str::parse::<u64>).transpose().ok();
        let (segment, part) = (number("_HLS_msn")?, number("_HLS_part")?);
        // Bis, section 6.2.5.2: "If the Playlist URI contains an _HLS_part directive but no _HLS_msn directive, the Server MUST return
        // Bad Request, such as HTTP 400."
        if segment.is_none() && part.is_some() {
            return None;
        }
        let skips = matches!(request.asks("_HLS_skip"), Some("YES" | "v2"));
        Some(Self { wanted: segment.map(|segment| (segment, part)), skips })
    }

    /// Whether the playlist can be sent.
    pub(super) fn readiness(&self, window: &Window, settings: &HlsSettings) -> Readiness {
        if window.is_empty() {
            return Readiness::NotYet;
        }
        let Some((segment, part)) = self.wanted.filter(|_| settings.part.is_some()) else {
            return Readiness::Ready;
        };
        let (next, parts) = window.next();
        // Bis, section 6.2.5.2: "A Server MUST ignore _HLS_msn and _HLS_part if the Playlist contains an EXT-X-ENDLIST tag."; "If the
        // Client requests a Part Index greater than that of the final Partial Segment of the Parent Segment, the Server MUST treat
        // the request as one for Part Index 0 of the following Parent Segment."
        if window.has_ended() {
            return Readiness::Ready;
        }
        let (segment, part) = match part {
            Some(part) if segment < next && window.parts_of(segment).is_some_and(|parts| part >= parts) => {
                (segment + 1, Some(0))
            }
            _ => (segment, part),
        };
        if segment < next {
            return Readiness::Ready;
        }
        // "If the _HLS_msn is greater than the Media Sequence Number of the last Media Segment in the current Playlist plus two, or if
        // the _HLS_part exceeds the last Partial Segment in the current Playlist by the Advance Part Limit, then the server SHOULD
        // immediately return Bad Request, such as HTTP 400. The Advance Part Limit is three divided by the Part Target Duration if the
        // Part Target Duration is less than one second, or three otherwise."
        let seconds = settings.part.unwrap_or_default().as_secs_f64();
        let ahead = if seconds < 1.0 { (3.0 / seconds).ceil() as u64 } else { 3 };
        if segment > next + 1 || segment == next && part.is_some_and(|part| part >= parts + ahead) {
            return Readiness::TooFarAhead;
        }
        match part {
            Some(part) if segment == next && part < parts => Readiness::Ready,
            _ => Readiness::NotYet,
        }
    }
}

/// Whether a playlist can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    Ready,
    NotYet,
    TooFarAhead,
}

#[cfg(test)]
mod tests;
