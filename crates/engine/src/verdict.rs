//! Whether the run may be believed: limits of the load generator against what it did.
//!
//! A run is invalid when weir was at fault, degraded when half of a limit was reached; the target's
//! own trouble never counts here.

mod check;
pub mod checks;
pub(crate) mod counts;
pub(crate) mod decoding;
mod stage;

pub use stage::CORES_OF_A_VALID_RUN;
pub(crate) use stage::{PAUSE_SECONDS, of_stage};

use crate::machine::loads::{cores, queue_words};
use weir_observe::{Environment, UsageSummary};

use crate::ingest::{Imbalance, IngestStage, Ingested};
use crate::summary::{Reason, Slots, Verdict, VerdictState};
use check::Check;
use checks::CheckName;
use stage::REMEDY_OF_PAUSES;
use weir_metrics::{Recorder, Side, common, grouped};
use weir_protocols::OwnExcess;
use weir_setting::named;

/// Share of the slots that may be missed.
const MISSED: f64 = 0.001;
/// Share of the datagrams that weir's own sockets may drop.
const SOCKET_DROPS: f64 = 0.001;
/// Share of the datagrams that queues behind the sockets may drop: as of those that sockets do.
const QUEUE_DROPS: f64 = SOCKET_DROPS;
/// Datagrams that a socket sends at once at the most (UDP_MAX_SEGMENTS), which the kernel counts as one where it drops them.
const MOST_TOGETHER: u64 = 64;
/// Steps of the wall clock, together.
const CLOCK_STEP_SECONDS: f64 = 0.05;
/// The check of pauses.
const PAUSE: &str = "generator_pause";
/// Share of the viewers that the end of a run may find waiting for a keyframe: `played.ratio` is of the others.
const MOST_KEYFRAME_WAITS: f64 = 0.5;
/// The share from which that is worth a word.
const SOME_KEYFRAME_WAITS: f64 = 0.1;
/// Share of a run in which weir may stand still, warm-up included.
const STOOD_STILL: f64 = 0.1;

/// How much later than the others an agent may begin.
const START_SKEW_SECONDS: f64 = 0.05;

/// What the whole run shows.
pub(crate) fn of_run(clock_steps_seconds: f64) -> Vec<Reason> {
    Check {
        text: format!("the wall clock stepped by {:.0} ms in all", clock_steps_seconds * 1e3),
        remedy: "stop what sets the clock (a second NTP daemon, the hypervisor) for the length of the run",
        ..Check::new("clock_step", clock_steps_seconds, CLOCK_STEP_SECONDS)
    }
    .reasons()
}

/// For how long weir stood still in a run of this length, where no window shows that already: what windows leave out is of the run, too.
pub(crate) fn of_standstill(still_seconds: f64, seconds: f64, others: &[Reason]) -> Vec<Reason> {
    if others.iter().any(|it| it.check == PAUSE && it.state == VerdictState::Invalid) {
        return Vec::new();
    }
    Check {
        text: format!("weir was not scheduled for {still_seconds:.1} s in all of a run of {seconds:.0} s"),
        remedy: REMEDY_OF_PAUSES,
        ..Check::new(PAUSE, still_seconds, (STOOD_STILL * seconds).max(PAUSE_SECONDS))
    }
    .reasons()
}

/// The verdict on a measurement that is no run: what others did to the machine meanwhile.
pub fn of_machine(usage: &UsageSummary, environment: &Environment) -> Verdict {
    of_reasons(stage::of_machine(usage, cores(&environment.cpu)), &[])
}

/// What needs no limit to be said: it happened.
fn certain(check: &str, state: VerdictState, text: String, remedy: &str) -> Reason {
    let (check, remedy) = (check.to_owned(), remedy.to_owned());
    Reason { state, check, stage: None, also: Vec::new(), measured: 1.0, limit: 1.0, text, remedy }
}

/// A generator thread that has ended before its part of the run was over.
pub(crate) fn of_lost_thread(thread: usize, at_seconds: f64, words: &str) -> Reason {
    let text = format!("generator thread {thread} was lost after {at_seconds:.0} s: {words}");
    let remedy = "its clients are missing from then on; repeat the run";
    certain("generator_lost", VerdictState::Invalid, text, remedy)
}

/// An agent that was lost.
pub(crate) fn of_lost_agent(name: &str, at_seconds: f64, words: &str, is_allowed: bool) -> Reason {
    let state = if is_allowed { VerdictState::Degraded } else { VerdictState::Invalid };
    let text = format!("agent {name} was lost after {at_seconds:.0} s: {words}");
    let remedy =
        named("look at its machine and at the way to NATS; {allow_lost} lets a run go on without some");
    certain("agent_lost", state, text, &remedy)
}

/// An agent that began later than the others.
pub(crate) fn of_late_agent(name: &str, late_seconds: f64) -> Option<Reason> {
    let text = format!("agent {name} may have begun {} after the others", time(late_seconds));
    let remedy = "look for what keeps its machine or the way to NATS busy";
    let reason = certain("start_skew", VerdictState::Degraded, text, remedy);
    (late_seconds >= START_SKEW_SECONDS).then_some(Reason {
        measured: late_seconds,
        limit: START_SKEW_SECONDS,
        ..reason
    })
}

/// Whether a check is about a machine and the weir on it, and not about one workload.
pub(crate) fn is_of_machine(check: &str) -> bool {
    !OF_A_WORKLOAD.contains(&check)
}

/// Whether a check reads the machine that weir runs on, and not the figures of clients.
pub(crate) fn is_of_surroundings(check: &str) -> bool {
    [
        "generator_cores",
        "softirq",
        "stack_drops",
        "queue_drops",
        "conntrack_full",
        "memory_pressure",
        "thermal_throttling",
        "cpu_throttling",
        "cpu_steal",
        "host_busy",
    ]
    .contains(&check)
}

/// What a workload's whole run shows.
pub(crate) fn of_workload(protocol: &str, total: &Recorder, slots: Slots) -> Vec<Reason> {
    let missed = slots.missed as f64 / slots.planned.max(1) as f64;
    let local: Vec<_> = total.failures().filter(|(failure, _)| failure.side() == Side::Local).collect();
    let clients: u64 = local.iter().map(|(_, clients)| clients).sum();
    let kinds: Vec<_> =
        local.iter().map(|(failure, clients)| format!("{clients} {}", failure.key())).collect();
    let mut reasons = Check {
        text: format!(
            "{} of {} planned clients were never started",
            grouped(slots.missed),
            grouped(slots.planned)
        ),
        remedy: "lower {arrival}, or give weir more cores",
        ..Check::new("missed_slots", missed, MISSED)
    }
    .reasons();
    reasons.extend(
        Check {
            text: format!("clients failed on this machine, not on the target: {}", kinds.join(", ")),
            remedy: "raise `ulimit -n`, add addresses with {bind_addr}, see `weir doctor`",
            ..Check::new("local_failures", clients as f64, 1.0)
        }
        .reasons(),
    );
    reasons.extend(keyframe_waits(total, slots).reasons());
    reasons.extend(drops(total, weir_protocols::datagrams(protocol, total)));
    reasons
}

/// Viewers that a run was too short for: those that still waited for the stream's next keyframe are excused, and few that played say
/// nothing of the load. Where no viewer played, nothing was measured: that is said without this.
fn keyframe_waits(total: &Recorder, slots: Slots) -> Check {
    let waiting = counts::waiting_for_keyframe(total);
    Check {
        text: format!(
            "{} of {} viewers still waited for the stream's next keyframe when their time was over",
            grouped(waiting),
            grouped(slots.planned)
        ),
        remedy: "let viewers stay for longer than keyframes are apart ({duration}, {life})",
        degraded_from: SOME_KEYFRAME_WAITS,
        voids: total.counter(common::PLAYED) > 0,
        ..Check::new("keyframe_waits", waiting as f64 / slots.planned.max(1) as f64, MOST_KEYFRAME_WAITS)
    }
}

/// Datagrams that weir's own sockets had no room for, in either direction, of so many with media: a single one is worth a word.
fn drops(total: &Recorder, all: u64) -> Option<Reason> {
    let dropped = total.counter(common::SOCKET_DROPS);
    let measured = dropped as f64 / all.max(1) as f64;
    let state = if measured >= SOCKET_DROPS { VerdictState::Invalid } else { VerdictState::Degraded };
    let text = format!(
        "weir's own sockets did not take {dropped} datagrams, beside {all} with media: they came while a socket was full, and are in `lost`; or they never left, because it was full or they are longer than the way out takes (MTU)"
    );
    let remedy = "raise net.core.rmem_max and wmem_max to 4 MiB or more (sysctl), give weir more cores, or run fewer clients; send shorter datagrams (of SRT by mss) where the way out takes no longer ones";
    let reason = certain("socket_drops", state, text, remedy);
    (dropped > 0).then_some(Reason { measured, limit: SOCKET_DROPS, ..reason })
}

/// Sends that queues of this machine dropped behind their sockets, while publishers gave up datagrams that were not acknowledged.
/// They void a run where they may be a share of those: a server that does not answer is not excused by a few.
pub(crate) fn of_queues(drops: u64, datagrams: u64, given_up: u64) -> Reason {
    let measured = drops as f64 / (drops + datagrams).max(1) as f64;
    let may_be_of_them = drops.saturating_mul(MOST_TOGETHER) as f64 >= stage::OF_THE_LOST * given_up as f64;
    let is_void = measured >= QUEUE_DROPS && may_be_of_them;
    let state = if is_void { VerdictState::Invalid } else { VerdictState::Degraded };
    let text = format!("{}, beside {} that were not acknowledged", queue_words(drops), grouped(given_up));
    let remedy =
        "lengthen the queue of the way out (tc, ip link set txqueuelen), or send less from this machine";
    Reason { measured, limit: QUEUE_DROPS, ..certain("queue_drops", state, text, remedy) }
}

/// What weir itself did not do of what its clients were asked for: a single packet is worth a word.
pub(crate) fn of_own_excess(excess: OwnExcess) -> Reason {
    let OwnExcess { share, limit, words } = excess;
    let state = if share >= limit { VerdictState::Invalid } else { VerdictState::Degraded };
    let remedy = "look for what keeps the way out of this machine full (its rate, its queue, its MTU), raise net.core.wmem_max, give weir more cores, or send less";
    Reason { measured: share, limit, ..certain("unsent", state, words, remedy) }
}

/// Messages that weir itself lost count of: between the broker's delivery and the table.
pub(crate) fn of_account(ingested: &Ingested) -> Option<Reason> {
    let own = |it: &&Imbalance| matches!(it.stage, IngestStage::Ingest | IngestStage::Table);
    let first = ingested.imbalances.iter().find(own)?;
    let text = format!("weir lost count: {}", first.text);
    let remedy = "check whether another program writes to the table; if none does, please report it";
    let reason = certain("lost_count", VerdictState::Invalid, text, remedy);
    Some(Reason { measured: ingested.imbalances.iter().filter(own).count() as f64, ..reason })
}

/// A time as people say it.
fn time(seconds: f64) -> String {
    if seconds < 0.9995 { format!("{:.0} ms", seconds * 1e3) } else { format!("{seconds:.1} s") }
}

/// Checks that are about one workload: all others are about the machine and the generator, which all workloads share.
const OF_A_WORKLOAD: &[&str] =
    &["send_lag", "missed_slots", "local_failures", "socket_drops", "unsent", "keyframe_waits"];

/// Makes one of reasons that the machine or the generator gave in several workloads and stages. The first of them is the
/// worst.
fn once(reasons: Vec<Reason>) -> Vec<Reason> {
    let mut kept: Vec<Reason> = Vec::new();
    for reason in reasons {
        let is_same = |it: &&mut Reason| {
            (&it.check, it.state) == (&reason.check, reason.state) && !OF_A_WORKLOAD.contains(&&*it.check)
        };
        match kept.iter_mut().find(is_same) {
            Some(worst) => worst.also.extend(reason.stage),
            None => kept.push(reason),
        }
    }
    kept.iter_mut().for_each(|reason| reason.also.sort_unstable());
    kept
}

/// The verdict of all reasons, the worst first. Those of accepted checks are kept apart.
pub(crate) fn of_reasons(mut reasons: Vec<Reason>, accepted: &[CheckName]) -> Verdict {
    reasons.sort_by(|a, b| {
        b.state.cmp(&a.state).then((b.measured / b.limit).total_cmp(&(a.measured / a.limit)))
    });
    let reasons = once(reasons);
    let is_waived = |reason: &Reason| accepted.iter().any(|check| check.name() == reason.check);
    let (waived, reasons): (Vec<_>, Vec<_>) = reasons.into_iter().partition(is_waived);
    let state = reasons.iter().map(|reason| reason.state).max().unwrap_or(VerdictState::Valid);
    Verdict { state, reasons, waived }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::checks::CHECKS;

    fn check(measured: f64) -> Vec<Reason> {
        Check::new("x", measured, 0.95).reasons()
    }

    #[test]
    fn half_of_a_limit_degrades_and_all_of_it_invalidates() {
        assert!(check(0.47).is_empty());
        assert_eq!(check(0.48)[0].state, VerdictState::Degraded);
        assert_eq!(check(0.95)[0].state, VerdictState::Invalid);
    }

    #[test]
    fn weir_may_stand_still_for_less_than_a_tenth_of_a_run() {
        let state = |still, seconds| of_standstill(still, seconds, &[]).first().map(|reason| reason.state);
        assert_eq!(state(4.0, 3.0), Some(VerdictState::Invalid));
        assert_eq!(state(10.0, 100.0), Some(VerdictState::Invalid));
        assert_eq!(state(9.0, 100.0), Some(VerdictState::Degraded));
        assert_eq!(state(4.0, 100.0), None);
        // Of a short run a tenth is less than the one pause that would void it.
        assert_eq!(state(0.6, 2.0), Some(VerdictState::Degraded));
        let of_a_window = of_standstill(4.0, 3.0, &[]);
        assert!(of_standstill(4.0, 3.0, &of_a_window).is_empty(), "it is said once");
    }

    #[test]
    fn a_run_whose_end_finds_most_viewers_waiting_for_a_keyframe_says_nothing_of_the_others() {
        let state = |waiting: u64| {
            let mut total = Recorder::new(weir_metrics::Schema::new(&[]));
            total.count(common::PLAYED, 100 - waiting);
            total.count(common::KEYFRAME_WAITS, 40 + waiting);
            total.count(common::KEYFRAME_WAITS_OVER, 40);
            let slots = Slots { planned: 100, on_time: 100, ..Slots::default() };
            of_workload("rtmp", &total, slots).first().map(|it| (it.state, it.text.clone()))
        };
        let said = |state, waiting| {
            let text = format!(
                "{waiting} of 100 viewers still waited for the stream's next keyframe when their time was over"
            );
            Some((state, text))
        };
        assert_eq!(state(9), None);
        assert_eq!(state(10), said(VerdictState::Degraded, 10));
        assert_eq!(state(49), said(VerdictState::Degraded, 49));
        assert_eq!(state(99), said(VerdictState::Invalid, 99));
        assert_eq!(state(100), said(VerdictState::Degraded, 100));
    }

    #[test]
    fn a_single_datagram_that_our_own_socket_dropped_degrades_and_one_in_a_thousand_invalidates() {
        let state = |dropped: u64| {
            let mut total = Recorder::new(weir_metrics::Schema::new(&[]));
            total.count(common::UNITS, 9_999);
            total.count(common::LOST, 1);
            total.count(common::SOCKET_DROPS, dropped);
            drops(&total, weir_protocols::datagrams("whep+http", &total)).map(|reason| reason.state)
        };
        assert_eq!(state(0), None);
        assert_eq!(state(1), Some(VerdictState::Degraded));
        assert_eq!(state(10), Some(VerdictState::Invalid));
    }

    #[test]
    fn of_srt_a_datagram_that_was_dropped_is_one_of_datagrams_and_not_of_the_packets_in_them() {
        let schema = weir_protocols::schema_of("srt").unwrap();
        let state = |counts: &[(&str, u64)], dropped: u64| {
            let mut total = Recorder::new(schema);
            let counter = |name: &str| weir_metrics::Counter(schema.position(name).unwrap() as u16);
            counts.iter().for_each(|(name, count)| total.count(counter(name), *count));
            // Seven packets of a transport stream in each datagram.
            total.count(common::UNITS, 7_000);
            total.count(common::SOCKET_DROPS, dropped);
            let own = of_workload("srt", &total, Slots::default());
            own.iter().find(|reason| reason.check == "socket_drops").map(|it| (it.state, it.measured))
        };
        let viewer = [("srt.received", 998), ("srt.dropped", 2)];
        let publisher = [("srt.sent", 1_900), ("srt.retransmitted", 100)];
        assert_eq!(state(&viewer, 0), None);
        assert_eq!(state(&viewer, 1), Some((VerdictState::Invalid, 0.001)));
        assert_eq!(state(&publisher, 1), Some((VerdictState::Degraded, 0.0005)));
        assert_eq!(state(&publisher, 2), Some((VerdictState::Invalid, 0.001)));
    }

    #[test]
    fn what_weir_did_not_send_is_its_own_doing_and_one_in_a_thousand_invalidates() {
        let schema = weir_protocols::schema_of("srt").unwrap();
        let counter = |name: &str| weir_metrics::Counter(schema.position(name).unwrap() as u16);
        let of = |discarded: u64| {
            let mut total = Recorder::new(schema);
            total.count(counter("srt.sent"), 10_000);
            total.count(counter("srt.send_discarded"), discarded);
            total.count(counter("srt.send_dropped"), 500);
            let own = weir_protocols::own_excesses("srt", &total).into_iter().map(of_own_excess);
            let states: Vec<_> = own.map(|reason| (reason.check, reason.state)).collect();
            let warnings = weir_protocols::warnings("srt", &total);
            assert_eq!(
                warnings.len(),
                1,
                "what the server has not acknowledged is none of weir's: {warnings:?}"
            );
            states
        };
        assert_eq!(of(0), []);
        assert_eq!(of(1), [("unsent".to_owned(), VerdictState::Degraded)]);
        // Of 10,011 that were to be sent.
        assert_eq!(of(11), [("unsent".to_owned(), VerdictState::Invalid)]);
    }

    #[test]
    fn what_queues_dropped_voids_a_run_where_it_may_be_what_was_given_up_and_excuses_no_silent_server() {
        let state = |drops, datagrams, given_up| of_queues(drops, datagrams, given_up).state;
        assert_eq!(state(50, 9_950, 400), VerdictState::Invalid);
        assert_eq!(state(5, 9_950, 400), VerdictState::Degraded, "a two thousandth");
        // Sixty-four datagrams each are 6 % of what was given up.
        assert_eq!(state(10, 9_000, 10_000), VerdictState::Degraded);
        assert_eq!(state(16, 9_000, 10_000), VerdictState::Invalid);
        let said = of_queues(50, 9_950, 4_000);
        assert!(said.text.contains("50 times at least") && said.text.contains("beside 4,000"), "{said:?}");
        assert_eq!((said.measured, is_of_surroundings(&said.check)), (0.005, true));
    }

    #[test]
    fn the_worst_reason_comes_first_and_names_the_verdict() {
        let reasons = [check(0.5), check(1.2), check(0.96)].concat();
        let verdict = of_reasons(reasons, &[]);
        assert_eq!(verdict.state, VerdictState::Invalid);
        assert_eq!(verdict.reasons[0].measured, 1.2);
        assert_eq!(of_reasons(Vec::new(), &[]).state, VerdictState::Valid);
    }

    #[test]
    fn an_accepted_reason_is_shown_and_changes_nothing() {
        let of = |name: &str, state| Reason { check: name.to_owned(), state, ..check(1.0).remove(0) };
        let reasons =
            vec![of("cpu_steal", VerdictState::Invalid), of("generator_pause", VerdictState::Degraded)];
        let verdict = of_reasons(reasons, &["steal".parse().unwrap()]);
        assert_eq!((verdict.state, verdict.reasons.len()), (VerdictState::Degraded, 1));
        assert_eq!(verdict.waived[0].check, "cpu_steal");
    }

    #[test]
    fn what_the_machine_did_is_said_once_with_all_the_places_where_it_shows() {
        let of = |name: &str, stage, measured| Reason {
            check: name.to_owned(),
            stage: Some(stage),
            ..check(measured).remove(0)
        };
        let reasons = vec![
            of("host_busy", (0, 0), 0.6),
            of("host_busy", (1, 0), 0.7),
            of("host_busy", (1, 1), 0.96),
            of("host_busy", (1, 2), 0.65),
            of("send_lag", (0, 0), 0.6),
            of("send_lag", (1, 0), 0.5),
        ];
        let verdict = of_reasons(reasons, &[]);
        let said: Vec<_> = verdict
            .reasons
            .iter()
            .map(|it| (&*it.check, it.measured, it.stage.unwrap(), &*it.also))
            .collect();
        let busy = ("host_busy", 0.7, (1, 0), &[(0, 0), (1, 2)][..]);
        assert_eq!(said[..2], [("host_busy", 0.96, (1, 1), &[][..]), busy]);
        assert_eq!(
            said.iter().filter(|it| it.0 == "send_lag").count(),
            2,
            "each publisher has a lag of its own"
        );
        assert_eq!([(0, 0), (1, 2)].map(|place| verdict.of_stage(place)), [VerdictState::Degraded; 2]);
    }

    #[test]
    fn a_message_that_weir_lost_count_of_voids_a_run_and_one_that_the_broker_lost_does_not() {
        let of = |stage| {
            let imbalances = vec![Imbalance { stage, text: "5 messages".to_owned() }];
            of_account(&Ingested { imbalances, ..Ingested::default() }).map(|reason| reason.state)
        };
        let stages = [
            IngestStage::Publish,
            IngestStage::Broker,
            IngestStage::Consumer,
            IngestStage::Ingest,
            IngestStage::Table,
        ]
        .map(of);
        let invalid = Some(VerdictState::Invalid);
        assert_eq!(stages, [None, None, None, invalid, invalid]);
    }

    /// A check that is not in the list cannot be accepted.
    #[test]
    fn every_check_is_in_the_list_of_names() {
        for source in [include_str!("verdict.rs"), include_str!("verdict/stage.rs")] {
            let source = source.split("#[cfg(test)]").next().unwrap();
            for before in ["Check::new(\"", "Check::by_effect(\"", "certain(\""] {
                for rest in source.split(before).skip(1) {
                    let name = rest.split('"').next().unwrap();
                    assert!(CHECKS.contains(&name), "{name} is not in CHECKS");
                }
            }
        }
    }
}
