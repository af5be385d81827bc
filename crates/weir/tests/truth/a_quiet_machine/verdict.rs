//! A generator that has too little CPU says so, and its run does not count.

use crate::support::webrtc::{count, on_air, whep};
use crate::support::{
    Air, KilledOnDrop, Mosquitto, Run, air, alone, config, program, quiet, start_measuring, undisturbed, weir,
};
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::{Duration, Instant};
use weir_origin::Origin;

/// A core with enough other processes on it that weir gets a small share.
struct Crowded {
    core: String,
    _others: Vec<KilledOnDrop>,
}

impl Crowded {
    fn new() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
        let core = allowed.trim().split([',', '-']).next().unwrap().to_owned();
        let spin = || {
            let mut command = program("taskset", "util-linux");
            KilledOnDrop::start(command.args(["-c", &core, "sh", "-c", "while :; do :; done"]))
        };
        let others = (0..44).map(|_| spin()).collect();
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
    let url = format!("rtmp://{}/live/s{{i}}", origin.address("rtmp").unwrap());
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

#[test]
fn a_generator_that_was_stopped_for_a_while_does_not_blame_the_server() {
    let _machine = quiet();
    undisturbed(|| {
        let air = on_air(&[]);
        let mut command = weir();
        command.args(["play", &whep(&air), "-c", "12", "-d", "8s", "--warmup", "2s", "--drain", "200ms"]);
        let measuring = start_measuring(&mut command);
        std::thread::sleep(Duration::from_secs(5));
        let pid = Pid::from_child(&measuring.process.0);
        kill_process(pid, Signal::STOP).unwrap();
        std::thread::sleep(Duration::from_millis(2_200));
        kill_process(pid, Signal::CONT).unwrap();
        let run = measuring.finish();
        assert_invalid(&run, "generator_pause", "weir was not scheduled for up to ");
        // The kernel has kept what came meanwhile, and when it came.
        let figures = ["stalls", "rtc.freezes", "rtc.silent_seconds", "lost"];
        assert_eq!(figures.map(|figure| count(&run, figure)), [0; 4]);
    });
}

/// Stopped five times for 0.9 s, each time too short to look like a failure.
#[test]
fn a_subscriber_that_stood_still_does_not_show_its_own_delay_as_the_brokers() {
    let _machine = quiet();
    undisturbed(|| {
        let broker = Mosquitto::start();
        let url = broker.url("still/a");
        let mut publisher = weir();
        let parent = tempfile::tempdir().unwrap();
        publisher.args(["publish", &url, "--rate", "100/s", "-d", "60s", "-q", "0", "--no-tui", "-o"]);
        let _publisher = KilledOnDrop::start(
            publisher.arg(parent.path().join("publish")).stdout(Stdio::null()).stderr(Stdio::null()),
        );
        let mut command = weir();
        command.args(["play", &url, "-d", "12s", "--warmup", "1s", "--drain", "200ms"]);
        let measuring = start_measuring(&mut command);
        std::thread::sleep(Duration::from_secs(3));
        let pid = Pid::from_child(&measuring.process.0);
        for _ in 0..5 {
            kill_process(pid, Signal::STOP).unwrap();
            std::thread::sleep(Duration::from_millis(900));
            kill_process(pid, Signal::CONT).unwrap();
            std::thread::sleep(Duration::from_millis(600));
        }
        let run = measuring.finish();
        let latency = run.stage(0)["figures"]["latency"]["p99"].as_f64().unwrap();
        assert!(latency > 0.5, "its own delay is in what it shows: {latency}");
        assert_invalid(&run, "generator_pause", "weir was not scheduled for up to ");
    });
}

/// Loops of no other use, four for each CPU.
fn neighbours() -> Vec<KilledOnDrop> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let spin = |_| {
        let mut command = program("sh", "dash");
        KilledOnDrop::start(command.arg0("noisy-neighbour").args(["-c", "while :; do :; done"]))
    };
    (0..4 * cpus).map(spin).collect()
}

#[test]
fn a_machine_that_is_full_of_others_work_degrades_the_run_and_the_busiest_of_them_is_named() {
    let _machine = alone();
    let air: Air = air(&config(&[]));
    let (began, neighbours) = (Instant::now(), neighbours());
    let mut command = weir();
    command.args(["play", &air.url, "-c", "2", "-d", "6s", "--warmup", "1s", "--drain", "200ms"]);
    let run = start_measuring(&mut command).finish();
    let verdict = &run.summary["verdict"];
    // Where weir was late for them, too, the run is invalid.
    assert!(["degraded", "invalid"].contains(&verdict["state"].as_str().unwrap()), "{verdict:#}");
    let reasons = verdict["reasons"].as_array().unwrap();
    let reason = reasons.iter().find(|reason| reason["check"] == "host_busy");
    let text = reason.unwrap_or_else(|| panic!("{verdict:#}"))["text"].as_str().unwrap();
    let (pid, percent) =
        text.split_once(", pid ").unwrap().1.split_once(" %)").unwrap().0.split_once(", ").unwrap();
    let (pid, percent): (u32, f64) = (pid.parse().unwrap(), percent.parse().unwrap());
    // A build beside the test may be busier, and is named then; what is named is no less busy than the loops were.
    let ours = 100.0 * neighbours.iter().map(cpu_seconds).sum::<f64>() / began.elapsed().as_secs_f64();
    assert!(percent >= ours / 2.0, "{text}; the loops used {ours:.0} %");
    let is_ours = neighbours.iter().any(|it| it.pid() == pid);
    assert_eq!(text.contains("(noisy-neighbour ×"), is_ours, "{text}");
}

/// CPU time that a process has used (proc_pid_stat(5), `utime` and `stime`).
fn cpu_seconds(process: &KilledOnDrop) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.pid())).unwrap();
    let fields: Vec<_> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks = [11, 12].map(|field: usize| fields[field].parse::<f64>().unwrap());
    ticks.iter().sum::<f64>() / rustix::param::clock_ticks_per_second() as f64
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
