//! What is done by a child process of the test must show in the samples: as much as the child itself says.

mod children;
mod connections;
mod cpu;
mod death;
mod machine;
mod memory;
mod puppet;
mod selection;
mod server;
mod switches;
