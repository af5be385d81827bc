//! Packets that the machine threw away before a socket had them, and what else holds all of its processes up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::field::{decimal, hexadecimal, lines, words};
use crate::reader::Reader;

/// What the kernel did with packets between the network card and the sockets, since boot. Those of the backlog are of all
/// network namespaces, since its queues belong to the cores; the others of weir's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StackCounters {
    /// Packets that a core took out of its queue: `/proc/net/softnet_stat`, first column, all cores.
    pub processed: u64,
    /// Packets that found the queue of their core full (`net.core.netdev_max_backlog`): second column.
    pub backlog_dropped: u64,
    /// Times that a core had to stop with packets left, for want of time: third column. Nothing is lost by it.
    pub squeezed: u64,
    /// Packets that found the receive ring of a network card full: `/proc/net/dev`, column `fifo`.
    pub ring_dropped: u64,
    /// Packets that were dropped since the table of connections was full: `/proc/net/stat/nf_conntrack`, column `drop`.
    pub conntrack_dropped: u64,
}

impl StackCounters {
    /// `None` where the kernel does not tell of its queues.
    pub(crate) fn read(reader: &mut Reader) -> Option<Self> {
        let mut counters = Self::of_softnet(reader.read(format_args!("/proc/net/softnet_stat")).ok()?);
        if let Ok(text) = reader.read(format_args!("/proc/net/dev")) {
            counters.ring_dropped = ring_dropped(text);
        }
        // A kernel without conntrack has no such file.
        if let Ok(text) = reader.read(format_args!("/proc/net/stat/nf_conntrack")) {
            counters.conntrack_dropped = conntrack_dropped(text);
        }
        Some(counters)
    }

    /// A line a core, of hexadecimal numbers.
    fn of_softnet(text: &[u8]) -> Self {
        let mut counters = Self::default();
        for line in lines(text) {
            let mut numbers = words(line).map(|word| hexadecimal(word).unwrap_or(0));
            for counter in [&mut counters.processed, &mut counters.backlog_dropped, &mut counters.squeezed] {
                *counter = counter.saturating_add(numbers.next().unwrap_or(0)) & u64::from(u32::MAX);
            }
        }
        counters
    }

    /// Packets that no socket had.
    pub fn dropped(&self) -> u64 {
        self.backlog_dropped.saturating_add(self.ring_dropped).saturating_add(self.conntrack_dropped)
    }

    /// Share of the packets that came which no socket had, from 0 to 1.
    pub fn dropped_ratio(&self) -> f64 {
        self.dropped() as f64 / self.processed.saturating_add(self.dropped()).max(1) as f64
    }

    /// What was counted since `earlier`; a counter that ran backwards (a core was taken away) counts nothing.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let since = |counter: fn(&Self) -> u64| {
            // Cores count with 32 bits, and begin again at 0; so does their sum, as it is kept here.
            let passed = (counter(self) as u32).wrapping_sub(counter(earlier) as u32);
            if passed > u32::MAX / 2 { 0 } else { passed.into() }
        };
        Self {
            processed: since(|it| it.processed),
            backlog_dropped: since(|it| it.backlog_dropped),
            squeezed: since(|it| it.squeezed),
            ring_dropped: since(|it| it.ring_dropped),
            conntrack_dropped: since(|it| it.conntrack_dropped),
        }
    }
}

/// The fifth number of every interface that receives.
fn ring_dropped(text: &[u8]) -> u64 {
    let of_line = |line: &[u8]| {
        // The name of an alias has a colon of its own; a large number may follow the last one without a space.
        let colon = line.iter().rposition(|&byte| byte == b':')?;
        words(&line[colon + 1..]).nth(4).and_then(decimal)
    };
    lines(text).filter_map(of_line).fold(0, u64::saturating_add)
}

/// A line of names, and a line a core of hexadecimal numbers.
fn conntrack_dropped(text: &[u8]) -> u64 {
    let mut lines = lines(text);
    let names = lines.next().unwrap_or_default();
    let Some(column) = words(names).position(|name| name == b"drop") else { return 0 };
    lines.filter_map(|line| words(line).nth(column).and_then(hexadecimal)).fold(0, u64::saturating_add)
}

/// Time since boot in which no process of the machine could go on for want of memory, in seconds: `/proc/pressure/memory`, line
/// `full`. `None` where the kernel does not tell (before Linux 4.20, or without `CONFIG_PSI`).
pub(crate) fn memory_stalled_seconds(reader: &mut Reader) -> Option<f64> {
    stalled_seconds(reader.read(format_args!("/proc/pressure/memory")).ok()?)
}

fn stalled_seconds(text: &[u8]) -> Option<f64> {
    let full = lines(text).find(|line| words(line).next() == Some(b"full"))?;
    let micros = words(full).find_map(|word| word.strip_prefix(b"total="))?;
    Some(decimal(micros)? as f64 * 1e-6)
}

/// Times since boot that a core of these was slowed down for its heat, in all; `None` where the processor does not tell.
pub(crate) fn thermal_events(reader: &mut Reader, cores: &[u32]) -> Option<u64> {
    let of_core = |core: &u32| {
        let path = format_args!("/sys/devices/system/cpu/cpu{core}/thermal_throttle/core_throttle_count");
        reader.read(path).ok().and_then(|text| decimal(text.trim_ascii()))
    };
    // Where the first core has no such file, none has.
    let (first, rest) = cores.split_first()?;
    let mut of_core = of_core;
    let first = of_core(first)?;
    Some(rest.iter().filter_map(of_core).fold(first, u64::saturating_add))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn queues_of_cores_are_added_up() {
        let text = b"06f5e73d 000003c8 00000085 00000000 00000000\n07489078 000008a2 00000086 00000000\n";
        let counters = StackCounters::of_softnet(text);
        assert_eq!(counters.processed, 0x06f5_e73d + 0x0748_9078);
        assert_eq!((counters.backlog_dropped, counters.squeezed), (968 + 2_210, 133 + 134));
        let later = StackCounters { backlog_dropped: 3_200, processed: counters.processed + 978, ..counters };
        let since = later.since(&counters);
        assert_eq!((since.dropped(), since.processed, since.squeezed), (22, 978, 0));
        assert_eq!(since.dropped_ratio(), 0.022);
        assert_eq!(counters.since(&later), StackCounters::default(), "counters that ran backwards");
        let full = StackCounters { processed: 0xffff_fffe, ..counters };
        let begun_again = StackCounters { processed: 3, ..counters };
        assert_eq!(begun_again.since(&full).processed, 5);
    }

    #[test]
    fn what_found_the_ring_of_a_card_full_is_the_fifth_number() {
        let text = b"Inter-|   Receive  |  Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes\n    \
            lo:    3193      29    0    0    0     0          0         0     3193\neth0:214858034    7566    0    3    17     0\n";
        assert_eq!(ring_dropped(text), 17);
    }

    #[test]
    fn the_table_of_connections_names_its_columns() {
        let text = b"entries  clashres found new drop early_drop icmp_error\n00000010  00000000 00000000 00000000 0000000a 00000001\n\
            00000010  00000000 00000000 00000000 00000002 00000001\n";
        assert_eq!(conntrack_dropped(text), 12);
        assert_eq!(conntrack_dropped(b"entries found\n01 02\n"), 0);
    }

    #[test]
    fn the_time_without_memory_is_that_of_all_processes() {
        let text = b"some avg10=0.00 avg60=0.00 avg300=0.00 total=38466176\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7927346\n";
        assert_eq!(stalled_seconds(text), Some(7.927346));
        assert_eq!(stalled_seconds(b"some avg10=0.00 total=38466176\n"), None);
    }

    #[test]
    fn this_machine_is_read() {
        let mut reader = Reader::default();
        assert!(StackCounters::read(&mut reader).unwrap().processed > 0);
    }

    proptest! {
        #[test]
        fn no_text_panics(text: Vec<u8>) {
            StackCounters::of_softnet(&text);
            ring_dropped(&text);
            conntrack_dropped(&text);
            stalled_seconds(&text);
        }
    }
}
