//! CPU time, judged against the burner's own clocks: on a busy machine it does not get what it asks for.

use std::time::Instant;

use weir_observe::{Usage, UsageSummary, Window};

use crate::puppet::Puppet;
use weir_testing::undisturbed;

/// What a burner used, and what was seen of it.
struct Burnt {
    seconds: f64,
    thread_cpu_seconds: f64,
    process_cpu_seconds: f64,
    usage: Usage,
    summary: UsageSummary,
}

fn burn(puppet: &mut Puppet, share: f64) -> Burnt {
    let start = Instant::now();
    let now_ns = || start.elapsed().as_nanos() as u64;
    let mut sampler = puppet.sampler();
    let before = sampler.sample(now_ns());
    let reply = puppet.tell(format_args!("burn burner-7 {share} 2"));
    let after = sampler.sample(now_ns());
    let (thread, process) = reply.split_once(' ').unwrap();
    let usage = Usage::between(&before, &after).unwrap();
    let summary = Usage::summary(&[before, after], Window { from_ns: 0, to_ns: u64::MAX }).unwrap();
    Burnt {
        seconds: usage.seconds,
        thread_cpu_seconds: thread.parse().unwrap(),
        process_cpu_seconds: process.parse().unwrap(),
        usage,
        summary,
    }
}

fn within_three_points(percent: f64, cpu_seconds: f64, seconds: f64) {
    let expected = 100.0 * cpu_seconds / seconds;
    assert!((percent - expected).abs() < 3.0, "{percent:.1} % seen, {expected:.1} % used");
}

#[test]
fn a_named_thread_and_its_process_show_what_they_used() {
    undisturbed(|| {
        for share in [0.2, 0.6] {
            let burnt = burn(&mut Puppet::start(), share);
            let process = &burnt.usage.targets[0].process;
            within_three_points(process.cpu_percent, burnt.process_cpu_seconds, burnt.seconds);

            let busiest = &process.threads[0];
            assert_eq!(busiest.name, "burner-7");
            within_three_points(busiest.cpu_percent, burnt.thread_cpu_seconds, burnt.seconds);

            let summary = &burnt.summary.targets[0].process;
            assert_eq!(summary.busiest_thread().unwrap().name, "burner-7");
            assert_eq!(summary.thread_names[0].name, "burner-*");
            within_three_points(summary.cpu_percent.mean, burnt.process_cpu_seconds, burnt.seconds);
            within_three_points(summary.thread_names[0].cpu_percent, burnt.thread_cpu_seconds, burnt.seconds);
        }
    });
}

#[test]
fn an_idle_process_shows_next_to_nothing() {
    undisturbed(|| {
        let burnt = burn(&mut Puppet::start(), 0.0);
        let percent = burnt.usage.targets[0].process.cpu_percent;
        assert!(percent < 5.0, "{percent} %");
    });
}

#[test]
fn the_generator_shows_its_own_threads() {
    undisturbed(|| {
        let start = Instant::now();
        let mut sampler = weir_observe::Sampler::new([]).unwrap();
        let before = sampler.sample(0);
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let (burnt, used) = std::sync::mpsc::channel();
        let shard = move || {
            let cpu = || {
                let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
                time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
            };
            while cpu() < 0.5 {
                std::hint::spin_loop();
            }
            burnt.send(cpu()).unwrap();
            let _ = ended.recv();
        };
        let shard = std::thread::Builder::new().name("weir-shard-3".into()).spawn(shard).unwrap();
        let used: f64 = used.recv().unwrap();
        let after = sampler.sample(start.elapsed().as_nanos() as u64);
        drop(end);
        shard.join().unwrap();

        let usage = Usage::between(&before, &after).unwrap();
        let thread = usage.generator.threads.iter().find(|thread| thread.name == "weir-shard-3").unwrap();
        let seen = thread.cpu_percent / 100.0 * usage.seconds;
        assert!((seen - used).abs() <= 0.03, "{seen} s seen, {used} s used");
        assert!(usage.generator.cpu_percent / 100.0 * usage.seconds > used - 0.03);
    });
}
