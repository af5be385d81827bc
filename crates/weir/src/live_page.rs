//! The page and the metrics of what runs, for those who look on.

use crate::live_agents::LiveAgents;
use crate::outlets::{LiveOptions, Outlets};
use std::time::{Duration, Instant};
use weir_answers::series::Ending;
use weir_engine::WorkloadFacts;
use weir_engine::aggregator::Aggregator;
use weir_engine::run::Prepared;
use weir_engine::scenario::Scenario;
use weir_engine::summary::{Outcome, RunFacts, Summary};
use weir_live::process_metrics::readings;
use weir_live::{Label, Origin, Part};
use weir_report::{Report, Text, fragments};
use weir_runner::{AnswerSoFar, RunError};

/// Of the time, at most one part in this many goes into summaries for open tabs: summing up a run of many hours takes long.
const SHARE: u32 = 10;

/// The page of what runs, if there is one.
pub(crate) struct LivePage(Option<PageContent>);

/// What a run is one of.
#[derive(Clone, Copy, Debug)]
enum Whole {
    /// A series or a sweep.
    Series,
    /// A search, which may be one of a sweep.
    Search,
}

/// The series and the search that the runs are of, up to now, from the top of the page.
#[derive(Clone, Debug, Default)]
struct Wholes([Vec<Part>; 2]);

impl Wholes {
    /// A whole is this now. What is part of it begins again.
    fn set(&mut self, whole: Whole, parts: Vec<Part>) {
        let place = whole as usize;
        self.0[place] = parts;
        self.0[place + 1..].iter_mut().for_each(Vec::clear);
    }

    fn parts(&self) -> Vec<Part> {
        self.0.concat()
    }
}

struct PageContent {
    outlets: Outlets,
    /// What stands above the run that goes on.
    wholes: Wholes,
    /// The run that goes on.
    run: Option<WatchedRun>,
    /// The last run's parts stand below it.
    has_ended: bool,
}

impl LivePage {
    /// Starts it if it was asked for, and prints where it is.
    ///
    /// # Errors
    /// See [`Outlets::open`].
    pub(crate) fn start(options: &LiveOptions, name: &str) -> Result<Self, RunError> {
        let shown = |outlets| PageContent { outlets, wholes: Wholes::default(), run: None, has_ended: false };
        Ok(Self(Outlets::open(options, name)?.map(shown)))
    }

    /// A run begins.
    pub(crate) fn begins(&mut self, prepared: &Prepared) {
        let Some(shown) = &mut self.0 else { return };
        shown.outlets.board().begin(labels(&prepared.facts));
        shown.outlets.push();
        let agents = LiveAgents::of(&prepared.load);
        let facts = RunFacts { agents: agents.facts(), ..prepared.facts.clone() };
        shown.run =
            Some(WatchedRun { facts, agents, scenario: prepared.scenario.clone(), next: Instant::now() });
    }

    /// A second of it is complete.
    pub(crate) fn second(&mut self, second: u32, aggregator: &Aggregator) {
        self.0.iter_mut().for_each(|shown| shown.second(second, aggregator));
    }

    /// An agent is behind by this.
    pub(crate) fn lag(&mut self, agent: &str, behind: Duration) {
        let run = self.0.as_mut().and_then(|shown| shown.run.as_mut());
        run.into_iter().for_each(|run| run.agents.lag(agent, behind));
    }

    /// It is over: this is all of it.
    pub(crate) fn ended(&mut self, summary: Option<&Summary>) {
        let Some(shown) = &mut self.0 else { return };
        shown.run = None;
        let Some(summary) = summary else { return };
        shown.outlets.board().end();
        shown.outlets.board().read(Vec::new());
        shown.show(summary.clone(), None);
    }

    /// What several runs come to so far.
    pub(crate) fn comes_to(&mut self, answer: AnswerSoFar<'_>) {
        match answer {
            AnswerSoFar::Series(it) => self.show_whole(Whole::Series, it),
            AnswerSoFar::Sweep(it) => self.show_whole(Whole::Series, it),
            AnswerSoFar::Search(it) => self.show_whole(Whole::Search, it),
        }
    }

    /// What the runs come to so far, as a page of the reports'.
    fn show_whole(&mut self, whole: Whole, answer: &impl Report) {
        let Some(shown) = &mut self.0 else { return };
        let mut page = Vec::new();
        if answer.write("html", &Text::default(), &mut page).is_ok() {
            let prefix = match whole {
                Whole::Series => "all-",
                Whole::Search => "search-",
            };
            let mut parts = parts(&String::from_utf8_lossy(&page), prefix);
            // Its list of contents leads to names that parts have in its own file.
            parts.retain(|part| !part.html.starts_with("<nav"));
            shown.wholes.set(whole, parts);
            let above = shown.wholes.parts();
            if shown.has_ended || shown.outlets.wants_body() {
                shown.outlets.show(move || above);
            }
        }
    }

    /// All is over, and this is how. Tabs stay as they are.
    fn end(&mut self, words: &str) {
        let Some(shown) = &mut self.0 else { return };
        shown.has_ended = true;
        shown.outlets.end(&format!("{words}; weir is gone, and this page stays as it is"));
    }

    /// The end of several runs.
    pub(crate) fn end_series(&mut self, ending: &Ending) {
        self.end(match ending {
            Ending::Completed | Ending::Running => "all runs are complete",
            Ending::Interrupted => "the runs were interrupted",
            Ending::Failed(_) => "a run could not be made: the terminal says why",
        });
    }

    /// The end of a single run.
    pub(crate) fn end_run(&mut self, summary: &Summary) {
        self.end(match &summary.outcome {
            Outcome::Completed | Outcome::Running => "the run is complete",
            Outcome::Interrupted => "the run was interrupted",
            Outcome::TargetDied => "the target died",
            Outcome::AgentLost => "an agent was lost",
            Outcome::NobodyLeft => "the run ended early: every client had failed",
            Outcome::Aborted(_) => "the run was aborted by a threshold",
        });
    }
}

impl Drop for LivePage {
    fn drop(&mut self) {
        if self.0.as_ref().is_some_and(|shown| !shown.has_ended) {
            self.end("weir ended before it was done: its terminal says why");
        }
    }
}

impl PageContent {
    /// Shows a run's summary below what stands above it, its agents below its head. It is rendered on the page's own thread.
    fn show(&self, summary: Summary, agents: Option<Part>) {
        let above = self.wholes.parts();
        self.outlets.show(move || {
            let mut page = Vec::new();
            // A vector takes all.
            let _ = summary.write("html", &Text::default(), &mut page);
            let mut run = parts(&String::from_utf8_lossy(&page), "");
            let below_head = usize::from(!run.is_empty());
            run.splice(below_head..below_head, agents);
            above.into_iter().chain(run).collect()
        });
    }

    /// A second is complete.
    fn second(&mut self, second: u32, aggregator: &Aggregator) {
        let Some(run) = &mut self.run else { return };
        let outlets = &self.outlets;
        let figures =
            aggregator.figures().map(|(facts, server, figures)| (origin(facts, server), figures.clone()));
        outlets.board().show(second + 1, figures);
        if let Some(usage) = aggregator.latest_usage() {
            let machines = aggregator.latest_machines(&run.facts.machines);
            outlets.board().read(readings(&usage.generator, &usage.targets, &run.facts.targets, &machines));
        }
        let now = Instant::now();
        if !outlets.wants_body() || now < run.next {
            return;
        }
        let facts = RunFacts { duration_seconds: f64::from(second) + 1.0, ..run.facts.clone() };
        let summary = aggregator.finish(facts, Outcome::Running, &run.scenario);
        run.next = now + now.elapsed() * SHARE;
        let agents = run.agents.take_part();
        self.show(summary, agents);
    }
}

fn parts(page: &str, prefix: &str) -> Vec<Part> {
    fragments(page, prefix).into_iter().map(|it| Part { id: it.id, html: it.html }).collect()
}

/// A run that goes on.
struct WatchedRun {
    facts: RunFacts,
    agents: LiveAgents,
    scenario: Scenario,
    /// When it may be summed up again.
    next: Instant,
}

/// Whose figures they are.
fn origin(facts: &WorkloadFacts, server: Option<&str>) -> Origin {
    let target = server.unwrap_or_else(|| facts.targets.first().map_or("", |url| host(url)));
    Origin { workload: facts.name.clone(), protocol: facts.protocol.clone(), target: target.to_owned() }
}

/// Host and port of a URL without secrets.
fn host(url: &str) -> &str {
    let behind = url.split_once("://").map_or(url, |(_, rest)| rest);
    behind.split(['/', '?']).next().unwrap_or_default()
}

/// What distinguishes one run from another.
fn labels(facts: &RunFacts) -> Vec<Label> {
    let tag = |name: &'static str| facts.tags.get(name).map(|value| (name, value.clone()));
    let known =
        [("run", facts.id.clone()), ("name", facts.name.clone()), ("version", facts.weir_version.clone())];
    known.into_iter().chain([tag("variant"), tag("repetition")].into_iter().flatten()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_of_a_sweep_stands_below_it_and_goes_with_the_next_one() {
        let part = |id: &str| vec![Part { id: id.to_owned(), html: String::new() }];
        let ids = |wholes: &Wholes| wholes.parts().into_iter().map(|part| part.id).collect::<Vec<_>>();
        let mut wholes = Wholes::default();
        wholes.set(Whole::Search, part("first search"));
        assert_eq!(ids(&wholes), ["first search"]);
        wholes.set(Whole::Series, part("sweep"));
        assert_eq!(ids(&wholes), ["sweep"]);
        wholes.set(Whole::Search, part("second search"));
        assert_eq!(ids(&wholes), ["sweep", "second search"]);
    }

    #[test]
    fn the_target_is_a_host_with_its_port() {
        assert_eq!(host("rtmp://127.0.0.1:1935/live/…1"), "127.0.0.1:1935");
        assert_eq!(host("mqtt://h?x"), "h");
        assert_eq!(host(""), "");
    }
}
