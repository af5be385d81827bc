//! What a publisher sends: frames as interleaved RTP packets, and reports on them; and what the server reports.

use super::figures::{AUDIO_FRAMES, PACKETS, RECEIVER_REPORTS, REPORTED_LOST, SENDER_REPORTS};
use crate::client_session::End;
use crate::host_clock::HostClock;
use crate::material::Material;
use std::time::Duration;
use weir_media::{AudioCodec, Frame, PictureCodec, Source, Stamp, Track};
use weir_metrics::common::{FRAMES, KEYFRAMES, MEDIA, SEND_LAG, UNITS};
use weir_metrics::{Failure, Moment, Recorder};
use weir_rtc::rtcp::Compound;
use weir_rtc::rtp::Header;
use weir_rtc::sdp::Format;
use weir_rtc::sender::Sender;
use weir_rtc::{aac, opus, rtcp};
use weir_rtsp::{Description, Media, MediaKind, PicturePayloads, append_frame_header, described_format};

/// Bytes of a payload: a packet that a server passes on by UDP fits every path of the field.
const PAYLOAD: usize = 1_400;

/// How often a sender reports (RFC 3550 section 6.2: five seconds at the least).
const REPORT: Duration = Duration::from_secs(5);

/// Bytes of an RTP header without extension.
const RTP_HEADER: usize = 12;

/// The bytes in front of a picture, of one of H.265 and of sound in the form that all protocols' media are counted in, that of FLV (FLV 10.1
/// sections E.4.3.1 and E.4.2.1; Enhanced RTMP, which says when a picture of H.265 is shown behind the codec).
const PICTURE_HEADER: usize = 5;
const H265_HEADER: usize = 8;
const SOUND_HEADER: usize = 2;

/// What all publishers of a workload send.
pub(super) struct Content {
    pub(super) material: Material,
    /// Whether each frame carries a clock stamp.
    pub(super) stamp: bool,
    pub(super) clock: HostClock,
}

/// A track that is sent.
struct SentTrack {
    kind: Track,
    format: Format,
    sender: Sender,
    /// The channels of RTP and RTCP.
    channels: (u8, u8),
    /// Packets that the server's last report says were lost.
    reported_lost: u64,
}

/// What is sent, and to be sent next.
pub(super) struct Sending {
    source: Box<dyn Source + Send>,
    /// The next frame to send, once publishing.
    frame: Frame,
    sound: AudioCodec,
    tracks: Vec<SentTrack>,
    payloads: PicturePayloads,
    payload: Vec<u8>,
    stamps: u32,
    start: Moment,
    report_at: Moment,
    out: Vec<u8>,
}

impl Sending {
    /// Begins with the material's first frame. `random` gives sources and first numbers (RFC 3550 section 5.1).
    pub(super) fn new(source: Box<dyn Source + Send>, random: u32, now: Moment) -> Self {
        let mut tracks = Vec::new();
        if let Some(video) = source.video_config() {
            tracks.push((Track::Video, described_format(video.codec, 96, &video.decoder_configuration)));
        }
        if let Some(audio) = source.audio_config() {
            let format = match audio.codec {
                AudioCodec::Aac => {
                    aac::described_format(97, audio.sample_rate, audio.channels, &audio.specific_config)
                }
                // RFC 7587 section 7: 48,000 and 2, whatever is inside.
                AudioCodec::Opus => Format {
                    payload_type: 97,
                    name: "opus".to_owned(),
                    clock_rate: opus::CLOCK_RATE,
                    channels: Some(2),
                    ..Format::default()
                },
            };
            tracks.push((Track::Audio, format));
        }
        let payloads = PicturePayloads::of_track(source.video_config(), PAYLOAD, (random >> 5) as u16);
        let tracks = (0u8..).zip(tracks).map(|(at, (kind, format))| {
            let ssrc = random.wrapping_add(2 * u32::from(at));
            let first = (ssrc >> 9) as u16;
            let sender =
                Sender::new(ssrc, format.payload_type, format.clock_rate, first, ssrc.rotate_left(13));
            SentTrack { kind, format, sender, channels: (2 * at, 2 * at + 1), reported_lost: 0 }
        });
        Self {
            sound: source.audio_config().map(|audio| audio.codec).unwrap_or_default(),
            tracks: tracks.collect(),
            source,
            frame: Frame::empty(),
            payloads,
            payload: Vec::new(),
            stamps: 0,
            start: now,
            report_at: now,
            out: Vec::new(),
        }
    }

    /// The tracks, for ANNOUNCE.
    pub(super) fn description(&self) -> Description {
        let media = self.tracks.iter().enumerate().map(|(at, track)| Media {
            kind: match track.kind {
                Track::Video => MediaKind::Video,
                Track::Audio => MediaKind::Audio,
            },
            is_secure: false,
            formats: vec![track.format.clone()],
            control: Some(control(at)),
            is_back_channel: false,
        });
        Description { control: Some("*".to_owned()), range: None, media: media.collect() }
    }

    /// How many tracks there are.
    pub(super) fn tracks(&self) -> usize {
        self.tracks.len()
    }

    /// The channels of a track; `None` behind the last one.
    pub(super) fn channels(&self, track: usize) -> Option<(u8, u8)> {
        self.tracks.get(track).map(|track| track.channels)
    }

    /// A server wants a track in other channels.
    pub(super) fn set_channels(&mut self, track: usize, channels: (u8, u8)) {
        if let Some(track) = self.tracks.get_mut(track) {
            track.channels = channels;
        }
    }

    /// The server records from now on.
    pub(super) fn begin(&mut self, now: Moment) -> Result<(), End> {
        (self.start, self.report_at) = (now, now);
        self.fetch()
    }

    pub(super) fn fetch(&mut self) -> Result<(), End> {
        self.source.next(&mut self.frame).map_err(|error| (Failure::SourceFailed, error.to_string()))
    }

    /// When the next frame is due.
    pub(super) fn due(&self) -> Moment {
        self.start + self.frame.decode_time
    }

    /// When there is something to do.
    pub(super) fn poll_timeout(&self) -> Moment {
        self.due().min(self.report_at)
    }

    /// What is to be sent; the caller empties it.
    pub(super) fn output(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Sends the frame that is due.
    pub(super) fn send_frame(&mut self, now: Moment, content: &Content, recorder: &mut Recorder) {
        recorder.record(SEND_LAG, now.since(self.due()).as_micros() as u64);
        recorder.count(UNITS, 1);
        match self.frame.track {
            Track::Video => self.send_picture(now, content, recorder),
            Track::Audio => self.send_sound(recorder),
        }
    }

    fn send_picture(&mut self, now: Moment, content: &Content, recorder: &mut Recorder) {
        recorder.count(FRAMES, 1);
        recorder.count(KEYFRAMES, u64::from(self.frame.keyframe));
        if content.stamp && self.payloads.codec() == PictureCodec::H264 {
            let stamp = Stamp { captured: content.clock.at(now), sequence_number: self.stamps };
            stamp.put(&mut self.frame.payload);
            self.stamps = self.stamps.wrapping_add(1);
        }
        let Some(track) = self.tracks.iter_mut().find(|track| track.kind == Track::Video) else { return };
        let (time, out) = (self.frame.presentation_time, &mut self.out);
        let mut packets = 0;
        let header_length =
            if self.payloads.codec() == PictureCodec::H265 { H265_HEADER } else { PICTURE_HEADER };
        let Frame { payload, keyframe, .. } = &self.frame;
        let length = self.payloads.packetise(payload, *keyframe, |payload, last| {
            let header = track.sender.next(time, last, payload.len());
            append_packet(track.channels.0, &header, payload, out);
            packets += 1;
        });
        recorder.count(MEDIA, (header_length + length) as u64);
        recorder.count(PACKETS, packets);
    }

    fn send_sound(&mut self, recorder: &mut Recorder) {
        recorder.count(AUDIO_FRAMES, 1);
        let Some(track) = self.tracks.iter_mut().find(|track| track.kind == Track::Audio) else { return };
        let frame = &self.frame.payload;
        self.payload.clear();
        match self.sound {
            AudioCodec::Aac if !aac::append_payload(frame, &mut self.payload) => return,
            AudioCodec::Aac => {}
            AudioCodec::Opus => self.payload.extend_from_slice(frame),
        }
        // RFC 3640 section 3.1: the marker is set where the last piece of a frame, or whole ones, are in a packet; of Opus it marks
        // the beginning of speech (RFC 7587 section 4.1).
        let marker = self.sound == AudioCodec::Aac;
        let header = track.sender.next(self.frame.presentation_time, marker, self.payload.len());
        append_packet(track.channels.0, &header, &self.payload, &mut self.out);
        recorder.count(MEDIA, (SOUND_HEADER + frame.len()) as u64);
        recorder.count(PACKETS, 1);
    }

    /// RTCP of the server came.
    pub(super) fn on_report(&mut self, bytes: &[u8], recorder: &mut Recorder) {
        for packet in Compound::new(bytes).flatten() {
            let rtcp::Packet::ReceiverReport(report) = packet else { continue };
            recorder.count(RECEIVER_REPORTS, 1);
            for block in report.blocks {
                let mut tracks = self.tracks.iter_mut();
                if let Some(track) = tracks.find(|track| track.sender.ssrc() == block.source) {
                    // Below zero when duplicates outnumber losses (RFC 3550 section 6.4.1).
                    track.reported_lost = block.cumulative_lost.max(0) as u64;
                }
            }
        }
    }

    /// Books what the last reports have said; once.
    pub(super) fn book_reports(&mut self, recorder: &mut Recorder) {
        let lost = self.tracks.iter_mut().map(|track| std::mem::take(&mut track.reported_lost));
        recorder.count(REPORTED_LOST, lost.sum());
    }

    /// Reports, where it is time to.
    pub(super) fn report(&mut self, now: Moment, recorder: &mut Recorder) {
        if self.report_at > now {
            return;
        }
        self.report_at = (self.report_at + REPORT).max(now);
        let media_time = now.since(self.start);
        for track in &self.tracks {
            let (ssrc, figures) = (track.sender.ssrc(), track.sender.figures(now, media_time));
            self.payload.clear();
            rtcp::append_sender_report(ssrc, &figures, &[], &mut self.payload);
            rtcp::append_canonical_name(ssrc, "weir", &mut self.payload);
            append_frame_header(track.channels.1, self.payload.len() as u16, &mut self.out);
            self.out.extend_from_slice(&self.payload);
            recorder.count(SENDER_REPORTS, 1);
        }
    }
}

/// What a track is called behind the URL of the whole.
pub(super) fn control(track: usize) -> String {
    format!("streamid={track}")
}

fn append_packet(channel: u8, header: &Header, payload: &[u8], out: &mut Vec<u8>) {
    append_frame_header(channel, (RTP_HEADER + payload.len()) as u16, out);
    // Without extension elements there is nothing that could not be written.
    let _ = header.append(&[], out);
    out.extend_from_slice(payload);
}
