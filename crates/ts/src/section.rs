//! Sections: put together from packets, and checked (ISO/IEC 13818-1 sections 2.4.4 and annex A).

use crate::packet::pid;

/// The longest section there is: twelve bits of length after three bytes.
const LONGEST: usize = 3 + 4095;

/// The polynomial of annex A.
const POLYNOMIAL: u32 = 0x04C1_1DB7;

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut value = (byte as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 0x8000_0000 == 0 { value << 1 } else { value << 1 ^ POLYNOMIAL };
            bit += 1;
        }
        table[byte] = value;
        byte += 1;
    }
    table
};

/// CRC_32 of annex A. Over a whole section with its CRC it is zero.
pub fn crc(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |crc, &byte| crc << 8 ^ TABLE[usize::from((crc >> 24) as u8 ^ byte)])
}

/// One whole section, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Section<'a>(pub(crate) &'a [u8]);

impl<'a> Section<'a> {
    pub(crate) fn table_id(self) -> u8 {
        self.0[0]
    }

    /// Ends in a CRC: every section of the long form, and the time offset table (ETSI EN 300 468 section 5.2.6).
    pub(crate) fn has_crc(self) -> bool {
        self.0[1] & 0x80 != 0 || self.table_id() == 0x73
    }

    pub(crate) fn is_intact(self) -> bool {
        !self.has_crc() || crc(self.0) == 0
    }

    /// What stands in a section of the long form before its payload; `None` for the short form.
    pub(crate) fn long(self) -> Option<Long<'a>> {
        if self.0[1] & 0x80 == 0 || self.0.len() < 12 {
            return None;
        }
        Some(Long {
            extension: u16::from_be_bytes([self.0[3], self.0[4]]),
            version: self.0[5] >> 1 & 0x1F,
            current: self.0[5] & 1 != 0,
            number: self.0[6],
            payload: &self.0[8..self.0.len() - 4],
            checksum: self.0.last_chunk().copied().map_or(0, u32::from_be_bytes),
        })
    }

    /// The section that begins in the payload of a packet with payload_unit_start_indicator, if it also ends in it, in the
    /// long form and undamaged.
    pub(crate) fn whole_in(payload: &'a [u8]) -> Option<Self> {
        let (&pointer, rest) = payload.split_first()?;
        let rest = rest.get(usize::from(pointer)..)?;
        let section = Self(rest.get(..length(rest)?)?);
        (section.long().is_some() && section.is_intact()).then_some(section)
    }

    /// Whether this is the same section of the same table as `earlier` with other contents.
    pub(crate) fn is_changed_from(self, earlier: Self) -> bool {
        let identity = |section: Self| {
            section.long().map(|long| (section.table_id(), long.extension, long.number, long.current))
        };
        self.0 != earlier.0 && identity(self).is_some() && identity(self) == identity(earlier)
    }
}

/// A section of the long form, taken apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Long<'a> {
    pub(crate) extension: u16,
    pub(crate) version: u8,
    pub(crate) current: bool,
    pub(crate) number: u8,
    pub(crate) payload: &'a [u8],
    /// Its CRC_32, by which contents are told apart.
    pub(crate) checksum: u32,
}

/// Whether sections on this PID are read before any table has named it.
pub(crate) fn is_well_known(pid: u16) -> bool {
    matches!(pid, pid::PAT | pid::CAT | pid::NIT | pid::SDT | pid::EIT | pid::TDT)
}

/// Puts the sections of one PID together. Holds at most one section.
#[derive(Clone, Debug, Default)]
pub(crate) struct Assembler {
    begun: Vec<u8>,
    /// A section has begun whose rest is to come.
    under_way: bool,
}

impl Assembler {
    /// Bytes of memory that it holds.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Self>() + self.begun.capacity()
    }

    /// Packets are missing: what has begun cannot be ended.
    pub(crate) fn interrupt(&mut self) {
        self.under_way = false;
        self.begun.clear();
    }

    /// Takes the payload of a packet; `start` is its payload_unit_start_indicator.
    pub(crate) fn payload(&mut self, payload: &[u8], start: bool, section: &mut impl FnMut(Section<'_>)) {
        if !start {
            self.go_on(payload, section);
            return;
        }
        let Some((&pointer, rest)) = payload.split_first() else { return };
        let Some((before, mut rest)) = rest.split_at_checked(usize::from(pointer)) else {
            self.interrupt();
            return;
        };
        self.go_on(before, section);
        self.interrupt();
        // 0xFF in place of a table id: stuffing up to the end of the packet (2.4.4).
        while rest.first().is_some_and(|&table_id| table_id != 0xFF) {
            let Some(whole) = length(rest).filter(|&length| length <= rest.len()) else {
                self.begun.extend_from_slice(rest);
                self.under_way = true;
                return;
            };
            section(Section(&rest[..whole]));
            rest = &rest[whole..];
        }
    }

    fn go_on(&mut self, payload: &[u8], section: &mut impl FnMut(Section<'_>)) {
        if !self.under_way {
            return;
        }
        self.begun.extend_from_slice(payload);
        if let Some(whole) = length(&self.begun)
            && self.begun.len() >= whole
        {
            section(Section(&self.begun[..whole]));
            self.interrupt();
        }
        debug_assert!(self.begun.len() <= LONGEST + 184);
    }
}

/// The length of the section that `bytes` begin with, once they tell.
fn length(bytes: &[u8]) -> Option<usize> {
    let [_, high, low, ..] = *bytes else { return None };
    Some(3 + (usize::from(high & 0x0F) << 8 | usize::from(low)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        assert_eq!(crc(b"123456789"), 0x0376_E6E7);
    }

    #[test]
    fn a_section_over_three_packets_is_one_section() {
        let mut section = vec![0x42, 0xF1, 0x2C];
        section.resize(303, 7);
        let mut packets: Vec<Vec<u8>> = section.chunks(150).map(<[u8]>::to_vec).collect();
        packets[0].insert(0, 0);
        let mut assembler = Assembler::default();
        let mut seen = Vec::new();
        for (index, packet) in packets.iter().enumerate() {
            assembler.payload(packet, index == 0, &mut |section| seen.push(section.0.to_vec()));
        }
        assert_eq!(seen, [section]);
    }

    #[test]
    fn two_sections_in_one_packet_and_the_end_of_a_third() {
        let short = |table| vec![table, 0x00, 1, 9];
        let mut assembler = Assembler::default();
        let mut seen = Vec::new();
        let mut see = |section: Section<'_>| seen.push(section.table_id());
        assembler.payload(&[0, 0x70, 0x00, 3, 1], true, &mut see);
        let packet = [vec![2, 2, 3], short(0x71), short(0x72), vec![0xFF; 5]].concat();
        assembler.payload(&packet, true, &mut see);
        assert_eq!(seen, [0x70, 0x71, 0x72]);
    }
}
