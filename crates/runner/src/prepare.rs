//! From a scenario to a run that is ready: URLs resolved, material made, limits raised and checked.

use crate::error::{ErrorKind, RunError};
use crate::tls::TlsOptions;
use crate::{clear_text, consumer, machine, run_directory};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use weir_clients::mqtt::{PublishTimes, RunMessages};
use weir_clients::{
    KeyNumbers, Link, PlayOptions, PublishOptions, Scheme, Timeouts, Workload, WorkloadError,
};
use weir_engine::WorkloadFacts;
use weir_engine::agents::Load;
use weir_engine::plan::Plan;
use weir_engine::run::Prepared;
use weir_engine::scenario::lines::Part;
use weir_engine::scenario::{BitRateText, Scenario, ScenarioError, Span, StageSpec, WorkloadSpec};
use weir_engine::summary::{Role, RunFacts};
use weir_engine::threshold::Threshold;
use weir_observe::{GroupMemory, Sampler};
use weir_protocols::{RunContext, Verb, of_url};
use weir_setting::{BIND_ADDR, CACERT, RESOLVE, WATCH};
use weir_shard::clock;

pub use crate::generators::Generators;

/// Descriptors that weir needs beside those of its clients.
pub const OWN_DESCRIPTORS: u64 = 128;

/// Memory that a client takes at the least: a TCP socket of the kernel has about 2.5 KiB and a client's own state as much.
const LEAST_MEMORY: u64 = 4 << 10;

/// Makes a scenario ready to run. What is wrong with it ends with `wrong`: usage for flags, bad
/// scenario for files.
pub fn prepare(
    mut scenario: Scenario,
    wrong: ErrorKind,
    generators: &Generators,
) -> Result<Prepared, RunError> {
    check(&scenario, wrong, generators)?;
    let mut numbers = KeyNumbers::new(scenario.show_keys);
    let times: Arc<PublishTimes> = Arc::default();
    let context = RunContext {
        seed: scenario.seed,
        drain: scenario.drain(),
        messages: RunMessages {
            times: scenario.workloads.iter().any(WorkloadSpec::saves).then(|| Arc::clone(&times)),
            is_part: matches!(generators, Generators::Part(segment) if segment.of > 1),
            ..RunMessages::default()
        },
    };
    let workloads = scenario
        .workloads
        .iter()
        .enumerate()
        .map(|(position, spec)| {
            let made = workload(spec, &scenario, &context, &mut numbers, wrong);
            made.map_err(|failure| failure.of(Part::Workload(position)))
        })
        .collect::<Result<Vec<_>, RunError>>()?;
    for (spec, (_, workload)) in scenario.workloads.iter_mut().zip(&workloads) {
        if discovers(spec) && spec.clients.is_none() && spec.stages.is_empty() {
            // One reader a service: the server has said how many there are.
            spec.clients = Some(workload.targets().len() as u32);
        }
    }
    let mut workloads = workloads;
    scenario = scenario.with_background().map_err(RunError::with(wrong))?;
    for spec in &scenario.workloads[workloads.len()..] {
        workloads.push(workload(spec, &scenario, &context, &mut numbers, wrong)?);
    }
    // What is sent from elsewhere is noted there.
    if *generators != Generators::Elsewhere {
        workloads.iter().for_each(|(_, workload)| clear_text::note_of_workload(workload));
    }
    let plan = plan(&scenario, wrong)?;
    let plan = if let Generators::Part(segment) = generators { plan.part(segment) } else { plan };
    if *generators != Generators::Elsewhere {
        check_limits(&plan)?;
    }
    expect_clients(&scenario, &plan, &workloads, wrong)?;
    let consuming =
        consumer::consuming(&scenario, &plan, times.clone(), generators).map_err(RunError::with(wrong))?;
    check_sources(&scenario.bind_addr, &workloads).map_err(RunError::with(wrong))?;
    let schemas: Vec<_> = workloads.iter().map(|(_, workload)| workload.schema).collect();
    let thresholds = scenario.thresholds.iter().enumerate().map(|(at, it)| (Part::Threshold(at), it));
    let aborts = scenario.abort.iter().enumerate().map(|(at, it)| (Part::Abort(at), it));
    for (part, threshold) in thresholds.chain(aborts) {
        let checked = threshold.check(&schemas).and_then(|()| threshold.check_workloads(&scenario));
        checked.map_err(|error| RunError::with(wrong)(error).of(part))?;
        let watched = check_watched_here(threshold, &scenario, generators);
        watched.map_err(|line| RunError::new(wrong, line).of(part))?;
    }
    let watches = scenario.watch.iter().enumerate().map(|(at, text)| {
        text.parse()
            .map_err(|error: weir_observe::WatchError| RunError::with(wrong)(error).of(Part::Watch(at)))
    });
    let watches = watches.collect::<Result<Vec<_>, RunError>>()?;
    let endpoints = workloads.iter().flat_map(|(_, workload)| workload.endpoints());
    let endpoints: Vec<SocketAddr> = endpoints.map(|endpoint| endpoint.address).collect();
    let addresses: Vec<IpAddr> = endpoints.iter().map(SocketAddr::ip).collect();
    let ports =
        endpoints.iter().filter(|endpoint| machine::is_here(&endpoint.ip())).map(SocketAddr::port).collect();
    let mut sampler = Sampler::of_load(watches, &ports).map_err(RunError::with(ErrorKind::Usage))?;
    sampler.count_as_own(weir_clients::decoder_processes);
    let targets = sampler.describe_targets();
    let about = plan.about.unwrap_or(plan.length);
    let machines = machine::watch(&mut sampler, &scenario, &addresses, about, wrong)?;
    let mut facts = RunFacts {
        targets,
        servers: workloads.iter().flat_map(|(_, workload)| &workload.versions).cloned().collect(),
        machines,
        // Its directory is made when it begins.
        ..run_directory::facts(&scenario, Path::new(""), clock::wall_nanos() as f64 * 1e-9)
    };
    facts.environment.keep_interfaces_towards(&addresses);
    Ok(Prepared {
        scenario,
        plan,
        workloads,
        consuming,
        slice_seconds: None,
        load: Load::Here,
        servers: None,
        sampler,
        facts,
    })
}

/// Checks what can be known of a scenario before anything is asked of a server, and gives its plan.
///
/// # Errors
/// What is wrong, and of which part of the scenario.
pub fn check(scenario: &Scenario, wrong: ErrorKind, generators: &Generators) -> Result<Plan, RunError> {
    check_numbers(scenario, wrong, generators)?;
    let plan = plan(scenario, wrong)?;
    for (position, spec) in scenario.workloads.iter().enumerate() {
        let checked = check_times(spec).and_then(|()| check_options(spec));
        checked.map_err(|words| {
            RunError::new(wrong, format!("workload '{}': {words}", spec.label())).of(Part::Workload(position))
        })?;
    }
    check_authorities(scenario).map_err(RunError::with(wrong))?;
    Ok(plan)
}

/// The plan of a scenario.
///
/// # Errors
/// The scenario has no plan; the failure names the workload.
pub fn plan(scenario: &Scenario, wrong: ErrorKind) -> Result<Plan, RunError> {
    let plan = scenario.plan().map_err(|error| of_scenario(&error, scenario, wrong))?;
    let during = scenario.check_during(&plan);
    during.map_err(|(position, error)| RunError::new(wrong, error.to_string()).of(Part::During(position)))?;
    Ok(plan)
}

fn of_scenario(error: &ScenarioError, scenario: &Scenario, wrong: ErrorKind) -> RunError {
    let failure = RunError::new(wrong, error.to_string());
    match scenario.workload_of(error) {
        Some(position) => failure.of(Part::Workload(position)),
        None => failure,
    }
}

fn workload(
    spec: &WorkloadSpec,
    scenario: &Scenario,
    context: &RunContext,
    numbers: &mut KeyNumbers,
    wrong: ErrorKind,
) -> Result<(WorkloadFacts, Workload), RunError> {
    let (role, urls) = spec.verb().map_err(RunError::with(wrong))?;
    if spec.saves() {
        return consumer::workload(spec).map_err(RunError::with(wrong));
    }
    weir_protocols::check_templates(urls, spec.streams).map_err(RunError::with(wrong))?;
    let tls = TlsOptions::by(scenario).client_tls().map_err(RunError::with(wrong))?;
    let timeouts = Timeouts::all(spec.timeout.as_ref().map_or(Duration::from_secs(10), Span::get));
    let (streams, resolve) = (spec.streams.unwrap_or(1), spec.resolve.unwrap_or_default());
    // The messages of a background workload are not waited for.
    let messages = RunMessages { times: None, ..context.messages.clone() };
    let alone = RunContext { messages, ..context.clone() };
    let context = if spec.background { &alone } else { context };
    let made = match role {
        Role::Play => {
            let options = PlayOptions { timeouts, tls, resolve, ..PlayOptions::default() };
            weir_protocols::play(urls, streams, options, &spec.options, context)
        }
        Role::Publish | Role::Ingest => {
            let options = PublishOptions { timeouts, tls, resolve, ..PublishOptions::default() };
            weir_protocols::publish(urls, streams, options, &spec.options, context)
        }
    };
    let made = made.map_err(|error| match &error {
        WorkloadError::Server(_) => RunError::new(ErrorKind::TargetDied, error.to_string()),
        _ => RunError::new(wrong, error.to_string()),
    })?;
    let output = spec.output();
    let facts = WorkloadFacts {
        name: spec.label(),
        role,
        protocol: made.targets().first().map_or_else(String::new, |target| target.scheme.name.to_owned()),
        targets: made.targets().iter().map(|target| target.named(numbers)).collect(),
        expect: spec.expect.as_ref().map(BitRateText::get).or(output.and_then(|output| output.bit_rate)),
        frame_time_seconds: output.and_then(|output| output.frame_time),
        messages_per_second: output.and_then(|output| output.messages_per_second),
        timeout_seconds: timeouts.media.as_secs_f64(),
        background: spec.background,
        servers: made.servers().to_vec(),
        warnings: made.warnings.clone(),
    };
    Ok((facts, made))
}

/// Tells those that wait for each other how many clients of the first stages there will be, and how late the last of them may be.
fn expect_clients(
    scenario: &Scenario,
    plan: &Plan,
    workloads: &[(WorkloadFacts, Workload)],
    wrong: ErrorKind,
) -> Result<(), RunError> {
    let schedules = scenario.schedules().map_err(|error| of_scenario(&error, scenario, wrong))?;
    for (number, ((facts, workload), schedule)) in (0..).zip(workloads.iter().zip(schedules)) {
        let Some(gate) = &workload.start_gate else { continue };
        let last = schedule.delay + schedule.stages.first().map_or(Duration::ZERO, |stage| stage.ramp);
        let first = plan.slots.iter().filter(|slot| slot.workload == number && slot.start <= last);
        gate.expect(first.count() as u64, last + Duration::from_secs_f64(facts.timeout_seconds));
    }
    Ok(())
}

/// A threshold on the server's processes needs some that are watched, and one on restarts a scenario that has them.
pub fn check_watched(threshold: &Threshold, scenario: &Scenario) -> Result<(), String> {
    let text = threshold.text();
    if threshold.is_about_restarts() && scenario.during.is_empty() {
        return Err(format!(
            "threshold '{text}': nothing is restarted; say under `during` what is, and when"
        ));
    }
    if threshold.server_load().is_some() && scenario.watch.is_empty() {
        return Err(format!(
            "threshold '{text}': no process is watched; name the server's: {}",
            WATCH.to("name=nginx")
        ));
    }
    Ok(())
}

/// A threshold on what is lost of shared subscriptions alone needs members that are in one process.
pub fn check_lost(threshold: &Threshold, scenario: &Scenario) -> Result<(), String> {
    let mut played = scenario.workloads.iter().flat_map(|it| &it.play.0).peekable();
    let is_shared = played.peek().is_some() && played.all(|url| weir_clients::mqtt::is_shared(url));
    if threshold.is_of("lost") && is_shared {
        return Err(format!(
            "threshold '{}': what is lost of a shared subscription is not known with several agents, since none sees what members at \
             another got; leave it out, or have one agent",
            threshold.text()
        ));
    }
    Ok(())
}

/// The same where this machine alone makes the load: agents may watch processes on their machines, which is known once they
/// have answered.
pub fn check_watched_here(
    threshold: &Threshold,
    scenario: &Scenario,
    generators: &Generators,
) -> Result<(), String> {
    if *generators == Generators::Here { check_watched(threshold, scenario) } else { Ok(()) }
}

/// Whether a workload asks its server what there is to play.
fn discovers(spec: &WorkloadSpec) -> bool {
    let play = spec.play.0.first().and_then(|url| of_url(url)?.play.as_ref());
    play.is_some_and(|play| play.discovers)
}

/// Streams that are played elsewhere than they are published cannot be verified by the URL alone.
pub fn can_be_verified(urls: &[String]) -> bool {
    let shown = |url: &String| of_url(url).and_then(|protocol| protocol.play.as_ref()?.shown);
    urls.iter().all(|url| shown(url).is_some())
}

/// Options that a workload's protocol does not have: a user who gives one believes that it has an effect.
fn check_options(spec: &WorkloadSpec) -> Result<(), String> {
    let Ok((role, urls)) = spec.verb() else { return Ok(()) };
    if spec.into.is_some() && !spec.saves() {
        return Err("`into` is of `ingest` and `probe`; leave it out".to_owned());
    }
    let verb = match role {
        Role::Play => Verb::Play,
        Role::Publish => Verb::Publish,
        Role::Ingest => Verb::Ingest,
    };
    // A scheme that is not known is refused with the URL.
    let protocol = urls.first().and_then(|url| of_url(url)).filter(|it| it.options(verb).is_some());
    protocol.map_or(Ok(()), |protocol| protocol.check(verb, &spec.options))
}

/// Certificates that no URL asks for: a user who names some believes that they are used.
fn check_authorities(scenario: &Scenario) -> Result<(), String> {
    let urls =
        scenario.workloads.iter().flat_map(|it| it.play.0.iter().chain(&it.publish.0).chain(&it.ingest.0));
    let mut plain = urls.map(|url| is_never_secure(url));
    let mut machines = scenario.prometheus.iter().chain(&scenario.node_exporter);
    if scenario.cacert.is_some() && plain.all(|it| it) && !machines.any(|url| url.starts_with("https:")) {
        let cacert = CACERT.beside_flag(" (`cacert`)");
        return Err(format!(
            "{cacert} is of TLS, and no URL is; leave it out, or write rtmps://, mqtts:// or wss://"
        ));
    }
    Ok(())
}

/// Whether no link of a URL's clients can be TLS.
fn is_never_secure(url: &str) -> bool {
    let (Some(protocol), Some((name, _))) = (of_url(url), url.split_once("://")) else { return false };
    let is_it = |scheme: &&Scheme| scheme.name.eq_ignore_ascii_case(name);
    !protocol.redirects && protocol.schemes.iter().find(is_it).is_some_and(|scheme| scheme.link != Link::Tls)
}

/// Times of nothing, in which nothing can happen.
fn check_times(spec: &WorkloadSpec) -> Result<(), String> {
    let none = |span: &Option<Span>| span.as_ref().is_some_and(|span| span.get().is_zero());
    if none(&spec.timeout) {
        return Err("a timeout of 0s fails every client; give for example 10s".to_owned());
    }
    let idle = |stage: &&StageSpec| stage.hold.get().is_zero() && stage.ramp.is_none();
    match spec.stages.iter().find(idle) {
        Some(StageSpec { clients, .. }) => {
            Err(format!("a stage of {clients} clients held for 0s measures nothing; give for example 15s"))
        }
        None => Ok(()),
    }
}

/// Addresses to connect from must be this machine's, and of the targets' family.
fn check_sources(sources: &[IpAddr], workloads: &[(WorkloadFacts, Workload)]) -> Result<(), String> {
    for source in sources {
        for (_, workload) in workloads {
            let addresses = workload.endpoints().map(|endpoint| endpoint.address);
            if let Some(address) = addresses.into_iter().find(|it| it.is_ipv4() != source.is_ipv4()) {
                let family = if source.is_ipv4() { 4 } else { 6 };
                return Err(format!(
                    "{}: no connection leads from there to {}; give addresses of the target's family, or {}",
                    BIND_ADDR.to(source.to_string()),
                    address.ip(),
                    RESOLVE.to(family.to_string())
                ));
            }
        }
        UdpSocket::bind((*source, 0)).map_err(|error| {
            format!(
                "{}: {error}; give an address of this machine (`ip address` lists them)",
                BIND_ADDR.to(source.to_string())
            )
        })?;
    }
    Ok(())
}

/// Refuses what this machine cannot hold before a plan of it is made, which has a line for every client.
fn check_numbers(scenario: &Scenario, wrong: ErrorKind, generators: &Generators) -> Result<(), RunError> {
    let part = match generators {
        Generators::Here => 1.0,
        Generators::Part(segment) => segment.largest_fraction(),
        Generators::Elsewhere => return Ok(()),
    };
    let schedules = scenario.schedules().map_err(|error| of_scenario(&error, scenario, wrong))?;
    let clients = schedules.iter().flat_map(|schedule| &schedule.stages).map(|stage| stage.clients);
    let clients = (clients.max().map_or(0.0, f64::from) * part) as u64;
    let streams = scenario
        .workloads
        .iter()
        .map(|it| u64::from(it.streams.unwrap_or(1)) * it.play.0.len().max(it.publish.0.len()) as u64);
    let (most, what) =
        [(clients, "clients"), (streams.max().unwrap_or(0), "streams")].into_iter().max().unwrap_or_default();
    let memory = memory();
    if most.saturating_mul(LEAST_MEMORY) > memory {
        let gib = |bytes: u64| bytes.div_ceil(1 << 30);
        let line = format!(
            "{most} {what} need {} GiB of memory at the least, and this machine has {}; use fewer {what}",
            gib(most.saturating_mul(LEAST_MEMORY)),
            gib(memory)
        );
        return Err(RunError::new(wrong, line));
    }
    refuse_descriptors(clients + OWN_DESCRIPTORS)
}

/// Bytes of this machine's memory, or what weir's control groups let it have of them.
fn memory() -> u64 {
    let limit = GroupMemory::read().map_or(u64::MAX, |group| group.limit_bytes);
    memory_of_machine().min(limit)
}

#[allow(clippy::unnecessary_cast)] // `totalram` has 32 bits on machines of 32 bits.
fn memory_of_machine() -> u64 {
    let info = rustix::system::sysinfo();
    (info.totalram as u64).saturating_mul(info.mem_unit.into())
}

/// Raises the limit of descriptors to its maximum, and refuses a plan that needs more: its clients would fail by this
/// machine's fault.
fn check_limits(plan: &Plan) -> Result<(), RunError> {
    refuse_descriptors(most_at_once(plan) + OWN_DESCRIPTORS)
}

fn refuse_descriptors(needed: u64) -> Result<(), RunError> {
    let limit = raise_descriptors();
    if needed > limit {
        let line = format!(
            "{needed} descriptors are needed and {limit} are allowed; raise the hard limit (`ulimit -Hn`, LimitNOFILE=) or use fewer clients"
        );
        return Err(RunError::new(ErrorKind::Usage, line));
    }
    Ok(())
}

/// The soft limit of open files after raising it to the hard one.
pub fn raise_descriptors() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum.unwrap_or(u64::MAX),
        Err(_) => limit.current.unwrap_or(u64::MAX),
    }
}

/// The highest number of clients that the plan holds at one time.
pub fn most_at_once(plan: &Plan) -> u64 {
    let mut changes: Vec<(Duration, i64)> =
        plan.slots.iter().flat_map(|slot| [(slot.start, 1), (slot.stop, -1)]).collect();
    changes.sort_unstable();
    let mut now = 0;
    changes
        .iter()
        .map(|(_, change)| {
            now += change;
            now
        })
        .max()
        .unwrap_or(0) as u64
}
