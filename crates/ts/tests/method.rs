//! `docs/method/mpeg-ts.md` defines every total that the analyser counts, and no other.

use weir_ts::Counts;

const METHOD: &str = include_str!("../../../docs/method/mpeg-ts.md");

/// The part of the page that is about transport streams.
fn section() -> &'static str {
    let rest = METHOD.split("\n## weir check\n").nth(1).expect("the section of weir check");
    rest.split("\n## ").next().unwrap_or_default()
}

/// The rows of the table under this head.
fn rows(head: &str) -> Vec<&'static str> {
    let table = section().split(head).nth(1).unwrap_or_else(|| panic!("no table with the head {head}"));
    table.lines().skip(2).take_while(|line| line.starts_with('|')).collect()
}

#[test]
fn every_total_is_defined_in_the_order_of_the_code_and_no_other_is() {
    let first_code = |row: &&'static str| row.split('`').nth(1);
    let mut defined: Vec<_> = rows("| counter | unit | definition |").iter().filter_map(first_code).collect();
    let third_code = |row: &&'static str| row.split('`').nth(3);
    defined.extend(rows("| indicator | counter | definition |").iter().filter_map(third_code));
    assert_eq!(defined, Counts::NAMES);
}

#[test]
fn every_indicator_is_defined_by_its_number_and_name() {
    let rows = rows("| indicator | counter | definition |");
    let indicators = Counts::default().indicators();
    assert_eq!(rows.len(), indicators.len());
    for (row, indicator) in rows.iter().zip(indicators) {
        assert!(row.starts_with(&format!("| {} `{}` |", indicator.number, indicator.name)), "{row}");
    }
}
