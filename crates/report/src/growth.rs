//! Whether the watched processes grow, in a sentence a figure: by how much a client, and what that is in a day.

use crate::document::{Fact, Part, Section, Tone};
use crate::names::Names;
use crate::quantity::{BYTES, TIE, Units, bytes, count, number, span, unit_of};
use weir_engine::growth::{Growth, GrowthFinding, Residue, TargetGrowth};
use weir_engine::summary::Summary;
use weir_metrics::Estimate;

const DAY: f64 = 86_400.0;

/// What a figure is in: how one value is written, and the units of three that belong together.
#[derive(Clone, Copy)]
struct Kind {
    one: fn(f64) -> String,
    units: Units,
}

const MEMORY: Kind = Kind { one: bytes, units: BYTES };
const DESCRIPTORS: Kind = Kind { one: descriptors, units: &[(1.0, "")] };

/// A number of descriptors; less than a thousandth is shown as a thousandth.
fn descriptors(number: f64) -> String {
    crate::quantity::number(if number > 0.0 { number.max(0.001) } else { number })
}

/// The section of it; none if nothing was watched for long enough.
pub(crate) fn section(summary: &Summary, names: &Names<'_>) -> Option<Section> {
    let facts: Vec<Fact> = summary.growth.iter().flat_map(|growth| of_target(growth, names)).collect();
    (!facts.is_empty()).then(|| Section::new("Growth", vec![Part::Facts(facts)]))
}

/// For the first screen: whether the memory of what is watched grows with its clients, and its descriptors where they do.
pub(crate) fn in_short(summary: &Summary, names: &Names<'_>) -> Vec<String> {
    let of_target = |growth: &TargetGrowth| {
        let name = names.of(&growth.target);
        let line = |what: &str, figure: &Growth, kind: Kind| {
            let sentence = sentence(figure, 0.0, kind);
            let clause = sentence.split([',', ';']).next().unwrap_or_default();
            format!("{what} of {name}: {clause}")
        };
        let grown = growth.descriptors.as_ref().filter(|it| it.finding != GrowthFinding::NotSeen);
        let memory = growth.memory.as_ref().map(|it| line("memory", it, MEMORY));
        [memory, grown.map(|it| line("descriptors", it, DESCRIPTORS))]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
    };
    summary.growth.iter().flat_map(of_target).collect()
}

fn of_target(growth: &TargetGrowth, names: &Names<'_>) -> Vec<Fact> {
    let rate = growth.clients as f64 / (growth.end_seconds - growth.begin_seconds).max(1.0);
    let of = |what: &str, figure: &Option<Growth>, kind| {
        let figure = figure.as_ref()?;
        let tone = if figure.finding == GrowthFinding::NotSeen { Tone::Plain } else { Tone::Doubtful };
        Some(Fact::new(what.to_owned(), sentence(figure, rate, kind)).tone(tone))
    };
    let stretch = format!(
        "{} in {}, from {} on",
        crate::quantity::several(growth.clients, "client"),
        span(growth.end_seconds - growth.begin_seconds),
        span(growth.begin_seconds),
    );
    let mut facts = vec![Fact::new("Server", names.of(&growth.target)), Fact::new("Seen", stretch)];
    facts.extend(of("Memory", &growth.memory, MEMORY));
    facts.extend(of("Descriptors", &growth.descriptors, DESCRIPTORS));
    facts.extend(growth.residue.as_ref().map(|residue| Fact::new("Left behind", left_behind(residue))));
    facts
}

/// `grows by 1.9 kB a client, 95% 1.7 to 2.1; at 1.0 a second, 86,400 a day make 164 MB`.
fn sentence(growth: &Growth, clients_per_second: f64, kind: Kind) -> String {
    let (slope, each) = match growth.per_client {
        Some(slope) => (slope, "client"),
        None => (growth.per_second, "second"),
    };
    if growth.finding == GrowthFinding::NotSeen {
        return match slope.high {
            high if high > 0.0 => format!("no growth above {} a {each} is seen", (kind.one)(high)),
            _ => "no growth is seen".to_owned(),
        };
    }
    let mut line = format!("grows by {}", interval(slope, each, kind.units));
    let day = if each == "client" { slope.mean * clients_per_second * DAY } else { slope.mean * DAY };
    line.push_str(&match each {
        "client" => format!(
            "; at {} a second, {} a day make {}",
            number(clients_per_second),
            count((clients_per_second * DAY).round() as u64),
            (kind.one)(day)
        ),
        _ => format!("; {} a day", (kind.one)(day)),
    });
    line
}

/// `1.9 kB a client, 95% 1.7 to 2.1`, the three in one unit.
fn interval(slope: Estimate, each: &str, units: Units) -> String {
    let (scale, unit) = unit_of(slope.mean, units);
    // As many digits as the interval is wide, and one more.
    let width = (slope.high - slope.low) / scale;
    let digits = if width > 0.0 { (1.0 - width.log10().floor()).clamp(0.0, 6.0) as usize } else { 2 };
    let written = |value: f64| format!("{:.digits$}", value / scale);
    let unit = if unit.is_empty() { String::new() } else { format!("{TIE}{unit}") };
    format!("{}{unit} a {each}, 95% {} to {}", written(slope.mean), written(slope.low), written(slope.high))
}

/// What the last client left, some seconds after it.
fn left_behind(residue: &Residue) -> String {
    let signed = |value: i64, one: fn(f64) -> String| match value {
        ..0 => format!("{} less", one(-value as f64)),
        _ => format!("{} more", one(value as f64)),
    };
    let mut line = format!(
        "{} than before the first client, {} after the last",
        signed(residue.memory_bytes, bytes),
        span(residue.after_seconds)
    );
    if residue.clients > 0 && residue.memory_bytes > 0 {
        let each = residue.memory_bytes as f64 / residue.clients as f64;
        line.push_str(&format!(": {} for each of {}", bytes(each), count(residue.clients)));
    }
    if let Some(descriptors) = residue.descriptors {
        line.push_str(&format!("; descriptors: {}", signed(descriptors, number)));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grows(mean: f64, half: f64, finding: GrowthFinding) -> Growth {
        let slope = Estimate { mean, low: mean - half, high: mean + half };
        Growth { per_client: Some(slope), per_second: slope, finding }
    }

    fn said(growth: &Growth, kind: Kind) -> String {
        sentence(growth, 1.0, kind).replace(TIE, " ")
    }

    #[test]
    fn growth_is_told_by_the_client_and_by_the_day() {
        let leak = grows(1_900.0, 200.0, GrowthFinding::Grows);
        assert_eq!(
            said(&leak, MEMORY),
            "grows by 1.90 kB a client, 95% 1.70 to 2.10; at 1 a second, 86,400 a day make 164 MB"
        );
        let by_time = Growth { per_client: None, ..leak };
        assert_eq!(said(&by_time, MEMORY), "grows by 1.90 kB a second, 95% 1.70 to 2.10; 164 MB a day");
        let descriptor = grows(1.0, 0.0004, GrowthFinding::Grows);
        assert_eq!(
            said(&descriptor, DESCRIPTORS),
            "grows by 1.00000 a client, 95% 0.99960 to 1.00040; at 1 a second, 86,400 a day make 86,400"
        );
    }

    #[test]
    fn what_is_not_seen_is_told_with_what_could_not_be_seen() {
        let none = grows(40.0, 140.0, GrowthFinding::NotSeen);
        assert_eq!(said(&none, MEMORY), "no growth above 180 B a client is seen");
        let shrinks = grows(-40.0, 10.0, GrowthFinding::NotSeen);
        assert_eq!(said(&shrinks, MEMORY), "no growth is seen");
        assert_eq!(
            said(&grows(0.0, 0.01, GrowthFinding::NotSeen), DESCRIPTORS),
            "no growth above 0.010 a client is seen"
        );
    }

    #[test]
    fn what_stays_is_told_for_each_client() {
        let residue =
            Residue { clients: 6_000, after_seconds: 1.0, memory_bytes: 12_288_000, descriptors: Some(-2) };
        assert_eq!(
            left_behind(&residue).replace(TIE, " "),
            "12 MB more than before the first client, 1 s after the last: 2.0 kB for each of 6,000; descriptors: 2 less"
        );
    }
}
