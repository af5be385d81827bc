//! The key `during`: what is done to the target while a run goes on.

use super::steps::program;
use super::{Scenario, ScenarioError, Span, Step};
use crate::plan::Plan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A server that `before` has started is ended in the middle of the run, and started again by the same command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    /// When it is told to end, from the run's beginning on: `10s`.
    #[schemars(with = "String")]
    pub at: Span,
    /// Its program, as a step `start` of `before` has it, without its directory: `mosquitto`.
    pub restart: String,
    /// How long after that it is started again; as soon as it has ended if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub down: Option<Span>,
    /// Whether it is killed (SIGKILL), as by a crash, instead of asked to end (SIGTERM).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kill: bool,
}

impl Restart {
    /// For how long the server stays away at the least.
    pub fn down(&self) -> Duration {
        self.down.as_ref().map_or(Duration::ZERO, Span::get)
    }

    /// When it is started again at the earliest.
    fn end(&self) -> Duration {
        self.at.get().saturating_add(self.down())
    }
}

impl Scenario {
    /// Checks that each restart is of one server that `before` starts, behind the one before it, and over within the plan.
    ///
    /// # Errors
    /// Says which restart, by its position under `during`, and what is wrong with it.
    pub fn check_during(&self, plan: &Plan) -> Result<(), (usize, ScenarioError)> {
        let mut free = Duration::ZERO;
        for (position, restart) in self.during.iter().enumerate() {
            let wrong = |words: String| {
                Err((position, ScenarioError::During { at: restart.at.get().as_secs_f64(), words }))
            };
            let is_meant = |step: &&Step| matches!(step, Step::Start(command) if program(command) == Some(restart.restart.as_str()));
            match self.before.iter().filter(is_meant).count() {
                1 => {}
                0 => {
                    return wrong(format!(
                        "no step `start` of `before` starts a program '{}', and a server of others is not restarted",
                        restart.restart
                    ));
                }
                several => {
                    return wrong(format!(
                        "{several} steps of `before` start '{}'; start one",
                        restart.restart
                    ));
                }
            }
            if restart.at.get() < free {
                return wrong("it begins before the one above it is over; write them in order".to_owned());
            }
            free = restart.end();
            // How long a count takes is not known.
            if plan.about.is_none() && free >= plan.length {
                return wrong(format!(
                    "the run is over after {} s, before the server is there again; hold the clients for longer",
                    (plan.length.as_secs_f64() * 10.0).round() / 10.0
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with these restarts of a run of a minute that has started two servers.
    fn said(during: &str) -> Option<(usize, String)> {
        let text = format!(
            "before: [start: 'exec /usr/sbin/mosquitto -c a.conf', start: 'A=b nginx', start: 'nginx -c x']\n\
             during: {during}\nworkloads: [{{play: 'mqtt://h/t', duration: 60s, arrival: 1000000/s}}]"
        );
        let scenario = Scenario::parse(&text).unwrap();
        let error = scenario.check_during(&scenario.plan().unwrap()).err();
        error.map(|(position, error)| (position, error.to_string()))
    }

    #[test]
    fn a_restart_is_of_one_server_and_over_before_the_next_one_and_the_end() {
        assert_eq!(said("[{at: 10s, restart: mosquitto, down: 2s}, {at: 12s, restart: mosquitto}]"), None);
        let wrong = |during: &str, position: usize, words: &str| {
            let (at, said) = said(during).unwrap();
            assert!(at == position && said.contains(words), "{during}: {said}");
        };
        wrong("[{at: 10s, restart: mosquito}]", 0, "`during` at 10 s: no step `start` of `before` starts");
        wrong("[{at: 10s, restart: nginx}]", 0, "2 steps of `before` start 'nginx'");
        let early = "[{at: 10s, restart: mosquitto, down: 2s}, {at: 11s, restart: mosquitto}]";
        wrong(early, 1, "before the one above it is over");
        wrong("[{at: 50s, restart: mosquitto, down: 11s}]", 0, "the run is over after 60 s");
    }
}
