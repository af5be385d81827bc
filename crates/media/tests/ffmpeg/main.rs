//! Everything that this crate makes and reads, judged by ffmpeg.

mod judge;
mod synthetic_decodes;
