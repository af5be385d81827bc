//! Publishers that stop and come back: how long viewers are without frames is known of the plan.

use crate::support::{Nginx, Run, config, measure, origin_process, quiet, undisturbed};
use weir_origin::{ANY_PORT, Origin, RTC};

/// A publisher that is away for two seconds of every six, and four viewers of it by `play`, all of them witnesses.
fn comes_back(url: &str, play: &str) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.yaml");
    // Servers end an RTMP viewer's stream, and those of other protocols do not.
    let grace = if play.starts_with("rtmp") { ", end_grace: 20s" } else { "" };
    let text = format!(
        "warmup: 0s
drain: 500ms
workloads:
  - {{publish: '{url}', republish: 'every:6s,pause:2s', gop: 1s}}
  - {{play: '{play}', clients: 4, delay: 1s, duration: 15s, timeout: 20s{grace}}}
"
    );
    std::fs::write(&file, text).unwrap();
    measure(["run", file.to_str().unwrap()])
}

/// Two seconds are planned; how long beyond them depends on the server and on the machine.
fn check(run: &Run) {
    assert!(run.failures().is_empty(), "{:#}", run.summary["workloads"]);
    let [publisher, viewers] = [0, 1].map(|at| &run.workloads()[at]);
    assert_eq!(publisher["turnover"]["pause_seconds"], 2.0);
    // It comes at 0 s, 6 s and 12 s, and stays at the third time.
    assert_eq!(publisher["turnover"]["started"], 3, "{publisher:#}");
    let recovery = &viewers["total"]["recovery"];
    let value = |key: &str| recovery[key].as_f64().unwrap_or_else(|| panic!("{recovery:#}"));
    // Four viewers, twice. A machine that stands still for half a second makes more, and shorter ones; the last frame before a
    // pause may have come late.
    assert!(value("count") >= 8.0 && value("p90") >= 1.8 && value("max") < 12.0, "{recovery:#}");
}

/// What was not published is not missing.
fn check_thresholds(run: &Run) {
    let failed: Vec<_> =
        run.summary["thresholds"].as_array().unwrap().iter().filter(|it| it["passed"] == false).collect();
    assert!(failed.is_empty(), "what was not published is not missing: {failed:#?}");
}

#[test]
fn viewers_of_the_origin_are_without_frames_for_as_long_as_the_publisher_is_away() {
    let _machine = quiet();
    undisturbed(|| {
        let (_server, address) = origin_process(&["--merge", "0s"]);
        let url = format!("{address}/live/a");
        let run = comes_back(&url, &url);
        check(&run);
        check_thresholds(&run);
    });
}

#[test]
fn viewers_by_webrtc_are_as_well() {
    let _machine = quiet();
    undisturbed(|| {
        let origin = Origin::start(&config(&[]).listening(&RTC, ANY_PORT)).unwrap();
        let (rtmp, rtc) = (origin.address("rtmp").unwrap(), origin.address("rtc").unwrap());
        for play in [format!("whep+http://{rtc}/live/a"), format!("ws://{rtc}/live/a")] {
            check(&comes_back(&format!("rtmp://{rtmp}/live/a"), &play));
        }
    });
}

#[test]
fn viewers_of_nginx_are_too() {
    let _machine = quiet();
    undisturbed(|| {
        let nginx = Nginx::start();
        let url = nginx.url("a");
        let run = comes_back(&url, &url);
        check(&run);
        check_thresholds(&run);
    });
}
