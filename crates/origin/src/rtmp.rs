//! RTMP: how its publishers and viewers speak to the streams of a worker.

mod forward;
mod framing;
mod intake;
mod liveness;
mod session;

pub(crate) use forward::begin_due as begin_forwarding;
pub(crate) use framing::{retime, unframe};
pub(crate) use intake::Intake;
pub(crate) use session::RtmpSession;
