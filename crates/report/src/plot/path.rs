//! Points as the path of an SVG: a line with its gaps, marks, or the outline of a range.

use super::{Axes, Mark};
use std::fmt::Write as _;

/// More points than this a line are thinned.
pub(super) const POINTS: usize = 640;

/// Long lines keep the lowest and the highest of each bucket, so that no peak is lost.
pub(super) fn thinned(points: &[(f64, Option<f64>)]) -> Vec<(f64, Option<f64>)> {
    if points.len() <= POINTS {
        return points.to_vec();
    }
    let bucket = points.len().div_ceil(POINTS / 2);
    let of_bucket = |bucket: &[(f64, Option<f64>)]| {
        let measured = || bucket.iter().enumerate().filter_map(|(at, (_, value))| Some((at, (*value)?)));
        let lowest = measured().min_by(|a, b| a.1.total_cmp(&b.1));
        let highest = measured().max_by(|a, b| a.1.total_cmp(&b.1));
        match (lowest, highest) {
            (Some((a, _)), Some((b, _))) if a == b => vec![bucket[a]],
            (Some((a, _)), Some((b, _))) => vec![bucket[a.min(b)], bucket[a.max(b)]],
            _ => bucket[..1].to_vec(),
        }
    };
    points.chunks(bucket).flat_map(of_bucket).collect()
}

/// A bar around the place where the path stands.
pub(super) const LONE: &str = "m-3 0h6";

/// The path of a line; a value between two gaps is a short bar.
pub(super) fn path(points: &[(f64, Option<f64>)], axes: &Axes) -> String {
    let mut path = String::new();
    let mut run = 0;
    for (second, value) in points {
        let Some(value) = value.filter(|value| value.is_finite()) else {
            if run == 1 {
                path.push_str(LONE);
            }
            run = 0;
            continue;
        };
        let letter = if run == 0 { 'M' } else { 'L' };
        let _ = write!(path, "{letter}{:.1} {:.1}", axes.x(*second), axes.y(value));
        run += 1;
    }
    if run == 1 {
        path.push_str(LONE);
    }
    path
}

/// Points of a shape.
pub(super) fn marks(points: &[(f64, Option<f64>)], axes: &Axes, mark: Mark) -> String {
    let there = points.iter().filter_map(|(at, value)| Some((*at, (*value).filter(|it| it.is_finite())?)));
    let mut marks = String::new();
    for (at, value) in there {
        let _ = write!(marks, "M{:.1} {:.1}{}", axes.x(at), axes.y(value), mark.path());
    }
    marks
}

/// The outline of a range: along its upper end and back along its lower end, between gaps.
pub(super) fn outline(range: &[(f64, Option<(f64, f64)>)], axes: &Axes) -> String {
    let mut outline = String::new();
    for run in range.split(|(_, range)| range.is_none()).filter(|run| run.len() > 1) {
        let known = || run.iter().filter_map(|(at, range)| Some((*at, (*range)?)));
        for (at, (_, high)) in known() {
            let letter = if outline.is_empty() || outline.ends_with('z') { 'M' } else { 'L' };
            let _ = write!(outline, "{letter}{:.1} {:.1}", axes.x(at), axes.y(high));
        }
        for (at, (low, _)) in known().collect::<Vec<_>>().into_iter().rev() {
            let _ = write!(outline, "L{:.1} {:.1}", axes.x(at), axes.y(low));
        }
        outline.push('z');
    }
    outline
}
