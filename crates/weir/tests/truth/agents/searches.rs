//! Searches and sweeps whose load is made by agents.

use crate::support::{
    BrowserTab, CHECKS_OF_THE_MACHINE, Crew, KilledOnDrop, Publishing, air, config, free_port, says, shared,
    soon, start_watched, weir,
};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::process::Stdio;

#[test]
fn a_server_that_plays_to_five_viewers_is_found_by_two_agents_to_carry_five() {
    let _machine = shared();
    let (crew, port) = (Crew::start(2), free_port());
    let mut command = weir();
    let fault = "reject phase=play beyond=5 words=the house is full";
    command.args(["origin", "--rtmp", &format!(":{port}"), "--fault", fault]).stdout(Stdio::null());
    let _origin = KilledOnDrop::start(&mut command);
    soon("the origin listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    let url = format!("rtmp://127.0.0.1:{port}/live/a");
    let _publishing = Publishing::start(&url, &[]);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").display().to_string();
    let mut words = vec![
        "capacity",
        &url,
        "--json",
        "-",
        "-o",
        &out,
        "--from",
        "5",
        "--most",
        "6",
        "--accept",
        CHECKS_OF_THE_MACHINE,
    ];
    words.extend(["--threshold", "failed.ratio == 0", "--threshold", "played.ratio >= 0%", "--slice", "1s"]);
    words.extend(["--hold", "1s", "--confirm", "1s", "--warmup", "0s", "--drain", "200ms"]);
    let agents = crew.words(2);
    words.extend(agents.iter().map(String::as_str));
    let said = says(words);
    let summary: Value =
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}", said.err));
    let answer = &summary["answer"];
    assert_eq!((said.code, &answer["evidence"]), (Some(0), &"found".into()), "{}", said.err);
    assert_eq!(
        (&answer["bounds"]["lower"], &answer["bounds"]["upper"]),
        (&5.into(), &6.into()),
        "{}",
        said.err
    );
    let trials = summary["trials"].as_array().unwrap().len();
    assert_eq!((crew.directories("a").len(), crew.directories("b").len()), (trials, trials));
    crew.wait(2);
}

/// The agents that the page names while a run goes on.
const AGENTS: &str = "[...document.querySelectorAll('#agents td:first-child')].map((it) => it.textContent)";
/// The trials that are over.
const TRIALS: &str = "[...new Set([...document.querySelectorAll('#live td')].map((it) => it.textContent)\
                      .filter((it) => it.startsWith('00')))]";
/// What stands above it.
const STATE: &str = "document.getElementById('live-state').textContent";

#[test]
fn the_page_of_a_search_shows_in_a_browser_its_trials_and_each_agent_of_the_one_that_goes_on() {
    let _machine = shared();
    let (crew, air) = (Crew::start(2), air(&config(&[])));
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").display().to_string();
    // A climb of a second for each of two loads, then a trial that goes on until it is interrupted.
    let trials = ["--from", "1", "--most", "2", "--slice", "1s", "--hold", "1s", "--confirm", "300s"];
    let asked = ["--threshold", "failed.ratio == 0", "--threshold", "played.ratio >= 0%"];
    let brief = ["--warmup", "0s", "--drain", "200ms", "--accept", CHECKS_OF_THE_MACHINE, "-o", &out];
    let agents = crew.words(2);
    let words = ["capacity", &air.url].into_iter().chain(trials).chain(asked).chain(brief);
    let searching = start_watched(words.chain(agents.iter().map(String::as_str)));
    let mut tab = BrowserTab::open(&searching.page, 1_280);
    let is_climb = |trials: &Value| *trials == json!(["001-climb"]);
    tab.shows("the trial that is over", TRIALS, is_climb);
    tab.shows("both agents of the one that goes on", AGENTS, |agents| *agents == json!(["a", "b"]));
    searching.process.interrupt();
    tab.shows("the end", STATE, |text| text.as_str().unwrap().starts_with("the runs were interrupted"));
    assert!(is_climb(&tab.evaluate(TRIALS)), "the page stays");
    assert_eq!(tab.troubles(), [] as [Value; 0]);
    let said = searching.said();
    assert_eq!(said.code, Some(105), "{}", said.err);
}

/// An origin for each run, started by the coordinator, which alone has the file that says where; agents load it.
const SWEPT: &str = "
name: swept
variants:
  few: {viewers: 2}
  many: {viewers: 4}
warmup: 0s
drain: 200ms
before:
  - start: exec WEIR origin --rtmp :PORT
  - wait: 127.0.0.1:PORT
  - run: echo {viewers} >> hooks
workloads:
  - publish: rtmp://127.0.0.1:PORT/live/a
    gop: 500ms
  - play: rtmp://127.0.0.1:PORT/live/a
    delay: 1s
    duration: 2s
    clients: '{viewers}'
thresholds: [failed.ratio == 0, played.ratio >= 0%, starved.ratio <= 100%]
";

#[test]
fn variants_are_run_by_two_agents_and_their_hooks_by_the_coordinator_alone() {
    let _machine = shared();
    let (crew, port) = (Crew::start(2), free_port());
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let text = SWEPT.replace("PORT", &port.to_string()).replace("WEIR", env!("CARGO_BIN_EXE_weir"));
    std::fs::write(at("s.yaml"), text).unwrap();
    let (file, out) = (at("s.yaml"), at("out"));
    let mut words = vec!["sweep", &file, "-o", &out, "--json", "-", "--accept", CHECKS_OF_THE_MACHINE];
    let agents = crew.words(2);
    words.extend(agents.iter().map(String::as_str));
    let said = says(words);
    let summary: Value =
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}", said.err));
    assert_eq!((said.code, &summary["ending"]), (Some(0), &"completed".into()), "{}", said.err);
    let mut hooks: Vec<_> =
        std::fs::read_to_string(at("hooks")).unwrap().lines().map(str::to_owned).collect();
    hooks.sort();
    assert_eq!(hooks, ["2", "4"], "once a run");
    for cell in summary["runs"].as_array().unwrap() {
        let own = folder.path().join("out").join(cell["directory"].as_str().unwrap()).join("summary.json");
        let run: Value = serde_json::from_slice(&std::fs::read(own).unwrap()).unwrap();
        let planned = run["workloads"][1]["slots"]["planned"].as_u64().unwrap();
        let viewers = if run["run"]["tags"]["variant"] == "few" { 2 } else { 4 };
        assert_eq!((planned, run["run"]["agents"].as_array().unwrap().len()), (viewers, 2));
    }
    // What an agent was sent names no hook.
    for directory in crew.directories("a").into_iter().chain(crew.directories("b")) {
        let head: Value =
            serde_json::from_slice(&std::fs::read(directory.join("run.json")).unwrap()).unwrap();
        assert!(!head["scenario"].to_string().contains("echo"), "{head:#}");
    }
    crew.wait(2);
}
