//! Why a run did not pass, in one line: what stands above everything else in a report, and on stderr whatever else is
//! printed.

use crate::measured::measured;
use crate::quantity::{NOTHING, TIE, count, several, span};
use crate::quote::{LINE, quote};
use crate::remedy::{Carrier, remedy};
use std::collections::BTreeMap;
use weir_engine::summary::{FailureCount, Outage, Outcome, Role, Summary, VerdictState, WorkloadSummary};
use weir_metrics::Failure;
use weir_metrics::common::names;

/// Addresses that are named; more of them are counted.
const NAMED: usize = 3;

/// What helps clients that were let in, and saw nothing for as long as they were there.
const UNPUBLISHED: &str = "check its name, and that it is being published: `weir publish URL` makes a stream; a run longer than {timeout} says what failed";

/// What to do where viewers still wait for a keyframe at a run's end.
const TOO_SHORT: &str =
    "viewers still waited for the stream's next keyframe: run for longer than keyframes are apart";

/// Of a run in which nothing was measured.
#[derive(Debug)]
pub(crate) struct Headline {
    /// `nothing answered at ws://127.0.0.1:3333 (connection refused, 16 of 16)`.
    pub(crate) line: String,
    /// What helps, if anything is known to.
    pub(crate) remedy: Option<String>,
    /// Whether the line has all that is known of the failures.
    pub(crate) is_whole: bool,
}

/// Says why there is nothing to report; none of a run in which a client played, or published.
pub(crate) fn headline(summary: &Summary) -> Option<Headline> {
    if !is_of_nothing(summary) {
        return None;
    }
    let workloads: Vec<_> = summary.workloads.iter().filter(|it| !it.background).collect();
    let failures = failures(&workloads);
    let after = span(summary.run.duration_seconds);
    let at = || listed(workloads.iter().flat_map(|it| &it.targets).map(|url| server(url)));
    // Elsewhere an answer may have come before the phase that it ends is over.
    let speaks_first = workloads.iter().flat_map(|it| &it.targets).all(|url| url.starts_with("rtmp"));
    let silence = summary
        .accepted_in_silence()
        .filter(|_| speaks_first)
        .map(|accepted| format!("{} accepted {}, no handshake", at(), several(accepted, "connection")));
    let Some(commonest) = failures.first() else {
        let is_silent = silence.is_some();
        let what = silence.unwrap_or_else(|| nobody(&workloads));
        let line = match &summary.outcome {
            _ if workloads.is_empty() => format!("nothing was measured: {}", ending(summary)),
            Outcome::Completed | Outcome::NobodyLeft => format!("{what} in {after}"),
            _ => format!("{what}: {}", ending(summary)),
        };
        let is_over = matches!(summary.outcome, Outcome::Completed | Outcome::NobodyLeft);
        let plays = workloads.iter().any(|it| it.role == Role::Play);
        let waits = |name| workloads.iter().map(|it| it.total.total(name)).sum::<f64>();
        let is_waiting = waits(names::KEYFRAME_WAITS) > waits(names::KEYFRAME_WAITS_OVER);
        let remedy = match is_silent {
            _ if is_waiting => Some(TOO_SHORT.to_owned()),
            true => Some(remedy(Failure::HandshakeTimeout, Carrier::Other)),
            false => (is_over && plays).then(|| weir_setting::named(UNPUBLISHED)),
        };
        return Some(Headline { line, remedy, is_whole: true });
    };
    let planned = count(workloads.iter().map(|it| it.slots.planned).sum());
    let words = quote(&commonest.words, LINE);
    // What the system says of silence is what its kind says.
    let words =
        if commonest.kind.is_silence() || words.is_empty() { String::new() } else { format!(": {words}") };
    let kinds = match failures.as_slice() {
        [only] => format!("{}, {} of {planned}", named(only.kind), count(only.clients)),
        several => {
            let kinds = several.iter().map(|it| format!("{} {}", named(it.kind), count(it.clients)));
            format!("{} of {planned}", kinds.collect::<Vec<_>>().join(", "))
        }
    };
    let what = match silence {
        Some(silence) => silence,
        None if summary.is_unanswered() => format!("nothing answered at {}", at()),
        None => nobody(&workloads),
    };
    let all = |is: fn(&str) -> bool| workloads.iter().flat_map(|it| &it.targets).all(|url| is(url));
    let carrier = match () {
        () if all(|url| url.starts_with("rtmp:")) => Carrier::Rtmp,
        () if all(weir_engine::is_udp) => Carrier::Udp,
        () => Carrier::Other,
    };
    Some(Headline {
        line: format!("{what} ({kinds}{words})"),
        remedy: Some(remedy(commonest.kind, carrier)),
        is_whole: failures.len() == 1,
    })
}

/// Whether no client played or published. A run that is invalid beside that, since weir itself failed, has no state for it.
pub(crate) fn is_of_nothing(summary: &Summary) -> bool {
    let slots = || summary.workloads.iter().filter(|it| !it.background).map(|it| it.slots);
    let all_failed = slots().any(|it| it.failed > 0) && slots().all(|it| it.failed == it.planned);
    match summary.verdict.state {
        VerdictState::NothingMeasured => !summary.has_measured(),
        VerdictState::Invalid => all_failed && !summary.has_measured(),
        VerdictState::Valid | VerdictState::Degraded => false,
    }
}

/// Says in one line why a run did not pass; none if it did. What ended it comes first, then whether it can be believed,
/// then what was asked of the target.
pub fn shortfall(summary: &Summary) -> Option<String> {
    why(summary).map(|line| line.replace(TIE, " "))
}

fn why(summary: &Summary) -> Option<String> {
    match &summary.outcome {
        Outcome::Interrupted | Outcome::TargetDied | Outcome::Aborted(_) => return Some(ending(summary)),
        Outcome::Completed | Outcome::NobodyLeft | Outcome::AgentLost | Outcome::Running => {}
    }
    if let Some(Headline { line, remedy, .. }) = headline(summary) {
        return Some(remedy.map_or(line.clone(), |remedy| format!("{line}; {remedy}")));
    }
    if summary.verdict.state == VerdictState::NothingMeasured {
        return Some("nothing could be judged: no stage was held for a whole second".to_owned());
    }
    if summary.verdict.state == VerdictState::Invalid {
        let worst = summary.verdict.reasons.first();
        let reason = worst.map_or_else(String::new, |it| {
            format!(": {}; {}", quote(&it.text, LINE), quote(&it.remedy, LINE))
        });
        return Some(format!("the figures cannot be believed{reason}"));
    }
    let failed: Vec<_> = summary.thresholds.iter().filter(|it| !it.passed).collect();
    let first = failed.first()?;
    let others = if failed.len() > 1 { ", and others" } else { "" };
    let all = several(summary.thresholds.len() as u64, "threshold");
    let expression = quote(&first.expression, LINE);
    let outage = outage(summary).map_or_else(String::new, |line| format!("{line}; "));
    Some(format!(
        "{outage}{} of {all} failed: {expression} ({}){others}",
        failed.len(),
        measured(summary, first)
    ))
}

/// What most viewers were without, of all that viewers were without and the run did not make itself.
pub(crate) fn outage(summary: &Summary) -> Option<String> {
    // Of several alike, the first.
    let most = outages(summary).rev().max_by_key(|it| it.viewers)?;
    Some(most.line())
}

/// What viewers were without, where the run did not make that itself.
pub(crate) fn outages(summary: &Summary) -> impl DoubleEndedIterator<Item = &Outage> {
    let foreground = summary.workloads.iter().filter(|it| !it.background);
    foreground.flat_map(|it| &it.outages).filter(|it| !it.made_by_run)
}

/// What ended a run before its time.
fn ending(summary: &Summary) -> String {
    let after = span(summary.run.duration_seconds);
    match &summary.outcome {
        Outcome::Interrupted => format!("interrupted after {after}"),
        Outcome::TargetDied => format!("the target died after {after}"),
        Outcome::Aborted(by) => format!("aborted after {after} by the threshold {}", quote(by, LINE)),
        Outcome::NobodyLeft => format!("every client had failed after {after}"),
        Outcome::AgentLost => format!("an agent was lost after {after}"),
        Outcome::Completed => format!("completed in {after}"),
        Outcome::Running => format!("running for {after}"),
    }
}

/// Failures of all workloads by kind, the commonest first, each with what was said first.
fn failures(workloads: &[&WorkloadSummary]) -> Vec<FailureCount> {
    let mut kinds: BTreeMap<Failure, FailureCount> = BTreeMap::new();
    for failure in workloads.iter().flat_map(|it| &it.failures) {
        let known =
            kinds.entry(failure.kind).or_insert_with(|| FailureCount { clients: 0, ..failure.clone() });
        known.clients += failure.clients;
    }
    let mut failures: Vec<_> = kinds.into_values().collect();
    failures.sort_by_key(|it| std::cmp::Reverse(it.clients));
    failures
}

/// `no client played at rtmp://host/live/a`.
fn nobody(workloads: &[&WorkloadSummary]) -> String {
    let at = listed(workloads.iter().flat_map(|it| &it.targets).map(|url| quote(url, LINE)));
    let all = |role| workloads.iter().all(|it| it.role == role);
    match () {
        () if all(Role::Play) => format!("no client played at {at}"),
        () if all(Role::Publish) => format!("no client published to {at}"),
        () if all(Role::Ingest) => format!("no message was taken from {at}"),
        () => format!("no client played or published at {at}"),
    }
}

/// The first addresses, and how many more there are.
fn listed(addresses: impl Iterator<Item = String>) -> String {
    let mut known: Vec<String> = Vec::new();
    for address in addresses {
        if !known.contains(&address) {
            known.push(address);
        }
    }
    let more = known.len().saturating_sub(NAMED);
    known.truncate(NAMED);
    if more > 0 {
        known.push(format!("{more} more"));
    }
    if known.is_empty() { NOTHING.to_owned() } else { known.join(", ") }
}

/// Scheme, host and port of a URL: what listens or does not.
fn server(url: &str) -> String {
    let path = url.find("://").and_then(|at| url[at + 3..].find(['/', '?']).map(|path| at + 3 + path));
    quote(path.map_or(url, |path| &url[..path]), LINE)
}

fn named(kind: Failure) -> String {
    kind.key().replace('_', " ")
}
