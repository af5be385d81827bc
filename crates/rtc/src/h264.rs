//! H.264 in RTP (RFC 6184), as all of WebRTC has it: packetisation mode 1, so single NAL units, STAP-A and FU-A.

mod described;
mod packetiser;
mod payload;

pub(crate) use described::{decoded_sets, encoded_sets};
pub use described::{described_format, described_parameter_sets};
pub use packetiser::Packetiser;
pub(crate) use payload::pieces;
pub use payload::{Aggregate, Payload, PayloadError, is_keyframe, starts_frame};

/// Ticks of H.264's RTP clock a second (section 8.2.1).
pub const CLOCK_RATE: u32 = 90_000;

/// Types of NAL units and payloads (section 5.2 table 1, H.264 table 7-1).
mod kind {
    pub(super) const MASK: u8 = 0x1F;
    pub(super) const SLICE_IDR: u8 = 5;
    pub(super) const SEQUENCE_PARAMETER_SET: u8 = 7;
    pub(super) const STAP_A: u8 = 24;
    pub(super) const FU_A: u8 = 28;
}

/// The bits of a NAL unit's first byte that are not its type: `forbidden_zero_bit` and `nal_ref_idc`.
const REFERENCE: u8 = 0xE0;

/// The bits of an FU header (section 5.8).
const FRAGMENT_START: u8 = 0x80;
const FRAGMENT_END: u8 = 0x40;
