//! What a reader wants to know first, in four answers: what was asked, did it pass, can it be believed, what was the limit.

use crate::document::Tone;
use crate::growth;
use crate::headline::outage;
use crate::measured::measured;
use crate::names::Names;
use crate::quantity::{count, moment, percent, several, span};
use crate::quote::{LINE, quote};
use crate::stages::{leading, state_tone};
use std::collections::BTreeMap;
use weir_engine::summary::{
    OtherLoad, Outcome, ProcessLoad, Role, StageSummary, Summary, ThreadLoad, VerdictState, WorkloadSummary,
};
use weir_metrics::Failure;
use weir_setting::WATCH;

/// From this share of a limit on it is called reached.
const REACHED: f64 = 0.9;

/// From this share on it is called near.
const NEAR: f64 = 0.5;

/// Lines under an answer.
const MOST_LINES: usize = 3;

/// One question with its answer.
#[derive(Debug)]
pub(crate) struct Glance {
    pub(crate) question: &'static str,
    pub(crate) answer: String,
    /// What it rests on.
    pub(crate) lines: Vec<String>,
    pub(crate) tone: Tone,
}

/// The four answers of a run.
pub(crate) fn glance(summary: &Summary) -> Vec<Glance> {
    vec![asked(summary), passed(summary), believed(summary), limit(summary)]
}

fn asked(summary: &Summary) -> Glance {
    let first = leading(summary);
    let others = summary.workloads.iter().filter(|it| first.is_none_or(|first| !std::ptr::eq(*it, first)));
    let foreground = || first.into_iter().chain(others.clone()).filter(|it| !it.background);
    let mut lines: Vec<_> = foreground().skip(1).map(clients).take(MOST_LINES - 1).collect();
    if let Some([target, others @ ..]) = foreground().next().map(|it| &it.targets[..]) {
        let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
        lines.insert(0, quote(target, LINE) + &more);
    }
    let (length, began) = (span(summary.run.duration_seconds), moment(summary.run.started_at_seconds, ' '));
    lines.push(format!("{length}, since {began} UTC"));
    let answer = foreground().next().map_or_else(|| "Nothing".to_owned(), clients);
    Glance { question: "What was asked?", answer, lines, tone: Tone::Plain }
}

/// `50, 150 and 300 viewers`.
fn clients(workload: &WorkloadSummary) -> String {
    let noun = match workload.role {
        Role::Play => "viewer",
        Role::Publish => "publisher",
        Role::Ingest => "consumer",
    };
    let mut stages: Vec<u32> = workload.stages.iter().map(|stage| stage.clients).collect();
    let last = stages.pop().unwrap_or(0);
    let last = several(last.into(), noun);
    match &stages[..] {
        [] => last,
        many if many.len() > 4 => format!("{} to {last} in {} stages", count(many[0].into()), many.len() + 1),
        few => {
            let few: Vec<_> = few.iter().map(|clients| count((*clients).into())).collect();
            format!("{} and {last}", few.join(", "))
        }
    }
}

fn passed(summary: &Summary) -> Glance {
    let all = summary.thresholds.len();
    let failed = || summary.thresholds.iter().filter(|it| !it.passed);
    // What a person would have seen goes before what was asked.
    let mut lines: Vec<String> = outage(summary).into_iter().collect();
    lines.extend(
        failed()
            .take(MOST_LINES)
            .map(|it| format!("{}: measured {}", quote(&it.expression, LINE), measured(summary, it))),
    );
    let (mut answer, mut tone) = match failed().count() {
        0 if all == 0 => ("No threshold was asked".to_owned(), Tone::Plain),
        0 => (format!("Yes: {} held", several(all as u64, "threshold")), Tone::Good),
        some => (format!("No: {some} of {} failed", several(all as u64, "threshold")), Tone::Bad),
    };
    if failed().count() == 0 {
        let asked = summary.thresholds.iter().take(MOST_LINES);
        lines.extend(asked.map(|it| format!("{}: {}", quote(&it.expression, LINE), measured(summary, it))));
    }
    let more = if failed().count() == 0 { all } else { failed().count() }.saturating_sub(MOST_LINES);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    let early = match &summary.outcome {
        Outcome::Running if tone == Tone::Good => Some(("So far: every threshold holds", Tone::Good)),
        Outcome::Completed | Outcome::Running => None,
        Outcome::Interrupted => Some(("It was interrupted", Tone::Doubtful)),
        Outcome::TargetDied => Some(("No: the target died", Tone::Bad)),
        Outcome::NobodyLeft => Some(("No: every client had failed", Tone::Bad)),
        Outcome::AgentLost => Some(("No: an agent was lost", Tone::Bad)),
        Outcome::Aborted(_) => Some(("No: a threshold ended it", Tone::Bad)),
    };
    if summary.is_unanswered() {
        (answer, tone) = ("No: nothing answered".to_owned(), Tone::Bad);
    } else if let Some((early, worse)) = early.filter(|(_, worse)| *worse >= tone) {
        (answer, tone) = (early.to_owned(), worse);
    }
    Glance { question: "Did it pass?", answer, lines, tone }
}

fn believed(summary: &Summary) -> Glance {
    let state = summary.verdict.state;
    let answer = match state {
        VerdictState::Valid => "Yes: weir had room to spare",
        VerdictState::Degraded => "With care: see the reason",
        VerdictState::NothingMeasured if summary.has_measured() => {
            "There is nothing to believe: no stage was held for a second"
        }
        VerdictState::NothingMeasured => "There is nothing to believe: no client played",
        VerdictState::Invalid => "No: weir or its machine was the limit",
    };
    let reasons = &summary.verdict.reasons;
    let mut lines: Vec<_> = reasons.iter().take(1).map(|it| quote(&it.text, 300)).collect();
    match reasons.len() {
        0 | 1 => {}
        more => lines.push(format!("and {} more under Verdict", more - 1)),
    }
    let waived: Vec<_> = summary.verdict.waived.iter().map(|it| quote(&it.check, LINE)).collect();
    if !waived.is_empty() {
        lines.push(format!("accepted: {}", waived.join(", ")));
    }
    Glance { question: "Can it be believed?", answer: answer.to_owned(), lines, tone: state_tone(state) }
}

/// What was nearest to its limit where the most clients were.
fn limit(summary: &Summary) -> Glance {
    let question = "What was the limit?";
    let (failed, commonest) = (failed(summary), commonest_failure(summary));
    let mut lines: Vec<_> = commonest.iter().map(|(_, words)| words.clone()).collect();
    let refuses = commonest.is_some_and(|(kind, _)| kind == Failure::Rejected);
    // A stage that is still to come, or that the run did not reach, has nothing to tell.
    let stages = leading(summary).into_iter().flat_map(|it| &it.stages);
    let observed = stages.filter(|stage| stage.host.is_some() || !stage.targets.is_empty());
    let Some(stage) = observed.max_by_key(|stage| stage.clients) else {
        let answer = match &summary.outcome {
            Outcome::Running => "Not known yet",
            _ if summary.has_measured() => "Unknown: no process was watched",
            _ => "Unknown: nothing was measured",
        };
        let answer = answer.to_owned();
        return Glance { question, answer, lines, tone: Tone::Plain };
    };
    let mut loads = loads(summary, stage);
    loads.sort_by(|a, b| b.share.total_cmp(&a.share));
    let (share, name) = loads.first().map_or((0.0, ""), |it| (it.share, it.name.as_str()));
    let (answer, tone) = match share {
        // What the server says itself is more than what else was near to an end.
        _ if refuses => ("The server refuses more".to_owned(), Tone::Doubtful),
        share if share >= REACHED => (capital(name), Tone::Doubtful),
        _ if failed > 0 => (format!("No CPU, but {} failed", several(failed, "client")), Tone::Doubtful),
        share if share >= NEAR => (format!("None; nearest: {name}"), Tone::Plain),
        _ => ("None was near".to_owned(), Tone::Good),
    };
    lines.extend(loads.iter().map(|it| format!("{}: {}", it.name, it.said)).take(MOST_LINES));
    lines.push(format!("at {}, in its window", several(stage.clients.into(), "client")));
    let names = Names::new(&summary.run);
    lines.extend(growth::in_short(summary, &names));
    let unheard = stage.unheard.iter();
    lines
        .extend(unheard.map(|label| {
            format!("{}: unknown, nothing was heard of it at the end", names.of_unheard(label))
        }));
    if stage.targets.is_empty() && stage.unheard.is_empty() {
        lines.push(format!("The server was not watched: {WATCH} says what it used"));
    }
    Glance { question, answer, lines, tone }
}

/// With a capital letter, as an answer begins.
pub(crate) fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// What was used of something that has an end.
struct Load {
    share: f64,
    name: String,
    /// How much of what, behind its name.
    said: String,
}

impl Load {
    fn new(share: f64, name: String, limit: &str) -> Self {
        Self { share, name, said: format!("{} of {limit}", percent(share * 100.0)) }
    }
}

/// Share of the time that a thread could have run, for more than which one that waited for a core is not slow.
const STARVED: f64 = 0.2;

/// A quota that was used up in more than this share of its periods holds a server back.
const THROTTLED: f64 = 0.1;

/// Of each watched server its fullest thread, its open files and its CPU quota, and the host.
fn loads(summary: &Summary, stage: &StageSummary) -> Vec<Load> {
    let names = Names::new(&summary.run);
    let cores = summary.run.environment.cpu.online_count.max(1);
    let host = stage.host.as_ref().map(|host| {
        let all = cores as f64 * 100.0;
        let others = host.others_percent.filter(|others| *others >= all / 10.0);
        let others = others.map(|others| format!(", {} by others", percent(others / all * 100.0)));
        let limit = format!("{}{}", several(cores, "core"), others.unwrap_or_default());
        Load::new(host.cpu_percent / all, "the host's CPU".to_owned(), &limit)
    });
    let of_targets = stage.targets.iter().flat_map(|target| {
        let name = names.of(&target.label);
        [thread(target, stage, &name), open_files(target, &name), quota(target, &name)]
    });
    of_targets.chain([host]).flatten().collect()
}

/// The thread that ran and waited most: it can do no more when it did one or the other all the time.
fn thread(target: &ProcessLoad, stage: &StageSummary, name: &str) -> Option<Load> {
    let thread =
        target.threads.iter().max_by(|one, other| one.full_percent().total_cmp(&other.full_percent()))?;
    let (full, waited) = (thread.full_percent(), thread.waited_percent_busiest.unwrap_or(0.0));
    let whose = format!("thread {} of {name}", quote(&thread.name, 32));
    if !is_starved(thread) {
        let how = match waited {
            waited if waited >= 1.0 => {
                format!(" (ran {}, waited {})", percent(full - waited), percent(waited))
            }
            _ => String::new(),
        };
        return Some(Load::new(full / 100.0, whose, &format!("a core{how}")));
    }
    let others = stage.host.as_ref().map_or(&[][..], |host| &host.others);
    let said = who_had_the_cores(target, thread, stage.generator.as_ref(), others, &whose);
    Some(Load { share: full / 100.0, name: CORES.to_owned(), said })
}

/// What a server lacks whose fullest thread waited.
pub(crate) const CORES: &str = "cores for the server to run on";

/// Whether a thread waited for a core for so much of the time that it could have run that it is not slow: others had the core.
pub(crate) fn is_starved(thread: &ThreadLoad) -> bool {
    thread.waited_percent_busiest.unwrap_or(0.0) > STARVED * thread.full_percent()
}

/// That a thread of a server waited, and who had the cores: its quota, weir, or others.
pub(crate) fn who_had_the_cores(
    target: &ProcessLoad,
    thread: &ThreadLoad,
    weir: Option<&ProcessLoad>,
    others: &[OtherLoad],
    whose: &str,
) -> String {
    let mut had: Vec<_> = weir.iter().map(|weir| ("weir".to_owned(), weir.cpu_percent)).collect();
    had.extend(others.iter().map(|other| (quote(&other.name, 32), other.cpu_percent)));
    had.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let had = had.iter().take(2).map(|(name, used)| format!("{name} used {} of a core", percent(*used)));
    let (ran, waited) = (thread.cpu_percent_busiest, thread.waited_percent_busiest.unwrap_or(0.0));
    let said = format!("{whose} ran {} and waited {} for one", percent(ran), percent(waited));
    let quota = target.throttled.map(|_| "its CPU quota was used up".to_owned());
    [said].into_iter().chain(quota).chain(had).collect::<Vec<_>>().join("; ")
}

/// Open files of the process that was nearest to its limit.
fn open_files(target: &ProcessLoad, name: &str) -> Option<Load> {
    let files = target.fullest?;
    let share = files.open as f64 / files.limit.max(1) as f64;
    let said = format!("{} of the {} that one process may have", count(files.open), count(files.limit));
    (share >= NEAR).then(|| Load { share, name: format!("open files of {name}"), said })
}

/// A CPU quota that held the server back.
fn quota(target: &ProcessLoad, name: &str) -> Option<Load> {
    let throttled = target.throttled?;
    let share = throttled.periods as f64 / throttled.of_periods.max(1) as f64;
    let said = format!("used up in {} of {} periods", count(throttled.periods), count(throttled.of_periods));
    // What is used up in some periods is at its limit in them.
    let share = if share >= THROTTLED { 1.0 } else { share };
    Some(Load { share, name: format!("the CPU quota of {name}"), said })
}

/// How many clients failed of those that were not there only to disturb the others.
fn failed(summary: &Summary) -> u64 {
    let foreground = summary.workloads.iter().filter(|it| !it.background);
    foreground.flat_map(|it| &it.failures).map(|it| it.clients).sum()
}

/// The commonest failure, and how many clients it was of all that failed.
fn commonest_failure(summary: &Summary) -> Option<(Failure, String)> {
    let mut kinds = BTreeMap::new();
    for failure in summary.workloads.iter().filter(|it| !it.background).flat_map(|it| &it.failures) {
        *kinds.entry(failure.kind).or_insert(0) += failure.clients;
    }
    let (all, most) = (kinds.values().sum::<u64>(), kinds.iter().max_by_key(|(_, clients)| **clients));
    most.map(|(kind, clients)| {
        let words = kind.key().replace('_', " ");
        let of_them = if kinds.len() > 1 { format!(", {} of them", count(*clients)) } else { String::new() };
        (*kind, format!("{} failed{of_them}: {words}", several(all, "client")))
    })
}
