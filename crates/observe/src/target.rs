//! One watched server: which processes it is made of, and whether it lives.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::census::{Census, ProcessId, Resident};
use crate::clock::{since_boot, thread_cpu};
use crate::process::ProcessSample;
use crate::process_set::{ProcessSet, Units};
use crate::ration::Ration;
use crate::reader::Reader;
use crate::sockets::{Sockets, inodes_held};
use crate::{ObserveError, Watch};

/// A watched server at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetSample {
    /// What was asked for.
    pub watch: Watch,
    /// Whether it lives.
    pub state: TargetState,
    /// Its processes, and all below them.
    pub process: ProcessSample,
    /// The TCP ports it listens on. With `port=…` this one; otherwise those whose listening socket a
    /// process of the target holds open (`/proc/PID/fd`).
    pub ports: Vec<u16>,
    /// Connections established with these ports. `None` without a port, or when they cannot be read.
    pub connections: Option<Connections>,
    /// When and by which clock it was read, if on another machine than the rest of its sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<Elsewhere>,
}

/// The clocks of a target on another machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Elsewhere {
    /// When it was read, on the clock of `Sample::at_ns`.
    pub at_ns: u64,
    /// For how long its machine was up then, in seconds: start times of its threads count from boot.
    pub uptime_seconds: f64,
}

/// A target on another machine is read once a second, and the agent that reads it is lost after three: what was read longer ago than this
/// is not known any more.
const UNHEARD_NS: u64 = 3_000_000_000;

impl TargetSample {
    /// Whether this was read on another machine too long before `at_ns` to say anything of that moment.
    pub fn is_unheard(&self, at_ns: u64) -> bool {
        self.elsewhere.is_some_and(|it| at_ns.saturating_sub(it.at_ns) > UNHEARD_NS)
    }

    /// Seconds between two samples of a target, and the uptime of its machine at the first; those of weir's own machine for
    /// what was read there.
    pub(crate) fn stretch(earlier: &Self, later: &Self, here: (f64, f64)) -> (f64, f64) {
        match (earlier.elsewhere, later.elsewhere) {
            (Some(from), Some(to)) => {
                // A target without a second sample has a window of zero length, and used nothing.
                let seconds = to.at_ns.saturating_sub(from.at_ns) as f64 * 1e-9;
                (seconds.max(1e-3), from.uptime_seconds)
            }
            _ => here,
        }
    }
}

/// Whether a target lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetState {
    /// At least one of the processes that matched is there.
    Running,
    /// All processes that matched have ended; children may live on. A server that is started again runs
    /// again, unless it was asked for by pid.
    Died,
}

/// A count of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Connections {
    /// TCP sockets in state `ESTABLISHED` whose local port is one of the target's: over sock_diag(7), or
    /// from `/proc/PID/net/tcp` and `tcp6`. Those that the server has not accepted yet are among them.
    pub established: u64,
    /// When they were counted, on the clock of `Sample::at_ns`. Counting takes 1 % of a core at most: up
    /// to some 8,000 connections each sample of a second has its own count, above it some repeat the last.
    pub counted_at_ns: u64,
}

/// A target that is being watched.
#[derive(Debug)]
pub(crate) struct Target {
    watch: Watch,
    /// The processes that matched, and live.
    roots: BTreeSet<ProcessId>,
    /// The pid of `Watch::Pid` has been looked up: a later process with it is another one.
    resolved: bool,
    set: ProcessSet,
    sockets: Sockets,
    ports: BTreeSet<u16>,
    /// The listening sockets, by inode, when descriptors were last searched for them.
    searched: BTreeSet<u64>,
    counting: Ration,
    connections: Option<Connections>,
    /// The ports that the load goes to: of several servers of one name, the one that listens on one of them is meant.
    wanted: BTreeSet<u16>,
}

impl Target {
    /// Finds the processes. An error when there are none, or when several servers match: of several servers of
    /// one name the one that listens on one of `ports`.
    pub(crate) fn find(
        watch: Watch,
        ports: &BTreeSet<u16>,
        census: &Census,
        units: &Units,
    ) -> Result<Self, ObserveError> {
        let mut target = Self {
            watch,
            roots: BTreeSet::new(),
            resolved: false,
            set: ProcessSet::new(units.ticks(since_boot())),
            sockets: Sockets::own(),
            ports: BTreeSet::new(),
            searched: BTreeSet::new(),
            counting: Ration::of_core(0.01),
            connections: None,
            wanted: ports.clone(),
        };
        if let Watch::Name(name) = target.watch.clone() {
            let servers = target.servers(&name, census);
            if servers.len() > 1 && target.listening(&servers).is_none() {
                let servers = servers.iter().map(|server| target.described(server, census)).collect();
                return Err(ObserveError::SeveralServers { name, servers });
            }
        }
        target.enroll(census);
        match target.watch {
            _ if !target.has_died() => Ok(target),
            Watch::Port(port) if !target.searched.is_empty() => Err(ObserveError::OwnerHidden(port)),
            watch => Err(ObserveError::NoMatch(watch)),
        }
    }

    /// Adds the processes born since the last census. A process that was added stays until it ends, whatever it
    /// calls itself and whichever process adopts it.
    pub(crate) fn enroll(&mut self, census: &Census) {
        let me = std::process::id();
        let begins = self.roots.is_empty();
        let matching = self.matching(census, &census.line_of(me));
        self.roots.extend(matching);
        self.resolved = true;
        if begins && let Some(root) = self.first_root() {
            self.sockets = Sockets::seen_by(root);
        }

        let mut heads: Vec<ProcessId> = self.roots.iter().copied().collect();
        heads.extend(self.set.members());
        let members = census.families(&heads, me);
        // Not `any`: every one of them is to be admitted.
        let has_grown = members.into_iter().filter(|&id| self.set.admit(id)).count() > 0;
        self.find_ports(has_grown);
    }

    /// Reads its processes, and its connections if they may be counted again.
    pub(crate) fn sample(&mut self, now_ns: u64, reader: &mut Reader, units: &Units) -> TargetSample {
        let process = self.set.sample(reader, units);
        self.roots.retain(|&root| self.set.contains(root));
        self.count_connections(now_ns);
        TargetSample {
            watch: self.watch.clone(),
            state: if self.has_died() { TargetState::Died } else { TargetState::Running },
            process,
            ports: self.ports.iter().copied().collect(),
            connections: self.connections,
            elsewhere: None,
        }
    }

    pub(crate) fn watch(&self) -> &Watch {
        &self.watch
    }

    /// The process that stands for the target.
    pub(crate) fn first_root(&self) -> Option<u32> {
        self.roots.first().map(|root| root.pid)
    }

    /// Whether a process is one of its.
    pub(crate) fn contains(&self, id: ProcessId) -> bool {
        self.set.contains(id)
    }

    pub(crate) fn has_died(&self) -> bool {
        self.roots.is_empty()
    }

    /// The processes that match. weir itself and those `above` it match by pid only.
    fn matching(&mut self, census: &Census, above: &[u32]) -> Vec<ProcessId> {
        let is_other = |resident: &&Resident| !above.contains(&resident.id.pid);
        let others = census.iter().filter(is_other);
        match &self.watch {
            Watch::Every(name) => others.filter(|it| it.is_named(name)).map(|it| it.id).collect(),
            // Another server of that name that comes later is not the target; one that comes when it has died is.
            Watch::Name(name) if self.roots.iter().any(|root| census.has(*root)) => {
                let members: BTreeSet<u32> =
                    self.set.members().chain(self.roots.iter().copied()).map(|id| id.pid).collect();
                let descends =
                    |it: &&Resident| census.line_of(it.id.pid).iter().any(|pid| members.contains(pid));
                others.filter(|it| it.is_named(name)).filter(descends).map(|it| it.id).collect()
            }
            Watch::Name(name) => {
                let mut servers = self.servers(&name.clone(), census);
                let meant = self.listening(&servers).unwrap_or(0);
                if servers.is_empty() { Vec::new() } else { servers.swap_remove(meant) }
            }
            Watch::Pid(_) if self.resolved => Vec::new(),
            Watch::Pid(pid) => census.find(*pid).map(|it| it.id).into_iter().collect(),
            Watch::Port(port) => {
                let listening = self.sockets.listening(*port).unwrap_or_default();
                let inodes: BTreeSet<u64> = listening.iter().map(|socket| socket.inode).collect();
                // Searching all descriptors of the host is costly: not for a socket whose owners are known.
                if !self.has_died() && inodes == self.searched {
                    return Vec::new();
                }
                let owners = others.filter(|it| inodes_held(it.id.pid).any(|inode| inodes.contains(&inode)));
                let owners = owners.map(|it| it.id).collect();
                self.searched = inodes;
                owners
            }
        }
    }

    /// The servers of this name: processes that descend from one another, or hold one listening socket, are one.
    fn servers(&mut self, name: &str, census: &Census) -> Vec<Vec<ProcessId>> {
        let above = census.line_of(std::process::id());
        let families = census.families_of(|it| it.is_named(name) && !above.contains(&it.id.pid));
        if families.len() < 2 {
            return families;
        }
        let listening: BTreeSet<u64> =
            self.sockets.listening(0).unwrap_or_default().iter().map(|socket| socket.inode).collect();
        let mut servers: Vec<(Vec<ProcessId>, BTreeSet<u64>)> = Vec::new();
        for family in families {
            let held: BTreeSet<u64> = family.iter().flat_map(|id| inodes_held(id.pid)).collect();
            let held: BTreeSet<u64> = held.intersection(&listening).copied().collect();
            match servers.iter_mut().find(|(_, inodes)| !inodes.is_disjoint(&held)) {
                Some((members, inodes)) => {
                    members.extend(family);
                    inodes.extend(held);
                }
                None => servers.push((family, held)),
            }
        }
        servers.into_iter().map(|(members, _)| members).collect()
    }

    /// The position of the only one of these servers that listens on a port which the load goes to.
    fn listening(&mut self, servers: &[Vec<ProcessId>]) -> Option<usize> {
        let wanted = self.wanted.clone();
        let on_them = |ports: BTreeSet<u16>| !ports.is_disjoint(&wanted);
        let mut found = (0..servers.len()).filter(|&position| on_them(self.ports_of(&servers[position])));
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }

    /// The ports that these processes listen on, if their descriptors may be read.
    fn ports_of(&mut self, server: &[ProcessId]) -> BTreeSet<u16> {
        let held: BTreeSet<u64> = server.iter().flat_map(|id| inodes_held(id.pid)).collect();
        let listening = self.sockets.listening(0).unwrap_or_default();
        listening.iter().filter(|it| held.contains(&it.inode)).map(|it| it.local_port).collect()
    }

    /// One server in a line, for a person to choose from several: program, process and ports.
    fn described(&mut self, server: &[ProcessId], census: &Census) -> String {
        let head = server.first().map_or(0, |id| id.pid);
        let program = census.find(head).map_or("", |resident| &resident.program);
        let ports: Vec<String> = self.ports_of(server).iter().map(u16::to_string).collect();
        let ports =
            if ports.is_empty() { "no port".to_owned() } else { format!("port {}", ports.join(", ")) };
        format!("pid {head} ({program}) on {ports}")
    }

    /// The ports that the members listen on. Their descriptors are searched only if members or sockets
    /// have come.
    fn find_ports(&mut self, has_grown: bool) {
        if let Watch::Port(port) = self.watch {
            self.ports = BTreeSet::from([port]);
            return;
        }
        let Ok(listening) = self.sockets.listening(0) else { return };
        let inodes: BTreeSet<u64> = listening.iter().map(|socket| socket.inode).collect();
        if !has_grown && inodes == self.searched {
            return;
        }
        let held: BTreeSet<u64> = self.set.members().flat_map(|id| inodes_held(id.pid)).collect();
        self.ports = listening.iter().filter(|it| held.contains(&it.inode)).map(|it| it.local_port).collect();
        self.searched = inodes;
    }

    fn count_connections(&mut self, now_ns: u64) {
        if self.ports.is_empty() {
            self.connections = None;
        } else if self.counting.is_due(now_ns) {
            let before = thread_cpu();
            let established = self.sockets.established(&self.ports).ok();
            self.counting.spend(now_ns, thread_cpu().saturating_sub(before));
            self.connections =
                established.map(|established| Connections { established, counted_at_ns: now_ns });
        }
    }
}

impl Resident {
    fn is_named(&self, name: &str) -> bool {
        self.comm == name || self.program == name
    }
}
