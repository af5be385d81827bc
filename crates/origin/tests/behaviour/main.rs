//! What the origin does, seen from outside: by ffmpeg, by nginx, and by clients that keep accounts.

mod browsers;
mod crowds;
mod damages;
mod faults;
mod ffmpeg;
mod forward;
mod hls;
mod hostile;
mod mqtt;
mod peers;
mod queue;
mod readers;
mod server;
mod tuners;
mod workers;
