//! Where a workload's clients and bytes went: the lines under its table.

use crate::document::{Fact, Tone};
use crate::quantity::{bit_rate, bytes, count, joined, number, seconds, share};
use crate::quote::quote;
use crate::stages::percentiles;
use weir_engine::summary::{BaseUnit, FigureValue, Role, Slots, TurnoverSummary, Value, WorkloadSummary};
use weir_metrics::common::names;

/// Characters of what a track is.
const TRACK: usize = 160;

/// Slots, phases of the startup, what was delivered, stalls, and what else the protocol counted.
pub(crate) fn of_workload(workload: &WorkloadSummary) -> Vec<Fact> {
    let mut facts = vec![slots(&workload.slots)];
    facts.extend(workload.turnover.as_ref().map(turnover));
    facts.extend(phases(workload));
    facts.extend(tracks(workload));
    facts.extend(delivered(workload));
    facts.extend(stalls(workload));
    facts.extend(recovery(workload));
    facts.extend(lost_links(workload));
    facts.extend(quality_of_experience(workload));
    facts.extend(clocks(workload));
    facts.extend(also_counted(workload));
    facts
}

fn slots(slots: &Slots) -> Fact {
    let Slots { planned, on_time, late, missed, failed } = *slots;
    let ended = on_time + late + missed + failed;
    let [all, a, b, c, d] = [planned, on_time, late, missed, failed].map(count);
    let mut line = format!("{all} planned = {a} on time + {b} late + {c} missed + {d} failed");
    if ended < planned {
        line.push_str(&format!(" + {} not ended", count(planned - ended)));
    }
    let tone = if missed + failed > 0 || ended != planned { Tone::Doubtful } else { Tone::Plain };
    Fact::new("Starts", line).tone(tone)
}

/// How clients followed each other.
fn turnover(turnover: &TurnoverSummary) -> Fact {
    let TurnoverSummary { life, pause_seconds, started, starts_per_second, exits_before_start } = turnover;
    let mut line = format!("life {life}, ");
    if *pause_seconds > 0.0 {
        line.push_str(&format!("back after {}, ", seconds(*pause_seconds)));
    }
    line.push_str(&format!("{} began", count(*started)));
    if let Some(rate) = starts_per_second {
        line.push_str(&format!(", {} a second in the windows", number(*rate)));
    }
    if *exits_before_start > 0 {
        line.push_str(&format!("; {} left before they played", count(*exits_before_start)));
    }
    Fact::new("Turnover", line)
}

/// How long viewers were without frames when a stream fell silent and came again.
fn recovery(workload: &WorkloadSummary) -> Option<Fact> {
    let spread = workload.total.spread(names::RECOVERY).filter(|spread| spread.count > 0)?;
    let times = if spread.count == 1 { "once".to_owned() } else { format!("{} times", count(spread.count)) };
    let line = format!("{times} without frames, for {} (p50 / p99)", percentiles(Some(spread)).line());
    Some(Fact::new("Recovery", line))
}

/// What became of clients that lost their links and looked for others.
fn lost_links(workload: &WorkloadSummary) -> Option<Fact> {
    let [lost, again] = [names::CUT_OFF, names::RETURNED].map(|name| workload.total.total(name));
    let mut line = format!("{} lost, {} made again", number(lost), number(again));
    if let Some(away) = workload.total.spread(names::AWAY_TIME).filter(|away| away.count > 0) {
        let times = percentiles(Some(away)).line();
        line.push_str(&format!(" after {times} (p50 / p99), {} at the most", seconds(away.max)));
    }
    (lost > 0.0)
        .then(|| Fact::new("Links", line).tone(if again < lost { Tone::Doubtful } else { Tone::Plain }))
}

/// Where the time to the first frame went, over the whole run.
fn phases(workload: &WorkloadSummary) -> Option<Fact> {
    const PHASES: [(&str, &str); 5] = [
        (names::CONNECT, "connect"),
        (names::HANDSHAKE, "handshake"),
        (names::REQUEST, "request"),
        (names::FIRST_BYTE, "first byte"),
        (names::FIRST_FRAME, "first frame"),
    ];
    let phases = PHASES.iter().filter_map(|(figure, label)| {
        let spread = workload.total.spread(figure)?;
        Some(format!("{label} {}", percentiles(Some(spread)).line()))
    });
    let line = phases.collect::<Vec<_>>().join(", ");
    (!line.is_empty()).then(|| Fact::new("Startup is", format!("{line} (p50 / p99)")))
}

/// What the tracks of the streams are.
fn tracks(workload: &WorkloadSummary) -> Option<Fact> {
    let tracks: Vec<_> = workload.tracks.iter().map(|track| quote(&track.to_string(), TRACK)).collect();
    (!tracks.is_empty()).then(|| Fact::new("Tracks", tracks.join("; ")))
}

fn delivered(workload: &WorkloadSummary) -> Option<Fact> {
    let total = |name| workload.total.total(name);
    let (verb, link) = match workload.role {
        Role::Play | Role::Ingest => ("Received", total(names::RECEIVED)),
        Role::Publish => ("Sent", total(names::SENT)),
    };
    if link == 0.0 && total(names::UNITS) == 0.0 {
        return None;
    }
    let mut line =
        format!("{} of media in {} units", bytes(total(names::MEDIA)), number(total(names::UNITS)));
    if total(names::FRAMES) > 0.0 {
        line.push_str(&format!(
            ", {} frames, {} keyframes",
            number(total(names::FRAMES)),
            number(total(names::KEYFRAMES))
        ));
    }
    line.push_str(&format!("; {} on the links", bytes(link)));
    let missing = [names::LOST, names::REORDERED, names::DUPLICATE].map(|name| (name, total(name)));
    // Units that carry no number cannot be missed.
    if workload.role == Role::Play
        && (total(names::STAMPED) > 0.0
            || total(names::NUMBERED) > 0.0
            || missing.iter().any(|(_, units)| *units > 0.0))
    {
        let [lost, reordered, duplicate] = missing.map(|(name, units)| format!("{} {name}", number(units)));
        line.push_str(&format!("; {lost}, {reordered}, {duplicate}"));
    }
    let tone = if total(names::LOST) > 0.0 { Tone::Doubtful } else { Tone::Plain };
    Some(Fact::new(verb, line).tone(tone))
}

fn stalls(workload: &WorkloadSummary) -> Option<Fact> {
    let stalls = workload.total.total(names::STALLS);
    if stalls == 0.0 {
        return None;
    }
    let mut line = format!(
        "{} in the whole run, {} in all",
        number(stalls),
        seconds(workload.total.total(names::STALLED))
    );
    if let Some(ratio) = workload.stalled_ratio() {
        line.push_str(&format!(", {} of playing time in the windows", share(ratio)));
    }
    if let Some(length) = workload.total.spread(names::STALL_LENGTH) {
        line.push_str(&format!("; length {} (p50 / p99)", percentiles(Some(length)).line()));
    }
    Some(Fact::new("Stalls", line).tone(Tone::Doubtful))
}

/// What viewers of streams met, under the names of CTA-2066: over the windows, and of the whole run who left before it began.
fn quality_of_experience(workload: &WorkloadSummary) -> Option<Fact> {
    let is_stream = workload.role == Role::Play && workload.total.total(names::SOURCE_TIME) > 0.0;
    let ratio = workload.stalled_ratio().filter(|_| is_stream)?;
    let stalls: f64 = workload.stages.iter().map(|stage| stage.figures.total(names::STALLS)).sum();
    let frequency = stalls / workload.viewed_seconds() * 60.0;
    let exits = workload.total.total(names::EXITS_BEFORE_START);
    let line = format!(
        "rebuffering ratio {}, {} rebufferings a minute of a viewer, {}{} exits before video start",
        share(ratio),
        number(frequency),
        workload
            .stall_free_ratio
            .map_or_else(String::new, |free| { format!("{} of viewers without any stall, ", share(free)) }),
        number(exits)
    );
    let tone = if ratio > 0.0 { Tone::Doubtful } else { Tone::Plain };
    Some(Fact::new("CTA-2066", line).tone(tone))
}

/// How precise latency and drift are.
fn clocks(workload: &WorkloadSummary) -> Option<Fact> {
    let has = |name| workload.total.spread(name).is_some();
    if !has(names::LATENCY) && !has(names::DRIFT) {
        return None;
    }
    let mut line = match workload.total.get(names::WITNESSES).map(|figure| figure.value) {
        Some(Value::Gauge { max, .. }) if max > 0.0 => format!("from {} witness clients", number(max)),
        _ => "from witness clients".to_owned(),
    };
    if has(names::LATENCY) {
        line.push_str(&match workload.clock_uncertainty_seconds {
            Some(0.0) => "; publisher and viewers share a clock".to_owned(),
            Some(uncertainty) if is_coarse(workload, uncertainty) => {
                format!("; latency not known to better than {}, by the clocks' offset", seconds(uncertainty))
            }
            Some(uncertainty) => format!("; latency ± {} by the clocks' offset", seconds(uncertainty)),
            None => "; how far the clocks of publisher and viewers are apart is not known".to_owned(),
        });
    }
    Some(Fact::new("Timing", line))
}

/// Whether clocks may be further apart than a tenth of what they measured.
fn is_coarse(workload: &WorkloadSummary, uncertainty: f64) -> bool {
    workload.total.spread(names::LATENCY).is_some_and(|latency| uncertainty > latency.p50.abs() / 10.0)
}

/// The protocol's own figures: those with a dot in their name.
fn also_counted(workload: &WorkloadSummary) -> Option<Fact> {
    let own = workload.total.0.iter().filter(|(name, figure)| name.contains('.') && !is_nothing(figure));
    let line = own
        .map(|(name, figure)| format!("{} {}", quote(name, 60), brief(figure)))
        .collect::<Vec<_>>()
        .join(", ");
    (!line.is_empty()).then(|| Fact::new("Also counted", line))
}

fn is_nothing(figure: &FigureValue) -> bool {
    match figure.value {
        Value::Counter { total, .. } => total == 0.0,
        Value::Gauge { max, .. } => max == 0.0,
        Value::Spread(spread) => spread.count == 0,
    }
}

/// A figure in a few characters: a total, a mean level, two percentiles.
pub(crate) fn brief(figure: &FigureValue) -> String {
    let unit = Some(figure.unit);
    match figure.value {
        Value::Counter { total, .. } => in_unit(total, unit),
        Value::Gauge { mean, .. } => format!("{} mean", in_unit(mean, unit)),
        Value::Spread(spread) if spread.count == 0 => crate::quantity::NOTHING.to_owned(),
        Value::Spread(spread) => format!("{} / {}", in_unit(spread.p50, unit), in_unit(spread.p99, unit)),
    }
}

/// A value in its unit; a plain number if the unit is not known.
pub(crate) fn in_unit(value: f64, unit: Option<BaseUnit>) -> String {
    match unit {
        Some(BaseUnit::Seconds) => seconds(value),
        Some(BaseUnit::Bytes) => bytes(value),
        Some(BaseUnit::BitsPerSecond) => joined(bit_rate(value)),
        Some(BaseUnit::Count) | None => number(value),
    }
}
