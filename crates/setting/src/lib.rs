#![doc = include_str!("../README.md")]

mod names;
mod setting;

pub use names::*;
pub use setting::{Setting, spell};
