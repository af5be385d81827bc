//! A generator that has too little CPU says so, and its run does not count.

use crate::support::{Air, Kept, Run, air, alone, config, program, start_measuring, weir};
use weir_origin::Origin;

/// A core with so many others on it that weir gets a small share.
struct Crowded {
    core: String,
    _others: Vec<Kept>,
}

impl Crowded {
    fn new() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
        let core = allowed.trim().split([',', '-']).next().unwrap().to_owned();
        let spin = || {
            let mut command = program("taskset", "util-linux");
            Kept::start(command.args(["-c", &core, "sh", "-c", "while :; do :; done"]))
        };
        let others = (0..32).map(|_| spin()).collect();
        Self { core, _others: others }
    }

    fn measure(&self, arguments: &[&str]) -> Run {
        let mut command = program("taskset", "util-linux");
        command.args(["-c", &self.core]).arg(weir().get_program()).args(arguments);
        start_measuring(&mut command).finish()
    }
}

#[test]
fn publishers_without_cpu_send_late_and_the_run_is_invalid() {
    let _machine = alone();
    let origin = Origin::start(&config(&[])).unwrap();
    let url = format!("rtmp://{}/live/s{{i}}", origin.addresses().rtmp.unwrap());
    let crowded = Crowded::new();
    let run = crowded.measure(&[
        "publish",
        &url,
        "--streams",
        "30",
        "-c",
        "30",
        "-d",
        "4s",
        "--warmup",
        "1s",
        "--drain",
        "200ms",
    ]);
    assert_invalid(&run, "send_lag", "ms late");
}

#[test]
fn viewers_without_cpu_saturate_their_thread_and_the_run_is_invalid() {
    let _machine = alone();
    let air: Air = air(&config(&[]));
    let crowded = Crowded::new();
    let run = crowded.measure(&[
        "play",
        &air.url,
        "-c",
        "1000",
        "--arrival",
        "1000/s",
        "-d",
        "6s",
        "--warmup",
        "1s",
        "--drain",
        "200ms",
        "--witness-every",
        "1",
    ]);
    assert_invalid(&run, "generator_thread", "ran or waited for a CPU");
}

fn assert_invalid(run: &Run, check: &str, words: &str) {
    let verdict = &run.summary["verdict"];
    assert_eq!((run.code, &verdict["state"]), (98, &"invalid".into()), "{verdict:#}");
    assert!(run.invalid_checks().contains(&check.to_owned()), "{verdict:#}");
    let reasons = verdict["reasons"].as_array().unwrap();
    let reason = reasons.iter().find(|reason| reason["check"] == check).unwrap();
    assert!(reason["measured"].as_f64() >= reason["limit"].as_f64(), "{reason:#}");
    let text = reason["text"].as_str().unwrap();
    assert!(text.contains(words) && text.contains(|c: char| c.is_ascii_digit()), "a figure: {text}");
    let remedy = reason["remedy"].as_str().unwrap();
    assert!(remedy.contains("cores"), "a remedy: {remedy}");
    // A person reads the same on the page.
    let page = std::fs::read_to_string(run.directory().join("report.txt")).unwrap();
    let flat = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("invalid") && flat.contains(words), "{page}");
    let start: String = remedy.split_whitespace().take(4).collect::<Vec<_>>().join(" ");
    assert!(flat.contains(&start), "{start} is not in {page}");
}
