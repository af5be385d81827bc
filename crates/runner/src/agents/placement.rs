//! Which agents may make which workload: those that its `on:` names; else publishers where no viewer is, if there are agents enough.
//! A function of values.

use crate::prepare::OWN_DESCRIPTORS;
use std::collections::BTreeSet;
use weir_agents::frame::{AgentName, Hello};
use weir_engine::plan::apportion::Capacity;
use weir_engine::scenario::WorkloadSpec;
use weir_setting::{LABEL, NAME};

/// An agent, as it calls itself.
pub(super) type Agent<'a> = (&'a AgentName, &'a Hello);

/// What an agent can do.
pub(super) fn capacity(hello: &Hello) -> Capacity {
    let descriptors = hello.descriptors.saturating_sub(OWN_DESCRIPTORS);
    let limits = [Some(descriptors), hello.ports, hello.most.map(u64::from)];
    Capacity { cores: hello.cores, most: limits.into_iter().flatten().min().unwrap_or(u64::MAX) }
}

/// Of each workload the agents that may make it.
///
/// # Errors
/// An `on:` names nobody.
pub(super) fn places(specs: &[WorkloadSpec], agents: &[Agent<'_>]) -> Result<Vec<Vec<usize>>, String> {
    let named = specs.iter().map(|spec| named(spec, agents)).collect::<Result<Vec<_>, _>>()?;
    let publishes = |spec: &WorkloadSpec| !spec.publish.0.is_empty() && !spec.background;
    let of = |publishers: bool| -> BTreeSet<usize> {
        let those = specs.iter().zip(&named).filter(|(spec, _)| publishes(spec) == publishers);
        those.flat_map(|(_, named)| named.iter().flatten().copied()).collect()
    };
    let everybody: BTreeSet<usize> = (0..agents.len()).collect();
    let is_open = |publishers: bool| {
        specs.iter().zip(&named).any(|(spec, named)| named.is_none() && publishes(spec) == publishers)
    };
    // Those where viewers need not be.
    let without_viewers: BTreeSet<usize> = everybody.difference(&of(false)).copied().collect();
    let for_publishers = match (is_open(true), is_open(false)) {
        // Viewers go to the others, if any are left.
        (true, true) if without_viewers.len() > 1 || !of(false).is_empty() && !without_viewers.is_empty() => {
            let share = agents_for_publishers(specs, agents.len());
            let most = if of(false).is_empty() { without_viewers.len() - 1 } else { without_viewers.len() };
            smallest(&without_viewers, agents, share.clamp(1, most))
        }
        (true, false) if !without_viewers.is_empty() => without_viewers,
        _ => everybody.clone(),
    };
    let taken = if is_open(true) { &for_publishers | &of(true) } else { of(true) };
    let left: BTreeSet<usize> = everybody.difference(&taken).copied().collect();
    let for_viewers = if left.is_empty() { everybody } else { left };
    let place = |(spec, named): (&WorkloadSpec, Option<Vec<usize>>)| {
        let open = if publishes(spec) { &for_publishers } else { &for_viewers };
        named.unwrap_or_else(|| open.iter().copied().collect())
    };
    Ok(specs.iter().zip(named).map(place).collect())
}

/// The agents that a workload's `on:` names, by their names or labels.
fn named(spec: &WorkloadSpec, agents: &[Agent<'_>]) -> Result<Option<Vec<usize>>, String> {
    if spec.on.0.is_empty() {
        return Ok(None);
    }
    let is_meant = |(name, hello): &Agent<'_>, wanted: &String| match wanted.split_once('=') {
        Some((key, value)) => hello.labels.get(key).is_some_and(|it| it == value),
        None => name.to_string() == *wanted,
    };
    if let Some(missing) = spec.on.0.iter().find(|wanted| !agents.iter().any(|it| is_meant(it, wanted))) {
        let each = agents.iter().map(|(name, hello)| {
            let labels = hello.labels.iter().map(|(key, value)| format!(" {key}={value}"));
            format!("{name}{}", labels.collect::<String>())
        });
        let there = each.take(8).collect::<Vec<_>>().join(", ");
        return Err(format!(
            "on: {missing}: none of the agents of this run is called or labelled so; they are {there}; start one with {LABEL} or {NAME}"
        ));
    }
    let meant = (0..).zip(agents).filter(|(_, agent)| spec.on.0.iter().any(|wanted| is_meant(agent, wanted)));
    Ok(Some(meant.map(|(at, _)| at).collect()))
}

/// How many of the agents publishers take: in the proportion of publishers to all clients.
fn agents_for_publishers(specs: &[WorkloadSpec], agents: usize) -> usize {
    let clients = |publishers: bool| {
        let those = specs.iter().filter(|spec| spec.publish.0.is_empty() != publishers);
        let each = those.map(|spec| {
            let stages = spec.stages.iter().map(|stage| stage.clients).max();
            f64::from(spec.clients.or(stages).unwrap_or(1))
        });
        each.sum::<f64>()
    };
    let (publishers, viewers) = (clients(true), clients(false));
    (agents as f64 * publishers / (publishers + viewers).max(1.0)).round() as usize
}

/// `count` of these agents: those with the fewest cores, the first of equals.
fn smallest(among: &BTreeSet<usize>, agents: &[Agent<'_>], count: usize) -> BTreeSet<usize> {
    let mut all: Vec<usize> = among.iter().copied().collect();
    all.sort_by_key(|at| agents[*at].1.cores);
    all.into_iter().take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_engine::scenario::Scenario;

    /// Who makes each workload, of agents a, b, c …, of which these are labelled `zone=in`.
    fn who(workloads: &str, agents: usize, labelled: &str) -> Result<Vec<String>, String> {
        let scenario = Scenario::parse(&format!("workloads: [{workloads}]")).unwrap();
        let names: Vec<String> = ('a'..).take(agents).map(String::from).collect();
        let all: Vec<(AgentName, Hello)> = names
            .iter()
            .map(|name| {
                let labels = labelled.contains(name.as_str()).then(|| ("zone".to_owned(), "in".to_owned()));
                let hello = Hello { cores: 2, labels: labels.into_iter().collect(), ..Hello::default() };
                (name.parse().unwrap(), hello)
            })
            .collect();
        let agents: Vec<Agent<'_>> = all.iter().map(|(name, hello)| (name, hello)).collect();
        let places = places(&scenario.workloads, &agents)?;
        Ok(places.into_iter().map(|own| own.into_iter().map(|at| names[at].as_str()).collect()).collect())
    }

    const PLAY: &str = "{play: 'rtmp://h/a', clients: 90, duration: 1s}";

    fn publish(on: &str, clients: u32) -> String {
        format!("{{publish: 'rtmp://h/a', clients: {clients}, duration: 1s{on}}}")
    }

    #[test]
    fn publishers_are_where_no_viewer_is_if_there_are_agents_enough() {
        let both = |clients, agents| who(&format!("{}, {PLAY}", publish("", clients)), agents, "").unwrap();
        assert_eq!(both(1, 1), ["a", "a"]);
        assert_eq!(both(1, 2), ["a", "b"]);
        assert_eq!(both(1, 4), ["a", "bcd"]);
        // As many agents as they are clients, but not all.
        assert_eq!(both(90, 4), ["ab", "cd"]);
        assert_eq!(both(9_000, 4), ["abc", "d"]);
        assert_eq!(who(PLAY, 3, "").unwrap(), ["abc"]);
        assert_eq!(who(&publish("", 5), 3, "").unwrap(), ["abc"]);
    }

    #[test]
    fn a_workload_goes_to_the_agents_that_it_names_and_others_elsewhere() {
        let both = |on: &str, labelled| who(&format!("{}, {PLAY}", publish(on, 1)), 3, labelled);
        assert_eq!(both(", on: zone=in", "bc").unwrap(), ["bc", "a"]);
        assert_eq!(both(", on: c", "").unwrap(), ["c", "ab"]);
        assert_eq!(both(", on: [a, zone=in]", "b").unwrap(), ["ab", "c"]);
        // Where all publish, viewers are among them.
        assert_eq!(both(", on: zone=in", "abc").unwrap(), ["abc", "abc"]);
        let play = "{play: 'rtmp://h/a', on: [a, b], duration: 1s}";
        assert_eq!(who(&format!("{}, {play}", publish("", 1)), 3, "").unwrap(), ["c", "ab"]);
        assert_eq!(who(&format!("{}, {play}", publish("", 1)), 2, "").unwrap(), ["ab", "ab"]);
        let said = both(", on: zone=out", "b").unwrap_err();
        assert!(
            said.starts_with("on: zone=out: none of the agents") && said.contains("a, b zone=in, c"),
            "{said}"
        );
    }

    #[test]
    fn an_agent_has_as_many_clients_as_the_least_of_its_limits() {
        let hello = Hello { cores: 4, descriptors: 20_128, ports: Some(28_000), ..Hello::default() };
        assert_eq!(capacity(&hello), Capacity { cores: 4, most: 20_000 });
        assert_eq!(capacity(&Hello { most: Some(50), ..hello.clone() }).most, 50);
        assert_eq!(capacity(&Hello { ports: Some(5_000), ..hello }).most, 5_000);
    }
}
