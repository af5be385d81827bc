//! SRT: publishers bring MPEG-TS, which goes into streams as if it had come over RTMP; viewers get streams as MPEG-TS, written once for all
//! of them. One UDP port, on one worker.

mod demuxer;
mod feed;
mod peers;
mod port;
mod wish;
mod wrong_secrets;

pub(crate) use port::open_port;
