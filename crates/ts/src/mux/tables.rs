//! The sections of PAT, PMT and SDT.

use super::{Elementary, MuxSettings};
use crate::packet::pid;
use crate::section::crc;

/// A section of the long form around `payload` (ISO/IEC 13818-1 section 2.4.4.11).
fn section(table_id: u8, extension: u16, version: u8, payload: &[u8]) -> Vec<u8> {
    let length = 5 + payload.len() + 4;
    debug_assert!(length <= 1021);
    // The SDT is DVB's: its bit after the syntax indicator is "reserved for future use", and set.
    let marks = if table_id < 0x40 { 0xB0 } else { 0xF0 };
    let mut bytes = vec![table_id, marks | (length >> 8) as u8, length as u8];
    bytes.extend(extension.to_be_bytes());
    bytes.extend([0xC1 | (version & 0x1F) << 1, 0, 0]);
    bytes.extend(payload);
    bytes.extend(crc(&bytes).to_be_bytes());
    bytes
}

/// The program association table.
pub fn pat(settings: &MuxSettings, version: u8) -> Vec<u8> {
    let mut payload = settings.program_number.to_be_bytes().to_vec();
    payload.extend((0xE000 | settings.pmt_pid).to_be_bytes());
    section(0x00, settings.transport_stream_id, version, &payload)
}

/// The program map.
pub fn pmt(settings: &MuxSettings, version: u8) -> Vec<u8> {
    let clock = settings.video.or(settings.audio).map_or(pid::NULL, |stream| stream.pid);
    let mut payload = (0xE000 | clock).to_be_bytes().to_vec();
    payload.extend([0xF0, 0]);
    for Elementary { pid, stream_type } in [settings.video, settings.audio].into_iter().flatten() {
        payload.push(stream_type);
        payload.extend((0xE000 | pid).to_be_bytes());
        payload.extend([0xF0, 0]);
    }
    section(0x02, settings.program_number, version, &payload)
}

/// The service description table, with one service (ETSI EN 300 468 sections 5.2.3 and 6.2.33).
pub fn sdt(settings: &MuxSettings, version: u8) -> Vec<u8> {
    const TELEVISION: u8 = 1;
    const RADIO: u8 = 2;
    let kind = if settings.video.is_some() { TELEVISION } else { RADIO };
    let mut body = vec![kind];
    for text in [&settings.provider, &settings.name] {
        let mut end = text.len().min(100);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        // Table 0x15 is UTF-8 (annex A.2).
        body.push(end as u8 + 1);
        body.push(0x15);
        body.extend(&text.as_bytes()[..end]);
    }
    let mut payload = settings.original_network_id.to_be_bytes().to_vec();
    payload.push(0xFF);
    payload.extend(settings.program_number.to_be_bytes());
    // No EIT; running, in clear.
    payload.push(0xFC);
    payload.extend((0x8000 | (body.len() as u16 + 2)).to_be_bytes());
    payload.extend([0x48, body.len() as u8]);
    payload.extend(&body);
    section(0x42, settings.transport_stream_id, version, &payload)
}
