//! What a server carries whose viewers cost CPU.

use crate::support::{CHECKS_OF_THE_MACHINE, Publishing, alone, origin_process, says, undisturbed};
use serde_json::Value;
use std::net::UdpSocket;

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

#[test]
fn a_listener_of_srt_carries_what_its_one_thread_allows_and_that_thread_is_named() {
    let _machine = alone();
    undisturbed(|| {
        // All connections of a port are on one thread, as those of libsrt are: twenty publishers at 50 ms a second.
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let srt = format!("127.0.0.1:{port}");
        let flags = ["--srt", &srt, "--workers", "1", "--merge", "0s", "--fault", "burn 50ms each=publisher"];
        let (server, _) = origin_process(&flags);
        let url = format!("srt://{srt}?streamid=#!::r=live/s{{i}},m=publish");
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out").display().to_string();
        let watch = format!("pid={}", server.pid());
        let flags = "--of publishers --from 10 --most 80 --slice 2s --hold 6s --confirm 6s --warmup 1s --drain 200ms --budget 60s --json -";
        let mut asked =
            vec!["capacity", &url, "--watch", &watch, "-o", &out, "--accept", CHECKS_OF_THE_MACHINE];
        asked.extend(flags.split(' '));
        let said = says(&asked);
        assert_eq!(said.code, Some(0), "{}", said.err);
        let summary: Value = serde_json::from_str(&said.out).unwrap();
        // Half of the core carries ten, and four cores would be needed for eighty. Somewhat more than twenty are carried for six
        // seconds, since what is acknowledged late still arrives.
        let [lower, upper] = ["lower", "upper"].map(|bound| summary["answer"]["bounds"][bound].as_u64());
        assert!(lower.is_some_and(|it| it >= 10) && upper.is_some_and(|it| it <= 80), "{}", said.err);
        let told = says(["report", &out]).out;
        assert!(told.contains("thread weir-origin-"), "{told}");
    });
}
