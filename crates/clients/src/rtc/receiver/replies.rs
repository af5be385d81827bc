//! What a receiver says to the sender of what it gets: reports, and requests for packets and keyframes that are missing.

use super::super::figures::REPORTS;
use super::narrow_link::BANDWIDTH;
use super::{NAME, Receiver};
use weir_metrics::{Moment, Recorder};
use weir_rtc::{NtpTime, rtcp};

impl Receiver {
    /// Sends a receiver report.
    pub(super) fn report(&mut self, now: Moment, send: &mut dyn FnMut(&[u8]), recorder: &mut Recorder) {
        if !self.reports {
            return;
        }
        let mut blocks = [rtcp::ReportBlock::default(); 4];
        let mut count = 0;
        let mut sources = [0; 4];
        let found = self.tracks.iter_mut().filter_map(|track| track.account.report_block(now));
        for ((kept, source), block) in blocks.iter_mut().zip(&mut sources).zip(found) {
            (*kept, *source) = (block, block.source);
            count += 1;
        }
        self.out.clear();
        rtcp::append_receiver_report(self.ssrc, &blocks[..count], &mut self.out);
        rtcp::append_canonical_name(self.ssrc, NAME, &mut self.out);
        rtcp::append_receiver_time(self.ssrc, NtpTime::of(now), &mut self.out);
        if self.remb && count > 0 {
            let bandwidth = self.link.as_mut().map_or(BANDWIDTH, |link| link.estimate(now));
            rtcp::append_bitrate(self.ssrc, bandwidth, &sources[..count], &mut self.out);
        }
        if self.outbound.protect_rtcp(&mut self.out, 0).is_ok() {
            send(&self.out);
            recorder.count(REPORTS, 1);
        }
    }

    /// Asks for what is missing: packets, or a keyframe.
    pub(super) fn request_missing(&mut self, now: Moment, send: &mut dyn FnMut(&[u8])) {
        self.out.clear();
        for track in &mut self.tracks {
            let Some(media) = track.account.ssrc() else { continue };
            let begin = |out: &mut Vec<u8>| {
                if out.is_empty() {
                    // A compound packet begins with a report (RFC 3550 section 6.1).
                    rtcp::append_receiver_report(self.ssrc, &[], out);
                    rtcp::append_canonical_name(self.ssrc, NAME, out);
                }
            };
            if track.account.nack().poll_timeout().is_some_and(|due| due <= now) {
                let given_up = track.account.nack().given_up();
                track.account.nack().poll(now, &mut self.numbers);
                if !self.numbers.is_empty() {
                    begin(&mut self.out);
                    rtcp::append_nack(self.ssrc, media, &self.numbers, &mut self.out);
                }
                if track.account.nack().given_up() > given_up && track.asks {
                    track.requests.lost(now);
                }
            }
            if track.requests.poll(now) {
                begin(&mut self.out);
                rtcp::append_picture_loss(self.ssrc, media, &mut self.out);
            }
        }
        if !self.out.is_empty() && self.outbound.protect_rtcp(&mut self.out, 0).is_ok() {
            send(&self.out);
        }
    }
}
