//! A server that the machine which leads the run restarts, under the load of agents.

use crate::restarts::restarted;
use crate::support::{Crew, shared};

#[test]
fn the_clients_of_all_agents_come_back_and_the_time_is_that_of_the_last_of_them() {
    let _machine = shared();
    let crew = Crew::start(2);
    let thresholds = "restart.reconnected < 11s, restart.reconnected >= 1500ms, failed.ratio == 0";
    let run = restarted("[{at: 3s, restart: mosquitto, down: 1500ms}]", "", thresholds, &crew.words(2));
    assert_eq!((run.code, &run.summary["outcome"]), (0, &"completed".into()), "{}", run.err);
    assert_eq!(run.summary["run"]["agents"].as_array().map(Vec::len), Some(2));
    let restart = &run.summary["restarts"][0];
    assert!(restart["cut_off"].as_u64() >= Some(23), "each client lost its link: {restart}");
    assert_eq!(restart["away"], 0, "{restart}");
    let seconds = |key: &str| restart[key].as_f64().unwrap_or_else(|| panic!("{key}: {restart}"));
    assert!(seconds("reconnected_seconds") > seconds("down_seconds"), "{restart}");
}
