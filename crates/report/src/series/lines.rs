//! A series' answer in one line: how each variant differs from the first, and whether that can be told.

use crate::quantity::{NOTHING, several};
use crate::quote::quote;
use crate::sweep::lines::fails;
use crate::table::signed;
use weir_answers::series::SeriesSummary;
use weir_answers::table::{
    Difference, FEWEST_FOR_DIFFERENCE, Finding, TableFigure, VariantComparison, VariantThreshold,
};

/// The most figures that are named of a variant, and the most variants: what a line can hold.
const MOST_FIGURES: usize = 3;
const MOST_VARIANTS: usize = 4;

/// Of figures that are the same, one in this many is told apart by chance: intervals are of 95 %.
const BY_CHANCE: usize = 20;

/// The answer in one line; `None` if a series has one variant, or nothing of it is in the figures.
pub fn series_line(summary: &SeriesSummary) -> Option<String> {
    if summary.comparisons.is_empty() || summary.variants.iter().all(|it| it.counted == 0) {
        return None;
    }
    let (told, untold): (Vec<_>, Vec<_>) =
        summary.comparisons.iter().partition(|it| pairs(it) >= FEWEST_FOR_DIFFERENCE as u64);
    let mut parts: Vec<String> = told.iter().map(|it| against(it, &summary.table.figures)).collect();
    if !untold.is_empty() {
        let others: Vec<_> = untold.iter().map(|it| quote(&it.other, 40)).collect();
        let pairs: Vec<_> = untold.iter().map(|it| pairs(it).to_string()).collect();
        let remedy = if summary.repeat < FEWEST_FOR_DIFFERENCE as u32 { ": write `repeat: 4`" } else { "" };
        parts.push(format!(
            "too few runs to tell {} from {} ({} of each; four tell a difference{remedy})",
            first_of(&others, "variant"),
            quote(&untold[0].base, 40),
            first_of(&pairs, "number"),
        ));
    }
    let more = parts.len().saturating_sub(MOST_VARIANTS);
    parts.truncate(MOST_VARIANTS);
    if more > 0 {
        parts.push(format!("{} in the tables", several(more as u64, "more variant")));
    }
    parts.extend(summary.variants.iter().filter_map(|variant| {
        let is_failed = |it: &&VariantThreshold| it.passed < it.runs;
        let failed: Vec<_> = variant.thresholds.iter().filter(is_failed).cloned().collect();
        fails(&variant.name, &failed)
    }));
    Some(parts.join("; "))
}

fn pairs(comparison: &VariantComparison) -> u64 {
    comparison.pairs.unwrap_or_default()
}

/// Words in a row, a few of many.
fn first_of(words: &[String], noun: &str) -> String {
    let shown = words[..words.len().min(MOST_VARIANTS)].join(", ");
    match words.len() - words.len().min(MOST_VARIANTS) {
        0 => shown,
        more => format!("{shown} and {}", several(more as u64, &format!("more {noun}"))),
    }
}

/// A difference of a figure that is better one way.
type FigureDifference<'a> = (&'a Difference, &'a TableFigure);

/// How a variant differs from the first.
fn against(comparison: &VariantComparison, figures: &[TableFigure]) -> String {
    let (base, other) = (quote(&comparison.base, 40), quote(&comparison.other, 40));
    // What stands in the table, is better one way, and was measured often enough.
    let compared: Vec<FigureDifference<'_>> = comparison
        .differences
        .iter()
        .filter(|it| it.finding != Finding::Unknown)
        .filter_map(|it| {
            let is_it = |figure: &&TableFigure| figure.name == it.figure && figure.title.is_some();
            let figure = figures.iter().find(is_it).filter(|figure| figure.better.is_some())?;
            Some((it, figure))
        })
        .collect();
    let mut apart: Vec<_> =
        compared.iter().filter(|(difference, _)| difference.finding.is_different()).collect();
    if compared.is_empty() {
        return format!("no figure has four values of {other} and of {base}");
    }
    if apart.is_empty() {
        return format!(
            "nothing tells {other} from {base} ({} alike)",
            several(compared.len() as u64, "figure")
        );
    }
    // A figure that was nothing before has no ratio, and differs most.
    let size = |it: &Difference| it.ratio.map_or(f64::INFINITY, |ratio| ratio.mean.ln().abs());
    apart.sort_by(|(one, _), (another, _)| size(another).total_cmp(&size(one)));
    let is_gain = |(difference, _): &&&FigureDifference<'_>| difference.finding == Finding::Better;
    let (gains, losses): (Vec<_>, Vec<_>) = apart.iter().partition(is_gain);
    let named = |of: &[&&FigureDifference<'_>]| {
        let mut said: Vec<(String, String)> = Vec::new();
        for (difference, figure) in of {
            let whole = without_stage(title(figure));
            if said.iter().any(|(title, _)| *title == whole) {
                continue;
            }
            let is_of_it = |it: &FigureDifference<'_>| without_stage(title(it.1)) == whole;
            let amount = amount(difference, figure);
            // The first one is of the stage in which it differs most.
            let words = match of.iter().filter(|it| is_of_it(it)).count() {
                1 => format!("{} {amount}", quote(title(figure), 60)),
                stages => {
                    let all = compared.iter().filter(|it| is_of_it(it)).count();
                    format!("{} up to {amount} in {stages} of {all} stages", quote(&whole, 60))
                }
            };
            said.push((whole, words));
        }
        let shown: Vec<_> = said.iter().take(MOST_FIGURES).map(|(_, words)| &**words).collect();
        let more = if said.len() > MOST_FIGURES { ", …" } else { "" };
        format!("{}{more}", shown.join(", "))
    };
    let answer = match (&gains[..], &losses[..]) {
        (gains, []) => format!("{other} is better than {base}: {}", named(gains)),
        ([], losses) => format!("{other} is worse than {base}: {}", named(losses)),
        (gains, losses) => {
            format!("{other} against {base}: better {}, worse {}", named(gains), named(losses))
        }
    };
    let chance = compared.len().div_ceil(BY_CHANCE);
    let differ = if apart.len() == 1 { "differs" } else { "differ" };
    let all = several(compared.len() as u64, "figure");
    format!("{answer} ({} of {all} {differ}, {chance} may by chance)", apart.len())
}

fn title(figure: &TableFigure) -> &str {
    figure.title.as_deref().unwrap_or_default()
}

/// A figure's title without the stage that it is of: `play: stage 2: Startup p99` is `play: Startup p99`.
fn without_stage(title: &str) -> String {
    let is_stage = |part: &&str| part.strip_prefix("stage ").is_some_and(|it| it.parse::<u16>().is_ok());
    title.split(": ").filter(|part| !is_stage(part)).collect::<Vec<_>>().join(": ")
}

/// `×0.90`; without a ratio the difference.
fn amount(difference: &Difference, figure: &TableFigure) -> String {
    match (difference.ratio, difference.difference) {
        (Some(ratio), _) => format!("×{:.2}", ratio.mean),
        (None, Some(difference)) => signed(figure, difference.mean),
        (None, None) => NOTHING.to_owned(),
    }
}
