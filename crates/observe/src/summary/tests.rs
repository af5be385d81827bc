//! Summaries of hand-made samples.

use crate::*;

const SECOND: u64 = 1_000_000_000;

fn thread(tid: u32, name: &str, started_seconds: f64, cpu_seconds: f64) -> ThreadSample {
    ThreadSample { pid: 100, tid, name: name.into(), started_seconds, cpu_seconds, waited_seconds: None }
}

/// A sample at `second`, of a target that has used `cpu_seconds`.
fn sample(second: f64, cpu_seconds: f64, threads: Vec<ThreadSample>) -> Sample {
    let process = ProcessSample {
        processes: 1,
        cpu_seconds,
        rss_bytes: (second * 1e6) as u64,
        descriptors: Some(7),
        threads,
        ..ProcessSample::default()
    };
    let lo = InterfaceSample { name: "lo".into(), rx_bytes: (second * 1e6) as u64, ..Default::default() };
    let eth0 = InterfaceSample { name: "eth0".into(), rx_missed: Some(second as u64), ..Default::default() };
    Sample {
        at_ns: (second * SECOND as f64) as u64,
        targets: vec![TargetSample {
            watch: Watch::Pid(100),
            state: TargetState::Running,
            process,
            ports: vec![1935],
            connections: Some(Connections { established: second as u64, counted_at_ns: second as u64 }),
            elsewhere: None,
        }],
        generator: ProcessSample::default(),
        host: HostSample {
            uptime_seconds: 1000.0 + second,
            cpu: Some(HostCpu {
                busy_seconds: second * 0.5,
                idle_seconds: second,
                iowait_seconds: second * 0.3,
                steal_seconds: second * 0.2,
                softirq_seconds: 0.0,
            }),
            interfaces: vec![lo, eth0],
            network: Some(NetworkCounters {
                tcp_retransmitted_segments: (second * 10.0) as u64,
                ..NetworkCounters::default()
            }),
            ..HostSample::default()
        },
        machines: Vec::new(),
        others: Vec::new(),
    }
}

const ALL: Window = Window { from_ns: 0, to_ns: u64::MAX };

fn close(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-6, "{value} is not {expected}");
}

#[test]
fn cpu_over_a_window_is_a_ratio_of_totals() {
    // One short busy interval and one long idle one: the mean of the rates would be 60 %.
    let samples = [sample(0.0, 5.0, vec![]), sample(1.0, 6.0, vec![]), sample(5.0, 6.8, vec![])];
    let cpu = Usage::summary(&samples, ALL).unwrap().targets[0].process.cpu_percent;
    close(cpu.mean, 36.0);
    close(cpu.min, 20.0);
    close(cpu.max, 100.0);
}

#[test]
fn a_target_on_another_machine_that_is_not_heard_of_any_more_has_no_figures() {
    let mut samples: Vec<Sample> =
        (0..9).map(|second| sample(second.into(), second.into(), vec![])).collect();
    let heard = |samples: &mut [Sample], last: u64| {
        for (second, sample) in (0..).zip(samples) {
            let at_ns = u64::min(second, last) * SECOND;
            sample.targets[0].elsewhere = Some(Elsewhere { at_ns, uptime_seconds: 7.0 });
        }
    };
    heard(&mut samples, 5);
    assert_eq!(Usage::summary(&samples, ALL).unwrap().targets.len(), 1, "the last one is 3 s old");
    heard(&mut samples, 4);
    let summary = Usage::summary(&samples, ALL).unwrap();
    assert_eq!((summary.targets, summary.unheard), (vec![], vec![Watch::Pid(100)]));
    let before = Window { from_ns: 0, to_ns: 5 * SECOND };
    assert_eq!(Usage::summary(&samples, before).unwrap().targets.len(), 1, "a window before knows it");
}

#[test]
fn a_tick_over_the_last_three_milliseconds_is_no_peak() {
    let threads = |cpu: f64| vec![thread(100, "main", 1.0, cpu)];
    let at = |second: f64, cpu: f64| sample(second, cpu, threads(cpu));
    let samples = [at(0.0, 5.0), at(1.0, 5.5), at(2.0, 6.0), at(2.003, 6.01)];
    let process = &Usage::summary(&samples, ALL).unwrap().targets[0].process;
    assert!(process.cpu_percent.max < 51.0 && process.threads[0].max_cpu_percent < 51.0, "{process:?}");
    close(process.cpu_seconds, 1.01);
}

#[test]
fn what_is_neither_weirs_nor_a_targets_is_told_with_its_name() {
    let rustc = |cpu_seconds| OtherProcesses { name: "rustc".into(), pid: 7, processes: 1, cpu_seconds };
    let mut samples = [sample(0.0, 0.0, vec![]), sample(2.0, 0.3, vec![]), sample(4.0, 0.6, vec![])];
    for (second, sample) in [0.0, 2.0, 4.0].into_iter().zip(&mut samples) {
        sample.generator.cpu_seconds = second * 0.05;
        sample.host.cpu.as_mut().unwrap().softirq_seconds = second * 0.1;
        sample.others = vec![rustc(0.4)];
    }
    let summary = Usage::summary(&samples, ALL).unwrap();
    // 50 % were work, of which softirqs had 10, the target 15 and weir 5.
    close(summary.others.cpu_percent.unwrap(), 20.0);
    close(summary.others.idle_percent.unwrap(), 130.0);
    assert_eq!(summary.others.busiest, [rustc(0.8)], "what was before the window is not in it");
}

#[test]
fn of_softirqs_the_busiest_cpu_counts_and_of_steal_all_on_which_weir_may_run() {
    let mut samples = [sample(0.0, 0.0, vec![]), sample(2.0, 0.0, vec![])];
    samples[0].host.core_softirq_seconds = vec![5.0, 5.0];
    samples[1].host.core_softirq_seconds = vec![5.2, 6.0];
    samples[0].host.core_steal_seconds = vec![1.0, 1.0];
    samples[1].host.core_steal_seconds = vec![1.2, 1.0];
    let host = Usage::summary(&samples, ALL).unwrap().host;
    close(host.own_softirq_ratio.unwrap(), 0.5);
    close(host.own_steal_ratio.unwrap(), 0.05);
    samples[1].host.core_steal_seconds.pop();
    assert_eq!(Usage::summary(&samples, ALL).unwrap().host.own_steal_ratio, None, "a CPU went offline");
}

#[test]
fn only_samples_in_the_window_count() {
    let samples: Vec<Sample> = (0..20).map(|second| sample(second.into(), 0.0, vec![])).collect();
    let summary = Usage::summary(&samples, Window { from_ns: 5 * SECOND, to_ns: 10 * SECOND }).unwrap();
    assert_eq!(summary.samples, 6);
    close(summary.seconds, 5.0);
    close(summary.targets[0].process.rss_bytes.mean, 7.5e6);
    assert!(Usage::summary(&samples, Window { from_ns: 6 * SECOND, to_ns: 6 * SECOND }).is_none());
    assert!(Usage::summary(&samples, Window { from_ns: 9 * SECOND, to_ns: SECOND }).is_none());
    assert!(Usage::summary(&[], ALL).is_none());
}

#[test]
fn a_count_of_connections_that_is_repeated_counts_once() {
    let mut samples: Vec<Sample> = (0..4).map(|second| sample(second.into(), 0.0, vec![])).collect();
    samples[2].targets[0].connections = samples[1].targets[0].connections;
    let connections = Usage::summary(&samples, ALL).unwrap().targets[0].connections.unwrap();
    close(connections.mean, 4.0 / 3.0);
}

#[test]
fn a_thread_counts_from_its_birth_and_its_id_may_be_reused() {
    let first = vec![thread(100, "main", 3.0, 50.0), thread(101, "worker", 900.0, 9.0)];
    // 101 has ended and another thread has its id; 102 was born; 103 is old: its process joined late.
    let second = vec![
        thread(100, "main", 3.0, 50.25),
        thread(101, "worker", 1000.5, 0.5),
        thread(102, "timer", 1000.2, 0.125),
        thread(103, "stranger", 20.0, 77.0),
    ];
    let usage = Usage::between(&sample(0.0, 0.0, first), &sample(1.0, 0.0, second)).unwrap();
    let threads: Vec<_> =
        usage.targets[0].process.threads.iter().map(|it| (it.tid, it.cpu_percent)).collect();
    assert_eq!(threads, [(101, 50.0), (100, 25.0), (102, 12.5), (103, 0.0)]);
}

#[test]
fn the_busiest_thread_is_named() {
    let threads = |cpu: f64| vec![thread(100, "main", 1.0, 3.0), thread(101, "rtc-7", 1.0, cpu)];
    let samples = [sample(0.0, 0.0, threads(2.0)), sample(2.0, 1.9, threads(3.9))];
    let process = &Usage::summary(&samples, ALL).unwrap().targets[0].process;
    let busiest = process.busiest_thread().unwrap();
    assert_eq!(busiest.name, "rtc-7");
    close(busiest.cpu_percent, 95.0);
    assert_eq!(process.thread_names[0].name, "rtc-*");
}

#[test]
fn host_shares_and_rates_come_from_counters() {
    let usage = Usage::between(&sample(0.0, 0.0, vec![]), &sample(2.0, 0.0, vec![])).unwrap();
    close(usage.host.cpu_busy_ratio.unwrap(), 0.25);
    close(usage.host.cpu_not_idle_ratio.unwrap(), 0.5);
    close(usage.host.cpu_iowait_ratio.unwrap(), 0.15);
    close(usage.host.cpu_steal_ratio.unwrap(), 0.1);
    close(usage.host.interfaces[0].rx_bps, 8e6);
    close(usage.host.tcp_retransmits_per_second.unwrap(), 10.0);
    assert_eq!(usage.host.network.unwrap().tcp_retransmitted_segments, 20);
}

#[test]
fn time_that_stands_still_has_no_rates() {
    let sample = sample(1.0, 0.0, vec![]);
    assert_eq!(Usage::between(&sample, &sample), None);
}

#[test]
fn a_dead_target_shows_in_the_summary() {
    let mut samples = [sample(0.0, 1.0, vec![]), sample(1.0, 1.0, vec![]), sample(2.0, 1.0, vec![])];
    samples[1].targets[0].state = TargetState::Died;
    assert_eq!(Usage::summary(&samples, ALL).unwrap().targets[0].state, TargetState::Died);
}

#[test]
fn samples_survive_their_json_line() {
    let mut sample = sample(1.5, 0.125, vec![thread(100, "a \"b\" ü", 1.0, 0.25)]);
    // serde_json reads most floats back to within one unit in the last place.
    sample.host.cpu = None;
    let line = serde_json::to_string(&sample).unwrap();
    assert!(!line.contains('\n'));
    assert!(
        line.starts_with(r#"{"at_ns":1500000000,"targets":[{"watch":"pid=100","state":"running""#),
        "{line}"
    );
    assert_eq!(serde_json::from_str::<Sample>(&line).unwrap(), sample);
}

#[test]
fn what_a_card_missed_is_summed_over_the_window_and_loopback_has_no_card() {
    let samples: Vec<Sample> = (3..8).map(|second| sample(f64::from(second), 0.0, Vec::new())).collect();
    let summary = Usage::summary(&samples, ALL).unwrap();
    let missed = |name: &str| summary.host.interfaces.iter().find(|it| it.name == name).unwrap().rx_missed;
    assert_eq!((missed("eth0"), missed("lo")), (Some(4), None));
}
