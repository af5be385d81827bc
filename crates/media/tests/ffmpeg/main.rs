//! Everything that this crate makes and reads, judged by ffmpeg.

mod files_loop;
mod judge;
mod opus_decodes;
mod stamps_survive_remuxing;
mod synthetic_decodes;
