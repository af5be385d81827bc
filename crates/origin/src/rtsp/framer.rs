//! Packets of a stream as interleaved RTP, with the numbers of one viewer.

use super::presentation::Presentation;
use crate::g711;
use crate::pictures::carried;
use crate::rtmp::unframe;
use crate::stream::{Kind, Packet};
use std::time::Duration;
use weir_metrics::Moment;
use weir_rtc::rtp::Header;
use weir_rtc::sender::Sender;
use weir_rtc::{VideoCodec, aac, rtcp};
use weir_rtmp::flv::{AudioCodec, AudioPacketType, AudioTag, FourCc};
use weir_rtsp::{MediaKind, PicturePayloads, append_frame_header, picture_codec};
use weir_shard::clock;

/// Bytes of a payload: a packet that is passed on by UDP fits every path of the field.
const PAYLOAD: usize = 1_400;

/// Bytes of an RTP header without extension.
const RTP_HEADER: usize = 12;

/// How often a sender reports (RFC 3550 section 6.2: five seconds at the least).
const REPORT: Duration = Duration::from_secs(5);

/// Where the media time of a viewer begins: a fault may move timestamps back by less than this.
const ORIGIN: i64 = 3_600_000_000;

/// One track of a viewer.
struct FramedTrack {
    kind: MediaKind,
    /// Whether it is sound of G.711.
    is_g711: bool,
    /// Its position in the description.
    at: usize,
    sender: Sender,
    /// The number of its next packet.
    next_number: u16,
    channels: (u8, u8),
    report_at: Option<Moment>,
}

/// Frames a stream's packets for one viewer.
pub(super) struct Framer {
    tracks: Vec<FramedTrack>,
    /// What cuts its pictures, of the codec that was described.
    payloads: Option<PicturePayloads>,
    /// The stream's media time at which the viewer's begins, in microseconds.
    base: Option<i64>,
    payload: Vec<u8>,
}

impl Framer {
    /// For a viewer of these tracks that has set up those with channels.
    pub(super) fn new(presentation: &Presentation, channels: &[Option<(u8, u8)>], random: u32) -> Self {
        let tracks = presentation.formats().zip(channels).enumerate().filter_map(
            |(at, ((kind, format), channels))| {
                let ssrc = ssrc(random, at);
                let first = (ssrc >> 9) as u16;
                let sender =
                    Sender::new(ssrc, format.payload_type, format.clock_rate, first, ssrc.rotate_left(13));
                let channels = (*channels)?;
                let is_g711 = format.is("PCMA") || format.is("PCMU");
                Some(FramedTrack { kind, is_g711, at, sender, next_number: first, channels, report_at: None })
            },
        );
        Self {
            tracks: tracks.collect(),
            payloads: presentation.pictures.as_ref().and_then(|format| {
                let codec = picture_codec(VideoCodec::of(format)?);
                Some(PicturePayloads::of_stream(codec, PAYLOAD, (random >> 3) as u16))
            }),
            base: None,
            payload: Vec::new(),
        }
    }

    /// A packet of the stream as it goes onto the link, `by` microseconds later. `None`: this viewer has no use for it.
    pub(super) fn frame(&mut self, packet: &Packet, by: i64) -> Option<Packet> {
        let (_, body) = match packet.kind {
            Kind::Video | Kind::Audio | Kind::Setup => unframe(packet)?,
            Kind::Data | Kind::Transport => return None,
        };
        let time = packet.timestamp + by;
        let mut out = Vec::with_capacity(body.len() + body.len() / 64 + 256);
        match packet.kind {
            Kind::Audio => self.sound(&body, time, &mut out)?,
            _ => self.picture(&body, time, &mut out)?,
        }
        Some(Packet::unit(packet.kind, packet.keyframe, time, body.len(), out))
    }

    fn media_time(&mut self, time: i64) -> Duration {
        let base = *self.base.get_or_insert(time);
        Duration::from_micros((ORIGIN + time - base).max(0) as u64)
    }

    fn picture(&mut self, body: &[u8], time: i64, out: &mut Vec<u8>) -> Option<()> {
        let (tag, codec) = carried(body)?;
        let picture = body.get(tag.payload_offset..)?;
        let payloads = self.payloads.as_mut().filter(|payloads| payloads.codec() == codec)?;
        if tag.is_sequence_header() {
            payloads.describe(picture);
            return None;
        }
        if !tag.is_frame() {
            return None;
        }
        // The first picture's own time is where the viewer begins, before any that is shown later.
        self.media_time(time);
        let time = self.media_time(time + i64::from(tag.composition_time) * 1_000);
        let track = self.tracks.iter_mut().find(|track| track.kind == MediaKind::Video)?;
        track.report(time, &mut self.payload, out);
        let payloads = self.payloads.as_mut()?;
        payloads.packetise(picture, tag.is_keyframe(), |payload, last| {
            track.append(time, last, payload, out);
        });
        (!out.is_empty()).then_some(())
    }

    fn sound(&mut self, body: &[u8], time: i64, out: &mut Vec<u8>) -> Option<()> {
        let tag = AudioTag::parse(body).ok().filter(|tag| tag.packet_type == AudioPacketType::CodedFrames)?;
        let frame = body.get(tag.payload_offset..)?;
        let time = self.media_time(time);
        let track = self.tracks.iter_mut().find(|track| track.kind == MediaKind::Audio)?;
        track.report(time, &mut self.payload, out);
        self.payload.clear();
        let marker = match tag.codec {
            AudioCodec::FourCc(FourCc::AAC) => {
                aac::append_payload(frame, &mut self.payload).then_some(true)?
            }
            AudioCodec::FourCc(FourCc::OPUS) if frame.len() <= PAYLOAD => {
                self.payload.extend_from_slice(frame);
                false
            }
            codec if track.is_g711 && g711::is_a_law(codec).is_some() => {
                for (since, piece) in g711::pieces(frame, PAYLOAD) {
                    track.append(time + since, false, piece, out);
                }
                return (!frame.is_empty()).then_some(());
            }
            _ => return None,
        };
        track.append(time, marker, &self.payload, out);
        Some(())
    }

    /// What the next packet of each track is, as the response to PLAY says it (RFC 2326 section 12.33).
    pub(super) fn info(&self, base: &str) -> String {
        let tracks = self.tracks.iter();
        let info: Vec<_> = tracks
            .map(|track| format!("url={base}/trackID={};seq={}", track.at, track.next_number))
            .collect();
        info.join(",")
    }

    /// What ends the tracks: a goodbye in each.
    pub(super) fn goodbye(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for track in &self.tracks {
            let mut packet = Vec::new();
            rtcp::append_receiver_report(track.sender.ssrc(), &[], &mut packet);
            rtcp::append_bye(track.sender.ssrc(), &mut packet);
            append_frame_header(track.channels.1, packet.len() as u16, &mut out);
            out.append(&mut packet);
        }
        out
    }
}

/// The source of a track.
pub(super) fn ssrc(random: u32, track: usize) -> u32 {
    random.wrapping_add(2 * track as u32)
}

impl FramedTrack {
    fn append(&mut self, time: Duration, marker: bool, payload: &[u8], out: &mut Vec<u8>) {
        let header = self.sender.next(time, marker, payload.len());
        self.next_number = header.sequence_number.wrapping_add(1);
        append_packet(self.channels.0, &header, payload, out);
    }

    /// Reports, where it is time to, in front of the packets of `time`.
    fn report(&mut self, time: Duration, buffer: &mut Vec<u8>, out: &mut Vec<u8>) {
        let now = clock::now();
        if self.report_at.is_some_and(|at| at > now) {
            return;
        }
        self.report_at = Some(now + REPORT);
        buffer.clear();
        rtcp::append_sender_report(self.sender.ssrc(), &self.sender.figures(now, time), &[], buffer);
        rtcp::append_canonical_name(self.sender.ssrc(), "weir", buffer);
        append_frame_header(self.channels.1, buffer.len() as u16, out);
        out.extend_from_slice(buffer);
    }
}

fn append_packet(channel: u8, header: &Header, payload: &[u8], out: &mut Vec<u8>) {
    append_frame_header(channel, (RTP_HEADER + payload.len()) as u16, out);
    // Without extension elements there is nothing that could not be written.
    let _ = header.append(&[], out);
    out.extend_from_slice(payload);
}
