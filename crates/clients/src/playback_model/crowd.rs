//! When a viewer of the crowd reads, and how much it leaves in the kernel until then.

use super::{IDLE_READ, PlaybackModel, Reading};
use std::ops::RangeInclusive;
use std::time::Duration;
use weir_metrics::Moment;

/// Bytes that one read of a crowd client may wait for.
const BATCH: RangeInclusive<usize> = 4 * 1024..=64 * 1024;

/// The upper bound for a stream that has more than [`BATCH`] in [`SHORTEST_CYCLE`]. With a quarter more, one read of the
/// shard's 256 KiB still takes it all.
const LARGEST_BATCH: usize = 192 * 1024;

/// About how often a crowd client of a fast stream reads.
const SHORTEST_CYCLE: Duration = Duration::from_millis(100);

/// A client that does not play yet leaves at least this many bytes in the kernel before it reads; with a smaller low-water mark
/// it reads at every event.
const SMALLEST_SHARE: usize = 1_024;

/// A stream's rate is not estimated from less media time than this, in microseconds: five frames at 25 a second.
const SHORTEST_SAMPLE: i64 = 200_000;

/// A crowd client that runs dry within this time does not look before that moment: a look is not worth its cost then.
const SHORTEST_WAIT: Duration = Duration::from_millis(250);

/// The length of stream that a batch holds.
const CYCLE: Duration = Duration::from_secs(2);

/// Crowd clients read and look at moments that are multiples of this, many at once: each wake-up of an idle
/// thread costs as much as several reads.
const TICK: Duration = weir_shard::TICK.saturating_mul(2);

/// If a stream's batches fill so fast that fewer ticks than this lie between two reads, the batches alone set the pace.
const FEWEST_TICKS: u32 = 5;

impl PlaybackModel {
    /// Whether [`Self::handle_timeout`] looks at `now` how many bytes wait: to ask costs a system call.
    pub fn asks(&self, now: Moment) -> bool {
        self.reading == Reading::Crowd && self.own.is_none_or(|own| own > now) && self.looks(now)
    }

    pub(super) fn looks(&self, now: Moment) -> bool {
        self.next_look().is_some_and(|look| look <= now)
    }

    /// The next of its own moments, but not before a quarter of the time between two of them: the client has just read.
    ///
    /// Moments are computed from the clock and not from the last read, so that all clients of a block arrive at the same
    /// ones without knowing of each other: the clock is divided into spans of `between`, and the block's `phase` says where
    /// in each span its moment lies. `between` must be the same for all of them. Each client estimates the stream's rate from
    /// what it has read itself, so estimates differ a little; the number of ticks is rounded down to three binary digits,
    /// which makes nearly all of them agree.
    pub(super) fn next_own(&self, now: Moment) -> Option<Moment> {
        if self.reading == Reading::Witness || self.playout.runs_dry().is_none() {
            return None;
        }
        let ticks = (self.span_of(self.batch_now() * 3 / 4).as_nanos() / TICK.as_nanos()) as u32;
        if ticks < FEWEST_TICKS {
            return None;
        }
        let rounding = ticks.ilog2() - 2;
        let ticks = ticks >> rounding << rounding;
        let between = (TICK * ticks).as_nanos() as u64;
        let phase = (u64::from(self.phase) * u64::from(ticks)) >> 32;
        let phase = phase * TICK.as_nanos() as u64;
        let earliest = now.as_nanos() + between / 4;
        let past = (earliest + between - phase) % between;
        Some(Moment::from_nanos(earliest + between - past))
    }

    /// Whether what waits surely is enough to play for a while longer.
    pub(super) fn is_covered(&mut self, now: Moment, unread: usize) -> bool {
        let Some(dry) = self.playout.runs_dry().filter(|_| self.reading == Reading::Crowd) else {
            return false;
        };
        if unread >= self.batch as usize {
            return false;
        }
        let before = self.covered;
        self.covered = self.span_of(unread.saturating_sub(self.largest as usize)) * 3 / 4;
        self.looked = now;
        let dry = dry + self.covered;
        self.covered > before && (dry.since(now) > SHORTEST_WAIT || self.own.is_some_and(|own| own <= dry))
    }

    /// When to look what waits: before the model runs dry.
    pub(super) fn next_look(&self) -> Option<Moment> {
        let Some(dry) = self.playout.runs_dry() else {
            // The last bytes of a server may be too few to reach the low-water mark.
            return (self.reading == Reading::Crowd).then(|| self.looked + IDLE_READ);
        };
        let dry = dry + self.covered;
        if self.reading == Reading::Witness || dry.since(self.looked) <= SHORTEST_WAIT {
            return Some(dry);
        }
        Some(on_tick(dry))
    }

    /// How many bytes the next read should wait for.
    pub fn batch(&self) -> usize {
        if self.reading == Reading::Witness {
            return 1;
        }
        // What the other track brings ends no stall: it is read as while the client plays.
        let lacks = self.playout.lacks().filter(|_| self.absent.is_none());
        let Some(lacks) = lacks else {
            // Its own moments and looks come first, unless the stream has become faster.
            return (self.batch + self.batch / 4) as usize;
        };
        let share = if self.media < SHORTEST_SAMPLE { 0 } else { self.bytes_in(lacks / 4) };
        if share < SMALLEST_SHARE { 1 } else { share }
    }

    /// Makes a batch about two seconds of the stream within its bounds, if it is far from that. Three quarters of it are
    /// more than a player's buffer holds on a live edge: there it looks once between two reads.
    pub(super) fn size_batch(&mut self) {
        let batch = self.batch_now() as u32;
        if batch * 3 < self.batch * 2 || batch * 2 > self.batch * 3 {
            self.batch = batch;
        }
    }

    /// A batch by the stream's mean rate so far.
    fn batch_now(&self) -> usize {
        let most = self.bytes_in(SHORTEST_CYCLE).clamp(*BATCH.end(), LARGEST_BATCH);
        self.bytes_in(CYCLE).clamp(*BATCH.start(), most)
    }

    /// Bytes after the first frame, which the rate is guessed from.
    fn sample(&self) -> u64 {
        self.bytes.saturating_sub(u64::from(self.first)).max(1)
    }

    /// The bytes that the stream had in this much media time.
    fn bytes_in(&self, span: Duration) -> usize {
        let media = self.media.max(1) as u64;
        let bytes = self.sample().saturating_mul(span.as_micros() as u64) / media;
        bytes.min(LARGEST_BATCH as u64) as usize
    }

    /// The media time that the stream took for this many bytes.
    fn span_of(&self, bytes: usize) -> Duration {
        Duration::from_micros(self.media.max(0) as u64 * bytes as u64 / self.sample())
    }
}

/// The last tick up to a moment.
fn on_tick(at: Moment) -> Moment {
    at - Duration::from_nanos(at.as_nanos() % TICK.as_nanos() as u64)
}
