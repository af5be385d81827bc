//! The processes that belong together, and the reading of them.

use std::collections::BTreeSet;
use std::time::Duration;
use std::{fs, io};

use crate::census::ProcessId;
use crate::cgroup;
use crate::field::{decimal, lines, lossy, words};
use crate::process::{DescriptorUse, ProcessSample, ThreadSample, Throttling};
use crate::reader::{Reader, is_gone, numbered};
use crate::running_totals::{Opening, RunningTotals};
use crate::stat::{Stat, context_switches};

/// A set of processes: grows by [`ProcessSet::admit`], shrinks as they end.
#[derive(Debug)]
pub(crate) struct ProcessSet {
    members: BTreeSet<ProcessId>,
    exited: u64,
    began_ticks: u64,
    first_round: bool,
    usage: RunningTotals<ProcessId, 3>,
    switches: RunningTotals<ThreadId, 2>,
    throttle_files: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ThreadId {
    pid: u32,
    tid: u32,
    start_ticks: u64,
}

impl ProcessSet {
    /// An empty set. Processes that started before `began_ticks` (clock ticks since boot) and are not
    /// there at the first sample count from when they join.
    pub(crate) fn new(began_ticks: u64) -> Self {
        Self {
            members: BTreeSet::new(),
            exited: 0,
            began_ticks,
            first_round: true,
            usage: RunningTotals::new(),
            switches: RunningTotals::new(),
            throttle_files: None,
        }
    }

    /// Takes in a process; false when it was in already.
    pub(crate) fn admit(&mut self, id: ProcessId) -> bool {
        self.members.insert(id)
    }

    pub(crate) fn contains(&self, id: ProcessId) -> bool {
        self.members.contains(&id)
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = ProcessId> {
        self.members.iter().copied()
    }

    /// Reads all members, and forgets those that have ended.
    pub(crate) fn sample(&mut self, reader: &mut Reader, units: &Units) -> ProcessSample {
        let mut sample = ProcessSample { descriptors: Some(0), ..ProcessSample::default() };
        let members = std::mem::take(&mut self.members);
        let before = members.len();
        let lives = |id: &ProcessId| match self.read(*id, reader, units, &mut sample) {
            Ok(lives) => lives,
            Err(_) => {
                self.usage.keep(|process| process == id);
                self.switches.keep(|thread| thread.pid == id.pid);
                sample.unread += 1;
                true
            }
        };
        self.members = members.into_iter().filter(lives).collect();
        self.exited += (before - self.members.len()) as u64;

        let [user, system, major_faults] = self.usage.close();
        let [voluntary, involuntary] = self.switches.close();
        self.first_round = false;
        sample.exited = self.exited;
        sample.cpu_seconds = units.seconds(user + system);
        sample.system_seconds = units.seconds(system);
        sample.voluntary_switches = voluntary;
        sample.involuntary_switches = involuntary;
        sample.major_faults = major_faults;
        sample.throttling = self.throttling(reader);
        sample
    }

    /// Adds one process to the sample; false when it has ended, an error when that cannot be read.
    fn read(
        &mut self,
        id: ProcessId,
        reader: &mut Reader,
        units: &Units,
        sample: &mut ProcessSample,
    ) -> io::Result<bool> {
        let pid = id.pid;
        let text = match reader.read(format_args!("/proc/{pid}/stat")) {
            Err(error) if is_gone(&error) => return Ok(false),
            text => text?,
        };
        // Another start time is another process that was given the pid.
        let Some(stat) = Stat::parse(text).filter(|stat| stat.start_ticks == id.start_ticks) else {
            return Ok(false);
        };
        let opening = self.opening(id.start_ticks);
        self.usage.record(id, [stat.user_ticks, stat.system_ticks, stat.major_faults], opening);
        if stat.is_dead() {
            return Ok(false);
        }
        sample.processes += 1;
        sample.rss_bytes += stat.rss_pages * units.page_bytes;
        let open = descriptors(pid);
        sample.descriptors = sample.descriptors.zip(open).map(|(sum, count)| sum + count);
        let limit = reader.read(format_args!("/proc/{pid}/limits")).ok().and_then(descriptor_limit);
        if let Some((open, limit)) = open.zip(limit) {
            let this = DescriptorUse { open, limit };
            sample.fullest = Some(sample.fullest.map_or(this, |fullest| fullest.fuller(this)));
        }
        // A thread, or all of them, may end while they are read.
        let threads = match numbered(&format!("/proc/{pid}/task")) {
            Err(error) if is_gone(&error) => return Ok(true),
            threads => threads?,
        };
        for tid in threads {
            match self.read_thread(pid, tid, reader, units) {
                Err(error) if is_gone(&error) => {}
                thread => sample.threads.extend(thread?),
            }
        }
        Ok(true)
    }

    fn read_thread(
        &mut self,
        pid: u32,
        tid: u32,
        reader: &mut Reader,
        units: &Units,
    ) -> io::Result<Option<ThreadSample>> {
        let stat = Stat::parse(reader.read(format_args!("/proc/{pid}/task/{tid}/stat"))?);
        let Some(stat) = stat else { return Ok(None) };
        let start_ticks = stat.start_ticks;
        let mut thread = ThreadSample {
            pid,
            tid,
            name: lossy(stat.comm),
            started_seconds: units.seconds(start_ticks),
            cpu_seconds: units.seconds(stat.user_ticks + stat.system_ticks),
            waited_seconds: None,
        };
        // A kernel without statistics of its scheduler has no such file.
        let times = reader.read(format_args!("/proc/{pid}/task/{tid}/schedstat"));
        thread.waited_seconds = times.ok().and_then(waited_seconds);
        let switches = context_switches(reader.read(format_args!("/proc/{pid}/task/{tid}/status"))?);
        if let Some((voluntary, involuntary)) = switches {
            let id = ThreadId { pid, tid, start_ticks };
            self.switches.record(id, [voluntary, involuntary], self.opening(start_ticks));
        }
        Ok(Some(thread))
    }

    fn opening(&self, start_ticks: u64) -> Opening {
        if self.first_round || start_ticks >= self.began_ticks { Opening::Full } else { Opening::Nothing }
    }

    fn throttling(&mut self, reader: &mut Reader) -> Option<Throttling> {
        if self.throttle_files.is_none() {
            self.throttle_files = Some(cgroup::throttle_files(self.members.first()?.pid, reader));
        }
        let mut sum: Option<Throttling> = None;
        for path in self.throttle_files.iter().flatten() {
            let Some(level) = reader.read(format_args!("{path}")).ok().and_then(cgroup::throttling) else {
                continue;
            };
            let sum = sum.get_or_insert_default();
            sum.periods += level.periods;
            sum.elapsed += level.elapsed;
            sum.seconds += level.seconds;
        }
        // A server that was started again may be in another group: look again next time.
        if sum.is_none() && self.throttle_files.as_ref().is_some_and(|files| !files.is_empty()) {
            self.throttle_files = None;
        }
        sum
    }
}

/// The units in which the kernel counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Units {
    ticks_per_second: f64,
    page_bytes: u64,
}

impl Units {
    /// `sysconf(_SC_CLK_TCK)` and `sysconf(_SC_PAGESIZE)`.
    pub(crate) fn of_kernel() -> Self {
        Self {
            ticks_per_second: rustix::param::clock_ticks_per_second() as f64,
            page_bytes: rustix::param::page_size() as u64,
        }
    }

    /// Clock ticks in seconds.
    pub(crate) fn seconds(&self, ticks: u64) -> f64 {
        ticks as f64 / self.ticks_per_second
    }

    /// A time in whole clock ticks.
    pub(crate) fn ticks(&self, time: Duration) -> u64 {
        (time.as_secs_f64() * self.ticks_per_second) as u64
    }
}

/// The soft limit of open descriptors, out of `/proc/PID/limits`: `Max open files  1024  1048576  files`.
fn descriptor_limit(text: &[u8]) -> Option<u64> {
    let line = lines(text).find_map(|line| line.strip_prefix(b"Max open files"))?;
    decimal(words(line).next()?)
}

/// Field 2 of a thread's `schedstat`, in nanoseconds.
fn waited_seconds(text: &[u8]) -> Option<f64> {
    Some(decimal(words(text).nth(1)?)? as f64 * 1e-9)
}

/// Since Linux 6.2 the size of `/proc/PID/fd` is the number of its entries; before, it is 0. A process
/// with no descriptor at all takes the slow way in vain.
fn descriptors(pid: u32) -> Option<u64> {
    let path = format!("/proc/{pid}/fd");
    match fs::metadata(&path).ok()?.len() {
        0 => Some(fs::read_dir(path).ok()?.count() as u64),
        count => Some(count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::census::Census;

    fn this_process() -> ProcessId {
        let mut census = Census::default();
        census.retake(&mut Reader::default()).unwrap();
        census.find(std::process::id()).unwrap().id
    }

    fn sample(set: &mut ProcessSet) -> ProcessSample {
        set.sample(&mut Reader::default(), &Units::of_kernel())
    }

    #[test]
    fn a_pid_that_was_given_to_another_process_is_an_exit() {
        let id = this_process();
        let mut set = ProcessSet::new(0);
        set.admit(ProcessId { start_ticks: id.start_ticks - 1, ..id });
        let sample = sample(&mut set);
        assert_eq!((sample.processes, sample.exited), (0, 1));
        assert!(sample.threads.is_empty());
        assert_eq!(set.members().count(), 0);
    }

    #[test]
    fn an_older_process_that_joins_late_counts_from_then_on() {
        let id = this_process();
        let mut late = ProcessSet::new(u64::MAX);
        sample(&mut late);
        assert!(late.admit(id) && !late.admit(id));
        let joined = sample(&mut late);
        assert_eq!((joined.cpu_seconds, joined.voluntary_switches), (0.0, 0));
        assert_eq!(joined.processes, 1);
        assert!(joined.rss_bytes > 0 && joined.descriptors > Some(0));
        let (fullest, (limit, _)) = (joined.fullest.unwrap(), rlimit());
        assert!(fullest.open > 0 && fullest.limit == limit, "{fullest:?}");
    }

    fn rlimit() -> (u64, u64) {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX))
    }

    #[test]
    fn the_limit_of_descriptors_is_the_soft_one_and_an_unlimited_one_is_none() {
        let text = b"Limit   Soft Limit   Hard Limit   Units\nMax processes   95  95  processes\nMax open files            1024                 1048576              files     \n";
        assert_eq!(descriptor_limit(text), Some(1_024));
        assert_eq!(descriptor_limit(b"Max open files            unlimited  unlimited  files\n"), None);
        assert_eq!((waited_seconds(b"5 2500000000 7\n"), waited_seconds(b"5\n")), (Some(2.5), None));
    }
}
