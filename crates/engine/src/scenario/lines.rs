//! Where a part of a scenario stands in its file: for errors that are found when the file has been read.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_saphyr::Spanned;

/// A part of a scenario. Those of a list are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A workload.
    Workload(usize),
    /// A threshold under `thresholds`.
    Threshold(usize),
    /// A threshold under `abort`.
    Abort(usize),
    /// A process under `watch`.
    Watch(usize),
    /// A restart under `during`.
    During(usize),
    /// The key `repeat`.
    Repeat,
}

/// The places of a file's parts, and nothing that it says of them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Places {
    workloads: Vec<Spanned<IgnoredAny>>,
    thresholds: Vec<Spanned<IgnoredAny>>,
    abort: Vec<Spanned<IgnoredAny>>,
    watch: Vec<Spanned<IgnoredAny>>,
    during: Vec<Spanned<IgnoredAny>>,
    repeat: Option<Spanned<IgnoredAny>>,
}

impl Part {
    /// The line of `text`, from 1, where it begins. `None` if it is not in the file: flags of the command line add to a
    /// scenario.
    pub fn line(self, text: &str) -> Option<u64> {
        let places: Places = crate::scenario::yaml::read(text).ok()?;
        let found = match self {
            Self::Workload(position) => places.workloads.get(position),
            Self::Threshold(position) => places.thresholds.get(position),
            Self::Abort(position) => places.abort.get(position),
            Self::Watch(position) => places.watch.get(position),
            Self::During(position) => places.during.get(position),
            Self::Repeat => places.repeat.as_ref(),
        };
        found.map(|place| place.referenced.line())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_however_the_file_is_written() {
        let text = "# what is asked\nname: x\nrepeat: 3\nworkloads:\n  - play: rtmp://h/a/b\n    clients: 5\n\n  - {publish: rtmp://h/a/b}\n\
                    thresholds:\n- startup.p99 < 1s\n- a < 1\nwatch: [name=a,\n  name=b]\n";
        for (part, line) in [
            (Part::Workload(0), Some(5)),
            (Part::Workload(1), Some(8)),
            (Part::Workload(2), None),
            (Part::Threshold(1), Some(11)),
            (Part::Abort(0), None),
            (Part::Watch(1), Some(13)),
            (Part::Repeat, Some(3)),
        ] {
            assert_eq!(part.line(text), line, "{part:?}");
        }
        assert_eq!(Part::Repeat.line("repeat: ["), None);
    }
}
