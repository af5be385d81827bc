//! A publisher's RTP as packets of a stream, as an RTMP publisher would have sent them: players of every protocol get them.

use super::counts::RtspCounts;
use super::datagrams::channels_of;
use crate::pictures::carried;
use crate::rtmp::Intake;
use crate::stream::{Opening, Packet};
use std::sync::Arc;
use std::time::Duration;
use weir_media::PictureCodec;
use weir_metrics::Moment;
use weir_rtc::account::{Arrival, Hints, Kind, Track, TrackSettings};
use weir_rtc::reorder::{Limits, Reorder, Unit};
use weir_rtc::rtcp::{self, Compound};
use weir_rtc::{Datagram, VideoCodec, nack, rtp};
use weir_rtmp::flv::picture_configuration;
use weir_rtmp::message;
use weir_rtmp::server::MediaMessage;
use weir_rtsp::{Description, MediaKind, Payload, Tag, TagReader, append_frame_header};

/// The longest picture that is put together: larger than any of H.264 up to level 5.2 (ITU-T H.264 table A-1, MinCR).
const LONGEST_PICTURE: usize = 8 * 1024 * 1024;

/// How long a datagram waits for those before it: as long as GStreamer's `rtpjitterbuffer` does by itself.
const REORDER_TIMEOUT: Duration = Duration::from_millis(200);

/// What becomes of a packet; with a keyframe, what goes before it.
pub(super) type Take<'a> = &'a mut dyn FnMut(Packet, Option<Arc<Opening>>);

/// Where the packets of a track come, and its reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrives {
    /// In these channels of the connection.
    In(u8, u8),
    /// As datagrams from this port of the publisher's, or from another if a gateway has changed it.
    From(u16),
}

/// One track of a publisher.
struct PublishedTrack {
    payload_type: u8,
    /// Of sound of G.711: whether it is of A-law.
    is_a_law: Option<bool>,
    /// How its packets come, once it is set up.
    arrives: Option<Arrives>,
    control: String,
    account: Track,
    tags: TagReader,
    /// What puts datagrams back into their order; interleaved packets have theirs.
    reorder: Reorder,
}

/// What a publisher has announced, and what comes of it.
pub(super) struct PublishedTracks {
    tracks: Vec<PublishedTrack>,
    intake: Intake,
    /// The decoder configuration of pictures without parameter sets, as it was told last.
    described: Vec<u8>,
    began: Option<Moment>,
    /// Packets and missing ones that were booked.
    booked: (u64, u64),
}

impl PublishedTracks {
    /// The first pictures and the first sound of a description; `None` if there are none, or if they are none of a codec
    /// that is known here.
    pub(super) fn announced(description: &Description) -> Option<Self> {
        let mut tracks: Vec<PublishedTrack> = Vec::new();
        for kind in [MediaKind::Video, MediaKind::Audio] {
            let mut media = description.media.iter().filter(|media| media.kind == kind && !media.is_secure);
            let Some((media, format)) = media.find_map(|media| Some((media, media.format()?))) else {
                continue;
            };
            let is_sound = ["MPEG4-GENERIC", "opus", "PCMA", "PCMU"].iter().any(|name| format.is(name));
            let is_known = is_sound || VideoCodec::of(format).is_some();
            if !is_known {
                return None;
            }
            let of = if kind == MediaKind::Audio { Kind::Audio } else { Kind::Video };
            let settings =
                TrackSettings { kind: of, clock_rate: format.clock_rate, nack: nack::NackSettings::OFF };
            tracks.push(PublishedTrack {
                payload_type: format.payload_type,
                is_a_law: (format.is("PCMA") || format.is("PCMU")).then(|| format.is("PCMA")),
                arrives: None,
                control: media.control.clone().unwrap_or_default(),
                account: Track::new(settings),
                tags: TagReader::new(kind, format, LONGEST_PICTURE),
                reorder: Reorder::new(Limits { patience: REORDER_TIMEOUT, ..Limits::default() }),
            });
        }
        (!tracks.is_empty()).then(|| Self {
            tracks,
            intake: Intake::default(),
            described: Vec::new(),
            began: None,
            booked: (0, 0),
        })
    }

    /// A track is set up: the one with this URL, or the only one if it has none of its own. Its position.
    pub(super) fn find(&self, url: &str) -> Option<usize> {
        let is_only = self.tracks.len() == 1;
        self.tracks.iter().position(|track| match &*track.control {
            "" | "*" => is_only,
            control => url == control || url.strip_suffix(control).is_some_and(|base| base.ends_with('/')),
        })
    }

    /// How the packets of a track come.
    pub(super) fn set_up(&mut self, track: usize, arrives: Arrives) {
        if let Some(track) = self.tracks.get_mut(track) {
            track.arrives = Some(arrives);
        }
    }

    /// An interleaved packet came.
    pub(super) fn packet(&mut self, channel: u8, bytes: &[u8], now: Moment, take: Take<'_>) {
        let payload_type = bytes.get(1).map_or(0, |second| second & 0x7F);
        let is_its = |track: &PublishedTrack| match track.arrives {
            Some(Arrives::In(rtp, _)) => rtp == channel && track.payload_type == payload_type,
            _ => false,
        };
        let reports =
            |track: &PublishedTrack| matches!(track.arrives, Some(Arrives::In(_, rtcp)) if rtcp == channel);
        if let Some(at) = self.tracks.iter().position(is_its) {
            self.rtp(at, bytes, now, take);
        } else if let Some(at) = self.tracks.iter().position(reports) {
            self.rtcp(at, bytes, now);
        }
    }

    /// A datagram came from this port of the publisher's.
    pub(super) fn datagram(&mut self, port: u16, bytes: &[u8], now: Moment, take: Take<'_>) {
        match Datagram::of(bytes) {
            Datagram::Rtp => {
                let payload_type = bytes[1] & 0x7F;
                let has = |track: &PublishedTrack| {
                    matches!(track.arrives, Some(Arrives::From(_))) && track.payload_type == payload_type
                };
                let is_of_port = |track: &PublishedTrack| track.arrives == Some(Arrives::From(port));
                // On its way through a gateway a publisher's port becomes another one.
                let at = self.tracks.iter().position(|track| has(track) && is_of_port(track));
                if let Some(at) = at.or_else(|| self.tracks.iter().position(has)) {
                    self.rtp(at, bytes, now, take);
                }
            }
            Datagram::Rtcp => (0..self.tracks.len()).for_each(|at| self.rtcp(at, bytes, now)),
            _ => {}
        }
    }

    /// A report of the publisher's; one of another track's source says nothing of this one.
    fn rtcp(&mut self, at: usize, bytes: &[u8], now: Moment) {
        for packet in Compound::new(bytes).flatten() {
            if let rtcp::Packet::SenderReport(report) = packet {
                self.tracks[at].account.sender_report(now, report.sender, report.figures);
            }
        }
    }

    /// Reports on what came of each track, as interleaved packets.
    pub(super) fn report(&mut self, ssrc: u32, now: Moment) -> Vec<u8> {
        let (mut out, mut report) = (Vec::new(), Vec::new());
        for (at, track) in self.tracks.iter_mut().enumerate() {
            let Some(block) = track.account.report_block(now) else { continue };
            let channel = match track.arrives {
                Some(Arrives::In(_, rtcp)) => rtcp,
                _ => channels_of(at).1,
            };
            report.clear();
            rtcp::append_receiver_report(ssrc, &[block], &mut report);
            rtcp::append_canonical_name(ssrc, "weir", &mut report);
            append_frame_header(channel, report.len() as u16, &mut out);
            out.extend_from_slice(&report);
        }
        out
    }

    /// Books what has come since the last call.
    pub(super) fn book(&mut self, counts: &mut RtspCounts) {
        let totals = self.tracks.iter().fold((0, 0), |(received, lost), track| {
            let loss = track.account.loss();
            (received + loss.received, lost + loss.lost())
        });
        let before = std::mem::replace(&mut self.booked, totals);
        counts.packets += totals.0 - before.0;
        // What comes late is not lost any more.
        counts.lost = (counts.lost + totals.1).saturating_sub(before.1);
    }

    /// An RTP packet of a track came.
    fn rtp(&mut self, at: usize, bytes: &[u8], now: Moment, take: Take<'_>) {
        let Ok(packet) = rtp::Packet::parse(bytes) else { return };
        let Some(payload) = packet.payload() else { return };
        let (intake, described) = (&mut self.intake, &mut self.described);
        if self.began.is_none()
            && let Some(is_a_law) = self.tracks.iter().find_map(|track| track.is_a_law)
        {
            take(intake.describe_g711(is_a_law, 0), None);
        }
        let mut pass = |tag: &Tag<'_>| {
            let kind = match tag.kind {
                MediaKind::Audio => message::MediaKind::Audio,
                _ => message::MediaKind::Video,
            };
            if tag.is_broken || tag.head.len() != tag.length {
                return;
            }
            let mut pass = |payload: &[u8]| {
                let message = MediaMessage { message_stream_id: 1, kind, timestamp: tag.timestamp, payload };
                let (packet, opening) = intake.media(&message);
                take(packet, opening);
            };
            if kind == message::MediaKind::Video
                && let Some((codec, record)) = described_by(tag.head)
                && record != *described
            {
                let mut payload = Vec::new();
                picture_configuration(codec.four_cc(), &record, &mut payload);
                pass(&payload);
                *described = record;
            }
            pass(tag.head);
        };
        if self.began.is_none() {
            // What stands in front of the first keyframe says of which tracks the stream is.
            self.tracks.iter_mut().for_each(|track| track.tags.begin(&mut pass));
        }
        let PublishedTrack { arrives, account, tags, reorder, .. } = &mut self.tracks[at];
        let is_datagram = matches!(arrives, Some(Arrives::From(_)));
        let began = *self.began.get_or_insert(now);
        let mut push = |unit: Unit<'_>| {
            let Unit { number, timestamp, marker, payload: bytes } = unit;
            tags.push(&Payload { number, timestamp, marker, bytes, since: now.since(began) }, &mut pass);
        };
        match account.receive(now, &packet, Hints::default()) {
            Arrival::Ahead { number, .. } | Arrival::Late { number, .. } => {
                let unit = Unit { number, timestamp: packet.timestamp(), marker: packet.marker(), payload };
                if is_datagram { reorder.push(now, unit, push) } else { push(unit) }
            }
            Arrival::Duplicate | Arrival::Stray => {}
            Arrival::Restart { .. } => {
                reorder.restart(push);
                tags.restart();
            }
        }
    }
}

/// The decoder configuration in a keyframe of a codec without parameter sets. Of the others the reader of tags tells it.
fn described_by(body: &[u8]) -> Option<(PictureCodec, Vec<u8>)> {
    let (tag, codec) = carried(body).filter(|(tag, _)| tag.is_keyframe())?;
    let is_its_own = matches!(codec, PictureCodec::Vp8 | PictureCodec::Vp9 | PictureCodec::Av1);
    let picture = body.get(tag.payload_offset..).filter(|_| is_its_own)?;
    Some((codec, codec.record_of(codec.units_of(picture))?))
}
