//! What a publisher that has keys sends: pictures and sound in time, packets that are asked for again, and reports.

use super::connection::Keys;
use super::figures::{
    BANDWIDTH_REPORTS, MALFORMED, NACKS_HEARD, PICTURE_REQUESTS_HEARD, REPEATED, REPLAYED, REPORTED_LOST,
    REPORTS_HEARD, ROUND_TRIP, SENDER_REPORTS_SENT, UNAUTHENTIC,
};
use crate::client_session::End;
use crate::host_clock::HostClock;
use crate::material::Material;
use std::collections::VecDeque;
use std::time::Duration;
use weir_media::{AudioCodec, Frame, PictureCodec, Source, Stamp, Track};
use weir_metrics::common::{FRAMES, KEYFRAMES, MEDIA, SEND_LAG, UNITS};
use weir_metrics::{Failure, Moment, Recorder};
use weir_rtc::rtcp::{self, Compound, Nack};
use weir_rtc::rtp::Header;
use weir_rtc::sdp::{Agreement, MediaKind};
use weir_rtc::sender::{Sender, round_trip};
use weir_rtc::srtp::{Inbound, Outbound, SrtpError};
use weir_rtc::{Bundle, NtpTime, opus, rtx};
use weir_rtsp::PicturePayloads;

/// Bytes of a payload: with header, tag, UDP and IP a datagram that fits every path of the field.
const PAYLOAD: usize = 1_160;
/// Packets that can be sent again: four seconds at 4 Mbit/s.
const KEPT: usize = 2_048;
/// How often a sender reports (RFC 3550 section 6.2).
const REPORT: Duration = Duration::from_secs(1);
/// The least time between two keyframes that were asked for.
const KEYFRAMES_APART: Duration = Duration::from_millis(500);

/// What all publishers of a workload send.
pub(super) struct Content {
    pub(super) material: Material,
    /// Whether each frame carries a clock stamp.
    pub(super) stamp: bool,
    pub(super) clock: HostClock,
}

/// What is sent, and to be sent next.
pub(super) struct Sending {
    source: Box<dyn Source + Send>,
    /// The next frame to send.
    frame: Frame,
    start: Moment,
    /// Media time at which the source began: it starts over when a keyframe is requested.
    base: Duration,
    stamps: u32,
    pictures: Sender,
    kept: SentPackets,
    sound: Option<Sound>,
    inbound: Inbound,
    outbound: Outbound,
    payloads: PicturePayloads,
    bundle: Bundle,
    report_at: Moment,
    wants_keyframe: bool,
    keyframe_at: Moment,
    /// Of pictures and of sound.
    reported_lost: [i32; 2],
    out: Vec<u8>,
}

/// Sound of Opus.
struct Sound {
    sender: Sender,
    /// Media time of the next packet: it goes on whatever the material does.
    next: Duration,
}

/// Headers and payloads of the last packets of pictures.
struct SentPackets {
    packets: VecDeque<(Header, Vec<u8>)>,
    repair: Option<Repair>,
}

/// A stream of retransmissions (RFC 4588 section 4).
struct Repair {
    ssrc: u32,
    payload_type: u8,
    next_number: u16,
    payload: Vec<u8>,
}

/// A stream whose first numbers come out of its source.
fn sender(ssrc: u32, agreed: &Agreement) -> Sender {
    let (payload_type, clock_rate) = (agreed.format.payload_type, agreed.format.clock_rate);
    Sender::new(ssrc, payload_type, clock_rate, (ssrc >> 9) as u16, ssrc.rotate_left(13))
}

impl Sound {
    /// Whether sound of this media time is to be sent. Material that started over brings some that was sent already.
    fn takes(&self, media_time: Duration, packet: &[u8]) -> bool {
        media_time + Self::length(packet) / 2 >= self.next
    }

    fn length(packet: &[u8]) -> Duration {
        let ticks = opus::duration_ticks(packet).unwrap_or_default();
        Duration::from_nanos(u64::from(ticks) * 1_000_000_000 / u64::from(opus::CLOCK_RATE))
    }

    fn header(&mut self, packet: &[u8]) -> Header {
        let header = self.sender.next(self.next, false, packet.len());
        self.next += Self::length(packet);
        header
    }
}

impl SentPackets {
    fn keep(&mut self, header: Header, payload: &[u8]) {
        let oldest = if self.packets.len() == KEPT { self.packets.pop_front() } else { None };
        let mut bytes = oldest.map(|(_, bytes)| bytes).unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(payload);
        self.packets.push_back((header, bytes));
    }

    /// Sends a packet again, in a stream of its own if the server takes one. Whether it is still there.
    fn repeat(
        &mut self,
        number: u16,
        bundle: &mut Bundle,
        keys: &mut Outbound,
        send: &mut dyn FnMut(&[u8], usize),
    ) -> bool {
        let newest = self.packets.back().map_or(0, |(header, _)| header.sequence_number);
        let behind = usize::from(newest.wrapping_sub(number));
        let at = self.packets.len().checked_sub(behind + 1);
        let Some((header, payload)) = at.and_then(|at| self.packets.get(at)) else { return false };
        let Some(repair) = &mut self.repair else { return bundle.add(header, payload, keys, send) };
        repair.payload.clear();
        rtx::append(number, payload, &mut repair.payload);
        let again = Header {
            payload_type: repair.payload_type,
            sequence_number: repair.next_number,
            ssrc: repair.ssrc,
            ..*header
        };
        repair.next_number = repair.next_number.wrapping_add(1);
        bundle.add(&again, &repair.payload, keys, send)
    }
}

impl Sending {
    /// Begins with the material's first frame, now.
    ///
    /// # Errors
    /// A server that takes no pictures, keys that cannot be used, material that cannot be read.
    pub(super) fn new(keys: &Keys, source: Box<dyn Source + Send>, now: Moment) -> Result<Self, End> {
        let of = |kind| keys.agreed.iter().find(|agreed| agreed.kind == kind);
        let video = of(MediaKind::Video);
        let video = video.ok_or((Failure::Rejected, "the server takes no pictures".to_owned()))?;
        let has_opus = source.audio_config().is_some_and(|audio| audio.codec == AudioCodec::Opus);
        let audio = of(MediaKind::Audio).filter(|_| has_opus);
        let sources = keys.sources;
        let repair = video.repair.map(|payload_type| Repair {
            ssrc: sources.repair,
            payload_type,
            next_number: (sources.repair >> 7) as u16,
            payload: Vec::new(),
        });
        let failed = |error: SrtpError| (Failure::DtlsFailed, error.to_string());
        let number = (sources.pictures >> 5) as u16;
        let payloads = PicturePayloads::of_track(source.video_config(), PAYLOAD, number);
        let mut sending = Self {
            source,
            frame: Frame::empty(),
            start: now,
            base: Duration::ZERO,
            stamps: 0,
            pictures: sender(sources.pictures, video),
            kept: SentPackets { packets: VecDeque::new(), repair },
            sound: audio.map(|agreed| Sound { sender: sender(sources.sound, agreed), next: Duration::ZERO }),
            inbound: Inbound::new(&keys.inbound).map_err(failed)?,
            outbound: Outbound::new(&keys.outbound).map_err(failed)?,
            payloads,
            bundle: Bundle::default(),
            report_at: now + Duration::from_nanos(u64::from(sources.pictures) % 1_000_000_000),
            wants_keyframe: false,
            keyframe_at: now,
            reported_lost: [0; 2],
            out: Vec::new(),
        };
        sending.next_frame()?;
        Ok(sending)
    }

    /// The next frame that is to be sent: sound only where it goes.
    fn next_frame(&mut self) -> Result<(), End> {
        loop {
            self.source.next(&mut self.frame).map_err(|error| (Failure::SourceFailed, error.to_string()))?;
            let media_time = self.base + self.frame.decode_time;
            let goes = match (self.frame.track, &self.sound) {
                (Track::Video, _) => true,
                (Track::Audio, Some(sound)) => sound.takes(media_time, &self.frame.payload),
                (Track::Audio, None) => false,
            };
            if goes {
                return Ok(());
            }
        }
    }

    /// Fetches the next frame; of pictures a keyframe, if one was asked for.
    pub(super) fn fetch(&mut self, content: &Content, now: Moment) -> Result<(), End> {
        self.next_frame()?;
        let is_picture = self.frame.track == Track::Video;
        if is_picture && std::mem::take(&mut self.wants_keyframe) && !self.frame.keyframe {
            let due = self.base + self.frame.decode_time;
            (self.source, self.base) = (content.material.source(), due);
            self.next_frame()?;
            self.base = due.saturating_sub(self.frame.decode_time);
            self.keyframe_at = now + KEYFRAMES_APART;
        }
        Ok(())
    }

    /// When the next frame is due.
    pub(super) fn due(&self) -> Moment {
        self.start + self.base + self.frame.decode_time
    }

    /// When there is something to do.
    pub(super) fn poll_timeout(&self) -> Moment {
        self.due().min(self.report_at)
    }

    /// Sends the frame that is due.
    pub(super) fn send_frame(
        &mut self,
        now: Moment,
        content: &Content,
        recorder: &mut Recorder,
        send: &mut dyn FnMut(&[u8], usize),
    ) {
        recorder.record(SEND_LAG, now.since(self.due()).as_micros() as u64);
        match self.frame.track {
            Track::Video => self.send_picture(now, content, recorder, send),
            Track::Audio => self.send_sound(recorder, send),
        }
        self.bundle.flush(send);
    }

    fn send_sound(&mut self, recorder: &mut Recorder, send: &mut dyn FnMut(&[u8], usize)) {
        let Some(sound) = &mut self.sound else { return };
        let packet = &self.frame.payload;
        if self.bundle.add(&sound.header(packet), packet, &mut self.outbound, send) {
            recorder.count(UNITS, 1);
            recorder.count(MEDIA, packet.len() as u64);
        }
    }

    fn send_picture(
        &mut self,
        now: Moment,
        content: &Content,
        recorder: &mut Recorder,
        send: &mut dyn FnMut(&[u8], usize),
    ) {
        recorder.count(FRAMES, 1);
        recorder.count(KEYFRAMES, u64::from(self.frame.keyframe));
        if content.stamp && self.payloads.codec() == PictureCodec::H264 {
            let stamp = Stamp { captured: content.clock.at(now), sequence_number: self.stamps };
            stamp.put(&mut self.frame.payload);
            self.stamps = self.stamps.wrapping_add(1);
        }
        let media_time = self.base + self.frame.presentation_time;
        let (sender, outbound) = (&mut self.pictures, &mut self.outbound);
        let (bundle, kept) = (&mut self.bundle, &mut self.kept);
        let Frame { payload, keyframe, .. } = &self.frame;
        self.payloads.packetise(payload, *keyframe, |payload, last| {
            let header = sender.next(media_time, last, payload.len());
            if bundle.add(&header, payload, outbound, send) {
                recorder.count(UNITS, 1);
                recorder.count(MEDIA, payload.len() as u64);
            }
            kept.keep(header, payload);
        });
    }

    /// A compound RTCP packet came.
    pub(super) fn on_rtcp(
        &mut self,
        now: Moment,
        bytes: &mut [u8],
        recorder: &mut Recorder,
        send: &mut dyn FnMut(&[u8], usize),
    ) {
        let opened = match self.inbound.open_rtcp(bytes) {
            Ok(opened) => &*opened,
            Err(SrtpError::Replayed | SrtpError::TooOld) => return recorder.count(REPLAYED, 1),
            Err(_) => return recorder.count(UNAUTHENTIC, 1),
        };
        for packet in Compound::new(opened) {
            match packet {
                Ok(rtcp::Packet::Nack(nack)) => self.repeat(&nack, recorder, send),
                Ok(rtcp::Packet::PictureLoss { .. } | rtcp::Packet::FullIntraRequest) => {
                    recorder.count(PICTURE_REQUESTS_HEARD, 1);
                    self.wants_keyframe |= self.keyframe_at <= now;
                }
                Ok(rtcp::Packet::ReceiverReport(report)) => {
                    let sound = self.sound.as_ref().map(|sound| sound.sender.ssrc());
                    for block in report.blocks {
                        let lost = match block.source {
                            source if source == self.pictures.ssrc() => &mut self.reported_lost[0],
                            source if Some(source) == sound => &mut self.reported_lost[1],
                            _ => continue,
                        };
                        *lost = block.cumulative_lost;
                        recorder.count(REPORTS_HEARD, 1);
                        if let Some(round_trip) = round_trip(NtpTime::of(now), &block) {
                            recorder.record(ROUND_TRIP, round_trip.as_micros() as u64);
                        }
                    }
                }
                Ok(rtcp::Packet::TransportFeedback(_) | rtcp::Packet::Bitrate(_)) => {
                    recorder.count(BANDWIDTH_REPORTS, 1);
                }
                Ok(_) => {}
                Err(_) => recorder.count(MALFORMED, 1),
            }
        }
        self.bundle.flush(send);
    }

    /// Sends what was asked for again. Of sound nothing is kept.
    fn repeat(&mut self, nack: &Nack<'_>, recorder: &mut Recorder, send: &mut dyn FnMut(&[u8], usize)) {
        let is_sound = self.sound.as_ref().is_some_and(|sound| sound.sender.ssrc() == nack.media);
        for number in nack.sequence_numbers() {
            recorder.count(NACKS_HEARD, 1);
            if !is_sound && self.kept.repeat(number, &mut self.bundle, &mut self.outbound, send) {
                recorder.count(REPEATED, 1);
            }
        }
    }

    /// Reports, where it is time to.
    pub(super) fn report(
        &mut self,
        now: Moment,
        recorder: &mut Recorder,
        send: &mut dyn FnMut(&[u8], usize),
    ) {
        if self.report_at > now {
            return;
        }
        self.report_at = (self.report_at + REPORT).max(now);
        let media_time = now.since(self.start);
        let sound = self.sound.as_ref().map(|sound| sound.sender);
        for sender in [Some(self.pictures), sound].into_iter().flatten() {
            self.out.clear();
            rtcp::append_sender_report(sender.ssrc(), &sender.figures(now, media_time), &[], &mut self.out);
            rtcp::append_canonical_name(sender.ssrc(), "weir", &mut self.out);
            if self.outbound.protect_rtcp(&mut self.out, 0).is_ok() {
                send(&self.out, self.out.len());
                recorder.count(SENDER_REPORTS_SENT, 1);
            }
        }
    }

    /// Sends BYE.
    pub(super) fn finish(&mut self, recorder: &mut Recorder, send: &mut dyn FnMut(&[u8], usize)) {
        let lost: u64 = self.reported_lost.iter().map(|lost| (*lost).max(0) as u64).sum();
        recorder.count(REPORTED_LOST, lost);
        let ssrc = self.pictures.ssrc();
        self.out.clear();
        rtcp::append_receiver_report(ssrc, &[], &mut self.out);
        rtcp::append_canonical_name(ssrc, "weir", &mut self.out);
        rtcp::append_bye(ssrc, &mut self.out);
        if let Some(sound) = &self.sound {
            rtcp::append_bye(sound.sender.ssrc(), &mut self.out);
        }
        if self.outbound.protect_rtcp(&mut self.out, 0).is_ok() {
            send(&self.out, self.out.len());
        }
    }
}
