//! What processes and the host did over a stage's window, as a summary has it.

use crate::summary::{
    DescriptorLoad, HostLoad, LinkLoad, MissedPackets, OtherLoad, ProcessLoad, ThreadLoad, ThrottledLoad,
};
use weir_metrics::{BitRate, several};
use weir_observe::{
    Cpu, Environment, InterfaceSpeed, InterfaceSummary, OtherProcesses, ProcessSummary, Sample, UsageSummary,
};

/// Share of a link's speed from which on it may have been what was full. What is counted leaves out preamble, checksum and the gap
/// between frames, 24 bytes a frame (IEEE 802.3, clause 4), which is 2 % of full frames and 20 % of those of 96 bytes.
pub const LINK_WITHIN_REACH: f64 = 0.9;

/// Thread names listed for a process.
pub(crate) const LISTED_THREADS: usize = 32;

pub(crate) fn process_load(
    label: String,
    process: &ProcessSummary,
    connections_max: Option<u64>,
    seconds: f64,
) -> ProcessLoad {
    ProcessLoad {
        label,
        cpu_percent: process.cpu_percent.mean,
        cpu_percent_max: process.cpu_percent.max,
        cpu_seconds: Some(process.cpu_percent.mean / 100.0 * seconds),
        rss_max_bytes: process.rss_bytes.max as u64,
        rss_mean_bytes: process.rss_bytes.mean,
        connections_max,
        descriptors_max: process.descriptors.map(|figure| figure.max as u64),
        context_switches_per_second: process.voluntary_switches_per_second.mean
            + process.involuntary_switches_per_second.mean,
        threads: process
            .thread_names
            .iter()
            .take(LISTED_THREADS)
            .map(|thread| ThreadLoad {
                name: thread.name.clone(),
                threads: thread.threads as u32,
                cpu_percent: thread.cpu_percent,
                cpu_percent_busiest: thread.busiest_percent,
                waited_percent_busiest: thread.busiest_waited_percent,
            })
            .collect(),
        waited_percent: process.waited_percent,
        fullest: process.fullest.map(|it| DescriptorLoad { open: it.open, limit: it.limit }),
        throttled: process.throttling.filter(|it| it.periods > 0).map(|it| ThrottledLoad {
            periods: it.periods,
            of_periods: it.elapsed.max(it.periods),
            seconds: it.seconds,
        }),
    }
}

fn other_load(other: &OtherProcesses, seconds: f64) -> OtherLoad {
    OtherLoad {
        name: other.name.clone(),
        pid: other.pid,
        processes: other.processes,
        cpu_percent: 100.0 * other.cpu_seconds / seconds.max(1e-3),
    }
}

/// CPUs that the whole machine has.
pub(crate) fn cores(cpu: &Cpu) -> f64 {
    cpu.online_count.max(1) as f64
}

pub(crate) fn host_load(usage: &UsageSummary, environment: &Environment) -> HostLoad {
    let (host, cores) = (&usage.host, cores(&environment.cpu));
    let mean = |figure: Option<weir_observe::Figure>| figure.map_or(0.0, |figure| figure.mean);
    let max = |figure: Option<weir_observe::Figure>| figure.map_or(0.0, |figure| figure.max);
    let interfaces = |value: fn(&InterfaceSummary) -> f64| host.interfaces.iter().map(value).sum();
    HostLoad {
        cpu_percent: 100.0 * cores * mean(host.cpu_busy_ratio),
        steal_percent: 100.0 * cores * mean(host.cpu_steal_ratio),
        others_percent: usage.others.cpu_percent,
        others: usage.others.busiest.iter().map(|other| other_load(other, usage.seconds)).collect(),
        softirq_percent: host.own_softirq_ratio.map(|ratio| 100.0 * ratio),
        load1_max: max(host.load1),
        memory_used_max_bytes: max(host.memory_used_bytes) as u64,
        rx_bps: interfaces(|interface| interface.rx_bps.mean),
        tx_bps: interfaces(|interface| interface.tx_bps.mean),
        link: busiest_link(&host.interfaces, &environment.interfaces),
        missed: missed(&host.interfaces, &environment.interfaces_towards),
        tcp_retransmits_per_second: mean(host.tcp_retransmits_per_second),
        listen_drops: host.network.map_or(0, |network| network.listen_drops),
    }
}

/// The interface that came closest to its speed.
fn busiest_link(interfaces: &[InterfaceSummary], speeds: &[InterfaceSpeed]) -> Option<LinkLoad> {
    let links = interfaces.iter().filter_map(|it| {
        let speed = speeds.iter().find(|speed| speed.name == it.name)?;
        Some(LinkLoad {
            interface: it.name.clone(),
            bps: it.rx_bps.mean.max(it.tx_bps.mean),
            speed_bps: speed.bits_per_second as f64,
        })
    });
    links.max_by(|one, other| (one.bps / one.speed_bps).total_cmp(&(other.bps / other.speed_bps)))
}

/// The card on one of these ways that had no buffer for most packets.
fn missed(interfaces: &[InterfaceSummary], ways: &[String]) -> Option<MissedPackets> {
    let cards = interfaces.iter().filter(|it| ways.contains(&it.name));
    let missed = cards.filter_map(|it| {
        let packets = it.rx_missed.filter(|packets| *packets > 0)?;
        Some(MissedPackets { interface: it.name.clone(), packets })
    });
    missed.max_by_key(|it| it.packets)
}

/// What a reader must know of the network cards in these windows. No verdict rests on it: that a card was full says nothing of what came
/// of it, which other figures show.
pub(crate) fn card_warnings<'a>(hosts: impl Iterator<Item = &'a HostLoad> + Clone) -> Vec<String> {
    let share = |link: &LinkLoad| link.bps / link.speed_bps;
    let links = hosts.clone().filter_map(|host| host.link.as_ref());
    let fullest = links.max_by(|one, other| share(one).total_cmp(&share(other)));
    let full = fullest.filter(|link| share(link) >= LINK_WITHIN_REACH).map(|link| {
        format!(
            "{} carried {} of the {} that it can ({:.0} %): what was measured may be the card's limit; use a faster one, or more machines",
            link.interface,
            BitRate::from_bps(link.bps),
            BitRate::from_bps(link.speed_bps),
            100.0 * share(link),
        )
    });
    let missed = hosts.filter_map(|host| host.missed.as_ref()).max_by_key(|it| it.packets).map(|missed| {
        format!(
            "{} had no buffer for {} that came (rx_missed_errors): raise its ring (ethtool -G), or spread receiving over more cores (RSS)",
            missed.interface,
            several(missed.packets, "packet"),
        )
    });
    full.into_iter().chain(missed).collect()
}

/// How often queues of this machine dropped what its UDP sockets had sent, from the sample before second 0 on, if they did. Where a socket
/// is full the kernel counts that as well, once for datagrams that were to leave together; `socket_drops` has each of those that were weir's.
pub(crate) fn queue_drops(samples: &[Sample], origin_ns: u64, socket_drops: u64) -> Option<u64> {
    let first = samples.partition_point(|sample| sample.at_ns <= origin_ns).saturating_sub(1);
    let failed = |sample: &Sample| Some(sample.host.network?.udp_send_buffer_errors);
    let (from, to) = (failed(samples.get(first)?)?, failed(samples.last()?)?);
    to.saturating_sub(from).checked_sub(socket_drops).filter(|drops| *drops > 0)
}

/// What a reader must know of that.
pub(crate) fn queue_words(drops: u64) -> String {
    format!(
        "queues of this machine dropped datagrams that its sockets had sent, {} at least (SndbufErrors of /proc/net/snmp, of all processes): what a server lacks may never have left",
        several(drops, "time")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_observe::{Figure, HostSample, NetworkCounters, ProcessSample};

    fn interface(name: &str, rx_bps: f64, tx_bps: f64) -> InterfaceSummary {
        let figure = |mean| Figure { min: mean, mean, p95: mean, max: mean };
        let name = name.to_owned();
        InterfaceSummary { name, rx_bps: figure(rx_bps), tx_bps: figure(tx_bps), rx_missed: None }
    }

    #[test]
    fn the_link_that_is_named_is_the_one_that_is_fullest_and_not_the_one_that_carries_most() {
        let interfaces =
            [interface("lo", 9e9, 9e9), interface("eth0", 1e8, 8e8), interface("eth1", 2e9, 0.0)];
        let speeds = [("eth0", 1_000_000_000), ("eth1", 10_000_000_000)];
        let speeds =
            speeds.map(|(name, bits_per_second)| InterfaceSpeed { name: name.to_owned(), bits_per_second });
        let link = busiest_link(&interfaces, &speeds).unwrap();
        assert_eq!(link, LinkLoad { interface: "eth0".to_owned(), bps: 8e8, speed_bps: 1e9 });
        assert_eq!(busiest_link(&interfaces, &[]), None);
    }

    #[test]
    fn a_card_near_its_speed_and_one_without_buffers_are_warned_of_and_others_are_not() {
        let host = |bps: f64, packets: u64| HostLoad {
            link: Some(LinkLoad { interface: "eth0".to_owned(), bps, speed_bps: 1e9 }),
            missed: (packets > 0).then(|| MissedPackets { interface: "eth0".to_owned(), packets }),
            ..HostLoad::default()
        };
        let warnings = |hosts: &[HostLoad]| card_warnings(hosts.iter());
        assert_eq!(warnings(&[host(8.9e8, 0), HostLoad::default()]), [""; 0]);
        // The fullest of several stages is named, once.
        let said = warnings(&[host(9.5e8, 0), host(9.1e8, 0)]);
        assert_eq!(said.len(), 1);
        assert!(
            said[0].starts_with("eth0 carried 950.00 Mbps of the 1.00 Gbps that it can (95 %)"),
            "{said:?}"
        );
        let said = warnings(&[host(1e8, 7), host(1e8, 9)]);
        assert_eq!(said.len(), 1);
        assert!(said[0].starts_with("eth0 had no buffer for 9 packets"), "{said:?}");
    }

    #[test]
    fn what_a_queue_dropped_in_the_run_is_what_the_kernel_counts_beyond_what_found_weirs_sockets_full() {
        let sample = |second: u64, udp_send_buffer_errors| {
            let network = Some(NetworkCounters { udp_send_buffer_errors, ..NetworkCounters::default() });
            let host = HostSample { network, ..HostSample::default() };
            let (targets, machines, others) = (Vec::new(), Vec::new(), Vec::new());
            let generator = ProcessSample::default();
            Sample { at_ns: second * 1_000_000_000, targets, generator, host, machines, others }
        };
        let samples = [sample(8, 3), sample(9, 5), sample(11, 5), sample(12, 40), sample(13, 1_245)];
        let drops = |socket_drops| queue_drops(&samples, 10_000_000_000, socket_drops);
        assert_eq!([0, 1_239, 1_240, 5_000].map(drops), [Some(1_240), Some(1), None, None]);
        assert_eq!(queue_drops(&samples[..3], 10_000_000_000, 0), None);
        assert_eq!(queue_drops(&[], 0, 0), None);
        assert!(queue_words(1_240).contains("1,240 times at least"));
    }

    #[test]
    fn what_a_card_missed_is_told_of_those_on_the_way_alone() {
        let card = |name: &str, rx_missed| InterfaceSummary { rx_missed, ..interface(name, 0.0, 0.0) };
        let cards = [card("eth0", Some(3)), card("eth1", Some(90)), card("lo", None)];
        let of = |ways: &[&str]| {
            let ways: Vec<String> = ways.iter().map(|it| (*it).to_owned()).collect();
            missed(&cards, &ways).map(|it| (it.interface, it.packets))
        };
        assert_eq!(of(&["eth0"]), Some(("eth0".to_owned(), 3)));
        assert_eq!(of(&["eth0", "eth1"]), Some(("eth1".to_owned(), 90)));
        assert_eq!((of(&["lo"]), of(&[])), (None, None));
    }
}
