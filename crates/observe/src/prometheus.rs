//! A Prometheus that collects from the node_exporter of the target's machine: asked for the past seconds, by
//! the expressions of mirakc's measurement.
//!
//! Their traps are left out: each expression is of one machine and comes to one series, nothing is rounded,
//! and times are those of the Prometheus' own clock, whatever weir's clock says.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Deserialize;

use crate::{Interfaces, MachineError, MachineFacts, MachineSource, MachineValues};
use weir_http::{Http, HttpAddress, HttpTrust, refusal};
use weir_setting::PROMETHEUS;

/// A point is asked for when it is this old: what was collected just before it has come in by then.
const LAG: Duration = Duration::from_secs(2);
/// Most points that are asked for at once; the server's own limit is 11,000.
const MOST_POINTS: u64 = 5_000;
/// Age from which on the last collection of a machine is out of date, if it is unknown how often it is
/// collected: rates need two collections in a minute.
const LONGEST_AGE_SECONDS: f64 = 65.0;
/// What is kept of a server's own words.
const WORDS: usize = 160;

/// A Prometheus that has answered.
#[derive(Debug)]
pub(crate) struct Prometheus {
    http: Http,
    address: HttpAddress,
    facts: MachineFacts,
    /// A moment on weir's clock, and what the server's clock showed then, since the Unix epoch.
    clock: (Instant, f64),
    /// The next point on the server's clock.
    next: f64,
    health: Health,
}

/// Whether what it knows of the machine is of now. Without asking, its rates go on for a minute when the machine's
/// node_exporter is gone, and all of its figures for longer where samples reach it late.
#[derive(Debug)]
struct Health {
    /// The machine, for a sentence.
    machine: String,
    /// 1 while it can collect, 0 while it cannot; none where it keeps no such figure, as one that is written to.
    up: Option<String>,
    /// How old the last collection is, in seconds.
    age: String,
    /// From this age on a figure is not of now.
    longest_age_seconds: f64,
}

/// A point that has become due.
#[derive(Debug)]
pub(crate) struct Due {
    pub(crate) at: Instant,
    /// Nothing, where there is a `gap`.
    pub(crate) values: MachineValues,
    /// Why nothing is known of the machine then.
    pub(crate) gap: Option<String>,
}

/// What a query came to: the server's own envelope of every answer.
#[derive(Debug, Deserialize)]
struct Answer {
    status: String,
    #[serde(default)]
    data: Data,
    #[serde(default)]
    error: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Data {
    result_type: String,
    result: serde_json::Value,
}

#[derive(Debug, Deserialize)]
struct Series {
    #[serde(default)]
    metric: BTreeMap<String, String>,
    #[serde(default)]
    values: Vec<(f64, String)>,
    #[serde(default)]
    value: Option<(f64, String)>,
}

impl Prometheus {
    /// Asks it for its time and for the machines that it knows. `instance` says which one is meant; it may
    /// be none where there is one only.
    pub(crate) fn new(
        url: &str,
        instance: Option<&str>,
        interfaces: Interfaces,
        step: Duration,
        trust: &HttpTrust,
    ) -> Result<Self, MachineError> {
        let address = HttpAddress::parse(url)
            .ok_or_else(|| MachineError::not_a_url(url, PROMETHEUS, "http://HOST:9090"))?;
        let shown = address.to_string();
        let unheard = |source| MachineError::Unheard { what: "Prometheus", address: shown.clone(), source };
        let http = Http::new(&address, trust).map_err(unheard)?;
        let ask = |query: &str| {
            let place = address.below("api/v1/query").with(&[("query", query)]);
            let (status, body) = http.answer(&place, "application/json").map_err(unheard)?;
            // It says what is wrong with a question in JSON, under a status of 400 and up.
            Answer::parse(&body).map_err(|words| match status {
                200..300 => MachineError::NotPrometheus { address: shown.clone(), words },
                status => unheard(refusal(status, &body)),
            })
        };
        let no =
            |words: &str| MachineError::NotPrometheus { address: shown.clone(), words: words.to_owned() };
        let began = Instant::now();
        let time = ask("time()")?.scalar().ok_or_else(|| no("it does not tell its time"))?;
        let at = began + began.elapsed() / 2;
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let ahead = time - (wall - at.elapsed().as_secs_f64());

        let known = ask("count by (instance, job) (node_cpu_seconds_total{mode=\"idle\"})")?.series();
        let known = known.ok_or_else(|| no("it does not count its machines"))?;
        let machine = choose(&shown, &known, instance)?;
        let mut health = Health::of(machine);
        let single = |query: &str| -> Result<Option<f64>, MachineError> {
            let value = ask(query)?.series().and_then(|series| series.into_iter().next()?.value);
            Ok(value.and_then(|(_, value)| value.parse().ok()))
        };
        if let Some(up) = &health.up
            && single(up)?.is_none()
        {
            health.up = None;
        }
        health.collected(single(&format!("count_over_time({}[2m])", health.series()))?);
        let step_seconds = step.as_secs_f64().max(1.0);
        let facts = MachineFacts {
            source: MachineSource::Prometheus,
            address: Some(shown.clone()),
            instance: machine.get("instance").cloned(),
            step_seconds,
            clock_ahead_seconds: Some(ahead),
            graph: Some(page_of_curves(&http, &address)),
            expressions: expressions(machine, &interfaces).to_vec(),
            ..MachineFacts::of_this_machine(interfaces)
        };
        // The point before now is there already: it says what was before the load.
        Ok(Self { http, address, facts, clock: (at, time), next: time - step_seconds, health })
    }

    pub(crate) fn facts(&self) -> &MachineFacts {
        &self.facts
    }

    /// How long to wait from one question to the next: not for every point that is a second old.
    pub(crate) fn pause(&self) -> Duration {
        Duration::from_secs_f64(self.facts.step_seconds.max(5.0))
    }

    /// The points that have become due: the moment of each, and its figures. With `all`, also those that
    /// are not old enough yet. A failure leaves them due. The error is in words.
    pub(crate) fn ask(&mut self, all: bool) -> Result<Vec<Due>, String> {
        let lag = if all { Duration::ZERO } else { LAG };
        let step = self.facts.step_seconds;
        let end = self.clock.1 + self.clock.0.elapsed().saturating_sub(lag).as_secs_f64();
        if end < self.next {
            return Ok(Vec::new());
        }
        let more = (((end - self.next) / step) as u64).min(MOST_POINTS - 1);
        let range = Range { start: self.next, step, points: more as usize + 1 };
        let mut points = vec![MachineValues::default(); range.points];
        for (position, expression) in self.facts.expressions.iter().enumerate() {
            for (point, value) in points.iter_mut().zip(self.over(expression, range)?) {
                *named(point, position) = value;
            }
        }
        if let Some(peak) = self.facts.expressions.get(1).and_then(|memory| most_over(memory, step)) {
            for (point, value) in points.iter_mut().zip(self.over(&peak, range)?) {
                point.memory_peak_bytes = value;
            }
        }
        let up = self.health.up.as_deref().map(|up| self.over(up, range)).transpose()?;
        let age = self.over(&self.health.age, range)?;
        let due = points.into_iter().enumerate().map(|(index, values)| {
            let gap = self.health.gap(up.as_ref().map(|up| up[index]), age[index]);
            let values = if gap.is_none() { values } else { MachineValues::default() };
            Due { at: self.moment(range.start + index as f64 * step), values, gap }
        });
        let due = due.collect();
        self.next = range.end() + step;
        Ok(due)
    }

    /// The values of an expression that comes to one series, a point each.
    fn over(&self, expression: &str, range: Range) -> Result<Vec<Option<f64>>, String> {
        let place = self.address.below("api/v1/query_range").with(&[
            ("query", expression),
            ("start", &format!("{:.3}", range.start)),
            ("end", &format!("{:.3}", range.end() + 0.001)),
            ("step", &format!("{:.3}", range.step)),
        ]);
        let (status, body) = self.http.answer(&place, "application/json").map_err(|it| it.to_string())?;
        let answer = Answer::parse(&body).map_err(|words| match status {
            200..300 => words,
            status => refusal(status, &body).to_string(),
        })?;
        let mut values = vec![None; range.points];
        for (time, value) in answer.only_series()? {
            let at = ((time - range.start) / range.step).round();
            // NaN is no index, and nothing before the first point is either.
            if at >= 0.0
                && let Some(cell) = values.get_mut(at as usize)
            {
                *cell = Some(value);
            }
        }
        Ok(values)
    }

    /// A time of the server on weir's clock.
    fn moment(&self, time: f64) -> Instant {
        let after = time - self.clock.1;
        let span = Duration::try_from_secs_f64(after.abs()).unwrap_or_default();
        let moment =
            if after < 0.0 { self.clock.0.checked_sub(span) } else { self.clock.0.checked_add(span) };
        moment.unwrap_or(self.clock.0)
    }
}

/// Points on the server's clock.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: f64,
    step: f64,
    points: usize,
}

impl Range {
    /// The last point.
    fn end(&self) -> f64 {
        self.start + (self.points - 1) as f64 * self.step
    }
}

impl Health {
    fn of(machine: &BTreeMap<String, String>) -> Self {
        let labels = labels(machine);
        Self {
            machine: machine.get("instance").cloned().unwrap_or_default(),
            up: Some(format!("max(up{{{labels}}})")),
            age: format!("time() - max(timestamp(node_cpu_seconds_total{{mode=\"idle\",{labels}}}))"),
            longest_age_seconds: LONGEST_AGE_SECONDS,
        }
    }

    /// One series of the machine, to be counted.
    fn series(&self) -> String {
        let inside = self.age.strip_prefix("time() - max(timestamp(").and_then(|it| it.strip_suffix("))"));
        inside.unwrap_or_default().to_owned()
    }

    /// Takes in how often it was collected in the last two minutes: two collections may fail to come, no more.
    fn collected(&mut self, times: Option<f64>) {
        let period = 120.0 / times.unwrap_or_default().max(1.0);
        self.longest_age_seconds = (2.0 * period + 5.0).min(LONGEST_AGE_SECONDS);
    }

    /// Why a point is not about the machine as it is, if so. `up` is `None` if Prometheus does not keep it.
    fn gap(&self, up: Option<Option<f64>>, age: Option<f64>) -> Option<String> {
        let machine = &self.machine;
        match (up, age) {
            (Some(Some(0.0)), _) => Some(format!("it could not collect from {machine} (up is 0)")),
            (Some(None), _) => Some(format!("it does not collect from {machine} any more")),
            (_, None) => Some(format!("it had no sample of {machine}")),
            (_, Some(age)) if age > self.longest_age_seconds => {
                Some(format!("its last sample of {machine} was {age:.0} s old"))
            }
            _ => None,
        }
    }
}

/// The figure that the expression at this position gives.
fn named(values: &mut MachineValues, position: usize) -> &mut Option<f64> {
    match position {
        0 => &mut values.cpu_percent,
        1 => &mut values.memory_bytes,
        2 => &mut values.load1,
        3 => &mut values.tx_bps,
        _ => &mut values.rx_bps,
    }
}

/// The page on which a person sees expressions as curves. Debian's Prometheus has the older one only.
fn page_of_curves(http: &Http, address: &HttpAddress) -> String {
    let older = address.below("classic/graph");
    let page = match http.get(&older, "text/html") {
        Ok(_) => older,
        Err(_) => address.below("graph"),
    };
    page.public().into()
}

/// The labels of the machine that is meant.
fn choose<'a>(
    address: &str,
    known: &'a [Series],
    instance: Option<&str>,
) -> Result<&'a BTreeMap<String, String>, MachineError> {
    let name = |series: &Series| series.metric.get("instance").cloned().unwrap_or_default();
    let meant = |series: &&Series| instance.is_none_or(|instance| name(series) == instance);
    let mut found = known.iter().filter(meant);
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(&only.metric),
        // One machine under several jobs: any of them says the same.
        (Some(first), Some(_)) if instance.is_some() => Ok(&first.metric),
        _ if known.is_empty() => Err(MachineError::NoMachine { address: address.to_owned() }),
        _ => {
            let mut instances: Vec<String> = known.iter().map(name).collect();
            instances.sort();
            instances.dedup();
            instances.truncate(20);
            let asked = instance.map(str::to_owned);
            Err(MachineError::WhichMachine { address: address.to_owned(), instances, asked })
        }
    }
}

/// What is asked, in the order of `cpu`, `memory`, `load1`, `tx`, `rx`.
fn expressions(machine: &BTreeMap<String, String>, interfaces: &Interfaces) -> [String; 5] {
    let labels = labels(machine);
    let memory = |part: &str| format!("node_memory_{part}_bytes{{{labels}}}");
    let bits = |direction: &str| {
        let device = quoted(&interfaces.expression());
        format!("sum(irate(node_network_{direction}_bytes_total{{device=~{device},{labels}}}[1m])) * 8")
    };
    [
        format!("100 * (1 - avg(irate(node_cpu_seconds_total{{mode=\"idle\",{labels}}}[1m])))"),
        format!(
            "{} - ({} + {} + {})",
            memory("MemTotal"),
            memory("MemFree"),
            memory("Buffers"),
            memory("Cached")
        ),
        format!("node_load1{{{labels}}}"),
        bits("transmit"),
        bits("receive"),
    ]
}

/// The most that an expression was in the step before each point; none where a point a second says it already. A subquery looks at
/// each second (Prometheus 2.7 and later).
fn most_over(expression: &str, step_seconds: f64) -> Option<String> {
    (step_seconds > 1.0).then(|| format!("max_over_time(({expression})[{step_seconds:.0}s:1s])"))
}

/// The labels of a machine, as a selector has them.
fn labels(machine: &BTreeMap<String, String>) -> String {
    let labels: Vec<String> =
        machine.iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect();
    labels.join(",")
}

/// A string of PromQL.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

impl Answer {
    /// A successful answer; otherwise what is wrong with it, in words.
    fn parse(body: &[u8]) -> Result<Self, String> {
        let answer: Self =
            serde_json::from_slice(body).map_err(|_| "it does not answer in its JSON".to_owned())?;
        match answer.status.as_str() {
            "success" => Ok(answer),
            _ => {
                let words = answer.error.unwrap_or_else(|| "it gives no reason".to_owned());
                Err(words.chars().filter(|character| !character.is_control()).take(WORDS).collect())
            }
        }
    }

    /// A single number: `[time, "value"]`.
    fn scalar(self) -> Option<f64> {
        let (_, value): (f64, String) = serde_json::from_value(self.data.result).ok()?;
        value.parse().ok().filter(|value: &f64| value.is_finite())
    }

    fn series(self) -> Option<Vec<Series>> {
        let is_series = matches!(self.data.result_type.as_str(), "vector" | "matrix");
        is_series.then(|| serde_json::from_value(self.data.result).ok()).flatten()
    }

    /// Time and value of the one series that an expression comes to; nothing where it comes to none.
    fn only_series(self) -> Result<Vec<(f64, f64)>, String> {
        let mut series = self.series().ok_or_else(|| "it does not answer with series".to_owned())?;
        if series.len() > 1 {
            return Err("it knows the machine under several names".to_owned());
        }
        let values = series.pop().map(|series| series.values).unwrap_or_default();
        let number = |(time, value): (f64, String)| {
            Some((time, value.parse().ok().filter(|it: &f64| it.is_finite())?))
        };
        Ok(values.into_iter().filter_map(number).collect())
    }
}

impl MachineFacts {
    /// Where a Prometheus shows the same as curves: the `range_seconds` before `end`, which is written
    /// `2026-11-21 17:30:00` (UTC, by the Prometheus' clock). `None` for other sources.
    pub fn graph_url(&self, range_seconds: f64, end: &str) -> Option<String> {
        let mut url = HttpAddress::parse(self.graph.as_deref()?)?.public();
        let range = format!("{}s", range_seconds.max(1.0).ceil());
        let step = self.step_seconds.to_string();
        let mut query = url.query_pairs_mut();
        for (number, expression) in self.expressions.iter().enumerate() {
            let key = |name: &str| format!("g{number}.{name}");
            query
                .append_pair(&key("expr"), expression)
                .append_pair(&key("tab"), "0")
                .append_pair(&key("range_input"), &range)
                .append_pair(&key("end_input"), end)
                .append_pair(&key("step_input"), &step);
        }
        drop(query);
        Some(url.into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn machine(instance: &str, job: &str) -> Series {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let metric = BTreeMap::from([pair("instance", instance), pair("job", job)]);
        Series { metric, values: Vec::new(), value: None }
    }

    #[test]
    fn the_expressions_are_the_classic_ones_of_one_machine() {
        let machine = machine("target:9100", "node");
        assert_eq!(
            expressions(&machine.metric, &Interfaces::default()),
            [
                r#"100 * (1 - avg(irate(node_cpu_seconds_total{mode="idle",instance="target:9100",job="node"}[1m])))"#,
                r#"node_memory_MemTotal_bytes{instance="target:9100",job="node"} - (node_memory_MemFree_bytes{instance="target:9100",job="node"} + node_memory_Buffers_bytes{instance="target:9100",job="node"} + node_memory_Cached_bytes{instance="target:9100",job="node"})"#,
                r#"node_load1{instance="target:9100",job="node"}"#,
                r#"sum(irate(node_network_transmit_bytes_total{device=~"eth.*|en.*",instance="target:9100",job="node"}[1m])) * 8"#,
                r#"sum(irate(node_network_receive_bytes_total{device=~"eth.*|en.*",instance="target:9100",job="node"}[1m])) * 8"#,
            ]
        );
        assert_eq!(quoted("a\"b\\c\nd"), r#""a\"b\\c\nd""#);
    }

    #[test]
    fn the_most_memory_of_a_long_step_is_asked_for_and_not_that_of_its_end() {
        assert_eq!(most_over("a - b", 10.0).unwrap(), "max_over_time((a - b)[10s:1s])");
        assert_eq!(most_over("a - b", 1.0), None);
    }

    #[test]
    fn what_it_knows_is_of_now_while_it_can_collect_and_its_samples_are_young() {
        let mut health = Health::of(&machine("target:9100", "node").metric);
        assert_eq!(health.up.as_deref(), Some(r#"max(up{instance="target:9100",job="node"})"#));
        assert_eq!(
            health.age,
            r#"time() - max(timestamp(node_cpu_seconds_total{mode="idle",instance="target:9100",job="node"}))"#
        );
        assert_eq!(
            health.series(),
            r#"node_cpu_seconds_total{mode="idle",instance="target:9100",job="node"}"#
        );
        health.collected(Some(8.0));
        let gap = |up, age| health.gap(up, age);
        // Collected every 15 s: two may fail.
        assert_eq!(gap(Some(Some(1.0)), Some(34.0)), None);
        assert_eq!(gap(None, Some(34.0)), None, "one that is written to has no `up`");
        for (up, age, words) in [
            (Some(Some(0.0)), Some(3.0), "could not collect from target:9100 (up is 0)"),
            (Some(None), Some(3.0), "does not collect from target:9100 any more"),
            (Some(Some(1.0)), Some(36.0), "was 36 s old"),
            (None, None, "no sample of target:9100"),
        ] {
            assert!(gap(up, age).is_some_and(|said| said.contains(words)), "{words}: {:?}", gap(up, age));
        }
        health.collected(None);
        assert_eq!(health.longest_age_seconds, LONGEST_AGE_SECONDS);
    }

    #[test]
    fn one_machine_is_chosen_and_of_several_none_is_guessed() {
        let (a, b) = (machine("a:9100", "node"), machine("b:9100", "node"));
        let chosen =
            |known: &[Series], instance| choose("http://p", known, instance).map(|it| it["instance"].clone());
        assert_eq!(chosen(&[machine("a:9100", "x")], None), Ok("a:9100".to_owned()));
        assert!(matches!(chosen(&[], Some("a:9100")), Err(MachineError::NoMachine { .. })));
        let both = [b, a, machine("a:9100", "again")];
        assert_eq!(chosen(&both, Some("a:9100")), Ok("a:9100".to_owned()));
        for instance in [None, Some("c:9100")] {
            let line = chosen(&both, instance).unwrap_err().to_string();
            assert!(
                line.contains("figures of a:9100, b:9100")
                    && line.contains("say which with `prometheus_instance`"),
                "{line}"
            );
            assert_eq!(line.contains("and not of c:9100"), instance.is_some());
        }
    }

    #[test]
    fn answers_are_read_as_the_api_has_them() {
        let answer = |text: &str| Answer::parse(text.as_bytes());
        let scalar =
            answer(r#"{"status":"success","data":{"resultType":"scalar","result":[1.5,"1795.25"]}}"#);
        assert_eq!(scalar.unwrap().scalar(), Some(1795.25));
        let range = r#"{"status":"success","data":{"resultType":"matrix","result":[
            {"metric":{},"values":[[10,"1.5"],[20.781,"NaN"],[30,"+Inf"],[40,"2e3"]]}]}}"#;
        assert_eq!(answer(range).unwrap().only_series().unwrap(), [(10.0, 1.5), (40.0, 2000.0)]);
        let none = r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#;
        assert_eq!(answer(none).unwrap().only_series().unwrap(), []);
        let two = r#"{"status":"success","data":{"resultType":"matrix","result":[{},{}]}}"#;
        assert!(answer(two).unwrap().only_series().is_err());
        let error = r#"{"status":"error","errorType":"bad_data","error":"parse\nerror"}"#;
        assert_eq!(answer(error).unwrap_err(), "parseerror");
        assert!(answer("<html>").is_err());
    }

    #[test]
    fn a_graph_shows_all_expressions() {
        let facts = MachineFacts {
            source: MachineSource::Prometheus,
            address: Some("http://h:9090/prom".to_owned()),
            graph: Some("http://h:9090/prom/graph".to_owned()),
            step_seconds: 10.0,
            expressions: vec!["a{b=\"c\"}".to_owned(), "node_load1".to_owned()],
            ..MachineFacts::of_this_machine(Interfaces::default())
        };
        assert_eq!(
            facts.graph_url(840.0, "2026-11-21 10:58:42").unwrap(),
            "http://h:9090/prom/graph?g0.expr=a%7Bb%3D%22c%22%7D&g0.tab=0&g0.range_input=840s\
             &g0.end_input=2026-11-21+10%3A58%3A42&g0.step_input=10\
             &g1.expr=node_load1&g1.tab=0&g1.range_input=840s&g1.end_input=2026-11-21+10%3A58%3A42&g1.step_input=10"
        );
        assert_eq!(MachineFacts::of_this_machine(Interfaces::default()).graph_url(1.0, ""), None);
    }

    proptest! {
        #[test]
        fn no_answer_panics(body: Vec<u8>, result in ".{0,40}") {
            let _ = Answer::parse(&body);
            let text = format!(r#"{{"status":"success","data":{{"resultType":"matrix","result":{result}}}}}"#);
            let _ = Answer::parse(text.as_bytes()).map(Answer::only_series);
        }
    }
}
