//! The machine as a whole: CPU, memory, interfaces, and what its network stack dropped.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clock::since_boot;
use crate::field::{columns, decimal, labelled, lines, lossy, words};
use crate::process_set::Units;
use crate::reader::Reader;
use crate::stack::{StackCounters, memory_stalled_seconds, thermal_events};

/// The machine at one moment. A part is `None` where its file cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostSample {
    /// Time since boot in seconds, suspension included: `CLOCK_BOOTTIME`.
    pub uptime_seconds: f64,
    /// CPU time since boot.
    pub cpu: Option<HostCpu>,
    /// Softirq time since boot of each CPU that weir may run on, in their order: `/proc/stat`, lines `cpuN`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub core_softirq_seconds: Vec<f64>,
    /// The same of the time that the hypervisor took.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub core_steal_seconds: Vec<f64>,
    /// Tasks that ran or waited for a CPU or a disk, averaged over a minute: `/proc/loadavg`.
    pub load1: Option<f64>,
    /// Memory now.
    pub memory: Option<HostMemory>,
    /// The interfaces of weir's network namespace, `lo` among them, in the kernel's order.
    pub interfaces: Vec<InterfaceSample>,
    /// Losses and repetitions since boot, in weir's network namespace.
    pub network: Option<NetworkCounters>,
    /// What the kernel did with packets before they reached a socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<StackCounters>,
    /// Time since boot in which all processes of the machine waited for memory, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_stalled_seconds: Option<f64>,
    /// How often cores that weir may run on began to be throttled because they were hot, since boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thermal_events: Option<u64>,
}

/// CPU time of all CPUs together since boot, in seconds: the first line of `/proc/stat`. The five parts add
/// up to the time that has passed, times the number of CPUs that were online.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostCpu {
    /// Work: user (guests included), nice, system, irq and softirq.
    pub busy_seconds: f64,
    /// The part of `busy_seconds` spent in softirqs, where the network stack receives.
    pub softirq_seconds: f64,
    /// Nothing to do, and no disk to wait for.
    pub idle_seconds: f64,
    /// Nothing to do while a disk was waited for. The kernel calls this figure unreliable.
    pub iowait_seconds: f64,
    /// Ready to work, while the hypervisor ran something else.
    pub steal_seconds: f64,
}

/// Memory in bytes: `/proc/meminfo`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostMemory {
    /// `MemTotal`.
    pub total_bytes: u64,
    /// `MemAvailable`: the kernel's estimate of what new programs can have without swapping.
    pub available_bytes: u64,
    /// `MemTotal − MemAvailable`: the figure that weir prints.
    pub used_bytes: u64,
    /// `MemTotal − (MemFree + Buffers + Cached)`: the figure of node_exporter dashboards, and of mirakc's
    /// measurement. Reclaimable kernel memory counts as used in it, shared memory does not.
    pub used_without_cache_bytes: u64,
}

/// One network interface: a line of `/proc/net/dev`. All are counters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceSample {
    /// Its name.
    pub name: String,
    /// Bytes received, with link-layer headers.
    pub rx_bytes: u64,
    /// Packets received; merged ones (GRO, LRO) may count as one.
    pub rx_packets: u64,
    /// Received packets that were dropped, those that the card missed among them.
    pub rx_dropped: u64,
    /// Packets that a card had no buffer for (`rx_missed_errors`): `/sys/class/net/NAME/statistics`. `None` for interfaces without a
    /// device (`lo`, bridges, tunnels), and where it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rx_missed: Option<u64>,
    /// Bytes sent, with link-layer headers.
    pub tx_bytes: u64,
    /// Packets sent; a large one that the card cuts up (TSO) counts as one.
    pub tx_packets: u64,
    /// Packets that were dropped before they were sent.
    pub tx_dropped: u64,
}

/// What the network stack repeated and threw away: counters of the network namespace, of every process in
/// it. A counter that the kernel does not have is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkCounters {
    /// TCP segments sent: `OutSegs` of `/proc/net/snmp`.
    pub tcp_sent_segments: u64,
    /// TCP segments sent again: `RetransSegs` of `/proc/net/snmp`.
    pub tcp_retransmitted_segments: u64,
    /// Connections refused because a listener's queue was full: `ListenOverflows` of `/proc/net/netstat`.
    pub listen_overflows: u64,
    /// Connections refused by a listener for any reason, overflows included: `ListenDrops`.
    pub listen_drops: u64,
    /// Segments dropped because a socket's receive buffer was full: `TCPRcvQDrop`.
    pub tcp_receive_queue_drops: u64,
    /// Segments dropped because a socket's backlog was full while its process held it: `TCPBacklogDrop`.
    pub tcp_backlog_drops: u64,
    /// Times a socket asked its peer to stop sending: `TCPToZeroWindowAdv`.
    pub tcp_zero_windows: u64,
    /// UDP datagrams dropped because a socket's receive buffer was full: `RcvbufErrors` of
    /// `/proc/net/snmp`, and `Udp6RcvbufErrors` of `/proc/net/snmp6`.
    pub udp_receive_buffer_errors: u64,
    /// Times that UDP datagrams, one or several that were to leave together, were not sent because a socket's send buffer or a queue
    /// behind the socket was full: `SndbufErrors`, same files.
    pub udp_send_buffer_errors: u64,
}

impl HostSample {
    /// Reads all of it; of single CPUs those in `cores`, which are in order.
    pub(crate) fn read(reader: &mut Reader, units: &Units, cores: &[u32]) -> Self {
        let uptime_seconds = since_boot().as_secs_f64();
        let stat = reader.read(format_args!("/proc/stat")).unwrap_or_default();
        let cpu = HostCpu::parse(stat, units);
        let (core_softirq_seconds, core_steal_seconds): (Vec<_>, Vec<_>) =
            of_cores(stat, units, cores).unzip();
        Self {
            uptime_seconds,
            cpu,
            core_softirq_seconds,
            core_steal_seconds,
            load1: reader.read(format_args!("/proc/loadavg")).ok().and_then(load1),
            memory: reader.read(format_args!("/proc/meminfo")).ok().and_then(HostMemory::parse),
            interfaces: with_missed(
                reader.read(format_args!("/proc/net/dev")).map(interfaces).unwrap_or_default(),
                reader,
            ),
            network: NetworkCounters::read(reader),
            stack: StackCounters::read(reader),
            memory_stalled_seconds: memory_stalled_seconds(reader),
            thermal_events: thermal_events(reader, cores),
        }
    }
}

impl HostCpu {
    /// Work of processes and of interrupts, without softirqs, in seconds.
    pub fn worked_seconds(&self) -> f64 {
        self.busy_seconds - self.softirq_seconds
    }

    /// CPU time of all kinds, in seconds.
    pub fn total_seconds(&self) -> f64 {
        self.busy_seconds + self.idle_seconds + self.iowait_seconds + self.steal_seconds
    }

    fn parse(stat: &[u8], units: &Units) -> Option<Self> {
        Self::of_line(lines(stat).next().filter(|line| line.starts_with(b"cpu "))?, units)
    }

    /// A line of `/proc/stat` that begins with `cpu`.
    fn of_line(line: &[u8], units: &Units) -> Option<Self> {
        let mut ticks = words(line).skip(1).map(decimal);
        let mut next = || ticks.next().flatten().map(|ticks| units.seconds(ticks));
        let (user, nice, system, idle) = (next()?, next()?, next()?, next()?);
        // The rest came with Linux 2.6. Guest time (9, 10) is in user and nice already.
        let [iowait, irq, softirq, steal] = [(); 4].map(|()| next().unwrap_or(0.0));
        Some(Self {
            busy_seconds: user + nice + system + irq + softirq,
            softirq_seconds: softirq,
            idle_seconds: idle,
            iowait_seconds: iowait,
            steal_seconds: steal,
        })
    }
}

impl HostMemory {
    pub(crate) fn parse(meminfo: &[u8]) -> Option<Self> {
        let bytes = |label| labelled(meminfo, label)?.checked_mul(1024);
        let total_bytes = bytes("MemTotal:")?;
        let free = bytes("MemFree:")?;
        let cache = bytes("Buffers:").unwrap_or(0).saturating_add(bytes("Cached:").unwrap_or(0));
        let available_bytes = bytes("MemAvailable:")?;
        Some(Self {
            total_bytes,
            available_bytes,
            used_bytes: total_bytes.saturating_sub(available_bytes),
            used_without_cache_bytes: total_bytes.saturating_sub(free.saturating_add(cache)),
        })
    }
}

impl NetworkCounters {
    fn read(reader: &mut Reader) -> Option<Self> {
        let mut counters = Self::default();
        counters.take(reader.read(format_args!("/proc/net/snmp")).ok()?);
        counters.take(reader.read(format_args!("/proc/net/netstat")).ok()?);
        // A kernel without IPv6 has no such file.
        if let Ok(text) = reader.read(format_args!("/proc/net/snmp6")) {
            counters.udp_receive_buffer_errors += labelled(text, "Udp6RcvbufErrors").unwrap_or(0);
            counters.udp_send_buffer_errors += labelled(text, "Udp6SndbufErrors").unwrap_or(0);
        }
        Some(counters)
    }

    /// Takes what `text`, one of the two files of tables, has.
    fn take(&mut self, text: &[u8]) {
        for prefix in ["Tcp:", "Udp:", "TcpExt:"] {
            for (name, value) in columns(text, prefix) {
                match (prefix, name) {
                    ("Tcp:", b"OutSegs") => self.tcp_sent_segments = value,
                    ("Tcp:", b"RetransSegs") => self.tcp_retransmitted_segments = value,
                    ("Udp:", b"RcvbufErrors") => self.udp_receive_buffer_errors = value,
                    ("Udp:", b"SndbufErrors") => self.udp_send_buffer_errors = value,
                    ("TcpExt:", b"ListenOverflows") => self.listen_overflows = value,
                    ("TcpExt:", b"ListenDrops") => self.listen_drops = value,
                    ("TcpExt:", b"TCPRcvQDrop") => self.tcp_receive_queue_drops = value,
                    ("TcpExt:", b"TCPBacklogDrop") => self.tcp_backlog_drops = value,
                    ("TcpExt:", b"TCPToZeroWindowAdv") => self.tcp_zero_windows = value,
                    _ => {}
                }
            }
        }
    }

    /// What was counted since `earlier`; a counter that ran backwards counts nothing.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let since = |counter: fn(&Self) -> u64| counter(self).saturating_sub(counter(earlier));
        Self {
            tcp_sent_segments: since(|it| it.tcp_sent_segments),
            tcp_retransmitted_segments: since(|it| it.tcp_retransmitted_segments),
            listen_overflows: since(|it| it.listen_overflows),
            listen_drops: since(|it| it.listen_drops),
            tcp_receive_queue_drops: since(|it| it.tcp_receive_queue_drops),
            tcp_backlog_drops: since(|it| it.tcp_backlog_drops),
            tcp_zero_windows: since(|it| it.tcp_zero_windows),
            udp_receive_buffer_errors: since(|it| it.udp_receive_buffer_errors),
            udp_send_buffer_errors: since(|it| it.udp_send_buffer_errors),
        }
    }
}

/// Softirq time and steal of these CPUs, in seconds.
fn of_cores<'a>(stat: &'a [u8], units: &'a Units, cores: &'a [u32]) -> impl Iterator<Item = (f64, f64)> + 'a {
    let lines = lines(stat).skip(1).map_while(|line| Some((line.strip_prefix(b"cpu")?, line)));
    lines.filter_map(|(rest, line)| {
        let number = u32::try_from(words(rest).next().and_then(decimal)?).ok()?;
        let cpu = HostCpu::of_line(line, units).filter(|_| cores.binary_search(&number).is_ok())?;
        Some((cpu.softirq_seconds, cpu.steal_seconds))
    })
}

/// The first number of `/proc/loadavg`.
fn load1(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(words(text).next()?).ok()?.parse().ok().filter(|load: &f64| load.is_finite())
}

/// The last pid that was given away, in weir's pid namespace: the last number of `/proc/loadavg`. As long
/// as it stands still, no process and no thread has been born.
pub(crate) fn last_pid(text: &[u8]) -> Option<u64> {
    words(text).nth(4).and_then(decimal)
}

/// Interfaces of which a file each is read, once a second: a machine of containers may have thousands, of which few are cards.
const MOST_CARDS: usize = 16;

/// Adds what cards had no buffer for. `/proc/net/dev` has it in a sum with other drops.
fn with_missed(mut interfaces: Vec<InterfaceSample>, reader: &mut Reader) -> Vec<InterfaceSample> {
    for interface in interfaces.iter_mut().filter(|it| it.name != "lo").take(MOST_CARDS) {
        let name = &interface.name;
        // An alias (`eth0:1`) and a VLAN's interface have no device; a name with a slash cannot be.
        let path = format_args!("/sys/class/net/{name}/device/net/{name}/statistics/rx_missed_errors");
        interface.rx_missed = reader.read(path).ok().and_then(|text| decimal(text.trim_ascii()));
    }
    interfaces
}

/// The lines of `/proc/net/dev`, after its two lines of headings.
fn interfaces(text: &[u8]) -> Vec<InterfaceSample> {
    lines(text).filter_map(interface).collect()
}

fn interface(line: &[u8]) -> Option<InterfaceSample> {
    // An alias (`eth0:1`) has a colon of its own; a large number may follow the last one without a space.
    let colon = line.iter().rposition(|&byte| byte == b':')?;
    let mut numbers = words(&line[colon + 1..]).map(decimal);
    let mut next = |skipped: usize| numbers.nth(skipped).flatten();
    Some(InterfaceSample {
        name: lossy(line[..colon].trim_ascii()),
        rx_bytes: next(0)?,
        rx_packets: next(0)?,
        rx_dropped: next(1)?,
        rx_missed: None,
        tx_bytes: next(4)?,
        tx_packets: next(0)?,
        tx_dropped: next(1)?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_parts_of_cpu_time_add_up() {
        let text = b"cpu  2532 10 2414 151039 456 1 62 12 5 0\ncpu0 963 0 863 76375 32 0 12 5 0 0\n";
        let cpu = HostCpu::parse(text, &Units::of_kernel()).unwrap();
        assert!((cpu.busy_seconds - 50.19).abs() < 1e-9, "{cpu:?}");
        assert!((cpu.softirq_seconds - 0.62).abs() < 1e-9);
        assert!((cpu.iowait_seconds - 4.56).abs() < 1e-9);
        assert!((cpu.steal_seconds - 0.12).abs() < 1e-9);
        assert!((cpu.total_seconds() - 1565.26).abs() < 1e-9, "guest time is not counted twice");
    }

    #[test]
    fn of_single_cpus_those_that_weir_may_run_on_are_read() {
        let text = b"cpu  9 0 9 9 0 0 99 99 0 0\ncpu0 1 0 1 1 0 0 62 12 5 0\ncpu1 1 0 1 1 0 0 7 8 0 0\n\
            cpu12 1 0 1 1 0 0 300 4 0 0\nintr 5 6 7\ncpu13 nonsense\n";
        let of = |cores: &[u32]| of_cores(text, &Units::of_kernel(), cores).collect::<Vec<_>>();
        assert_eq!(of(&[0, 12, 13]), [(0.62, 0.12), (3.0, 0.04)]);
        assert_eq!(of(&[]), []);
    }

    #[test]
    fn used_memory_has_two_formulas() {
        let text = b"MemTotal:       24684092 kB\nMemFree:        23820824 kB\nMemAvailable:   24249692 kB\n\
            Buffers:           10232 kB\nCached:           591476 kB\nSwapCached:            0 kB\n";
        let memory = HostMemory::parse(text).unwrap();
        assert_eq!(memory.used_bytes, (24684092 - 24249692) * 1024);
        assert_eq!(memory.used_without_cache_bytes, (24684092 - 23820824 - 10232 - 591476) * 1024);
    }

    #[test]
    fn interfaces_have_any_name_and_tight_columns() {
        let text = b"Inter-|   Receive                                                |  Transmit\n face |bytes    \
            packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier \
            compressed\n    lo:    3193      29    0    0    0     0          0         0     3193      29    0    \
            0    0     0       0          0\neth0.7:214858034    7566    0    3    0     0          0         0   \
            543290    4373    0    4    0     0       0          0\n";
        let interfaces = interfaces(text);
        assert_eq!(interfaces.len(), 2);
        assert_eq!(interfaces[0].name, "lo");
        assert_eq!(
            interfaces[1],
            InterfaceSample {
                name: "eth0.7".into(),
                rx_bytes: 214858034,
                rx_packets: 7566,
                rx_dropped: 3,
                rx_missed: None,
                tx_bytes: 543290,
                tx_packets: 4373,
                tx_dropped: 4,
            }
        );
    }

    #[test]
    fn network_counters_come_from_three_tables() {
        let mut counters = NetworkCounters::default();
        counters.take(
            b"Tcp: RtoAlgorithm MaxConn OutSegs RetransSegs\nTcp: 1 -1 4269 17\n\
            Udp: InDatagrams RcvbufErrors SndbufErrors\nUdp: 215 8 9\nUdpLite: RcvbufErrors\nUdpLite: 99\n",
        );
        counters.take(
            b"TcpExt: ListenOverflows ListenDrops TCPRcvQDrop TCPToZeroWindowAdv\nTcpExt: 1 2 3 4\n\
            IpExt: ListenDrops\nIpExt: 99\n",
        );
        assert_eq!(
            counters,
            NetworkCounters {
                tcp_sent_segments: 4269,
                tcp_retransmitted_segments: 17,
                listen_overflows: 1,
                listen_drops: 2,
                tcp_receive_queue_drops: 3,
                tcp_backlog_drops: 0,
                tcp_zero_windows: 4,
                udp_receive_buffer_errors: 8,
                udp_send_buffer_errors: 9,
            }
        );
    }

    #[test]
    fn loadavg_tells_load_and_the_last_pid() {
        let text = b"0.25 0.10 0.01 2/139 5419\n";
        assert_eq!(load1(text), Some(0.25));
        assert_eq!(last_pid(text), Some(5419));
    }

    #[test]
    fn this_machine_is_read() {
        let host = HostSample::read(&mut Reader::default(), &Units::of_kernel(), &[]);
        assert!(host.cpu.unwrap().idle_seconds > 0.0);
        assert!(host.memory.unwrap().total_bytes > 0);
        assert!(host.network.is_some() && host.load1.is_some());
        assert!(host.interfaces.iter().any(|interface| interface.name == "lo"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text: Vec<u8>) {
            HostCpu::parse(&text, &Units::of_kernel());
            HostMemory::parse(&text);
            NetworkCounters::default().take(&text);
            interfaces(&text);
            load1(&text);
            last_pid(&text);
        }
    }
}
