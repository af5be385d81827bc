//! `weir agent`: waits for work, and runs the part of a plan that it is given.

use super::permits::Permits;
use super::{of_nats, offer};
use crate::generators::Generators;
use crate::prepare;
use crate::run::{self, run_here};
use crate::{ErrorKind, RunError};
use ipnet::IpNet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use weir_agents::frame::{AgentName, Hello, Offer, Watched};
use weir_agents::nats::Link;
use weir_agents::{Agent, AgentCommand, AgentEvent, NatsError, NatsServer, connect};
use weir_clients::{follow_wall_clock, forbid_decoding};
use weir_engine::agents::{AgentEnd, AgentRun, Load, SecondLines};
use weir_engine::ingest::{ConsumerError, Consuming, IngestStage};
use weir_engine::plan::Segment;
use weir_engine::record;
use weir_engine::record::kernel_clock::KernelClock;
use weir_engine::run::{Prepared, Unseen};
use weir_ingest::working_stores;
use weir_metrics::Moment;
use weir_observe::{Environment, Sampler, TargetEnvironment, Watch};
use weir_setting::{RESOLVE, WATCH};
use weir_shard::clock;

const TICK: Duration = Duration::from_millis(50);
const HALF_A_SECOND: Duration = Duration::from_millis(500);
/// Time between two looks at the kernel's clock.
const CLOCK_EVERY: Duration = Duration::from_secs(1);
/// Time between two attempts to find NATS.
const RETRY: Duration = Duration::from_secs(1);
/// How long the coordinator may take to say that it has all: as long as it is waited for when it is gone, and a little.
const KEPT_WITHIN: Duration = Duration::from_secs(35);
/// Threads of watched processes, at the most: those of 5,000 are half a megabyte each second.
const MOST_THREADS: usize = 5_000;
/// Folder of run directories by default.
const PARENT: &str = "weir-runs";

/// An agent: where it waits, and what its owner lets it do.
#[derive(Clone, Debug)]
pub struct AgentService {
    /// The NATS server at which it waits for work.
    pub server: NatsServer,
    /// What it is called; the host's name and a number if `None`.
    pub name: Option<AgentName>,
    /// Labels that it carries.
    pub labels: Vec<(String, String)>,
    /// Networks that it may load; this machine alone if there are none.
    pub only: Vec<IpNet>,
    /// What it reads through every run, if it makes no load.
    pub watch: Vec<Watch>,
    /// Clients that it may be given.
    pub most: Option<u32>,
    /// Whether it may run ffmpeg, which parses what a server sends.
    pub allow_decode: bool,
    /// Local addresses to connect from.
    pub bind_addr: Vec<IpAddr>,
    /// Folder of the run directories that it keeps.
    pub output: Option<PathBuf>,
    /// Takes a line for its owner.
    pub say: fn(&str),
}

/// Waits for work until it is interrupted.
///
/// # Errors
/// The NATS server refuses it, or is gone for good.
pub fn serve(args: &AgentService, interrupt: Arc<AtomicBool>) -> Result<(), RunError> {
    let say = args.say;
    let environment = Environment::read();
    let hostname = environment.hostname.clone();
    let permits = Permits::new(&args.only, args.most);
    permits.restrict();
    if !args.allow_decode {
        forbid_decoding();
    }
    let name = args.name.clone().unwrap_or_else(|| own_name(&hostname));
    let hello = Hello {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        figures: offer::figures(),
        hostname,
        cores: std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32),
        descriptors: prepare::raise_descriptors(),
        ports: ports(&environment, args.bind_addr.len()),
        labels: args.labels.iter().cloned().collect(),
        most: args.most,
        only: permits.only(),
        watches: args.watch.iter().map(ToString::to_string).collect(),
        clock: KernelClock::read(),
        is_busy: false,
    };
    hello.check(&name).map_err(|words| RunError::new(ErrorKind::Usage, words))?;
    let mut said = false;
    let link = loop {
        let machine = Agent::new(name.clone(), fastrand::u64(..), hello.clone());
        match connect(&args.server, machine) {
            Ok(link) => break link,
            Err(error @ NatsError::Unreachable { .. }) if !interrupt.load(Relaxed) => {
                if !std::mem::replace(&mut said, true) {
                    say(&format!("{error} Trying again every second."));
                }
                std::thread::sleep(RETRY);
            }
            Err(_) if interrupt.load(Relaxed) => return Ok(()),
            Err(error) => return Err(of_nats(&error)),
        }
    };
    let what = if args.watch.is_empty() { "waits for work" } else { "watches, and waits for runs" };
    say(&format!("agent {name} {what}; Ctrl-C ends it"));
    let mut worker = Worker { name, args, permits, link, interrupt };
    let (mut clock, mut is_free) = (ClockReader::default(), true);
    while !worker.interrupt.load(Relaxed) {
        clock.tell(&worker.link);
        // A store that was left behind may still save what it was given.
        if !is_free && working_stores() == 0 {
            is_free = true;
            worker.link.send(AgentCommand::Free);
        }
        match worker.link.event(TICK) {
            Ok(AgentEvent::Offered(offer)) => {
                is_free = false;
                if args.watch.is_empty() { worker.work(&offer) } else { worker.watch(&offer) }
            }
            Ok(AgentEvent::Connected(is_up)) if !is_up => say("NATS is gone; waiting for it"),
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(RunError::new(ErrorKind::Internal, worker.link.end()));
            }
        }
    }
    Ok(())
}

/// Local ports of this machine, on this many addresses.
fn ports(environment: &Environment, addresses: usize) -> Option<u64> {
    let range = environment.sysctls.iter().find(|it| it.name == "net.ipv4.ip_local_port_range")?;
    let mut ends = range.value.split_whitespace().map_while(|it| it.parse::<u64>().ok());
    let (first, last) = (ends.next()?, ends.next()?);
    Some((last + 1).saturating_sub(first) * addresses.max(1) as u64)
}

/// The host's name, and a number, since several agents may run on it.
fn own_name(hostname: &str) -> AgentName {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' };
    let host: String = hostname.split('.').next().unwrap_or_default().chars().map(plain).take(50).collect();
    let number = std::process::id();
    format!("{host}-{number}")
        .parse()
        .unwrap_or_else(|_| format!("agent-{number}").parse().expect("a plain name"))
}

/// Has the machine's clock asked for its state once a second.
#[derive(Default)]
struct ClockReader(Option<Instant>);

impl ClockReader {
    fn tell(&mut self, link: &Link<Agent>) {
        if self.0.is_none_or(|last| last.elapsed() >= CLOCK_EVERY) {
            self.0 = Some(Instant::now());
            KernelClock::read().into_iter().for_each(|clock| link.send(AgentCommand::Clock(clock)));
        }
    }
}

struct Worker<'a> {
    name: AgentName,
    args: &'a AgentService,
    permits: Permits,
    link: Link<Agent>,
    interrupt: Arc<AtomicBool>,
}

impl Worker<'_> {
    fn say(&self, line: &str) {
        (self.args.say)(line);
    }

    /// Runs what is offered, or refuses it.
    fn work(&mut self, offer: &Offer) {
        // The files that came with it, for as long as it runs.
        let folder = tempfile::tempdir().map_err(|error| error.to_string());
        let made = folder.and_then(|folder| Ok((self.ready(offer, folder.path())?, folder)));
        let ((mut prepared, segment), _folder) = match made {
            Ok(made) => made,
            Err(words) => return self.refuse(&words),
        };
        // Ingesters are subscribed before anybody publishes.
        if let Some(consuming) = prepared.consuming.take() {
            match self.ready_to_consume(consuming) {
                Ok(Some(ready)) => prepared.consuming = Some(ready),
                Ok(None) if self.interrupt.load(Relaxed) => return self.refuse("its owner has ended it"),
                Ok(None) => return self.say("the coordinator has let it go"),
                Err(error) => return self.refuse(&error.to_string()),
            }
        }
        self.link.send(AgentCommand::Accept);
        let Some(origin) = self.wait_for_begin() else { return };
        let end = self.run(prepared, segment, origin);
        self.link.send(AgentCommand::Ended(end));
        self.wait_until_kept();
    }

    /// Has the consumer made, for as long as its owner and the coordinator wait for it.
    fn ready_to_consume(&self, consuming: Consuming) -> Result<Option<Consuming>, ConsumerError> {
        let halt = Arc::new(AtomicBool::new(false));
        let (making, asked) = (halt.clone(), &self.link);
        std::thread::scope(|scope| {
            let made = scope.spawn(move || consuming.ready(&making));
            while !made.is_finished() {
                let is_over = match asked.event(TICK) {
                    Ok(AgentEvent::Over { .. } | AgentEvent::Stop(_)) => true,
                    Err(RecvTimeoutError::Disconnected) => true,
                    Ok(_) | Err(RecvTimeoutError::Timeout) => self.interrupt.load(Relaxed),
                };
                if is_over {
                    halt.store(true, Relaxed);
                }
            }
            let made = made.join().unwrap_or_else(|_| {
                let words = "the thread that makes the consumer has panicked; please report this";
                Err(ConsumerError::new(IngestStage::Ingest, words))
            });
            // One that is ready all the same is ready for a run that is gone.
            if halt.load(Relaxed) { Ok(None) } else { made }
        })
    }

    /// Will not go on, and says why to its owner and to the coordinator.
    fn refuse(&self, words: &str) {
        self.say(&format!("refused: {words}"));
        self.link.send(AgentCommand::Refuse(words.to_owned()));
    }

    /// Reads the watched processes until the run is over, in the middle of each of its seconds: what was read is there when the
    /// coordinator takes its own sample.
    fn watch(&self, offer: &Offer) {
        let sampler = check_version(offer).and_then(|()| match offer.segment {
            Some(_) => Err("it watches, and makes no load".to_owned()),
            None => Sampler::new(self.args.watch.iter().cloned()).map_err(|error| error.to_string()),
        });
        let mut sampler = match sampler {
            Ok(sampler) => sampler,
            Err(words) => return self.refuse(&words),
        };
        self.link.send(AgentCommand::Watch);
        let described = sampler.describe_targets().into_iter().map(without_arguments);
        let (mut described, mut first, mut next) = (described.collect::<Vec<_>>(), None, clock::now());
        loop {
            match self.link.event(next.since(clock::now()).min(TICK)) {
                Ok(AgentEvent::Begin(origin)) => {
                    described.clear();
                    first = Some(origin - HALF_A_SECOND);
                }
                Ok(AgentEvent::Over { .. } | AgentEvent::Stop(_)) | Err(RecvTimeoutError::Disconnected) => {
                    return self.say("over");
                }
                Ok(AgentEvent::TooLarge(bytes)) => return self.refuse(&not_sent(bytes)),
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            }
            if self.interrupt.load(Relaxed) {
                return self.link.send(AgentCommand::Refuse("its owner has ended it".to_owned()));
            }
            let at = clock::now();
            if at < next {
                continue;
            }
            let sample = sampler.sample(at.as_nanos());
            let threads = sample.targets.iter().map(|it| it.process.threads.len()).sum::<usize>();
            if threads > MOST_THREADS {
                return self.refuse(&format!(
                    "what it watches has {threads} threads, and {MOST_THREADS} are the most; watch fewer processes, for example with {}",
                    WATCH.to("pid=N")
                ));
            }
            let watched = Watched { targets: sample.targets, described: described.clone() };
            let uptime_seconds = sample.host.uptime_seconds;
            self.link.send(AgentCommand::Watched { watched, uptime_seconds, at });
            next = match first {
                Some(first) if first <= at => first + Duration::from_secs(at.since(first).as_secs() + 1),
                _ => at + HALF_A_SECOND / 2,
            };
        }
    }

    /// What is to be run, if this one can and may.
    fn ready(&self, offer: &Offer, folder: &Path) -> Result<(Prepared, Segment), String> {
        check_version(offer)?;
        if offer.figures != offer::figures() {
            return Err("it counts other figures than the coordinator, although both say the same version; install the same build".to_owned());
        }
        let segment =
            offer.segment.clone().filter(|it| it.index < it.of).ok_or("the offer has no part of a plan")?;
        let mut scenario = offer::scenario(offer, folder)?;
        self.permits.check_scenario(&scenario)?;
        scenario.bind_addr.clone_from(&self.args.bind_addr);
        let name = scenario.name.clone();
        let prepared = prepare::prepare(scenario, ErrorKind::Usage, &Generators::Part(segment.clone()));
        let prepared = prepared.map_err(|failure| failure.to_string())?;
        let found: Vec<_> = prepared.workloads.iter().map(|(facts, _)| facts.targets.clone()).collect();
        if found != offer.targets {
            return Err("it finds other streams at the URLs than the coordinator".to_owned());
        }
        if prepared.workloads.iter().map(|(facts, _)| &facts.servers).ne(&offer.servers) {
            return Err(format!(
                "the names of the URLs have other addresses here than at the coordinator; give an address, or {}",
                RESOLVE.to("first")
            ));
        }
        self.permits.check_workloads(&prepared.workloads)?;
        self.permits.check_clients(prepare::most_at_once(&prepared.plan))?;
        self.say(&format!("{name}: part {} of {}", segment.index + 1, segment.of));
        Ok((Prepared { slice_seconds: offer.slice_seconds, ..prepared }, segment))
    }

    fn wait_for_begin(&self) -> Option<Moment> {
        loop {
            match self.link.event(TICK) {
                Ok(AgentEvent::Begin(origin)) => return Some(origin),
                Ok(AgentEvent::WallAtZero(nanos)) => follow_wall_clock(nanos),
                Ok(AgentEvent::Over { .. } | AgentEvent::Stop(_)) | Err(RecvTimeoutError::Disconnected) => {
                    self.say("the coordinator has let it go");
                    return None;
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            }
            if self.interrupt.load(Relaxed) {
                self.link.send(AgentCommand::Refuse("its owner has ended it".to_owned()));
                return None;
            }
        }
    }

    fn run(&mut self, prepared: Prepared, segment: Segment, origin: Moment) -> AgentEnd {
        let cut_short = |words: String| AgentEnd::cut_short(&words);
        let parent = self.args.output.as_deref().unwrap_or(Path::new(PARENT));
        let at = clock::wall_nanos() / 1_000_000_000;
        let name = format!("{}-{}", self.name, prepared.scenario.name);
        let directory = match record::make_directory(parent, &name, at) {
            Ok(directory) => directory,
            Err(error) => return cut_short(error.to_string()),
        };
        let (seconds, lines) = channel();
        let load = Load::AsAgent(AgentRun { segment, origin, seconds });
        let prepared = Prepared { load, ..prepared };
        let stop = Arc::new(AtomicBool::new(false));
        self.link.send(AgentCommand::Begun(clock::now().since(origin)));
        let (link, interrupt, ended, say) = (&mut self.link, &*self.interrupt, &*stop, self.args.say);
        let (result, is_interrupted) = std::thread::scope(|scope| {
            let forward = scope.spawn(move || pass_on(link, &lines, ended, interrupt, say));
            let length = run::length(&prepared);
            let result = run_here(prepared, length, &directory, &stop, &mut Unseen);
            (result, forward.join().unwrap_or(false))
        });
        self.say(&format!("over; its own figures are in {}", directory.display()));
        match result {
            Ok(_) if is_interrupted => cut_short("its owner has ended it".to_owned()),
            Ok((summary, _)) => AgentEnd::of(&summary),
            Err(failure) => cut_short(failure.to_string()),
        }
    }

    /// The agent's own directory is whole; the coordinator may need parts of the run again.
    fn wait_until_kept(&self) {
        let began = Instant::now();
        while began.elapsed() < KEPT_WITHIN {
            match self.link.event(TICK) {
                Ok(AgentEvent::Over { is_kept: true }) => return,
                Ok(AgentEvent::Over { is_kept: false }) | Err(RecvTimeoutError::Disconnected) => {
                    return self.say("the coordinator is gone, and may not have all of it");
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

/// Refuses what another version has made.
fn check_version(offer: &Offer) -> Result<(), String> {
    let own = env!("CARGO_PKG_VERSION");
    if offer.version == own {
        return Ok(());
    }
    Err(format!("it runs weir {own}, and the coordinator {}; install the same version", offer.version))
}

/// What is said of a message that is too large.
fn not_sent(bytes: usize) -> String {
    format!("a message of {bytes} bytes is more than the NATS server's max_payload, and was not sent")
}

/// A description in which of the command line there is the program alone: arguments may be secrets that do not look like any, and
/// who may read what goes over NATS is for its server to say.
fn without_arguments(mut target: TargetEnvironment) -> TargetEnvironment {
    // Some servers write all of it into the first argument.
    let program = target.command_line.first().and_then(|it| it.split_whitespace().next()).map(str::to_owned);
    target.command_line = program.into_iter().collect();
    target
}

/// Hands on the seconds of a run, and ends it when that is said. Whether its owner has said so.
fn pass_on(
    link: &mut Link<Agent>,
    lines: &Receiver<SecondLines>,
    stop: &AtomicBool,
    interrupt: &AtomicBool,
    say: fn(&str),
) -> bool {
    let (mut is_interrupted, mut clock) = (false, ClockReader::default());
    loop {
        clock.tell(link);
        match lines.recv_timeout(TICK) {
            Ok(second) => link.send(AgentCommand::Second(second)),
            Err(RecvTimeoutError::Timeout) => {}
            // The run is over.
            Err(RecvTimeoutError::Disconnected) => return is_interrupted,
        }
        while let Ok(event) = link.event(Duration::ZERO) {
            match event {
                AgentEvent::Stop(why) => {
                    say(&format!("it ends its clients: {why}"));
                    stop.store(true, Relaxed);
                }
                AgentEvent::WallAtZero(nanos) => follow_wall_clock(nanos),
                AgentEvent::TooLarge(bytes) => say(&not_sent(bytes)),
                AgentEvent::Connected(false) => {
                    say("NATS is gone; it goes on, and keeps half a minute of figures");
                }
                _ => {}
            }
        }
        if interrupt.load(Relaxed) && !stop.swap(true, Relaxed) {
            is_interrupted = true;
        }
    }
}
