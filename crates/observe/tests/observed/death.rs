//! Targets that end, and come back.

use weir_observe::{Sample, Sampler, TargetState, Usage, Watch, Window};

use crate::puppet::Puppet;

const LATER: u64 = 100_000_000_000;

#[test]
fn what_a_dead_target_had_used_is_kept() {
    let mut puppet = Puppet::start();
    let mut sampler = puppet.sampler();
    let reply = puppet.tell("burn burner 0.8 0.5");
    let used: f64 = reply.split_once(' ').unwrap().0.parse().unwrap();
    let alive = sampler.sample(0);
    assert_eq!(alive.targets[0].state, TargetState::Running);
    assert!(alive.targets[0].process.cpu_seconds > used - 0.03);
    puppet.kill();

    let dead = sampler.sample(LATER);
    let target = &dead.targets[0];
    assert_eq!(target.state, TargetState::Died);
    assert_eq!((target.process.processes, target.process.exited), (0, 1));
    assert_eq!(target.process.cpu_seconds, alive.targets[0].process.cpu_seconds);
    assert_eq!(target.process.rss_bytes, 0);
    assert!(sampler.describe_targets().is_empty());
    let summary = Usage::summary(&[alive, dead], Window { from_ns: 0, to_ns: u64::MAX }).unwrap();
    assert_eq!(summary.targets[0].state, TargetState::Died);
}

#[test]
fn a_target_has_died_though_its_children_live() {
    let mut puppet = Puppet::start();
    puppet.bear_child();
    let mut sampler = puppet.sampler();
    assert_eq!(sampler.sample(0).targets[0].process.processes, 2);
    puppet.kill();
    let sample = sampler.sample(LATER);
    assert_eq!(sample.targets[0].state, TargetState::Died);
    assert_eq!(sample.targets[0].process.processes, 1, "the child is watched on");
}

#[test]
fn a_server_that_is_started_again_runs_again_by_name_and_not_by_pid() {
    let mut puppet = Puppet::start();
    let watches = [Watch::Name(puppet.name().into()), Watch::Pid(puppet.pid())];
    let mut sampler = Sampler::new(watches).unwrap();
    puppet.tell("burn burner 0.5 0.4");
    let before = sampler.sample(0);
    puppet.kill();
    puppet.restart();
    let after = sampler.sample(LATER);
    assert_eq!(after.targets[0].state, TargetState::Running);
    assert_eq!((after.targets[0].process.processes, after.targets[0].process.exited), (1, 1));
    assert!(after.targets[0].process.cpu_seconds >= before.targets[0].process.cpu_seconds);
    assert_eq!(after.targets[1].state, TargetState::Died);
}

#[test]
fn a_weir_without_descriptors_does_not_take_a_target_for_dead() {
    let mut puppet = Puppet::start();
    let watcher = &mut Puppet::start();
    puppet.tell("burn burner 0.5 0.4");
    let samples = watcher.tell(format_args!("starve {}", puppet.pid()));
    let samples: Vec<Sample> = serde_json::from_str(&samples).unwrap();
    let [before, starved, after] = [0, 1, 2].map(|index| &samples[index].targets[0]);
    assert_eq!(starved.state, TargetState::Running);
    assert_eq!((starved.process.processes, starved.process.unread, starved.process.exited), (0, 1, 0));
    assert_eq!(starved.process.cpu_seconds, before.process.cpu_seconds);
    assert_eq!((after.process.processes, after.process.unread, after.process.exited), (1, 0, 0));
    assert!((after.process.cpu_seconds - before.process.cpu_seconds).abs() < 0.1, "not booked twice");
    assert!(after.process.voluntary_switches < 2 * before.process.voluntary_switches, "not booked twice");
}
