//! All processes of the host at one moment, and which descends from which.

use std::collections::BTreeMap;
use std::io;

use crate::field::lossy;
use crate::reader::{Reader, is_gone, numbered};
use crate::stat::Stat;

/// A process for good: the pid alone may be given to another one later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ProcessId {
    pub(crate) pid: u32,
    /// When it started, in clock ticks since boot.
    pub(crate) start_ticks: u64,
}

impl ProcessId {
    /// The process that has this pid now.
    pub(crate) fn of(pid: u32, reader: &mut Reader) -> Option<Self> {
        let stat = Stat::parse(reader.read(format_args!("/proc/{pid}/stat")).ok()?)?;
        Some(Self { pid, start_ticks: stat.start_ticks })
    }
}

/// One process of a [`Census`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resident {
    pub(crate) id: ProcessId,
    pub(crate) parent: u32,
    /// The name that the kernel keeps, cut to 15 bytes.
    pub(crate) comm: String,
    /// The last path component of `argv[0]`; empty for kernel threads.
    pub(crate) program: String,
    /// CPU time that it has used so far, in clock ticks.
    pub(crate) cpu_ticks: u64,
}

/// All processes that live, by pid. Zombies are left out: what they used is known already, or never.
#[derive(Clone, Debug, Default)]
pub(crate) struct Census {
    residents: Vec<Resident>,
}

impl Census {
    /// Reads `/proc` again. A process that `self` knows under the same name keeps its program: its command
    /// line is not read again. On an error `self` stays as it was.
    pub(crate) fn retake(&mut self, reader: &mut Reader) -> io::Result<()> {
        let mut residents = Vec::with_capacity(self.residents.len() + 16);
        for pid in numbered("/proc")? {
            match self.visit(pid, reader) {
                Ok(resident) => residents.extend(resident),
                Err(error) if is_gone(&error) => {}
                // A census with holes would lose which process descends from which.
                Err(error) => return Err(error),
            }
        }
        *self = Self::of(residents);
        Ok(())
    }

    /// A census of these processes.
    pub(crate) fn of(mut residents: Vec<Resident>) -> Self {
        residents.sort_unstable_by_key(|resident| resident.id);
        Self { residents }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Resident> {
        self.residents.iter()
    }

    pub(crate) fn find(&self, pid: u32) -> Option<&Resident> {
        let index = self.residents.binary_search_by_key(&pid, |resident| resident.id.pid).ok()?;
        self.residents.get(index)
    }

    /// Whether this very process is there.
    pub(crate) fn has(&self, id: ProcessId) -> bool {
        self.find(id.pid).is_some_and(|resident| resident.id == id)
    }

    /// The process and those above it, up to the first.
    pub(crate) fn line_of(&self, pid: u32) -> Vec<u32> {
        let mut line = vec![pid];
        let mut next = self.find(pid);
        while let Some(resident) = next
            && resident.parent != 0
            && !line.contains(&resident.parent)
        {
            line.push(resident.parent);
            next = self.find(resident.parent);
        }
        line
    }

    /// The processes for which `matches` holds, as families: those of one family descend from one another.
    pub(crate) fn families_of(&self, matches: impl Fn(&Resident) -> bool) -> Vec<Vec<ProcessId>> {
        let mut families: BTreeMap<u32, Vec<ProcessId>> = BTreeMap::new();
        for resident in self.residents.iter().filter(|resident| matches(resident)) {
            // The highest above it that matches as well: a worker belongs to its master.
            let line = self.line_of(resident.id.pid);
            let head = line.into_iter().rev().find(|pid| self.find(*pid).is_some_and(&matches));
            families.entry(head.unwrap_or(resident.id.pid)).or_default().push(resident.id);
        }
        families.into_values().collect()
    }

    /// The roots and all below them, each once, in order of pid. Neither `except` nor what is below it is
    /// entered, unless it is a root. A root that has ended has no children, whoever has its pid now.
    pub(crate) fn families(&self, roots: &[ProcessId], except: u32) -> Vec<ProcessId> {
        let mut members: Vec<ProcessId> = roots.to_vec();
        let mut next = 0;
        while let Some(&parent) = members.get(next) {
            next += 1;
            if self.find(parent.pid).is_none_or(|resident| resident.id != parent) {
                continue;
            }
            for child in self.residents.iter().filter(|child| child.parent == parent.pid) {
                if child.id.pid != except && !members.contains(&child.id) {
                    members.push(child.id);
                }
            }
        }
        members.sort_unstable();
        members.dedup();
        members
    }

    /// `None` for a zombie.
    fn visit(&self, pid: u32, reader: &mut Reader) -> io::Result<Option<Resident>> {
        let stat = Stat::parse(reader.read(format_args!("/proc/{pid}/stat"))?);
        let Some(stat) = stat.filter(|stat| !stat.is_dead()) else { return Ok(None) };
        let id = ProcessId { pid, start_ticks: stat.start_ticks };
        let (parent, cpu_ticks) = (stat.parent, stat.user_ticks + stat.system_ticks);
        if let Some(known) = self.find(pid)
            && known.id == id
            && known.comm.as_bytes() == stat.comm
        {
            return Ok(Some(Resident { parent, cpu_ticks, ..known.clone() }));
        }
        let comm = lossy(stat.comm);
        let program = program(reader.read(format_args!("/proc/{pid}/cmdline"))?);
        Ok(Some(Resident { id, parent, comm, program, cpu_ticks }))
    }
}

/// The last path component of the first argument.
fn program(command_line: &[u8]) -> String {
    let first = command_line.split(|&byte| byte == 0).next().unwrap_or_default();
    lossy(first.rsplit(|&byte| byte == b'/').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resident(pid: u32, parent: u32) -> Resident {
        let id = ProcessId { pid, start_ticks: u64::from(pid) * 10 };
        Resident { id, parent, comm: format!("p{pid}"), program: String::new(), cpu_ticks: 0 }
    }

    fn pids(members: &[ProcessId]) -> Vec<u32> {
        members.iter().map(|id| id.pid).collect()
    }

    #[test]
    fn a_child_of_two_roots_is_counted_once() {
        let census = Census::of(vec![
            resident(1, 0),
            resident(10, 1),
            resident(11, 10),
            resident(12, 11),
            resident(20, 1),
        ]);
        let roots = [census.find(10).unwrap().id, census.find(11).unwrap().id];
        assert_eq!(pids(&census.families(&roots, 99)), [10, 11, 12]);
    }

    #[test]
    fn a_master_and_its_workers_are_one_family_and_two_masters_are_two() {
        // 10 and 20 are masters, 11 and 12 workers of 10 (12 through another process), 30 of another name.
        let census = Census::of(vec![
            resident(1, 0),
            resident(10, 1),
            resident(11, 10),
            resident(30, 10),
            resident(12, 30),
            resident(20, 1),
        ]);
        let families = census.families_of(|it| [10, 11, 12, 20].contains(&it.id.pid));
        assert_eq!(
            families.iter().map(|family| pids(family)).collect::<Vec<_>>(),
            [vec![10, 11, 12], vec![20]]
        );
        assert!(census.families_of(|_| false).is_empty());
    }

    #[test]
    fn weir_and_what_it_started_are_not_entered_from_above() {
        let census = Census::of(vec![resident(1, 0), resident(2, 1), resident(3, 2), resident(4, 1)]);
        assert_eq!(pids(&census.families(&[census.find(1).unwrap().id], 2)), [1, 4]);
        assert_eq!(pids(&census.families(&[census.find(2).unwrap().id], 2)), [2, 3]);
    }

    #[test]
    fn the_children_of_a_reused_pid_are_strangers() {
        let census = Census::of(vec![resident(1, 0), resident(2, 1), resident(3, 2)]);
        let ended = ProcessId { pid: 2, start_ticks: 7 };
        assert_eq!(census.families(&[ended], 0), [ended]);
    }

    #[test]
    fn a_line_ends_at_the_first_process_and_in_a_circle() {
        let census = Census::of(vec![resident(1, 0), resident(2, 1), resident(3, 2)]);
        assert_eq!(census.line_of(3), [3, 2, 1]);
        let torn = Census::of(vec![resident(5, 6), resident(6, 5)]);
        assert_eq!(torn.line_of(5), [5, 6]);
        assert_eq!(pids(&torn.families(&[torn.find(5).unwrap().id], 0)), [5, 6]);
    }

    #[test]
    fn the_program_is_the_last_component_of_argv0() {
        assert_eq!(program(b"/usr/sbin/nginx\0-g\0daemon off;\0"), "nginx");
        assert_eq!(program(b"nginx: worker process"), "nginx: worker process");
        assert_eq!(program(b""), "");
    }

    #[test]
    fn this_process_is_found_in_proc() {
        let mut census = Census::default();
        let mut reader = Reader::default();
        census.retake(&mut reader).unwrap();
        let me = census.find(std::process::id()).unwrap().clone();
        assert!(me.program.starts_with("weir_observe"), "{me:?}");
        census.retake(&mut reader).unwrap();
        let again = census.find(std::process::id()).unwrap().clone();
        assert!(again.cpu_ticks >= me.cpu_ticks);
        assert_eq!(again, Resident { cpu_ticks: again.cpu_ticks, ..me });
    }
}
