//! The latest packets of a stream, bounded in time and bytes.

use super::packet::{Opening, Packet};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use weir_metrics::Moment;

/// How much of a stream is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// Whether everything from the last keyframe on is kept, so that a viewer starts at once.
    pub gop_cache: bool,
    /// How far a viewer may fall behind before it is skipped to a later keyframe.
    pub queue: Duration,
    /// The same in bytes, settings of decoders and what is kept with each packet among them.
    pub queue_bytes: u64,
    /// How long a group of pictures may be and still be kept whole.
    pub gop: Duration,
    /// The same in bytes.
    pub gop_bytes: u64,
}

/// How a stream is kept and handed out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) history: History,
    /// How long packets may wait to be sent together.
    pub(crate) merge: Duration,
}

impl Default for History {
    /// Ten seconds or 16 MiB of queue, a minute or 64 MiB of group.
    fn default() -> Self {
        Self {
            gop_cache: true,
            queue: Duration::from_secs(10),
            queue_bytes: 16 << 20,
            gop: Duration::from_secs(60),
            gop_bytes: 64 << 20,
        }
    }
}

/// How much of a stream has passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamVolume {
    pub(crate) units: u64,
    pub(crate) bytes: u64,
    /// Bytes of memory that it took.
    weight: u64,
}

/// A packet with its place in the stream.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// When the publisher's packet came.
    pub(crate) arrived: Moment,
    /// What of the stream came before this packet.
    pub(crate) before: StreamVolume,
    /// With a keyframe: what comes before it for a viewer that starts here.
    pub(crate) opening: Option<Arc<Opening>>,
    pub(crate) packet: Packet,
}

/// The latest packets of a stream, numbered without a gap.
#[derive(Debug)]
pub(crate) struct Log {
    history: History,
    entries: VecDeque<Entry>,
    /// Number of the first packet that is kept.
    start: u64,
    /// The stream so far.
    passed: StreamVolume,
    last_keyframe: Option<u64>,
    /// The version of the settings that were counted last.
    settings: Option<u64>,
}

impl Log {
    pub(crate) fn new(history: History) -> Self {
        let (entries, passed) = (VecDeque::new(), StreamVolume::default());
        Self { history, entries, start: 0, passed, last_keyframe: None, settings: None }
    }

    /// Takes the next packet of the stream, and forgets what is too old.
    pub(crate) fn push(&mut self, packet: Packet, opening: Option<Arc<Opening>>, arrived: Moment) {
        let before = self.passed;
        self.passed.units += u64::from(packet.units);
        self.passed.bytes += packet.len() as u64;
        self.passed.weight += packet.weight();
        if let Some(opening) = &opening
            && self.settings != Some(opening.version())
        {
            self.settings = Some(opening.version());
            self.passed.weight += opening.settings.weight();
        }
        if packet.keyframe {
            self.last_keyframe = Some(self.end());
        }
        self.entries.push_back(Entry { arrived, before, opening, packet });
        self.forget(arrived);
    }

    /// Forgets all packets; numbers and offsets go on.
    pub(crate) fn clear(&mut self) {
        self.start = self.end();
        self.entries = VecDeque::new();
        self.last_keyframe = None;
        self.settings = None;
    }

    fn forget(&mut self, now: Moment) {
        let History { gop_cache, queue, queue_bytes, gop, gop_bytes } = self.history;
        let gop_start = if gop_cache { self.last_keyframe } else { None };
        // The last packet stays whatever its size: it has not been offered to anyone yet.
        while self.entries.len() > 1 {
            let first = &self.entries[0];
            let (age, bytes) = (now.since(first.arrived), self.passed.weight - first.before.weight);
            let of_gop = gop_start.is_some_and(|keyframe| keyframe <= self.start);
            let keep = age <= queue && bytes <= queue_bytes || of_gop && age <= gop && bytes <= gop_bytes;
            if keep {
                break;
            }
            self.entries.pop_front();
            self.start += 1;
        }
        self.last_keyframe = self.last_keyframe.filter(|keyframe| *keyframe >= self.start);
    }

    /// The number of the first packet that is kept.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// The number that the next packet will have.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.entries.len() as u64
    }

    /// Whether everything from the last keyframe on is there for new viewers.
    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    /// The latest keyframe that is kept.
    pub(crate) fn last_keyframe(&self) -> Option<u64> {
        self.last_keyframe
    }

    /// The first keyframe at or after `number`.
    pub(crate) fn keyframe_from(&self, number: u64) -> Option<u64> {
        if self.last_keyframe? < number {
            return None;
        }
        let from = number.max(self.start);
        self.from(from).position(|entry| entry.packet.keyframe).map(|distance| from + distance as u64)
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Entry> {
        self.entries.get(usize::try_from(number.checked_sub(self.start)?).ok()?)
    }

    /// The packets from `number` on.
    pub(crate) fn from(&self, number: u64) -> impl Iterator<Item = &Entry> {
        let skipped = number.saturating_sub(self.start).min(self.entries.len() as u64);
        self.entries.range(skipped as usize..)
    }

    /// What of the stream came before packet `number`, which may be forgotten already or not have come yet.
    pub(crate) fn before(&self, number: u64) -> StreamVolume {
        match self.get(number.max(self.start)) {
            Some(entry) => entry.before,
            None => self.passed,
        }
    }

    /// Whether a viewer that comes to packet `number` now is too far behind.
    pub(crate) fn is_stale(&self, number: u64, now: Moment) -> bool {
        number < self.start
            || self.get(number).is_some_and(|entry| {
                now.since(entry.arrived) > self.history.queue
                    || self.passed.weight - entry.before.weight > self.history.queue_bytes
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Kind;

    fn packet(keyframe: bool, bytes: usize) -> Packet {
        Packet::unit(Kind::Video, keyframe, 0, bytes, vec![0; bytes])
    }

    fn second(n: u64) -> Moment {
        Moment::from_nanos(n * 1_000_000_000)
    }

    #[test]
    fn a_group_of_pictures_outlives_the_queue_when_it_is_cached() {
        for (gop_cache, kept) in [(true, 8), (false, 3)] {
            let queue = Duration::from_secs(2);
            let mut log = Log::new(History { gop_cache, queue, ..History::default() });
            for n in 0..10 {
                log.push(packet(n == 2, 10), None, second(n));
            }
            assert_eq!(log.end() - log.start(), kept);
            assert_eq!(log.last_keyframe(), gop_cache.then_some(2));
        }
    }

    #[test]
    fn a_group_that_is_too_long_is_not_kept_whole() {
        let each = packet(false, 10).weight();
        let (queue_bytes, gop_bytes) = (10 * each, 100 * each);
        let mut log = Log::new(History { queue_bytes, gop_bytes, ..History::default() });
        log.push(packet(true, 10), None, second(0));
        for _ in 0..10_000 {
            log.push(packet(false, 10), None, second(0));
            assert!(log.end() - log.start() <= 101);
        }
        assert_eq!(log.last_keyframe(), None);
        assert_eq!(log.end() - log.start(), 10);
    }
}
