//! Which processes a watch picks.

use std::collections::BTreeSet;
use std::net::TcpListener;

use weir_observe::{ObserveError, Sampler, Watch};

use crate::puppet::Puppet;

#[test]
fn weir_is_no_target_unless_asked_for_by_pid() {
    let own_name = std::fs::read_to_string("/proc/self/comm").unwrap().trim().to_owned();
    let watch = Watch::Name(own_name);
    assert!(matches!(Sampler::new([watch.clone()]), Err(ObserveError::NoMatch(it)) if it == watch));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    assert!(matches!(Sampler::new([Watch::Port(port)]), Err(ObserveError::OwnerHidden(it)) if it == port));

    let pid = std::process::id();
    let sample = Sampler::new([Watch::Pid(pid)]).unwrap().sample(0);
    assert!(sample.targets[0].process.threads.iter().any(|thread| thread.pid == pid));
}

#[test]
fn a_process_above_weir_does_not_take_weir_in() {
    let parent = rustix::process::getppid().unwrap().as_raw_nonzero().get() as u32;
    let sample = Sampler::new([Watch::Pid(parent)]).unwrap().sample(0);
    let pid = std::process::id();
    assert!(sample.targets[0].process.threads.iter().all(|thread| thread.pid != pid));
}

#[test]
fn nothing_to_watch_is_an_error_with_a_remedy() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for watch in [Watch::Name("no-such-server".into()), Watch::Pid(i32::MAX as u32), Watch::Port(port)] {
        let error = Sampler::new([watch.clone()]).unwrap_err();
        assert!(matches!(&error, ObserveError::NoMatch(it) if *it == watch), "{error}");
        assert!(error.to_string().contains("start the server first"), "{error}");
    }
}

#[test]
fn targets_are_described_without_their_environment() {
    let mut puppet = Puppet::start();
    let port = puppet.listen("127.0.0.1");
    let described = Sampler::new([Watch::Port(port)]).unwrap().describe_targets();
    assert_eq!(described[0].pid, puppet.pid());
    assert_eq!(described[0].executable, std::env::current_exe().unwrap().to_str().map(str::to_owned));
    assert!(described[0].command_line[0].ends_with(puppet.name()));
    let json = serde_json::to_string(&described).unwrap();
    assert!(!json.contains(&std::env::var("PATH").unwrap()));
}

#[test]
fn of_two_servers_of_one_name_none_is_guessed() {
    let mut one = Puppet::start();
    let mut other = one.twin();
    let worker = one.bear_child();
    let port = other.listen("127.0.0.1");
    let name = Watch::Name(one.name().into());
    let error = Sampler::new([name.clone()]).unwrap_err();
    let ObserveError::SeveralServers { servers, .. } = &error else { panic!("{error}") };
    assert_eq!(servers.len(), 2, "{error}");
    let told = |words: String| assert!(error.to_string().contains(&words), "{words}: {error}");
    told(format!("pid {} ({}) on no port", one.pid(), one.name()));
    told(format!("pid {} ({}) on port {port}", other.pid(), other.name()));
    told(format!("name={}+", one.name()));

    let pids = |mut sampler: Sampler| -> BTreeSet<u32> {
        sampler.sample(0).targets[0].process.threads.iter().map(|thread| thread.pid).collect()
    };
    // The load goes to the port of one of them.
    let of_load = |port| Sampler::of_load([name.clone()], &BTreeSet::from([port]));
    assert_eq!(pids(of_load(port).unwrap()), BTreeSet::from([other.pid()]));
    assert!(matches!(of_load(9), Err(ObserveError::SeveralServers { .. })));
    let every: Watch = format!("name={}+", one.name()).parse().unwrap();
    assert_eq!(pids(Sampler::new([every]).unwrap()), BTreeSet::from([one.pid(), worker, other.pid()]));
}

#[test]
fn a_server_of_the_same_name_that_comes_later_is_another() {
    let one = Puppet::start();
    let mut sampler = Sampler::new([Watch::Name(one.name().into())]).unwrap();
    assert_eq!(sampler.sample(0).targets[0].process.processes, 1);
    let _other = one.twin();
    assert_eq!(sampler.sample(100_000_000_000).targets[0].process.processes, 1);
}
