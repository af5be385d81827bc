//! Where a row of numbers changes its distribution: E-divisive means (Matteson and James, "A nonparametric approach for multiple
//! change point analysis of multivariate data", JASA 109, 2014), which MongoDB and Apache Otava find changes of performance by.
//!
//! A part of the row is cut where the energy distance between what lies before and behind is largest; whether that is more than
//! chance is asked of the same numbers in random orders. Then each of its two parts, until none has a change.

use fastrand::Rng;

/// Numbers on each side of a change at least: one that is far off is no change.
pub(crate) const FEWEST: usize = 3;

/// Random orders. The least probability that can be told is 1 of one more.
const ORDERS: u32 = 499;

/// The probability of a change in a row without one, for each that is looked at.
pub(crate) const LEVEL: f64 = 0.01;

/// A change: the position of the first number behind it, and the share of random orders with one as large.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) at: usize,
    pub(crate) p: f64,
}

/// All changes of a row, in its order. The random orders are the same each time.
pub(crate) fn change_points(row: &[f64]) -> Vec<Found> {
    let mut random = Rng::with_seed(0);
    let mut found = Vec::new();
    let mut parts = vec![(0, row.len())];
    while let Some((begin, end)) = parts.pop() {
        let part = &row[begin..end];
        let Some((at, most)) = largest(part) else { continue };
        let p = probability(part, most, &mut random);
        if p <= LEVEL {
            found.push(Found { at: begin + at, p });
            parts.extend([(begin, begin + at), (begin + at, end)]);
        }
    }
    found.sort_by_key(|it| it.at);
    found
}

/// The share of random orders with a cut as large as this one, itself among them.
fn probability(part: &[f64], most: f64, random: &mut Rng) -> f64 {
    let mut order = part.to_vec();
    let as_large = (0..ORDERS).filter(|_| {
        random.shuffle(&mut order);
        // Sums of the same numbers in another order differ in their last bits.
        largest(&order).is_some_and(|(_, of_order)| of_order >= most * (1.0 - 1e-9))
    });
    (as_large.count() as f64 + 1.0) / (f64::from(ORDERS) + 1.0)
}

/// The cut with the largest energy distance between its sides, scaled by their sizes *m* and *n* as in section 2.2 there:
/// `mn/(m+n) · (2·E|X−Y| − E|X−X'| − E|Y−Y'|)`. None if the row is too short, or all its numbers are one.
fn largest(row: &[f64]) -> Option<(usize, f64)> {
    if row.len() < 2 * FEWEST || row.iter().all(|it| *it == row[0]) {
        return None;
    }
    // Sums of distances between pairs before the cut, between pairs behind it, and across it; all are behind it at first.
    let mut before = 0.0;
    let mut behind: f64 = row
        .iter()
        .enumerate()
        .map(|(at, one)| row[..at].iter().map(|it| (it - one).abs()).sum::<f64>())
        .sum();
    let mut across = 0.0;
    let mut best: Option<(usize, f64)> = None;
    for cut in 1..=row.len() - FEWEST {
        let moved = row[cut - 1];
        let to = |others: &[f64]| others.iter().map(|it| (it - moved).abs()).sum::<f64>();
        let (to_before, to_behind) = (to(&row[..cut - 1]), to(&row[cut..]));
        before += to_before;
        behind -= to_behind;
        across += to_behind - to_before;
        if cut < FEWEST {
            continue;
        }
        let (m, n) = (cut as f64, (row.len() - cut) as f64);
        let within = |sum: f64, count: f64| 2.0 * sum / (count * (count - 1.0));
        let energy = 2.0 * across / (m * n) - within(before, m) - within(behind, n);
        let scaled = m * n / (m + n) * energy;
        if best.is_none_or(|(_, most)| scaled > most) {
            best = Some((cut, scaled));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(random: &mut Rng) -> f64 {
        let (one, two) = (1.0 - random.f64(), random.f64());
        (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * two).cos()
    }

    fn row(random: &mut Rng, levels: &[(f64, usize)]) -> Vec<f64> {
        let of = |(level, count): &(f64, usize)| (0..*count).map(|_| *level).collect::<Vec<_>>();
        levels.iter().flat_map(of).map(|level| level * (1.0 + 0.02 * normal(random))).collect()
    }

    #[test]
    fn the_cut_is_that_of_the_definition() {
        let row = [1.0, 1.1, 0.9, 1.0, 2.0, 2.1, 1.9];
        let distance =
            |a: &[f64], b: &[f64]| a.iter().flat_map(|x| b.iter().map(move |y| (x - y).abs())).sum::<f64>();
        let of = |cut: usize| {
            let (x, y) = row.split_at(cut);
            let (m, n) = (x.len() as f64, y.len() as f64);
            let energy = 2.0 * distance(x, y) / (m * n)
                - distance(x, x) / (m * (m - 1.0))
                - distance(y, y) / (n * (n - 1.0));
            m * n / (m + n) * energy
        };
        let (at, most) = largest(&row).unwrap();
        assert_eq!(at, 4);
        assert!((most - of(4)).abs() < 1e-12 && of(4) > of(3), "{most} {}", of(4));
    }

    #[test]
    fn a_step_is_found_where_it_is_and_so_are_two() {
        let mut random = Rng::with_seed(1);
        for _ in 0..20 {
            let found = change_points(&row(&mut random, &[(1.0, 12), (1.1, 12)]));
            assert!(matches!(found[..], [Found { at: 11..=13, .. }]), "{found:?}");
            let found = change_points(&row(&mut random, &[(1.0, 12), (1.3, 12), (1.0, 12)]));
            let at: Vec<_> = found.iter().map(|it| it.at).collect();
            assert_eq!(at, [12, 24]);
        }
    }

    #[test]
    fn a_row_without_a_change_rarely_has_one() {
        let mut random = Rng::with_seed(2);
        let rows = (0..200).filter(|_| !change_points(&row(&mut random, &[(1.0, 20)])).is_empty());
        let count = rows.count();
        assert!(count <= 6, "{count} of 200");
    }

    #[test]
    fn what_is_short_or_does_not_vary_or_has_one_number_far_off_has_none() {
        assert!(change_points(&[]).is_empty());
        assert!(change_points(&[1.0, 1.0, 2.0, 2.0, 2.0]).is_empty());
        assert!(change_points(&[0.0; 50]).is_empty());
        let mut random = Rng::with_seed(3);
        let mut one_off = row(&mut random, &[(1.0, 20)]);
        one_off[10] = 5.0;
        assert!(change_points(&one_off).is_empty());
    }
}
