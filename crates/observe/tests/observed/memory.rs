//! Memory and descriptors of a process.

use crate::puppet::Puppet;

#[test]
fn memory_that_is_touched_shows() {
    let mut puppet = Puppet::start();
    let mut sampler = puppet.sampler();
    let before = sampler.sample(0).targets[0].process.rss_bytes;
    puppet.tell("touch 96");
    let after = sampler.sample(1).targets[0].process.rss_bytes;
    let grown = (after - before) as f64 / f64::from(1 << 20);
    assert!((grown - 96.0).abs() < 2.0, "{grown} MiB");
}

#[test]
fn every_open_descriptor_counts() {
    let mut puppet = Puppet::start();
    let mut sampler = puppet.sampler();
    let before = sampler.sample(0).targets[0].process.descriptors.unwrap();
    puppet.tell("open 57");
    assert_eq!(sampler.sample(1).targets[0].process.descriptors, Some(before + 57));
}
