//! What a load makes of a scenario. The search knows the number alone.

use std::time::Duration;
use weir_engine::scenario::{LoadKind, Scenario, Span, StageSpec, Step, WorkloadSpec};
use weir_engine::summary::Role;
use weir_protocols::asked::{self, Asked};
use weir_setting::{CLIENTS, OF};

/// A scenario whose capacity is searched: what is counted, and of which workload.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Without a load and a time.
    base: Scenario,
    kind: LoadKind,
    /// The workload that makes the load, whose figures show whether the target carries it.
    sought: usize,
    role: Role,
    /// Of messages: the workload that subscribes to them, whose figures are judged as well.
    beside: Option<usize>,
    arrivals_per_second: f64,
}

/// A scenario that has no such load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubjectError {
    /// Several workloads, or none, could be given the load.
    #[error(
        "the scenario has not one workload whose clients could be meant; leave one that plays, or one that publishes"
    )]
    Clients,
    /// Several workloads publish, or none.
    #[error("the scenario has not one workload that publishes; leave one whose publishers are counted")]
    Publishers,
    /// A rate of arrivals needs to know how many arrive.
    #[error("arrivals are of a number of clients that stays the same; say how many come: {}", CLIENTS.to("N"))]
    NoClients,
    /// Messages are MQTT's.
    #[error(
        "messages a second are of a workload that publishes to mqtt:// or mqtts://; choose another {}",
        OF
    )]
    NoMessages,
    /// Streams differ in their URLs.
    #[error(
        "each stream needs a URL of its own; write {{i}} for its number into the URLs that publish and play"
    )]
    NoStreams,
    /// A workload saves the messages.
    #[error("the capacity of who saves messages is not searched for; leave `ingest` and `probe` out")]
    Saves,
    /// A background changes the load by itself.
    #[error("`background` changes the load by itself; leave it out of a search")]
    Background,
}

impl Subject {
    /// Of a scenario without a load. `clients` are as many as arrive, if that is what is counted and the scenario does not say.
    ///
    /// # Errors
    /// See [`SubjectError`].
    pub fn new(
        mut base: Scenario,
        kind: LoadKind,
        clients: Option<u32>,
        arrivals_per_second: f64,
    ) -> Result<Self, SubjectError> {
        if base.workloads.iter().any(WorkloadSpec::saves) {
            return Err(SubjectError::Saves);
        }
        if base.background.is_some() {
            return Err(SubjectError::Background);
        }
        let publishes = |spec: &WorkloadSpec| !spec.publish.0.is_empty() && !spec.background;
        let sought = match kind {
            LoadKind::Clients | LoadKind::Arrivals | LoadKind::Streams => {
                base.sought().ok_or(SubjectError::Clients)?
            }
            LoadKind::Messages | LoadKind::Publishers => {
                only(&base, publishes).ok_or(SubjectError::Publishers)?
            }
        };
        let role = if publishes(&base.workloads[sought]) { Role::Publish } else { Role::Play };
        let spec = &mut base.workloads[sought];
        match kind {
            LoadKind::Arrivals => {
                spec.clients = clients.or(spec.clients);
                if spec.clients.is_none_or(|clients| clients == 0) {
                    return Err(SubjectError::NoClients);
                }
            }
            LoadKind::Messages if !is_mqtt(spec) => return Err(SubjectError::NoMessages),
            LoadKind::Streams if !is_numbered(spec) => return Err(SubjectError::NoStreams),
            _ => {}
        }
        let subscribes = |spec: &WorkloadSpec| !spec.play.0.is_empty() && !spec.background && is_mqtt(spec);
        let beside = (kind == LoadKind::Messages).then(|| only(&base, subscribes)).flatten();
        Ok(Self { base, kind, sought, role, beside, arrivals_per_second })
    }

    /// The scenario without a load and a time.
    pub fn base(&self) -> &Scenario {
        &self.base
    }

    /// The same, to say what is done before each trial.
    pub fn base_mut(&mut self) -> &mut Scenario {
        &mut self.base
    }

    /// What is counted.
    pub fn kind(&self) -> LoadKind {
        self.kind
    }

    /// What the workload that is given the load does.
    pub fn role(&self) -> Role {
        self.role
    }

    /// What the clients that are judged would notice, by their options; nothing of publishers, whose media goes the other way.
    pub fn asked(&self) -> &'static [Asked] {
        if self.role == Role::Publish {
            return &[];
        }
        let judged = self.judged();
        let judged = judged.iter().filter_map(|at| self.base.workloads.get(*at));
        asked::of_searched(judged.map(|workload| &workload.options))
    }

    /// The workload that makes the load, then the one whose figures are judged as well, if there is one.
    pub fn judged(&self) -> Vec<usize> {
        [self.sought].into_iter().chain(self.beside).collect()
    }

    /// The workloads that publish what the load plays, and that are no part of it.
    pub fn sources(&self) -> Vec<usize> {
        let is_source =
            matches!(self.kind, LoadKind::Clients | LoadKind::Arrivals) && self.role == Role::Play;
        let publishes = |spec: &WorkloadSpec| !spec.publish.0.is_empty() && !spec.background;
        let all = self.base.workloads.iter().enumerate().filter(|(_, spec)| is_source && publishes(spec));
        all.map(|(at, _)| at).collect()
    }

    /// Whether the subscribers whose figures are judged share a subscription: each of them gets some of the messages.
    pub fn is_shared(&self) -> bool {
        let spec = self.beside.map(|at| &self.base.workloads[at]);
        spec.is_some_and(|spec| spec.play.0.iter().any(|url| weir_clients::mqtt::is_shared(url)))
    }

    /// Whether something is started or run before each trial, so that the target may be another one in each.
    pub fn restarts(&self) -> bool {
        self.base.before.iter().any(|step| matches!(step, Step::Start(_) | Step::Run(_)))
    }

    /// The workload that is given the load.
    pub fn spec(&self) -> &WorkloadSpec {
        &self.base.workloads[self.sought]
    }

    /// Whether the load is of viewers that load ahead of what they show.
    pub fn loads_ahead(&self) -> bool {
        self.spec().play.0.iter().any(|url| loads_ahead(url))
    }

    /// What a load is a number of, as it stands behind the number.
    pub fn noun(&self) -> &'static str {
        let clients = match self.role {
            Role::Play if is_mqtt(self.spec()) => ("subscribers", "subscribers a second"),
            Role::Play | Role::Ingest => ("viewers", "viewers a second"),
            Role::Publish => ("publishers", "publishers a second"),
        };
        match self.kind {
            LoadKind::Clients => clients.0,
            LoadKind::Arrivals => clients.1,
            LoadKind::Messages => "messages a second",
            LoadKind::Publishers => "publishers",
            LoadKind::Streams => "streams",
        }
    }

    /// The largest load that can be made at all, if the kind has one: all clients within a second.
    pub fn most(&self) -> Option<u32> {
        match self.kind {
            LoadKind::Arrivals => self.spec().clients,
            LoadKind::Messages => Some(100_000_000),
            LoadKind::Clients | LoadKind::Publishers | LoadKind::Streams => None,
        }
    }

    /// Descriptors of all clients whose number is not the load, and of those that each load of one adds.
    pub fn descriptors(&self) -> (u64, u64) {
        let of = |spec: &WorkloadSpec| u64::from(spec.clients.unwrap_or(1).max(spec.streams.unwrap_or(1)));
        let grows = |at: usize| match self.kind {
            LoadKind::Clients | LoadKind::Publishers => at == self.sought,
            LoadKind::Streams => is_numbered(&self.base.workloads[at]),
            LoadKind::Arrivals | LoadKind::Messages => false,
        };
        let specs = || self.base.workloads.iter().zip(0..);
        let fixed = specs().filter(|(_, at)| !grows(*at)).map(|(spec, _)| of(spec)).sum();
        let each = specs().filter(|(_, at)| grows(*at)).map(|(spec, _)| match self.kind {
            LoadKind::Streams => u64::from(viewers_of_each(spec)),
            _ => 1,
        });
        (fixed, each.sum())
    }

    /// The scenario of a trial that holds these loads, one after the other, for `seconds` each. Each is approached from
    /// below, and no client leaves before the end. What clients need to begin may take `begins`, however short the warm-up.
    pub fn trial(&self, loads: &[u32], seconds: u32, begins: Duration) -> Scenario {
        let mut scenario = self.base.clone();
        if begins > scenario.warmup() {
            scenario.warmup = Some(begins.into());
        }
        // A second more, since windows are whole seconds.
        let hold = scenario.warmup() + Duration::from_secs(u64::from(seconds) + 1);
        let last = loads.last().copied().unwrap_or(1);
        let mut delay = span(self.spec().delay.as_ref());
        let spec = &mut scenario.workloads[self.sought];
        let stage =
            |clients: u32, ramp: Duration| StageSpec { clients, hold: hold.into(), ramp: Some(ramp.into()) };
        let mut stages = Vec::new();
        match self.kind {
            LoadKind::Clients | LoadKind::Publishers => {
                let mut before = 0;
                for load in loads {
                    let coming = load - std::mem::replace(&mut before, *load);
                    stages.push(stage(*load, self.ramp(coming)));
                }
                if self.role == Role::Publish && is_numbered(spec) {
                    // Each publisher has a stream of its own.
                    spec.streams = Some(last);
                }
            }
            LoadKind::Arrivals => {
                let clients = spec.clients.unwrap_or(1);
                stages.push(stage(
                    clients,
                    Duration::from_secs_f64(f64::from(clients) / f64::from(last.max(1))),
                ));
            }
            LoadKind::Messages => {
                let publishers = publishers(spec);
                spec.options = spec.options.clone().with("rate", rate_of_each(last, publishers));
                delay = delay.max(SUBSCRIPTIONS);
                spec.delay = Some(delay.into());
                stages.push(stage(publishers, self.ramp(publishers)));
            }
            LoadKind::Streams => {
                let each = viewers_of_each(spec);
                if self.role == Role::Play {
                    // A stream is there before its viewers come.
                    delay += self.ramp(last);
                    spec.delay = Some(delay.into());
                }
                spec.streams = Some(last);
                stages.push(stage(last.saturating_mul(each), self.ramp(last)));
            }
        }
        let length: Duration = stages.iter().map(|it| span(it.ramp.as_ref()) + it.hold.get()).sum();
        let whole = delay + length;
        (spec.clients, spec.duration, spec.stages) = (None, None, stages);
        for (position, spec) in scenario.workloads.iter_mut().enumerate() {
            if position == self.sought {
                continue;
            }
            if self.kind == LoadKind::Streams && is_numbered(spec) {
                let each = viewers_of_each(spec);
                (spec.streams, spec.clients) = (Some(last), Some(last.saturating_mul(each)));
                spec.arrival = Some(format!("{}/s", self.arrivals_per_second * f64::from(each)));
            }
            let publishes = !spec.publish.0.is_empty();
            if self.beside == Some(position) {
                // Its seconds are those of the publishers: both are judged over the same.
                let clients = spec.clients.unwrap_or(1);
                spec.delay = None;
                spec.stages = vec![stage(clients, delay + self.ramp(publishers(self.spec())))];
                (spec.clients, spec.duration) = (None, None);
            } else if publishes && self.role == Role::Play {
                // Publishers last as long as the viewers.
                spec.duration = None;
            } else {
                let left = whole.saturating_sub(span(spec.delay.as_ref()));
                spec.duration = Some(left.max(Duration::from_secs(1)).into());
            }
        }
        scenario
    }

    /// Whole seconds, so that a window has all of its slices.
    fn ramp(&self, coming: u32) -> Duration {
        Duration::from_secs((f64::from(coming) / self.arrivals_per_second).ceil() as u64)
    }
}

/// Time in which subscribers come before the first message is published.
const SUBSCRIPTIONS: Duration = Duration::from_secs(1);

/// The position of the only workload for which `is_meant` says so.
fn only(scenario: &Scenario, is_meant: impl Fn(&WorkloadSpec) -> bool) -> Option<usize> {
    let mut meant = scenario.workloads.iter().zip(0..).filter(|(spec, _)| is_meant(spec));
    let (_, position) = meant.next()?;
    meant.next().is_none().then_some(position)
}

fn urls(spec: &WorkloadSpec) -> impl Iterator<Item = &String> {
    spec.play.0.iter().chain(&spec.publish.0)
}

/// Whether viewers of this URL load ahead of what they show.
pub(super) fn loads_ahead(url: &str) -> bool {
    let play = weir_protocols::of_url(url).and_then(|protocol| protocol.play.as_ref());
    play.is_some_and(|play| play.loads_ahead)
}

fn is_mqtt(spec: &WorkloadSpec) -> bool {
    urls(spec)
        .all(|url| ["mqtt://", "mqtts://", "mqtt+ws://", "mqtt+wss://"].iter().any(|it| url.starts_with(it)))
}

/// Whether its URLs are those of numbered streams.
fn is_numbered(spec: &WorkloadSpec) -> bool {
    urls(spec).all(|url| url.contains("{i}"))
}

/// How many publishers there are if messages are counted: as many as the scenario says.
fn publishers(spec: &WorkloadSpec) -> u32 {
    let usual = (spec.publish.0.len() as u32).saturating_mul(spec.streams.unwrap_or(1)).max(1);
    spec.clients.unwrap_or(usual).max(1)
}

fn viewers_of_each(spec: &WorkloadSpec) -> u32 {
    (spec.clients.unwrap_or(1) / spec.streams.unwrap_or(1).max(1)).max(1)
}

fn rate_of_each(load: u32, publishers: u32) -> String {
    format!("{}/s", f64::from(load) / f64::from(publishers))
}

fn span(span: Option<&Span>) -> Duration {
    span.map_or(Duration::ZERO, Span::get)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_engine::plan::StageSpan;

    fn subject(text: &str, kind: LoadKind, clients: Option<u32>) -> Result<Subject, SubjectError> {
        let base = Scenario::parse(&format!("warmup: 2s\nworkloads: {text}")).unwrap();
        Subject::new(base, kind, clients, 100.0)
    }

    /// The stages of a workload as they lie in the run.
    fn spans(scenario: &Scenario, workload: u16) -> Vec<StageSpan> {
        scenario.plan().unwrap().stages.into_iter().filter(|it| it.workload == workload).collect()
    }

    const STREAM: &str = "[{publish: 'rtmp://h/live/a'}, {play: 'rtmp://h/live/a', delay: 1s, duration: 9s}]";
    const STREAMS: &str = "[{publish: 'rtmp://h/live/s{i}', streams: 2}, \
        {play: 'rtmp://h/live/s{i}', streams: 2, clients: 6, delay: 1s, duration: 9s}]";
    const MQTT: &str =
        "[{publish: 'mqtt://h/t{i}', streams: 4, qos: 1}, {play: 'mqtt://h/#', clients: 2, duration: 9s}]";

    #[test]
    fn clients_climb_in_one_run_and_publishers_have_a_stream_each() {
        let of = subject(STREAM, LoadKind::Clients, None).unwrap();
        let trial = of.trial(&[100, 200], 15, Duration::ZERO);
        let found: Vec<_> =
            spans(&trial, 1).iter().map(|it| (it.clients, it.window_begin, it.window_end)).collect();
        // A second of delay, one of the ramp, two of warm-up.
        assert_eq!(found, [(100, 4, 20), (200, 23, 39)]);
        assert_eq!((of.noun(), of.judged(), of.descriptors()), ("viewers", vec![1], (1, 1)));
        let of = subject(STREAMS, LoadKind::Publishers, None).unwrap();
        let trial = of.trial(&[10, 20], 15, Duration::ZERO);
        assert_eq!((trial.workloads[0].streams, of.noun(), of.judged()), (Some(20), "publishers", vec![0]));
        // Viewers leave when the streams end, and not before.
        let plan = trial.plan().unwrap();
        assert_eq!(spans(&trial, 1)[0].end, plan.length);
    }

    #[test]
    fn arrivals_are_of_as_many_clients_at_every_rate() {
        assert_eq!(subject(STREAM, LoadKind::Arrivals, None).unwrap_err(), SubjectError::NoClients);
        let of = subject(STREAM, LoadKind::Arrivals, Some(500)).unwrap();
        for (rate, millis) in [(50, 10_000), (200, 2_500), (500, 1_000)] {
            let plan = of.trial(&[rate], 5, Duration::ZERO).plan().unwrap();
            let viewers: Vec<_> = plan.slots.iter().filter(|slot| slot.workload == 1).collect();
            assert_eq!(viewers.len(), 500);
            let between = viewers[1].start - viewers[0].start;
            assert_eq!(between, Duration::from_millis(millis) / 500);
            let stage = plan.stages.iter().find(|it| it.workload == 1).unwrap();
            assert!(stage.window_end - stage.window_begin >= 5, "{stage:?}");
        }
        assert_eq!((of.most(), of.noun()), (Some(500), "viewers a second"));
        assert!(!of.kind().climbs_in_one_run());
    }

    #[test]
    fn viewers_on_narrow_links_are_not_held_against_the_rate_of_their_source() {
        let asked = |more: &str| {
            let text = format!("[{{play: 'whep+http://h/live/a', duration: 9s{more}}}]");
            let of = subject(&text, LoadKind::Clients, None).unwrap();
            of.asked().contains(&asked::BIT_RATE)
        };
        assert!(asked("") && !asked(", bandwidth: 500kbps"));
    }

    #[test]
    fn messages_are_shared_by_publishers_and_judged_with_who_subscribes_over_the_same_seconds() {
        let of = subject(MQTT, LoadKind::Messages, None).unwrap();
        let trial = of.trial(&[10_000], 5, Duration::ZERO);
        assert_eq!(trial.workloads[0].options.texts("rate"), ["2500/s"]);
        assert_eq!((of.judged(), of.noun()), (vec![0, 1], "messages a second"));
        let (publishers, subscribers) = (&spans(&trial, 0)[0], &spans(&trial, 1)[0]);
        assert_eq!((publishers.clients, subscribers.clients), (4, 2));
        let window = |it: &StageSpan| (it.window_begin, it.window_end);
        assert_eq!(window(publishers), window(subscribers));
        // All subscribe before the first message.
        let plan = trial.plan().unwrap();
        let first = plan.slots.iter().find(|slot| slot.workload == 0).unwrap();
        assert!(plan.slots.iter().any(|slot| slot.workload == 1 && slot.start < first.start));
        assert_eq!(subject(STREAM, LoadKind::Messages, None).unwrap_err(), SubjectError::NoMessages);
        let shared = "[{publish: 'mqtt://h/t'}, {play: 'mqtt://h/$share/g/t', clients: 2}]";
        let are_shared = |kind| subject(shared, kind, None).map(|it| it.is_shared());
        assert_eq!((of.is_shared(), are_shared(LoadKind::Messages)), (false, Ok(true)));
        let alone = subject("[{publish: 'mqtt://h/t', clients: 3}]", LoadKind::Messages, None).unwrap();
        assert_eq!(
            alone.trial(&[10], 5, Duration::ZERO).workloads[0].options.texts("rate"),
            [format!("{}/s", 10.0 / 3.0)]
        );
    }

    #[test]
    fn a_stream_has_a_publisher_and_its_viewers_come_when_it_is_there() {
        let of = subject(STREAMS, LoadKind::Streams, None).unwrap();
        let trial = of.trial(&[150], 5, Duration::ZERO);
        let clients = |at: u16| spans(&trial, at)[0].clients;
        assert_eq!((clients(0), clients(1), of.descriptors()), (150, 450, (0, 4)));
        let plan = trial.plan().unwrap();
        let starts =
            |at: u16| plan.slots.iter().filter(move |slot| slot.workload == at).map(|slot| slot.start);
        assert!(starts(1).min().unwrap() > starts(0).max().unwrap());
        assert_eq!(subject(STREAM, LoadKind::Streams, None).unwrap_err(), SubjectError::NoStreams);
    }
    #[test]
    fn viewers_of_hls_load_ahead_whatever_scheme_says_so_and_no_others_do() {
        let loads_ahead = |workload: &str| {
            subject(&format!("[{{play: '{workload}'}}]"), LoadKind::Clients, None).unwrap().loads_ahead()
        };
        assert!(loads_ahead("https://h/live/a.m3u8?token=1") && loads_ahead("http+hls://h/live"));
        assert!(!loads_ahead("rtmp://h/live/a") && !loads_ahead("http://h/live/a.flv"));
    }
}
