#![doc = include_str!("../README.md")]

pub mod capacity;
pub mod compare;
pub mod history;
pub mod series;
pub mod sizing;
pub mod sweep;
pub mod table;
