//! What a measurement comes to that was repeated: its mean, and how far that can be trusted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The mean of repeated measurements with its 95 % confidence interval: mean ± *t*·*s*/√*n*, *s* the standard
/// deviation of the *n* repetitions, *t* the 97.5 % quantile of Student's distribution with *n* − 1 degrees of freedom.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// What repetitions come to; `None` for fewer than two, or if one is no finite number.
    pub fn of(repetitions: &[f64]) -> Option<Self> {
        if repetitions.len() < 2 || !repetitions.iter().all(|it| it.is_finite()) {
            return None;
        }
        let count = repetitions.len() as f64;
        let mean = repetitions.iter().sum::<f64>() / count;
        let squares: f64 = repetitions.iter().map(|it| (it - mean).powi(2)).sum();
        let error = (squares / (count - 1.0) / count).sqrt();
        let half = StudentsT::new(0.0, 1.0, count - 1.0).ok()?.inverse_cdf(0.975) * error;
        Some(Self { mean, low: mean - half, high: mean + half })
    }

    /// What repeated ratios come to: their geometric mean, so that a ratio and its inverse are estimated alike. `None`
    /// as above, or if one is not positive.
    pub fn of_ratios(repetitions: &[f64]) -> Option<Self> {
        let logarithms: Vec<f64> = repetitions.iter().map(|ratio| ratio.ln()).collect();
        let Self { mean, low, high } = Self::of(&logarithms)?;
        Some(Self { mean: mean.exp(), low: low.exp(), high: high.exp() })
    }

    /// The slope of the straight line through points `(x, y)` by least squares, with its interval: slope ± *t*·*s*, *s* the
    /// standard error of the slope, *t* with *n* − 2 degrees of freedom. `None` for fewer than three points, if all have the
    /// same *x*, or if one is no finite number.
    pub fn of_slope(points: &[(f64, f64)]) -> Option<Self> {
        let line = Line::through(points)?;
        let squares = line.residuals(points).iter().map(|it| it * it).sum();
        line.slope(squares, points.len() as f64)
    }

    /// The same of points in the order of time, of which each resembles the one before it. Their number *n* counts for
    /// *n*·(1 − *r*)/(1 + *r*), three at least, both in the standard error and in the degrees of freedom (B. Santer et al.,
    /// Statistical significance of trends, J. Geophys. Res. 105, 2000, equations 4 to 6). *r*, 0 at the least, is the
    /// autocorrelation of the residuals at a lag of one point without its bias: around a line it comes out too small by
    /// (2 + 4·*r*)/*n* (P. Shaman, R. Stine, The bias of autoregressive coefficient estimators, J. Am. Stat. Assoc. 83, 1988).
    pub fn of_slope_in_time(points: &[(f64, f64)]) -> Option<Self> {
        let line = Line::through(points)?;
        let residuals = line.residuals(points);
        let together: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
        let squares: f64 = residuals.iter().map(|it| it * it).sum();
        let count = points.len() as f64;
        let biased = if squares > 0.0 { together / squares } else { -1.0 };
        let correlation = ((biased * count + 2.0) / (count - 4.0).max(1.0)).clamp(0.0, 1.0);
        let worth = count * (1.0 - correlation) / (1.0 + correlation);
        line.slope(squares, worth.max(3.0))
    }

    /// Whether the interval leaves a value out.
    pub fn excludes(&self, value: f64) -> bool {
        value < self.low || value > self.high
    }
}

/// The straight line through points by least squares.
#[derive(Clone, Copy, Debug)]
struct Line {
    middle: (f64, f64),
    /// Sum of the squared distances of the *x* from their mean.
    spread: f64,
    slope: f64,
}

impl Line {
    fn through(points: &[(f64, f64)]) -> Option<Self> {
        if points.len() < 3 || !points.iter().all(|(x, y)| x.is_finite() && y.is_finite()) {
            return None;
        }
        let count = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let middle = (mean(|it| it.0), mean(|it| it.1));
        let spread: f64 = points.iter().map(|(x, _)| (x - middle.0).powi(2)).sum();
        let together: f64 = points.iter().map(|(x, y)| (x - middle.0) * (y - middle.1)).sum();
        let slope = Some(together / spread).filter(|slope| slope.is_finite())?;
        Some(Self { middle, spread, slope })
    }

    fn residuals(&self, points: &[(f64, f64)]) -> Vec<f64> {
        points.iter().map(|(x, y)| y - self.middle.1 - self.slope * (x - self.middle.0)).collect()
    }

    /// Its slope, where the squares of the residuals have this sum and the points are worth this many.
    fn slope(&self, squares: f64, count: f64) -> Option<Estimate> {
        let freedom = Some(count - 2.0).filter(|freedom| *freedom >= 1.0)?;
        let error = (squares / freedom / self.spread).sqrt();
        let half = StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(0.975) * error;
        Some(Estimate { mean: self.slope, low: self.slope - half, high: self.slope + half })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    }

    #[test]
    fn the_interval_is_that_of_student() {
        // R: t.test(c(1, 2, 3, 4, 5)).
        let Estimate { mean, low, high } = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        close(mean, 3.0);
        close(low, 1.036_756_838_522_4);
        close(high, 4.963_243_161_477_6);
        // Two repetitions say little.
        let two = Estimate::of(&[1.0, 2.0]).unwrap();
        close(two.high, 1.5 + 12.706_204_736_432_1 / 2.0);
        assert!(!two.excludes(0.0) && two.excludes(8.0));
    }

    #[test]
    fn the_slope_and_its_interval_are_those_of_the_linear_model() {
        // R: confint(lm(c(1.1, 1.9, 3.2, 3.9, 5.1) ~ c(1, 2, 3, 4, 5))).
        let points = [(1.0, 1.1), (2.0, 1.9), (3.0, 3.2), (4.0, 3.9), (5.0, 5.1)];
        let Estimate { mean, low, high } = Estimate::of_slope(&points).unwrap();
        close(mean, 1.0);
        // Residuals 0.06, −0.14, 0.16, −0.14, 0.06; t(0.975, 3) = 3.182446305.
        let half = 3.182_446_305_284 * (0.072_f64 / 3.0 / 10.0).sqrt();
        close(low, 1.0 - half);
        close(high, 1.0 + half);
        assert_eq!(Estimate::of_slope(&points[..2]), None);
        assert_eq!(Estimate::of_slope(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
    }

    #[test]
    fn points_that_resemble_each_other_say_less_and_alternating_ones_no_more() {
        let at = |y: &[f64]| y.iter().zip(0_u32..).map(|(y, x)| (f64::from(x), *y)).collect::<Vec<_>>();
        let width = |it: Estimate| it.high - it.low;
        let alternating = at(&[0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]);
        let (plain, in_time) = (Estimate::of_slope(&alternating), Estimate::of_slope_in_time(&alternating));
        assert_eq!(plain, in_time);
        let in_waves = at(&[0.0, 1.0, 2.0, 2.0, 1.0, 0.0, 0.0, 1.0, 2.0, 2.0, 1.0, 0.0]);
        let plain = Estimate::of_slope(&in_waves).unwrap();
        let in_time = Estimate::of_slope_in_time(&in_waves).unwrap();
        close(plain.mean, in_time.mean);
        assert!(width(in_time) > width(plain) * 1.5, "{in_time:?} {plain:?}");
    }

    #[test]
    fn ratios_and_their_inverses_are_estimated_alike() {
        let ratio = Estimate::of_ratios(&[2.0, 4.0, 8.0]).unwrap();
        let inverse = Estimate::of_ratios(&[0.5, 0.25, 0.125]).unwrap();
        close(ratio.mean, 4.0);
        close(ratio.mean * inverse.mean, 1.0);
        close(ratio.low * inverse.high, 1.0);
    }

    #[test]
    fn what_says_nothing_is_nothing() {
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[1.0]), None);
        assert_eq!(Estimate::of(&[1.0, f64::NAN]), None);
        assert_eq!(Estimate::of_ratios(&[1.0, 0.0]), None);
        assert_eq!(Estimate::of(&[1.0, 1.0]), Some(Estimate { mean: 1.0, low: 1.0, high: 1.0 }));
    }
}
