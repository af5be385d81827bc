//! Counters of processes that come and go, added up so that the total never runs backwards.

use std::collections::HashMap;
use std::hash::Hash;

/// What a counter that is seen for the first time adds to the total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// All it has counted: its owner was born while we watched, or we have just begun.
    Full,
    /// Nothing: its owner is older than the watch, and joined it late.
    Nothing,
}

/// `N` counters for each key, and their running totals. A key that vanishes leaves what it had counted.
#[derive(Clone, Debug)]
pub(crate) struct RunningTotals<K, const N: usize> {
    accounts: HashMap<K, KeyCounters<N>>,
    total: [u64; N],
    round: u64,
}

#[derive(Clone, Debug)]
struct KeyCounters<const N: usize> {
    last: [u64; N],
    round: u64,
}

impl<K: Eq + Hash, const N: usize> RunningTotals<K, N> {
    /// An empty totals.
    pub(crate) fn new() -> Self {
        Self { accounts: HashMap::new(), total: [0; N], round: 0 }
    }

    /// Books what `key` has counted up to now.
    pub(crate) fn record(&mut self, key: K, counters: [u64; N], opening: Opening) {
        let first = match opening {
            Opening::Full => [0; N],
            Opening::Nothing => counters,
        };
        let account = self.accounts.entry(key).or_insert(KeyCounters { last: first, round: 0 });
        for ((last, now), total) in account.last.iter_mut().zip(counters).zip(&mut self.total) {
            *total += now.saturating_sub(*last);
            *last = now.max(*last);
        }
        account.round = self.round;
    }

    /// Keeps what is booked for these keys, which are there and cannot be read this time.
    pub(crate) fn keep(&mut self, is_kept: impl Fn(&K) -> bool) {
        for (_, account) in self.accounts.iter_mut().filter(|(key, _)| is_kept(key)) {
            account.round = self.round;
        }
    }

    /// Ends a round: keys that were neither recorded nor kept in it are forgotten. Returns the totals.
    pub(crate) fn close(&mut self) -> [u64; N] {
        let round = self.round;
        self.accounts.retain(|_, account| account.round == round);
        self.round += 1;
        self.total
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_vanished_process_had_used_is_kept() {
        let mut totals = RunningTotals::new();
        totals.record("master", [100], Opening::Full);
        totals.record("worker", [50], Opening::Full);
        assert_eq!(totals.close(), [150]);
        totals.record("master", [101], Opening::Full);
        assert_eq!(totals.close(), [151]);
        // The same key after an absence is another process.
        totals.record("worker", [3], Opening::Full);
        assert_eq!(totals.close(), [154]);
    }

    #[test]
    fn a_process_that_cannot_be_read_for_a_while_is_not_booked_twice() {
        let mut totals = RunningTotals::new();
        totals.record("server", [100], Opening::Full);
        assert_eq!(totals.close(), [100]);
        totals.keep(|key| *key == "server");
        assert_eq!(totals.close(), [100]);
        totals.record("server", [130], Opening::Full);
        assert_eq!(totals.close(), [130]);
    }

    #[test]
    fn a_late_joiner_counts_from_when_it_joined() {
        let mut totals = RunningTotals::new();
        totals.record("old", [1000], Opening::Nothing);
        assert_eq!(totals.close(), [0]);
        totals.record("old", [1007], Opening::Nothing);
        assert_eq!(totals.close(), [7]);
    }

    proptest! {
        #[test]
        fn totals_never_run_backwards(rounds: Vec<Vec<(u8, u32, bool)>>) {
            let mut totals = RunningTotals::new();
            let mut before = [0];
            for round in rounds {
                for (key, counter, full) in round {
                    let opening = if full { Opening::Full } else { Opening::Nothing };
                    totals.record(key, [counter.into()], opening);
                }
                let total = totals.close();
                prop_assert!(total >= before);
                before = total;
            }
        }
    }
}
