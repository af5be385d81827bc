//! What one stage shows: how late weir was, how busy its threads and its machine were.

use super::check::Check;
use super::time;
use crate::machine::loads::cores;
use crate::summary::{Reason, StageSummary, Value};
use weir_metrics::common::names;
use weir_metrics::{grouped, several};
use weir_observe::{Cpu, HostSummary, UsageSummary};

/// Share of a second that a generator thread may run or wait for a CPU.
const THREAD_BUSY: f64 = 0.95;
/// For how long a generator thread may not run, whatever the target's latency: as long as a modelled player's buffer
/// lasts, after which a stall would be weir's own.
pub(crate) const PAUSE_SECONDS: f64 = 1.0;
/// A pause from which on figures are to be read with care: what is 100 ms late is called late of a client's start, too.
const LONG_TURN_SECONDS: f64 = 0.1;
/// What to do where weir was not scheduled.
pub(crate) const REMEDY_OF_PAUSES: &str =
    "find what stopped it (a signal, the hypervisor, memory that was swapped out), or give it more cores";
/// Share of a latency that may be weir's own.
const OWN_LATENCY: f64 = 0.5;
/// The same, from which on it is to be read with care.
const SOME_OWN_LATENCY: f64 = 0.1;
/// Share of the time that late turns must have taken for a latency's 99th percentile to be weir's own.
const LATE_SHARE: f64 = 0.01;
/// Share of a late turn that a latency's 99th percentile shows at least if the turn is in it: what comes during a turn
/// waits for half of it on average.
const SEEN_IN_LATENCY: f64 = 0.5;
/// Share of the machine's cores that the generator may use.
const CORES_BUSY: f64 = 0.80;
/// Share of the machine's cores below which a run is not degraded by what the generator uses of them: half of the limit.
pub const CORES_OF_A_VALID_RUN: f64 = CORES_BUSY / 2.0;
/// Smallest limit of the send lag's 99th percentile.
const SEND_LAG_SECONDS: f64 = 0.005;
/// 99th percentile of the start lag that is a trace of a machine that was busy.
const START_LAG_SECONDS: f64 = 1.0;
/// Share of CPU time that the hypervisor may take.
const STEAL: f64 = 0.05;
/// Share of its time that a core may spend in softirqs: there the kernel receives, and no process is charged for it.
const SOFTIRQ: f64 = 0.95;
/// Share of the packets that came which the machine may drop before they reach a socket: as of those that a socket drops.
const STACK_DROPS: f64 = 0.001;
/// Share of the time in which all processes of the machine may wait for memory.
const MEMORY_STALLED: f64 = 0.05;
/// Share of its time that a generator thread may wait for a CPU.
const RUN_QUEUE: f64 = 0.20;
/// Share of what weir and the watched targets leave of the CPUs that others may use.
const HOST_BUSY: f64 = 0.50;
/// Share of all CPUs below which others are no matter, however little is left over.
const OTHERS_MATTER: f64 = 0.10;

/// What one stage shows.
pub(crate) fn of_stage(
    workload: u16,
    row: &StageSummary,
    usage: Option<&UsageSummary>,
    cpu: &Cpu,
    frame_time_seconds: Option<f64>,
) -> Vec<Reason> {
    let cores = cores(cpu);
    let mut checks = lags(row, frame_time_seconds);
    let late_starts = row.figures.spread(names::START_LAG).is_some_and(|lag| lag.p99 >= START_LAG_SECONDS);
    let trace = late_starts || checks.iter().any(|check| check.measured >= check.limit);
    checks.extend(threads(row, trace));
    if let Some(usage) = usage {
        checks.extend(processors(row, usage, cpu));
        checks.extend(dropped_packets(row, &usage.host, trace));
        checks.extend(surroundings(usage, cores, trace, effect(trace)));
    }
    let stage = Some((workload, row.stage));
    checks.into_iter().flat_map(|check| Check { stage, ..check }.reasons()).collect()
}

/// What weir itself was late with.
fn lags(row: &StageSummary, frame_time_seconds: Option<f64>) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(Value::Gauge { max, .. }) = row.figures.get(names::TURN_LAG).map(|figure| figure.value) {
        // What was late for a hundredth of the time is in the 99th percentile. Where that is far shorter than the
        // longest turn, the turn met less than a hundredth of the values.
        let late = row.figures.mean(names::LATE_TURNS);
        let latency = row.figures.spread(names::LATENCY).map(|latency| latency.p99);
        let latency = latency.filter(|p99| *p99 > 0.0 && late >= LATE_SHARE && *p99 >= max * SEEN_IN_LATENCY);
        let own = |share: f64| latency.map_or(f64::INFINITY, |p99| p99 * share);
        let beside =
            latency.map_or_else(String::new, |p99| format!(" and is in the latency, {} at p99", time(p99)));
        checks.push(Check {
            degraded_from: LONG_TURN_SECONDS.min(own(SOME_OWN_LATENCY)),
            text: format!(
                "weir was not scheduled for up to {}; data that arrived meanwhile waited{beside}",
                time(max)
            ),
            remedy: REMEDY_OF_PAUSES,
            ..Check::new("generator_pause", max, PAUSE_SECONDS.min(own(OWN_LATENCY).max(LONG_TURN_SECONDS)))
        });
    }
    if let Some(lag) = row.figures.spread(names::SEND_LAG) {
        let what = if row.messages.is_some() { "messages" } else { "frames" };
        let limit = SEND_LAG_SECONDS.max(frame_time_seconds.unwrap_or(0.0) / 10.0);
        checks.push(Check {
            text: format!(
                "{what} were sent {:.1} ms late at p99 (limit {:.1} ms)",
                lag.p99 * 1e3,
                limit * 1e3
            ),
            remedy: "publish fewer streams from this machine, or give weir more cores",
            ..Check::new("send_lag", lag.p99, limit)
        });
    }
    checks
}

/// How busy the generator's threads were, and for how long they waited for a CPU.
fn threads(row: &StageSummary, trace: bool) -> Vec<Check> {
    let clients = several(row.clients.into(), "client");
    let mean = |name: &str| match row.figures.get(name)?.value {
        Value::Gauge { mean, .. } => Some(mean),
        _ => None,
    };
    let busy = mean(names::SHARD_BUSY).map(|busy| Check {
        text: format!(
            "at {clients} weir's busiest thread ran or waited for a CPU {:.0} % of the time",
            busy * 100.0
        ),
        remedy: "give weir more threads ({shards}) or cores, or move it to another machine",
        ..Check::new("generator_thread", busy, THREAD_BUSY)
    });
    let waited = mean(names::SHARD_WAIT).map(|waited| Check {
        text: format!(
            "a thread of weir's waited for a CPU {:.0} % of the time{}",
            waited * 100.0,
            effect(trace)
        ),
        remedy: "give weir more cores, or stop what else runs on them",
        ..Check::by_effect("run_queue", waited, RUN_QUEUE, trace)
    });
    busy.into_iter().chain(waited).collect()
}

/// What weir used of the machine, and what the kernel did for it.
fn processors(row: &StageSummary, usage: &UsageSummary, cpu: &Cpu) -> Vec<Check> {
    let clients = several(row.clients.into(), "client");
    let generator = usage.generator.cpu_percent.mean / 100.0 / cores(cpu);
    let core = usage.host.own_softirq_core.and_then(|core| cpu.affinity.get(core));
    let softirq = usage.host.own_softirq_ratio.unwrap_or(0.0);
    vec![
        Check {
            text: format!("at {clients} weir used {:.0} % of all cores", generator * 100.0),
            remedy: "move weir to a machine with more cores, or to another machine than the target",
            ..Check::new("generator_cores", generator, CORES_BUSY)
        },
        Check {
            text: format!(
                "a core of weir's{} spent {:.0} % of its time in softirqs, where the kernel receives packets",
                core.map_or_else(String::new, |core| format!(" (CPU {core})")),
                softirq * 100.0
            ),
            remedy: "spread receiving over more cores (queues of the network card, RPS), or use more machines",
            ..Check::new("softirq", softirq, SOFTIRQ)
        },
        throttling(usage),
    ]
}

/// Share of what a workload lost that the machine must have dropped for that to matter: a server that loses more is not excused.
pub(super) const OF_THE_LOST: f64 = 0.1;

/// Packets that came to this machine and were dropped before they reached a socket. A server is not to blame for what is missing
/// then: datagrams are counted as lost, and TCP sends again, late. They void a run only where weir was late, or where they may be a
/// share of what was lost.
fn dropped_packets(row: &StageSummary, host: &HostSummary, trace: bool) -> Vec<Check> {
    let Some(stack) = host.stack else { return Vec::new() };
    let (lost, dropped) = (row.figures.total(names::LOST), stack.dropped());
    let is_of_the_lost = lost > 0.0 && dropped as f64 >= OF_THE_LOST * lost;
    let ring = stack.ring.unwrap_or_default();
    let (place, came) = if ring.dropped > stack.backlog_dropped {
        ("the receive ring of a network card was full", ring.received.saturating_add(ring.dropped))
    } else {
        ("queues of its cores were full", stack.processed.saturating_add(stack.backlog_dropped))
    };
    let drops = (dropped > 0).then(|| Check {
        text: format!(
            "this machine dropped {} of {} packets before they reached a socket: {place}{}",
            grouped(dropped),
            grouped(came),
            if is_of_the_lost { "; they may be in `lost`" } else { "" }
        ),
        remedy: "raise net.core.netdev_max_backlog or the card's ring (ethtool -G); spread receiving over more cores (RSS, RPS)",
        ..Check::by_effect("stack_drops", stack.dropped_ratio(), STACK_DROPS, trace || is_of_the_lost)
    });
    let untracked = stack.conntrack_dropped.filter(|dropped| *dropped > 0).map(|dropped| Check {
        degraded_from: 1.0,
        text: format!(
            "this machine dropped {} packets because its table of connections (conntrack) was full; connections may have failed or begun late by it",
            grouped(dropped)
        ),
        remedy: "raise net.netfilter.nf_conntrack_max, or exempt the load from it (NOTRACK)",
        ..Check::by_effect("conntrack_full", dropped as f64, 1.0, trace)
    });
    drops.into_iter().chain(untracked).collect()
}

/// What a quota took from weir.
fn throttling(usage: &UsageSummary) -> Check {
    let throttled = usage.generator.throttling.map_or(0.0, |throttling| throttling.seconds);
    Check {
        text: format!("the CPU quota of weir's control group held it up for {throttled:.1} s"),
        remedy: "raise the cgroup's cpu.max",
        ..Check::new("cpu_throttling", throttled / usage.seconds.max(1.0), STEAL)
    }
}

/// What the machine did to a measurement without a schedule, of which nothing can be late: its repetitions differ by it, and their
/// confidence intervals say by how much. It degrades a measurement, and never voids it.
pub(crate) fn of_machine(usage: &UsageSummary, cores: f64) -> Vec<Reason> {
    let mut checks = surroundings(
        usage,
        cores,
        false,
        "; the repetitions differ by it, and the intervals say by how much",
    );
    checks.push(Check { voids: false, ..throttling(usage) });
    checks.into_iter().flat_map(Check::reasons).collect()
}

/// What others did to the machine. It is judged by its effect: where weir was not late, its figures are right, and what
/// the target on the same machine would have done alone remains open.
fn surroundings(usage: &UsageSummary, cores: f64, trace: bool, effect: &str) -> Vec<Check> {
    let host = usage.host.cpu_steal_ratio.map_or(0.0, |figure| figure.mean);
    let steal = usage.host.own_steal_ratio.unwrap_or(host);
    let mut checks = vec![Check {
        text: format!(
            "the hypervisor took {:.1} % of the cores that weir may run on ({:.0} % of one core over the machine){}",
            steal * 100.0,
            host * cores * 100.0,
            effect
        ),
        remedy: "measure on a machine of its own",
        ..Check::by_effect("cpu_steal", steal, STEAL, trace)
    }];
    let stalled = usage.host.memory_stalled_ratio.unwrap_or(0.0);
    checks.push(Check {
        text: format!(
            "all processes of the machine waited for memory {:.1} % of the time{effect}",
            stalled * 100.0
        ),
        remedy: "give the machine more memory, or run less on it",
        ..Check::by_effect("memory_pressure", stalled, MEMORY_STALLED, trace)
    });
    let episodes = usage.host.thermal_events.unwrap_or(0) as f64;
    checks.push(Check {
        degraded_from: 1.0,
        text: format!(
            "cores that weir may run on began to be throttled because they were hot, {episodes} times{effect}"
        ),
        remedy: "cool the machine, or measure on another: it is slower while it is hot",
        ..Check::by_effect("thermal_throttling", episodes, 1.0, trace)
    });
    let others = &usage.others;
    if let Some((used, idle)) = others.cpu_percent.zip(others.idle_percent)
        && used >= OTHERS_MATTER * 100.0 * cores
    {
        let share = used / (used + idle);
        let most = others.busiest.first().map(|most| {
            let many = if most.processes > 1 { format!(" ×{}", most.processes) } else { String::new() };
            let percent = 100.0 * most.cpu_seconds / usage.seconds;
            format!("{}{many}, pid {}, {percent:.0} %", most.name, most.pid)
        });
        checks.push(Check {
            degraded_from: HOST_BUSY,
            text: format!(
                "other processes used {:.1} of {cores:.0} cores{}, {:.0} % of what weir and the watched left{}",
                used / 100.0,
                most.map_or_else(String::new, |most| format!(" ({most})")),
                share * 100.0,
                effect
            ),
            remedy: "stop them, or measure on another machine; if one of them is the server under test, name it with {watch}",
            ..Check::by_effect("host_busy", share, HOST_BUSY, trace)
        });
    }
    checks
}

/// What a cause outside of weir came to.
fn effect(trace: bool) -> &'static str {
    if trace {
        "; weir fell behind schedule"
    } else {
        "; weir kept its schedule, but a target on this machine may have answered later"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{BaseUnit, FigureValue, Figures, Spread, VerdictState};
    use weir_observe::{OtherProcesses, OthersSummary, ProcessSummary, StackCounters};

    /// A stage of which these figures are known: a level by its mean and highest, a distribution by its p99.
    fn stage(levels: &[(&str, f64, f64)], spreads: &[(&str, f64)]) -> StageSummary {
        let unit = BaseUnit::Seconds;
        let levels = levels.iter().map(|&(name, mean, max)| (name, Value::Gauge { mean, max, last: 0.0 }));
        let spreads = spreads.iter().map(|&(name, p99)| {
            (name, Value::Spread(Spread { count: 100, p99, max: p99, ..Spread::default() }))
        });
        let figures =
            levels.chain(spreads).map(|(name, value)| (name.to_owned(), FigureValue { unit, value }));
        StageSummary {
            stage: 0,
            clients: 10,
            begin_seconds: 0.0,
            end_seconds: 10.0,
            window_begin_seconds: 0,
            window_end_seconds: 10,
            playing_mean: 10.0,
            window_is_void: false,
            starting_mean: 0.0,
            lost_mean: 0.0,
            away_mean: 0.0,
            expected_bps: None,
            actual_bps: 0.0,
            messages: None,
            source_fps: None,
            frames_ahead: 0.0,
            frames_due: 0.0,
            drift_growth_seconds: None,
            source_clock_ppm: None,
            figures: Figures(figures.collect()),
            targets: Vec::new(),
            unheard: Vec::new(),
            generator: None,
            host: None,
            machines: Vec::new(),
            verdict: VerdictState::Valid,
        }
    }

    #[test]
    fn a_busy_machine_degrades_what_has_no_schedule_and_voids_nothing() {
        assert!(of_machine(&machine(0.0, 30.0, 150.0), 2.0).is_empty());
        let reasons = of_machine(&machine(0.08, 150.0, 40.0), 2.0);
        let checks: Vec<_> = reasons.iter().map(|it| (&*it.check, it.state)).collect();
        assert_eq!(checks, [("cpu_steal", VerdictState::Degraded), ("host_busy", VerdictState::Degraded)]);
        assert!(
            reasons[1].text.contains("rustc") && reasons[1].text.contains("the intervals say"),
            "{reasons:?}"
        );
    }

    /// What the machine did, in percent of one core: the hypervisor, others, and idle time.
    fn machine(steal_ratio: f64, others: f64, idle: f64) -> UsageSummary {
        let rustc =
            OtherProcesses { name: "rustc".into(), pid: 77, processes: 3, cpu_seconds: others / 10.0 };
        UsageSummary {
            seconds: 10.0,
            samples: 11,
            targets: Vec::new(),
            unheard: Vec::new(),
            generator: ProcessSummary::default(),
            host: HostSummary { own_steal_ratio: Some(steal_ratio), ..HostSummary::default() },
            others: OthersSummary {
                cpu_percent: Some(others),
                idle_percent: Some(idle),
                busiest: vec![rustc],
            },
        }
    }

    fn two_cores() -> Cpu {
        Cpu { online_count: 2, affinity: vec![4, 6], ..Cpu::default() }
    }

    fn states(row: &StageSummary, usage: Option<&UsageSummary>) -> Vec<(String, VerdictState)> {
        of_stage(0, row, usage, &two_cores(), None)
            .into_iter()
            .map(|reason| (reason.check, reason.state))
            .collect()
    }

    #[test]
    fn a_cause_outside_of_weir_degrades_and_voids_a_run_only_where_weir_was_late_for_it() {
        use VerdictState::{Degraded, Invalid};
        let punctual = stage(&[("turn_lag", 0.004, 0.03), ("shard_busy", 0.02, 0.1)], &[("send_lag", 0.001)]);
        let late = stage(&[("turn_lag", 0.2, 1.4)], &[]);
        let begun_late = stage(&[], &[("start_lag", 1.2)]);
        for (usage, check) in [
            (machine(0.08, 0.0, 150.0), "cpu_steal"),
            // 196 of 200 % are used while weir takes 3.
            (machine(0.0, 193.0, 4.0), "host_busy"),
        ] {
            assert_eq!(states(&punctual, Some(&usage)), [(check.to_owned(), Degraded)]);
            for row in [&late, &begun_late] {
                assert!(states(row, Some(&usage)).contains(&(check.to_owned(), Invalid)), "{check}");
            }
        }
        assert_eq!(states(&punctual, Some(&machine(0.02, 60.0, 130.0))), []);
        // A target of 195 % leaves little over, and the few percent of others are no matter.
        assert_eq!(states(&punctual, Some(&machine(0.0, 4.0, 1.0))), []);
        let waited = |share| stage(&[("shard_wait", share, 1.0)], &[]);
        assert_eq!(states(&waited(0.3), None), [("run_queue".to_owned(), Degraded)]);
        assert_eq!(states(&waited(0.05), None), []);
        let softirq = |ratio| {
            let mut usage = machine(0.0, 0.0, 100.0);
            usage.host.own_softirq_ratio = Some(ratio);
            states(&punctual, Some(&usage))
        };
        assert_eq!(
            softirq(0.97),
            [("softirq".to_owned(), Invalid)],
            "packets wait before weir could see them"
        );
        assert_eq!(softirq(0.3), []);
    }

    #[test]
    fn the_core_that_receives_is_named() {
        let mut usage = machine(0.0, 0.0, 100.0);
        (usage.host.own_softirq_ratio, usage.host.own_softirq_core) = (Some(0.97), Some(1));
        let reasons = of_stage(0, &stage(&[], &[]), Some(&usage), &two_cores(), None);
        assert!(reasons[0].text.contains("(CPU 6) spent 97 %"), "{reasons:?}");
    }

    #[test]
    fn packets_that_the_machine_dropped_void_a_run_only_where_they_may_be_in_what_was_lost_or_weir_was_late()
    {
        use VerdictState::{Degraded, Invalid};
        let dropped = |backlog_dropped| {
            let mut usage = machine(0.0, 0.0, 100.0);
            let processed = 100_000 - backlog_dropped;
            usage.host.stack = Some(StackCounters { processed, backlog_dropped, ..StackCounters::default() });
            usage
        };
        let lost = |lost: u32| {
            let mut row = stage(&[], &[]);
            let value = Value::Counter { total: lost.into(), per_second: 0.0 };
            row.figures.0.insert(names::LOST.to_owned(), FigureValue { unit: BaseUnit::Count, value });
            row
        };
        let found = |row: &StageSummary, usage: UsageSummary| states(row, Some(&usage));
        let reason = |state| vec![("stack_drops".to_owned(), state)];
        assert_eq!(found(&lost(3), dropped(49)), []);
        assert_eq!(found(&lost(0), dropped(500)), reason(Degraded));
        assert_eq!(found(&lost(3), dropped(500)), reason(Invalid));
        assert_eq!(found(&lost(5_001), dropped(500)), reason(Degraded), "most of it was lost elsewhere");
        assert_eq!(found(&lost(3), dropped(60)), reason(Degraded));
        let late = stage(&[("turn_lag", 0.2, 1.4)], &[]);
        assert!(found(&late, dropped(200)).contains(&("stack_drops".to_owned(), Invalid)));
        let mut usage = dropped(210);
        usage.host.stack.as_mut().unwrap().conntrack_dropped = Some(7);
        let reasons = of_stage(0, &lost(3), Some(&usage), &two_cores(), None);
        assert!(reasons[0].text.contains("210 of 100,000 packets"), "{reasons:?}");
        assert_eq!((&*reasons[1].check, reasons[1].state), ("conntrack_full", Degraded));
    }

    #[test]
    fn a_machine_without_memory_or_too_hot_degrades_a_run_whose_schedule_was_kept() {
        let mut usage = machine(0.0, 0.0, 100.0);
        (usage.host.memory_stalled_ratio, usage.host.thermal_events) = (Some(0.4), Some(30));
        let found = states(&stage(&[], &[]), Some(&usage));
        let degraded = |check: &str| (check.to_owned(), VerdictState::Degraded);
        assert_eq!(found, [degraded("memory_pressure"), degraded("thermal_throttling")]);
    }

    #[test]
    fn the_busiest_of_the_others_is_named() {
        let reasons = of_stage(0, &stage(&[], &[]), Some(&machine(0.0, 193.0, 4.0)), &two_cores(), None);
        for words in ["1.9 of 2 cores", "rustc ×3, pid 77, 193 %", "98 % of what weir and the watched left"]
        {
            assert!(reasons[0].text.contains(words), "{}", reasons[0].text);
        }
        assert!(reasons[0].remedy.contains("`watch`"));
    }

    #[test]
    fn a_late_turn_degrades_by_a_tenth_of_the_latency_and_voids_by_half_of_it() {
        use VerdictState::{Degraded, Invalid};
        let judged = |late: f64, max: f64, latency: Option<f64>| {
            let latency: Vec<_> = latency.map(|p99| ("latency", p99)).into_iter().collect();
            // The mean of the longest turns says nothing of how much time was late.
            let levels = [("turn_lag", max / 2.0, max), ("late_turns", late, late)];
            states(&stage(&levels, &latency), None).pop().map(|(_, state)| state)
        };
        // Stopped five times for 0.9 s in twenty: the p99 of 907 ms is weir's own.
        assert_eq!(judged(0.25, 0.94, Some(0.907)), Some(Invalid));
        assert_eq!(judged(0.25, 0.24, Some(0.907)), Some(Degraded));
        assert_eq!(judged(0.02, 0.05, Some(0.3)), Some(Degraded), "a tenth");
        assert_eq!(judged(0.02, 0.05, Some(0.6)), None);
        // A single late turn of a long window is not in the 99th percentile.
        assert_eq!(judged(0.001, 0.05, Some(0.3)), None);
        assert_eq!(judged(0.001, 0.2, Some(0.3)), Some(Degraded), "100 ms are long whatever is shown");
        assert_eq!(judged(0.05, 0.06, Some(0.04)), Some(Degraded), "less than 100 ms void nothing");
        assert_eq!(judged(0.02, 0.12, None), Some(Degraded));
        assert_eq!(
            judged(0.02, 0.12, Some(0.005)),
            Some(Degraded),
            "a p99 of 5 ms does not hold a turn of 120"
        );
        assert_eq!(judged(0.02, 0.05, Some(0.005)), None);
        assert_eq!(judged(0.02, 1.1, None), Some(Invalid));
        assert_eq!(judged(0.02, 0.09, None), None);
        assert_eq!(judged(0.02, 0.09, Some(-0.5)), None, "clocks that disagree tell no share");
    }
}
