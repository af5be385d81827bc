//! A coordinator and an agent that exchange messages while others publish on their subjects: what the fuzz target `agents` shares with its
//! tests. Nothing here is part of a run.

use crate::agent::{Agent, AgentCommand, AgentEvent};
use crate::coordinator::{Coordinator, CoordinatorCommand, CoordinatorEvent};
use crate::frame::{AgentName, CommonClock, Hello, Offer};
use crate::state_machine::StateMachine;
use std::collections::BTreeSet;
use std::time::Duration;
use weir_engine::agents::{AgentEnd, AgentReport, SecondLines};
use weir_engine::plan::Segment;
use weir_metrics::Moment;

/// The processes of the coordinator and of its agents. A message with one of these numbers is taken for one of that process.
const COORDINATOR: u64 = 1;
const AGENT: u64 = 2;
const WATCHER: u64 = 3;

/// Runs a dialogue into which these bytes are injected: messages that are separated by zero bytes. The first byte of each is its kind:
/// `a` is sent as agent a, `w` as the agent that watches, `z` as an agent without a part, `c` as the coordinator; `t` lets time pass, `n`
/// takes the connection down or up again, `d` drops messages. Returns the number of seconds that the coordinator received.
pub fn dialogue(bytes: &[u8]) -> u64 {
    let mut play = Play::new();
    play.pump();
    play.coordinator.handle_command(CoordinatorCommand::Begin(play.clock()), play.now);
    for message in bytes.split(|byte| *byte == 0) {
        play.pump();
        let Some((kind, message)) = message.split_first() else { continue };
        let now = play.now;
        match kind {
            b'a' => play.coordinator.handle_message("weir.up.a", message, now),
            b'w' => play.coordinator.handle_message("weir.up.w", message, now),
            b'z' => play.coordinator.handle_message("weir.up.z", message, now),
            b'c' => play.agent.handle_message("weir.down.a", message, now),
            b't' => play.now = now + Duration::from_millis(100 * (1 + message.len() as u64 % 128)),
            b'n' => {
                play.is_up = !play.is_up;
                play.coordinator.handle_connection(play.is_up, now);
                play.agent.handle_connection(play.is_up, now);
            }
            b'd' => play.coordinator.handle_dropped(),
            _ => {}
        }
    }
    play.pump();
    play.coordinator.handle_command(CoordinatorCommand::Done, play.now);
    play.pump();
    play.seconds
}

struct Play {
    coordinator: Coordinator,
    agent: Agent,
    now: Moment,
    is_up: bool,
    /// Agents that have ended or are lost.
    over: BTreeSet<u16>,
    /// Number of seconds that the coordinator received.
    seconds: u64,
}

impl Play {
    fn new() -> Self {
        let name = |text: &str| text.parse::<AgentName>().expect("a plain name");
        let now = Moment::from_nanos(1_000_000_000);
        let mut coordinator = Coordinator::new(COORDINATOR, "r".to_owned());
        let mut agent = Agent::new(name("a"), AGENT, Hello::default());
        coordinator.handle_connection(true, now);
        agent.handle_connection(true, now);
        let part = Offer { segment: Some(Segment::equal(0, 1)), ..Offer::default() };
        let offers = vec![(name("a"), AGENT, part), (name("w"), WATCHER, Offer::default())];
        coordinator.handle_command(CoordinatorCommand::Offer(offers), now);
        Self { coordinator, agent, now, is_up: true, over: BTreeSet::new(), seconds: 0 }
    }

    fn clock(&self) -> CommonClock {
        CommonClock { origin: self.now.as_nanos() + 1_000_000_000, wall_at_zero: 7, moves: 0 }
    }

    /// Delivers messages until neither side has more to send.
    fn pump(&mut self) {
        self.coordinator.handle_timeout(self.now);
        self.agent.handle_timeout(self.now);
        for _ in 0..100 {
            let mut is_idle = true;
            while let Some(sent) = self.coordinator.poll_send() {
                is_idle = false;
                if self.is_up && self.agent.subjects().contains(&sent.subject) {
                    self.agent.handle_message(&sent.subject, &sent.bytes, self.now);
                }
            }
            while let Some(event) = self.agent.poll_event() {
                self.answer(&event);
            }
            while let Some(sent) = self.agent.poll_send() {
                is_idle = false;
                assert_eq!(sent.subject, "weir.up.a", "an agent publishes on its own subject");
                if self.is_up {
                    self.coordinator.handle_message(&sent.subject, &sent.bytes, self.now);
                }
            }
            while let Some(event) = self.coordinator.poll_event() {
                self.check(event);
            }
            if is_idle {
                return;
            }
            self.agent.handle_timeout(self.now);
        }
    }

    fn answer(&mut self, event: &AgentEvent) {
        let now = self.now;
        match event {
            AgentEvent::Offered(_) => self.agent.handle_command(AgentCommand::Accept, now),
            AgentEvent::Begin(_) => {
                self.agent.handle_command(AgentCommand::Begun(Duration::ZERO), now);
                let second = SecondLines { is_whole: true, ..SecondLines::default() };
                self.agent.handle_command(AgentCommand::Second(second), now);
            }
            AgentEvent::Stop(_) => self.agent.handle_command(AgentCommand::Ended(AgentEnd::default()), now),
            AgentEvent::Connected(_)
            | AgentEvent::WallAtZero(_)
            | AgentEvent::TooLarge(_)
            | AgentEvent::Over { .. } => {}
        }
    }

    fn check(&mut self, event: CoordinatorEvent) {
        match event {
            CoordinatorEvent::Hello(..) => {}
            CoordinatorEvent::Accepted(agent) | CoordinatorEvent::Refused(agent, _) => assert!(agent < 2),
            CoordinatorEvent::Watched(agent, _) => {
                assert_eq!(agent, 1, "an agent with a segment watches nothing");
            }
            CoordinatorEvent::Report(agent, report) => {
                assert!(agent < 2);
                match report {
                    AgentReport::Ended(_) | AgentReport::Lost(_) => {
                        assert!(self.over.insert(agent), "an agent ends once");
                    }
                    AgentReport::Second(_) | AgentReport::Begun { .. } => {
                        assert_eq!(agent, 0, "an agent that watches makes no load");
                        assert!(!self.over.contains(&agent), "nothing is reported after the end");
                        self.seconds += u64::from(matches!(report, AgentReport::Second(_)));
                    }
                    AgentReport::Trouble(words) => assert!(!words.is_empty()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_of_the_fuzz_target_reaches_the_state_machines() {
        let nothing = dialogue(b"");
        assert_eq!(nothing, 1, "without injected messages the agent's second arrives");
        assert_eq!(dialogue(include_bytes!("../../../fuzz/corpus/agents/seconds")), 3);
        assert_eq!(dialogue(include_bytes!("../../../fuzz/corpus/agents/repeated")), 2);
        assert_eq!(dialogue(include_bytes!("../../../fuzz/corpus/agents/foreign")), 1);
        assert_eq!(dialogue(include_bytes!("../../../fuzz/corpus/agents/gone")), 1);
        // Items that waited for the one that ends the run are ignored.
        assert_eq!(dialogue(include_bytes!("../../../fuzz/corpus/agents/after-the-end")), 1);
    }
}
