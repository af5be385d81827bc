//! `weir doctor`: what this machine can generate, and what stands in the way.

use crate::args::Doctor;
use crate::conduct::interrupt_flag;
use crate::demo::OriginProcess;
use crate::exit::{Exit, Failure};
use crate::load::span;
use crate::prepare::{OWN_DESCRIPTORS, prepare, raise_descriptors};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_engine::fold::Fold;
use weir_engine::run::{Watcher, run};
use weir_engine::scenario::{OneOrMany, Scenario, StageSpec, WorkloadSpec};
use weir_engine::summary::{Role, StageSummary, VerdictState};
use weir_metrics::BitRate;
use weir_observe::Environment;

/// Clients of the first step; each next one doubles.
const FIRST_STEP: u32 = 500;
/// How long a step is held.
const HOLD: Duration = Duration::from_secs(5);
/// The stream of the classic benchmarks.
const STREAM: &str = "235kbps";

/// Prints limits with remedies, then measures the ceiling against the built-in origin.
pub(crate) fn doctor(args: &Doctor) -> Result<Exit, Failure> {
    let interrupt = interrupt_flag()?;
    let environment = Environment::read();
    let mut lines = vec![format!(
        "{} · {} · {} cores · {}",
        environment.os.as_deref().unwrap_or("unknown system"),
        environment.kernel,
        environment.cpu.online_count,
        environment.cpu.model.as_deref().unwrap_or("unknown CPU"),
    )];
    lines.extend(limits(&environment));
    say(&lines);
    if args.no_load {
        return Ok(Exit::Passed);
    }
    ceiling(args.most, &interrupt)
}

fn say(lines: &[String]) {
    let mut out = std::io::stdout().lock();
    for line in lines {
        // A reader that is gone has seen enough.
        let _ = writeln!(out, "{line}");
    }
    let _ = out.flush();
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
fn ceiling(most: u32, interrupt: &Arc<AtomicBool>) -> Result<Exit, Failure> {
    say(&[
        String::new(),
        format!("RTMP viewers of one {STREAM} stream from the built-in origin on this machine:"),
    ]);
    // A step for which there are no descriptors would end in an error and say nothing of those before it.
    let most =
        most.min(raise_descriptors().saturating_sub(OWN_DESCRIPTORS).try_into().unwrap_or(u32::MAX)).max(1);
    let origin = OriginProcess::start(&[])?;
    let mut held = 0;
    let mut clients = FIRST_STEP.min(most);
    loop {
        let stage = step(&origin, clients, interrupt)?;
        let (Some(row), verdict) = stage else { return Ok(Exit::Interrupted) };
        say(&[describe(&row, verdict)]);
        // Without a window all viewers were gone before it.
        let delivered = row.window_seconds() > 0.0
            && row.expected_bps.is_none_or(|expected| row.actual_bps > 0.98 * expected);
        if verdict == VerdictState::Invalid || !delivered || interrupt.load(Ordering::Relaxed) {
            say(&[format!("  ceiling: {held} viewers; the step to {clients} failed")]);
            return Ok(if interrupt.load(Ordering::Relaxed) { Exit::Interrupted } else { Exit::Passed });
        }
        held = clients;
        if clients >= most {
            say(&[format!("  ceiling: at least {held} viewers, not reached")]);
            return Ok(Exit::Passed);
        }
        clients = (clients * 2).min(most);
    }
}

type Step = (Option<StageSummary>, VerdictState);

/// One step; no row if it was interrupted.
fn step(origin: &OriginProcess, clients: u32, interrupt: &Arc<AtomicBool>) -> Result<Step, Failure> {
    let url = OneOrMany(vec![format!("rtmp://{}/live/doctor-{clients}", origin.address)]);
    let scenario = Scenario {
        name: "doctor".to_owned(),
        workloads: vec![
            WorkloadSpec { publish: url.clone(), bitrate: STREAM.parse().ok(), ..WorkloadSpec::default() },
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
    let prepared = prepare(scenario, Exit::Internal)?;
    let directory = tempfile::tempdir().map_err(Failure::with(Exit::Internal))?;
    let summary =
        run(prepared, directory.path(), interrupt, &mut Unseen).map_err(Failure::with(Exit::Internal))?;
    drop(directory);
    let interrupted = interrupt.load(Ordering::Relaxed);
    let viewers = summary.workloads.into_iter().find(|workload| workload.role == Role::Play);
    let row = viewers.and_then(|mut workload| workload.stages.pop()).filter(|_| !interrupted);
    Ok((row, summary.verdict.state))
}

fn describe(row: &StageSummary, verdict: VerdictState) -> String {
    let generator = row.generator.as_ref().map_or(0.0, |generator| generator.cpu_percent);
    let origin = row.targets.first().map_or(0.0, |target| target.cpu_percent);
    format!(
        "  {:>6} viewers · {} of {} · weir {generator:.0} % of a core, {:.3} ms CPU a viewer-second · origin {origin:.0} % · {verdict:?}",
        row.clients,
        BitRate::from_bps(row.actual_bps),
        BitRate::from_bps(row.expected_bps.unwrap_or_default()),
        generator * 10.0 / row.playing_mean.max(1.0),
    )
}

/// Nobody looks.
struct Unseen;

impl Watcher for Unseen {
    fn second(&mut self, _: u32, _: &Fold) {}

    fn tick(&mut self, _: Duration) {}
}
