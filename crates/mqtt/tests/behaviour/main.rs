//! A client's dialogue, the examples of the standards, and laws of packets and topics.

mod dialogue;
mod laws;
mod standard;
mod topic_tree;
mod wire;
