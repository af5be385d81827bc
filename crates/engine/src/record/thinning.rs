//! Which seconds of a long run are written down as one: none of the first two hours, then ever more, so that a run of twice the
//! length has an hour's worth more of them.

/// Seconds that are written each. The aggregator keeps two hours by the second and thins in the same way, a
/// little earlier: a run that is read again is summed up from the same samples, and from sums over the same seconds.
pub(super) const EACH: u32 = 8_192;

/// The blocks of seconds of which one thing each is written.
#[derive(Clone, Debug)]
pub(super) struct WrittenBlocks {
    /// Seconds of which none is in one block with the second before it, in order.
    edges: Vec<u32>,
}

impl WrittenBlocks {
    pub(super) fn new(mut edges: Vec<u32>) -> Self {
        edges.sort_unstable();
        Self { edges }
    }

    /// Where the block of a second begins. Blocks are of one second, of two from second 8,192 on, of four from 16,384 on, and
    /// so on; a block with an edge in it is two.
    pub(super) fn begin(&self, second: u32) -> u32 {
        let length = (second / EACH).checked_ilog2().map_or(1, |doubled| 2 << doubled);
        let edge = self.edges.partition_point(|edge| *edge <= second).checked_sub(1).map(|at| self.edges[at]);
        edge.unwrap_or(0).max(second - second % length)
    }

    /// From now on no block has this second and the one before it.
    pub(super) fn cut(&mut self, second: u32) {
        let at = self.edges.partition_point(|edge| *edge < second);
        self.edges.insert(at, second);
    }
}

/// The samples that are written, as they come.
#[derive(Debug)]
pub(super) struct Thinning {
    blocks: WrittenBlocks,
    /// Where the block of the last sample begins, if it was one of the run's seconds.
    block: Option<u32>,
}

impl Thinning {
    /// Of a run with these edges of windows.
    pub(super) fn new(edges: Vec<u32>) -> Self {
        Self { blocks: WrittenBlocks::new(edges), block: None }
    }

    /// Whether the sample of a second is written: the first one of its block, all before second 0.
    pub(super) fn takes(&mut self, second: i64) -> bool {
        let Ok(second) = u32::try_from(second) else { return second < 0 };
        let block = self.blocks.begin(second);
        self.block.replace(block) != Some(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_seconds_are_as_many_samples_as_ten_hours() {
        let mut thinning = Thinning::new(vec![31, 500_001]);
        let taken: Vec<i64> = (-2..1_000_000).filter(|second| thinning.takes(*second)).collect();
        assert!(taken.len() < 37_000, "{}", taken.len());
        assert_eq!(taken[..4], [-2, -1, 0, 1]);
        assert_eq!(taken.iter().filter(|second| **second < 8_192).count(), 8_194, "two hours are whole");
        let of = |range: std::ops::Range<i64>| {
            taken.iter().copied().filter(|second| range.contains(second)).take(3).collect::<Vec<_>>()
        };
        assert_eq!(of(8_190..9_000), [8_190, 8_191, 8_192]);
        assert_eq!(of(8_192..9_000), [8_192, 8_194, 8_196]);
        assert_eq!(of(16_384..20_000), [16_384, 16_388, 16_392]);
        assert!(taken.contains(&500_001), "a window begins there");
    }

    #[test]
    fn a_day_is_six_hours_of_blocks_and_twice_the_length_is_an_hour_more() {
        let blocks = WrittenBlocks::new(vec![50_001]);
        let of = |end| (0..end).filter(|second| blocks.begin(*second) == *second).count();
        assert_eq!(of(EACH), EACH as usize);
        assert!((22_000..23_000).contains(&of(100_000)), "{}", of(100_000));
        assert!((36_000..37_000).contains(&of(1_000_000)), "{}", of(1_000_000));
        assert_eq!(of(1 << 20) - of(1 << 19), 4_096);
    }

    #[test]
    fn seconds_without_a_sample_do_no_harm() {
        let mut thinning = Thinning::new(Vec::new());
        let taken: Vec<i64> =
            [5, 5, 9, 8_193, 8_193, 8_195].into_iter().filter(|it| thinning.takes(*it)).collect();
        assert_eq!(taken, [5, 9, 8_193, 8_195]);
    }
}
