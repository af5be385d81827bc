//! `weir run --check` and `weir sweep --check`: what a scenario would do, in a few lines and a picture of its clients over time.

use crate::exit::Exit;
use crate::print::{text, written};
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use weir_engine::ingest::SCHEMA;
use weir_engine::plan::{Plan, PlannedSlot};
use weir_engine::scenario::lines::Part;
use weir_engine::scenario::{Variation, WorkloadSpec};
use weir_metrics::{Schema, several};
use weir_protocols::of_url;
use weir_runner::prepare::{self, Generators};
use weir_runner::{ErrorKind, RunError};

/// Heights of a column, the lowest first.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Columns of a picture, at most.
const WIDEST: usize = 60;

/// Checks every variant of a scenario, and prints what would be done with it: `how` they are worked through, if there is more to say of that
/// than the file does, then each.
///
/// # Errors
/// What is wrong with one.
pub(crate) fn print(
    file: &Path,
    how: &str,
    variations: &[Variation],
    repeat: u32,
    generators: &Generators,
) -> Result<Exit, RunError> {
    let outlines = variations.iter().map(|it| of(it, repeat, generators));
    let outlines = outlines.collect::<Result<Vec<_>, RunError>>()?;
    let how = if how.is_empty() { String::new() } else { format!("{how}\n\n") };
    let page = format!("{}: fine\n\n{how}{}", file.display(), outlines.join("\n"));
    written(std::io::stdout().lock().write_all(page.as_bytes()))?;
    Ok(Exit::Passed)
}

/// Makes every check of a scenario that needs no server, and describes what it would do.
///
/// # Errors
/// What is wrong with it.
fn of(variation: &Variation, repeat: u32, generators: &Generators) -> Result<String, RunError> {
    let Variation { scenario, variant } = variation;
    let plan = prepare::check(scenario, ErrorKind::Scenario, generators)?;
    let schemas: Vec<_> = scenario.workloads.iter().filter_map(schema).collect();
    let thresholds = scenario.thresholds.iter().enumerate().map(|(at, it)| (Part::Threshold(at), it));
    let aborts = scenario.abort.iter().enumerate().map(|(at, it)| (Part::Abort(at), it));
    for (part, threshold) in thresholds.chain(aborts) {
        let checked = threshold.check(&schemas).and_then(|()| threshold.check_workloads(scenario));
        checked.map_err(|error| RunError::with(ErrorKind::Scenario)(error).of(part))?;
        let watched = prepare::check_watched_here(threshold, scenario, generators);
        watched.map_err(|line| RunError::new(ErrorKind::Scenario, line).of(part))?;
    }
    for (at, watch) in scenario.watch.iter().enumerate() {
        let read = watch.parse::<weir_observe::Watch>();
        read.map_err(|error| RunError::with(ErrorKind::Scenario)(error).of(Part::Watch(at)))?;
    }
    let width = usize::from(text().width);
    let mut page = String::new();
    let name = variant.as_ref().map_or(String::new(), |variant| format!(", variant {}", variant.name));
    let times = if repeat > 1 { format!(", {repeat} times") } else { String::new() };
    let length = if scenario.is_endless() {
        "until Ctrl-C".to_owned()
    } else {
        time(plan.about.unwrap_or(plan.length))
    };
    // A search finds load and time itself, and asks what the file asks.
    let is_searched = scenario.find.is_some();
    let length = if is_searched { "a search".to_owned() } else { length };
    page.push_str(&format!("{}{name}: {length}{times}\n", scenario.name));
    for (number, spec) in (0..).zip(&scenario.workloads) {
        let shown = scenario.without_secrets();
        let urls = shown.workloads.get(usize::from(number)).and_then(|it| it.verb().ok());
        let urls = urls.map_or_else(String::new, |(_, urls)| urls.join(", "));
        page.push_str(&format!("\n{}: {urls}\n", spec.label()));
        if !is_searched {
            page.push_str(&picture(&plan, number, width));
        }
    }
    let asked = if is_searched { scenario.thresholds.clone() } else { scenario.asked() };
    let asked: Vec<_> = asked.iter().map(|it| it.text().to_owned()).collect();
    if !asked.is_empty() {
        page.push_str(&format!("\nasked: {}\n", asked.join(", ")));
    }
    for line in scenario.too_short(&plan).iter().filter(|_| !is_searched) {
        page.push_str(&format!("note: {line}\n"));
    }
    let count = |page: &mut String, what: &str, steps: usize| {
        if steps > 0 {
            page.push_str(&format!("{what}: {}\n", several(steps as u64, "step")));
        }
    };
    count(&mut page, "before", scenario.before.len());
    for restart in &scenario.during {
        let (at, down) = (time(restart.at.get()), restart.down());
        let down = if down.is_zero() { String::new() } else { format!(", away for {}", time(down)) };
        page.push_str(&format!("at {at}: restart of {}{down}\n", restart.restart));
    }
    count(&mut page, "after", scenario.after.len());
    Ok(page)
}

/// The figures that a workload will have, by its first URL.
fn schema(spec: &WorkloadSpec) -> Option<Schema> {
    if spec.saves() {
        return Some(SCHEMA);
    }
    let (_, urls) = spec.verb().ok()?;
    Some(of_url(urls.first()?)?.schema)
}

/// The clients of a workload over the time of the whole plan: one row of bars, with its scale.
fn picture(plan: &Plan, workload: u16, width: usize) -> String {
    let slots: Vec<_> = plan.slots.iter().filter(|slot| slot.workload == workload).collect();
    // A run until Ctrl-C, or until a count is reached, has a plan of years: its last stage goes on.
    let last_start = slots.iter().map(|slot| slot.start).max().unwrap_or_default();
    let length = plan.about.unwrap_or(plan.length).min(last_start * 2 + Duration::from_secs(3_600 * 24 * 7));
    let columns = width.saturating_sub(12).clamp(8, WIDEST);
    let counts = counts(&slots, length, columns);
    let most = counts.iter().copied().max().unwrap_or_default();
    let bar = |count: &usize| match (count * BARS.len()).checked_div(most) {
        None | Some(0) if *count == 0 => ' ',
        level => BARS[level.unwrap_or_default().clamp(1, BARS.len()) - 1],
    };
    let bars: String = counts.iter().map(bar).collect();
    let end = time(length);
    let gap = columns.saturating_sub(3 + end.chars().count());
    format!("{most:>8}  {}\n          0 s{:gap$}{end}\n", bars.trim_end(), "")
}

/// How many clients there are in the middle of each of `columns` equal parts of the time.
fn counts(slots: &[&PlannedSlot], length: Duration, columns: usize) -> Vec<usize> {
    let middle = |column: usize| length.mul_f64((column as f64 + 0.5) / columns as f64);
    let at = |moment: Duration| slots.iter().filter(|it| it.start <= moment && moment < it.stop).count();
    (0..columns).map(|column| at(middle(column))).collect()
}

/// A time as people say it. It is rounded before its unit is chosen, so that none reads `60.0 s` or `1000 ms`.
pub(crate) fn time(span: Duration) -> String {
    let seconds = span.as_secs_f64();
    let (millis, tenths, whole) =
        ((seconds * 1e3).round() as u64, (seconds * 10.0).round() as u64, seconds.round() as u64);
    match () {
        () if millis == 0 => "0 s".to_owned(),
        () if millis < 1_000 => format!("{millis} ms"),
        () if tenths < 600 && tenths % 10 > 0 => format!("{}.{} s", tenths / 10, tenths % 10),
        () if tenths < 600 => format!("{} s", tenths / 10),
        () if whole < 3_600 && whole % 60 == 0 => format!("{} min", whole / 60),
        () if whole < 3_600 => format!("{} min {} s", whole / 60, whole % 60),
        () => format!("{:.1} h", seconds / 3_600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_engine::scenario::Scenario;

    #[test]
    fn a_time_is_rounded_before_its_unit_is_chosen() {
        let said = |millis: u64| time(Duration::from_millis(millis));
        for (millis, words) in [
            (0, "0 s"),
            (300, "300 ms"),
            (1_000, "1 s"),
            (1_500, "1.5 s"),
            (59_940, "59.9 s"),
            (59_960, "1 min"),
            (60_000, "1 min"),
            (119_700, "2 min"),
            (125_000, "2 min 5 s"),
            (3_599_700, "1.0 h"),
        ] {
            assert_eq!(said(millis), words, "{millis} ms");
        }
        assert_eq!(time(Duration::from_micros(999_700)), "1 s");
    }

    #[test]
    fn clients_over_time_are_a_row_of_bars() {
        let text = "{workloads: [{play: 'rtmp://h/a/b', stages: [{clients: 10, hold: 10s}, {clients: 20, hold: 10s}]}]}";
        let plan = Scenario::parse(text).unwrap().plan().unwrap();
        let picture = picture(&plan, 0, 40);
        let mut lines = picture.lines();
        let bars = lines.next().unwrap();
        assert!(bars.trim_start().starts_with("20  "), "{picture}");
        assert!(bars.contains('▄') && bars.ends_with('█'), "{picture}");
        assert!(lines.next().unwrap().trim_start().starts_with("0 s"), "{picture}");
        assert!(picture.lines().all(|line| line.chars().count() <= 40), "{picture}");
    }
}
