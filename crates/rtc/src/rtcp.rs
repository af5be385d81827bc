//! RTCP: compound packets, read without copying, and written behind each other into the caller's buffer.
//!
//! A datagram may hold a single feedback packet (RFC 5506), so that nothing is demanded of its first one.

mod bitrate;
mod bye;
mod compound;
mod description;
mod extended;
mod nack;
mod picture;
mod report;
mod transport;

pub use bitrate::{Bitrate, append_bitrate};
pub use bye::append_bye;
pub use compound::{Compound, Packet, ParseError};
pub use description::append_canonical_name;
pub use extended::{Extended, LastReport, append_receiver_time};
pub use nack::{Nack, append_nack};
pub use picture::append_picture_loss;
pub use report::{
    Blocks, ReceiverReport, ReportBlock, SenderFigures, SenderReport, append_receiver_report,
    append_sender_report,
};
pub use transport::{Status, Statuses, TICK_MICROS, TransportFeedback, append_transport_feedback};

/// Packet types (RFC 3550 section 12.1, RFC 4585 section 6.1, RFC 3611 section 2).
mod kind {
    pub(super) const SENDER_REPORT: u8 = 200;
    pub(super) const RECEIVER_REPORT: u8 = 201;
    pub(super) const DESCRIPTION: u8 = 202;
    pub(super) const BYE: u8 = 203;
    pub(super) const TRANSPORT_FEEDBACK: u8 = 205;
    pub(super) const PAYLOAD_FEEDBACK: u8 = 206;
    pub(super) const EXTENDED: u8 = 207;
}

/// Feedback message types (RFC 4585 section 6.2 and 6.3, RFC 5104 section 4.3.1).
mod format {
    pub(super) const NACK: u8 = 1;
    pub(super) const TRANSPORT_CC: u8 = 15;
    pub(super) const PICTURE_LOSS: u8 = 1;
    pub(super) const FULL_INTRA_REQUEST: u8 = 4;
    pub(super) const APPLICATION: u8 = 15;
}

/// Reads `N` bytes at `at`.
fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes_at(bytes, at).map(u32::from_be_bytes)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes_at(bytes, at).map(u16::from_be_bytes)
}

/// Begins a packet; [`end`] fills in its length.
fn begin(count_or_format: u8, kind: u8, out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend([0x80 | count_or_format & 0x1F, kind, 0, 0]);
    start
}

/// Ends the packet that began at `start`: zeros up to a word, and the length.
fn end(start: usize, out: &mut Vec<u8>) {
    while !(out.len() - start).is_multiple_of(4) {
        out.push(0);
    }
    let words = u16::try_from((out.len() - start) / 4 - 1).unwrap_or(u16::MAX);
    out[start + 2..start + 4].copy_from_slice(&words.to_be_bytes());
}
