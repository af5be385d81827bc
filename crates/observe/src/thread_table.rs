//! Which threads used the CPU over a window: one by one, and by name.

use std::collections::HashMap;

use crate::usage::ThreadTimes;

/// A thread over a window.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadSummary {
    /// Its process.
    pub pid: u32,
    /// Its thread id.
    pub tid: u32,
    /// Its last name.
    pub name: String,
    /// CPU time used, in seconds.
    pub cpu_seconds: f64,
    /// CPU time over the time of the window, in percent of one core.
    pub cpu_percent: f64,
    /// The same in its busiest interval.
    pub max_cpu_percent: f64,
    /// Time in which it could have run and had no core, in percent of the window; `None` where the kernel does not count it.
    pub waited_percent: Option<f64>,
}

impl ThreadSummary {
    /// How much of the window it ran or waited for a core: near 100, it could do no more.
    pub fn full_percent(&self) -> f64 {
        self.cpu_percent + self.waited_percent.unwrap_or(0.0)
    }
}

/// The threads of one name over a window. Digits at the end of a name stand for one name: `worker-1` and
/// `worker-12` are `worker-*`.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadNameSummary {
    /// The name.
    pub name: String,
    /// Threads of this name, ended ones included.
    pub threads: u64,
    /// CPU time of all of them, in seconds.
    pub cpu_seconds: f64,
    /// CPU time of all of them over the time of the window, in percent of one core.
    pub cpu_percent: f64,
    /// `cpu_percent` of the one that ran and waited most: with what it waited near 100, that thread is the limit, however idle the rest.
    pub busiest_percent: f64,
    /// How much that one waited for a core.
    pub busiest_waited_percent: Option<f64>,
}

/// The threads of a window, as its intervals are added one after the other.
#[derive(Debug, Default)]
pub(crate) struct ThreadTable {
    rows: HashMap<(u32, u32, u64), ThreadSummary>,
}

impl ThreadTable {
    /// Adds an interval of this many seconds: the time that each thread ran and waited in it.
    pub(crate) fn add(&mut self, threads: Vec<ThreadTimes<'_>>, seconds: f64) {
        for ThreadTimes { thread, cpu_seconds, waited_seconds } in threads {
            let row = self.rows.entry(thread.identity()).or_insert_with(|| ThreadSummary {
                pid: thread.pid,
                tid: thread.tid,
                name: String::new(),
                cpu_seconds: 0.0,
                cpu_percent: 0.0,
                max_cpu_percent: 0.0,
                waited_percent: None,
            });
            row.name.clone_from(&thread.name);
            row.cpu_seconds += cpu_seconds;
            if let Some(waited) = waited_seconds {
                // Seconds until the table is finished.
                *row.waited_percent.get_or_insert(0.0) += waited;
            }
            if seconds > 0.0 {
                row.max_cpu_percent = row.max_cpu_percent.max(100.0 * cpu_seconds / seconds);
            }
        }
    }

    /// Both tables for a window of this many seconds, busiest first.
    pub(crate) fn finish(self, seconds: f64) -> (Vec<ThreadSummary>, Vec<ThreadNameSummary>) {
        let mut threads: Vec<ThreadSummary> = self.rows.into_values().collect();
        let mut names: HashMap<String, ThreadNameSummary> = HashMap::new();
        for thread in &mut threads {
            thread.cpu_percent = 100.0 * thread.cpu_seconds / seconds;
            thread.waited_percent = thread.waited_percent.map(|waited| 100.0 * waited / seconds);
            let name = common_name(&thread.name);
            let row = names.entry(name.clone()).or_insert(ThreadNameSummary {
                name,
                threads: 0,
                cpu_seconds: 0.0,
                cpu_percent: 0.0,
                busiest_percent: 0.0,
                busiest_waited_percent: None,
            });
            row.threads += 1;
            row.cpu_seconds += thread.cpu_seconds;
            row.cpu_percent += thread.cpu_percent;
            if row.threads == 1
                || thread.full_percent() > row.busiest_percent + row.busiest_waited_percent.unwrap_or(0.0)
            {
                (row.busiest_percent, row.busiest_waited_percent) =
                    (thread.cpu_percent, thread.waited_percent);
            }
        }
        threads.sort_by(|one, other| {
            other.cpu_seconds.total_cmp(&one.cpu_seconds).then_with(|| one.tid.cmp(&other.tid))
        });
        let mut names: Vec<ThreadNameSummary> = names.into_values().collect();
        names.sort_by(|one, other| {
            other.cpu_seconds.total_cmp(&one.cpu_seconds).then_with(|| one.name.cmp(&other.name))
        });
        (threads, names)
    }
}

/// The name with `*` for the digits at its end. A name of digits only stays as it is.
fn common_name(name: &str) -> String {
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    if stem.is_empty() || stem.len() == name.len() { name.to_owned() } else { format!("{stem}*") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ThreadSample;

    fn thread(tid: u32, name: &str) -> ThreadSample {
        ThreadSample {
            pid: 1,
            tid,
            name: name.into(),
            started_seconds: 5.0,
            cpu_seconds: 0.0,
            waited_seconds: None,
        }
    }

    #[test]
    fn digits_at_the_end_are_one_name() {
        for (name, common) in [
            ("worker-12", "worker-*"),
            ("h264", "h*"),
            ("main", "main"),
            ("42", "42"),
            ("", ""),
            ("a1b", "a1b"),
        ] {
            assert_eq!(common_name(name), common);
        }
    }

    #[test]
    fn the_busiest_thread_of_a_name_shows() {
        let (one, two, main) = (thread(11, "worker-1"), thread(12, "worker-2"), thread(1, "main"));
        let mut table = ThreadTable::default();
        let times = |thread, cpu_seconds| ThreadTimes { thread, cpu_seconds, waited_seconds: None };
        table.add(vec![times(&one, 0.2), times(&two, 0.9), times(&main, 0.1)], 1.0);
        table.add(vec![times(&one, 0.0), times(&two, 1.0)], 1.0);
        let (threads, names) = table.finish(2.0);
        assert_eq!(threads.iter().map(|it| it.tid).collect::<Vec<_>>(), [12, 11, 1]);
        assert!((threads[0].cpu_percent - 95.0).abs() < 1e-9);
        assert!((threads[0].max_cpu_percent - 100.0).abs() < 1e-9);
        assert_eq!((names[0].name.as_str(), names[0].threads), ("worker-*", 2));
        assert!((names[0].cpu_percent - 105.0).abs() < 1e-9);
        assert!((names[0].busiest_percent - 95.0).abs() < 1e-9);
        assert!((names[1].cpu_percent - 5.0).abs() < 1e-9, "an ended thread counts up to its last sample");
    }

    #[test]
    fn a_thread_that_waits_for_a_core_is_as_full_as_one_that_has_it() {
        let (waits, runs) = (thread(11, "worker-1"), thread(12, "worker-2"));
        let mut table = ThreadTable::default();
        let times =
            |thread, cpu_seconds, waited| ThreadTimes { thread, cpu_seconds, waited_seconds: Some(waited) };
        table.add(vec![times(&waits, 0.78, 0.20), times(&runs, 0.85, 0.0)], 1.0);
        let (threads, names) = table.finish(1.0);
        assert!((threads[1].full_percent() - 98.0).abs() < 1e-9, "{threads:?}");
        assert!((names[0].busiest_percent - 78.0).abs() < 1e-9, "{names:?}");
        assert!((names[0].busiest_waited_percent.unwrap() - 20.0).abs() < 1e-9, "{names:?}");
    }
}
