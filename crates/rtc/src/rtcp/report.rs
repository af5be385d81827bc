//! Sender and receiver reports (RFC 3550 section 6.4).

use super::{begin, bytes_at, end, kind, u32_at};
use crate::NtpTime;

/// The length of a report block in bytes.
const BLOCK_LENGTH: usize = 24;

/// How many blocks a report holds: the count has five bits.
const MOST_BLOCKS: usize = 31;

/// What a sender says of its own stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderFigures {
    /// The sender's wall clock.
    pub ntp_time: NtpTime,
    /// The RTP time stamp of the same moment.
    pub rtp_timestamp: u32,
    /// Packets sent, modulo 2³².
    pub packets: u32,
    /// Bytes of payload sent, without headers and padding, modulo 2³².
    pub payload_bytes: u32,
}

/// A sender report.
#[derive(Clone, Copy, Debug)]
pub struct SenderReport<'a> {
    /// The sender.
    pub sender: u32,
    /// What it sent.
    pub figures: SenderFigures,
    /// What it received.
    pub blocks: Blocks<'a>,
}

/// A receiver report.
#[derive(Clone, Copy, Debug)]
pub struct ReceiverReport<'a> {
    /// The receiver.
    pub sender: u32,
    /// What it received.
    pub blocks: Blocks<'a>,
}

/// What one receiver says of one stream (section 6.4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportBlock {
    /// The stream's source.
    pub source: u32,
    /// Packets lost since the last report, in 1/256 of those expected.
    pub fraction_lost: u8,
    /// Packets lost since the beginning; 24 bits are written. Below zero when duplicates outnumber losses.
    pub cumulative_lost: i32,
    /// The highest sequence number, with how often it wrapped in the upper 16 bits.
    pub highest_sequence_number: u32,
    /// Interarrival jitter, in ticks of the stream's clock.
    pub jitter: u32,
    /// The middle of the last sender report's NTP time; 0 when there was none.
    pub last_sender_report: u32,
    /// Time since that sender report, in 1/65536 s.
    pub delay_since_last_sender_report: u32,
}

/// The blocks of a report.
#[derive(Clone, Copy, Debug)]
pub struct Blocks<'a> {
    bytes: &'a [u8],
}

impl<'a> Blocks<'a> {
    fn parse(count: u8, bytes: &'a [u8]) -> Option<Self> {
        Some(Self { bytes: bytes.get(..usize::from(count) * BLOCK_LENGTH)? })
    }
}

impl Iterator for Blocks<'_> {
    type Item = ReportBlock;

    fn next(&mut self) -> Option<ReportBlock> {
        let (block, rest) = self.bytes.split_first_chunk::<BLOCK_LENGTH>()?;
        self.bytes = rest;
        let word = |at| u32_at(block, at).unwrap_or_default();
        Some(ReportBlock {
            source: word(0),
            fraction_lost: block[4],
            // The shifts bring the sign of 24 bits along.
            cumulative_lost: (word(4) << 8) as i32 >> 8,
            highest_sequence_number: word(8),
            jitter: word(12),
            last_sender_report: word(16),
            delay_since_last_sender_report: word(20),
        })
    }
}

impl<'a> SenderReport<'a> {
    pub(super) fn parse(count: u8, body: &'a [u8]) -> Option<Self> {
        Some(Self {
            sender: u32_at(body, 0)?,
            figures: SenderFigures {
                ntp_time: NtpTime(u64::from_be_bytes(bytes_at(body, 4)?)),
                rtp_timestamp: u32_at(body, 12)?,
                packets: u32_at(body, 16)?,
                payload_bytes: u32_at(body, 20)?,
            },
            blocks: Blocks::parse(count, &body[24..])?,
        })
    }
}

impl<'a> ReceiverReport<'a> {
    pub(super) fn parse(count: u8, body: &'a [u8]) -> Option<Self> {
        Some(Self { sender: u32_at(body, 0)?, blocks: Blocks::parse(count, &body[4..])? })
    }
}

/// Appends a sender report. Of more than 31 blocks the first 31 are written.
pub fn append_sender_report(sender: u32, figures: &SenderFigures, blocks: &[ReportBlock], out: &mut Vec<u8>) {
    let blocks = &blocks[..blocks.len().min(MOST_BLOCKS)];
    let start = begin(blocks.len() as u8, kind::SENDER_REPORT, out);
    out.extend(sender.to_be_bytes());
    out.extend(figures.ntp_time.0.to_be_bytes());
    for word in [figures.rtp_timestamp, figures.packets, figures.payload_bytes] {
        out.extend(word.to_be_bytes());
    }
    append_blocks(blocks, out);
    end(start, out);
}

/// Appends a receiver report. Of more than 31 blocks the first 31 are written.
pub fn append_receiver_report(sender: u32, blocks: &[ReportBlock], out: &mut Vec<u8>) {
    let blocks = &blocks[..blocks.len().min(MOST_BLOCKS)];
    let start = begin(blocks.len() as u8, kind::RECEIVER_REPORT, out);
    out.extend(sender.to_be_bytes());
    append_blocks(blocks, out);
    end(start, out);
}

fn append_blocks(blocks: &[ReportBlock], out: &mut Vec<u8>) {
    for block in blocks {
        let lost = block.cumulative_lost.clamp(-0x80_0000, 0x7F_FFFF) as u32 & 0xFF_FFFF;
        for word in [
            block.source,
            u32::from(block.fraction_lost) << 24 | lost,
            block.highest_sequence_number,
            block.jitter,
            block.last_sender_report,
            block.delay_since_last_sender_report,
        ] {
            out.extend(word.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Compound, Packet};
    use super::*;
    use proptest::prelude::*;

    fn block() -> impl Strategy<Value = ReportBlock> {
        (any::<[u32; 5]>(), any::<u8>(), -0x80_0000..=0x7F_FFFF).prop_map(|(words, fraction_lost, lost)| {
            ReportBlock {
                source: words[0],
                fraction_lost,
                cumulative_lost: lost,
                highest_sequence_number: words[1],
                jitter: words[2],
                last_sender_report: words[3],
                delay_since_last_sender_report: words[4],
            }
        })
    }

    proptest! {
        #[test]
        fn reports_are_read_as_they_are_written(
            sender: u32, ntp_time: u64, words: [u32; 3], blocks in prop::collection::vec(block(), 0..35),
        ) {
            let [rtp_timestamp, packets, payload_bytes] = words;
            let figures = SenderFigures { ntp_time: NtpTime(ntp_time), rtp_timestamp, packets, payload_bytes };
            let mut bytes = Vec::new();
            append_sender_report(sender, &figures, &blocks, &mut bytes);
            append_receiver_report(sender, &blocks, &mut bytes);
            let mut compound = Compound::new(&bytes);
            let first = &blocks[..blocks.len().min(31)];
            let Some(Ok(Packet::SenderReport(report))) = compound.next() else { panic!("no sender report") };
            prop_assert_eq!((report.sender, report.figures), (sender, figures));
            prop_assert_eq!(report.blocks.collect::<Vec<_>>(), first);
            let Some(Ok(Packet::ReceiverReport(report))) = compound.next() else { panic!("no report") };
            prop_assert_eq!(report.sender, sender);
            prop_assert_eq!(report.blocks.collect::<Vec<_>>(), first);
            prop_assert!(compound.next().is_none());
        }
    }

    #[test]
    fn fewer_blocks_than_announced_are_malformed() {
        assert!(Compound::new(&[0x81, 201, 0, 1, 0, 0, 0, 1]).next().unwrap().is_err());
    }
}
