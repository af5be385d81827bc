//! Where a row of numbers changes its distribution: E-divisive means (Matteson and James, "A nonparametric approach for multiple
//! change point analysis of multivariate data", JASA 109, 2014), which MongoDB and Apache Otava find changes of performance by.
//!
//! A part of the row is cut where the energy distance between what lies before and behind is largest; whether that is more than
//! chance is asked of the same numbers in random orders. Then each of its two parts, until none has a change.

use fastrand::Rng;

/// Numbers on each side of a change at least: one that is far off is no change.
pub(crate) const FEWEST: usize = 3;

/// Random orders. The smallest probability that they can show is 1 in one more than their number.
const ORDERS: u32 = 499;

/// The probability of a change in a row without one, for each that is looked at.
pub(crate) const LEVEL: f64 = 0.01;

/// A change: the position of the first number behind it, and the share of random orders with one as large.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ChangePoint {
    pub(crate) at: usize,
    pub(crate) p: f64,
}

/// All changes of a row, in its order. The random orders are the same each time.
pub(crate) fn change_points(row: &[f64]) -> Vec<ChangePoint> {
    let mut random = Rng::with_seed(0);
    let mut found = Vec::new();
    let mut parts = vec![(0, row.len())];
    while let Some((begin, end)) = parts.pop() {
        let part = &row[begin..end];
        let Some((at, most)) = largest(part) else { continue };
        let p = probability(part, most, &mut random);
        if p <= LEVEL {
            found.push(ChangePoint { at: begin + at, p });
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

/// The cut with the largest energy distance between what lies before it and a stretch behind it, scaled by their sizes *m* and *n*
/// as in section 2.2 there: `mn/(m+n) · (2·E|X−Y| − E|X−X'| − E|Y−Y'|)`. The stretch need not reach to the end, or a level that
/// comes back would hide the one between. None if the row is too short, or all its numbers are one.
fn largest(row: &[f64]) -> Option<(usize, f64)> {
    if row.len() < 2 * FEWEST || row.iter().all(|it| *it == row[0]) {
        return None;
    }
    // Of each number the sums of its distances to all before a position.
    let sums: Vec<Vec<f64>> = row
        .iter()
        .map(|one| {
            let mut sum = 0.0;
            let add = |it: &f64| {
                sum += (it - one).abs();
                sum
            };
            std::iter::once(0.0).chain(row.iter().map(add)).collect()
        })
        .collect();
    let within = |sum: f64, count: f64| 2.0 * sum / (count * (count - 1.0));
    let mut best: Option<(usize, f64)> = None;
    let mut before = 0.0;
    for cut in 1..=row.len() - FEWEST {
        before += sums[cut - 1][cut - 1];
        if cut < FEWEST {
            continue;
        }
        let (mut across, mut behind) = (0.0, 0.0);
        for end in cut + 1..=row.len() {
            let of_last = &sums[end - 1];
            across += of_last[cut];
            behind += of_last[end - 1] - of_last[cut];
            if end - cut < FEWEST {
                continue;
            }
            let (m, n) = (cut as f64, (end - cut) as f64);
            let energy = 2.0 * across / (m * n) - within(before, m) - within(behind, n);
            let scaled = m * n / (m + n) * energy;
            if best.is_none_or(|(_, most)| scaled > most) {
                best = Some((cut, scaled));
            }
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
        let mut others = 0;
        for _ in 0..20 {
            for (levels, expected) in
                [(&[(1.0, 12), (1.1, 12)][..], &[12][..]), (&[(1.0, 12), (1.3, 12), (1.0, 12)], &[12, 24])]
            {
                let found: Vec<_> = change_points(&row(&mut random, levels)).iter().map(|it| it.at).collect();
                let is_found = |at: &usize| found.iter().any(|it| it.abs_diff(*at) <= 1);
                assert!(expected.iter().all(is_found), "{found:?}");
                others += found.len() - expected.len();
            }
        }
        // A hundred parts without a change were asked for one.
        assert!(others <= 3, "{others}");
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
