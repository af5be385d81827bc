//! The modelled player of a viewer that is told when a segment is whole: stalls, and how much it has in its buffer.

use std::time::Duration;
use weir_clients::{Change, Playout, StallRecorder};
use weir_metrics::{Moment, Recorder};

#[derive(Clone, Copy, Debug)]
pub(super) struct Playback {
    playout: Playout,
    stalls: StallRecorder,
}

impl Playback {
    /// A player that starts with this much, and plays on after a stall with the next segment.
    pub(super) fn new(start: Duration) -> Self {
        let playout = Playout::new(start, Duration::ZERO);
        Self { playout, stalls: StallRecorder::default() }
    }

    /// Media up to here is whole, with the read of `now`. It was there before the player ran dry, unless
    /// [`Self::stall`] was called then.
    pub(super) fn receive(&mut self, now: Moment, media: Duration, recorder: &mut Recorder) {
        let arrival = self.playout.runs_dry().map_or(now, |dry| dry.min(now));
        let change = self.playout.receive(arrival, media);
        self.book(change, now, recorder);
    }

    /// This much of what was to come does not: it begins with what is left, if it has not begun.
    pub(super) fn miss(&mut self, now: Moment, missed: Duration, recorder: &mut Recorder) {
        let change = self.playout.begin_with_less(now, missed);
        self.book(change, now, recorder);
    }

    /// What is there is of no use any more: plays again as soon as this much is whole, counted from nothing.
    pub(super) fn restart(&mut self, start: Duration, now: Moment, recorder: &mut Recorder) {
        self.leave(now, recorder);
        self.playout = Playout::new(start, Duration::ZERO);
    }

    /// Nothing more had come by `now`.
    pub(super) fn stall(&mut self, now: Moment, recorder: &mut Recorder) {
        let change = self.playout.handle_timeout(now);
        self.book(change, now, recorder);
    }

    /// Books a second of a stall that lasts.
    pub(super) fn handle_timeout(&mut self, now: Moment, recorder: &mut Recorder) {
        if self.is_stalled() && self.stalls.due() <= now {
            self.stalls.book(now, recorder);
        }
    }

    /// When it runs dry, or a second of its stall is to be booked.
    pub(super) fn poll_timeout(&self) -> Option<Moment> {
        self.playout.runs_dry().or_else(|| self.is_stalled().then(|| self.stalls.due()))
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
        change.into_iter().for_each(|change| self.stalls.change(change, now, recorder));
    }
}
