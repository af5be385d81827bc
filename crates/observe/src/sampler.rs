//! The reading of everything, once a second.

use std::collections::BTreeSet;
use std::time::Instant;

use crate::census::{Census, ProcessId};
use crate::clock::thread_cpu;
use crate::environment::TargetEnvironment;
use crate::host::{HostSample, last_pid};
use crate::others::Others;
use crate::process_set::{ProcessSet, Units};
use crate::ration::Ration;
use crate::reader::Reader;
use crate::target::Target;
use crate::{Cpu, MachineFacts, ObserveError, Remote, Sample, Watch};

/// Watches targets, weir itself and the host.
///
/// A sample costs about 0.25 ms of CPU time for the host and weir, and 25 µs for each thread watched: 0.7 ms
/// with a target of 20 threads, 0.07 % of a core at one a second (`cargo run --release -p weir-observe
/// --example cost`). The two readings that grow with the machine rather than with the target are rationed:
/// the list of all processes takes 0.5 % of a core at most, the connections of each target 1 %.
///
/// ```no_run
/// # use std::time::{Duration, Instant};
/// # use weir_observe::{Sampler, Usage, Watch};
/// let mut sampler = Sampler::new([Watch::Name("nginx".into())])?;
/// let start = Instant::now();
/// let mut now_ns = || start.elapsed().as_nanos() as u64;
/// let earlier = sampler.sample(now_ns());
/// std::thread::sleep(Duration::from_secs(1));
/// let later = sampler.sample(now_ns());
/// let usage = Usage::between(&earlier, &later).expect("a second passed");
/// println!("nginx: {:.1} % of a core", usage.targets[0].process.cpu_percent);
/// # Ok::<(), weir_observe::ObserveError>(())
/// ```
#[derive(Debug)]
pub struct Sampler {
    targets: Vec<Target>,
    generator: ProcessSet,
    census: Census,
    taking_census: Ration,
    census_at_ns: u64,
    births: Births,
    units: Units,
    reader: Reader,
    machines: Vec<Remote>,
    others: Others,
    /// The CPUs that weir may run on, in order.
    cores: Vec<u32>,
    /// The processes of now that work for weir, beside its own.
    helpers: fn() -> Vec<u32>,
}

/// Whether processes are being born, by the last pid that the kernel gave away.
#[derive(Debug, Default)]
struct Births {
    last_pid: Option<u64>,
    /// Whether it was the same at the look before as well.
    is_confirmed: bool,
}

impl Births {
    /// Whether no process was born since the census before the last. The kernel gives a pid away before its process stands in
    /// `/proc`: a list of processes that was made at once may lack the one whose pid it has seen, so that another has to be made
    /// when the pid is the same for the first time.
    fn have_ceased(&mut self, last_pid: Option<u64>) -> bool {
        let is_same = last_pid.is_some() && last_pid == self.last_pid;
        self.last_pid = last_pid;
        let was_same = std::mem::replace(&mut self.is_confirmed, is_same);
        is_same && was_same
    }
}

/// A process that changes its name without being born is found by then.
const CENSUS_PERIOD_NS: u64 = 10_000_000_000;

impl Sampler {
    /// Finds the processes of every watch; none at all is fine. From here on counters count.
    pub fn new(watches: impl IntoIterator<Item = Watch>) -> Result<Self, ObserveError> {
        Self::of_load(watches, &BTreeSet::new())
    }

    /// As [`Sampler::new`], beside a load that goes to these TCP ports of this machine: of several servers of one name
    /// the one that listens on one of them is meant.
    pub fn of_load(
        watches: impl IntoIterator<Item = Watch>,
        ports: &BTreeSet<u16>,
    ) -> Result<Self, ObserveError> {
        let units = Units::of_kernel();
        let mut reader = Reader::default();
        let mut census = Census::default();
        let no_proc = |source| ObserveError::NoProc { path: "/proc", source };
        census.retake(&mut reader).map_err(no_proc)?;
        let me = census.find(std::process::id()).map(|me| me.id);
        let me = me.ok_or_else(|| ObserveError::NoProc {
            path: "/proc/self/stat",
            source: std::io::ErrorKind::NotFound.into(),
        })?;
        let mut generator = ProcessSet::new(me.start_ticks);
        generator.admit(me);
        let find = |watch| Target::find(watch, ports, &census, &units);
        let targets = watches.into_iter().map(find).collect::<Result<_, _>>()?;
        Ok(Self {
            targets,
            generator,
            others: Others::since(&census),
            cores: Cpu::read().affinity,
            census,
            taking_census: Ration::of_core(0.005),
            census_at_ns: 0,
            births: Births::default(),
            units,
            reader,
            machines: Vec::new(),
            helpers: Vec::new,
        })
    }

    /// What these processes use is weir's own use from now on; each is asked for before every sample.
    pub fn count_as_own(&mut self, helpers: fn() -> Vec<u32>) {
        self.helpers = helpers;
    }

    /// Adds what is read of another machine to every sample from now on.
    pub fn watch_machine(&mut self, machine: Remote) {
        self.machines.push(machine);
    }

    /// The machines of [`Sampler::watch_machine`], in that order.
    pub fn machines(&self) -> impl Iterator<Item = &MachineFacts> {
        self.machines.iter().map(Remote::facts)
    }

    /// Reads everything. `now_ns` is the caller's monotonic clock in nanoseconds; it stamps the sample, and
    /// decides whether the costly readings are due.
    pub fn sample(&mut self, now_ns: u64) -> Sample {
        let walked = !self.targets.is_empty() && self.look_for_newcomers(now_ns);
        let (reader, units) = (&mut self.reader, &self.units);
        for pid in (self.helpers)() {
            if let Some(id) = ProcessId::of(pid, reader) {
                self.generator.admit(id);
            }
        }
        // The host first: a thread that is born from now on is younger than this sample's uptime.
        let host = HostSample::read(reader, units, &self.cores);
        let mut sample = Sample {
            at_ns: now_ns,
            targets: self.targets.iter_mut().map(|target| target.sample(now_ns, reader, units)).collect(),
            generator: self.generator.sample(reader, units),
            host,
            machines: self.machines.iter_mut().map(|machine| machine.sample(now_ns)).collect(),
            others: Vec::new(),
        };
        let known = sample.targets.iter().map(|target| &target.process).chain([&sample.generator]);
        let known: f64 = known.map(|process| process.cpu_seconds).sum();
        if self.others.are_busy(sample.host.cpu, known) && (walked || self.walk(now_ns)) {
            let (targets, generator) = (&self.targets, &self.generator);
            let is_ours = |id| generator.contains(id) || targets.iter().any(|target| target.contains(id));
            sample.others = self.others.used(&self.census, &self.units, is_ours);
        }
        sample
    }

    /// As [`Sampler::sample`], for the last time: machines are asked for what they still have, which may
    /// take a few seconds. After it nothing comes from them any more.
    pub fn last_sample(&mut self, now_ns: u64) -> Sample {
        let mut sample = self.sample(now_ns);
        let began = Instant::now();
        for (machine, heard) in self.machines.iter_mut().zip(&mut sample.machines) {
            let passed = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let last = machine.last_sample(now_ns.saturating_add(passed));
            heard.points.extend(last.points);
            heard.failure = last.failure.or(heard.failure.take());
            heard.gap = last.gap.or(heard.gap.take());
        }
        sample
    }

    /// What each target is: executable, version, command line, limits. One that has died is left out.
    pub fn describe_targets(&mut self) -> Vec<TargetEnvironment> {
        let described = |target: &Target| {
            TargetEnvironment::read(target.watch().clone(), target.first_root()?, &mut self.reader)
        };
        self.targets.iter().filter_map(described).collect()
    }

    /// Takes a census, if processes have been born since the last one and it may cost again; true if it did.
    fn look_for_newcomers(&mut self, now_ns: u64) -> bool {
        if !self.taking_census.is_due(now_ns) {
            return false;
        }
        let last = self.reader.read(format_args!("/proc/loadavg")).ok().and_then(last_pid);
        let is_still = self.births.have_ceased(last);
        if is_still && now_ns.saturating_sub(self.census_at_ns) < CENSUS_PERIOD_NS {
            return false;
        }
        self.census_at_ns = now_ns;
        self.walk(now_ns)
    }

    /// Takes a census, if it may cost again; true if it did. Targets take in what has come.
    fn walk(&mut self, now_ns: u64) -> bool {
        if !self.taking_census.is_due(now_ns) {
            return false;
        }
        let before = thread_cpu();
        let walked = self.census.retake(&mut self.reader).is_ok();
        if walked {
            for target in &mut self.targets {
                target.enroll(&self.census);
            }
        }
        self.taking_census.spend(now_ns, thread_cpu().saturating_sub(before));
        walked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_last_birth_processes_are_listed_twice() {
        let mut births = Births::default();
        let looks = [Some(7), Some(7), Some(7), Some(7), Some(8), Some(8), Some(8), None, None];
        let ceased = looks.map(|last_pid| births.have_ceased(last_pid));
        assert_eq!(ceased, [false, false, true, true, false, false, true, false, false]);
    }
}
