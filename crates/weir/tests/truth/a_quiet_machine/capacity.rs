//! What a server carries whose viewers cost CPU.

use crate::support::{CHECKS_OF_THE_MACHINE, Publishing, alone, origin_process, says, undisturbed};
use serde_json::Value;

#[test]
fn an_origin_whose_viewers_cost_a_fortieth_of_a_core_carries_no_more_than_its_core_allows() {
    let _machine = alone();
    undisturbed(|| {
        // One worker has one core: forty viewers at 25 ms a second, what it sends them included.
        let flags = ["--workers", "1", "--merge", "0s", "--fault", "burn 25ms each=viewer"];
        let (server, address) = origin_process(&flags);
        let url = format!("{address}/live/a");
        let _publishing = Publishing::start(&url, &["--bitrate", "200kbps", "--gop", "1s"]);
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out").display().to_string();
        let watch = format!("pid={}", server.pid());
        let mut asked = vec!["capacity", &url, "--from", "52", "--watch", &watch, "--json", "-", "-o", &out];
        asked.extend([
            "--threshold",
            "bitrate.ratio >= 90%",
            "--slice",
            "2s",
            "--hold",
            "4s",
            "--confirm",
            "4s",
        ]);
        asked.extend([
            "--warmup",
            "1s",
            "--drain",
            "200ms",
            "--budget",
            "60s",
            "--accept",
            CHECKS_OF_THE_MACHINE,
        ]);
        let said = says(&asked);
        assert_eq!(said.code, Some(0), "{}", said.err);
        let summary: Value = serde_json::from_str(&said.out).unwrap();
        // A neighbour takes of what the core allows, and nobody adds to it: of 50 each gets 80 %. A slice of two seconds may hold
        // a few percent more or less.
        let trials = summary["trials"].as_array().unwrap().iter();
        let loads: Vec<_> = trials.flat_map(|it| it["loads"].as_array().unwrap()).collect();
        for load in loads.iter().filter(|load| load["load"].as_u64().unwrap() > 50) {
            assert_eq!(load["verdict"], "fail", "{load:#}");
        }
        let upper = summary["answer"]["bounds"]["upper"].as_u64();
        assert!(upper.is_some_and(|upper| upper <= 52), "{}", said.err);
        // On a busy machine fewer are carried, and the search may run out of time.
        let lower = &summary["answer"]["bounds"]["lower"];
        assert!(lower.as_u64().is_none_or(|lower| lower <= 50), "{}", said.err);
    });
}
