//! The stalls of one viewer as figures, booked while they last.

use crate::playout::Change;
use std::time::Duration;
use weir_metrics::common::{STALL_LENGTH, STALLED, STALLED_VIEWERS, STALLS};
use weir_metrics::{Moment, Recorder};

/// How often the time of a stall that lasts is booked: once in each second of a run.
const BOOKING_INTERVAL: Duration = Duration::from_secs(1);

/// Books what a [player](crate::Playout) goes through.
#[derive(Clone, Copy, Debug, Default)]
pub struct StallRecorder {
    /// Up to when the last stall is booked; the beginning of all time before the first, as a flag beside it would take eight bytes of each of
    /// thousands of viewers.
    booked: Moment,
}

impl StallRecorder {
    /// The player stands still, or plays again.
    pub fn change(&mut self, change: Change, now: Moment, recorder: &mut Recorder) {
        match change {
            Change::Started => {}
            Change::Stalled(since) => {
                recorder.count(STALLS, 1);
                // It counts viewers.
                recorder.count(STALLED_VIEWERS, u64::from(self.booked == Moment::default()));
                self.booked = since;
            }
            Change::Resumed(since) => {
                self.book(now, recorder);
                recorder.record(STALL_LENGTH, now.since(since).as_micros() as u64);
            }
        }
    }

    /// When [`Self::book`] is to be called next, if the player stands still.
    pub fn due(&self) -> Moment {
        self.booked + BOOKING_INTERVAL
    }

    /// Books the time of a stall that lasts.
    pub fn book(&mut self, now: Moment, recorder: &mut Recorder) {
        recorder.count(STALLED, now.since(self.booked).as_micros() as u64);
        self.booked = now;
    }
}
