//! What the clients of a workload left behind: all of them together, and one by one, as users of OvenMediaEngine's tester
//! know it.

use crate::account::in_unit;
use crate::document::{Cell, Column, Fact, Grid, Part, Tone, columns};
use crate::quantity::{NOTHING, count, span};
use weir_engine::summary::{
    BaseUnit, ClientColumn, ClientFigure, ClientRow, ClientStates, ClientsSummary, ColumnPosition,
    ColumnUnit, StateCount, Statistic, WorkloadSummary,
};

/// Up to this number of clients are shown one by one; of more, only the worst are.
const SHOWN: usize = 16;
/// The file that has all of them.
const FILE: &str = "clients.csv";

/// The tables of a workload whose clients left something behind that is to be shown.
pub(crate) fn parts(workload: &WorkloadSummary) -> Vec<Part> {
    let Some(clients) = &workload.clients else { return Vec::new() };
    if !clients.figures.iter().any(|figure| figure.summed) {
        return Vec::new();
    }
    let mut parts = vec![Part::Facts(facts(workload, clients)), Part::Grid(all(clients))];
    if !clients.rows.is_empty() {
        parts.push(Part::Grid(details(clients)));
        parts.push(Part::Facts(vec![Fact::new("Clients", shown(clients))]));
    }
    parts
}

/// Which of the clients have been shown, and where the others are.
fn shown(clients: &ClientsSummary) -> String {
    let all = clients.rows.len();
    if all <= SHOWN {
        return format!("all {}; more of each is in {FILE}", count(all as u64));
    }
    let bad = clients
        .columns
        .iter()
        .filter(|column| column.bad)
        .map(|column| column.title.trim_start_matches("· "));
    let by = bad.collect::<Vec<_>>().join(", ");
    format!("the worst {SHOWN} of {}: failed, and by {by}; all are in {FILE}", count(all as u64))
}

fn facts(workload: &WorkloadSummary, clients: &ClientsSummary) -> Vec<Fact> {
    let played = clients.rows.iter().filter(|row| row.since_seconds.is_some()).count();
    let failed = workload.slots.failed;
    let line = format!(
        "{} planned, {} played, {} failed",
        count(clients.planned),
        count(played as u64),
        count(failed)
    );
    let tone = if failed > 0 { Tone::Doubtful } else { Tone::Plain };
    let mut facts = Vec::new();
    let since = clients.rows.iter().filter_map(|row| row.since_seconds).fold(f64::INFINITY, f64::min);
    let until = clients.rows.iter().map(|row| row.until_seconds).fold(0.0, f64::max);
    if since < until {
        facts.push(Fact::new("Running time", span(until - since)));
    }
    facts.push(Fact::new("Number of clients", line).tone(tone));
    facts.extend(clients.states.iter().map(states));
    facts
}

/// `New(0), Checking(1), Connected(96)`.
fn states(states: &ClientStates) -> Fact {
    let one = |state: &StateCount| {
        let mut letters = state.state.chars();
        let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
        format!("{first}{}({})", letters.as_str(), count(state.clients))
    };
    let line = states.clients.iter().map(one).collect::<Vec<_>>().join(", ");
    Fact::new(states.title.clone(), line)
}

fn all(clients: &ClientsSummary) -> Grid {
    let shown = clients.figures.iter().filter(|figure| figure.summed && figure.count > 0);
    let columns = columns![
        word "All clients", number "Avg", number "Max", number "Min", number "P50", number "P99",
        number "Total", number "Clients",
    ];
    let row = |figure: &ClientFigure| {
        let value = |value: Option<f64>| Cell::text(said(value, figure.unit));
        let mut row = vec![Cell::text(figure.title.clone())];
        let [mean, max, min] = [figure.mean, figure.max, figure.min];
        row.extend([mean, max, min, figure.p50, figure.p99].map(value));
        row.push(
            figure
                .total
                .map_or_else(|| Cell::text(""), |total| Cell::text(in_unit(total, Some(figure.unit)))),
        );
        row.push(Cell::text(count(figure.count)));
        row
    };
    let caption = "Avg and percentiles: over the clients' own means or counts, planned clients that never played as 0 in \
        counts and rates. Max and Min: the most and the least that any client met"
        .to_owned();
    Grid { caption, columns, rows: shown.map(row).collect() }
}

fn said(value: Option<f64>, unit: BaseUnit) -> String {
    value.map_or_else(|| NOTHING.to_owned(), |value| in_unit(value, Some(unit)))
}

fn details(clients: &ClientsSummary) -> Grid {
    let rows = worst(clients);
    let mut columns = vec![Column::word("Client")];
    let mut cells: Vec<Vec<Cell>> =
        rows.iter().map(|row| vec![Cell::text(format!("client_{}", row.client))]).collect();
    let placed: Vec<usize> =
        (0..clients.columns.len()).filter(|at| clients.columns[*at].place == ColumnPosition::Own).collect();
    for at in placed {
        let column = &clients.columns[at];
        let (below, title) =
            match clients.columns[at + 1..].iter().position(|it| it.place != ColumnPosition::Apart) {
                Some(next) if clients.columns[at + 1 + next].place == ColumnPosition::Below => {
                    (Some(at + 1 + next), clients.columns[at + 1 + next].title.trim_start_matches("· "))
                }
                _ if matches!(column.unit, ColumnUnit::Word(_)) => (None, "time"),
                _ if column.statistic == Statistic::Mean => (None, "min…max"),
                _ => (None, ""),
            };
        let head = match column.unit {
            ColumnUnit::Word(_) => Column::word(format!("State / {title}")).narrow(format!("State\n{title}")),
            _ => {
                let name = column.title;
                Column::number(format!("{name} / {title}")).narrow(format!("{name}\n{title}"))
            }
        };
        columns.push(head);
        for (row, cells) in rows.iter().zip(&mut cells) {
            cells.push(entry(clients, row, at, below));
        }
    }
    let caption = "Details: each since it began to play".to_owned();
    Grid { caption, columns, rows: cells }
}

/// A cell of two numbers: a state and how long it was held, a mean and its range, or two counts.
fn entry(clients: &ClientsSummary, row: &ClientRow, at: usize, below: Option<usize>) -> Cell {
    let column = &clients.columns[at];
    let number = |at: usize| row.numbers.get(at).copied().flatten();
    let shown = |at: usize| said(number(at), clients.columns[at].unit.into());
    if let ColumnUnit::Word(words) = column.unit {
        let state = number(at).and_then(|state| words.get(state as usize)).copied().unwrap_or(NOTHING);
        return match (row.failure, row.since_seconds) {
            (Some(failure), _) => Cell::pair(state.to_owned(), failure.key().to_owned()).tone(Tone::Bad),
            (None, Some(since)) => Cell::pair(state.to_owned(), span(row.until_seconds - since)),
            (None, None) => Cell::pair(state.to_owned(), NOTHING.to_owned()),
        };
    }
    if let Some(below) = below {
        let is_bad = clients.columns[below].bad && number(below).is_some_and(|it| it > 0.0);
        let tone = if is_bad { Tone::Doubtful } else { Tone::Plain };
        return Cell::pair(shown(at), shown(below)).tone(tone);
    }
    let of = |statistic: Statistic| {
        let is_it = |it: &ClientColumn| it.figure == column.figure && it.statistic == statistic;
        clients.columns.iter().position(is_it)
    };
    match (of(Statistic::Least), of(Statistic::Most)) {
        (Some(least), Some(most)) if number(at).is_some() => {
            Cell::pair(shown(at), format!("{}…{}", shown(least), shown(most)))
        }
        _ => Cell::text(shown(at)),
    }
}

/// All clients in their order, or the worst of many: failed ones first, then by what is bad.
fn worst(clients: &ClientsSummary) -> Vec<&ClientRow> {
    let mut rows: Vec<&ClientRow> = clients.rows.iter().collect();
    if rows.len() <= SHOWN {
        return rows;
    }
    let bad: Vec<usize> = (0..clients.columns.len()).filter(|at| clients.columns[*at].bad).collect();
    let number =
        |row: &ClientRow, at: usize| row.numbers.get(at).copied().flatten().unwrap_or(f64::NEG_INFINITY);
    rows.sort_by(|a, b| {
        let by_badness = bad.iter().map(|at| number(b, *at).total_cmp(&number(a, *at)));
        let by_failure = b.failure.is_some().cmp(&a.failure.is_some());
        by_badness.fold(by_failure, std::cmp::Ordering::then)
    });
    rows.truncate(SHOWN);
    rows
}
