//! A scenario: several workloads, their stages, the targets to watch, the thresholds.
//!
//! Strict YAML: an unknown key is an error with line, column and the nearest known key. `weir play`
//! and `weir publish` make the same value out of their flags.

pub(crate) mod as_text;
mod background;
pub(crate) mod background_stages;
pub(crate) mod defaults;
mod during;
mod error;
pub(crate) mod explanation;
pub(crate) mod facts;
mod find;
mod into;
pub(crate) mod keys;
pub mod lines;
mod matrix;
pub(crate) mod overrides;
pub(crate) mod role;
mod stage;
mod steps;
mod turns;
mod variant;
mod variants;
mod written;
pub(crate) mod yaml;

pub use background::BackgroundSpec;
pub use during::Restart;
pub use error::ScenarioError;
pub use find::{Find, LoadKind};
pub use into::IntoSpec;
pub use matrix::Matrix;
pub use stage::{StageError, StageSpec};
pub use steps::{Fill, Step, program, shown_command};
pub use turns::{Order, Turn, turns};
pub use variant::Variant;
pub use variants::{Variants, Variation};
pub use written::{BitRateText, OneOrMany, SizeText, Span};

use crate::plan::arrival::{Arrival, Spacing};
use crate::plan::lifetime::Lifetime;
use crate::plan::republish::Republish;
use crate::plan::{RampStage, Schedule};
use crate::threshold::Threshold;
use crate::verdict::checks::CheckName;
use role::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;
use weir_clients::{KeyNumbers, Resolve, SecretUrl};
use weir_observe::InterfaceName;
use weir_protocols::{Given, Output, of_url};

/// Workloads and stages of a run, both together. Each has figures of its own, a table or a row of one in the report, and in the plan of
/// each agent; a scenario of a thousand is longer than anyone reads.
pub(crate) const MOST_PARTS: usize = 1_000;
/// Longest time that a ramp takes when no `arrival` is given.
const DEFAULT_RAMP: f64 = 5.0;
/// Clients a second that a ramp without `arrival` brings at least.
const DEFAULT_ARRIVAL: f64 = 50.0;
/// What a run until Ctrl-C lasts by its plan: ten years, longer than any run.
const ENDLESS: Duration = Duration::from_secs(10 * 365 * 86_400);
/// Time before the load in which the target's machine is read, when it is read at all.
const DEFAULT_BASE: Duration = Duration::from_secs(3);

/// What a run does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// Name in reports.
    pub name: String,
    /// What groups of clients do.
    pub workloads: Vec<WorkloadSpec>,
    /// Bulk TCP load beside them: all is measured without it, then with it.
    pub background: Option<BackgroundSpec>,
    /// The target's processes: `name=nginx`, `pid=123` or `port=1935`.
    pub watch: Vec<String>,
    /// The Prometheus that collects from the target's machine: `http://host:9090`.
    pub prometheus: Option<String>,
    /// Which machine of that Prometheus, by the value of its label `instance`; needed if it has several.
    pub prometheus_instance: Option<String>,
    /// The node_exporter of the target's machine: `http://host:9100`.
    pub node_exporter: Option<String>,
    /// Interfaces of the target's machine whose bytes count, such as `eth0` or `en*`; `eth*` and `en*` if
    /// absent, `lo` for a target on this machine.
    pub interfaces: Vec<InterfaceName>,
    /// Time before the load in which the target's machine is read, for increases. 3 s beside
    /// `prometheus` or `node_exporter`, otherwise none.
    #[schemars(with = "Option<String>")]
    pub base: Option<Span>,
    /// Time after each ramp that is left out of the figures.
    #[schemars(with = "Option<String>")]
    pub warmup: Option<Span>,
    /// Time that clients are given to say goodbye after the last stage.
    #[schemars(with = "Option<String>")]
    pub drain: Option<Span>,
    /// What is asked of the target: `startup.p99 < 1s`.
    pub thresholds: Vec<Threshold>,
    /// Thresholds that end the run as soon as they fail.
    pub abort: Vec<Threshold>,
    /// Checks of the verdict whose reasons are waived, by name: `cpu_steal`.
    pub accept: Vec<CheckName>,
    /// Local addresses to connect from, in turn.
    #[schemars(with = "Vec<String>")]
    pub bind_addr: Vec<IpAddr>,
    /// Seed of everything random; 0 if absent.
    pub seed: u64,
    /// Labels that the run carries.
    pub tags: BTreeMap<String, String>,
    /// Threads for viewers; as many as half the cores if absent.
    pub shards: Option<u32>,
    /// Take any certificate of the servers that are played from or published to; not of `prometheus` and `node_exporter`.
    pub insecure: bool,
    /// PEM file of certificates to trust; a server's own may be among them.
    pub cacert: Option<std::path::PathBuf>,
    /// PEM file of the certificate that clients show to servers, with those between it and one that they trust.
    pub cert: Option<std::path::PathBuf>,
    /// PEM file of its private key.
    pub key: Option<std::path::PathBuf>,
    /// Write the keys of RTMP streams into reports, instead of a number each.
    pub show_keys: bool,
    /// Variants to compare, by name, each with the values that stand in the scenario in the place of `{key}`.
    pub variants: Variants,
    /// Keys with lists of values, every combination of which is a variant, instead of `variants`.
    #[serde(skip_serializing_if = "Matrix::is_empty")]
    pub matrix: Matrix,
    /// What `weir sweep` finds out about each variant, instead of one run's figures: how much it carries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub find: Option<Find>,
    /// How often each variant, or the scenario if it has none, is run; once if absent.
    #[schemars(range(min = 1, max = 10_000))]
    pub repeat: Option<u32>,
    /// In which order these runs are made: `interleaved` if absent, `random` of `weir sweep`.
    pub order: Option<Order>,
    /// What is done before each run: commands, servers that are started and ended with it, ports that are waited for.
    pub before: Vec<Step>,
    /// What is done to servers of `before` while the run goes on, in the order of time: `{at: 10s, restart: mosquitto}`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub during: Vec<Restart>,
    /// What is done after each run.
    pub after: Vec<Step>,
}

/// One workload: `play`, `publish`, `ingest` or `probe`, with its schedule and the options of its protocol.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields, default)]
#[schemars(transform = weir_protocols::add_to_schema)]
pub struct WorkloadSpec {
    /// Name in reports; the verb if absent.
    pub name: Option<String>,
    /// URLs to play; viewers take them in turn.
    pub play: OneOrMany,
    /// URLs to publish to; publishers take them in turn.
    pub publish: OneOrMany,
    /// What to subscribe to, so that its messages are saved: `mqtt://host/topic/+`. The run is over when a count was published
    /// and all messages are accounted for, or after `duration`.
    pub ingest: OneOrMany,
    /// Another program's consumer, which is asked what became of the messages: `http://host:port/csp/mqtt/rest` of the gateway of the
    /// original measurement, or `sql:postgres://user@host/database#TABLE` for a table that it fills.
    pub probe: OneOrMany,
    /// Of `ingest` and `probe`: what records are, and where they go.
    pub into: Option<IntoSpec>,
    /// Number of streams that `{i}` in a URL stands for (0 to n − 1).
    pub streams: Option<u32>,
    /// Clients of a single stage; of `ingest` ingesters that share its subscription, `$share/NAME/…`.
    pub clients: Option<u32>,
    /// Hold time of a single stage; `0s` for until Ctrl-C.
    #[schemars(with = "Option<String>")]
    pub duration: Option<Span>,
    /// Clients a second while a stage ramps, evenly spaced (`20/s`) or as a Poisson process (`poisson:20/s`).
    pub arrival: Option<String>,
    /// For how long a client stays before another comes in its place: `30s`, or `exp:30s` for exponentially distributed
    /// lives with that mean. As long as its stages hold it if absent.
    pub life: Option<Lifetime>,
    /// How often a publisher stops and comes back: `every:60s`, or `every:60s,pause:1s` for how long it is away. It goes on
    /// if absent.
    pub republish: Option<Republish>,
    /// When the first stage begins.
    #[schemars(with = "Option<String>")]
    pub delay: Option<Span>,
    /// The stages, one after the other, instead of `clients` and `duration`: `500@15s`, or keys.
    #[schemars(with = "Vec<stage::WrittenStage>")]
    pub stages: Vec<StageSpec>,
    /// Longest stay in each phase before playing; of `ingest` and `probe` how long nothing may move, 30 s if absent.
    #[schemars(with = "Option<String>")]
    pub timeout: Option<Span>,
    /// Which addresses of a server's name clients go to: `all` in turn, those apart that refuse while another accepts, `first`, or all of
    /// IPv`4` or IPv`6`; `all` if absent.
    pub resolve: Option<Resolve>,
    /// What the source sends to each viewer, if weir does not publish it: `235kbps`.
    #[schemars(with = "Option<String>")]
    pub expect: Option<BitRateText>,
    /// Whether it is there only to disturb the others: no threshold and no verdict is about it.
    pub background: bool,
    /// With `--agents`: the agents that make it, by their names or labels: `zone=a`. Without it publishers are where no viewer is,
    /// if there are agents enough.
    #[serde(skip_serializing_if = "OneOrMany::is_empty")]
    pub on: OneOrMany,
    /// What only some protocols have.
    #[serde(flatten, skip_deserializing)]
    #[schemars(skip)]
    pub options: Given,
}

impl Scenario {
    /// Reads a scenario's text; the error is `line:column: what is wrong`.
    ///
    /// # Errors
    /// The text is not strictly a scenario.
    pub fn parse(text: &str) -> Result<Self, String> {
        yaml::read(text).map_err(|error| explanation::explain(&error))
    }

    /// The schedules, one a workload, as the plan takes them.
    ///
    /// # Errors
    /// A workload whose schedule is missing or said twice.
    pub fn schedules(&self) -> Result<Vec<Schedule>, ScenarioError> {
        if self.workloads.is_empty() {
            return Err(ScenarioError::Empty);
        }
        let stages: usize = self.workloads.iter().map(|spec| spec.stages.len()).sum();
        if self.workloads.len() + stages > MOST_PARTS {
            return Err(ScenarioError::ManyParts { workloads: self.workloads.len(), stages });
        }
        let saving: Vec<_> = self.workloads.iter().filter(|spec| spec.saves()).collect();
        if let [_, second, ..] = saving[..] {
            return Err(ScenarioError::SeveralSave(second.label()));
        }
        let counts = self.ends_with_its_messages();
        let others = Others {
            // A workload that saves for a fixed time is waited for, as viewers are.
            viewers: self.workloads.iter().any(|it| !it.play.0.is_empty() && !it.background)
                || saving.iter().any(|it| it.duration.is_some()),
            ends: counts || self.workloads.iter().any(|it| !it.saves() && it.duration.is_some()),
            saves: !saving.is_empty(),
        };
        self.workloads.iter().map(|spec| spec.schedule(others)).collect()
    }

    /// Position of the workload that an error is about, if it is about one.
    pub fn workload_of(&self, error: &ScenarioError) -> Option<usize> {
        let label = error.label()?;
        // Of several that have no name of their own it is not known which one is meant.
        let mut named = (0..).zip(&self.workloads).filter(|(_, spec)| spec.label() == label);
        let (position, _) = named.next()?;
        named.next().is_none().then_some(position)
    }

    /// Whether it is over when a count was published and all messages are accounted for.
    fn ends_with_its_messages(&self) -> bool {
        let counts = |it: &WorkloadSpec| it.output().is_some_and(|output| output.count.is_some());
        let ends = |it: &WorkloadSpec| it.saves() && it.duration.is_none();
        self.workloads.iter().any(ends) && self.workloads.iter().any(counts)
    }

    /// The plan of all workloads.
    ///
    /// # Errors
    /// As [`Self::schedules`].
    pub fn plan(&self) -> Result<crate::plan::Plan, ScenarioError> {
        Ok(crate::plan::Plan::new(&self.schedules()?, self.seed, self.warmup(), &self.bind_addr))
    }

    /// Whether it goes on until Ctrl-C, which is then its end as planned.
    pub fn is_endless(&self) -> bool {
        self.workloads.iter().any(|spec| spec.duration.as_ref().is_some_and(|it| it.get().is_zero()))
    }

    /// The warm-up after each ramp: 2 s unless said otherwise, and none where all messages count.
    pub fn warmup(&self) -> Duration {
        let usual = if self.ends_with_its_messages() { Duration::ZERO } else { Duration::from_secs(2) };
        self.warmup.as_ref().map_or(usual, Span::get)
    }

    /// The time for goodbyes: 1 s unless said otherwise.
    pub fn drain(&self) -> Duration {
        self.drain.as_ref().map_or(Duration::from_secs(1), Span::get)
    }

    /// The time before the load in which the target's machine is read.
    pub fn base(&self) -> Duration {
        let is_asked = self.prometheus.is_some() || self.node_exporter.is_some();
        let default = if is_asked { DEFAULT_BASE } else { Duration::ZERO };
        self.base.as_ref().map_or(default, Span::get)
    }

    /// The same with URLs as they may be shown: what is written down holds no user, password or token, and keys of
    /// RTMP streams only if it says so.
    pub fn without_secrets(&self) -> Self {
        let mut scenario = self.clone();
        let mut numbers = KeyNumbers::new(self.show_keys);
        for workload in &mut scenario.workloads {
            for url in workload.play.0.iter_mut().chain(&mut workload.publish.0) {
                *url = numbers.show(&SecretUrl::new(&**url));
            }
            workload.options.forget_secrets();
            let saved =
                workload.into.iter_mut().flat_map(|it| it.save.iter_mut().chain(&mut it.schema_registry));
            let places = workload.ingest.0.iter_mut().chain(&mut workload.probe.0).chain(saved);
            for place in places.filter(|place| place.contains("://")) {
                *place = weir_clients::shown(place);
            }
        }
        for url in scenario.prometheus.iter_mut().chain(&mut scenario.node_exporter) {
            *url = weir_clients::shown(url);
        }
        for step in scenario.before.iter_mut().chain(&mut scenario.after) {
            step.forget_secrets();
        }
        scenario
    }

    /// The JSON Schema of scenario files.
    pub fn schema() -> String {
        let schema = schemars::schema_for!(Self);
        serde_json::to_string_pretty(&schema).expect("a schema is JSON")
    }
}

/// How long clients are held that end by themselves: a year, longer than any run of theirs.
const AS_LONG_AS_IT_TAKES: Duration = Duration::from_secs(31_536_000);

/// What the other workloads of a scenario decide of one's schedule.
#[derive(Clone, Copy, Debug)]
struct Others {
    /// Whether any plays, or saves for a time: publishers last as long as they do.
    viewers: bool,
    /// Whether any ends by itself.
    ends: bool,
    /// Whether any saves.
    saves: bool,
}

impl WorkloadSpec {
    /// Its name, or its verb.
    pub fn label(&self) -> String {
        let verbs = [
            ("play", &self.play),
            ("publish", &self.publish),
            ("ingest", &self.ingest),
            ("probe", &self.probe),
        ];
        let verb = verbs.iter().find(|(_, urls)| !urls.0.is_empty()).map_or("unnamed", |(verb, _)| verb);
        self.name.clone().unwrap_or_else(|| verb.to_owned())
    }

    /// Whether it saves messages, or asks another program that does.
    pub fn saves(&self) -> bool {
        !self.ingest.0.is_empty() || !self.probe.0.is_empty()
    }

    /// What it does, and its URLs.
    ///
    /// # Errors
    /// It does nothing, or several things.
    pub fn verb(&self) -> Result<(Role, &[String]), ScenarioError> {
        let verbs = [
            (Role::Play, &self.play),
            (Role::Publish, &self.publish),
            (Role::Ingest, &self.ingest),
            (Role::Ingest, &self.probe),
        ];
        let mut said = verbs.iter().filter(|(_, urls)| !urls.0.is_empty());
        match (said.next(), said.next()) {
            (Some((Role::Ingest, urls)), None) if urls.0.len() > 1 => {
                Err(ScenarioError::SeveralSave(self.label()))
            }
            (Some((role, urls)), None) => Ok((*role, &urls.0)),
            _ => Err(ScenarioError::Verb(self.label())),
        }
    }

    fn schedule(&self, others: Others) -> Result<Schedule, ScenarioError> {
        let (role, urls) = self.verb()?;
        // Publishers last as long as viewers, a workload that saves as long as any other, and one of the background as long as
        // the one that saves.
        let publishes_along = match role {
            Role::Publish if others.viewers => true,
            Role::Ingest => others.ends && self.duration.is_none(),
            Role::Play | Role::Publish => self.background && others.saves && others.ends,
        };
        let about = self.output().and_then(|output| output.about);
        let about = about.filter(|_| self.duration.is_none() && self.stages.is_empty());
        self.check_life(role)?;
        self.check_republish(role)?;
        let arrival = self.arrival.as_deref().map(str::parse::<Arrival>).transpose();
        let arrival = arrival.map_err(|source| ScenarioError::Quantity { workload: self.label(), source })?;
        let stages = if self.stages.is_empty() {
            let hold = match &self.duration {
                Some(span) => span.get(),
                None if publishes_along => Duration::ZERO,
                None if about.is_some() => AS_LONG_AS_IT_TAKES,
                None => return Err(ScenarioError::NoDuration(self.label())),
            };
            let streams = self.streams.unwrap_or(1).max(1);
            let default = match role {
                Role::Ingest => 1,
                Role::Publish => (urls.len() as u32).saturating_mul(streams),
                Role::Play => {
                    // One client for each stream, if the options say how many there are.
                    let play = urls.first().and_then(|url| of_url(url)?.play.as_ref());
                    let each = play.map_or(1, |play| (play.clients)(&self.options));
                    each.saturating_mul(if each > 1 { urls.len() as u32 } else { 1 })
                }
            };
            // A duration of 0 has no end but Ctrl-C.
            let hold = if hold.is_zero() && self.duration.is_some() { ENDLESS } else { hold };
            vec![(self.clients.unwrap_or(default), hold, None)]
        } else if self.clients.is_some() || self.duration.is_some() {
            return Err(ScenarioError::TwoSchedules(self.label()));
        } else {
            let span =
                |stage: &StageSpec| (stage.clients, stage.hold.get(), stage.ramp.as_ref().map(Span::get));
            self.stages.iter().map(span).collect()
        };
        let mut before = 0;
        let stages = stages
            .into_iter()
            .map(|(clients, hold, ramp)| {
                let change = f64::from(clients.abs_diff(std::mem::replace(&mut before, clients)));
                let rate = arrival.map_or((change / DEFAULT_RAMP).max(DEFAULT_ARRIVAL), |it| it.rate);
                let ramp = ramp.unwrap_or_else(|| {
                    // At most a year: a rate near zero must not overflow.
                    Duration::from_secs_f64(
                        if role == Role::Ingest || publishes_along && arrival.is_none() {
                            0.0
                        } else {
                            change / rate
                        }
                        .min(3e7),
                    )
                });
                RampStage { clients, ramp, hold }
            })
            .collect();
        let delay = self.delay.as_ref().map_or(Duration::ZERO, Span::get);
        Ok(Schedule {
            delay,
            stages,
            until_the_end: publishes_along && self.duration.is_none() && self.stages.is_empty(),
            about: about.filter(|_| !publishes_along),
            spacing: arrival.map_or(Spacing::default(), |it| it.spacing),
            life: self.republish.map_or(self.life, |republish| Some(republish.life())),
            pause: self.republish.map_or(Duration::ZERO, Republish::pause),
        })
    }

    /// Only a client with a start and an end of its own can be replaced.
    fn check_life(&self, role: Role) -> Result<(), ScenarioError> {
        let wrong = |words| Err(ScenarioError::Life { workload: self.label(), words });
        let counts = self.output().is_some_and(|output| output.count.is_some());
        match (self.life, role) {
            (Some(_), Role::Ingest) => wrong("is of `play` and `publish`; leave it out"),
            (Some(_), _) if counts => wrong("and a `count` both say when a publisher ends; leave one out"),
            _ => Ok(()),
        }
    }

    /// Only a publisher without an end of its own can stop and come back.
    fn check_republish(&self, role: Role) -> Result<(), ScenarioError> {
        let wrong = |words| Err(ScenarioError::Republish { workload: self.label(), words });
        let counts = self.output().is_some_and(|output| output.count.is_some());
        match (self.republish, role) {
            (None, _) => Ok(()),
            (_, Role::Play | Role::Ingest) => wrong("is of `publish`; leave it out"),
            _ if counts => wrong("and a `count` both say when a publisher ends; leave one out"),
            _ if self.life.is_some() => wrong("and `life` both say when a publisher ends; leave one out"),
            _ => Ok(()),
        }
    }

    /// What each of its clients sends; none if it does not publish.
    pub fn output(&self) -> Option<Output> {
        let publish = of_url(self.publish.0.first()?)?.publish.as_ref()?;
        Some((publish.output)(&self.options, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "
name: table
watch: [name=nginx]
workloads:
  - publish: rtmp://127.0.0.1/live/x
    bitrate: 235kbps
  - play: rtmp://127.0.0.1/live/x
    delay: 1s
    arrival: 100/s
    stages:
      - {clients: 500, hold: 15s}
      - {clients: 1000, hold: 15s}
thresholds:
  - startup.p99 < 1s
";

    #[test]
    fn workloads_and_stages_of_a_run_are_counted() {
        let schedules = |workloads: usize, stages: usize| {
            let stages = vec!["{clients: 1, hold: 1s}"; stages].join(", ");
            let workload = format!("{{play: 'rtmp://h/a/s', stages: [{stages}]}}");
            let text = format!("workloads: [{}]", vec![workload; workloads].join(", "));
            Scenario::parse(&text).unwrap().schedules().err().map(|error| error.to_string())
        };
        assert_eq!((schedules(1, 999), schedules(100, 9)), (None, None));
        let said = "1 workload with 3,000 stages: a run has 1,000 of both together at the most; make several runs of it";
        assert_eq!(schedules(1, 3_000).as_deref(), Some(said));
        assert!(schedules(101, 9).is_some());
    }

    #[test]
    fn a_table_of_stages_becomes_schedules() {
        let scenario = Scenario::parse(TABLE).unwrap();
        let schedules = scenario.schedules().unwrap();
        assert!(schedules[0].until_the_end);
        assert_eq!(schedules[0].stages[0].clients, 1);
        assert_eq!(schedules[1].delay, Duration::from_secs(1));
        assert_eq!(schedules[1].stages[1].ramp, Duration::from_secs(5));
    }

    #[test]
    fn an_unknown_key_is_named_with_its_place_and_its_neighbour() {
        let error = Scenario::parse(&TABLE.replace("arrival:", "arival:")).unwrap_err();
        assert_eq!(error, "9:5: unknown key `arival`; did you mean `arrival`?");
        let error = Scenario::parse(&TABLE.replace("hold: 15s}", "hold: 15 parsecs}")).unwrap_err();
        assert!(error.contains("parsecs"), "{error}");
        let error = Scenario::parse(&TABLE.replace("delay: 1s", "arrival: 50/s")).unwrap_err();
        assert_eq!(error, "9:5: key `arrival` stands there twice; leave one out");
        let error =
            Scenario::parse("workloads:\n  - play: mqtt://h/t\n    duration: 1s\n    qos: 7\n").unwrap_err();
        assert!(error.starts_with("4:") && error.contains("7 is not in 0..=2"), "{error}");
    }

    #[test]
    fn what_is_written_down_holds_no_secret_and_plans_the_same() {
        let text = "prometheus: https://me:secret@h/prometheus/
node_exporter: http://me:secret@h:9100/metrics?key=secret
workloads: [{play: ['rtmp://me:secret@h/live/a?token=secret'], duration: 1s}]";
        let scenario = Scenario::parse(text).unwrap();
        let shown = scenario.without_secrets();
        assert_eq!(shown.prometheus.as_deref(), Some("https://h/prometheus/"));
        assert_eq!(shown.node_exporter.as_deref(), Some("http://h:9100/metrics?…"));
        assert_eq!(shown.workloads[0].play.0, ["rtmp://h/live/…1?…"]);
        let with_keys = Scenario { show_keys: true, ..scenario.clone() };
        assert_eq!(with_keys.without_secrets().workloads[0].play.0, ["rtmp://h/live/a?…"]);
        assert_eq!(shown.plan().unwrap(), scenario.plan().unwrap());
    }

    #[test]
    fn a_workload_says_one_verb_and_one_schedule() {
        let with = |spec: &str| Scenario::parse(&format!("workloads: [{spec}]")).unwrap().schedules();
        let verbless = with("{clients: 3, duration: 1s}").unwrap_err();
        assert!(matches!(&verbless, ScenarioError::Verb(label) if label == "unnamed"), "{verbless}");
        assert!(matches!(with("{play: rtmp://h/a/s}"), Err(ScenarioError::NoDuration(_))));
        assert!(matches!(
            with("{play: rtmp://h/a/s, clients: 3, stages: [{clients: 1, hold: 1s}]}"),
            Err(ScenarioError::TwoSchedules(_))
        ));
        assert!(matches!(Scenario::parse("workloads: []").unwrap().schedules(), Err(ScenarioError::Empty)));
    }

    #[test]
    fn who_saves_ends_with_the_messages_or_after_its_time() {
        let text = "
workloads:
  - {ingest: 'mqtt://h/t/+', into: {save: 'sqlite:f'}}
  - {publish: 'mqtt://h/t/{seq}', count: 50, rate: 10/s}
  - {publish: 'bulk://h:1', clients: 8, background: true}
";
        let by_count = Scenario::parse(text).unwrap();
        let plan = by_count.plan().unwrap();
        assert_eq!((plan.about, by_count.warmup()), (Some(Duration::from_secs(5)), Duration::ZERO));
        // All last as long as the publisher, which ends by itself.
        assert!(plan.stages.iter().all(|stage| stage.end == plan.length), "{:?}", plan.stages);
        let for_a_time = text.replace("into:", "duration: 20s, into:");
        let plan = Scenario::parse(&for_a_time).unwrap().plan().unwrap();
        assert_eq!((plan.about, plan.length), (None, Duration::from_secs(20)));
        let schedules = |text: &str| Scenario::parse(text).unwrap().schedules().unwrap_err().to_string();
        assert!(schedules("workloads: [{ingest: 'mqtt://h/t'}]").contains("say for how long"));
        let twice = "workloads: [{ingest: 'mqtt://h/t', duration: 1s}, {probe: 'http://h', duration: 1s}]";
        assert!(schedules(twice).contains("workload 'probe': one `ingest` or `probe` is all"));
        let shown =
            Scenario::parse(&text.replace("sqlite:f", "postgres://me:secret@h/d")).unwrap().without_secrets();
        assert_eq!(shown.workloads[0].into.as_ref().unwrap().save.as_deref(), Some("postgres://h/d"));
        let registry = "sqlite:f', schema_registry: 'http://me:secret@h:8081";
        let shown = Scenario::parse(&text.replace("sqlite:f", registry)).unwrap().without_secrets();
        let into = shown.workloads[0].into.as_ref().unwrap();
        assert_eq!(into.schema_registry.as_deref(), Some("http://h:8081"));
    }
}
