//! Packets that the machine dropped before they reached a socket, and what else holds up all of its processes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::field::{decimal, hexadecimal, lines, words};
use crate::reader::Reader;

/// What the kernel did with packets between the network card and the sockets: since boot in a sample, in the window in a summary.
/// Those of the queues are of all network namespaces, since queues belong to cores; the others of weir's own. The counters of cores
/// have 32 bits and begin again at 0, and so do their sums in a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StackCounters {
    /// Cores that are online, each with a queue.
    pub queues: u64,
    /// Packets that a core took out of its queue: `/proc/net/softnet_stat`, first column, all cores.
    pub processed: u64,
    /// Packets that found the queue of their core full (`net.core.netdev_max_backlog`): second column.
    pub backlog_dropped: u64,
    /// Times that a core had to stop with packets left because its time was over: third column. Nothing is lost by it.
    pub squeezed: u64,
    /// Packets received by the interfaces other than `lo`, and those that found the receive ring of a card full: `/proc/net/dev`,
    /// columns `packets` and `fifo`. `None` if the file could not be read.
    #[serde(default)]
    pub ring: Option<RingCounters>,
    /// Packets, of either direction, that were dropped because the table of connections was full: `/proc/net/stat/nf_conntrack`,
    /// column `drop`. `None` without such a table, or if it could not be read.
    #[serde(default)]
    pub conntrack_dropped: Option<u64>,
}

/// The receive rings of network cards, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RingCounters {
    /// Packets received.
    pub received: u64,
    /// Packets that found the ring full.
    pub dropped: u64,
}

impl StackCounters {
    /// `None` where the kernel says nothing of its queues.
    pub(crate) fn read(reader: &mut Reader) -> Option<Self> {
        let mut counters = Self::of_softnet(reader.read(format_args!("/proc/net/softnet_stat")).ok()?);
        counters.ring = reader.read(format_args!("/proc/net/dev")).ok().map(RingCounters::parse);
        // A kernel without conntrack has no such file.
        let conntrack = reader.read(format_args!("/proc/net/stat/nf_conntrack"));
        counters.conntrack_dropped = conntrack.ok().and_then(conntrack_dropped);
        Some(counters)
    }

    /// One line per core, of hexadecimal numbers.
    fn of_softnet(text: &[u8]) -> Self {
        let mut counters = Self::default();
        for line in lines(text).filter(|line| !line.is_empty()) {
            counters.queues += 1;
            let mut numbers = words(line).map(|word| hexadecimal(word).unwrap_or(0));
            for counter in [&mut counters.processed, &mut counters.backlog_dropped, &mut counters.squeezed] {
                *counter = counter.saturating_add(numbers.next().unwrap_or(0)) & u64::from(u32::MAX);
            }
        }
        counters
    }

    /// Packets that did not reach a socket because a queue or a ring was full.
    pub fn dropped(&self) -> u64 {
        self.backlog_dropped.saturating_add(self.ring.unwrap_or_default().dropped)
    }

    /// Share of the packets that came to a queue, or to a ring, which it had no room for, from 0 to 1: the greater of the two. A ring
    /// counts packets of the wire, and a queue what they were merged to.
    pub fn dropped_ratio(&self) -> f64 {
        let share = |dropped: u64, passed: u64| dropped as f64 / passed.saturating_add(dropped).max(1) as f64;
        let ring = self.ring.unwrap_or_default();
        share(self.backlog_dropped, self.processed).max(share(ring.dropped, ring.received))
    }

    /// What was counted from one sample to the next, as often as there is a next. `None` without two samples that can be compared: a
    /// core that came or went takes its counts with it.
    pub(crate) fn over(samples: impl Iterator<Item = Option<Self>>) -> Option<Self> {
        let mut whole: Option<Self> = None;
        let mut earlier: Option<Self> = None;
        for sample in samples {
            if let Some((from, to)) = earlier.zip(sample).filter(|(from, to)| from.queues == to.queues) {
                let passed = to.since(&from);
                whole = Some(whole.map_or(passed, |it| it.plus(&passed)));
            }
            earlier = sample;
        }
        whole
    }

    fn since(&self, earlier: &Self) -> Self {
        let of_cores = |counter: fn(&Self) -> u64| {
            u64::from((counter(self) as u32).wrapping_sub(counter(earlier) as u32))
        };
        let ring = self.ring.zip(earlier.ring).map(|(to, from)| RingCounters {
            received: to.received.saturating_sub(from.received),
            dropped: to.dropped.saturating_sub(from.dropped),
        });
        let conntrack = self.conntrack_dropped.zip(earlier.conntrack_dropped);
        Self {
            queues: self.queues,
            processed: of_cores(|counters| counters.processed),
            backlog_dropped: of_cores(|counters| counters.backlog_dropped),
            squeezed: of_cores(|counters| counters.squeezed),
            ring,
            conntrack_dropped: conntrack.map(|(to, from)| to.saturating_sub(from)),
        }
    }

    fn plus(&self, other: &Self) -> Self {
        let sum = |one: u64, two: u64| one.saturating_add(two);
        let ring = |one: RingCounters, two: RingCounters| RingCounters {
            received: sum(one.received, two.received),
            dropped: sum(one.dropped, two.dropped),
        };
        Self {
            queues: other.queues,
            processed: sum(self.processed, other.processed),
            backlog_dropped: sum(self.backlog_dropped, other.backlog_dropped),
            squeezed: sum(self.squeezed, other.squeezed),
            ring: self.ring.zip(other.ring).map(|(one, two)| ring(one, two)).or(self.ring).or(other.ring),
            conntrack_dropped: self
                .conntrack_dropped
                .zip(other.conntrack_dropped)
                .map(|(one, two)| sum(one, two))
                .or(self.conntrack_dropped)
                .or(other.conntrack_dropped),
        }
    }
}

impl RingCounters {
    /// The second and the fifth number of every interface.
    fn parse(text: &[u8]) -> Self {
        let mut ring = Self::default();
        for line in lines(text) {
            // The name of an alias has a colon of its own; a large number may follow the last one without a space.
            let Some(colon) = line.iter().rposition(|&byte| byte == b':') else { continue };
            let mut numbers = words(&line[colon + 1..]).map(decimal);
            let (received, dropped) = (numbers.nth(1).flatten(), numbers.nth(2).flatten());
            if line[..colon].trim_ascii() != b"lo" {
                ring.received = ring.received.saturating_add(received.unwrap_or(0));
                ring.dropped = ring.dropped.saturating_add(dropped.unwrap_or(0));
            }
        }
        ring
    }
}

/// A line of names, and one line per core of hexadecimal numbers; `None` if no name is `drop`.
fn conntrack_dropped(text: &[u8]) -> Option<u64> {
    let mut lines = lines(text);
    let column = words(lines.next()?).position(|name| name == b"drop")?;
    Some(lines.filter_map(|line| words(line).nth(column).and_then(hexadecimal)).fold(0, u64::saturating_add))
}

/// Time since boot in which all processes of the machine waited for memory, in seconds: `/proc/pressure/memory`, line `full`. That
/// of a container alone is not in it. `None` where the kernel has no such figure (before Linux 4.20, or without `CONFIG_PSI`).
pub(crate) fn memory_stalled_seconds(reader: &mut Reader) -> Option<f64> {
    stalled_seconds(reader.read(format_args!("/proc/pressure/memory")).ok()?)
}

fn stalled_seconds(text: &[u8]) -> Option<f64> {
    let full = lines(text).find(|line| words(line).next() == Some(b"full"))?;
    let micros = words(full).find_map(|word| word.strip_prefix(b"total="))?;
    Some(decimal(micros)? as f64 * 1e-6)
}

/// How often cores of these began to be throttled because they were hot, in all, since boot: an episode counts once, however long it
/// is. `None` where the processor does not say, or a core could not be read.
pub(crate) fn thermal_events(reader: &mut Reader, cores: &[u32]) -> Option<u64> {
    let mut of_core = |core: &u32| {
        let path = format_args!("/sys/devices/system/cpu/cpu{core}/thermal_throttle/core_throttle_count");
        reader.read(path).ok().and_then(|text| decimal(text.trim_ascii()))
    };
    // Where the first core has no such file, none has.
    cores.iter().try_fold(0, |sum: u64, core| Some(sum.saturating_add(of_core(core)?)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn queues_of_cores_are_added_up_over_all_samples() {
        let text = b"06f5e73d 000003c8 00000085 00000000 00000000\n07489078 000008a2 00000086 00000000\n";
        let counters = StackCounters::of_softnet(text);
        assert_eq!((counters.queues, counters.processed), (2, 0x06f5_e73d + 0x0748_9078));
        assert_eq!((counters.backlog_dropped, counters.squeezed), (968 + 2_210, 133 + 134));
        let over = |samples: &[StackCounters]| StackCounters::over(samples.iter().copied().map(Some));
        let later = StackCounters { backlog_dropped: 3_200, processed: counters.processed + 978, ..counters };
        let passed = over(&[counters, later]).unwrap();
        assert_eq!((passed.dropped(), passed.processed, passed.squeezed), (22, 978, 0));
        assert_eq!(passed.dropped_ratio(), 0.022);
        // They begin again at 0 after four thousand million, and a window may see that more than once.
        let at = |processed| StackCounters { queues: 2, processed, ..StackCounters::default() };
        let samples = [0, 3_000_000_000, 1_705_032_704, 410_065_408].map(at);
        assert_eq!(over(&samples).unwrap().processed, 3 * 3_000_000_000);
    }

    #[test]
    fn a_core_that_comes_or_goes_takes_its_counts_with_it_and_what_was_not_read_counts_nothing() {
        let at = |queues, backlog_dropped, conntrack_dropped| {
            Some(StackCounters { queues, backlog_dropped, conntrack_dropped, ..StackCounters::default() })
        };
        let over = |samples: &[Option<StackCounters>]| StackCounters::over(samples.iter().copied());
        let samples = [at(2, 10, None), at(2, 11, Some(500)), at(3, 900, Some(502)), at(3, 903, None)];
        let passed = over(&samples).unwrap();
        assert_eq!((passed.backlog_dropped, passed.conntrack_dropped), (4, None));
        assert_eq!(over(&[at(2, 0, Some(7)), at(2, 0, Some(9))]).unwrap().conntrack_dropped, Some(2));
        assert_eq!(over(&[at(2, 10, None), None, at(2, 99, None)]), None);
        assert_eq!(over(&[at(2, 10, None), at(1, 5, None)]), None);
    }

    #[test]
    fn what_found_the_ring_of_a_card_full_is_the_fifth_number() {
        let text = b"Inter-|   Receive  |  Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes\n    \
            lo:    3193      29    0    0    9    0          0         0     3193\neth0:214858034    7566    0    3    17     0\n";
        assert_eq!(RingCounters::parse(text), RingCounters { received: 7_566, dropped: 17 });
        let ring = Some(RingCounters { received: 983, dropped: 17 });
        assert_eq!(StackCounters { ring, processed: 40, ..StackCounters::default() }.dropped_ratio(), 0.017);
    }

    #[test]
    fn the_table_of_connections_names_its_columns() {
        let text = b"entries  clashres found new drop early_drop icmp_error\n00000010  00000000 00000000 00000000 0000000a 00000001\n\
            00000010  00000000 00000000 00000000 00000002 00000001\n";
        assert_eq!(conntrack_dropped(text), Some(12));
        assert_eq!(conntrack_dropped(b"entries found\n01 02\n"), None);
    }

    #[test]
    fn the_time_that_all_processes_waited_for_memory_is_read() {
        let text = b"some avg10=0.00 avg60=0.00 avg300=0.00 total=38466176\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7927346\n";
        assert_eq!(stalled_seconds(text), Some(7.927346));
        assert_eq!(stalled_seconds(b"some avg10=0.00 total=38466176\n"), None);
    }

    proptest! {
        #[test]
        fn no_text_panics(text: Vec<u8>) {
            StackCounters::of_softnet(&text);
            RingCounters::parse(&text);
            conntrack_dropped(&text);
            stalled_seconds(&text);
        }
    }
}
