//! How many gaps there are of which length.

use std::ops::AddAssign;

/// The lower limits of the classes: exact up to 8, then doubling.
const FROM: [u64; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 33, 65, 129, 257, 513, 1025];

/// Gaps by length: how many runs there were of each number of missing packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GapLengths([u64; FROM.len()]);

impl GapLengths {
    /// Each class: its shortest and its longest gap, `None` for no limit, and how many gaps are in it.
    pub fn classes(&self) -> impl Iterator<Item = (u64, Option<u64>, u64)> + use<> {
        let counts = self.0;
        (0..FROM.len())
            .map(move |class| (FROM[class], FROM.get(class + 1).map(|next| next - 1), counts[class]))
    }

    /// How many gaps there are.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(super) fn open(&mut self, length: u64) {
        if let Some(class) = class(length) {
            self.0[class] += 1;
        }
    }

    pub(super) fn close(&mut self, length: u64) {
        if let Some(class) = class(length) {
            self.0[class] = self.0[class].saturating_sub(1);
        }
    }
}

impl AddAssign for GapLengths {
    fn add_assign(&mut self, other: Self) {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count += more;
        }
    }
}

/// The class of a length; none for a gap of no length.
fn class(length: u64) -> Option<usize> {
    FROM.partition_point(|from| *from <= length).checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_length_is_in_one_class() {
        for length in (1..=1100).chain([40_000]) {
            let mut lengths = GapLengths::default();
            lengths.open(length);
            let holds = |(from, to, count): &(u64, Option<u64>, u64)| {
                *count == 1 && *from <= length && to.is_none_or(|to| length <= to)
            };
            assert_eq!((lengths.total(), lengths.classes().filter(holds).count()), (1, 1), "{length}");
            lengths.close(length);
            assert_eq!(lengths, GapLengths::default());
        }
        assert_eq!(class(0), None);
    }
}
