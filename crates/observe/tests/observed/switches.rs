//! Context switches.

use crate::puppet::Puppet;

#[test]
fn every_nap_is_a_voluntary_switch() {
    let mut puppet = Puppet::start();
    let mut sampler = puppet.sampler();
    let before = sampler.sample(0).targets[0].process.voluntary_switches;
    puppet.tell("nap 200");
    let switches = sampler.sample(1).targets[0].process.voluntary_switches - before;
    // Waiting for the command, and for locks of the output, are a few more.
    assert!((200..220).contains(&switches), "{switches}");
}
