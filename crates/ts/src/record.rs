//! What is known of one PID beside its continuity.

use crate::clock::{PcrTrack, StreamTime};
use crate::counts::PidCounts;
use crate::packet::PACKET_LENGTH;
use crate::section::Assembler;
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
}
