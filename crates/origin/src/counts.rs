//! What the origin sent and received, to the byte and the unit: the truth that tests compare with.

use crate::stream::{Kind, Packet};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;

/// Units of each kind, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitCounts {
    /// Video units.
    pub video: u64,
    /// Audio units.
    pub audio: u64,
    /// Other media units.
    pub data: u64,
    /// Packets of a transport stream.
    pub transport: u64,
    /// Codec settings, metadata and their like.
    pub setup: u64,
    /// Bytes of all these, without the protocol's framing.
    pub payload_bytes: u64,
    /// Bytes of all these, with the protocol's framing.
    pub framed_bytes: u64,
}

impl UnitCounts {
    /// Media units of all kinds.
    pub fn units(&self) -> u64 {
        self.video + self.audio + self.data + self.transport
    }

    /// Packets of all kinds, settings included.
    pub fn packets(&self) -> u64 {
        self.units() + self.setup
    }

    pub(crate) fn count(&mut self, packet: &Packet) {
        self.count_part(packet, 0..packet.len(), packet.len());
    }

    /// Counts the units that end in a part of a packet, which takes `length` bytes on this link.
    pub(crate) fn count_part(&mut self, packet: &Packet, part: Range<usize>, length: usize) {
        let cell = match packet.kind {
            Kind::Video => &mut self.video,
            Kind::Audio => &mut self.audio,
            Kind::Data => &mut self.data,
            Kind::Transport => &mut self.transport,
            Kind::Setup => &mut self.setup,
        };
        let whole = u64::from(packet.units);
        let (from, to) = (packet.units_before(part.start, length), packet.units_before(part.end, length));
        // Shares of the whole that add up to it, however often the packet is cut.
        let share = |bytes: u64| {
            let upto = |units: u64| (bytes * units).checked_div(whole).unwrap_or(0);
            upto(to) - upto(from)
        };
        *cell += to - from;
        self.payload_bytes += share(u64::from(packet.payload));
        self.framed_bytes += share(length as u64);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.video += other.video;
        self.audio += other.audio;
        self.data += other.data;
        self.transport += other.transport;
        self.setup += other.setup;
        self.payload_bytes += other.payload_bytes;
        self.framed_bytes += other.framed_bytes;
    }
}

/// One viewer's share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewerCounts {
    /// Its number, from 1, in the order of requests.
    pub number: u64,
    /// Its address.
    pub peer: SocketAddr,
    /// The stream that it watches.
    pub stream: Arc<str>,
    /// Whether it is still there.
    pub present: bool,
    /// What the link took of the stream, whole units.
    pub sent: UnitCounts,
    /// Everything that its link was given, the dialogue included; without TLS.
    pub link_bytes: u64,
    /// Units and settings that it was not sent because it was too slow.
    pub skipped: u64,
    /// Their bytes, framed.
    pub skipped_bytes: u64,
    /// Packets that a fault kept from it.
    pub dropped: UnitCounts,
}

/// Viewers together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DepartedViewers {
    /// How many.
    pub viewers: u64,
    /// What their links took.
    pub sent: UnitCounts,
    /// Units and settings that they were not sent because they were too slow.
    pub skipped: u64,
}

impl DepartedViewers {
    pub(crate) fn add(&mut self, viewer: &ViewerCounts) {
        self.viewers += 1;
        self.sent.add(&viewer.sent);
        self.skipped += viewer.skipped;
    }

    fn merge(&mut self, other: &Self) {
        self.viewers += other.viewers;
        self.sent.add(&other.sent);
        self.skipped += other.skipped;
    }
}

/// One stream's share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamCounts {
    /// Its name.
    pub name: Arc<str>,
    /// How often it was published.
    pub publications: u64,
    /// Whether it is being published.
    pub live: bool,
    /// What its publishers sent.
    pub received: UnitCounts,
    /// What of it came before anything decodable, and was not passed on.
    pub undecodable: UnitCounts,
    /// Packets that a fault kept from all viewers.
    pub dropped: UnitCounts,
}

impl StreamCounts {
    pub(crate) fn new(name: Arc<str>) -> Self {
        let none = UnitCounts::default();
        Self { name, publications: 0, live: false, received: none, undecodable: none, dropped: none }
    }
}

/// What the origin has done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Links accepted.
    pub links: u64,
    /// Viewers, in the order of their numbers. Of those that are gone as many as
    /// [`OriginConfig::departed_kept`](crate::OriginConfig::departed_kept) says.
    pub viewers: Vec<ViewerCounts>,
    /// The other viewers that are gone, together.
    pub departed: DepartedViewers,
    /// Streams, by name.
    pub streams: Vec<StreamCounts>,
}

impl Counts {
    /// What all viewers were sent.
    pub fn sent(&self) -> UnitCounts {
        self.all().sent
    }

    /// All viewers together.
    pub fn all(&self) -> DepartedViewers {
        self.viewers.iter().fold(self.departed, |mut sum, viewer| {
            sum.add(viewer);
            sum
        })
    }

    /// How many viewers are there now.
    pub fn present(&self) -> usize {
        self.viewers.iter().filter(|viewer| viewer.present).count()
    }

    /// The viewer at an address.
    pub fn viewer(&self, peer: SocketAddr) -> Option<&ViewerCounts> {
        self.viewers.iter().rev().find(|viewer| viewer.peer == peer)
    }

    /// The stream of a name.
    pub fn stream(&self, name: &str) -> Option<&StreamCounts> {
        self.streams.iter().find(|stream| &*stream.name == name)
    }

    /// Puts another worker's counts to these.
    pub(crate) fn merge(&mut self, other: Self) {
        self.links += other.links;
        self.viewers.extend(other.viewers);
        self.viewers.sort_by_key(|viewer| viewer.number);
        self.departed.merge(&other.departed);
        for stream in other.streams {
            match self.streams.iter_mut().find(|mine| mine.name == stream.name) {
                Some(mine) => {
                    mine.publications += stream.publications;
                    mine.live |= stream.live;
                    mine.received.add(&stream.received);
                    mine.undecodable.add(&stream.undecodable);
                    mine.dropped.add(&stream.dropped);
                }
                None => self.streams.push(stream),
            }
        }
        self.streams.sort_by(|a, b| a.name.cmp(&b.name));
    }
}

/// What bulk streams have carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BulkCounts {
    /// Streams that were asked for.
    pub streams: u64,
    /// Bytes received, requests not among them.
    pub received: u64,
    /// Bytes that the kernel has taken to send, answers not among them.
    pub sent: u64,
}

impl BulkCounts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.streams += other.streams;
        self.received += other.received;
        self.sent += other.sent;
    }
}
