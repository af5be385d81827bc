//! Numbered units: which are missing, late or doubled.

/// How far behind the highest number a unit may still come before it is lost.
const REORDER_LIMIT: u32 = 8;

/// A gap or step back beyond this is another publisher, not loss.
const RESTART: u32 = 10_000;

/// Follows the sequence numbers of one stream; they wrap.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sequence {
    highest: Option<u32>,
    /// Bit n: the number n below the highest has come. All before the first count as come.
    seen: u64,
}

/// What one number revealed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// Numbers that have just been given up.
    pub lost: u32,
    /// Whether this one comes after a later one.
    pub reordered: bool,
    /// Whether this one came before.
    pub duplicate: bool,
}

impl Sequence {
    /// A unit with this number came.
    pub fn take(&mut self, number: u32) -> Finding {
        let Some(highest) = self.highest else { return self.restart(number) };
        let ahead = number.wrapping_sub(highest);
        let behind = highest.wrapping_sub(number);
        if ahead == 0 || behind < 64 {
            let bit = 1 << behind;
            let duplicate = self.seen & bit != 0;
            self.seen |= bit;
            return Finding { lost: 0, reordered: !duplicate, duplicate };
        }
        if ahead > RESTART {
            return if behind <= RESTART { Finding::default() } else { self.restart(number) };
        }
        let lost = self.advance(ahead);
        self.highest = Some(number);
        Finding { lost, ..Finding::default() }
    }

    /// Nothing comes any more: how many numbers are missing that had not been given up.
    pub fn end(&mut self) -> u32 {
        let lost = if self.highest.is_some() { missing(self.seen) } else { 0 };
        self.seen = u64::MAX;
        lost
    }

    /// Moves up by `ahead`; what was missing and falls out of patience is lost.
    fn advance(&mut self, ahead: u32) -> u32 {
        let missing_before = missing(self.seen);
        self.seen = if ahead < 64 { self.seen << ahead } else { 0 } | 1;
        missing_before + (ahead - 1) - missing(self.seen)
    }

    fn restart(&mut self, number: u32) -> Finding {
        self.highest = Some(number);
        self.seen = u64::MAX;
        Finding::default()
    }
}

/// Numbers that have not come and still may: less than [`REORDER_LIMIT`] below the highest.
fn missing(seen: u64) -> u32 {
    (!seen & ((1 << REORDER_LIMIT) - 1)).count_ones()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow(numbers: impl IntoIterator<Item = u32>) -> (u32, u32, u32) {
        let mut sequence = Sequence::default();
        let (mut lost, mut reordered, mut duplicate) = (0, 0, 0);
        for number in numbers {
            let finding = sequence.take(number);
            lost += finding.lost;
            reordered += u32::from(finding.reordered);
            duplicate += u32::from(finding.duplicate);
        }
        (lost + sequence.end(), reordered, duplicate)
    }

    #[test]
    fn every_tenth_dropped_is_every_tenth_lost() {
        assert_eq!(follow((1..1_000).filter(|n| n % 10 != 0)), (99, 0, 0));
    }

    #[test]
    fn bursts_are_counted_by_unit_and_swaps_are_not_loss() {
        assert_eq!(follow((0..500).filter(|n| n % 50 >= 5 || *n == 0)), (4 + 9 * 5, 0, 0));
        assert_eq!(
            follow((0..100).map(|n| if n % 10 == 3 {
                n + 1
            } else if n % 10 == 4 {
                n - 1
            } else {
                n
            })),
            (0, 10, 0)
        );
        assert_eq!(follow((0..100).flat_map(|n| [n, n])), (0, 0, 100));
    }

    #[test]
    fn a_gap_wider_than_the_window_is_counted_whole() {
        assert_eq!(follow([0, 1, 1_000]), (998, 0, 0));
        assert_eq!(follow((u32::MAX - 5..=u32::MAX).chain(2..9)), (2, 0, 0));
    }

    #[test]
    fn another_publisher_is_no_loss() {
        assert_eq!(follow([500_000, 500_001, 0, 1, 2]), (0, 0, 0));
    }
}
