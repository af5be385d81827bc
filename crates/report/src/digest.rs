//! From a summary to what a report says. It names no protocol: figures of protocols are listed by the names
//! that they bring, those with a dot.

use crate::document::{Badge, Cell, Column, Document, Fact, Grid, Part, Section, Tone, columns};
use crate::headline::{Headline, headline};
use crate::measured::measured;
use crate::names::Names;
use crate::quantity::{
    NOTHING, TIE, bit_rate, bytes, count, moment, number, percent, seconds, several, span,
};
use crate::quote::{LINE, quote};
use crate::stages::{self, leading, state_tone, state_word};
use crate::{account, channels, clients, growth, ingest, machines, restarts, servers, surroundings};
use std::collections::{BTreeMap, BTreeSet};
use weir_engine::summary::{
    Outcome, Reason, Role, RunFacts, StageSummary, Summary, ThreadLoad, ThresholdResult, VerdictState,
    WorkloadSummary,
};

/// Everything but the plots and the table of all figures.
pub(crate) fn digest(summary: &Summary) -> Document {
    let run = &summary.run;
    if let Some(headline) = headline(summary) {
        return of_nothing(summary, &headline);
    }
    let mut sections = vec![Section::new("Run", vec![Part::Facts(run_facts(summary))])];
    let names = Names::new(run);
    for workload in &summary.workloads {
        sections.push(workload_section(workload, &summary.workloads, &names));
    }
    sections.extend(processes_and_host(summary, &names));
    sections.extend(restarts::section(summary));
    sections.extend(growth::section(summary, &names));
    sections.extend(machines::section(summary));
    sections.push(verdict(summary));
    sections.extend(thresholds(summary));
    sections.extend(Section::of_warnings(&summary.warnings));
    sections.extend(surroundings::sections(run));
    Document { title: title(summary), badges: badges(summary), sections }
}

/// Of a run in which nothing was measured: why, what helps, and what is known beside that. Tables of it would be dashes.
fn of_nothing(summary: &Summary, headline: &Headline) -> Document {
    let mut facts = vec![Fact::new("Why", headline.line.clone()).tone(Tone::Bad)];
    facts.extend(headline.remedy.as_deref().map(|remedy| Fact::new("Remedy", remedy)));
    facts.extend(run_facts(summary));
    let mut sections = vec![Section::new("Run", vec![Part::Facts(facts)])];
    if !headline.is_whole {
        let failed = summary.workloads.iter().filter(|it| !it.failures.is_empty());
        sections.push(Section::new("Failures", failed.map(|it| Part::Grid(failures(it))).collect()));
    }
    if !summary.verdict.reasons.is_empty() {
        sections.push(verdict(summary));
    }
    sections.extend(Section::of_warnings(&summary.warnings));
    Document { title: title(summary), badges: badges(summary), sections }
}

fn title(summary: &Summary) -> String {
    let run = &summary.run;
    format!("weir {} · {}", quote(&run.weir_version, 40), quote(&run.name, LINE))
}

fn badges(summary: &Summary) -> Vec<Badge> {
    let state = summary.verdict.state;
    let mut badges = vec![Badge::new(state_word(state), state_tone(state))];
    let (all, failed) = (summary.thresholds.len(), summary.thresholds.iter().filter(|it| !it.passed).count());
    match failed {
        0 if all == 0 => {}
        // All of them fail of nothing, which the first badge says.
        _ if state == VerdictState::NothingMeasured => {}
        0 => badges.push(Badge::new(format!("{} passed", several(all as u64, "threshold")), Tone::Good)),
        _ => {
            let first = summary.thresholds.iter().find(|it| !it.passed);
            let first = first.map_or_else(String::new, |it| quote(&it.expression, 60));
            let others = if failed > 1 { " and others" } else { "" };
            let all = several(all as u64, "threshold");
            badges.push(Badge::new(format!("{failed} of {all} failed: {first}{others}"), Tone::Bad));
        }
    }
    if !summary.verdict.waived.is_empty() {
        let names: BTreeSet<_> = summary.verdict.waived.iter().map(|it| quote(&it.check, 60)).collect();
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        badges.push(Badge::new(format!("waived: {names}"), Tone::Doubtful));
    }
    let (text, tone) = match summary.outcome {
        Outcome::Completed | Outcome::NobodyLeft if summary.is_unanswered() => {
            ("the target gave no answer", Tone::Bad)
        }
        Outcome::Completed => return badges,
        Outcome::Interrupted => ("interrupted", Tone::Doubtful),
        Outcome::TargetDied => ("the target died", Tone::Bad),
        Outcome::NobodyLeft => ("every client had failed", Tone::Bad),
        Outcome::AgentLost => ("an agent was lost", Tone::Bad),
        Outcome::Aborted(_) => ("aborted", Tone::Bad),
        Outcome::Running => ("running", Tone::Plain),
    };
    badges.push(Badge::new(text, tone));
    badges
}

fn run_facts(summary: &Summary) -> Vec<Fact> {
    let run = &summary.run;
    let mut facts = vec![
        Fact::new("Started", format!("{} UTC", moment(run.started_at_seconds, ' '))),
        outcome(&summary.outcome, run.duration_seconds),
    ];
    if summary.workloads.is_empty() {
        facts.push(Fact::new("Workloads", "none: nothing was measured").tone(Tone::Doubtful));
    }
    for workload in &summary.workloads {
        let most = workload.stages.iter().map(|stage| stage.clients).max().unwrap_or(0);
        let (verb, clients) = match workload.role {
            Role::Play => ("Play", "viewer"),
            Role::Publish => ("Publish", "publisher"),
            Role::Ingest => ("Ingest", "consumer"),
        };
        let clients = several(most.into(), clients);
        let many = if workload.stages.len() > 1 { "up to " } else { "" };
        facts.push(Fact::new(verb, format!("{}, {many}{clients}", addresses(workload))));
        if !workload.stages.is_empty() {
            let stages = workload.stages.iter().map(stage_span).collect::<Vec<_>>().join(", ");
            let noun = if workload.stages.len() > 1 { "Stages" } else { "Stage" };
            facts.push(Fact::new(noun, stages));
        }
    }
    if is_on_the_servers_machine(summary) {
        let line = "same machine as the server's: server CPU is an upper bound, and both share the cores";
        facts.push(Fact::new("Generator", line));
    }
    facts.extend(clock(run));
    facts.push(Fact::new("Seed", run.seed.to_string()));
    if !run.tags.is_empty() {
        let tags = run.tags.iter().map(|(key, value)| format!("{}={}", quote(key, 60), quote(value, LINE)));
        facts.push(Fact::new("Tags", tags.collect::<Vec<_>>().join(", ")));
    }
    facts
}

/// How well the kernels keep the clocks of the machines that made the load: what latencies of another's publisher, and dates, stand
/// on.
fn clock(run: &RunFacts) -> Option<Fact> {
    let own = [("this machine", run.clock)];
    let agents = run.agents.iter().map(|agent| (agent.name.as_str(), agent.clock));
    let clocks: Vec<_> = if run.agents.is_empty() { own.to_vec() } else { agents.collect() };
    let known = || clocks.iter().filter_map(|(name, clock)| Some((*name, (*clock)?)));
    let unkept: Vec<_> = known().filter(|(_, clock)| !clock.is_synchronised).map(|(name, _)| name).collect();
    let most = known().map(|(_, clock)| clock.most_error_seconds).reduce(f64::max)?;
    Some(match &unkept[..] {
        [] => Fact::new("Clock", format!("synchronised ± {}", seconds(most))),
        _ if run.agents.is_empty() => Fact::new("Clock", "not synchronised"),
        _ => Fact::new("Clock", format!("not synchronised: {}", quote(&unkept.join(", "), LINE))),
    })
}

/// Whether weir's clients are on the machine of the server that they load: its addresses are loopback ones.
fn is_on_the_servers_machine(summary: &Summary) -> bool {
    const LOOPBACK: [&str; 3] = ["://127.", "://localhost", "://[::1]"];
    let loaded = summary.workloads.iter().filter(|it| !it.background).flat_map(|it| &it.targets);
    summary.run.agents.is_empty() && loaded.into_iter().any(|url| LOOPBACK.iter().any(|it| url.contains(it)))
}

fn outcome(outcome: &Outcome, length: f64) -> Fact {
    let after = span(length);
    match outcome {
        Outcome::Completed => Fact::new("Outcome", format!("completed in {after}")),
        Outcome::Running => Fact::new("Outcome", format!("none yet: running for {after}")),
        Outcome::Interrupted => {
            Fact::new("Outcome", format!("interrupted after {after}: figures cover what was run"))
                .tone(Tone::Doubtful)
        }
        Outcome::TargetDied => {
            Fact::new("Outcome", format!("the target died; the run ended after {after}")).tone(Tone::Bad)
        }
        Outcome::NobodyLeft => {
            Fact::new("Outcome", format!("ended early, after {after}: every client had failed"))
                .tone(Tone::Bad)
        }
        Outcome::AgentLost => {
            Fact::new("Outcome", format!("an agent was lost; the run ended after {after}")).tone(Tone::Bad)
        }
        Outcome::Aborted(by) => {
            Fact::new("Outcome", format!("aborted after {after} by the threshold {}", quote(by, LINE)))
                .tone(Tone::Bad)
        }
    }
}

/// The first addresses, and how many more there are.
fn addresses(workload: &WorkloadSummary) -> String {
    const NAMED: usize = 3;
    let mut named: Vec<String> = workload.targets.iter().take(NAMED).map(|url| quote(url, LINE)).collect();
    if workload.targets.len() > NAMED {
        named.push(format!("and {} more", workload.targets.len() - NAMED));
    }
    if named.is_empty() { NOTHING.to_owned() } else { named.join(", ") }
}

fn stage_span(stage: &StageSummary) -> String {
    format!(
        "{} at {}–{}{TIE}s",
        count(stage.clients.into()),
        number(stage.begin_seconds),
        number(stage.end_seconds)
    )
}

fn workload_section(workload: &WorkloadSummary, all: &[WorkloadSummary], names: &Names<'_>) -> Section {
    let verb = match workload.role {
        Role::Play => "Play",
        Role::Publish => "Publish",
        Role::Ingest => "Ingest",
    };
    let name = quote(&workload.name, LINE);
    let title = if all.len() > 1 && !name.eq_ignore_ascii_case(verb) {
        format!("{verb}: {name}")
    } else {
        verb.to_owned()
    };
    if workload.role == Role::Ingest {
        return Section::new(title, ingest::parts(workload));
    }
    let mut parts = Vec::new();
    if !workload.stages.is_empty() {
        parts.push(Part::Grid(stages::table(workload, all, names)));
    }
    parts.push(Part::Facts(account::of_workload(workload)));
    parts.extend(servers::table(workload).map(Part::Grid));
    parts.extend(channels::tables(workload).into_iter().map(Part::Grid));
    parts.extend(clients::parts(workload));
    if !workload.failures.is_empty() {
        parts.push(Part::Grid(failures(workload)));
    }
    Section::new(title, parts)
}

fn failures(workload: &WorkloadSummary) -> Grid {
    let rows = workload.failures.iter().map(|failure| {
        let side = match failure.side {
            weir_metrics::Side::Local => "local",
            weir_metrics::Side::Remote => "remote",
            weir_metrics::Side::Protocol => "protocol",
        };
        let words =
            if failure.words.trim().is_empty() { NOTHING.to_owned() } else { quote(&failure.words, LINE) };
        vec![
            Cell::text(count(failure.clients)).tone(Tone::Bad),
            Cell::text(failure.kind.key()),
            Cell::text(side),
            Cell::text(words),
        ]
    });
    Grid {
        caption: "Failures by kind, with what was said first: the peer's words, the system's, or weir's"
            .to_owned(),
        columns: columns![number "Failed", word "Kind", word "Side", prose "What was said"],
        rows: rows.collect(),
    }
}

/// The target's processes with their busiest threads, and the host, stage by stage.
fn processes_and_host(summary: &Summary, names: &Names<'_>) -> Vec<Section> {
    let Some(workload) = leading(summary) else { return Vec::new() };
    let mut sections = Vec::new();
    let processes: Vec<_> = workload.stages.iter().flat_map(|stage| process_rows(stage, names)).collect();
    if !processes.is_empty() {
        let columns = columns![
            number "Clients", word "Server", number "CPU mean / max" / "CPU\nmean/max",
            number "Open conns" / "Open\nconns", number "Context switches/s" / "Switches\n/s",
            prose "Busiest threads",
        ];
        let caption = "The target over each stage's window; CPU: 100% is one core".to_owned();
        sections.push(Section::new("Target", vec![Part::Grid(Grid { caption, columns, rows: processes })]));
    }
    let hosts: Vec<_> = workload.stages.iter().filter_map(host_row).collect();
    if !hosts.is_empty() {
        let columns = columns![
            number "Clients", number "CPU", number "Others", number "Steal", number "Load1",
            number "Memory", number "Received", number "Sent",
            number "TCP retransmits/s" / "Retrans-\nmits/s", number "Listen drops" / "Listen\ndrops",
        ];
        let caption =
            "The host over each stage's window, loopback included; CPU, others and steal: 100% is one core"
                .to_owned();
        sections.push(Section::new("Host", vec![Part::Grid(Grid { caption, columns, rows: hosts })]));
    }
    sections
}

fn process_rows(stage: &StageSummary, names: &Names<'_>) -> Vec<Vec<Cell>> {
    let row = |load: &weir_engine::summary::ProcessLoad| {
        vec![
            Cell::text(count(stage.clients.into())),
            Cell::text(names.of(&load.label)),
            Cell::pair(percent(load.cpu_percent), percent(load.cpu_percent_max)),
            load.connections_max.map_or_else(Cell::nothing, |number| Cell::text(count(number))),
            Cell::text(number(load.context_switches_per_second)),
            Cell::text(threads(&load.threads)),
        ]
    };
    stage.targets.iter().map(row).collect()
}

/// The busiest few by name: `worker ×4 98% (busiest 51%)`.
fn threads(threads: &[ThreadLoad]) -> String {
    let one = |thread: &ThreadLoad| {
        let name = quote(&thread.name, 32);
        match thread.threads {
            0 | 1 => format!("{name} {}", percent(thread.cpu_percent)),
            many => {
                let busiest = percent(thread.cpu_percent_busiest);
                format!("{name} ×{many} {} (busiest {busiest})", percent(thread.cpu_percent))
            }
        }
    };
    let named: Vec<_> = threads.iter().take(3).map(one).collect();
    if named.is_empty() { NOTHING.to_owned() } else { named.join(", ") }
}

fn host_row(stage: &StageSummary) -> Option<Vec<Cell>> {
    let host = stage.host.as_ref()?;
    let doubtful = |is: bool| if is { Tone::Doubtful } else { Tone::Plain };
    Some(vec![
        Cell::text(count(stage.clients.into())),
        Cell::text(percent(host.cpu_percent)),
        host.others_percent.map_or_else(Cell::nothing, |others| Cell::text(percent(others))),
        Cell::text(percent(host.steal_percent)).tone(doubtful(host.steal_percent >= 1.0)),
        Cell::text(format!("{:.2}", host.load1_max)),
        Cell::text(bytes(host.memory_used_max_bytes as f64)),
        Cell::quantity(bit_rate(host.rx_bps)),
        Cell::quantity(bit_rate(host.tx_bps)),
        Cell::text(number(host.tcp_retransmits_per_second))
            .tone(doubtful(host.tcp_retransmits_per_second >= 1.0)),
        Cell::text(count(host.listen_drops)).tone(doubtful(host.listen_drops > 0)),
    ])
}

fn verdict(summary: &Summary) -> Section {
    let verdict = &summary.verdict;
    let meaning = match verdict.state {
        VerdictState::Valid => "the load generator had room to spare; the figures can be believed",
        VerdictState::Degraded => {
            "the load generator reached half of a limit, or its machine was busy; read the figures with care"
        }
        VerdictState::NothingMeasured if summary.has_measured() => {
            "no stage was held for a whole second: nothing could be judged"
        }
        VerdictState::NothingMeasured => {
            "no client ever played or published: there are no figures to believe"
        }
        VerdictState::Invalid => {
            "the load generator was the bottleneck; the figures say nothing about the target"
        }
    };
    let tone = state_tone(verdict.state);
    let mut facts = vec![Fact::new(state_word(verdict.state), meaning).tone(tone)];
    let waived = verdict.waived.iter().map(|reason| (reason, "waived: ", Tone::Plain));
    for (reason, waived, tone) in
        verdict.reasons.iter().map(|reason| (reason, "", state_tone(reason.state))).chain(waived)
    {
        let places = places(summary, reason);
        let place = if places.is_empty() { String::new() } else { format!(" ({places})") };
        facts.push(Fact {
            label: format!("{waived}{}", state_word(reason.state)),
            lines: vec![
                format!("{}{place}", quote(&reason.text, 500)),
                if waived.is_empty() {
                    format!("Remedy: {}", quote(&reason.remedy, 500))
                } else {
                    format!("The run accepts {}: this changes nothing", quote(&reason.check, 60))
                },
            ],
            tone,
            item: true,
        });
    }
    Section::new("Verdict", vec![Part::Facts(facts)])
}

/// `play, stage 5: 2,500 clients; also play, stages 3 and 4; publish, stage 1`.
fn places(summary: &Summary, reason: &Reason) -> String {
    let first = reason.stage.and_then(|(workload, stage)| place(summary, workload, stage));
    // Several agents may have met it in one stage.
    let mut others: BTreeMap<u16, BTreeSet<u32>> = BTreeMap::new();
    for (workload, stage) in reason.also.iter().filter(|also| Some(**also) != reason.stage) {
        others.entry(*workload).or_default().insert(u32::from(*stage) + 1);
    }
    let others = others.iter().filter_map(|(workload, stages)| {
        let name = quote(&summary.workloads.get(usize::from(*workload))?.name, 60);
        let plural = if stages.len() > 1 { "stages" } else { "stage" };
        let stages: Vec<_> = stages.iter().map(ToString::to_string).collect();
        Some(format!("{name}, {plural} {}", stages.join(", ")))
    });
    let others = others.collect::<Vec<_>>().join("; ");
    match first {
        Some(first) if others.is_empty() => first,
        Some(first) => format!("{first}; also {others}"),
        None => others,
    }
}

/// `play, stage 5: 2,500 clients`.
fn place(summary: &Summary, workload: u16, stage: u16) -> Option<String> {
    let workload = summary.workloads.get(usize::from(workload))?;
    let found = workload.stages.iter().find(|candidate| candidate.stage == stage)?;
    let clients = several(found.clients.into(), "client");
    Some(format!("{}, stage {}: {clients}", quote(&workload.name, 60), u32::from(stage) + 1))
}

fn thresholds(summary: &Summary) -> Option<Section> {
    if summary.thresholds.is_empty() {
        return None;
    }
    let is_placed = summary.thresholds.iter().any(|it| worst(summary, it).is_some());
    let rows = summary.thresholds.iter().map(|threshold| {
        let (word, tone) =
            if threshold.passed { ("✓ passed", Tone::Good) } else { ("✗ failed", Tone::Bad) };
        let default = if threshold.default { " (default)" } else { "" };
        let expression = format!("{}{default}", quote(&threshold.expression, LINE));
        let mut row = vec![
            Cell::text(word).tone(tone),
            Cell::text(expression),
            Cell::text(measured(summary, threshold)),
        ];
        if is_placed {
            row.push(worst(summary, threshold).map_or_else(|| Cell::text("whole run"), Cell::text));
        }
        row
    });
    let mut columns = columns![word "Result", prose "Threshold", number "Measured"];
    columns.extend(is_placed.then(|| Column::prose("Worst in")));
    let grid = Grid { caption: "What was asked of the target".to_owned(), columns, rows: rows.collect() };
    Some(Section::new("Thresholds", vec![Part::Grid(grid)]))
}

/// Where a threshold's value is from: `stage 3: 1,500 clients, second 44`.
fn worst(summary: &Summary, threshold: &ThresholdResult) -> Option<String> {
    let place = threshold.place?;
    let workload = summary.workloads.get(usize::from(place.workload))?;
    let stage = workload.stages.iter().find(|stage| stage.stage == place.stage)?;
    let name = match &summary.workloads[..] {
        [_] => String::new(),
        _ => format!("{}, ", quote(&workload.name, 60)),
    };
    let clients = several(stage.clients.into(), "client");
    let second = place.second.map_or_else(String::new, |second| format!(", second {second}"));
    Some(format!("{name}stage {}: {clients}{second}", u32::from(stage.stage) + 1))
}
