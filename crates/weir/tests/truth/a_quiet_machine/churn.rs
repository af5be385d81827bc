//! What viewers that follow each other get of a server, and what it keeps of each of them.

use crate::churn::{Server, check, publish};
use crate::support::{Run, measure, play, quiet, undisturbed};

/// A viewer of 3 s gets as much as 2 s of media at once where the server keeps a group of pictures; where it keeps none, it waits
/// for a keyframe while sound comes. There keyframes are near to each other: who leaves before one comes is expected for all of
/// its time.
#[test]
fn viewers_that_follow_each_other_get_what_is_expected_of_a_server_with_a_cache_and_of_one_without() {
    let _machine = quiet();
    undisturbed(|| {
        for (cache, gop) in [(&[][..], "2s"), (&["--no-gop-cache"], "500ms")] {
            let server = Server::start(&[&["--rtmp", ":0", "--merge", "0s"], cache].concat(), 1);
            let url = server.url("rtmp", "/live/a");
            let _publisher = publish(&url, &["--gop", gop, "--bitrate", "200kbps"]);
            // The first viewers may come before the stream; those of the window do not.
            let run = play(&url, "-c 20 --arrival 7/s --life exp:3s -d 12s --warmup 3s --seed 3");
            assert!(run.failures().is_empty(), "{:?}", run.failures());
            let [actual, expected] =
                ["actual_bps", "expected_bps"].map(|key| run.stage(0)[key].as_f64().unwrap());
            let ratio = actual / expected;
            assert!((0.85..=1.15).contains(&ratio), "{cache:?}: {ratio}, {:#}", run.stage(0));
        }
    });
}

/// Short-lived viewers of a server that keeps `leak` bytes of each, if it does.
fn short_lived_viewers(leak: Option<u32>) -> (Run, serde_json::Value) {
    // A link's deadlines are kept until their time, whether it is there or not: with these they are few.
    let mut arguments =
        vec!["--rtmp", ":0", "--merge", "0s", "--idle-timeout", "5s", "--request-timeout", "5s"];
    let fault = leak.map(|bytes| format!("leak bytes={bytes} each=viewer"));
    arguments.extend(fault.iter().flat_map(|fault| ["--fault", fault]));
    let server = Server::start(&arguments, 1);
    let url = server.url("rtmp", "/live/a");
    let _publisher = publish(&url, &["--gop", "200ms", "--bitrate", "150kbps", "--fps", "10"]);
    let watch = format!("pid={}", server.process.pid());
    let flags = "-c 40 --life exp:200ms --arrival 150/s --warmup 1s -d 50s";
    let asked = ["--watch", &watch, "--threshold", "server.memory.per_client_bytes < 1000B"];
    let run = measure(["play", &url].into_iter().chain(flags.split(' ')).chain(asked));
    let growth = run.summary["growth"][0].clone();
    (run, growth)
}

fn slope(growth: &serde_json::Value) -> [f64; 3] {
    ["mean", "low", "high"].map(|key| growth["memory"]["per_client"][key].as_f64().unwrap())
}

#[test]
fn what_a_server_keeps_of_each_viewer_is_found_and_nothing_where_it_keeps_nothing() {
    let _machine = quiet();
    undisturbed(|| {
        let [large, small, none] = std::thread::scope(|scope| {
            let runs =
                [Some(16_384), Some(2_048), None].map(|leak| scope.spawn(move || short_lived_viewers(leak)));
            runs.map(|run| run.join().unwrap())
        });
        for (run, _) in [&large, &small, &none] {
            check(run, 40);
        }
        for ((run, growth), bytes) in [(&large, 16_384.0), (&small, 2_048.0)] {
            let [mean, low, high] = slope(growth);
            assert!(growth["clients"].as_u64().unwrap() > 2_000, "{growth:#}");
            // Of a client that leaves before it asks for the stream nothing is kept; one that played has asked.
            let least = bytes * 0.9 * run.total("played") / run.well() as f64;
            // An interval that is as wide as a neighbour's work makes it, and covers what is so within ten percent.
            assert!(low > 0.0 && low <= bytes * 1.1 && high >= least, "{bytes}: {growth:#}");
            assert_eq!(growth["memory"]["finding"], "grows", "{growth:#}");
            let asked = &run.summary["thresholds"][0];
            assert_eq!(
                (asked["passed"].as_bool(), asked["value"].as_f64()),
                (Some(false), Some(high)),
                "{asked:#}"
            );
            let left = growth["residue"]["memory_bytes"].as_f64().unwrap();
            assert!(
                left >= growth["residue"]["clients"].as_f64().unwrap() * least,
                "what it leaks stays: {growth:#}"
            );
            // Beside a leak of sixteen kilobytes a page more or less is nothing.
            assert!(bytes < 10_000.0 || (least..=bytes * 1.1).contains(&mean), "{growth:#}");
        }
        let (run, growth) = &none;
        let [_, low, high] = slope(growth);
        // What an allocator scatters is far below the smallest leak that is looked for.
        assert!(low < 200.0 && high < 1_000.0, "{growth:#}");
        assert_eq!(run.summary["thresholds"][0]["passed"], true, "{:#}", run.summary["thresholds"]);
        let descriptors = &growth["descriptors"]["per_client"]["high"];
        assert!(descriptors.as_f64().unwrap() < 0.05, "{growth:#}");
    });
}
