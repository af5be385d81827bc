//! RTSP: publishers and viewers, over interleaved TCP.

mod framer;
mod intake;
mod presentation;
mod session;

pub(crate) use session::RtspSession;
