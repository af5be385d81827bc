#![doc = include_str!("../README.md")]

pub mod amf0;
pub mod chunk;
pub mod client;
pub mod flv;
pub mod handshake;
pub mod message;
pub mod server;

mod acknowledgement;
mod assembly;
mod error;

pub use assembly::AssemblyError;

pub use client::{Client, ClientEvent, ClientOptions};
pub use server::{Server, ServerEvent, ServerOptions};
