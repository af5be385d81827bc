#![doc = include_str!("../README.md")]

mod challenge;
mod clock;
mod description;
mod dialogue;
mod header;
mod interleaved;
mod message;
mod payloads;
mod reader;
mod tags;
mod transport;

pub use challenge::{Challenge, Login};
pub use description::{Description, MOST_MEDIA, Media, MediaKind};
pub use dialogue::{Answer, Dialogue, Method};
pub use header::SessionHeader;
pub use interleaved::Deinterleaver;
pub use message::{Message, append_frame_header, reason};
pub use payloads::{PicturePayloads, described_format, picture_codec, video_codec};
pub use reader::{Item, LONGEST_BODY, Reader, Request, Response, RtspError};
pub use tags::{Payload, Tag, TagReader};
pub use transport::{Lower, Transport};
