//! FLV: what audio and video messages look like inside, and the file of the same tags (FLV 10.1 annex E).
//!
//! The payload of an RTMP audio or video message is the body of an FLV tag. [`VideoTag`] and [`AudioTag`] read its
//! first bytes, in the old form and in that of enhanced RTMP v1 and v2 (E-FLV). What codecs put behind them is not
//! looked into.

mod audio;
mod body;
mod four_cc;
mod modifier;
mod reader;
mod video;
mod writer;

pub use audio::{AudioCodec, AudioPacketType, AudioTag};
pub use body::{
    aac_frame, aac_sequence_header, avc_frame, avc_sequence_header, g711_frame, opus_frame,
    opus_sequence_header, picture_configuration, picture_header,
};
pub use four_cc::FourCc;
pub use modifier::Multitrack;
pub use reader::{Error as FileError, Limits, Reader, Tag};
pub use video::{FrameType, VideoCodec, VideoPacketType, VideoTag};
pub use writer::{write_header, write_tag};

/// An audio or video tag that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The tag ends inside its own header, or more bytes of it are needed.
    #[error("an FLV tag ends at byte {length}, inside its header")]
    Truncated {
        /// How many bytes there are.
        length: usize,
    },
    /// Several tracks within several tracks (E-RTMP v2).
    #[error("a multitrack FLV tag inside a multitrack FLV tag")]
    NestedMultitrack,
}
