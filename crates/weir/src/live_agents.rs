//! The agents of a run on its live page: who makes the load, and how far each is behind. A function of facts and of times; it knows no
//! page and no agent.

use crate::ingest_live::escaped;
use std::fmt::Write;
use std::time::Duration;
use weir_engine::agents::{AgentFacts, Load};
use weir_live::Part;

/// The agents of a run that goes on.
#[derive(Debug, Default)]
pub(crate) struct LiveAgents(Vec<LiveAgent>);

#[derive(Debug)]
struct LiveAgent {
    facts: AgentFacts,
    /// How far it was behind since the page was drawn last, at the most; nothing of one that has ended.
    behind: Option<Duration>,
}

impl LiveAgents {
    /// Those that make this load.
    pub(crate) fn of(load: &Load) -> Self {
        let facts = match load {
            Load::Elsewhere(agents) => agents.facts(),
            Load::Here | Load::AsAgent(_) => Vec::new(),
        };
        Self(facts.into_iter().map(|facts| LiveAgent { facts, behind: None }).collect())
    }

    /// Who they are.
    pub(crate) fn facts(&self) -> Vec<AgentFacts> {
        self.0.iter().map(|agent| agent.facts.clone()).collect()
    }

    /// One is behind by this.
    pub(crate) fn lag(&mut self, name: &str, behind: Duration) {
        for agent in self.0.iter_mut().filter(|agent| agent.facts.name == name) {
            agent.behind = agent.behind.max(Some(behind));
        }
    }

    /// A table of all of them, if there are any, and a new look at how far each is behind.
    pub(crate) fn take_part(&mut self) -> Option<Part> {
        if self.0.is_empty() {
            return None;
        }
        let mut html = "<section id=\"agents\"><h2>Agents</h2><div class=\"scroll\" role=\"region\" tabindex=\"0\" \
            aria-label=\"Agents\"><table><caption>The agents that make the load</caption><thead><tr><th scope=\"col\">Agent</th>\
            <th scope=\"col\">Host</th><th scope=\"col\" class=\"number\">Cores</th>\
            <th scope=\"col\" class=\"number\">Behind</th></tr></thead><tbody>"
            .to_owned();
        for LiveAgent { facts, behind } in &mut self.0 {
            let behind =
                behind.take().map_or("has ended".to_owned(), |it| format!("{:.1} s", it.as_secs_f64()));
            // A string takes all.
            let _ = write!(
                html,
                "<tr><td><bdi>{}</bdi></td><td><bdi>{}</bdi></td><td class=\"number\">{}</td><td class=\"number\">{behind}</td></tr>",
                escaped(&facts.name),
                escaped(&facts.hostname),
                facts.cores
            );
        }
        html.push_str("</tbody></table></div></section>");
        Some(Part { id: "agents".to_owned(), html })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(name: &str) -> LiveAgent {
        let facts = AgentFacts {
            name: name.to_owned(),
            hostname: "h<1>".to_owned(),
            cores: 2,
            ..AgentFacts::default()
        };
        LiveAgent { facts, behind: None }
    }

    #[test]
    fn each_agent_has_a_row_with_the_most_that_it_was_behind_since_the_last_look() {
        let mut agents = LiveAgents(vec![agent("a"), agent("b")]);
        for (name, millis) in [("a", 100), ("b", 300), ("b", 1_240), ("b", 900)] {
            agents.lag(name, Duration::from_millis(millis));
        }
        let html = agents.take_part().unwrap().html;
        let row = |name, behind| {
            format!(
                "<tr><td><bdi>{name}</bdi></td><td><bdi>h&lt;1&gt;</bdi></td><td class=\"number\">2</td><td class=\"number\">{behind}</td></tr>"
            )
        };
        assert!(html.contains(&(row("a", "0.1 s") + &row("b", "1.2 s"))), "{html}");
        agents.lag("a", Duration::ZERO);
        let html = agents.take_part().unwrap().html;
        assert!(html.contains(&(row("a", "0.0 s") + &row("b", "has ended"))), "{html}");
    }

    #[test]
    fn a_run_of_this_machine_has_no_agents() {
        assert_eq!(LiveAgents::of(&Load::Here).take_part(), None);
    }
}
