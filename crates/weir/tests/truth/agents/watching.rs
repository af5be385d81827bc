//! Agents that watch the target on its own machine: what they read is in the run as if the coordinator had read it.

use super::agents_of;
use crate::support::{
    CHECKS_OF_THE_MACHINE, Crew, KilledOnDrop, Publishing, Run, measure, origin_process, report, says,
    shared, soon, start_measuring, weir,
};
use serde_json::{Value, json};

/// An origin that burns 300 ms of each second on a thread of its own, and the URL of a stream on it.
fn burning() -> (KilledOnDrop, String) {
    let (server, address) = origin_process(&["--fault", "burn 300ms thread=busy"]);
    (server, format!("{address}/live/a"))
}

fn targets(run: &Run) -> &[Value] {
    run.stage(0)["targets"].as_array().unwrap()
}

#[test]
fn an_agent_with_another_clock_reads_of_a_server_what_its_own_machine_reads() {
    let _machine = shared();
    let (server, url) = burning();
    let _publishing = Publishing::start(&url, &["--gop", "500ms"]);
    let watch = format!("pid={}", server.pid());
    let mut crew = Crew::start(1);
    crew.add_in(&["unshare", "--time", "--monotonic", "3600"], "w", &["--watch", &watch]);
    crew.wait(2);
    assert!(crew.list().contains(&watch), "{}", crew.list());
    let mut words = vec!["play", &url, "-c", "2", "-d", "8s", "--warmup", "1s", "--drain", "200ms"];
    words.extend([
        "--timeout",
        "30s",
        "--threshold",
        "thread.busy.cpu > 1%",
        "--threshold",
        "server.memory.max < 10GB",
    ]);
    words.extend(["--threshold", "server.descriptors < 1000"]);
    let agents = crew.words(1);
    words.extend(agents.iter().map(String::as_str));
    // The coordinator is on the server's machine here, and reads the same process.
    let both = measure(words.iter().copied().chain(["--watch", &watch]));
    assert_eq!(agents_of(&both), ["a"]);
    let [own, of_agent] = targets(&both) else { panic!("{:#}", both.stage(0)) };
    let number = |target: &Value, key: &str| target[key].as_f64().unwrap();
    assert!(number(own, "cpu_percent") > 5.0);
    // The two windows lie half a second apart, and other tests take the CPU now and then.
    for key in ["cpu_percent", "rss_mean_bytes", "descriptors_max"] {
        let (own, of_agent) = (number(own, key), number(of_agent, key));
        assert!((own - of_agent).abs() <= 0.35 * own, "{key}: {own} and {of_agent}");
    }
    let busiest = |target: &Value| target["threads"][0]["name"].clone();
    assert_eq!((busiest(own), busiest(of_agent)), ("busy".into(), "busy".into()));
    let described = both.summary["run"]["targets"].as_array().unwrap();
    assert_eq!((&described[1]["pid"], &described[1]["agent"]), (&server.pid().into(), &"w".into()));
    let arguments = |number: usize| described[number]["command_line"].as_array().unwrap();
    assert!(
        arguments(0).len() > 4 && *arguments(1) == arguments(0)[..1],
        "arguments stay on the server's machine"
    );
    let thresholds = both.summary["thresholds"].as_array().unwrap();
    assert!(thresholds.iter().all(|it| it["passed"] == true), "{thresholds:#?}");
    // With nothing watched by the coordinator it is the agent's processes that thresholds are about.
    crew.wait(2);
    let run = measure(words);
    assert_eq!((run.code, targets(&run).len()), (0, 1), "{}", run.err);
    assert_eq!(report(run.directory()).stage(0)["targets"], run.stage(0)["targets"]);
}

#[test]
fn a_threshold_on_processes_that_nobody_watches_is_refused_and_so_is_a_server_that_is_not_there() {
    let mut crew = Crew::start(1);
    let agents = crew.words(1);
    let said = || {
        let words = ["play", "rtmp://127.0.0.1:9/live/a", "--threshold", "server.cpu < 90%"];
        says(words.into_iter().chain(agents.iter().map(String::as_str)))
    };
    let refused = said();
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(
        refused.err.contains("no process is watched") && refused.err.contains("weir agent --join"),
        "{}",
        refused.err
    );
    crew.wait(1);
    crew.add("w", &["--watch", "name=nobody-has-this"]);
    crew.wait(2);
    let refused = said();
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(refused.err.contains("agent w: ") && refused.err.contains("nobody-has-this"), "{}", refused.err);
    crew.wait(2);
}

#[test]
fn a_run_goes_on_when_agents_that_watch_are_gone_and_the_one_that_is_left_does_not_answer_for_the_other() {
    let _machine = shared();
    let (server, url) = burning();
    let mut crew = Crew::start(1);
    let watch = format!("pid={}", server.pid());
    crew.add("v", &["--watch", &watch]);
    crew.add("w", &["--watch", &watch]);
    crew.wait(3);
    let mut command = weir();
    command.args([
        "play",
        &url,
        "-c",
        "2",
        "-d",
        "60s",
        "--warmup",
        "0s",
        "--drain",
        "200ms",
        "--timeout",
        "50s",
    ]);
    command.args(["--threshold", "server.cpu < 1000%"]);
    let measuring = start_measuring(command.args(crew.words(1)).args(["--accept", CHECKS_OF_THE_MACHINE]));
    let text = || std::fs::read_to_string(measuring.directory().join("observe.ndjson")).unwrap_or_default();
    soon("it is read", || text().lines().count() > 2);
    crew.agents[2].kill();
    // Targets are in the order of the agents' names. A line may be half written.
    let silent = |line: &str, target: usize| {
        let sample: Value = serde_json::from_str(line).ok()?;
        let read = sample["targets"][target]["elsewhere"]["at_ns"].as_u64()?;
        Some(sample["at_ns"].as_u64()?.saturating_sub(read))
    };
    let is_silent = |target: usize| {
        text().lines().filter_map(|line| silent(line, target)).any(|silent| silent > 6_000_000_000)
    };
    soon("w is silent for long", || is_silent(1));
    let half = says(["report", measuring.directory().to_str().unwrap(), "--json", "-"]);
    let half: Value = serde_json::from_str(&half.out).unwrap_or_else(|error| panic!("{error}: {}", half.err));
    let stage = &half["workloads"][0]["stages"][0];
    assert_eq!(
        (stage["targets"].as_array().unwrap().len(), &stage["unheard"]),
        (1, &json!([watch])),
        "{stage:#}"
    );
    // Half of what the server's processes used is unknown, and nobody knows whether they would have passed.
    assert_eq!(half["thresholds"][0]["passed"], false);
    crew.agents[1].kill();
    soon("v is silent for long", || is_silent(0));
    measuring.process.interrupt();
    let run = measuring.finish();
    assert_eq!(run.code, 105, "{}", run.err);
    let warnings = run.summary["warnings"].to_string();
    for name in ["v", "w"] {
        let words = format!("agent {name}, which watched the target, is not there any more");
        assert!(warnings.contains(&words), "{warnings}");
    }
    // What was read before is not a figure of the window.
    assert_eq!((targets(&run), &run.stage(0)["unheard"]), (&[] as &[Value], &json!([watch, watch])));
    let threshold = &run.summary["thresholds"][0];
    assert_eq!((&threshold["passed"], &threshold["value"]), (&false.into(), &Value::Null), "{threshold:#}");
    crew.wait(1);
}
