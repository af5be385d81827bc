//! Which agents have answered a call: one process a name, the one that answered last, so that what is kept is bounded whoever publishes on
//! the subjects of agents.

use crate::frame::{AgentName, Hello, Instance};
use std::collections::BTreeMap;

/// Names that are kept, of 4 KiB each ([`crate::frame::LARGEST_HELLO`]): ten times as many as a run has agents.
const MOST_NAMES: usize = 10_000;

/// The agents that have answered.
#[derive(Debug, Default)]
pub struct Roster(BTreeMap<AgentName, (Instance, Hello)>);

impl Roster {
    /// An agent answers. One that was started again has the place of the process before it.
    pub fn enter(&mut self, name: AgentName, instance: Instance, hello: Hello) {
        if self.0.len() < MOST_NAMES || self.0.contains_key(&name) {
            self.0.insert(name, (instance, hello));
        }
    }

    /// The agents that are free and make load, and those that are free and watch; each by name.
    pub fn free(self) -> [Vec<(AgentName, Instance, Hello)>; 2] {
        let free = self.0.into_iter().filter(|(_, (_, hello))| !hello.is_busy);
        let (watching, load): (Vec<_>, Vec<_>) = free
            .map(|(name, (instance, hello))| (name, instance, hello))
            .partition(|(_, _, it)| !it.watches.is_empty());
        [load, watching]
    }

    /// How many agents are free and make load.
    pub fn count_free(&self) -> usize {
        self.0.values().filter(|(_, hello)| !hello.is_busy && hello.watches.is_empty()).count()
    }

    /// All that have answered, by name.
    pub fn into_all(self) -> impl Iterator<Item = (AgentName, Hello)> {
        self.0.into_iter().map(|(name, (_, hello))| (name, hello))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_has_one_process_and_their_number_has_an_end() {
        let mut roster = Roster::default();
        let hello = |is_busy, watches: &[&str]| {
            let watches = watches.iter().map(|it| (*it).to_owned()).collect();
            Hello { is_busy, watches, ..Hello::default() }
        };
        for instance in 0..100_000 {
            roster.enter("a".parse().unwrap(), instance, hello(false, &[]));
        }
        roster.enter("b".parse().unwrap(), 1, hello(true, &[]));
        roster.enter("w".parse().unwrap(), 1, hello(false, &["name=nginx"]));
        assert_eq!(roster.count_free(), 1);
        for number in 0..2 * MOST_NAMES {
            roster.enter(format!("n{number}").parse().unwrap(), 1, hello(true, &[]));
        }
        assert_eq!(roster.0.len(), MOST_NAMES);
        let [load, watching] = roster.free();
        assert_eq!(
            load.iter().map(|(name, instance, _)| (name.to_string(), *instance)).collect::<Vec<_>>(),
            [("a".to_owned(), 99_999)]
        );
        assert_eq!(watching.len(), 1);
    }
}
