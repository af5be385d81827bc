//! Hands the streams of some witnesses to ffmpeg, and counts what it makes of them.
//!
//! A witness has a turn of some seconds, from a picture on that needs no other; then it is another's. Each stream of a turn has an
//! ffmpeg of its own, behind a queue that is bounded in bytes: what does not fit is left out up to the next such picture, so that a slow
//! decoder holds up no viewer. A turn is counted when its decoders are done, so that frames handed in and frames decoded are the same ones.

mod child;
mod interlaced;
mod ivf;
mod queue;
mod witness;

pub(crate) use self::child::StreamFormat;
pub(crate) use self::witness::DecodedWitness;

use self::child::{Outcome, Programs};
use self::queue::Feed;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use weir_metrics::common::{
    DECODED, DECODED_HEIGHT, DECODED_WIDTH, DECODER_CPU, DECODER_ERRORS, DECODERS_FAILED, DECODERS_MISSING,
    HANDED_IN, NOT_HANDED_IN,
};
use weir_metrics::{Moment, Recorder};

/// How long a witness is decoded before it is another's turn: some groups of pictures of most streams, and longer than an ffmpeg takes to
/// begin and to end by far.
const TURN: Duration = Duration::from_secs(10);
/// How long no other witness may want a turn before the same one has the next: longer than most groups of pictures.
const ANOTHERS_CHANCE: Duration = Duration::from_secs(3);

/// Whether this process may run none.
static IS_FORBIDDEN: AtomicBool = AtomicBool::new(false);

/// Has this process run no decoder from now on, whatever a workload asks for.
pub fn forbid_decoding() {
    IS_FORBIDDEN.store(true, Ordering::Relaxed);
}

/// The pids of all decoders of this process that run now.
pub fn decoder_processes() -> Vec<u32> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// See [`decoder_processes`].
static RUNNING: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// The decoders of a workload's witnesses.
#[derive(Debug)]
pub struct Decoders {
    /// `None`: there are none here, or they are not allowed.
    programs: Option<Programs>,
    at_once: u32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Turns under way.
    turns: u32,
    /// Streams whose ffmpeg is not done.
    streams: u32,
    /// Turns that the witness which had most of them has had.
    most_turns: u32,
    /// Since when a turn could have begun.
    free_since: Option<Moment>,
    totals: Totals,
}

/// What has been decoded and was not booked yet.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    handed_in: u64,
    decoded: u64,
    errors: u64,
    left_out: u64,
    missing: u64,
    failed: u64,
    cpu: Duration,
    /// The largest picture.
    size: (u32, u32),
}

impl Decoders {
    /// Decoders for this many witnesses at a time: the ffmpeg in PATH, unless [`forbid_decoding`] was called.
    pub fn new(at_once: u32) -> Arc<Self> {
        let programs = if IS_FORBIDDEN.load(Ordering::Relaxed) { None } else { Programs::find() };
        Arc::new(Self { programs, at_once, state: Mutex::default() })
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // Only counts are in it: they are right whatever a thread that panicked was about to do.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether some ffmpeg is not done yet.
    pub fn is_busy(&self) -> bool {
        self.state().streams > 0
    }

    /// Books what has been decoded since the last call.
    pub fn book(&self, recorder: &mut Recorder) {
        let totals = std::mem::take(&mut self.state().totals);
        recorder.count(HANDED_IN, totals.handed_in);
        recorder.count(DECODED, totals.decoded);
        recorder.count(DECODER_ERRORS, totals.errors);
        recorder.count(NOT_HANDED_IN, totals.left_out);
        recorder.count(DECODERS_MISSING, totals.missing);
        recorder.count(DECODERS_FAILED, totals.failed);
        recorder.count(DECODER_CPU, totals.cpu.as_micros() as u64);
        if totals.size != (0, 0) {
            recorder.set(DECODED_WIDTH, totals.size.0.into());
            recorder.set(DECODED_HEIGHT, totals.size.1.into());
        }
    }

    /// Whether a witness that has had this many turns may begin another one now.
    fn begin_turn(&self, had: u32, now: Moment) -> bool {
        let mut state = self.state();
        if state.turns >= self.at_once {
            return false;
        }
        let free_since = *state.free_since.get_or_insert(now);
        // One that has had more than others lets them go first.
        if had > 0 && had >= state.most_turns && now.since(free_since) < ANOTHERS_CHANCE {
            return false;
        }
        if self.programs.is_none() {
            state.totals.missing += 1;
            state.most_turns = state.most_turns.max(had + 1);
            return false;
        }
        state.turns += 1;
        state.most_turns = state.most_turns.max(had + 1);
        state.free_since = None;
        true
    }

    fn end_turn(&self) {
        self.state().turns -= 1;
    }

    /// An ffmpeg for a stream of a turn; `None` where no thread could be made for it.
    fn decode(self: &Arc<Self>, format: StreamFormat) -> Option<Feed> {
        let programs = self.programs.clone()?;
        let (feed, queue) = queue::new();
        self.state().streams += 1;
        let decoders = Arc::clone(self);
        let thread = std::thread::Builder::new().name("decoding".to_owned());
        let spawned = thread.spawn(move || {
            let outcome = child::decode(&programs, format, &queue);
            decoders.done(&outcome);
        });
        if spawned.is_err() {
            self.done(&Outcome::default());
            return None;
        }
        Some(feed)
    }

    fn done(&self, outcome: &Outcome) {
        let mut state = self.state();
        state.streams -= 1;
        let totals = &mut state.totals;
        totals.left_out += outcome.left_out;
        totals.cpu += outcome.cpu;
        match outcome.counted {
            Some(counted) => {
                totals.handed_in += counted.handed_in;
                totals.decoded += counted.decoded;
                totals.errors += counted.errors;
                totals.size = totals.size.max(counted.size);
            }
            None => totals.failed += 1,
        }
    }
}

#[cfg(test)]
#[path = "decoding/ffmpeg_tests.rs"]
mod ffmpeg_tests;

#[cfg(test)]
mod tests {
    use super::*;

    fn decoders(at_once: u32) -> Decoders {
        let programs = Some(Programs::of("/nice", "/ffmpeg"));
        Decoders { programs, at_once, state: Mutex::default() }
    }

    #[test]
    fn witnesses_have_turns_and_one_that_had_one_lets_others_go_first() {
        let (decoders, now) = (decoders(1), weir_shard::clock::now());
        let later = |seconds| now + Duration::from_secs(seconds);
        assert!(decoders.begin_turn(0, now));
        assert!(!decoders.begin_turn(0, now), "one at a time");
        decoders.end_turn();
        assert!(!decoders.begin_turn(1, later(10)), "it had the last one");
        assert!(decoders.begin_turn(0, later(11)), "this one had none");
        decoders.end_turn();
        assert!(!decoders.begin_turn(1, later(20)));
        assert!(decoders.begin_turn(1, later(24)), "no other wanted one");
    }

    #[test]
    fn what_is_not_there_is_counted_and_begins_no_turn() {
        let decoders = Decoders { programs: None, at_once: 2, state: Mutex::default() };
        assert!(!decoders.begin_turn(0, weir_shard::clock::now()));
        assert!(!decoders.is_busy());
        assert_eq!(decoders.state().totals.missing, 1);
    }
}
