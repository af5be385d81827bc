//! The seconds of a long run that will be one line: added up as they come, until their block is over.

use super::thinning::{EACH, WrittenBlocks};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use weir_metrics::Interval;

/// Seconds that are added up.
#[derive(Debug)]
pub(super) struct OpenBlock {
    blocks: WrittenBlocks,
    /// Where the block begins.
    begin: u32,
    /// By workload and server, without the latest second.
    sums: BTreeMap<(u16, Option<u16>), Interval>,
    /// That of a run's end is kept apart, as the aggregator does.
    latest: Vec<Interval>,
}

/// Whether a second has lines of its own: each of the first two hours has.
pub(super) fn has_own_lines(second: u32) -> bool {
    second < EACH
}

impl OpenBlock {
    /// No block has seconds of both sides of an edge.
    pub(super) fn new(edges: Vec<u32>) -> Self {
        Self { blocks: WrittenBlocks::new(edges), begin: 0, sums: BTreeMap::new(), latest: Vec::new() }
    }

    /// Whether a second is in another block than those that are added up, which is over then.
    pub(super) fn is_over_with(&self, second: u32) -> bool {
        !self.latest.is_empty() && self.blocks.begin(second) != self.begin
    }

    /// Adds a second of the block.
    pub(super) fn add(&mut self, interval: &Interval) {
        let second = interval.key.second;
        self.begin = self.blocks.begin(second);
        if self.latest.first().is_some_and(|it| it.key.second != second) {
            self.add_latest();
        }
        self.latest.push(interval.clone());
    }

    fn add_latest(&mut self) {
        for interval in std::mem::take(&mut self.latest) {
            match self.sums.entry((interval.key.workload, interval.key.server)) {
                Entry::Vacant(entry) => drop(entry.insert(interval)),
                Entry::Occupied(mut entry) => entry.get_mut().append(&interval),
            }
        }
    }

    /// The sums of a block that is over, each workload's before those of its servers; the next block is empty.
    pub(super) fn take(&mut self) -> Vec<Interval> {
        self.add_latest();
        std::mem::take(&mut self.sums).into_values().collect()
    }

    /// The same at a run's end, and behind them its last second.
    pub(super) fn take_rest(&mut self) -> Vec<Interval> {
        let sums = std::mem::take(&mut self.sums).into_values();
        sums.chain(std::mem::take(&mut self.latest)).collect()
    }

    /// No block goes beyond the beginning of this second, in which the run was stopped.
    pub(super) fn cut(&mut self, second: u32) {
        self.blocks.cut(second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_metrics::common::{MEDIA, PLAYING};
    use weir_metrics::{IntervalKey, Recorder, Schema};

    fn second(second: u32, workload: u16) -> Interval {
        let mut figures = Recorder::new(Schema::new(&[]));
        figures.count(MEDIA, u64::from(second));
        figures.set(PLAYING, u64::from(second % 7));
        Interval::new(IntervalKey { second, workload, server: None }, figures)
    }

    /// What is written of the seconds from `begin` to `end` of two workloads.
    fn written(begin: u32, end: u32, edges: Vec<u32>) -> Vec<Interval> {
        let (mut block, mut written) = (OpenBlock::new(edges), Vec::new());
        for at in begin..end {
            if block.is_over_with(at) {
                written.extend(block.take());
            }
            [0, 1].iter().for_each(|workload| block.add(&second(at, *workload)));
        }
        written.extend(block.take());
        written
    }

    proptest! {
        #[test]
        fn every_second_is_in_one_block_and_no_edge_is_within_one(
            begin in EACH..200_000,
            length in 1u32..300,
            cuts in prop::collection::vec(0u32..300, 0..5),
        ) {
            let end = begin + length;
            let edges: Vec<u32> = cuts.iter().map(|cut| begin + cut).collect();
            let written = written(begin, end, edges.clone());
            for workload in [0, 1] {
                let of: Vec<_> = written.iter().filter(|it| it.key.workload == workload).collect();
                prop_assert_eq!((of[0].key.second, of[of.len() - 1].end()), (begin, end));
                prop_assert!(of.windows(2).all(|pair| pair[0].end() == pair[1].key.second));
                for interval in &of {
                    let seconds = interval.key.second..interval.end();
                    prop_assert!(edges.iter().all(|edge| *edge <= seconds.start || *edge >= seconds.end));
                    let media: u64 = seconds.clone().map(u64::from).sum();
                    let playing: u64 = seconds.map(|second| u64::from(second % 7)).sum();
                    prop_assert_eq!(interval.figures.counter(MEDIA), media);
                    prop_assert_eq!(interval.level_of(PLAYING).sum, playing);
                }
            }
        }
    }

    #[test]
    fn a_run_that_is_stopped_has_no_block_on_both_sides_of_that() {
        let mut block = OpenBlock::new(Vec::new());
        block.add(&second(65_536, 0));
        assert!(!block.is_over_with(65_537));
        block.cut(65_537);
        assert!(block.is_over_with(65_537));
        assert_eq!(block.take().iter().map(Interval::seconds).collect::<Vec<_>>(), [1]);
        block.add(&second(65_537, 0));
        assert!(!block.is_over_with(65_551) && block.is_over_with(65_552));
    }
}
