//! Processes that a watched process starts.

use weir_observe::{Sampler, Watch};

use crate::puppet::{Puppet, kill};

/// The seconds of a made-up clock at which costly readings are due again.
const LATER: u64 = 100_000_000_000;

#[test]
fn a_child_is_counted_once() {
    let mut puppet = Puppet::start();
    let child = puppet.bear_child();
    // By pid the child is found as a child only; here it matches by itself too.
    for watch in [Watch::Pid(puppet.pid()), Watch::Name(puppet.name().into())] {
        let sample = Sampler::new([watch]).unwrap().sample(0);
        let process = &sample.targets[0].process;
        assert_eq!(process.processes, 2);
        assert_eq!(process.threads.iter().filter(|thread| thread.pid == child).count(), 1);
    }
}

#[test]
fn children_that_come_later_are_found_and_those_that_go_are_kept_in_the_count() {
    let mut puppet = Puppet::start();
    let mut sampler = puppet.sampler();
    let first = sampler.sample(0);
    assert_eq!(first.targets[0].process.processes, 1);
    let child = puppet.bear_child();
    let second = sampler.sample(LATER);
    assert_eq!(second.targets[0].process.processes, 2);
    kill(child);
    // The puppet does not wait for it: a zombie, which is no process any more.
    let mut process = sampler.sample(2 * LATER).targets[0].process.clone();
    for round in 3..200 {
        if process.processes == 1 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
        process = sampler.sample(round * LATER).targets[0].process.clone();
    }
    assert_eq!((process.processes, process.exited), (1, 1));
    assert!(process.cpu_seconds >= second.targets[0].process.cpu_seconds);
    let still = sampler.sample(200 * LATER).targets[0].process.clone();
    assert_eq!((still.processes, still.exited), (1, 1), "a zombie exits once");
}
