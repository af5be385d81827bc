//! A shared subscription whose members are at several agents.

use crate::support::{Crew, Mosquitto, measure, says, shared, start_measuring, weir};

#[test]
fn what_members_at_another_agent_got_is_not_lost() {
    let _machine = shared();
    let (crew, broker) = (Crew::start(2), Mosquitto::start());
    let (topic, filter) = (broker.url("s/{client}"), broker.url("$share/g/s/#"));
    let publish = ["publish", &*topic, "-q", "1", "-c", "2", "--rate", "100/s", "-d", "20s"];
    let publishing = start_measuring(weir().args(publish));
    let play = ["play", &*filter, "-q", "1", "-c", "4", "-d", "4s", "--retry-connect"];
    let run = measure(play.into_iter().map(str::to_owned).chain(crew.words(2)));
    drop(publishing);
    assert_eq!((run.code, run.total("lost"), run.total("open_ends")), (0, 0.0, 0.0), "{}", run.err);
    assert!(run.total("units") > 100.0, "{}", run.err);
    let thresholds = run.summary["thresholds"].as_array().unwrap();
    assert!(thresholds.iter().all(|it| it["expression"] != "lost == 0"), "{thresholds:?}");
    let asked = play.into_iter().chain(["--threshold", "lost == 0"]).map(str::to_owned);
    let refused = says(asked.chain(crew.words(2)));
    assert!(
        refused.code == Some(2) && refused.err.contains("is not known with several agents"),
        "{}",
        refused.err
    );
}
