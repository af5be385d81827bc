//! What sessions of a shard are told, on real loopback sockets. One file a scenario.

mod accepted;
mod back_pressure;
mod bench;
mod datagrams;
mod descriptors;
mod echo;
mod endings;
mod listeners;
mod low_water;
mod reopening;
mod secure_endings;
mod shared;
mod side_links;
mod timers;
mod turns;
mod waiting;
mod waking;
