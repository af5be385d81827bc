//! The two extended reports by which a receiver measures its round trip (RFC 3611 sections 4.4 and 4.5).

use super::{begin, end, kind, u16_at, u32_at};
use crate::NtpTime;

/// Block types.
const RECEIVER_TIME: u8 = 4;
const LAST_REPORTS: u8 = 5;

/// An extended report packet.
#[derive(Clone, Copy, Debug)]
pub struct Extended<'a> {
    /// The SSRC of the receiver that reports.
    pub sender: u32,
    blocks: &'a [u8],
}

/// A receiver's clock, sent back to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastReport {
    /// The receiver.
    pub receiver: u32,
    /// The middle of the NTP time that it sent.
    pub last_receiver_time: u32,
    /// Time since it came, in 1/65536 s.
    pub delay: u32,
}

impl<'a> Extended<'a> {
    pub(super) fn parse(body: &'a [u8]) -> Option<Self> {
        Some(Self { sender: u32_at(body, 0)?, blocks: &body[4..] })
    }

    /// The clocks that it sends back (DLRR), up to the first block that is cut off.
    pub fn last_reports(&self) -> impl Iterator<Item = LastReport> + use<'a> {
        let mut rest = self.blocks;
        let mut reports: &[u8] = &[];
        std::iter::from_fn(move || {
            loop {
                if let Some((report, others)) = reports.split_first_chunk::<12>() {
                    reports = others;
                    return Some(LastReport {
                        receiver: u32_at(report, 0)?,
                        last_receiver_time: u32_at(report, 4)?,
                        delay: u32_at(report, 8)?,
                    });
                }
                let kind = *rest.first()?;
                let length = 4 + 4 * usize::from(u16_at(rest, 2)?);
                let block = rest.get(..length)?;
                rest = &rest[length..];
                if kind == LAST_REPORTS {
                    reports = &block[4..];
                }
            }
        })
    }
}

/// Appends an extended report that asks for `time` to be sent back.
pub fn append_receiver_time(sender: u32, time: NtpTime, out: &mut Vec<u8>) {
    let start = begin(0, kind::EXTENDED, out);
    out.extend(sender.to_be_bytes());
    out.extend([RECEIVER_TIME, 0, 0, 2]);
    out.extend(time.0.to_be_bytes());
    end(start, out);
}

#[cfg(test)]
mod tests {
    use super::super::{Compound, Packet};
    use super::*;

    #[test]
    fn a_clock_is_written_as_the_standard_has_it() {
        let mut bytes = Vec::new();
        append_receiver_time(1, NtpTime(0x0102_0304_0506_0708), &mut bytes);
        assert_eq!(bytes, [0x80, 207, 0, 4, 0, 0, 0, 1, 4, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn a_clock_that_comes_back_is_read_among_other_blocks() {
        let bytes = [0x80, 207, 0, 6, 0, 0, 0, 1, 9, 0, 0, 0, 5, 0, 0, 3, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0, 9];
        let Some(Ok(Packet::Extended(report))) = Compound::new(&bytes).next() else { panic!("no report") };
        let last = LastReport { receiver: 7, last_receiver_time: 8, delay: 9 };
        assert_eq!(report.last_reports().collect::<Vec<_>>(), [last]);
    }
}
