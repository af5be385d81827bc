//! RTSP: publishers and viewers, with RTP interleaved in the connection or as datagrams.

mod counts;
mod datagrams;
mod framer;
mod intake;
mod presentation;
mod session;

pub use counts::RtspCounts;
pub(crate) use session::RtspSession;
