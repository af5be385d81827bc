//! What is kept of every second of a run, in memory that does not grow with its length: of a long run by blocks of seconds.

use std::collections::BTreeMap;
use std::ops::{AddAssign, Range};

/// Blocks that are kept, at the most, beside those that begin at the edge of a window: two hours by the second. Of a longer
/// run two blocks become one, again and again.
pub(super) const MOST: usize = 7_200;

/// Where blocks begin: at a fixed distance in seconds, and at the edges of windows, so that a block is never in two of them.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    seconds: u32,
    /// In order.
    edges: Vec<u32>,
}

impl Grid {
    pub(super) fn new(edges: Vec<u32>) -> Self {
        Self { seconds: 1, edges }
    }

    /// The beginning of the block that a second is in.
    pub(super) fn begin(&self, second: u32) -> u32 {
        let edge =
            self.edges.partition_point(|edge| *edge <= second).checked_sub(1).map_or(0, |at| self.edges[at]);
        edge.max(second - second % self.seconds)
    }

    /// The second after the last of the block that begins with this one.
    fn end(&self, begin: u32) -> u32 {
        let end = (begin - begin % self.seconds).saturating_add(self.seconds);
        self.edges.get(self.edges.partition_point(|edge| *edge <= begin)).map_or(end, |edge| end.min(*edge))
    }

    /// Whether this many blocks are too many.
    pub(super) fn is_full(&self, blocks: usize) -> bool {
        blocks > MOST + self.edges.len()
    }

    /// From now on two blocks are one.
    pub(super) fn coarsen(&mut self) {
        self.seconds = self.seconds.saturating_mul(2);
    }

    /// Whether these seconds, which are one item already, are more than a block.
    fn is_finer_than(&self, seconds: &Range<u32>) -> bool {
        self.seconds < seconds.end.saturating_sub(seconds.start) && self.seconds < 1 << 31
    }
}

/// Sums of seconds, a block each.
#[derive(Debug)]
pub(super) struct Blocks<T> {
    grid: Grid,
    sums: BTreeMap<u32, T>,
}

impl<T: AddAssign + Copy + Default> Blocks<T> {
    pub(super) fn new(edges: Vec<u32>) -> Self {
        Self { grid: Grid::new(edges), sums: BTreeMap::new() }
    }

    /// Adds the sum over these seconds, of which no edge is within.
    pub(super) fn add(&mut self, seconds: Range<u32>, value: T) {
        while self.grid.is_finer_than(&seconds) {
            self.coarsen();
        }
        *self.sums.entry(self.grid.begin(seconds.start)).or_default() += value;
        if self.grid.is_full(self.sums.len()) {
            self.coarsen();
        }
    }

    fn coarsen(&mut self) {
        self.grid.coarsen();
        for (begin, sum) in std::mem::take(&mut self.sums) {
            *self.sums.entry(self.grid.begin(begin)).or_default() += sum;
        }
    }

    /// The sums of the blocks that begin in these seconds.
    pub(super) fn of(&self, seconds: Range<u32>) -> impl Iterator<Item = T> {
        self.sums.range(seconds).map(|(_, sum)| *sum)
    }

    /// Every block with its seconds.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Range<u32>, T)> {
        self.sums.iter().map(|(begin, sum)| (*begin..self.grid.end(*begin), *sum))
    }
}

/// An item of [`Firsts`].
pub(super) trait Successor {
    /// Takes over from an earlier item, which is left out, what may not be lost of it.
    fn take_over(&mut self, earlier: Self);
}

/// What cannot be added: the first item of each block, and the latest of all.
#[derive(Debug)]
pub(super) struct Firsts<T> {
    grid: Grid,
    /// In order, each with its second.
    items: Vec<T>,
    seconds: Vec<i64>,
    /// How many of them are of before second 0.
    before: usize,
}

impl<T: Successor> Firsts<T> {
    pub(super) fn new(edges: Vec<u32>) -> Self {
        Self { grid: Grid::new(edges), seconds: Vec::new(), items: Vec::new(), before: 0 }
    }

    /// Adds an item that is not older than the others. Of before second 0 as many are kept as of a run of two hours, and the
    /// latest.
    pub(super) fn push(&mut self, second: i64, mut item: T) {
        let is_left_out = match self.seconds[..] {
            [.., latest] if latest < 0 => second < 0 && self.before >= MOST,
            [.., before, latest] => self.grid.seconds > 1 && self.block(before) == self.block(latest),
            _ => false,
        };
        if is_left_out && let (Some(left_out), Some(latest)) = (self.items.pop(), self.seconds.pop()) {
            item.take_over(left_out);
            self.before -= usize::from(latest < 0);
        }
        self.before += usize::from(second < 0);
        self.seconds.push(second);
        self.items.push(item);
        if self.grid.is_full(self.items.len() - self.before) {
            self.coarsen();
        }
    }

    /// Makes one block of two. The item after one that is left out takes over from it.
    fn coarsen(&mut self) {
        self.grid.coarsen();
        let (seconds, items) = (std::mem::take(&mut self.seconds), std::mem::take(&mut self.items));
        let last = seconds.len() - 1;
        let (mut previous, mut left_out) = (None, None::<T>);
        for (at, (second, mut item)) in seconds.into_iter().zip(items).enumerate() {
            let block = self.block(second);
            let is_kept = previous.replace(block) != Some(block) || at == last;
            if let Some(earlier) = left_out.take() {
                item.take_over(earlier);
            }
            if is_kept {
                self.seconds.push(second);
                self.items.push(item);
            } else {
                left_out = Some(item);
            }
        }
    }

    /// The item of a second, if it is kept.
    pub(super) fn get_mut(&mut self, second: i64) -> Option<&mut T> {
        self.seconds.binary_search(&second).ok().map(|at| &mut self.items[at])
    }

    /// The second of the latest item.
    pub(super) fn latest_second(&self) -> Option<i64> {
        self.seconds.last().copied()
    }

    /// Those that are kept, in their order.
    pub(super) fn items(&self) -> &[T] {
        &self.items
    }

    fn block(&self, second: i64) -> i64 {
        u32::try_from(second).map_or(second, |second| self.grid.begin(second).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sums_between_edges_are_exact_however_long_the_run_is(
            edges in prop::collection::btree_set(0_u32..100_000, 0..6),
            seconds in 20_000_u32..100_000,
        ) {
            let edges: Vec<u32> = edges.into_iter().collect();
            let mut blocks = Blocks::new(edges.clone());
            (0..seconds).for_each(|second| blocks.add(second..second + 1, u64::from(second) + 1));
            prop_assert!(blocks.sums.len() <= MOST + edges.len());
            for pair in edges.windows(2) {
                let sum: u64 = (pair[0]..pair[1].min(seconds)).map(|second| u64::from(second) + 1).sum();
                prop_assert_eq!(blocks.of(pair[0]..pair[1]).sum::<u64>(), sum);
            }
            let ends: Vec<_> = blocks.iter().map(|(seconds, _)| seconds).collect();
            prop_assert!(ends.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
    }

    /// Its second, and how many were left out before it.
    #[derive(Debug, PartialEq)]
    struct Numbered(i64, u64);

    impl Successor for Numbered {
        fn take_over(&mut self, earlier: Self) {
            self.1 += earlier.1 + 1;
        }
    }

    #[test]
    fn of_what_cannot_be_added_the_edges_of_windows_and_both_ends_are_kept() {
        let mut firsts = Firsts::new(vec![31, 90_001]);
        (-3..100_000_i64).for_each(|second| firsts.push(second, Numbered(second, 0)));
        let seconds: Vec<i64> = firsts.items().iter().map(|item| item.0).collect();
        assert!(seconds.len() <= MOST + 3 + 2, "{}", seconds.len());
        assert!([-3, -2, -1, 0, 31, 90_001, 99_999].iter().all(|second| seconds.contains(second)));
        assert!(seconds.is_sorted() && firsts.seconds == seconds);
        assert_eq!(firsts.get_mut(1), None);
        assert_eq!(firsts.get_mut(0), Some(&mut Numbered(0, 0)));
        let all: u64 = firsts.items().iter().map(|item| item.1 + 1).sum();
        assert_eq!(all, 100_003, "what is left out is taken over once");
    }

    #[test]
    fn of_hours_before_the_load_as_much_is_kept_and_the_load_is_no_coarser() {
        let mut firsts = Firsts::new(Vec::new());
        (-10_800..100_i64).for_each(|second| firsts.push(second, Numbered(second, 0)));
        let seconds: Vec<i64> = firsts.items().iter().map(|item| item.0).collect();
        assert_eq!(seconds.len(), MOST + 100);
        assert_eq!((seconds[0], seconds[MOST - 1]), (-10_800, -1));
        assert!(seconds[MOST..].iter().copied().eq(0..100));
    }

    #[test]
    fn of_two_hours_every_second_is_kept() {
        let mut blocks = Blocks::new(vec![10]);
        (0..7_200).for_each(|second| blocks.add(second..second + 1, 1_u64));
        assert_eq!(blocks.sums.len(), 7_200);
        (7_200..7_202).for_each(|second| blocks.add(second..second + 1, 1));
        assert_eq!(blocks.sums.len(), 3_601);
        assert_eq!(blocks.of(0..10).sum::<u64>(), 10);
    }
}
