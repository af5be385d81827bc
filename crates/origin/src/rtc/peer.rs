//! One viewer of a stream by WebRTC: what it is sent, what it asks for again.

use super::channel::{Channel, Service};
use super::encoding::{MOST_ENCODINGS, of_format};
use super::feed::{Feed, TrackKind, encoding_of, has_marker, ordinal_of, track_kind_of};
use crate::counts::UnitCounts;
use crate::fault::{Gate, GateFront, GateUnit, LinkEnd, Ruling, Script};
use crate::stream::{Cursor, Packet};
use crate::worker::CountKey;
use std::net::SocketAddr;
use std::time::Duration;
use weir_metrics::Moment;
use weir_rtc::NtpTime;
use weir_rtc::rtcp::{self, Compound, SenderFigures};
use weir_rtc::rtp::Header;
use weir_rtc::sdp::{Agreement, Format};

/// Units that are sent at a time to a viewer that has many to catch up with, so that other peers are not held up.
const BURST: usize = 64;
/// How long until its next turn then.
const PAUSE: Duration = Duration::from_millis(5);
/// Units that faults may hold back for one viewer.
const HELD_BACK: usize = 65_536;
/// How often senders report (RFC 3550 section 6.2).
const REPORT: Duration = Duration::from_secs(1);

/// A track as this viewer gets it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Track {
    /// Payload type and clock rate of each encoding that was agreed on.
    encodings: [Option<(u8, u32)>; MOST_ENCODINGS],
    ssrc: u32,
    /// Of the encoding that was sent last.
    clock_rate: u32,
    /// The sequence number of the first unit, and the time stamp of media time zero.
    first_number: u16,
    timestamp: u32,
    /// The ordinal of the first unit that it was sent.
    first_ordinal: Option<u32>,
    packets: u32,
    payload_bytes: u32,
}

impl Track {
    /// What a viewer has agreed on, from our source `ssrc`.
    pub(super) fn new(agreed: &Agreement, ssrc: u32) -> Self {
        let mut encodings = [None; MOST_ENCODINGS];
        let others = agreed.others.iter().map(|(format, _)| format);
        for format in [&agreed.format].into_iter().chain(others) {
            let Format { payload_type, clock_rate, .. } = *format;
            if let Some(place) = of_format(format).and_then(|at| encodings.get_mut(usize::from(at))) {
                place.get_or_insert((payload_type, clock_rate));
            }
        }
        Self {
            encodings,
            ssrc,
            clock_rate: agreed.format.clock_rate,
            first_number: (ssrc >> 7) as u16 & 0x7FFF,
            timestamp: ssrc.rotate_left(11),
            first_ordinal: None,
            packets: 0,
            payload_bytes: 0,
        }
    }

    /// The header of a unit; `None` if its encoding was not agreed on.
    fn header(&self, unit: &Packet, kind: TrackKind, shift: i64) -> Option<Header> {
        let (payload_type, clock_rate) = self.encodings.get(encoding_of(unit)).copied().flatten()?;
        let ordinal = ordinal_of(unit, kind).wrapping_sub(self.first_ordinal.unwrap_or(0));
        Some(Header {
            marker: has_marker(unit),
            payload_type,
            sequence_number: self.first_number.wrapping_add(ordinal as u16),
            timestamp: self.timestamp_of(unit.timestamp + shift, clock_rate),
            ssrc: self.ssrc,
        })
    }

    /// A unit is passed over: the next one has its number.
    fn pass_over(&mut self) {
        self.first_ordinal = self.first_ordinal.map(|first| first.wrapping_add(1));
    }

    fn timestamp_of(&self, micros: i64, clock_rate: u32) -> u32 {
        let ticks = i128::from(micros) * i128::from(clock_rate) / 1_000_000;
        self.timestamp.wrapping_add(ticks as u32)
    }
}

pub(super) struct Peer {
    pub(super) feed: usize,
    pub(super) channel: Channel,
    pub(super) tracks: [Option<Track>; 2],
    pub(super) counts: CountKey,
    cursor: Option<Cursor>,
    /// The faults of this viewer, and what they hold back.
    faults: Option<Box<(Box<Script>, Gate<i64>)>>,
    report_at: Moment,
    /// When it is to be sent the rest of what it has to catch up with, or what a fault holds back.
    go_on_at: Option<Moment>,
}

impl Peer {
    pub(super) fn new(
        feed: usize,
        channel: Channel,
        tracks: [Option<Track>; 2],
        counts: CountKey,
        script: Option<Box<Script>>,
        now: Moment,
    ) -> Self {
        Self {
            feed,
            tracks,
            counts,
            cursor: None,
            faults: script.map(|script| Box::new((script, Gate::new()))),
            report_at: now + Duration::from_nanos(channel.session % 1_000_000_000),
            go_on_at: None,
            channel,
        }
    }

    /// RTCP came from it. Whether it asks for a keyframe.
    pub(super) fn on_rtcp(&mut self, bytes: &mut [u8], feed: &Feed, service: &mut Service<'_, '_>) -> bool {
        let Some(opened) = self.channel.open_rtcp(bytes, service.counts) else { return false };
        let asked = service.counts.picture_losses;
        for packet in Compound::new(opened) {
            match packet {
                Ok(rtcp::Packet::Nack(nack)) => {
                    let found = [TrackKind::Video, TrackKind::Audio].into_iter().find(|kind| {
                        self.tracks[*kind as usize].is_some_and(|track| track.ssrc == nack.media)
                    });
                    let Some(kind) = found else { continue };
                    for number in nack.sequence_numbers() {
                        service.counts.nacks += 1;
                        self.repeat(kind, number, feed, service);
                    }
                }
                Ok(rtcp::Packet::PictureLoss { .. } | rtcp::Packet::FullIntraRequest) => {
                    service.counts.picture_losses += 1;
                }
                Ok(rtcp::Packet::ReceiverReport(_)) => service.counts.receiver_reports += 1,
                _ => {}
            }
        }
        if let Some(path) = self.channel.path {
            service.outbox.flush(path, service.link);
        }
        service.counts.picture_losses > asked
    }

    /// Sends a unit again, as it was.
    fn repeat(&mut self, kind: TrackKind, number: u16, feed: &Feed, service: &mut Service<'_, '_>) {
        let (Some(keys), Some(path)) = (&mut self.channel.keys, self.channel.path) else { return };
        let Some(track) = self.tracks[kind as usize] else { return };
        let Some(first) = track.first_ordinal else { return };
        // The one with this number that was sent last.
        let newest = feed.ordinal(kind).wrapping_sub(1);
        let newest_number = track.first_number.wrapping_add(newest.wrapping_sub(first) as u16);
        let ordinal = newest.wrapping_sub(u32::from(newest_number.wrapping_sub(number)));
        let Some(unit) = feed.find(kind, ordinal) else { return };
        let Some(header) = track.header(unit, kind, 0) else { return };
        if service.outbox.add(&header, unit, &mut keys.1, path, service.link) {
            service.counts.repeated += 1;
        }
    }

    /// Sends what waits for it.
    pub(super) fn pump(&mut self, feed: &Feed, service: &mut Service<'_, '_>) {
        let now = service.now;
        self.go_on_at = None;
        let (Some(path), Some(_)) = (self.channel.path, &self.channel.keys) else { return };
        let mut cursor = self.cursor.take().unwrap_or_else(|| Cursor::new(&feed.units));
        if self.faults.is_some() {
            self.pump_detour(&mut cursor, feed, path, service);
        } else {
            cursor.settle(&feed.units, now);
            let mut next = [None; BURST];
            let gathered = cursor.gather(&feed.units, &mut next);
            for unit in next[..gathered].iter().flatten() {
                self.send(unit, 0, path, service);
            }
            cursor.advance(&feed.units, gathered);
            if gathered == BURST {
                self.go_on_at = Some(now + PAUSE);
            }
        }
        let lost = cursor.take_lost();
        if lost.units > 0 {
            let counts = service.worker.viewer_counts(self.counts);
            counts.skipped += lost.units;
            counts.skipped_bytes += lost.bytes;
        }
        self.cursor = Some(cursor);
        service.outbox.flush(path, service.link);
    }

    /// The same past this viewer's faults.
    fn pump_detour(
        &mut self,
        cursor: &mut Cursor,
        feed: &Feed,
        path: SocketAddr,
        service: &mut Service<'_, '_>,
    ) {
        let now = service.now;
        let Some(mut faults) = self.faults.take() else { return };
        let (script, gate) = &mut *faults;
        let mut dropped = UnitCounts::default();
        if gate.len() < HELD_BACK {
            cursor.settle(&feed.units, now);
            let mut next = [None; BURST];
            let gathered = cursor.gather(&feed.units, &mut next);
            for unit in next[..gathered].iter().flatten() {
                script.rule_each(unit, now, &mut |packet: Packet, ruling: Ruling| {
                    if ruling.dropped {
                        dropped.count(&packet);
                        // It has a number all the same: that is what loss is.
                        self.number(&packet);
                    }
                    gate.push(GateUnit { packet, owner: ruling.shift }, &ruling, now);
                });
            }
            cursor.advance(&feed.units, gathered);
            if gathered == BURST {
                self.go_on_at = Some(now + PAUSE);
            }
        }
        loop {
            match gate.front(Some(script), now) {
                GateFront::Units(ready) => {
                    for _ in 0..ready {
                        let Some(unit) = gate.pop() else { break };
                        self.send(&unit.packet, unit.owner, path, service);
                    }
                }
                GateFront::LinkEnd(cut) => {
                    self.cut(cut, service);
                    break;
                }
                GateFront::Wait(at) => {
                    self.go_on_at = [self.go_on_at, at].into_iter().flatten().min();
                    break;
                }
            }
        }
        if let Some(cut) = script.cut(now) {
            self.cut(cut, service);
        }
        self.go_on_at = [self.go_on_at, script.next_cut()].into_iter().flatten().min();
        service.worker.note(script.take_effects());
        service.worker.viewer_counts(self.counts).dropped.add(&dropped);
        self.faults = Some(faults);
    }

    /// A fault ends the session; a reset says nothing to the viewer.
    fn cut(&mut self, cut: LinkEnd, service: &mut Service<'_, '_>) {
        if cut == LinkEnd::Close {
            self.channel.close(service);
        }
        self.channel.is_gone = true;
    }

    /// Sees to it that the first unit of a track has the first number.
    fn number(&mut self, unit: &Packet) {
        let kind = track_kind_of(unit);
        if let Some(track) = &mut self.tracks[kind as usize] {
            track.first_ordinal.get_or_insert_with(|| ordinal_of(unit, kind));
        }
    }

    fn send(&mut self, unit: &Packet, shift: i64, path: SocketAddr, service: &mut Service<'_, '_>) {
        self.number(unit);
        let kind = track_kind_of(unit);
        let (Some(keys), Some(track)) = (&mut self.channel.keys, &mut self.tracks[kind as usize]) else {
            return;
        };
        let Some(header) = track.header(unit, kind, shift) else { return track.pass_over() };
        track.clock_rate = track.encodings[encoding_of(unit)].map_or(track.clock_rate, |it| it.1);
        if service.outbox.add(&header, unit, &mut keys.1, path, service.link) {
            track.packets = track.packets.wrapping_add(1);
            track.payload_bytes = track.payload_bytes.wrapping_add(unit.payload);
            let counts = service.worker.viewer_counts(self.counts);
            counts.sent.count(unit);
            counts.link_bytes += u64::from(unit.payload);
        }
    }

    /// A deadline passed: one of several.
    pub(super) fn handle_timeout(&mut self, feed: &Feed, service: &mut Service<'_, '_>) {
        let now = service.now;
        self.channel.handle_timeout(service);
        if self.go_on_at.is_some_and(|at| at <= now) {
            self.pump(feed, service);
        }
        if self.report_at <= now {
            self.report_at = (self.report_at + REPORT).max(now);
            self.report(feed, service);
        }
    }

    fn report(&mut self, feed: &Feed, service: &mut Service<'_, '_>) {
        let now = service.now;
        let Some(media) = feed.media_time_at(now) else { return };
        for track in self.tracks.iter().flatten().filter(|track| track.packets > 0) {
            let figures = SenderFigures {
                ntp_time: NtpTime::of(now),
                rtp_timestamp: track.timestamp_of(media, track.clock_rate),
                packets: track.packets,
                payload_bytes: track.payload_bytes,
            };
            let out = service.outbox.words();
            rtcp::append_sender_report(track.ssrc, &figures, &[], out);
            rtcp::append_canonical_name(track.ssrc, "weir", out);
            self.channel.send_rtcp(out, service.link);
        }
    }

    /// When to call [`Self::handle_timeout`].
    pub(super) fn poll_timeout(&self) -> Moment {
        let others = [self.channel.poll_timeout(), self.go_on_at];
        others.into_iter().flatten().fold(self.report_at, Moment::min)
    }
}
