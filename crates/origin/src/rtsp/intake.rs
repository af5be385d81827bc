//! A publisher's RTP as packets of a stream, as an RTMP publisher would have sent them: players of every protocol get them.

use crate::rtmp::Intake;
use crate::stream::{Opening, Packet};
use std::sync::Arc;
use weir_metrics::Moment;
use weir_rtc::account::{Arrival, Hints, Kind, Track, TrackSettings};
use weir_rtc::{nack, rtp};
use weir_rtmp::message;
use weir_rtmp::server::MediaMessage;
use weir_rtsp::{Description, MediaKind, Payload, Tag, TagReader};

/// The longest picture that is put together: larger than any of H.264 up to level 5.2 (ITU-T H.264 table A-1, MinCR).
const LONGEST_PICTURE: usize = 8 * 1024 * 1024;

/// What becomes of a packet; with a keyframe, what goes before it.
pub(super) type Take<'a> = &'a mut dyn FnMut(Packet, Option<Arc<Opening>>);

/// One track of a publisher.
struct PublishedTrack {
    payload_type: u8,
    /// The channel of its packets, once it is set up.
    channel: Option<u8>,
    control: String,
    account: Track,
    tags: TagReader,
}

/// What a publisher has announced, and what comes of it.
pub(super) struct PublishedTracks {
    tracks: Vec<PublishedTrack>,
    intake: Intake,
    began: Option<Moment>,
}

impl PublishedTracks {
    /// The first pictures and the first sound of a description; `None` if there are none, or if they are not H.264, AAC, Opus or
    /// G.711.
    pub(super) fn announced(description: &Description) -> Option<Self> {
        let mut tracks: Vec<PublishedTrack> = Vec::new();
        for kind in [MediaKind::Video, MediaKind::Audio] {
            let mut media = description.media.iter().filter(|media| media.kind == kind && !media.is_secure);
            let Some((media, format)) = media.find_map(|media| Some((media, media.format()?))) else {
                continue;
            };
            let is_known =
                ["H264", "MPEG4-GENERIC", "opus", "PCMA", "PCMU"].iter().any(|name| format.is(name));
            if !is_known {
                return None;
            }
            let of = if kind == MediaKind::Audio { Kind::Audio } else { Kind::Video };
            let settings =
                TrackSettings { kind: of, clock_rate: format.clock_rate, nack: nack::NackSettings::OFF };
            tracks.push(PublishedTrack {
                payload_type: format.payload_type,
                channel: None,
                control: media.control.clone().unwrap_or_default(),
                account: Track::new(settings),
                tags: TagReader::new(kind, format, LONGEST_PICTURE),
            });
        }
        (!tracks.is_empty()).then(|| Self { tracks, intake: Intake::default(), began: None })
    }

    /// A track is set up: the one with this URL, or the only one if it has none of its own. Whether there is one.
    pub(super) fn set_up(&mut self, url: &str, channel: u8) -> bool {
        let is_only = self.tracks.len() == 1;
        let is_it = |track: &&mut PublishedTrack| match &*track.control {
            "" | "*" => is_only,
            control => url == control || url.strip_suffix(control).is_some_and(|base| base.ends_with('/')),
        };
        let track = self.tracks.iter_mut().find(is_it);
        track.map(|track| track.channel = Some(channel)).is_some()
    }

    /// An interleaved packet came.
    pub(super) fn packet(&mut self, channel: u8, bytes: &[u8], now: Moment, take: Take<'_>) {
        let Ok(packet) = rtp::Packet::parse(bytes) else { return };
        let Some(payload) = packet.payload() else { return };
        let is_it = |track: &PublishedTrack| {
            track.channel == Some(channel) && track.payload_type == packet.payload_type()
        };
        let Some(at) = self.tracks.iter().position(is_it) else { return };
        let intake = &mut self.intake;
        let mut pass = |tag: &Tag<'_>| {
            let kind = match tag.kind {
                MediaKind::Audio => message::MediaKind::Audio,
                _ => message::MediaKind::Video,
            };
            if tag.is_broken || tag.head.len() != tag.length {
                return;
            }
            let message =
                MediaMessage { message_stream_id: 1, kind, timestamp: tag.timestamp, payload: tag.head };
            let (packet, opening) = intake.media(&message);
            take(packet, opening);
        };
        if self.began.is_none() {
            // What stands in front of the first keyframe says of which tracks the stream is.
            self.tracks.iter_mut().for_each(|track| track.tags.begin(&mut pass));
        }
        let track = &mut self.tracks[at];
        let number = match track.account.receive(now, &packet, Hints::default()) {
            Arrival::Ahead { number, .. } | Arrival::Late { number, .. } => number,
            Arrival::Duplicate | Arrival::Stray => return,
            Arrival::Restart { .. } => return track.tags.restart(),
        };
        let began = *self.began.get_or_insert(now);
        let payload = Payload {
            number,
            timestamp: packet.timestamp(),
            marker: packet.marker(),
            bytes: payload,
            since: now.since(began),
        };
        track.tags.push(&payload, &mut pass);
    }
}
