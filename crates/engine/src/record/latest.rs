//! What a run that was cut short had not yet added up: the seconds of its last block, which are in files of their own meanwhile.

use super::{HISTOGRAMS, INTERVALS};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// Lines of the seconds that are being added up, as they stand in `intervals.ndjson` and `histograms.hlog` of a short run.
pub(super) const LATEST_INTERVALS: &str = "latest.ndjson";
pub(super) const LATEST_HISTOGRAMS: &str = "latest.hlog";

/// The key of a line, and for how many seconds it is.
#[derive(Deserialize)]
struct Span {
    second: u32,
    workload: u16,
    server: Option<u16>,
    seconds: Option<u32>,
}

/// `intervals.ndjson` and `histograms.hlog` of a run, and behind their lines those of seconds that are not in them. `file` gives a
/// file's contents, by its name.
pub(super) fn complete(
    file: impl Fn(&str) -> Result<Vec<u8>, (PathBuf, io::Error)>,
) -> Result<[Vec<u8>; 2], (PathBuf, io::Error)> {
    let optional = |name: &str| match file(name) {
        Err((_, error)) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read,
    };
    let (mut intervals, mut log) = (file(INTERVALS)?, file(HISTOGRAMS)?);
    let (latest, latest_log) = (optional(LATEST_INTERVALS)?, optional(LATEST_HISTOGRAMS)?);
    if latest.is_empty() && latest_log.is_empty() {
        return Ok([intervals, log]);
    }
    // A block is written before its seconds are taken out of the other files: between the two they are in both.
    let mut ends: BTreeMap<(u16, Option<u16>), u32> = BTreeMap::new();
    for line in whole(&intervals).split(|byte| *byte == b'\n') {
        let Ok(span) = serde_json::from_slice::<Span>(line) else { continue };
        let end = ends.entry((span.workload, span.server)).or_default();
        *end = (*end).max(span.second.saturating_add(span.seconds.unwrap_or(1)));
    }
    let is_new = |workload: u16, server: Option<u16>, second: u32| {
        ends.get(&(workload, server)).is_none_or(|end| *end <= second)
    };
    append(&mut intervals, &latest, |line| {
        let span = serde_json::from_slice::<Span>(line);
        span.is_ok_and(|span| is_new(span.workload, span.server, span.second))
    });
    append(&mut log, &latest_log, |line| {
        of_tag(line).is_some_and(|(workload, server, second)| is_new(workload, server, second))
    });
    Ok([intervals, log])
}

/// Workload, server and second of a line of an interval log: `Tag=WORKLOAD.SERVER/FIGURE,SECOND,…`.
fn of_tag(line: &[u8]) -> Option<(u16, Option<u16>, u32)> {
    let (whose, rest) = std::str::from_utf8(line).ok()?.strip_prefix("Tag=")?.split_once('/')?;
    let (workload, server) = split(whose, '.');
    let second: f64 = rest.split(',').nth(1)?.parse().ok()?;
    Some((workload.parse().ok()?, server.map(str::parse).transpose().ok()?, second as u32))
}

/// What stands before the sign, and behind it if it is there.
pub(super) fn split(text: &str, sign: char) -> (&str, Option<&str>) {
    text.split_once(sign).map_or((text, None), |(before, behind)| (before, Some(behind)))
}

/// Appends the lines for which `is_wanted` says so. Of both only whole lines are kept: a crash may have cut the last one short.
fn append(lines: &mut Vec<u8>, more: &[u8], is_wanted: impl Fn(&[u8]) -> bool) {
    lines.truncate(whole(lines).len());
    for line in whole(more).split_inclusive(|byte| *byte == b'\n') {
        if is_wanted(&line[..line.len() - 1]) {
            lines.extend_from_slice(line);
        }
    }
}

fn whole(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_that_are_in_no_block_yet_come_behind_the_blocks_each_once() {
        let file = |name: &str| {
            Ok(match name {
                // The second workload's block was not written whole.
                INTERVALS => concat!(
                    r#"{"second":9000,"seconds":2,"workload":0,"failures":{}}"#,
                    "\n",
                    r#"{"second":9000,"seconds":2,"wor"#
                ),
                HISTOGRAMS => "Tag=0/startup,9000.000,2.000,1.0,AA\nTag=1/startup,9000.000,2.000,1.0,AA\n",
                LATEST_INTERVALS => concat!(
                    r#"{"second":9001,"workload":0,"failures":{}}"#,
                    "\n",
                    r#"{"second":9001,"workload":1,"failures":{}}"#,
                    "\n",
                    r#"{"second":9002,"workload":0,"server":1,"failures":{}}"#,
                    "\n",
                    r#"{"second":9002,"workload":0,"failures":{}}"#,
                    "\n",
                    r#"{"second":9003,"#
                ),
                LATEST_HISTOGRAMS => {
                    "Tag=0/startup,9001.000,1.000,1.0,BB\nTag=0.1/startup,9002.000,1.000,1.0,CC\nTag=0/sta"
                }
                _ => unreachable!("{name}"),
            }
            .as_bytes()
            .to_owned())
        };
        let [intervals, log] = complete(file).unwrap().map(|bytes| String::from_utf8(bytes).unwrap());
        let seconds: Vec<&str> =
            intervals.lines().map(|line| line.split(",\"failures").next().unwrap()).collect();
        assert_eq!(
            seconds,
            [
                r#"{"second":9000,"seconds":2,"workload":0"#,
                r#"{"second":9001,"workload":1"#,
                r#"{"second":9002,"workload":0,"server":1"#,
                r#"{"second":9002,"workload":0"#,
            ]
        );
        assert!(
            log.ends_with("Tag=0.1/startup,9002.000,1.000,1.0,CC\n") && log.lines().count() == 3,
            "{log}"
        );
    }

    #[test]
    fn a_run_that_came_to_its_end_has_its_two_files() {
        let file = |name: &str| match name {
            INTERVALS | HISTOGRAMS => Ok(name.as_bytes().to_owned()),
            _ => Err((PathBuf::new(), io::Error::from(io::ErrorKind::NotFound))),
        };
        assert_eq!(complete(file).unwrap(), [INTERVALS, HISTOGRAMS].map(|name| name.as_bytes().to_owned()));
    }
}
