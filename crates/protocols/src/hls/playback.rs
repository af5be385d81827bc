//! The modelled player of a viewer that is told when a segment is whole: stalls, and how much it has in its buffer.

use std::time::Duration;
use weir_clients::{Change, Playout};
use weir_metrics::common::{STALL_LENGTH, STALLED, STALLED_VIEWERS, STALLS};
use weir_metrics::{Moment, Recorder};

/// How often the time of a stall that lasts is booked.
const STALL_BOOKING: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
pub(super) struct Playback {
    playout: Playout,
    /// Media of the segments so far.
    media: Duration,
    stall_booked: Moment,
    has_stalled: bool,
}

impl Playback {
    /// A player that starts with this much, and plays on after a stall with the next segment.
    pub(super) fn new(start: Duration, now: Moment) -> Self {
        let playout = Playout::new(start, Duration::ZERO);
        Self { playout, media: Duration::ZERO, stall_booked: now, has_stalled: false }
    }

    /// A segment of this duration is whole, in the read of `now`. It was there before the player ran dry, unless
    /// [`Self::stall`] was called then.
    pub(super) fn receive(&mut self, now: Moment, duration: Duration, recorder: &mut Recorder) {
        self.media += duration;
        let arrival = self.playout.runs_dry().map_or(now, |dry| dry.min(now));
        let change = self.playout.receive(arrival, self.media);
        self.book(change, now, recorder);
    }

    /// Nothing more had come by `now`.
    pub(super) fn stall(&mut self, now: Moment, recorder: &mut Recorder) {
        let change = self.playout.handle_timeout(now);
        self.book(change, now, recorder);
    }

    /// Books a second of a stall that lasts.
    pub(super) fn handle_timeout(&mut self, now: Moment, recorder: &mut Recorder) {
        if self.is_stalled() && self.stall_booked + STALL_BOOKING <= now {
            self.book_stalled(now, recorder);
        }
    }

    /// When it runs dry, or a second of its stall is to be booked.
    pub(super) fn poll_timeout(&self) -> Option<Moment> {
        self.playout.runs_dry().or_else(|| self.is_stalled().then(|| self.stall_booked + STALL_BOOKING))
    }

    pub(super) fn runs_dry(&self) -> Option<Moment> {
        self.playout.runs_dry()
    }

    pub(super) fn is_stalled(&self) -> bool {
        self.playout.stalled_since().is_some()
    }

    /// The viewer stops; a stall that lasts ends here.
    pub(super) fn leave(&mut self, now: Moment, recorder: &mut Recorder) {
        let change = self.playout.stalled_since().map(Change::Resumed);
        self.book(change, now, recorder);
    }

    fn book(&mut self, change: Option<Change>, now: Moment, recorder: &mut Recorder) {
        match change {
            Some(Change::Stalled(since)) => {
                recorder.count(STALLS, 1);
                let before = std::mem::replace(&mut self.has_stalled, true);
                recorder.count(STALLED_VIEWERS, u64::from(!before));
                self.stall_booked = since;
            }
            Some(Change::Resumed(since)) => {
                self.book_stalled(now, recorder);
                recorder.record(STALL_LENGTH, now.since(since).as_micros() as u64);
            }
            Some(Change::Started) | None => {}
        }
    }

    fn book_stalled(&mut self, now: Moment, recorder: &mut Recorder) {
        recorder.count(STALLED, now.since(self.stall_booked).as_micros() as u64);
        self.stall_booked = now;
    }
}
