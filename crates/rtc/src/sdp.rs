//! Session descriptions (RFC 8866), as much of them as WebRTC needs (RFC 8829): read with bounds, written, and answered.
//!
//! What is not known is passed over, as the standard wants it; what is known and malformed is an error with its line.

mod agreement;
mod description;
mod encodings;
mod matching;
mod parse;
mod profile;
mod write;

pub use agreement::{Agreement, Local, OfferOptions, agree};
pub use description::{Description, Direction, Extension, Format, Media, MediaKind, Setup, Sources};
pub use parse::{MOST_BYTES, ParseError};
pub use profile::Profile;

/// Header extensions by their names.
pub mod extension {
    /// Frame marking (RFC 9626).
    pub const FRAME_MARKING: &str = "urn:ietf:params:rtp-hdrext:framemarking";
    /// The number of a packet within its transport.
    pub const TRANSPORT_CC: &str =
        "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";
    /// When a packet was sent.
    pub const ABSOLUTE_SEND_TIME: &str = "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time";
    /// The dependency descriptor (AOM's "RTP Payload Format For AV1" appendix A).
    pub const DEPENDENCY_DESCRIPTOR: &str =
        "https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension";
    /// The media that a packet belongs to (RFC 9143).
    pub const MID: &str = "urn:ietf:params:rtp-hdrext:sdes:mid";
}
