//! What a trial was like: its loads, each held for some slices, and whether the target carried them.

use super::clients::StageClients;
use super::load;
use super::search::{Trial, TrialVerdict, VoidCause};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_engine::aggregator::Slice;
use weir_engine::scenario::LoadKind;
use weir_engine::summary::units::FigureUnit;
use weir_engine::summary::{
    FailureCount, LinkLoad, OtherLoad, Outcome, Point, ProcessLoad, Reason, StageSummary, Summary,
    VerdictState, WorkloadPoint, WorkloadSummary,
};
use weir_engine::threshold::Threshold;
use weir_metrics::Estimate;
use weir_metrics::common::names;
use weir_protocols::asked::{self, Asked};

/// A delay that grows by more than this over a trial belongs to a target that falls behind: at 15 s it is less than 1 % of
/// the media.
const RISE_SECONDS: f64 = 0.1;

/// How slow a source's clock may be, in seconds a second, where it is not weir's own: what is paced by a sound card. All viewers fall behind by it
/// evenly, under a light load too.
const SOURCES_DIFFER: f64 = 0.01;

/// A slice in which a larger share of the clients waits for a keyframe is not judged: what waits is excused from what is asked, and
/// few that play say nothing of the load.
const MOST_WAITING: f64 = 0.1;

/// What is asked besides if arrivals are counted: a server that they are too many for lets them wait.
const OF_ARRIVALS: [&str; 1] = ["startup.p99 < 1s"];
/// The same if messages are: a broker that they are too many for holds their publishers up, or drops some.
const OF_MESSAGES: [&str; 2] = [asked::BIT_RATE.of_slice, "lost == 0"];

/// A condition that every slice of a trial is judged by.
#[derive(Clone, Debug, PartialEq)]
pub struct Criterion {
    /// What.
    pub threshold: Threshold,
    /// Whether a slice in which it has no value is good: a default asks for figures that not every protocol has.
    pub may_lack: bool,
}

/// What is asked beside a person's own thresholds, unless one of them is about the same: clients that still wait for an answer
/// have no startup time and no bit rate, and would count as carried.
const ALWAYS: &str = asked::PLAYED.of_slice;

/// What a person asks for, and that the clients play; or the usual if that is nothing, with what `of_clients` would notice.
pub fn criteria(thresholds: &[Threshold], kind: LoadKind, of_clients: &[Asked]) -> Vec<Criterion> {
    let of_clients = asked::OF_ALL.iter().chain(of_clients).map(|it| it.of_slice);
    let of_kind: &[&str] = match kind {
        LoadKind::Arrivals => &OF_ARRIVALS,
        LoadKind::Messages => &OF_MESSAGES,
        LoadKind::Clients | LoadKind::Publishers | LoadKind::Streams => &[],
    };
    let defaults: Vec<&str> = if thresholds.is_empty() {
        of_clients.chain(of_kind.iter().copied()).collect()
    } else {
        vec![ALWAYS]
    };
    let defaults = defaults.into_iter().filter_map(|text| text.parse::<Threshold>().ok());
    let unasked = defaults.filter(|it| !thresholds.iter().any(|own| own.is_about_the_same_as(it)));
    let own = thresholds.iter().map(|it| Criterion { threshold: it.clone(), may_lack: false });
    own.chain(unasked.map(|threshold| Criterion { threshold, may_lack: true })).collect()
}

/// What each load of a trial is to be held for, and what each of its slices is judged by.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialPlan {
    /// What every slice is judged by.
    pub criteria: Vec<Criterion>,
    /// The loads, in the order of the stages.
    pub loads: Vec<u32>,
    /// Seconds of a slice.
    pub slice_seconds: u32,
    /// Slices of each load.
    pub slices: u32,
    /// What a load is a number of.
    pub kind: LoadKind,
    /// Positions of the workloads that are judged, the one that makes the load first.
    pub judged: Vec<usize>,
    /// Positions of the workloads that publish what the load plays, and are no part of it.
    pub sources: Vec<usize>,
    /// What earlier trials say of the source's clock.
    pub clock: Option<SourceClock>,
}

/// How slow the clock of a source may be that is not weir's own: as viewers saw it under the lightest load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SourceClock {
    /// The load.
    pub load: u32,
    /// By how much its viewers fell behind, in seconds a second, at the most.
    pub slope: f64,
}

impl SourceClock {
    /// What these loads say, which were held for a time.
    pub fn of(loads: &[LoadOutcome]) -> Option<Self> {
        let known = loads.iter().filter_map(|it| Some(Self { load: it.load, slope: it.drift_slope? }));
        known.min_by_key(|it| it.load)
    }

    /// That of the lighter load, of two.
    pub fn lighter(self, other: Option<Self>) -> Self {
        other.filter(|other| other.load <= self.load).unwrap_or(self)
    }
}

/// The slices of a trial as they come in, while it runs.
#[derive(Clone, Debug)]
pub struct TrialSlices {
    plan: TrialPlan,
    loads: Vec<LoadSlices>,
}

/// The slices of one load.
#[derive(Clone, Debug, Default)]
struct LoadSlices {
    good: u32,
    bad: u32,
    /// Slices in which too many clients waited for a keyframe.
    waiting: u32,
    playing: f64,
    bps: f64,
    units: f64,
    /// Clients up to its end that weir itself did not start, or lost.
    own_faults: u64,
    /// For each criterion: the slices that it failed in, the sum of its values in them, and how many it had one in.
    failed: Vec<(u32, f64, u32)>,
}

/// One load of a trial, as it is written down.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadOutcome {
    /// The load.
    pub load: u32,
    /// Whether the target carried it.
    pub verdict: TrialVerdict,
    /// Seconds in which all criteria held.
    pub good_seconds: u32,
    /// Seconds in which something did not.
    pub bad_seconds: u32,
    /// What did not hold, the commonest first.
    pub failed: Vec<FailedThreshold>,
    /// What most clients that failed met, if the load was not carried and any failed.
    pub failure: Option<FailureCount>,
    /// Why nothing can be concluded about the target, if nothing can.
    pub void: Option<String>,
    /// Whose fault that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub void_cause: Option<VoidCause>,
    /// Clients that played all the time while the target refused all others, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admitted: Option<u32>,
    /// Whether no client ever played.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_empty: bool,
    /// Clients that played, or published, in the mean of its seconds.
    pub playing: f64,
    /// Media that came, or went, in bits a second.
    pub actual_bps: f64,
    /// Messages, or other units of media, that came, or went, in a second.
    #[serde(default)]
    pub units_per_second: f64,
    /// The watched processes.
    pub targets: Vec<ProcessLoad>,
    /// weir itself.
    pub generator: Option<ProcessLoad>,
    /// CPU of the host, in percent of one core.
    pub host_cpu_percent: Option<f64>,
    /// Processes that are neither weir nor watched and used most of the host's CPU; empty while they used little.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherLoad>,
    /// What went over the interfaces of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkLoad>,
    /// What the watched processes spent on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// By how much the median delay against the media clock grew, in seconds a second: the upper end of its 95 % interval. Heavier loads
    /// are held against that of the lightest, which is the clock of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_slope: Option<f64>,
}

/// What went over the interfaces of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkLoad {
    /// Bits received a second on all interfaces, loopback included.
    pub rx_bps: f64,
    /// Bits sent a second on all interfaces, loopback included.
    pub tx_bps: f64,
    /// The interface that came closest to its speed, of those whose speed is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkLoad>,
}

/// CPU time of the watched processes together, by what it was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Of what.
    pub of: CostOf,
    /// Seconds of CPU for one of it.
    pub cpu_seconds: f64,
}

/// What CPU time is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CostOf {
    /// One client for one second, where clients play or publish media.
    ClientSecond,
    /// A thousand messages that came, or went, where clients have messages.
    ThousandMessages,
}

impl Cost {
    fn of(outcome: &LoadOutcome, has_messages: bool) -> Option<Self> {
        let cpu: f64 = outcome.targets.iter().map(|it| it.cpu_percent / 100.0).sum();
        let (of, number) = if has_messages {
            (CostOf::ThousandMessages, outcome.units_per_second / 1_000.0)
        } else {
            (CostOf::ClientSecond, outcome.playing)
        };
        (!outcome.targets.is_empty() && number > 0.0).then(|| Self { of, cpu_seconds: cpu / number })
    }
}

/// A criterion that did not hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailedThreshold {
    /// What was asked; or what was seen, where it is nothing that can be asked for.
    pub expression: String,
    /// Its mean over the slices in which it did not hold; none if it had no value.
    pub value: Option<f64>,
    /// What the value is in.
    pub unit: FigureUnit,
    /// Seconds in which it did not hold.
    pub seconds: u32,
}

impl TrialSlices {
    /// Of a trial that has not begun.
    pub fn new(plan: TrialPlan) -> Self {
        let failed = vec![(0, 0.0, 0); plan.criteria.len()];
        let loads = vec![LoadSlices { failed, ..LoadSlices::default() }; plan.loads.len()];
        Self { plan, loads }
    }

    /// What each slice is judged by.
    pub fn thresholds(&self) -> Vec<Threshold> {
        self.plan.criteria.iter().map(|criterion| criterion.threshold.clone()).collect()
    }

    /// Takes a slice, judged by [`Self::thresholds`].
    pub fn add(&mut self, slice: &Slice) {
        let Some(load) = self.loads.get_mut(usize::from(slice.stage)) else { return };
        // A window may have room for one more.
        if load.seen() == self.plan.slices {
            return;
        }
        if slice.waiting > MOST_WAITING * f64::from(slice.clients) {
            load.waiting += 1;
            return;
        }
        let mut is_good = true;
        for ((criterion, result), failed) in
            self.plan.criteria.iter().zip(&slice.results).zip(&mut load.failed)
        {
            let lacks = result.value.is_none() && criterion.may_lack;
            if !result.passed && !lacks {
                is_good = false;
                let (slices, sum, values) = *failed;
                *failed = (
                    slices + 1,
                    sum + result.value.unwrap_or(0.0),
                    values + u32::from(result.value.is_some()),
                );
            }
        }
        load.good += u32::from(is_good);
        load.bad += u32::from(!is_good);
        load.playing += slice.playing;
        load.bps += slice.actual_bps;
        load.units += slice.units_per_second;
        load.own_faults = slice.own_faults;
    }

    /// Whether a load can no longer be carried, however its other slices turn out: nothing is left to be learnt.
    pub fn is_lost(&self) -> bool {
        self.loads.iter().any(|load| load.bad * 2 > self.plan.slices)
    }

    /// What became of each load that was held, in the order of the stages: the slices, and what the summary of the run knows
    /// of its machine, of its clients and of delays that grew.
    pub fn outcomes(&self, summary: &Summary) -> Vec<LoadOutcome> {
        let judged = &self.plan.judged;
        let workload = judged.first().copied().unwrap_or_default();
        let stages = summary.workloads.get(workload).map_or(&[][..], |it| &it.stages);
        let held = self.loads.iter().filter(|load| load.seen() > 0).count();
        let is_whole = |load: &LoadSlices| load.seen() == self.plan.slices;
        let are_whole = self.loads[..held].iter().all(is_whole);
        let broken = match &summary.outcome {
            Outcome::TargetDied => Some("the watched process was gone".to_owned()),
            Outcome::NobodyLeft if held < self.loads.len() || !are_whole => {
                Some("every client had failed".to_owned())
            }
            Outcome::Aborted(threshold) => Some(format!("{threshold} ended the trial")),
            _ => None,
        };
        // It broke under the load that was being held, or approached.
        let is_approached = broken.is_some() && held < self.loads.len() && are_whole;
        let begun = held + usize::from(is_approached);
        let rows = (0_u16..).zip(self.plan.loads.iter().zip(&self.loads)).take(begun);
        let is_broken = |stage: u16| broken.is_some() && usize::from(stage) + 1 == begun;
        // One that was cut short before it is known how it turns out says nothing.
        let rows = rows.filter(|(stage, (_, slices))| is_broken(*stage) || slices.is_known(self.plan.slices));
        let mut clock = self.plan.clock;
        rows.map(|(stage, (load, slices))| {
            let row = stages.get(usize::from(stage));
            let mut outcome = self.outcome(*load, slices, row);
            let mut of_all = judged.iter().filter_map(|at| Some((*at, summary.workloads.get(*at)?)));
            let slow = self.slowest_clock(*load, clock);
            let rise = of_all.find_map(|(at, it)| {
                let row = it.stages.get(usize::from(stage))?;
                let steady = RISE_SECONDS + waits_for_a_unit(it, row);
                rise(&summary.series, at, row, steady, slow)
            });
            let drift =
                row.and_then(|row| Estimate::of_slope(&points(&summary.series, workload, row, DRIFT)));
            outcome.drift_slope = drift.map(|slope| slope.high);
            if let Some(rise) = rise {
                outcome.fail(rise);
            }
            if let Some(own) = SourceClock::of(std::slice::from_ref(&outcome)) {
                clock = Some(own.lighter(clock));
            }
            if let Some(what) = broken.as_ref().filter(|_| is_broken(stage)) {
                outcome.fail(FailedThreshold {
                    expression: what.clone(),
                    value: None,
                    unit: FigureUnit::Count,
                    seconds: 0,
                });
            }
            let clients = row.map(|row| StageClients::of(summary, workload, row));
            if let Some(clients) = &clients {
                outcome.is_empty = clients.is_empty();
                // A load that is a rate, or a number of streams, is no number of clients.
                let is_of_clients =
                    self.plan.kind.climbs_in_one_run() && outcome.verdict == TrialVerdict::Fail;
                outcome.admitted = clients.admitted(*load).filter(|_| is_of_clients);
            }
            let own = judged.iter().find_map(|at| void(summary, *at as u16, stage, slices.own_faults));
            let source = clients.as_ref().and_then(|it| it.without_source(&self.plan.sources));
            let void = match source {
                // Without its source nothing else matters; a publisher may have been dropped for what weir did.
                Some((VoidCause::Source, _)) => source,
                _ => own.map(|why| (VoidCause::Generator, why)).or(source),
            };
            let void = void.or_else(|| {
                let waits = slices.waiting > 0 && !slices.is_decided(self.plan.slices) && !is_broken(stage);
                waits.then(|| (VoidCause::Keyframes, slices.wait_words()))
            });
            if let Some((cause, why)) = void {
                (outcome.void, outcome.void_cause) = (Some(why), Some(cause));
                outcome.verdict = TrialVerdict::Void;
            }
            if outcome.verdict == TrialVerdict::Fail {
                let failures = summary.workloads.get(workload).map(|it| &it.failures[..]);
                outcome.failure = failures.and_then(<[_]>::first).cloned();
            }
            outcome
        })
        .collect()
    }

    /// How slow the source's clock may be where this load is held, if so much is known of it.
    fn slowest_clock(&self, load: u32, known: Option<SourceClock>) -> f64 {
        // What weir publishes keeps the time that it measures with.
        if !self.plan.sources.is_empty() || self.plan.kind == LoadKind::Streams {
            return 0.0;
        }
        let known = known.filter(|it| it.load <= load);
        known.map_or(SOURCES_DIFFER, |it| it.slope.clamp(0.0, SOURCES_DIFFER))
    }

    fn outcome(&self, load: u32, slices: &LoadSlices, row: Option<&StageSummary>) -> LoadOutcome {
        let seconds = self.plan.slice_seconds;
        let all = f64::from((slices.good + slices.bad).max(1));
        let failed = self.plan.criteria.iter().zip(&slices.failed).filter(|(_, (slices, ..))| *slices > 0);
        let mut failed: Vec<_> = failed
            .map(|(criterion, (slices, sum, values))| FailedThreshold {
                expression: criterion.threshold.text().to_owned(),
                value: (*values > 0).then(|| sum / f64::from(*values)),
                unit: row.map_or(FigureUnit::Count, |row| criterion.threshold.unit(&row.figures)),
                seconds: slices * seconds,
            })
            .collect();
        failed.sort_by_key(|failed| std::cmp::Reverse(failed.seconds));
        let mut outcome = LoadOutcome {
            load,
            verdict: if slices.bad > slices.good { TrialVerdict::Fail } else { TrialVerdict::Pass },
            good_seconds: slices.good * seconds,
            bad_seconds: slices.bad * seconds,
            failed,
            failure: None,
            void: None,
            void_cause: None,
            admitted: None,
            is_empty: false,
            playing: slices.playing / all,
            actual_bps: slices.bps / all,
            units_per_second: slices.units / all,
            targets: row.map_or_else(Vec::new, |row| row.targets.clone()),
            generator: row.and_then(|row| row.generator.clone()),
            host_cpu_percent: row.and_then(|row| row.host.as_ref()).map(|host| host.cpu_percent),
            others: row.and_then(|row| row.host.as_ref()).map_or_else(Vec::new, |host| host.others.clone()),
            network: row.and_then(|row| row.host.as_ref()).map(|host| NetworkLoad {
                rx_bps: host.rx_bps,
                tx_bps: host.tx_bps,
                link: host.link.clone(),
            }),
            cost: None,
            drift_slope: None,
        };
        // Of what the processes used together, a part is no measure.
        if row.is_none_or(|row| row.unheard.is_empty()) {
            outcome.cost = Cost::of(&outcome, row.is_some_and(|row| row.messages.is_some()));
        }
        outcome
    }
}

impl LoadSlices {
    /// Whether the slices that are missing cannot change the verdict (RFC 9971, section 4.5: a load is a lower bound even if
    /// all that is missing should turn out bad).
    fn is_decided(&self, slices: u32) -> bool {
        self.good * 2 >= slices || self.bad * 2 > slices
    }

    /// Slices that were held, judged or not.
    fn seen(&self) -> u32 {
        self.good + self.bad + self.waiting
    }

    /// Whether something can be said of the load, if only that its clients waited until its end.
    fn is_known(&self, slices: u32) -> bool {
        self.is_decided(slices) || self.waiting > 0 && self.seen() == slices
    }

    fn wait_words(&self) -> String {
        format!(
            "clients waited for the stream's next keyframe in {} of {} slices; give a warm-up, or a hold, longer than keyframes are apart",
            self.waiting,
            self.seen()
        )
    }
}

impl LoadOutcome {
    /// The same as the search takes it.
    pub fn trial(&self) -> Trial {
        Trial {
            load: self.load,
            good_seconds: self.good_seconds,
            bad_seconds: self.bad_seconds,
            void: self.void_cause,
            is_empty: self.is_empty,
            admitted: self.admitted,
        }
    }

    /// All of its seconds are bad, for this reason.
    fn fail(&mut self, reason: FailedThreshold) {
        let seconds = (self.good_seconds + self.bad_seconds).max(1);
        (self.good_seconds, self.bad_seconds) = (0, seconds);
        self.failed.insert(0, FailedThreshold { seconds, ..reason });
        self.verdict = TrialVerdict::Fail;
    }
}

/// Why nothing can be concluded from a stage, if nothing can. Clients that were never started, or that failed on this machine,
/// are known of the whole run: they are of no stage that was over before the first of them. Who waits for a keyframe each slice knows itself.
fn void(summary: &Summary, workload: u16, stage: u16, own_faults: u64) -> Option<String> {
    let place = (workload, stage);
    let is_of_it = |reason: &&Reason| {
        let is_later = ["missed_slots", "local_failures"].contains(&&*reason.check) && own_faults == 0;
        let known = reason.stage.is_none_or(|of| of == place || reason.also.contains(&place));
        reason.state == VerdictState::Invalid && known && !is_later && reason.check != "keyframe_waits"
    };
    summary.verdict.reasons.iter().find(is_of_it).map(|reason| format!("{}: {}", reason.check, reason.text))
}

/// Of viewers that load ahead, how long they may wait for a unit that is there: each asks at moments of its own, which drift against
/// those at which units are there by a whole one.
fn waits_for_a_unit(workload: &WorkloadSummary, stage: &StageSummary) -> f64 {
    let loads_ahead = workload.targets.iter().any(|url| load::loads_ahead(url));
    let units = stage.figures.total(names::UNITS);
    if loads_ahead && units > 0.0 { stage.expected_clients() * stage.window_seconds() / units } else { 0.0 }
}

/// The delay of each second: the median latency, or the median delay against the media clock.
type Delay = (&'static str, fn(&WorkloadPoint) -> Option<f64>);
const LATENCY: Delay = ("latency.p50", |it| it.latency_p50_seconds);
const DRIFT: Delay = ("drift.p50", |it| it.drift_p50_seconds);

/// The seconds of a window that have such a delay.
fn points(series: &[Point], workload: usize, stage: &StageSummary, (_, delay): Delay) -> Vec<(f64, f64)> {
    let window = stage.window_begin_seconds..stage.window_end_seconds;
    let of_window = series.iter().filter(|point| window.contains(&point.second));
    let points =
        of_window.filter_map(|point| Some((f64::from(point.second), delay(point.workloads.get(workload)?)?)));
    points.collect()
}

/// A delay that grew by more than this while a load was held: the median latency of each second, or where nothing is stamped the median
/// delay against the media clock, which may be slow by as much.
fn rise(
    series: &[Point],
    workload: usize,
    stage: &StageSummary,
    most: f64,
    slow: f64,
) -> Option<FailedThreshold> {
    [(LATENCY, 0.0), (DRIFT, slow)].into_iter().find_map(|(delay, slow)| {
        let seconds = f64::from(stage.window_end_seconds - stage.window_begin_seconds);
        let slope = Estimate::of_slope(&points(series, workload, stage, delay))?;
        ((slope.low - slow) * seconds > most).then(|| FailedThreshold {
            expression: format!("rise of {} <= {:.0} ms", delay.0, (most + slow * seconds) * 1e3),
            value: Some(slope.mean * seconds),
            unit: FigureUnit::Seconds,
            seconds: 0,
        })
    })
}
