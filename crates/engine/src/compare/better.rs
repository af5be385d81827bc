//! Which way a figure is better. The figures of a run have their names in `series/figures.rs`; those that are neither better
//! nor worse when they change, such as the number of messages that were sent, are not here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which values of a figure are the better ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Small ones.
    Lower,
    /// Large ones.
    Higher,
}

const DECLARED: [(&str, Better); 36] = [
    ("playing", Better::Higher),
    ("bitrate", Better::Higher),
    ("bitrate.ratio", Better::Higher),
    ("fps", Better::Higher),
    ("startup.p50", Better::Lower),
    ("startup.p99", Better::Lower),
    ("latency.p50", Better::Lower),
    ("latency.p99", Better::Lower),
    ("drift.p50", Better::Lower),
    ("drift.p99", Better::Lower),
    ("stalls", Better::Lower),
    ("stalled", Better::Lower),
    ("stalled_viewers", Better::Lower),
    ("recovery.p50", Better::Lower),
    ("recovery.p99", Better::Lower),
    ("away_time.p50", Better::Lower),
    ("away_time.p99", Better::Lower),
    ("starved", Better::Lower),
    ("lost.ratio", Better::Lower),
    ("failed.ratio", Better::Lower),
    ("restart.reconnected", Better::Lower),
    ("publish_time", Better::Lower),
    ("receive_time", Better::Lower),
    ("decode_time", Better::Lower),
    ("save_time", Better::Lower),
    ("insert_time", Better::Lower),
    ("total_time", Better::Lower),
    ("first_insert", Better::Lower),
    ("acknowledged", Better::Higher),
    ("delivered", Better::Higher),
    ("saved", Better::Higher),
    ("lost", Better::Lower),
    ("dead_lettered", Better::Lower),
    ("duplicate", Better::Lower),
    ("payload", Better::Lower),
    ("row", Better::Lower),
];

/// Of the target's processes.
const OF_PROCESSES: [&str; 2] = ["cpu", "memory"];

/// weir's own CPU is not the target's.
pub(crate) const OF_WEIR: &str = "cpu.weir";

/// Which way the figure of this name is better; a workload and a stage may stand before its own name. None if it is neither.
pub fn better(name: &str) -> Option<Better> {
    // Processes work for all workloads: at most a stage's number stands before their figures.
    let without_stage = name.split_once('.').filter(|(stage, _)| stage.parse::<u16>().is_ok());
    let of_process = without_stage.map_or(name, |(_, rest)| rest);
    if of_process == OF_WEIR {
        return None;
    }
    if of_process.split_once('.').is_some_and(|(first, _)| OF_PROCESSES.contains(&first)) {
        return Some(Better::Lower);
    }
    let is = |own: &&(&str, Better)| {
        name.strip_suffix(own.0).is_some_and(|place| place.is_empty() || place.ends_with('.'))
    };
    DECLARED.iter().find(is).map(|(_, better)| *better)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_better_one_way_whatever_stands_before_its_name() {
        for (name, expected) in [
            ("startup.p99", Some(Better::Lower)),
            ("play.2.startup.p99", Some(Better::Lower)),
            ("bitrate", Some(Better::Higher)),
            ("viewers.bitrate.ratio", Some(Better::Higher)),
            ("cpu.nginx: worker", Some(Better::Lower)),
            ("2.memory.nginx", Some(Better::Lower)),
            ("restart.reconnected", Some(Better::Lower)),
            ("cpu.weir", None),
            ("2.cpu.weir", None),
            ("published", None),
            ("send_lag.p99", None),
            ("unstalls", None),
        ] {
            assert_eq!(better(name), expected, "{name}");
        }
    }
}
