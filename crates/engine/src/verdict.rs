//! Whether the run may be believed: limits of the instrument against what it did.
//!
//! A run is invalid when weir was at fault, degraded when half of a limit was reached; the target's
//! own trouble never counts here.

use crate::summary::{Reason, Slots, StageSummary, Value, Verdict, VerdictState};
use weir_metrics::{Recorder, Side, common};
use weir_observe::UsageSummary;

/// Share of a second that a generator thread may run or wait for a CPU.
const THREAD_BUSY: f64 = 0.95;
/// For how long a generator thread may not run.
const PAUSE_SECONDS: f64 = 2.0;
/// Share of the machine's cores that the generator may use.
const CORES_BUSY: f64 = 0.80;
/// Smallest limit of the send lag's 99th percentile.
const SEND_LAG_SECONDS: f64 = 0.005;
/// Share of the slots that may be missed.
const MISSED: f64 = 0.001;
/// Share of the datagrams that weir's own sockets may drop.
const SOCKET_DROPS: f64 = 0.001;
/// Share of CPU time that the hypervisor may take.
const STEAL: f64 = 0.05;
/// Steps of the wall clock, together.
const CLOCK_STEP_SECONDS: f64 = 0.05;

/// What the whole run shows.
pub(crate) fn of_run(clock_steps_seconds: f64) -> Vec<Reason> {
    Check {
        name: "clock_step",
        measured: clock_steps_seconds,
        limit: CLOCK_STEP_SECONDS,
        stage: None,
        text: format!("the wall clock stepped by {:.0} ms in all", clock_steps_seconds * 1e3),
        remedy: "stop what sets the clock (a second NTP daemon, the hypervisor) for the length of the run",
    }
    .reasons()
}

/// What a workload's whole run shows.
pub(crate) fn of_workload(total: &Recorder, slots: Slots) -> Vec<Reason> {
    let missed = slots.missed as f64 / slots.planned.max(1) as f64;
    let local: Vec<_> = total.failures().filter(|(failure, _)| failure.side() == Side::Local).collect();
    let clients: u64 = local.iter().map(|(_, clients)| clients).sum();
    let kinds: Vec<_> =
        local.iter().map(|(failure, clients)| format!("{clients} {}", failure.key())).collect();
    let mut reasons = Check {
        name: "missed_slots",
        measured: missed,
        limit: MISSED,
        stage: None,
        text: format!("{} of {} planned clients were never started", slots.missed, slots.planned),
        remedy: "lower --arrival, or give weir more cores",
    }
    .reasons();
    reasons.extend(
        Check {
            name: "local_failures",
            measured: clients as f64,
            limit: if clients > 0 { 1.0 } else { f64::INFINITY },
            stage: None,
            text: format!("clients failed on this machine, not on the target: {}", kinds.join(", ")),
            remedy: "raise `ulimit -n`, add addresses with --bind-addr, see `weir doctor`",
        }
        .reasons(),
    );
    reasons.extend(drops(total));
    reasons
}

/// Datagrams that came to this machine and were dropped by it: a single one is worth a word.
fn drops(total: &Recorder) -> Option<Reason> {
    let dropped = total.counter(common::SOCKET_DROPS);
    let all = total.counter(common::UNITS) + total.counter(common::LOST);
    let measured = dropped as f64 / all.max(1) as f64;
    (dropped > 0).then(|| Reason {
        state: if measured >= SOCKET_DROPS { VerdictState::Invalid } else { VerdictState::Degraded },
        check: "socket_drops".to_owned(),
        stage: None,
        measured,
        limit: SOCKET_DROPS,
        text: format!(
            "weir's own sockets were full and dropped {dropped} of {all} datagrams, which are in `lost`"
        ),
        remedy:
            "raise net.core.rmem_max to 4 MiB or more (sysctl), give weir more cores, or run fewer clients"
                .to_owned(),
    })
}

/// What one stage shows.
pub(crate) fn of_stage(
    workload: u16,
    row: &StageSummary,
    usage: Option<&UsageSummary>,
    cores: f64,
    frame_time_seconds: Option<f64>,
) -> Vec<Reason> {
    let stage = Some((workload, row.stage));
    let clients = row.clients;
    let mut checks = Vec::new();
    if let Some(Value::Gauge { mean, .. }) = row.figures.get("shard_busy").map(|figure| figure.value) {
        checks.push(Check {
            name: "generator_thread",
            measured: mean,
            limit: THREAD_BUSY,
            stage,
            text: format!(
                "at {clients} clients weir's busiest thread ran or waited for a CPU {:.0} % of the time",
                mean * 100.0
            ),
            remedy: "give weir more threads (--shards) or cores, or move it to another machine",
        });
    }
    if let Some(Value::Gauge { max, .. }) = row.figures.get("turn_lag").map(|figure| figure.value) {
        checks.push(Check {
            name: "generator_pause",
            measured: max,
            limit: PAUSE_SECONDS,
            stage,
            text: format!("weir did not run for {max:.1} s: what came meanwhile waited in weir"),
            remedy: "find what stopped it (a signal, the hypervisor, memory that was swapped out), or give it more cores",
        });
    }
    if let Some(lag) = row.figures.spread("send_lag") {
        let limit = SEND_LAG_SECONDS.max(frame_time_seconds.unwrap_or(0.0) / 10.0);
        checks.push(Check {
            name: "send_lag",
            measured: lag.p99,
            limit,
            stage,
            text: format!(
                "frames were sent {:.1} ms late at p99 (limit {:.1} ms)",
                lag.p99 * 1e3,
                limit * 1e3
            ),
            remedy: "publish fewer streams from this machine, or give weir more cores",
        });
    }
    if let Some(usage) = usage {
        let generator = usage.generator.cpu_percent.mean / 100.0 / cores;
        checks.push(Check {
            name: "generator_cores",
            measured: generator,
            limit: CORES_BUSY,
            stage,
            text: format!("at {clients} clients weir used {:.0} % of all cores", generator * 100.0),
            remedy: "move weir to a machine with more cores, or to another machine than the target",
        });
        let steal = usage.host.cpu_steal_ratio.map_or(0.0, |figure| figure.mean);
        checks.push(Check {
            name: "cpu_steal",
            measured: steal,
            limit: STEAL,
            stage,
            text: format!("the hypervisor took {:.1} % of the CPU", steal * 100.0),
            remedy: "measure on a machine of its own",
        });
        let throttled = usage.generator.throttling.map_or(0.0, |throttling| throttling.seconds);
        checks.push(Check {
            name: "cpu_throttling",
            measured: throttled / usage.seconds.max(1.0),
            limit: STEAL,
            stage,
            text: format!("the CPU quota of weir's control group held it up for {throttled:.1} s"),
            remedy: "raise the cgroup's cpu.max",
        });
    }
    checks.into_iter().flat_map(Check::reasons).collect()
}

/// The verdict of all reasons, the worst first.
pub(crate) fn of_reasons(mut reasons: Vec<Reason>) -> Verdict {
    reasons.sort_by(|a, b| {
        b.state.cmp(&a.state).then((b.measured / b.limit).total_cmp(&(a.measured / a.limit)))
    });
    Verdict { state: worst(&reasons), reasons }
}

/// The worst state of any reason.
pub(crate) fn worst(reasons: &[Reason]) -> VerdictState {
    reasons.iter().map(|reason| reason.state).max().unwrap_or(VerdictState::Valid)
}

struct Check {
    name: &'static str,
    measured: f64,
    limit: f64,
    stage: Option<(u16, u16)>,
    text: String,
    remedy: &'static str,
}

impl Check {
    /// A reason, if half of the limit was reached.
    fn reasons(self) -> Vec<Reason> {
        let state = if self.measured >= self.limit {
            VerdictState::Invalid
        } else if self.measured * 2.0 >= self.limit {
            VerdictState::Degraded
        } else {
            return Vec::new();
        };
        vec![Reason {
            state,
            check: self.name.to_owned(),
            stage: self.stage,
            measured: self.measured,
            limit: self.limit,
            text: self.text,
            remedy: self.remedy.to_owned(),
        }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(measured: f64) -> Vec<Reason> {
        let text = String::new();
        Check { name: "x", measured, limit: 0.95, stage: None, text, remedy: "" }.reasons()
    }

    #[test]
    fn half_of_a_limit_degrades_and_all_of_it_invalidates() {
        assert!(check(0.47).is_empty());
        assert_eq!(check(0.48)[0].state, VerdictState::Degraded);
        assert_eq!(check(0.95)[0].state, VerdictState::Invalid);
    }

    #[test]
    fn a_single_datagram_that_our_own_socket_dropped_degrades_and_one_in_a_thousand_invalidates() {
        let state = |dropped: u64| {
            let mut total = Recorder::new(weir_metrics::Schema::new(&[]));
            total.count(common::UNITS, 9_999);
            total.count(common::LOST, 1);
            total.count(common::SOCKET_DROPS, dropped);
            drops(&total).map(|reason| reason.state)
        };
        assert_eq!(state(0), None);
        assert_eq!(state(1), Some(VerdictState::Degraded));
        assert_eq!(state(10), Some(VerdictState::Invalid));
    }

    #[test]
    fn the_worst_reason_comes_first_and_names_the_verdict() {
        let reasons = [check(0.5), check(1.2), check(0.96)].concat();
        let verdict = of_reasons(reasons);
        assert_eq!(verdict.state, VerdictState::Invalid);
        assert_eq!(verdict.reasons[0].measured, 1.2);
        assert_eq!(of_reasons(Vec::new()).state, VerdictState::Valid);
    }
}
