//! RTP packets: the header, its extensions, the payload behind them (RFC 3550 section 5.1).

mod element;
mod extension;
mod header;
mod packet;

pub use element::{DependencyDescriptor, FrameMarking, transport_sequence_number};
pub use extension::Extensions;
pub use header::{ExtensionError, Header};
pub use packet::{HEADER_LENGTH, HeaderError, Packet};
