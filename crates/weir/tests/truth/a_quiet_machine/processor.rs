//! The CPU of a server and of one of its threads.

use crate::support::{KilledOnDrop, Run, measure, origin_process, play, quiet, soon, undisturbed};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Seconds of CPU of the process and of its thread `busy`, at a moment of the monotonic clock.
#[derive(Clone, Copy, Debug)]
struct Reading {
    at: f64,
    process: f64,
    busy: f64,
}

/// An origin that burns 300 ms of each second on a thread of its own, and its address.
fn burning() -> (KilledOnDrop, String) {
    let (server, address) = origin_process(&["--fault", "burn 300ms thread=busy"]);
    soon("the thread has its name", || named_busy(server.pid()).is_some());
    (server, address)
}

/// What `/proc` says of a process and of its thread `busy` over the window of a run, in percent of one core.
struct Used {
    process: f64,
    busy: f64,
}

/// Reads `/proc` beside a run.
fn beside(pid: u32, run: impl FnOnce() -> Run) -> (Run, Used) {
    let ended = AtomicBool::new(false);
    let (run, readings) = std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let mut readings = Vec::new();
            while !ended.load(Ordering::Relaxed) {
                readings.push(read(pid));
                std::thread::sleep(Duration::from_millis(50));
            }
            readings
        });
        let run = run();
        ended.store(true, Ordering::Relaxed);
        (run, reading.join().unwrap())
    });
    // The window, on the clock that both share.
    let head: serde_json::Value =
        serde_json::from_slice(&std::fs::read(run.directory().join("run.json")).unwrap()).unwrap();
    let origin = head["origin_ns"].as_f64().unwrap() * 1e-9;
    let edge = |key: &str| origin + run.stage(0)[key].as_f64().unwrap();
    let nearest = |at: f64| {
        let distance = |reading: &&Reading| ((reading.at - at).abs() * 1e6) as u64;
        *readings.iter().min_by_key(distance).unwrap()
    };
    let (begin, end) = (nearest(edge("window_begin_seconds")), nearest(edge("window_end_seconds")));
    let passed = end.at - begin.at;
    assert!(passed >= 6.0, "{begin:?} to {end:?}");
    let percent = |used: f64| 100.0 * used / passed;
    let used = Used { process: percent(end.process - begin.process), busy: percent(end.busy - begin.busy) };
    (run, used)
}

#[test]
fn a_server_that_burns_and_its_thread_are_reported_within_three_points() {
    let _machine = quiet();
    undisturbed(|| {
        let (server, address) = burning();
        let (run, Used { process, busy }) = beside(server.pid(), || {
            let flags = "-c 2 -d 9s --warmup 1s --drain 200ms --timeout 30s --watch";
            play(&format!("{address}/live/nobody"), &format!("{flags} pid={}", server.pid()))
        });
        let target = &run.stage(0)["targets"][0];
        let reported = target["cpu_percent"].as_f64().unwrap();
        assert!(
            (reported - process).abs() <= 3.0,
            "reported {reported} %, /proc says {process} %: {target:#}"
        );
        let threads = target["threads"].as_array().unwrap();
        let thread = threads.iter().find(|thread| thread["name"] == "busy").expect("the thread is named");
        let reported = thread["cpu_percent"].as_f64().unwrap();
        assert!((reported - busy).abs() <= 3.0, "reported {reported} %, /proc says {busy} %: {target:#}");
        assert_eq!(threads[0]["name"], "busy", "the busiest comes first");
    });
}

#[test]
fn thresholds_on_the_servers_cpu_are_judged_on_what_it_burnt() {
    let _machine = quiet();
    undisturbed(|| {
        let (server, address) = burning();
        let asked =
            ["server.cpu < 1%", "server.cpu < 400%", "thread.busy.cpu < 1%", "server.busiest_thread < 400%"];
        let (run, Used { process, busy }) = beside(server.pid(), || {
            let watch = format!("pid={}", server.pid());
            let url = format!("{address}/live/a");
            let flags = ["-d", "9s", "--warmup", "1s", "--bitrate", "100kbps", "--watch", &watch];
            let thresholds = asked.iter().flat_map(|it| ["--threshold", it]);
            measure(["publish", &url].into_iter().chain(flags).chain(thresholds))
        });
        let known = [process, process, busy, busy];
        for ((asked, known), fails) in asked.iter().zip(known).zip([true, false, true, false]) {
            let judged = run.summary["thresholds"].as_array().unwrap();
            let judged = judged.iter().find(|it| it["expression"] == *asked).unwrap();
            let value = judged["value"].as_f64().unwrap() * 100.0;
            assert!((value - known).abs() <= 3.0, "{asked}: {value} %, /proc says {known} %");
            assert_eq!(judged["passed"], !fails, "{judged:#}");
            assert_eq!(judged["place"]["stage"], 0, "{judged:#}");
        }
    });
}

fn read(pid: u32) -> Reading {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = |path: String| {
        let stat = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        // Fields 14 and 15 of proc(5); the name in brackets may hold spaces.
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum();
        ticks as f64 / rustix::param::clock_ticks_per_second() as f64
    };
    let busy = named_busy(pid).expect("there is a thread named busy");
    Reading {
        at: now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9,
        process: seconds(format!("/proc/{pid}/stat")),
        busy: seconds(busy.join("stat").display().to_string()),
    }
}

/// The thread that burns, once it has taken its name.
fn named_busy(pid: u32) -> Option<PathBuf> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks
        .map(|task| task.unwrap().path())
        .find(|task| std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "busy"))
}
