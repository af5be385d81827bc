//! From a scenario to a run that is ready: URLs resolved, material made, limits raised and checked.

use crate::exit::{Exit, Failure};
use crate::tls::Asked;
use crate::{consumer, machine, mqtt, rtc};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;
use weir_clients::{
    AudioCodec, BulkOptions, Credentials, FrameRate, HttpOptions, KeyNumbers, MaterialOptions,
    MirakurunOptions, MqttOptions, PlayOptions, PublishOptions, PublishTimes, Published, RtmpOptions,
    Timeouts, Workload, WorkloadError,
};
use weir_engine::fold::WorkloadFacts;
use weir_engine::lines::Part;
use weir_engine::plan::Plan;
use weir_engine::run::Prepared;
use weir_engine::scenario::{BitRateText, Scenario, ScenarioError, Span, StageSpec, WorkloadSpec};
use weir_engine::summary::{Role, RunFacts};
use weir_observe::{Environment, Observer};
use weir_shard::clock;

/// Descriptors that weir needs beside those of its clients.
pub(crate) const OWN_DESCRIPTORS: u64 = 128;

/// Memory that a client takes at the least: a TCP socket of the kernel has about 2.5 KiB and a client's own state as much.
const LEAST_MEMORY: u64 = 4 << 10;

/// The variable with `user:password` for HTTP; it is in no list of processes, as a URL of the command line is.
const HTTP_CREDENTIALS: &str = "WEIR_HTTP_CREDENTIALS";

/// What is published when nothing is said.
const DEFAULT_BIT_RATE: weir_metrics::BitRate = weir_metrics::BitRate::from_bps(500e3);

/// Makes a scenario ready to run. What is wrong with it ends with `wrong`: usage for flags, bad
/// scenario for files.
pub(crate) fn prepare(mut scenario: Scenario, wrong: Exit) -> Result<Prepared, Failure> {
    check_numbers(&scenario, wrong)?;
    // Before anything is asked of a server: a plan that cannot be needs none.
    plan(&scenario, wrong)?;
    for (position, spec) in scenario.workloads.iter().enumerate() {
        let checked =
            check_times(spec).and_then(|()| check_services(spec)).and_then(|()| check_foreign(spec));
        checked.map_err(|words| {
            Failure::new(wrong, format!("workload '{}': {words}", spec.label())).of(Part::Workload(position))
        })?;
    }
    check_authorities(&scenario).map_err(Failure::with(wrong))?;
    let mut numbers = KeyNumbers::new(scenario.show_keys);
    let published = Arc::default();
    let times: Arc<PublishTimes> = Arc::default();
    let meeting = Meeting {
        published: &published,
        times: scenario.workloads.iter().any(WorkloadSpec::saves).then_some(&times),
    };
    let workloads = scenario
        .workloads
        .iter()
        .enumerate()
        .map(|(position, spec)| {
            let made = workload(spec, &scenario, meeting, &mut numbers, wrong);
            made.map_err(|failure| failure.of(Part::Workload(position)))
        })
        .collect::<Result<Vec<_>, Failure>>()?;
    for (spec, (_, workload)) in scenario.workloads.iter_mut().zip(&workloads) {
        if discovers(spec) && spec.clients.is_none() && spec.stages.is_empty() {
            // One reader a service: the server has said how many there are.
            spec.clients = Some(workload.targets().len() as u32);
        }
    }
    let mut workloads = workloads;
    scenario = scenario.with_background().map_err(Failure::with(wrong))?;
    for spec in &scenario.workloads[workloads.len()..] {
        workloads.push(workload(spec, &scenario, meeting, &mut numbers, wrong)?);
    }
    let plan = plan(&scenario, wrong)?;
    check_limits(&plan)?;
    let consuming = consumer::consuming(&scenario, &plan, times.clone()).map_err(Failure::with(wrong))?;
    check_sources(&scenario.bind_addr, &workloads).map_err(Failure::with(wrong))?;
    let schemas: Vec<_> = workloads.iter().map(|(_, workload)| workload.schema()).collect();
    let thresholds = scenario.thresholds.iter().enumerate().map(|(at, it)| (Part::Threshold(at), it));
    let aborts = scenario.abort.iter().enumerate().map(|(at, it)| (Part::Abort(at), it));
    for (part, threshold) in thresholds.chain(aborts) {
        threshold.check(&schemas).map_err(|error| Failure::with(wrong)(error).of(part))?;
    }
    let watches = scenario.watch.iter().enumerate().map(|(at, text)| {
        text.parse()
            .map_err(|error: weir_observe::WatchError| Failure::with(wrong)(error).of(Part::Watch(at)))
    });
    let watches = watches.collect::<Result<Vec<_>, Failure>>()?;
    let doors = workloads.iter().flat_map(|(_, workload)| {
        (0..).zip(workload.targets()).map(|(client, _)| workload.door(client).address)
    });
    let doors: Vec<SocketAddr> = doors.collect();
    let addresses: Vec<IpAddr> = doors.iter().map(SocketAddr::ip).collect();
    let ports = doors.iter().filter(|door| machine::is_here(&door.ip())).map(SocketAddr::port).collect();
    let mut observer = Observer::of_load(watches, &ports).map_err(Failure::with(Exit::Usage))?;
    let targets = observer.describe_targets();
    let about = plan.about.unwrap_or(plan.length);
    let machines = machine::watch(&mut observer, &scenario, &addresses, about, wrong)?;
    let facts = RunFacts {
        name: scenario.name.clone(),
        id: String::new(),
        started_at_seconds: clock::wall_nanos() as f64 * 1e-9,
        duration_seconds: 0.0,
        weir_version: env!("CARGO_PKG_VERSION").to_owned(),
        seed: scenario.seed,
        tags: scenario.tags.clone(),
        environment: Environment::read(),
        targets,
        servers: workloads.iter().flat_map(|(_, workload)| workload.servers()).cloned().collect(),
        machines,
        base_seconds: scenario.base().as_secs_f64(),
    };
    Ok(Prepared { scenario, plan, workloads, consuming, observer, facts })
}

/// The plan of a scenario.
///
/// # Errors
/// There is none, of which workload the failure knows.
pub(crate) fn plan(scenario: &Scenario, wrong: Exit) -> Result<Plan, Failure> {
    scenario.plan().map_err(|error| of_scenario(&error, scenario, wrong))
}

fn of_scenario(error: &ScenarioError, scenario: &Scenario, wrong: Exit) -> Failure {
    let failure = Failure::new(wrong, error.to_string());
    match error.workload(scenario) {
        Some(position) => failure.of(Part::Workload(position)),
        None => failure,
    }
}

/// Where publishers and who takes their messages meet.
#[derive(Clone, Copy)]
struct Meeting<'a> {
    published: &'a Arc<Published>,
    /// If messages are saved.
    times: Option<&'a Arc<PublishTimes>>,
}

fn workload(
    spec: &WorkloadSpec,
    scenario: &Scenario,
    meeting: Meeting<'_>,
    numbers: &mut KeyNumbers,
    wrong: Exit,
) -> Result<(WorkloadFacts, Box<dyn Workload>), Failure> {
    let (role, urls) = spec.verb().map_err(Failure::with(wrong))?;
    if spec.saves() {
        return Ok(consumer::workload(spec));
    }
    weir_clients::check_templates(urls, spec.streams).map_err(Failure::with(wrong))?;
    let tls = Asked::by(scenario).client_tls().map_err(Failure::with(wrong))?;
    let timeouts = Timeouts::all(spec.timeout.as_ref().map_or(Duration::from_secs(10), Span::get));
    let streams = spec.streams.unwrap_or(1);
    let rtmp = RtmpOptions { digest_handshake: spec.digest_handshake };
    let mqtt =
        mqtt::options(&spec.mqtt.clone().unwrap_or_default(), scenario.seed).map_err(Failure::with(wrong))?;
    // A tenth of the drain is left for the goodbye.
    let mqtt = MqttOptions {
        linger: scenario.drain().mul_f64(0.9),
        published: Some(Arc::clone(meeting.published)),
        times: meeting.times.filter(|_| !spec.background).cloned(),
        ..mqtt
    };
    let rtc = rtc::options(&spec.rtc.clone().unwrap_or_default()).map_err(Failure::with(wrong))?;
    let bulk = bulk(spec).map_err(Failure::with(wrong))?;
    let (made, frame_time) = match role {
        Role::Play => {
            let http = HttpOptions { credentials: http_credentials(), ..HttpOptions::default() };
            let mirakurun = mirakurun(spec);
            let mut options = PlayOptions {
                streams,
                timeouts,
                tls,
                rtmp,
                http,
                mirakurun,
                mqtt,
                rtc,
                bulk,
                ..PlayOptions::default()
            };
            options.witness_every = spec.witness_every.unwrap_or(options.witness_every);
            options.playout_buffer = spec.buffer.as_ref().map_or(options.playout_buffer, Span::get);
            (weir_clients::play(urls, &options), None)
        }
        Role::Publish | Role::Ingest => {
            let (material, frame_time) = material(spec, scenario.seed).map_err(Failure::with(wrong))?;
            let stamp = !spec.no_stamp;
            let options = PublishOptions {
                streams,
                timeouts,
                tls,
                material,
                stamp,
                rtmp,
                mqtt,
                rtc,
                bulk,
                ..PublishOptions::default()
            };
            (weir_clients::publish(urls, &options), frame_time.filter(|_| !sends_no_frames(urls)))
        }
    };
    let made = made.map_err(|error| match &error {
        WorkloadError::Discovery(cause) if cause.is_of_server() => {
            Failure::new(Exit::TargetDied, error.to_string())
        }
        _ => Failure::new(wrong, error.to_string()),
    })?;
    let facts = WorkloadFacts {
        name: spec.label(),
        role,
        protocol: made.targets().first().map_or_else(String::new, |target| target.scheme.clone()),
        targets: made.targets().iter().map(|target| target.named(numbers)).collect(),
        expect: expected(spec, role, scenario.seed),
        frame_time_seconds: frame_time,
        timeout_seconds: timeouts.media.as_secs_f64(),
        background: spec.background,
    };
    Ok((facts, made))
}

/// What a workload says of bulk streams.
fn bulk(spec: &WorkloadSpec) -> Result<BulkOptions, String> {
    let Some(block) = &spec.block else { return Ok(BulkOptions::default()) };
    let block = u32::try_from(block.get()).ok().filter(|it| (1..=BulkOptions::LARGEST_BLOCK).contains(it));
    let block = block.ok_or_else(|| format!("workload '{}': a block has 1B to 1MiB", spec.label()))?;
    Ok(BulkOptions { block })
}

/// Whether what is published has no frames, and so no pace of its own.
fn sends_no_frames(urls: &[String]) -> bool {
    mqtt::speaks(urls) || urls.iter().any(|url| url.starts_with("bulk:"))
}

/// Which services of a Mirakurun or mirakc server, if it is one.
fn mirakurun(spec: &WorkloadSpec) -> MirakurunOptions {
    MirakurunOptions {
        services: spec.services,
        named: spec.service.0.clone(),
        types: spec.channel_type.0.clone(),
        no_decode: spec.no_decode,
        priority: spec.priority,
        pre_filters: spec.pre_filters.0.clone(),
        post_filters: spec.post_filters.0.clone(),
    }
}

/// Whether a workload asks its server what there is to play.
fn discovers(spec: &WorkloadSpec) -> bool {
    spec.play.0.iter().any(|url| url.starts_with("mirakurun+"))
}

/// What only a server that is asked for its services understands.
fn check_services(spec: &WorkloadSpec) -> Result<(), String> {
    if discovers(spec) || mirakurun(spec) == MirakurunOptions::default() {
        return Ok(());
    }
    Err("services, channel types, decoding, priority and filters are for mirakurun+http:// URLs; \
         write mirakurun+http://HOST:PORT, or leave them out"
        .to_owned())
}

/// Streams that are played elsewhere than they are published cannot be verified by the URL alone.
pub(crate) fn can_be_verified(urls: &[String]) -> bool {
    urls.iter().all(|url| weir_clients::shown_of(url, true).next().is_some())
}

/// Files and credentials of which a workload's protocol makes nothing: whoever names one believes it to be in use.
fn check_foreign(spec: &WorkloadSpec) -> Result<(), String> {
    let Ok((role, urls)) = spec.verb() else { return Ok(()) };
    let scheme = urls.first().and_then(|url| url.split_once("://")).map_or("", |(scheme, _)| scheme);
    if spec.into.is_some() && !spec.saves() {
        return Err("`into` is of `ingest` and `probe`; leave it out".to_owned());
    }
    let mqtt = spec.mqtt.as_ref().filter(|_| !mqtt::speaks(urls));
    let rtc = spec.rtc.as_ref().filter(|_| !rtc::speaks(urls));
    let no_media = role == Role::Play || sends_no_frames(urls);
    let payload = mqtt.and_then(|it| it.payload.as_deref()).is_some_and(mqtt::names_a_file);
    for (is_given, what, whose) in [
        (mqtt.is_some_and(|it| it.user.is_some()), "--user (`user`)", "MQTT"),
        (mqtt.is_some_and(|it| it.password_file.is_some()), "--password-file (`password_file`)", "MQTT"),
        (payload, "--payload (`payload`)", "MQTT"),
        (rtc.is_some_and(|it| it.token_file.is_some()), "--token-file (`token_file`)", "WebRTC"),
        (spec.file.is_some() && no_media, "--file (`file`)", "publishing frames"),
    ] {
        if is_given {
            return Err(format!("{what} is of {whose} and means nothing to {scheme}://; leave it out"));
        }
    }
    Ok(())
}

/// Certificates that no URL asks for: whoever names some believes them to be in use.
fn check_authorities(scenario: &Scenario) -> Result<(), String> {
    // HTTP may be redirected to HTTPS.
    let never_secure = ["rtmp", "mqtt", "ws", "bulk"];
    let urls =
        scenario.workloads.iter().flat_map(|it| it.play.0.iter().chain(&it.publish.0).chain(&it.ingest.0));
    let mut plain =
        urls.map(|url| never_secure.iter().any(|scheme| url.starts_with(&format!("{scheme}://"))));
    let mut machines = scenario.prometheus.iter().chain(&scenario.node_exporter);
    if scenario.cacert.is_some() && plain.all(|it| it) && !machines.any(|url| url.starts_with("https:")) {
        return Err("--cacert (`cacert`) is of TLS, and no URL is; leave it out, or write rtmps://, mqtts:// or wss://".to_owned());
    }
    Ok(())
}

/// Times of nothing, in which nothing can happen.
fn check_times(spec: &WorkloadSpec) -> Result<(), String> {
    let none = |span: &Option<Span>| span.as_ref().is_some_and(|span| span.get().is_zero());
    if none(&spec.timeout) {
        return Err("a timeout of 0s fails every client; give for example 10s".to_owned());
    }
    if none(&spec.gop) {
        return Err("a gop of 0s has no keyframe to begin with; give for example 2s".to_owned());
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
fn check_sources(sources: &[IpAddr], workloads: &[(WorkloadFacts, Box<dyn Workload>)]) -> Result<(), String> {
    for source in sources {
        for (_, workload) in workloads {
            let target = (0..).zip(workload.targets()).find_map(|(client, target)| {
                let address = workload.door(client).address;
                (address.is_ipv4() != source.is_ipv4()).then(|| format!("{target} is {}", address.ip()))
            });
            if let Some(target) = target {
                return Err(format!(
                    "--bind-addr {source}: no connection leads from there to {target}; give addresses of the target's family"
                ));
            }
        }
        UdpSocket::bind((*source, 0)).map_err(|error| {
            format!(
                "--bind-addr {source}: {error}; give an address of this machine (`ip address` lists them)"
            )
        })?;
    }
    Ok(())
}

/// User and password of the environment.
fn http_credentials() -> Option<Credentials> {
    let text = std::env::var(HTTP_CREDENTIALS).ok().filter(|text| !text.is_empty())?;
    Some(Credentials::parse(&text))
}

/// What each client's source sends, where that is said: to viewers by the scenario, by publishers
/// of made material by its bit rate.
fn expected(spec: &WorkloadSpec, role: Role, seed: u64) -> Option<weir_metrics::BitRate> {
    let made = match role {
        Role::Publish if mqtt::speaks(&spec.publish.0) => {
            mqtt::bit_rate(&spec.mqtt.clone().unwrap_or_default(), seed)
        }
        Role::Publish if spec.file.is_none() && !sends_no_frames(&spec.publish.0) => {
            spec.bitrate.as_ref().map_or(Some(DEFAULT_BIT_RATE), |rate| Some(rate.get()))
        }
        Role::Publish | Role::Play | Role::Ingest => None,
    };
    spec.expect.as_ref().map(BitRateText::get).or(made)
}

/// What a publisher sends, and the time between two of its frames where that is known.
fn material(spec: &WorkloadSpec, seed: u64) -> Result<(MaterialOptions, Option<f64>), String> {
    if let Some(file) = &spec.file {
        return Ok((MaterialOptions::File(file.clone()), None));
    }
    let bits = |bps: f64| weir_clients::BitRate::from_bps(bps as u64);
    let frame_rate: FrameRate =
        spec.fps.as_deref().unwrap_or("25").parse().map_err(|error| format!("fps: {error}"))?;
    let audio_bit_rate = match spec.audio_bitrate.as_deref().unwrap_or("64kbps") {
        "0" => None,
        text => Some(bits(text.parse::<weir_metrics::BitRate>().map_err(|error| error.to_string())?.bps())),
    };
    let audio_codec = spec.audio_codec.as_deref().map_or(Ok(AudioCodec::Aac), str::parse);
    let audio_codec =
        audio_codec.map_err(|error: weir_clients::UnknownAudioCodec| format!("audio_codec: {error}"))?;
    let size = spec.size.as_deref().unwrap_or("640x360");
    let resolution = size
        .split_once('x')
        .and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)))
        .ok_or_else(|| format!("'{size}' is not a picture size; write for example 1280x720"))?;
    let material = MaterialOptions::Synthetic {
        bit_rate: bits(spec.bitrate.as_ref().map_or(DEFAULT_BIT_RATE, BitRateText::get).bps()),
        frame_rate,
        gop: spec.gop.as_ref().map_or(Duration::from_secs(2), Span::get),
        resolution,
        audio_bit_rate,
        audio_codec,
        seed,
    };
    Ok((material, Some(1.0 / frame_rate.as_f64())))
}

/// Refuses what this machine cannot hold before a plan of it is made, which has a line for every client.
fn check_numbers(scenario: &Scenario, wrong: Exit) -> Result<(), Failure> {
    let schedules = scenario.schedules().map_err(|error| of_scenario(&error, scenario, wrong))?;
    let clients = schedules.iter().flat_map(|schedule| &schedule.stages).map(|stage| stage.clients);
    let clients = clients.max().map_or(0, u64::from);
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
        return Err(Failure::new(wrong, line));
    }
    refuse_descriptors(clients + OWN_DESCRIPTORS)
}

/// Bytes of this machine's memory.
fn memory() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram.saturating_mul(info.mem_unit.into())
}

/// Raises the descriptor limit as far as it goes and refuses a plan that would not fit: better than
/// booking this machine's failures.
fn check_limits(plan: &Plan) -> Result<(), Failure> {
    refuse_descriptors(most_at_once(plan) + OWN_DESCRIPTORS)
}

fn refuse_descriptors(needed: u64) -> Result<(), Failure> {
    let limit = raise_descriptors();
    if needed > limit {
        let line = format!(
            "{needed} descriptors are needed and {limit} are allowed; raise the hard limit (`ulimit -Hn`, LimitNOFILE=) or use fewer clients"
        );
        return Err(Failure::new(Exit::Usage, line));
    }
    Ok(())
}

/// The soft limit of open files after raising it to the hard one.
pub(crate) fn raise_descriptors() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum.unwrap_or(u64::MAX),
        Err(_) => limit.current.unwrap_or(u64::MAX),
    }
}

/// The highest number of clients that the plan holds at one time.
fn most_at_once(plan: &Plan) -> u64 {
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
