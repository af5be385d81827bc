//! The table that a run shows on a terminal while it goes on. It is a function of values; who draws it is above.

use crate::rows::{self, clock};
use std::time::Duration;
use weir_engine::aggregator::StageProgress;

/// Rows of the lowest terminal that a table fits on: fewer would hide what failed.
pub(super) const LOWEST: usize = 10;
/// Kinds of failures that have a row.
const KINDS: usize = 5;

/// What a table shows.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    /// How long the run has gone on.
    pub(super) elapsed: Duration,
    /// How long it will, if it has an end of its own.
    pub(super) length: Option<Duration>,
    /// The stage that is under way, if there are several.
    pub(super) stage: Option<StageProgress>,
    /// Each workload's name, and what it does.
    pub(super) workloads: Vec<(String, Vec<String>)>,
    /// Clients that failed, and why, the commonest reason first.
    pub(super) failures: Vec<String>,
    /// Each watched server, and what it uses.
    pub(super) servers: Vec<(String, Vec<String>)>,
    /// The busiest threads of all servers.
    pub(super) threads: Vec<String>,
    /// What weir and the machine use.
    pub(super) generator: Vec<String>,
}

impl Table {
    /// The lines, no more than `height` and none wider than `width`. Without room for all, the last are left out.
    pub(super) fn lines(&self, width: usize, height: usize) -> Vec<String> {
        let mut rows: Vec<(&str, &[String])> = Vec::new();
        let stage: Vec<String> = self.stage.iter().flat_map(stage).collect();
        rows.push(("stage", &stage));
        rows.extend(self.workloads.iter().map(|(name, parts)| (name.as_str(), parts.as_slice())));
        let shown = &self.failures[..self.failures.len().min(KINDS)];
        rows.extend(
            shown
                .iter()
                .enumerate()
                .map(|(at, failure)| (if at == 0 { "failed" } else { "" }, std::slice::from_ref(failure))),
        );
        rows.extend(self.servers.iter().map(|(name, parts)| (name.as_str(), parts.as_slice())));
        rows.push(("threads", &self.threads));
        rows.push(("weir", &self.generator));
        rows::lines(rows::progress(self.elapsed, self.length, width), &rows, width, height)
    }
}

fn stage(at: &StageProgress) -> Vec<String> {
    let clients = if at.clients == 1 { "client" } else { "clients" };
    let which = format!("{} of {}", at.stage, at.of);
    vec![which, format!("{} {clients}", at.clients), format!("{} left", clock(at.left))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::NARROWEST;
    use console::measure_text_width;

    fn texts(parts: &[&str]) -> Vec<String> {
        parts.iter().map(|part| (*part).to_owned()).collect()
    }

    /// Viewers in the second of five stages, of a server that is watched.
    fn viewers() -> Table {
        let clients = ["998 of 1000 play", "498.20 Mbps", "2 failed", "startup p99 12 ms", "3 stalls"];
        Table {
            elapsed: Duration::from_millis(35_900),
            length: Some(Duration::from_secs(90)),
            stage: Some(StageProgress {
                stage: 2,
                of: 5,
                clients: 1_000,
                left: Duration::from_millis(14_100),
            }),
            workloads: vec![("play".to_owned(), texts(&clients))],
            servers: vec![("name=nginx".to_owned(), texts(&["143 % CPU", "88 MB", "1000 connections"]))],
            threads: texts(&["SW-WebRTC0 97 %", "AW-WebRTC0 40 %", "SPRtcSig-t3333 6 %"]),
            generator: texts(&["12 % CPU", "machine 160 %"]),
            failures: texts(&["1 reset: connection reset by peer", "1 connect_timeout"]),
        }
    }

    fn drawn(table: &Table, width: usize, height: usize) -> String {
        let lines = table.lines(width, height);
        assert!(
            lines.len() <= height && lines.iter().all(|line| measure_text_width(line) <= width),
            "{lines:#?}"
        );
        lines.join("\n")
    }

    #[test]
    fn a_wide_terminal_has_a_row_for_each_thing_that_is_watched() {
        insta::assert_snapshot!(drawn(&viewers(), 100, 24));
    }

    #[test]
    fn forty_columns_have_the_same_in_more_lines() {
        insta::assert_snapshot!(drawn(&viewers(), 40, 24));
    }

    #[test]
    fn a_low_terminal_keeps_the_first_lines() {
        insta::assert_snapshot!(drawn(&viewers(), 40, LOWEST));
    }

    #[test]
    fn what_is_not_known_has_no_row_and_a_run_until_ctrl_c_no_end() {
        let messages = ["5 of 5 publish", "498 of 500 messages/s", "1.00 Mbps"];
        let table = Table {
            elapsed: Duration::from_secs(7_265),
            workloads: vec![("a publisher of readings".to_owned(), texts(&messages))],
            failures: texts(&["1", "2", "3", "4", "5", "6"]),
            ..Table::default()
        };
        insta::assert_snapshot!(drawn(&table, 60, 24));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_whatever_stands_in_it() {
        let wide = "日本語のストリーム ".repeat(20);
        let table = Table {
            workloads: vec![(wide.clone(), vec![wide.clone(), wide.clone()])],
            failures: vec![wide.clone()],
            ..viewers()
        };
        for width in NARROWEST..120 {
            drawn(&table, width, 24);
        }
    }
}
