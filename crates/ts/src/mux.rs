//! Writes a transport stream: tables, clock, H.264 and AAC, null packets up to a constant bit rate.
//!
//! The [`Muxer`] takes access units in decoding order and appends packets. It has no clock of its own: time is that
//! of the units, or, at a constant bit rate, the number of packets written.

mod muxer;
mod packets;
mod tables;

pub use muxer::{AccessUnit, Muxer};
pub use packets::Packetiser;
pub use tables::{pat, pmt, sdt};

use crate::packet::PACKET_LENGTH;

/// One stream of a program: its PID and what it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elementary {
    /// 0x0020 … 0x1FFE.
    pub pid: u16,
    /// ISO/IEC 13818-1 table 2-34: 0x1B is H.264, 0x0F AAC in ADTS.
    pub stream_type: u8,
}

/// What the stream is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MuxSettings {
    /// For the PAT.
    pub transport_stream_id: u16,
    /// For the SDT.
    pub original_network_id: u16,
    /// The program, and in the SDT the service.
    pub program_number: u16,
    /// Where the program map goes.
    pub pmt_pid: u16,
    /// The video stream, if there is one; it carries the clock.
    pub video: Option<Elementary>,
    /// The audio stream, if there is one.
    pub audio: Option<Elementary>,
    /// The name of the service's provider; 100 bytes of UTF-8 at most.
    pub provider: String,
    /// What the service is called; 100 bytes of UTF-8 at most.
    pub name: String,
    /// Bits per second of packets, filled up with null packets. `None`: no null packets.
    pub bit_rate: Option<u64>,
    /// How long before its decoding time a unit is sent, in 27 MHz ticks.
    pub lead: u64,
    /// From one PAT, PMT and SDT to the next, in 27 MHz ticks.
    pub table_interval: u64,
    /// From one clock reference to the next at the most, in 27 MHz ticks.
    pub pcr_interval: u64,
}

impl Default for MuxSettings {
    fn default() -> Self {
        Self {
            transport_stream_id: 1,
            original_network_id: 0xFF01,
            program_number: 1,
            pmt_pid: 0x0100,
            video: Some(Elementary { pid: 0x0101, stream_type: 0x1B }),
            audio: Some(Elementary { pid: 0x0102, stream_type: 0x0F }),
            provider: "weir".into(),
            name: "weir".into(),
            bit_rate: None,
            lead: 27_000 * 700,
            table_interval: 27_000 * 100,
            pcr_interval: 27_000 * 30,
        }
    }
}

/// A null packet (section 2.4.3.3): PID 0x1FFF, its payload is nothing.
pub const NULL_PACKET: [u8; PACKET_LENGTH] = {
    let mut packet = [0xFF; PACKET_LENGTH];
    packet[0] = 0x47;
    packet[1] = 0x1F;
    packet[3] = 0x10;
    packet
};

/// The seven bytes that stand before an AAC frame in a transport stream (ISO/IEC 14496-3 section 1.A.3.2).
///
/// `object_type` 2 is AAC-LC; `frequency_index` 3 is 48 kHz, 4 is 44.1 kHz; `length` is that of the raw frame, at
/// most 8184 bytes.
pub fn adts_header(object_type: u8, frequency_index: u8, channels: u8, length: usize) -> [u8; 7] {
    let whole = (length + 7) as u16;
    [
        0xFF,
        0xF1,
        (object_type - 1) << 6 | frequency_index << 2 | channels >> 2,
        channels << 6 | (whole >> 11) as u8 & 3,
        (whole >> 3) as u8,
        (whole << 5) as u8 | 0x1F,
        0xFC,
    ]
}
