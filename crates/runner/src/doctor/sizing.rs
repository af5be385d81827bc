//! How many machines like this one a load needs, by what clients of its protocol cost here in some seconds.

use super::limits::{local_ports, number};
use super::loopback::{LoopbackRun, StepResults};
use super::{Consultation, interrupted};
use crate::origin_process::OriginProcess;
use crate::prepare::{OWN_DESCRIPTORS, raise_descriptors};
use crate::{ErrorKind, RunError};
use std::net::{IpAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_answers::sizing::{ClientCost, MachineLimits, Resource, Sizing, SizingPlan, SizingPlanError};
use weir_clients::{Link, TargetError, shown};
use weir_engine::{CORES_OF_A_VALID_RUN, LINK_WITHIN_REACH};
use weir_metrics::{BitRate, grouped, several};
use weir_observe::Environment;
use weir_protocols::{Given, PROTOCOLS, Protocol, ServedStream, StreamSource, Verb, is_udp, of_url};
use weir_setting::{BIND_ADDR, FOR, WITNESS_EVERY};

/// What is received together at first, in bits a second: over TCP a few percent of a core, of datagrams and of TLS, which cost more, less.
const FIRST_BPS: f64 = 250e6;
const FIRST_COSTLY_BPS: f64 = 50e6;
/// Viewers at the least and at the most, whatever their bit rate.
const VIEWERS: (u32, u32) = (16, 2_000);
/// The part of them of the step that theirs is compared with.
const FEW: u32 = 4;
/// CPU in percent of one core below which more viewers are tried: the kernel's ticks are a large part of less.
const TOO_LITTLE_PERCENT: f64 = 5.0;
/// How many more, and how often the number is changed.
const MORE: u32 = 4;
const ATTEMPTS: u32 = 3;
/// How long a step is held: 4 whole seconds of it or more are its window.
const HOLD: Duration = Duration::from_secs(6);
const RAMP: Duration = Duration::from_millis(500);
/// Share of the stream that has to arrive: in a window of 5 s a segment of HLS of 1 s more or less is a fifth.
const ENOUGH: f64 = 0.75;

/// A plan whose protocol can be measured.
struct Subject<'a> {
    plan: &'a SizingPlan,
    served: &'static ServedStream,
    protocol: &'static Protocol,
    is_tls: bool,
}

impl<'a> Subject<'a> {
    fn of(plan: &'a SizingPlan) -> Result<Self, RunError> {
        let wrong = |words: String| RunError::new(ErrorKind::Usage, format!("{FOR}: {words}"));
        let url = plan.url.reveal();
        let scheme = url.split("://").next().unwrap_or_default().to_ascii_lowercase();
        let known = || PROTOCOLS.iter().filter(|it| served(it).is_some()).map(|it| it.schemes[0].name);
        let Some(protocol) = of_url(url) else {
            return Err(wrong(TargetError::unknown_scheme(url, "size", scheme, known()).to_string()));
        };
        if host(url).is_empty() {
            return Err(wrong(TargetError::NoHost { url: shown(url) }.to_string()));
        }
        let Some(served) = served(protocol) else {
            let known: Vec<_> = known().map(|name| format!("{name}://")).collect();
            return Err(wrong(format!(
                "what clients of {scheme}:// cost is not measured here, only viewers of {}; see the page of costs, or try a tenth of it",
                known.join(", ")
            )));
        };
        let schemes = PROTOCOLS.iter().flat_map(|protocol| protocol.schemes);
        let is_tls = schemes.filter(|it| it.name == scheme).any(|it| it.link == Link::Tls);
        Ok(Self { plan, served, protocol, is_tls })
    }

    /// The scheme under which the origin says that it serves it.
    fn scheme(&self) -> &'static str {
        self.served.scheme(self.is_tls).unwrap_or_default()
    }

    /// Where the publisher publishes, by scheme.
    fn source_scheme(&self) -> Option<&'static str> {
        match self.served.source {
            StreamSource::Rtmp | StreamSource::RtmpWithOpus => {
                Some(if self.is_tls { "rtmps" } else { "rtmp" })
            }
            StreamSource::Srt => Some("srt"),
            StreamSource::Origin => None,
        }
    }

    /// Starts the origin.
    fn origin(&self, program: &Path, certificate: Option<&Certificate>) -> Result<OriginProcess, RunError> {
        let mut arguments: Vec<String> = Vec::new();
        // It listens for RTMP in any case.
        if let Some(serve) = self.protocol.serve.filter(|it| it.server.name != weir_origin::RTMP.name) {
            arguments.extend([format!("--{}", serve.server.name), "127.0.0.1:0".to_owned()]);
        }
        if self.served.source == StreamSource::Origin {
            let rate = format!("{}bps", self.plan.rate.whole_bps());
            arguments.extend(["--services", "1", "--bitrate", &rate].map(str::to_owned));
        }
        arguments.extend(self.served.arguments.iter().map(|it| (*it).to_owned()));
        if let Some(certificate) = certificate {
            let [chain, key] = certificate.files().map(|path| path.display().to_string());
            arguments.extend(["--cert".to_owned(), chain, "--key".to_owned(), key]);
        }
        let schemes: Vec<&str> = [Some(self.scheme()), self.source_scheme()].into_iter().flatten().collect();
        OriginProcess::start(program, &arguments, &schemes)
    }

    /// Viewers in two steps, all of them witnesses or as many as are by default.
    fn run(&self, origin: &OriginProcess, viewers: u32, witnesses: bool) -> LoopbackRun {
        let mut content = Given::default().with("bitrate", format!("{}bps", self.plan.rate.whole_bps()));
        if self.served.source != StreamSource::Srt {
            content = content.with("gop", "1s");
        }
        if self.served.source == StreamSource::RtmpWithOpus {
            content = content.with("audio_codec", "opus");
        }
        let publish = self.source_scheme().map(|scheme| {
            let place =
                if scheme == "srt" { "?streamid=#!::r=live/doctor,m=publish" } else { "/live/doctor" };
            (format!("{scheme}://{}{place}", origin.address(scheme)), content)
        });
        LoopbackRun {
            publish,
            play: format!("{}://{}{}", self.scheme(), origin.address(self.scheme()), self.served.place),
            viewers: if witnesses { all_witnesses() } else { Given::default() },
            delay: self.served.delay,
            steps: vec![(viewers / FEW).max(1), viewers],
            ramp: RAMP,
            hold: HOLD,
            watch: origin.watch(),
        }
    }

    /// Viewers to begin with.
    fn first_viewers(&self, most: u32) -> u32 {
        let costly = self.is_tls || is_udp(self.plan.url.reveal()) || self.served.is_costly;
        let bps = if costly { FIRST_COSTLY_BPS } else { FIRST_BPS };
        let viewers = (bps / self.plan.rate.bps()).min(f64::from(VIEWERS.1)) as u32;
        viewers.max(VIEWERS.0).min(most)
    }

    /// Whether some of its viewers read at every event and others do not.
    fn has_witnesses(&self) -> bool {
        self.protocol.check(Verb::Play, &all_witnesses()).is_ok()
    }
}

/// How the origin serves viewers of a protocol, if it is measured what they cost.
fn served(protocol: &'static Protocol) -> Option<&'static ServedStream> {
    protocol.play.as_ref()?.served.as_ref()
}

/// Options by which every viewer is a witness.
fn all_witnesses() -> Given {
    Given::default().with("witness_every", "1")
}

/// What was measured.
struct ViewerCost {
    cost: ClientCost,
    viewers: u32,
    /// How long the step of all viewers was looked at.
    seconds: f64,
}

/// A load as it is written, whose clients can be measured.
///
/// # Errors
/// It is no plan, or of a protocol that is not measured.
pub fn plan(text: &str) -> Result<SizingPlan, RunError> {
    let plan: SizingPlan = text
        .parse()
        .map_err(|error: SizingPlanError| RunError::new(ErrorKind::Usage, format!("{FOR}: {error}")))?;
    Subject::of(&plan)?;
    Ok(plan)
}

/// Says how many machines like this one a load needs. The kind of what was missed, if it could not be measured.
///
/// # Errors
/// The plan cannot be measured, or was interrupted.
pub fn size(plan: &SizingPlan, consultation: Consultation<'_>) -> Result<Option<ErrorKind>, RunError> {
    let Consultation { program, interrupt, say } = consultation;
    let subject = Subject::of(plan)?;
    let place = TargetRoute::of(plan);
    let descriptors = raise_descriptors().saturating_sub(OWN_DESCRIPTORS);
    let certificate = subject.is_tls.then(Certificate::new).transpose()?;
    let origin = subject.origin(program, certificate.as_ref())?;
    // Viewers of some protocols have two sockets.
    let most = u32::try_from(descriptors / 2).unwrap_or(u32::MAX).max(1);
    let first = subject.first_viewers(most);
    say(&format!("measuring viewers of weir's own origin over loopback, {} each; some seconds:", plan.rate))?;
    let crowd = match measure(&subject, &origin, first, false, most, interrupt)? {
        Ok(found) => found,
        Err(fault) => {
            say(&format!("  not known: {fault}"))?;
            return Ok(Some(ErrorKind::Invalid));
        }
    };
    let environment = Environment::read();
    let machine = place.limits(&environment, descriptors);
    for line in answer(plan, &crowd, &machine, &place.describe(&machine)) {
        say(&line)?;
    }
    if subject.has_witnesses() {
        let fewer = (crowd.viewers / 2).max(VIEWERS.0.min(most));
        let line = match measure(&subject, &origin, fewer, true, fewer, interrupt)? {
            Ok(witnesses) => {
                let sizing = Sizing::of(plan.clients, &witnesses.cost, &machine);
                format!(
                    "If each viewer were a witness ({}): {} ms of CPU a viewer-second, {}.",
                    WITNESS_EVERY.to("1"),
                    milliseconds(&witnesses.cost),
                    machines(&sizing)
                )
            }
            Err(fault) => format!("What witnesses cost is not known: {fault}"),
        };
        say(&line)?;
    }
    for line in CAVEATS {
        say(line)?;
    }
    Ok(None)
}

/// What the answer is not.
const CAVEATS: [&str; 3] = [
    "An estimate. The CPU is weir's own: over a network the kernel receives in softirqs, which no process is charged for, and drivers cost",
    "more than loopback. The origin shares this machine, other machines are other, and a server may send in smaller pieces. Run a tenth of",
    "the load from one machine before the rest is rented: its report has the generator's CPU.",
];

/// More viewers while they cost too little to be told from nothing, fewer while this machine does not carry them; why it is not known,
/// if it is not.
fn measure(
    subject: &Subject<'_>,
    origin: &OriginProcess,
    first: u32,
    witnesses: bool,
    most: u32,
    interrupt: &Arc<AtomicBool>,
) -> Result<Result<ViewerCost, String>, RunError> {
    let mut viewers = first;
    let mut known = None;
    let mut fault = "no step was measured".to_owned();
    for _ in 0..ATTEMPTS {
        if interrupt.load(Ordering::Relaxed) {
            return Err(interrupted());
        }
        let measured = subject.run(origin, viewers, witnesses).measure(interrupt)?;
        match found(&measured, subject.plan.rate, viewers) {
            Ok((found, cpu_percent)) => {
                let more = viewers.saturating_mul(MORE).min(most).min(VIEWERS.1);
                known = Some(found);
                if cpu_percent >= TOO_LITTLE_PERCENT || more <= viewers {
                    break;
                }
                viewers = more;
            }
            // What fewer viewers have shown is known.
            Err(_) if known.is_some() => break,
            Err(words) => {
                fault = words;
                viewers = (viewers / 2).max(1);
            }
        }
    }
    Ok(known.ok_or(fault))
}

/// The cost of a viewer by two steps, and what weir used in the second, in percent of one core.
fn found(measured: &StepResults, rate: BitRate, viewers: u32) -> Result<(ViewerCost, f64), String> {
    let [few, many] = &measured.steps[..] else { return Err("a step is missing".to_owned()) };
    if let Some(fault) = measured.fault(many, ENOUGH) {
        return Err(fault);
    }
    let cost = ClientCost::between(few, many, rate);
    let cost = cost.ok_or_else(|| "too few viewers played to tell what one costs".to_owned())?;
    let used = many.generator.as_ref().map_or(0.0, |generator| generator.cpu_percent);
    Ok((ViewerCost { cost, viewers, seconds: many.window_seconds() }, used))
}

/// Host of a URL, and port if it says one.
fn host(url: &str) -> &str {
    let place = url.split("://").nth(1).unwrap_or_default();
    let place = place.split(['/', '?', '#']).next().unwrap_or_default();
    place.rsplit('@').next().unwrap_or_default()
}

/// The way to the plan's target.
struct TargetRoute {
    addresses: Vec<IpAddr>,
    ways: Vec<String>,
    speed_bps: Option<f64>,
}

impl TargetRoute {
    /// Looks the host up; nothing is sent to it.
    fn of(plan: &SizingPlan) -> Self {
        let host = host(plan.url.reveal());
        // A port that is not said matters to no route.
        let found = host.to_socket_addrs().or_else(|_| (host.trim_matches(['[', ']']), 9).to_socket_addrs());
        let addresses: Vec<IpAddr> = found.into_iter().flatten().map(|address| address.ip()).collect();
        let mut environment = Environment::read();
        if addresses.is_empty() {
            return Self { addresses, ways: Vec::new(), speed_bps: None };
        }
        environment.keep_interfaces_towards(&addresses);
        let speed = environment.interfaces.iter().map(|it| it.bits_per_second as f64).reduce(f64::min);
        Self { addresses, ways: environment.interfaces_towards, speed_bps: speed }
    }

    fn limits(&self, environment: &Environment, descriptors: u64) -> MachineLimits {
        MachineLimits {
            cores: environment.usable_cores(),
            memory_bytes: environment.usable_memory_bytes(),
            descriptors,
            ports: local_ports(environment),
            link_bps: self.speed_bps,
        }
    }

    /// What is known of the link.
    fn describe(&self, machine: &MachineLimits) -> String {
        match (machine.link_bps, &self.ways[..]) {
            (Some(bps), ways) => {
                format!(
                    "{:.0} % of {}'s {}",
                    100.0 * LINK_WITHIN_REACH,
                    ways.join(", "),
                    BitRate::from_bps(bps)
                )
            }
            _ if self.addresses.is_empty() => {
                "the target has no address here, so no link is known".to_owned()
            }
            (None, [way]) if way == "lo" => "the target is this machine: loopback has no speed".to_owned(),
            (None, []) => "no route to the target is known".to_owned(),
            (None, ways) => format!("{} does not say how fast it is", ways.join(", ")),
        }
    }
}

/// The table of what is needed.
fn answer(plan: &SizingPlan, found: &ViewerCost, machine: &MachineLimits, link: &str) -> Vec<String> {
    let sizing = Sizing::of(plan.clients, &found.cost, machine);
    let viewers = several(plan.clients.into(), "viewer");
    let first = sizing.first.map_or("nothing", Resource::name);
    let mut lines = vec![
        format!(
            "  {} viewers for {:.0} s, each: {} ms of CPU a second, {:.1} kB of memory, sockets: {}",
            grouped(found.viewers.into()),
            found.seconds,
            milliseconds(&found.cost),
            found.cost.memory_bytes / 1e3,
            number(found.cost.sockets),
        ),
        String::new(),
        format!(
            "{viewers} of {} at {}: {}; first to run out: {first}",
            shown(plan.url.reveal()),
            plan.rate,
            machines(&sizing)
        ),
        format!("  {:<12} {:>12} {:>12} {:>12}", "", "needed", "a machine", "carries"),
    ];
    for need in &sizing.needs {
        let amount = |value: f64| match need.resource {
            Resource::Cores => format!("{value:.2}"),
            Resource::Memory => format!("{:.1} MB", value / 1e6),
            Resource::OpenFiles | Resource::Ports => grouped(value.ceil() as u64),
            Resource::Network => BitRate::from_bps(value).to_string(),
        };
        let why = match need.resource {
            Resource::Cores => format!(
                "{:.0} % of {}: with more a run is degraded",
                100.0 * CORES_OF_A_VALID_RUN,
                number(machine.cores)
            ),
            Resource::Memory => "80 % of what is available".to_owned(),
            Resource::OpenFiles => "the hard limit of a process".to_owned(),
            Resource::Ports => format!("of one local address: more with {BIND_ADDR}"),
            Resource::Network => link.to_owned(),
        };
        lines.push(format!(
            "  {:<12} {:>12} {:>12} {:>12}  {why}",
            need.resource.name(),
            amount(need.all),
            need.of_a_machine.map_or_else(|| "unknown".to_owned(), amount),
            need.clients.map_or_else(|| "–".to_owned(), grouped),
        ));
    }
    lines.push(String::new());
    lines
}

fn milliseconds(cost: &ClientCost) -> String {
    format!("{:.3}", cost.cores * 1e3)
}

fn machines(sizing: &Sizing) -> String {
    match sizing.machines {
        Some(count) => format!("{} like this one", several(count, "machine")),
        None => "no number of machines like this one, which does not carry a single viewer".to_owned(),
    }
}

/// A certificate for the origin, which is gone with this value.
struct Certificate {
    folder: tempfile::TempDir,
}

impl Certificate {
    fn new() -> Result<Self, RunError> {
        let internal = RunError::with(ErrorKind::Internal);
        let folder = tempfile::tempdir().map_err(&internal)?;
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).map_err(|error| {
            RunError::new(ErrorKind::Internal, format!("no certificate could be made: {error}"))
        })?;
        let certificate = Self { folder };
        let texts = [made.cert.pem(), made.signing_key.serialize_pem()];
        for (path, text) in certificate.files().iter().zip(texts) {
            std::fs::write(path, text).map_err(&internal)?;
        }
        Ok(certificate)
    }

    /// Chain and key.
    fn files(&self) -> [PathBuf; 2] {
        ["certificate.pem", "key.pem"].map(|name| self.folder.path().join(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> SizingPlan {
        text.parse().unwrap()
    }

    #[test]
    fn each_protocol_that_viewers_have_is_served_by_the_origin_under_the_schemes_that_it_says() {
        for protocol in PROTOCOLS.iter().filter(|it| it.play.is_some() && it.ingest.is_none()) {
            for scheme in protocol.schemes.iter().filter(|it| it.name != "bulk") {
                let plan = parsed(&format!("{}://192.0.2.1/live/a 100 at 2mbps", scheme.name));
                let subject = Subject::of(&plan).map_err(|error| error.to_string());
                let subject = subject.unwrap_or_else(|error| panic!("{}: {error}", scheme.name));
                assert_eq!(subject.is_tls, scheme.link == Link::Tls, "{}", scheme.name);
                let known = PROTOCOLS.iter().flat_map(|it| it.schemes);
                let listens = known.filter(|it| it.name == subject.scheme()).any(|it| it.link == scheme.link);
                assert!(listens, "{}: {}", scheme.name, subject.scheme());
            }
        }
        let of = |url: &str| Subject::of(&parsed(&format!("{url} 1 at 1mbps"))).unwrap().scheme();
        assert_eq!(of("https://192.0.2.1/live/a.m3u8?token=x"), "https+hls");
        assert_eq!(of("http://192.0.2.1/live/a.flv"), "http+flv");
    }

    #[test]
    fn what_is_not_measured_is_refused_in_one_line() {
        let refused = |url: &str| {
            let plan = parsed(&format!("{url} 100 at 2mbps"));
            let error = Subject::of(&plan).map(|_| ()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage);
            error.to_string()
        };
        for (url, words) in [
            ("rtpm://host/live/key", "did you mean rtmp://?"),
            ("gopher://host/live/key", "gopher"),
            ("mqtt://host/topic", "what clients of mqtt:// cost is not measured here"),
            ("whip+http://host/live/key", "what clients of whip+http:// cost is not measured here"),
            ("rtmp:///live/key", "host"),
        ] {
            let line = refused(url);
            assert!(line.starts_with("`for`: ") && line.contains(words), "{url}: {line}");
            assert!(line.lines().count() == 1 && !line.contains("key"), "{line}");
        }
    }

    #[test]
    fn as_many_viewers_are_measured_as_the_bit_rate_allows() {
        let viewers = |text: &str, most| Subject::of(&parsed(text)).unwrap().first_viewers(most);
        assert_eq!(viewers("rtmp://h/a/b 50000 at 2mbps", 10_000), 125);
        assert_eq!(viewers("rtmp://h/a/b 50000 at 10kbps", 10_000), 2_000);
        assert_eq!(viewers("rtmp://h/a/b 50000 at 50mbps", 10_000), 16);
        assert_eq!(viewers("rtmp://h/a/b 50000 at 10kbps", 400), 400);
        for costly in ["rtmps://h/a/b", "whep+http://h/a/b", "srt://h:1?streamid=a"] {
            assert_eq!(viewers(&format!("{costly} 50000 at 1mbps"), 10_000), 50, "{costly}");
        }
    }

    #[test]
    fn the_answer_names_each_resource_what_a_machine_has_of_it_and_what_runs_out_first() {
        let plan = parsed("rtmp://host/live/secret-key 50000 at 2mbps");
        let cost = ClientCost { cores: 40e-6, memory_bytes: 4_000.0, sockets: 1.0, wire_bps: 2.14e6 };
        let found = ViewerCost { cost, viewers: 500, seconds: 5.0 };
        let machine = MachineLimits {
            cores: 2.0,
            memory_bytes: Some(4_000_000_000),
            descriptors: 19_872,
            ports: Some(28_232),
            link_bps: None,
        };
        let said = answer(&plan, &found, &machine, "eth0 does not say how fast it is");
        let table = [
            "                     needed    a machine      carries",
            "  cores                2.00         0.80       20,000  40 % of 2: with more a run is degraded",
            "  memory           200.0 MB    3200.0 MB      800,000  80 % of what is available",
            "  open files         50,000       19,872       19,872  the hard limit of a process",
            "  local ports        50,000       28,232       28,232  of one local address: more with `bind_addr`",
            "  network       107.00 Gbps      unknown            –  eth0 does not say how fast it is",
        ];
        let head = "50,000 viewers of rtmp://host/live/… at 2.00 Mbps: 3 machines like this one; first to run out: open files";
        let measured = "  500 viewers for 5 s, each: 0.040 ms of CPU a second, 4.0 kB of memory, sockets: 1";
        let expected = [&[measured, "", head][..], &table, &[""]].concat();
        assert_eq!(said, expected);
    }

    #[test]
    fn the_link_is_that_of_the_way_to_the_target_and_loopback_has_none() {
        let described = |url: &str| {
            let place = TargetRoute::of(&parsed(&format!("{url} 5 at 2mbps")));
            let machine = place.limits(&Environment::default(), 10);
            (machine.link_bps, place.describe(&machine))
        };
        for url in ["rtmp://127.0.0.1/live/a", "rtmp://u:p@127.0.0.1:1935/live/a", "rtmp://[::1]/live/a"] {
            let expected = "the target is this machine: loopback has no speed";
            assert_eq!(described(url), (None, expected.to_owned()), "{url}");
        }
        let of = |ways: &[&str], addresses: &[IpAddr], speed_bps| {
            let ways = ways.iter().map(|it| (*it).to_owned()).collect();
            let place = TargetRoute { addresses: addresses.to_vec(), ways, speed_bps };
            place.describe(&place.limits(&Environment::default(), 10))
        };
        let there: &[IpAddr] = &["192.0.2.7".parse().unwrap()];
        assert_eq!(of(&[], &[], None), "the target has no address here, so no link is known");
        assert_eq!(of(&[], there, None), "no route to the target is known");
        assert_eq!(of(&["eth0"], there, None), "eth0 does not say how fast it is");
        assert_eq!(of(&["eth0"], there, Some(10e9)), "90 % of eth0's 10.00 Gbps");
    }
}
