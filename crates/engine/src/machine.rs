//! The target's machine over a load and before it: from points to the figures of a report. Functions of
//! values; whether `/proc`, node_exporter or Prometheus counted makes no difference here.

pub mod growth;
pub(crate) mod loads;

use crate::date::date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_observe::{
    Figure, MachineFacts, MachinePoint, MachineSource, MachineUsage, MachineValues, Sample, Window,
};
use weir_setting::INTERFACES;

/// Share of the load that is left out at either end.
const TRIM: f64 = 0.2;
/// Most that is left out at either end: what mirakc's measurement leaves out of its ten minutes.
const MOST_TRIM_SECONDS: f64 = 120.0;
/// Time on either side of the load that a graph shows.
const MARGIN_SECONDS: f64 = 120.0;
/// How much later than second 0 a point may be that says what was before.
const BASE_SLACK_NS: u64 = 50_000_000;
/// Points are taken up to half a second from where they belong.
const SLACK_NS: u64 = 500_000_000;

/// The target's machine over the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineSummary {
    /// Which machine, and how it was read.
    #[serde(flatten)]
    pub facts: MachineFacts,
    /// Length of the stretch before second 0 that `base` is of; none if none was sampled.
    pub base_seconds: Option<f64>,
    /// The figures are from this second of the run on.
    pub begin_seconds: f64,
    /// To this one.
    pub end_seconds: f64,
    /// `cpu`: 100 · (1 − idle), in percent of all CPUs together.
    pub cpu_percent: Option<MachineFigure>,
    /// `memory`: MemTotal − (MemFree + Buffers + Cached).
    pub memory_bytes: Option<MachineFigure>,
    /// `load1`: load average over a minute.
    pub load1: Option<MachineFigure>,
    /// `tx`: bits sent a second, on the interfaces that count.
    pub tx_bps: Option<MachineFigure>,
    /// `rx`: bits received a second, on the interfaces that count.
    pub rx_bps: Option<MachineFigure>,
    /// Prometheus: where to see the same as curves.
    pub graph_url: Option<String>,
}

/// One figure of a machine; what was not counted is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineFigure {
    /// Mean before the load.
    pub base: Option<f64>,
    /// Least.
    pub min: f64,
    /// Mean.
    pub mean: f64,
    /// The least value that at least 95 % of the values do not exceed.
    pub p95: f64,
    /// Greatest.
    pub max: f64,
    /// `MIN+`: `min` − `base`, 0 at the least.
    pub min_increase: Option<f64>,
    /// `MAX+`: `max` − `base`, 0 at the least.
    pub max_increase: Option<f64>,
}

impl MachineSummary {
    /// Name and figure, in the order of the classic table.
    pub fn named(&self) -> [(&'static str, Option<MachineFigure>); 5] {
        [
            ("cpu", self.cpu_percent),
            ("memory", self.memory_bytes),
            ("load1", self.load1),
            ("tx", self.tx_bps),
            ("rx", self.rx_bps),
        ]
    }
}

impl MachineFigure {
    fn new(figure: Figure, base: Option<Figure>) -> Self {
        let Figure { min, mean, p95, max } = figure;
        let base = base.map(|base| base.mean);
        let increase = |value: f64| base.map(|base| (value - base).max(0.0));
        Self { base, min, mean, p95, max, min_increase: increase(min), max_increase: increase(max) }
    }
}

/// When a run was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadSpan {
    /// Second 0 on the monotonic clock.
    pub(crate) origin_ns: u64,
    /// Second 0 on the wall clock, since the Unix epoch.
    pub(crate) started_at_seconds: f64,
    /// What was sampled before second 0.
    pub(crate) base_seconds: f64,
    /// From second 0 to the end of the load.
    pub(crate) load_seconds: f64,
}

/// The course of each machine, in the order of `machines`, the oldest point first.
pub(crate) fn courses(machines: &[MachineFacts], samples: &[Sample]) -> Vec<Vec<MachinePoint>> {
    let mut remote = 0;
    let mut course = |facts: &MachineFacts| {
        if facts.source == MachineSource::Proc {
            let spaced = Sample::spaced(samples);
            let pairs = spaced
                .windows(2)
                .map(|pair| [(pair[0].at_ns, &pair[0].host), (pair[1].at_ns, &pair[1].host)]);
            return pairs
                .filter_map(|[from, to]| MachinePoint::of_host(from, to, &facts.interfaces))
                .collect();
        }
        let heard = samples.iter().filter_map(|sample| sample.machines.get(remote));
        let mut points: Vec<_> = heard.flat_map(|heard| &heard.points).copied().collect();
        points.sort_by_key(|point| point.at_ns);
        remote += 1;
        points
    };
    machines.iter().map(&mut course).collect()
}

/// One machine over the trimmed load, beside what was before it.
pub(crate) fn summary(facts: &MachineFacts, course: &[MachinePoint], span: LoadSpan) -> MachineSummary {
    let trim = (span.load_seconds * TRIM).min(MOST_TRIM_SECONDS);
    let (begin, end) = (trim, span.load_seconds - trim);
    let at = |seconds| at_second(span, seconds);
    let load = Window { from_ns: at(begin).saturating_sub(SLACK_NS), to_ns: at(end) + SLACK_NS };
    let usage = MachineUsage::over(course, load);
    // A source that has a point every ten seconds has its last one before the load that long before.
    let base_seconds = (span.base_seconds > 0.0).then(|| span.base_seconds.max(facts.step_seconds));
    let base = base_seconds.map_or_else(MachineUsage::default, |seconds| {
        let before = nanos(seconds).saturating_add(SLACK_NS);
        let window =
            Window { from_ns: span.origin_ns.saturating_sub(before), to_ns: span.origin_ns + BASE_SLACK_NS };
        MachineUsage::over(course, window)
    });
    let figure = |of: fn(&MachineUsage) -> Option<Figure>| {
        of(&usage).map(|figure| MachineFigure::new(figure, of(&base)))
    };
    MachineSummary {
        facts: facts.clone(),
        base_seconds,
        begin_seconds: begin,
        end_seconds: end,
        cpu_percent: figure(|it| it.cpu_percent),
        memory_bytes: figure(|it| it.memory_bytes),
        load1: figure(|it| it.load1),
        tx_bps: figure(|it| it.tx_bps),
        rx_bps: figure(|it| it.rx_bps),
        graph_url: graph_url(facts, span),
    }
}

/// A second of the run on the monotonic clock.
fn at_second(span: LoadSpan, seconds: f64) -> u64 {
    span.origin_ns.saturating_add(nanos(seconds))
}

/// Below zero is zero, and what is too long is as long as can be: a run directory may say anything.
fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

/// Where to see the load and what was around it as curves.
fn graph_url(facts: &MachineFacts, span: LoadSpan) -> Option<String> {
    let end = span.started_at_seconds + span.load_seconds + MARGIN_SECONDS;
    let end = (end + facts.clock_ahead_seconds.unwrap_or_default()).ceil();
    facts.graph_url(span.load_seconds + 2.0 * MARGIN_SECONDS, &date(end, "%Y-%m-%d %H:%M:%S"))
}

/// Each machine over a stage's window of whole seconds.
pub(crate) fn stage(
    courses: &[Vec<MachinePoint>],
    origin_ns: u64,
    begin: u32,
    end: u32,
) -> Vec<MachineUsage> {
    let at = |second: u32| origin_ns + u64::from(second) * 1_000_000_000;
    // A second's rate comes at its end.
    let window = Window { from_ns: at(begin) + SLACK_NS, to_ns: at(end) + SLACK_NS };
    courses.iter().map(|course| MachineUsage::over(course, window)).collect()
}

/// The figures of every second that has any, one entry a machine.
pub(crate) fn seconds(courses: &[Vec<MachinePoint>], origin_ns: u64) -> BTreeMap<u32, Vec<MachineValues>> {
    let mut seconds = BTreeMap::<u32, Vec<MachineValues>>::new();
    for (position, course) in courses.iter().enumerate() {
        for point in course {
            // A rate belongs to the second that most of it is of.
            let half = (point.seconds.min(1.0) * 0.5e9) as u64;
            let Some(since) = point.at_ns.saturating_sub(half).checked_sub(origin_ns) else { continue };
            let second = u32::try_from(since / 1_000_000_000).unwrap_or(u32::MAX);
            let values =
                seconds.entry(second).or_insert_with(|| vec![MachineValues::default(); courses.len()]);
            values[position] = point.values;
        }
    }
    seconds
}

/// What a reader must know of the machines' figures: when one did not answer, and what never came.
pub(crate) fn warnings(
    machines: &[MachineFacts],
    courses: &[Vec<MachinePoint>],
    samples: &[Sample],
    span: LoadSpan,
) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut remote = 0;
    for (facts, course) in machines.iter().zip(courses) {
        let name = name(facts);
        if facts.source != MachineSource::Proc {
            let heard =
                samples.iter().filter_map(|sample| Some((sample.at_ns, sample.machines.get(remote)?)));
            warnings.extend(
                silence(
                    heard.filter_map(|(at, heard)| Some((at, heard.failure.as_deref()?))),
                    course,
                    span.origin_ns,
                )
                .map(|text| format!("{name} {text}")),
            );
            let position = remote;
            remote += 1;
            let (from, to) = (span.origin_ns, at_second(span, span.load_seconds));
            let is_empty =
                |point: &&MachinePoint| (from..=to).contains(&point.at_ns) && point.values.is_empty();
            let seconds: f64 = course.iter().filter(is_empty).map(|point| point.seconds).sum();
            if seconds > 0.0 {
                let gaps = samples.iter().filter(|sample| sample.at_ns >= span.origin_ns);
                let why = gaps.filter_map(|sample| sample.machines.get(position)?.gap.as_deref()).next();
                let why = why.map_or_else(String::new, |why| format!(": {why}"));
                warnings.push(format!(
                    "{name} had no figure of the machine for {seconds:.0} s of the load{why}; its figures are of the rest"
                ));
            }
        }
        let usage = MachineUsage::over(course, Window { from_ns: span.origin_ns, to_ns: u64::MAX });
        let absent: Vec<_> =
            usage.named().into_iter().filter(|(_, figure)| figure.is_none()).map(|(name, _)| name).collect();
        if !absent.is_empty() && span.load_seconds > 2.0 * facts.step_seconds {
            warnings.push(format!("{name} gave no {}{}", absent.join(", "), reason(facts, &absent)));
        }
    }
    warnings
}

/// From when to when a machine did not answer.
fn silence<'a>(
    failures: impl Iterator<Item = (u64, &'a str)>,
    course: &[MachinePoint],
    origin_ns: u64,
) -> Option<String> {
    let failures: Vec<_> = failures.collect();
    let (&(first, words), &(last, _)) = failures.first().zip(failures.last())?;
    let at = |at_ns: u64| at_ns.saturating_sub(origin_ns) / 1_000_000_000;
    let again = course.iter().map(|point| point.at_ns).find(|&point| point > last);
    // It had figures up to its last answer, whenever the question after that was given up.
    let heard = course.iter().map(|point| point.at_ns).filter(|&point| point <= first).max().unwrap_or(first);
    Some(match again {
        Some(again) => format!("did not answer between {} s and {} s: {words}", at(heard), at(again)),
        None => format!("did not answer from {} s on: {words}; its figures end there", at(heard)),
    })
}

/// What mostly lies behind figures that are not there.
fn reason(facts: &MachineFacts, absent: &[&str]) -> String {
    let misses = |name| absent.contains(&name);
    let interfaces = &facts.interfaces;
    match facts.source {
        MachineSource::Prometheus if misses("cpu") && misses("tx") && !misses("load1") => {
            "; its rates need two collections a minute: let it collect every 30 s or more often".to_owned()
        }
        _ if (misses("tx") || misses("rx")) && !misses("cpu") => {
            format!("; it knows no interface named {interfaces}: choose others with {INTERFACES}")
        }
        _ => String::new(),
    }
}

/// How a machine is called in a sentence.
fn name(facts: &MachineFacts) -> String {
    let address = facts.address.as_deref().unwrap_or_default();
    match facts.source {
        MachineSource::Proc => "/proc".to_owned(),
        MachineSource::NodeExporter => format!("node_exporter {address}"),
        MachineSource::Prometheus => format!("Prometheus {address}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_observe::Interfaces;

    const SECOND: u64 = 1_000_000_000;
    const ORIGIN: u64 = 100 * SECOND;

    fn facts(source: MachineSource) -> MachineFacts {
        let address = Some("http://h:9100".to_owned());
        MachineFacts { source, address, ..MachineFacts::of_this_machine(Interfaces::default()) }
    }

    fn point(second: i64, cpu: f64) -> MachinePoint {
        let values = MachineValues { cpu_percent: Some(cpu), load1: Some(1.0), ..MachineValues::default() };
        let at_ns = (ORIGIN as i64 + second * SECOND as i64) as u64;
        MachinePoint { at_ns, seconds: 1.0, values }
    }

    fn span(load_seconds: f64) -> LoadSpan {
        LoadSpan { origin_ns: ORIGIN, started_at_seconds: 0.0, base_seconds: 3.0, load_seconds }
    }

    #[test]
    fn ten_minutes_lose_two_at_either_end_and_are_set_beside_what_was_before() {
        let course: Vec<_> =
            (-9..=600).map(|second| point(second, if second <= 0 { 5.0 } else { second as f64 })).collect();
        let summary = summary(&facts(MachineSource::NodeExporter), &course, span(600.0));
        assert_eq!((summary.begin_seconds, summary.end_seconds), (120.0, 480.0));
        let cpu = summary.cpu_percent.unwrap();
        assert_eq!((cpu.base, cpu.min, cpu.max), (Some(5.0), 120.0, 480.0));
        assert_eq!((cpu.min_increase, cpu.max_increase), (Some(115.0), Some(475.0)));
        assert_eq!(summary.load1.unwrap().min_increase, Some(0.0), "never below 0");
        assert_eq!(summary.tx_bps, None);
    }

    #[test]
    fn a_minute_loses_a_fifth_and_without_a_base_there_is_no_increase() {
        let course: Vec<_> = (1..=60).map(|second| point(second, second as f64)).collect();
        let summary =
            summary(&facts(MachineSource::Proc), &course, LoadSpan { base_seconds: 0.0, ..span(60.0) });
        let cpu = summary.cpu_percent.unwrap();
        assert_eq!((cpu.min, cpu.max, cpu.base, cpu.max_increase), (12.0, 48.0, None, None));
        assert_eq!(summary.base_seconds, None);
    }

    #[test]
    fn a_stage_has_one_rate_a_second_of_its_window() {
        let course: Vec<_> = (1..=10).map(|second| point(second, second as f64)).collect();
        let usage = stage(&[course], ORIGIN, 2, 5)[0];
        // The rates of seconds 2, 3 and 4 come at 3, 4 and 5.
        assert_eq!(usage.cpu_percent.map(|figure| (figure.min, figure.max)), Some((3.0, 5.0)));
    }

    #[test]
    fn a_second_shows_what_each_machine_did_in_it() {
        let courses = [vec![point(0, 9.0), point(1, 1.0), point(2, 2.0)], vec![point(2, 7.0)]];
        let seconds = seconds(&courses, ORIGIN);
        assert_eq!(seconds.keys().copied().collect::<Vec<_>>(), [0, 1]);
        assert_eq!(seconds[&0][0].cpu_percent, Some(1.0));
        assert_eq!((seconds[&0][1].cpu_percent, seconds[&1][1].cpu_percent), (None, Some(7.0)));
    }

    #[test]
    fn silence_is_told_with_its_beginning_and_its_end() {
        let failures =
            || [(ORIGIN + 7 * SECOND, "connection refused"), (ORIGIN + 9 * SECOND, "again")].into_iter();
        let told = |course: &[MachinePoint]| silence(failures(), course, ORIGIN).unwrap();
        assert_eq!(
            told(&[point(3, 1.0), point(12, 1.0)]),
            "did not answer between 3 s and 12 s: connection refused"
        );
        assert_eq!(
            told(&[point(3, 1.0)]),
            "did not answer from 3 s on: connection refused; its figures end there"
        );
        assert_eq!(silence(std::iter::empty(), &[], ORIGIN), None);
    }

    #[test]
    fn seconds_without_figures_are_told_with_their_reason() {
        let mut course: Vec<_> = (0..30).map(|second| point(second, 1.0)).collect();
        course[20..26].iter_mut().for_each(|point| point.values = MachineValues::default());
        let told = |second: u64, gap: Option<&str>| Sample {
            at_ns: ORIGIN + second * SECOND,
            targets: Vec::new(),
            generator: weir_observe::ProcessSample::default(),
            host: weir_observe::HostSample::default(),
            machines: vec![weir_observe::MachineSample { gap: gap.map(str::to_owned), ..Default::default() }],
            others: Vec::new(),
        };
        let samples = [told(19, None), told(22, Some("it could not collect from h:9100 (up is 0)"))];
        let said = warnings(&[facts(MachineSource::Prometheus)], &[course], &samples, span(30.0));
        let words =
            "had no figure of the machine for 6 s of the load: it could not collect from h:9100 (up is 0);";
        assert!(said[0].contains(words), "{said:?}");
    }

    #[test]
    fn what_never_came_is_said_with_what_to_do() {
        let machines = [facts(MachineSource::NodeExporter)];
        let mut course: Vec<_> = (0..30).map(|second| point(second, 1.0)).collect();
        for point in &mut course {
            point.values.memory_bytes = Some(1.0);
        }
        let said = warnings(&machines, &[course.clone()], &[], span(30.0));
        assert_eq!(
            said,
            [
                "node_exporter http://h:9100 gave no tx, rx; it knows no interface named eth*, en*: choose others with `interfaces`"
            ]
        );
        for point in &mut course {
            point.values.cpu_percent = None;
        }
        let said = warnings(&[facts(MachineSource::Prometheus)], &[course], &[], span(30.0));
        assert!(said[0].contains("two collections a minute"), "{said:?}");
    }
}
