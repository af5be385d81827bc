//! Rows of a label and what belongs to it, no wider and no higher than a terminal: what verbs draw while they go on. Functions of
//! values; who draws is elsewhere.

use console::{measure_text_width, truncate_str};
use std::time::Duration;

/// Columns of the smallest terminal that rows fit on.
pub(crate) const NARROWEST: usize = 40;
/// Columns of a label at the most.
const LABEL: usize = 12;
/// Columns of the bar that says how much is done, of a wide terminal and of a narrow one.
const BARS: (usize, usize) = (20, 10);
/// Columns from which a terminal is a wide one.
const WIDE: usize = 64;

/// The lines of `head` and of each row that has something in it, no more than `height` and none wider than `width`. Without room for all, the
/// last are left out.
pub(crate) fn lines(head: String, rows: &[(&str, &[String])], width: usize, height: usize) -> Vec<String> {
    let rows = || rows.iter().filter(|(_, parts)| !parts.is_empty());
    let label = rows().map(|(label, _)| measure_text_width(label)).max().unwrap_or(0).min(LABEL);
    let mut lines = vec![head];
    for (name, parts) in rows() {
        let name = truncate_str(name, label, "…");
        let name = format!("{name}{:1$}  ", "", label - measure_text_width(&name));
        for (at, text) in wrapped(parts, width.saturating_sub(label + 2)).into_iter().enumerate() {
            let before = if at == 0 { name.clone() } else { " ".repeat(label + 2) };
            lines.push(truncate_str(&format!("{before}{text}"), width, "…").into_owned());
        }
    }
    lines.truncate(height);
    lines
}

/// How long something has gone on and how long it will, if it has an end of its own.
pub(crate) fn progress(elapsed: Duration, length: Option<Duration>, width: usize) -> String {
    let at = clock(elapsed);
    let Some(length) = length else { return format!("{at}, until Ctrl-C") };
    let left = clock(length.saturating_sub(elapsed));
    let bar = bar(elapsed.as_secs_f64(), length.as_secs_f64(), width);
    truncate_str(&format!("{bar} {at} of {}, {left} left", clock(length)), width, "…").into_owned()
}

/// How much is done of a whole, for a terminal of this width.
pub(crate) fn bar(done: f64, whole: f64, width: usize) -> String {
    let columns = if width < WIDE { BARS.1 } else { BARS.0 };
    let done = done / whole.max(f64::MIN_POSITIVE);
    let full = (done.clamp(0.0, 1.0) * columns as f64).round() as usize;
    "━".repeat(full) + &"─".repeat(columns - full)
}

/// The parts in as few lines as they need, none broken.
fn wrapped(parts: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if measure_text_width(line) + 3 + measure_text_width(part) <= width => {
                line.push_str(" · ");
                line.push_str(part);
            }
            _ => lines.push(part.clone()),
        }
    }
    lines
}

/// Minutes and seconds, and hours if there are any: `1:30`, `2:05:00`.
pub(crate) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_as_long_as_what_is_done() {
        let at = |done, width| bar(done, 10.0, width);
        assert_eq!([at(0.0, 40), at(5.0, 40), at(99.0, 40)], ["──────────", "━━━━━─────", "━━━━━━━━━━"]);
        assert_eq!(measure_text_width(&at(3.0, 100)), 20);
        assert_eq!(bar(0.0, 0.0, 40), "──────────");
    }
}
