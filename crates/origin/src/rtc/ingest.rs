//! One publisher by WebRTC (RFC 9725): its transport, its tracks, and the RTCP that it gets about them.

use super::channel::{Channel, Service};
use super::remux::Remux;
use super::track_receiver::TrackReceiver;
use crate::fault::LinkEnd;
use crate::publisher::Publisher;
use std::sync::Arc;
use std::time::Duration;
use weir_metrics::Moment;
use weir_rtc::feedback;
use weir_rtc::rtcp::{self, Compound, ReportBlock};
use weir_rtc::rtp::{Packet, transport_sequence_number};
use weir_rtc::sdp::{Agreement, extension};
use weir_rtc::srtp::SrtpError;

/// How often receivers report (RFC 3550 section 6.2).
const REPORT: Duration = Duration::from_secs(1);
/// How often the arrival of every packet is reported, where that was agreed on.
const FEEDBACK: Duration = Duration::from_millis(100);
/// What we say that we can take, where it is asked: the sender finds out by itself what the path can.
const BANDWIDTH: u64 = 100_000_000;
/// The name of our sources (RFC 3550 section 6.5.1).
const NAME: &str = "weir";

pub(super) struct Ingest {
    pub(super) channel: Channel,
    pub(super) name: Arc<str>,
    publisher: Publisher,
    remux: Remux,
    receivers: Vec<TrackReceiver>,
    /// When its publication began.
    began: Moment,
    /// Our source, of reports.
    ssrc: u32,
    /// The identifier of the transport-wide sequence number, if it was agreed on, and what has come.
    transport_sequence: Option<u8>,
    arrivals: feedback::Recorder,
    feedback_at: Option<Moment>,
    /// Whether it has agreed on bit rate estimates (REMB).
    estimates: bool,
    report_at: Moment,
    publisher_due: Moment,
    numbers: Vec<u16>,
}

impl Ingest {
    pub(super) fn new(
        channel: Channel,
        (name, publisher): (Arc<str>, Publisher),
        agreed: &[Agreement],
        ssrc: u32,
        now: Moment,
    ) -> Self {
        let named = |name| agreed.iter().flat_map(|it| &it.extensions).find(|it| it.name == name);
        let gives = |what: &str| agreed.iter().any(|it| it.format.feedback.iter().any(|this| this == what));
        Self {
            channel,
            name,
            publisher,
            remux: Remux::default(),
            receivers: agreed.iter().map(|agreed| TrackReceiver::new(agreed, now)).collect(),
            began: now,
            ssrc,
            transport_sequence: named(extension::TRANSPORT_CC).map(|it| it.identifier),
            arrivals: feedback::Recorder::new(),
            feedback_at: None,
            estimates: gives("goog-remb"),
            report_at: now + REPORT,
            publisher_due: now,
            numbers: Vec::new(),
        }
    }

    /// RTP came from it.
    pub(super) fn receive(&mut self, bytes: &mut [u8], service: &mut Service<'_, '_>) {
        let now = service.now;
        let Some(keys) = &mut self.channel.keys else {
            service.counts.strange += 1;
            return;
        };
        let packet = match keys.0.open_rtp(bytes) {
            Ok(opened) => Packet::parse(opened),
            Err(SrtpError::Replayed | SrtpError::TooOld) => return,
            Err(_) => {
                service.counts.unauthentic += 1;
                return;
            }
        };
        let Ok(packet) = packet else { return };
        if let Some(identifier) = self.transport_sequence
            && let Some(number) = packet.extension(identifier).and_then(transport_sequence_number)
        {
            self.arrivals.arrive(now, number);
            self.feedback_at.get_or_insert(now + FEEDBACK);
        }
        let Some(receiver) = self.receivers.iter_mut().find(|receiver| receiver.has(packet.payload_type()))
        else {
            service.counts.strange += 1;
            return;
        };
        let (publisher, worker, mut cut) = (&mut self.publisher, &mut *service.worker, None);
        receiver.receive(
            now,
            now.micros_since(self.began),
            &packet,
            &mut self.remux,
            &mut |packet, opening| {
                cut = cut.or(publisher.take(packet, opening, worker, now));
            },
        );
        self.end_at(cut, service);
    }

    /// A batch of datagrams is over: what it brought is passed on, and what is missing asked for.
    pub(super) fn after_batch(&mut self, service: &mut Service<'_, '_>) {
        service.wakes.extend(self.publisher.flush(service.worker));
        // A fault may hold back what has just come.
        self.publisher_due = self.publisher.deadline(service.worker, service.now);
        self.request_missing(service);
        for receiver in &mut self.receivers {
            let (before, now) = receiver.book();
            let intake = &mut service.counts.intake;
            intake.packets += now.packets - before.packets;
            // What comes late is not lost any more.
            intake.lost = (intake.lost + now.lost).saturating_sub(before.lost);
            intake.recovered += now.recovered - before.recovered;
            intake.asked += now.asked - before.asked;
            intake.keyframes_asked += now.keyframes_asked - before.keyframes_asked;
            intake.frames += now.frames - before.frames;
            intake.early += now.early - before.early;
            intake.broken += now.broken - before.broken;
        }
    }

    /// RTCP came from it.
    pub(super) fn on_rtcp(&mut self, bytes: &mut [u8], service: &mut Service<'_, '_>) {
        let Some(opened) = self.channel.open_rtcp(bytes, service.counts) else { return };
        for packet in Compound::new(opened) {
            if let Ok(rtcp::Packet::SenderReport(report)) = packet {
                service.counts.intake.sender_reports += 1;
                self.receivers.iter_mut().for_each(|receiver| receiver.sender_report(service.now, &report));
            }
        }
    }

    /// A viewer needs a keyframe.
    pub(super) fn wants_keyframe(&mut self, now: Moment) {
        self.receivers.iter_mut().for_each(|receiver| receiver.wants_keyframe(now));
    }

    /// A deadline passed: one of several.
    pub(super) fn handle_timeout(&mut self, service: &mut Service<'_, '_>) {
        let now = service.now;
        self.channel.handle_timeout(service);
        let (publisher, worker, mut cut) = (&mut self.publisher, &mut *service.worker, None);
        for receiver in &mut self.receivers {
            receiver.handle_timeout(
                now,
                now.micros_since(self.began),
                &mut self.remux,
                &mut |packet, opening| {
                    cut = cut.or(publisher.take(packet, opening, worker, now));
                },
            );
        }
        if self.publisher_due <= now {
            publisher.release(worker, now);
            cut = cut.or_else(|| publisher.cut(worker, now));
            if publisher.is_silent(worker, now) {
                cut = Some(LinkEnd::Close);
            }
        }
        self.end_at(cut, service);
        if self.feedback_at.take_if(|at| *at <= now).is_some() {
            let media = self.receivers.iter().find_map(TrackReceiver::source).unwrap_or(0);
            let out = service.outbox.words();
            self.arrivals.append(now, self.ssrc, media, out);
            self.channel.send_rtcp(out, service.link);
        }
        if self.report_at <= now {
            self.report_at = (self.report_at + REPORT).max(now);
            self.report(service);
        }
        self.after_batch(service);
    }

    /// Sends a receiver report.
    fn report(&mut self, service: &mut Service<'_, '_>) {
        let mut blocks = [ReportBlock::default(); 2];
        let found = self.receivers.iter_mut().filter_map(|receiver| receiver.report_block(service.now));
        let count = blocks.iter_mut().zip(found).map(|(place, block)| *place = block).count();
        if count == 0 {
            return;
        }
        let out = service.outbox.words();
        rtcp::append_receiver_report(self.ssrc, &blocks[..count], out);
        rtcp::append_canonical_name(self.ssrc, NAME, out);
        if self.estimates {
            let sources = blocks.map(|block| block.source);
            rtcp::append_bitrate(self.ssrc, BANDWIDTH, &sources[..count], out);
        }
        self.channel.send_rtcp(out, service.link);
    }

    /// Asks for what is missing: packets, or a keyframe.
    fn request_missing(&mut self, service: &mut Service<'_, '_>) {
        if !self.channel.has_keys() {
            return;
        }
        let (us, out) = (self.ssrc, service.outbox.words());
        for receiver in &mut self.receivers {
            receiver.append_requests(service.now, us, &mut self.numbers, out, |out| {
                if out.is_empty() {
                    // A compound packet begins with a report (RFC 3550 section 6.1).
                    rtcp::append_receiver_report(us, &[], out);
                    rtcp::append_canonical_name(us, NAME, out);
                }
            });
        }
        self.channel.send_rtcp(out, service.link);
    }

    /// A fault, or its own silence, ends the session; a reset says nothing to the publisher.
    fn end_at(&mut self, cut: Option<LinkEnd>, service: &mut Service<'_, '_>) {
        if cut == Some(LinkEnd::Close) {
            self.channel.close(service);
        }
        self.channel.is_gone |= cut.is_some();
    }

    /// When to call [`Self::handle_timeout`].
    pub(super) fn poll_timeout(&self) -> Moment {
        let receivers = self.receivers.iter().filter_map(TrackReceiver::poll_timeout).min();
        let others = [self.channel.poll_timeout(), self.feedback_at, receivers, Some(self.publisher_due)];
        others.into_iter().flatten().fold(self.report_at, Moment::min)
    }

    /// Ends the publication, and closes the DTLS association.
    pub(super) fn end(mut self, service: &mut Service<'_, '_>) {
        self.after_batch(service);
        self.channel.close(service);
        service.wakes.extend(self.publisher.end(service.worker, service.now));
    }
}
