//! A search for a capacity, in every format that a run has.

mod edge;
mod glances;
pub(crate) mod lines;

use crate::document::{Badge, Cell, Document, Fact, Grid, Part, Section, Tone, columns};
use crate::glance::Glance;
use crate::picture::Picture;
use crate::plot::{Hue, Line, Mark, Plot};
use crate::quantity::{
    BIT_RATE, COUNT, PERCENT, TIE, Units, bit_rate, count, joined, moment, percent, several, several_of,
    share, shortened, span,
};
use crate::quote::{LINE, quote};
use crate::report::Findings;
use crate::surroundings;
use lines::{capacity_line, confirmed, full_thread, fullest, not_carried, reason, verdict_word, void_reason};
use std::io;
use weir_answers::capacity::{
    CapacitySummary, CapacityTrial, Evidence, LoadOutcome, Purpose, Stopped, TrialVerdict,
};
use weir_answers::series::Ending;
use weir_engine::scenario::LoadKind;

/// Letters of what a load is a number of that there is room for beside the axis.
const AXIS_LETTERS: usize = 12;

impl Findings for CapacitySummary {
    const NOUN: &'static str = "a search";

    fn document(&self) -> Document {
        let mut sections = vec![Section::new("Capacity", vec![Part::Facts(facts(self))])];
        sections.extend(at_the_edge(self).map(|grid| Section::new("At the edge", vec![Part::Grid(grid)])));
        if !self.trials.is_empty() {
            sections.push(Section::new("Trials", vec![Part::Grid(trials(self))]));
        }
        sections.extend(surroundings::sections(&self.run));
        Document {
            title: format!("weir {} · {}", quote(&self.run.weir_version, 40), quote(&self.run.name, LINE)),
            badges: badges(self),
            sections,
        }
    }

    fn subject(&self) -> String {
        self.run.id.clone()
    }

    fn glances(&self) -> Vec<Glance> {
        glances::glances(self)
    }

    fn pictures(&self) -> Vec<Picture> {
        crate::picture::drawn(&plots(self))
    }

    /// One row a load of a trial.
    fn write_csv(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let mut writer = crate::csv::writer(out);
        writer.write_record([
            "search",
            "trial",
            "purpose",
            "load",
            "verdict",
            "good_seconds",
            "bad_seconds",
            "playing",
            "bits_per_second",
            "failed",
        ])?;
        for trial in &self.trials {
            for outcome in &trial.loads {
                writer.write_record([
                    &quote(&self.run.id, LINE),
                    &quote(&trial.directory, LINE),
                    purpose(trial),
                    &outcome.load.to_string(),
                    verdict_word(outcome.verdict),
                    &outcome.good_seconds.to_string(),
                    &outcome.bad_seconds.to_string(),
                    &outcome.playing.to_string(),
                    &outcome.actual_bps.to_string(),
                    &reason(outcome).replace(TIE, " "),
                ])?;
            }
        }
        writer.flush()
    }

    fn write_junit(&self, out: &mut dyn io::Write) -> io::Result<()> {
        crate::junit::write_capacity(self, out)
    }
}

fn verdict_tone(verdict: TrialVerdict) -> Tone {
    match verdict {
        TrialVerdict::Pass => Tone::Good,
        TrialVerdict::Fail => Tone::Bad,
        TrialVerdict::Void => Tone::Doubtful,
    }
}

fn badges(summary: &CapacitySummary) -> Vec<Badge> {
    let mut badges = vec![match summary.answer.evidence {
        Evidence::Void if summary.ending == Ending::Running => Badge::new("no trial yet", Tone::Doubtful),
        Evidence::Found => Badge::new("found", Tone::Good),
        Evidence::AtLeast => Badge::new("at least", Tone::Doubtful),
        Evidence::AtMost => Badge::new("at most", Tone::Doubtful),
        Evidence::Undecided => Badge::new("undecided", Tone::Doubtful),
        Evidence::Void => Badge::new("void", Tone::Bad),
    }];
    match summary.answer.stopped {
        Some(Stopped::Broken | Stopped::NotRecovered) => {
            badges.push(Badge::new("does not recover", Tone::Bad));
        }
        Some(Stopped::NoSource | Stopped::NoPublisher) => {
            badges.push(Badge::new("no source", Tone::Doubtful));
        }
        None if summary.answer.recovers == Some(false) => {
            badges.push(Badge::new("does not recover", Tone::Bad));
        }
        None => {}
    }
    badges.extend(Badge::of_ending(&summary.ending));
    badges
}

fn facts(summary: &CapacitySummary) -> Vec<Fact> {
    let (sought, answer) = (&summary.sought, &summary.answer);
    let tone = match answer.evidence {
        Evidence::Found => Tone::Good,
        Evidence::Void if summary.ending != Ending::Running => Tone::Bad,
        _ => Tone::Doubtful,
    };
    let mut facts = vec![Fact::new("Answer", capacity_line(summary)).tone(tone)];
    facts.push(Fact::new("Target", quote(&sought.target, LINE)));
    facts.extend(confirmed(summary).map(|words| Fact::new("Confirmed", words)));
    facts.extend(not_carried(summary).map(|(name, why)| Fact::new(name, why)));
    facts.extend(full_thread(summary).map(|thread| Fact::new("Bottleneck", thread)));
    facts.extend(void_reason(summary).map(|why| Fact::new("Void", why).tone(Tone::Doubtful)));
    if let Some(carried) = answer.bounds.lower.and_then(|lower| summary.at_with(lower, TrialVerdict::Pass)) {
        let mut line = carried_as(sought.kind, carried);
        if let Some(thread) = fullest(carried) {
            line.push_str(&format!("; {} at {} of a core", thread.name, percent(thread.percent)));
        }
        facts.push(Fact::new("Carried", line));
    }
    facts.extend(edge::facts(summary));
    if answer.recovers == Some(true) {
        facts.push(Fact::new("Recovery", "after the overload it carried again what it had carried before"));
    }
    if let Ending::Failed(failure) = &summary.ending {
        facts.push(Fact::new("Outcome", quote(&failure.words, 1_000)).tone(Tone::Bad));
    }
    facts.push(Fact::new("Started", format!("{} UTC", moment(summary.run.started_at_seconds, ' '))));
    facts.push(Fact::new(
        "Search",
        format!(
            "{} in {}; bounds within {} of each other, {}slices of {}",
            several(summary.trials.len() as u64, "trial"),
            span(summary.run.duration_seconds),
            share(sought.precision),
            match sought.kind {
                LoadKind::Arrivals => String::new(),
                LoadKind::Clients => format!("{} {} a second, ", sought.arrivals_per_second, sought.of),
                _ => format!("{} clients a second, ", sought.arrivals_per_second),
            },
            span(sought.slice_seconds.into())
        ),
    ));
    facts.push(Fact::new(
        "Asked",
        sought.thresholds.iter().map(|it| quote(it, LINE)).collect::<Vec<_>>().join(", "),
    ));
    facts.push(Fact::new("Definitions", "docs/method/answers.md"));
    facts
}

/// What came at a load, as against what was asked for.
fn carried_as(kind: LoadKind, carried: &LoadOutcome) -> String {
    let playing = count(carried.playing.round() as u64);
    let media = joined(bit_rate(carried.actual_bps));
    match kind {
        LoadKind::Clients => format!("{playing} of {} played, {media}", count(carried.load.into())),
        LoadKind::Publishers => format!("{playing} of {} published, {media}", count(carried.load.into())),
        LoadKind::Messages => {
            let messages = several_of(carried.units_per_second.round() as u64, "messages a second");
            format!("{messages} of {}, {media}", several(carried.playing.round() as u64, "publisher"))
        }
        LoadKind::Arrivals => {
            format!("{playing} that came at {} a second, {media}", count(carried.load.into()))
        }
        LoadKind::Streams => {
            let clients = several(carried.playing.round() as u64, "client");
            format!("{clients} of {}, {media}", several(carried.load.into(), "stream"))
        }
    }
}

/// What the target, weir and the host used at the bounds, and at about half of the lower one.
fn at_the_edge(summary: &CapacitySummary) -> Option<Grid> {
    let bounds = summary.answer.bounds;
    let half = bounds.lower.or(bounds.upper).and_then(|load| summary.at_half_of(load));
    let lower = bounds.lower.and_then(|load| summary.at_with(load, TrialVerdict::Pass));
    let upper = bounds.upper.and_then(|load| summary.at_with(load, TrialVerdict::Fail));
    let rows = [half, lower, upper].into_iter().flatten().map(|outcome| {
        let target =
            (!outcome.targets.is_empty()).then(|| outcome.targets.iter().map(|it| it.cpu_percent).sum());
        let of = |value: Option<f64>| value.map_or_else(Cell::nothing, |value| Cell::text(percent(value)));
        vec![
            Cell::text(count(outcome.load.into())),
            Cell::text(verdict_word(outcome.verdict)).tone(verdict_tone(outcome.verdict)),
            Cell::text(count(outcome.playing.round() as u64)),
            Cell::quantity(bit_rate(outcome.actual_bps)),
            of(target),
            fullest(outcome).map_or_else(Cell::nothing, |thread| {
                Cell::text(format!("{} {}", thread.name, percent(thread.percent)))
            }),
            of(outcome.generator.as_ref().map(|it| it.cpu_percent)),
            of(outcome.host_cpu_percent),
        ]
    });
    let rows: Vec<_> = rows.collect();
    (!rows.is_empty()).then(|| Grid {
        caption: "CPU in percent of one core: at about half of the load, at the bounds".to_owned(),
        columns: columns![
            number "Load", word "Verdict", number "Playing", number "Media", number "Target",
            number "Busiest thread" / "Thread", number "weir", number "Host",
        ],
        rows,
    })
}

fn purpose(trial: &CapacityTrial) -> &'static str {
    match trial.purpose {
        None => "climb",
        Some(Purpose::Recovery) => "recovery",
        Some(Purpose::Narrow) => "narrow",
        Some(Purpose::Confirm) => "confirm",
    }
}

fn trials(summary: &CapacitySummary) -> Grid {
    let rows = summary.trials.iter().flat_map(|trial| {
        trial.loads.iter().map(|outcome| {
            vec![
                Cell::text(quote(&trial.directory, LINE)),
                Cell::text(purpose(trial)),
                Cell::text(count(outcome.load.into())),
                Cell::text(verdict_word(outcome.verdict)).tone(verdict_tone(outcome.verdict)),
                Cell::text(format!(
                    "{}/{}",
                    outcome.good_seconds,
                    outcome.good_seconds + outcome.bad_seconds
                )),
                Cell::text(count(outcome.playing.round() as u64)),
                Cell::text(reason(outcome)),
            ]
        })
    });
    Grid {
        caption:
            "One row a load, in the order in which they were held; each trial has a directory of its own"
                .to_owned(),
        columns: columns![
            word "Trial", word "Purpose", number "Load", word "Verdict", number "Good seconds" / "Good",
            number "Playing", prose "What did not hold",
        ],
        rows: rows.collect(),
    }
}

/// All trials, then what was measured against the load.
fn plots(summary: &CapacitySummary) -> Vec<Plot> {
    let loads: Vec<&LoadOutcome> = summary.trials.iter().flat_map(|trial| &trial.loads).collect();
    let of_verdict = |verdict: TrialVerdict| {
        let point = |(at, load): (u32, &&LoadOutcome)| {
            (f64::from(at), (load.verdict == verdict).then(|| f64::from(load.load)))
        };
        let points = (1..).zip(&loads).map(point).collect();
        let hue = match verdict {
            TrialVerdict::Pass => Hue::Good,
            TrialVerdict::Fail => Hue::Bad(0),
            TrialVerdict::Void => Hue::Doubtful,
        };
        let mark = match verdict {
            TrialVerdict::Pass => Mark::Circle,
            TrialVerdict::Fail => Mark::Cross,
            TrialVerdict::Void => Mark::Square,
        };
        Line::new(verdict_word(verdict), hue, points).marked(mark)
    };
    let verdicts = [TrialVerdict::Pass, TrialVerdict::Fail, TrialVerdict::Void];
    let title = "Loads, in the order in which they were held".to_owned();
    let lines = verdicts.into_iter().map(of_verdict).collect();
    let mut plots = vec![Plot {
        across_unit: "trials".to_owned(),
        ..Plot::new(title, COUNT, lines, loads.len() as f64 + 1.0)
    }];
    let mut tried: Vec<u32> = loads.iter().map(|load| load.load).collect();
    tried.sort_unstable();
    tried.dedup();
    let length = tried.last().copied().map_or(1.0, f64::from);
    let outcomes: Vec<_> = tried.iter().filter_map(|load| summary.at(*load)).collect();
    let line = |name: &str, hue: Hue, value: &dyn Fn(&LoadOutcome) -> Option<f64>| {
        let points = outcomes.iter().map(|it| (f64::from(it.load), value(it))).collect();
        Line::new(name, hue, points)
    };
    let against = |title: &str, units: Units, lines| {
        let across_unit = shortened(&summary.sought.of, AXIS_LETTERS);
        Plot { across_unit, ..Plot::new(format!("{title} against the load"), units, lines, length) }
    };
    let asked = line("asked for", Hue::Plan, &|it| Some(f64::from(it.load))).dashed();
    let came: &dyn Fn(&LoadOutcome) -> Option<f64> = match summary.sought.kind {
        LoadKind::Messages => &|it| Some(it.units_per_second),
        _ => &|it| Some(it.playing),
    };
    let target = |it: &LoadOutcome| {
        (!it.targets.is_empty()).then(|| it.targets.iter().map(|target| target.cpu_percent).sum())
    };
    plots.push(match summary.sought.kind {
        LoadKind::Messages => {
            against("Messages a second", COUNT, vec![line("messages", Hue::Done, came), asked])
        }
        LoadKind::Clients | LoadKind::Publishers => {
            against("Playing", COUNT, vec![line("playing", Hue::Done, came), asked])
        }
        // Clients are another number than the load.
        LoadKind::Arrivals | LoadKind::Streams => {
            against("Playing", COUNT, vec![line("playing", Hue::Done, came)])
        }
    });
    plots.push(against("Media", BIT_RATE, vec![line("media", Hue::Done, &|it| Some(it.actual_bps))]));
    plots.push(against(
        "CPU",
        PERCENT,
        vec![
            line("target", Hue::Target(0), &target),
            line("its thread", Hue::Thread(1), &|it| fullest(it).map(|thread| thread.percent)),
            line("weir", Hue::Generator, &|it| it.generator.as_ref().map(|it| it.cpu_percent)),
        ],
    ));
    let host = line("whole host", Hue::Plan, &|it| it.host_cpu_percent);
    plots.push(against("CPU of the whole host", PERCENT, vec![host]));
    plots
}
