//! `weir doctor`: what this machine can generate, and what stands in the way.

use crate::args::Doctor;
use crate::demo::OriginProcess;
use crate::exit::Exit;
use crate::interrupt::interrupt_flag;
use crate::load::span;
use crate::print::written;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_engine::run::{Unseen, run};
use weir_engine::scenario::{OneOrMany, Scenario, StageSpec, WorkloadSpec};
use weir_engine::summary::{Role, StageSummary, Verdict, VerdictState};
use weir_metrics::{BitRate, several};
use weir_observe::Environment;
use weir_protocols::Given;
use weir_runner::prepare::{Generators, OWN_DESCRIPTORS, prepare, raise_descriptors};
use weir_runner::{ErrorKind, RunError};

/// Clients of the first step; each next one doubles.
const FIRST_STEP: u32 = 500;
/// How long a step is held.
const HOLD: Duration = Duration::from_secs(5);
/// The stream of the classic benchmarks.
const STREAM: &str = "235kbps";

/// Prints limits with remedies, then measures the ceiling against the built-in origin.
pub(crate) fn doctor(args: &Doctor) -> Result<Exit, RunError> {
    let interrupt = interrupt_flag()?;
    let environment = Environment::read();
    let mut lines = vec![format!(
        "{} · {} · {} · {}",
        environment.os.as_deref().unwrap_or("unknown system"),
        environment.kernel,
        several(environment.cpu.online_count, "core"),
        environment.cpu.model.as_deref().unwrap_or("unknown CPU"),
    )];
    lines.extend(limits(&environment));
    say(&lines)?;
    if args.no_load {
        return Ok(Exit::Passed);
    }
    ceiling(args.most, &interrupt)
}

fn say(lines: &[String]) -> Result<(), RunError> {
    let mut out = std::io::stdout().lock();
    written(lines.iter().try_for_each(|line| writeln!(out, "{line}")).and_then(|()| out.flush()))
}

/// Each limit in the way: what it is, what it stops, what to do.
fn limits(environment: &Environment) -> Vec<String> {
    let mut lines = Vec::new();
    let descriptors = raise_descriptors();
    lines.push(line(
        descriptors >= 65_536,
        &format!(
            "descriptors: {descriptors}, so about {} clients a process",
            descriptors.saturating_sub(OWN_DESCRIPTORS)
        ),
        "raise the hard limit: `ulimit -Hn 1048576`, or LimitNOFILE= in the unit",
    ));
    let sysctl = |name: &str| {
        environment.sysctls.iter().find(|sysctl| sysctl.name == name).map(|sysctl| sysctl.value.clone())
    };
    let numbers = |name: &str| -> Vec<u64> {
        sysctl(name).map(|text| text.split_whitespace().flat_map(str::parse).collect()).unwrap_or_default()
    };
    if let [low, high] = numbers("net.ipv4.ip_local_port_range")[..] {
        let ports = high.saturating_sub(low) + 1;
        lines.push(line(
            ports >= 50_000,
            &format!("local ports: {ports}, so as many clients from one address to one server"),
            "sysctl -w net.ipv4.ip_local_port_range='1024 65535', or add addresses with --bind-addr",
        ));
    }
    if let [most] = numbers("net.core.rmem_max")[..] {
        lines.push(line(
            most >= 2_097_152,
            &format!("socket receive buffer: up to {} KiB", most / 1_024),
            "sysctl -w net.core.rmem_max=8388608",
        ));
    }
    if let [backlog] = numbers("net.core.somaxconn")[..] {
        lines.push(line(
            backlog >= 4_096,
            &format!("listen backlog on this machine: {backlog} (a server here may set less)"),
            "sysctl -w net.core.somaxconn=65535, and raise the server's own backlog",
        ));
    }
    if let Some(quota) = environment.cgroup_quota_cores {
        lines.push(line(false, &format!("CPU quota: {quota} cores"), "raise the control group's cpu.max"));
    }
    lines
}

fn line(fine: bool, what: &str, remedy: &str) -> String {
    if fine { format!("  ok     {what}") } else { format!("  limit  {what}; {remedy}") }
}

/// Doubles the viewers of one stream until weir, not the origin, is at its limit.
fn ceiling(most: u32, interrupt: &Arc<AtomicBool>) -> Result<Exit, RunError> {
    say(&[
        String::new(),
        format!("RTMP viewers of one {STREAM} stream from the built-in origin on this machine:"),
    ])?;
    // A step for which there are no descriptors would end in an error and say nothing of those before it.
    let most =
        most.min(raise_descriptors().saturating_sub(OWN_DESCRIPTORS).try_into().unwrap_or(u32::MAX)).max(1);
    let origin = OriginProcess::start(&[])?;
    let mut held = 0;
    let mut clients = FIRST_STEP.min(most);
    loop {
        let Some(step) = step(&origin, clients, interrupt)? else {
            return Err(RunError::new(ErrorKind::Interrupted, "interrupted before the ceiling was found"));
        };
        say(&[step.describe()])?;
        if let Some(fault) = step.fault() {
            say(&[format!(
                "  ceiling: {}; the step to {clients} failed: {fault}",
                several(held.into(), "viewer")
            )])?;
            return Ok(if held == 0 { Exit::Failed(ErrorKind::Invalid) } else { Exit::Passed });
        }
        held = clients;
        if clients >= most {
            say(&[format!("  ceiling: at least {}, not reached", several(held.into(), "viewer"))])?;
            return Ok(Exit::Passed);
        }
        clients = (clients * 2).min(most);
    }
}

/// What one step came to.
struct Step {
    row: StageSummary,
    verdict: Verdict,
}

/// One step; none if it was interrupted.
fn step(origin: &OriginProcess, clients: u32, interrupt: &Arc<AtomicBool>) -> Result<Option<Step>, RunError> {
    let url = OneOrMany(vec![format!("rtmp://{}/live/doctor-{clients}", origin.address)]);
    let scenario = Scenario {
        name: "doctor".to_owned(),
        workloads: vec![
            WorkloadSpec {
                publish: url.clone(),
                options: Given::default().with("bitrate", STREAM),
                ..WorkloadSpec::default()
            },
            WorkloadSpec {
                play: url,
                delay: span(Duration::from_secs(1)),
                stages: vec![StageSpec { clients, hold: HOLD.into(), ramp: span(Duration::from_secs(2)) }],
                ..WorkloadSpec::default()
            },
        ],
        warmup: span(Duration::from_secs(1)),
        watch: vec![origin.watch()],
        ..Scenario::default()
    };
    let prepared = prepare(scenario, ErrorKind::Internal, &Generators::Here)?;
    let directory = tempfile::tempdir().map_err(RunError::with(ErrorKind::Internal))?;
    let summary = run(prepared, directory.path(), interrupt, &mut Unseen)
        .map_err(RunError::with(ErrorKind::Internal))?;
    drop(directory);
    if interrupt.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let verdict = summary.verdict;
    let viewers = summary.workloads.into_iter().find(|workload| workload.role == Role::Play);
    Ok(viewers.and_then(|mut workload| workload.stages.pop()).map(|row| Step { row, verdict }))
}

impl Step {
    fn describe(&self) -> String {
        let row = &self.row;
        let generator = row.generator.as_ref().map_or(0.0, |generator| generator.cpu_percent);
        let origin = row.targets.first().map_or(0.0, |target| target.cpu_percent);
        let verdict = match self.verdict.state {
            VerdictState::Valid => "valid",
            VerdictState::Degraded => "degraded",
            VerdictState::NothingMeasured => "nothing measured",
            VerdictState::Invalid => "invalid",
        };
        format!(
            "  {:>6} viewers · {} of {} · weir {generator:.0} % of a core, {:.3} ms CPU a viewer-second · origin {origin:.0} % · {verdict}",
            row.clients,
            BitRate::from_bps(row.actual_bps),
            BitRate::from_bps(row.expected_bps.unwrap_or_default()),
            generator * 10.0 / row.playing_mean.max(1.0),
        )
    }

    /// Why the step failed, with what to do, if it did.
    fn fault(&self) -> Option<String> {
        let row = &self.row;
        let worst = self.verdict.reasons.iter().find(|reason| reason.state == VerdictState::Invalid);
        if let Some(reason) = worst {
            return Some(format!("{}. Remedy: {}", reason.text, reason.remedy));
        }
        if row.window_seconds() <= 0.0 || self.verdict.state == VerdictState::NothingMeasured {
            return Some(
                "no viewer played while it was to be measured; run `weir demo` to see what they met"
                    .to_owned(),
            );
        }
        let expected = row.expected_bps.filter(|expected| row.actual_bps <= 0.98 * expected)?;
        Some(format!(
            "{:.1} % of the stream arrived, and no limit of weir's was reached: the origin, or the cores that both share, were the limit",
            100.0 * row.actual_bps / expected
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn step(actual: f64, window: u32, reasons: &Value) -> Step {
        let row = json!({
            "stage": 0, "clients": 500, "begin_seconds": 0, "end_seconds": 8, "window_begin_seconds": 3,
            "window_end_seconds": 3 + window, "playing_mean": 500, "expected_bps": 1e8, "actual_bps": actual,
            "figures": {}, "targets": [], "generator": null, "host": null, "verdict": "valid"
        });
        let state = reasons.get(0).map_or(json!("valid"), |worst| worst["state"].clone());
        let verdict = json!({ "state": state, "reasons": reasons });
        Step { row: serde_json::from_value(row).unwrap(), verdict: serde_json::from_value(verdict).unwrap() }
    }

    #[test]
    fn a_step_that_failed_says_why() {
        let reason = |state: &str| {
            json!([{
                "state": state, "check": "generator_thread", "stage": null, "measured": 0.99, "limit": 0.95,
                "text": "a thread was busy", "remedy": "give weir more cores"
            }])
        };
        let fault = |actual, window, reasons| step(actual, window, &reasons).fault();
        assert_eq!(fault(1e8, 5, json!([])), None);
        assert_eq!(fault(1e8, 5, reason("degraded")), None, "it held, if with care");
        assert_eq!(
            fault(1e8, 5, reason("invalid")).as_deref(),
            Some("a thread was busy. Remedy: give weir more cores")
        );
        assert!(
            fault(9e7, 5, json!([])).is_some_and(|words| words.starts_with("90.0 % of the stream arrived"))
        );
        assert!(fault(0.0, 0, json!([])).is_some_and(|words| words.starts_with("no viewer played")));
        assert!(step(1e8, 5, &reason("degraded")).describe().ends_with("· degraded"));
    }
}
