//! What is known of one PID beside its continuity.

use crate::clock::{PcrTrack, StreamTime};
use crate::counts::PidCounts;
use crate::packet::{PACKET_LENGTH, Packet};
use crate::section::{Assembler, Section};
use crate::stream_type::Codec;
use crate::tables::Watch;

/// A place in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// How many packets came before it.
    pub packet: u64,
    /// How many bytes came before its packet.
    pub byte: u64,
    /// On which PID.
    pub pid: u16,
    /// Time since the first clock reference; `None` before that.
    pub time: Option<StreamTime>,
}

/// The last time stamp of an elementary stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub(crate) ticks: u64,
    pub(crate) time: StreamTime,
    pub(crate) epoch: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) counts: PidCounts,
    /// The PID carries sections.
    pub(crate) sections: Option<Box<Assembler>>,
    pub(crate) pcr: Option<Box<PcrTrack>>,
    /// A program map names the PID.
    pub(crate) codec: Option<Codec>,
    /// Decoding its program begins here.
    pub(crate) needed: bool,
    /// Its bytes are kept for a caller.
    pub(crate) is_kept: bool,
    pub(crate) is_pmt: bool,
    pub(crate) is_scrambled: bool,
    pub(crate) stamp: Option<Stamp>,
    pub(crate) stamps: Option<Watch>,
    pub(crate) first_random_access: Option<Mark>,
    /// How many packets there were when they were last looked for.
    pub(crate) packets_seen: u64,
    pub(crate) presence: Watch,
    /// The last packet before the piece under way.
    pub(crate) last: Option<Box<[u8; PACKET_LENGTH]>>,
    /// What was lost in the whole stream by the last packet that sections were read from.
    pub(crate) losses: u64,
}

impl Record {
    /// Whether a packet under the counter of the one before it is no sign of a loss: its table was written again, and the
    /// counter with it. A loss would be of exactly 15 packets of tables, and of none of any other PID: nothing else has been
    /// lost since, when `losses` are counted by now. SRS writes PAT and PMT so when sound appears.
    pub(crate) fn is_rewritten(&self, packet: Packet<'_>, before: Packet<'_>, losses: u64) -> bool {
        self.sections.is_some()
            && self.losses == losses
            && whole_section(packet)
                .zip(whole_section(before))
                .is_some_and(|(section, before)| section.is_changed_from(before))
    }
}

/// The section that begins and ends in a packet.
fn whole_section(packet: Packet<'_>) -> Option<Section<'_>> {
    if packet.header().payload_unit_start() { Section::whole_in(packet.payload()) } else { None }
}
