//! Where one viewer stands in a stream.

use super::log::{Log, StreamVolume};
use super::packet::Packet;
use weir_metrics::Moment;

/// A viewer's position: at a keyframe first, with what must come before it; later packet by packet.
/// A viewer that has fallen too far behind is moved to a later keyframe.
#[derive(Debug)]
pub(crate) struct Cursor {
    place: CursorState,
    /// The version of the opening that was sent whole.
    opened: Option<u64>,
    /// What is still to be sent before the packet that the viewer stands at.
    preface: Option<Preface>,
    lost: StreamVolume,
}

/// An opening as this viewer is sent it.
#[derive(Debug)]
struct Preface {
    version: u64,
    packets: Box<[Packet]>,
    sent: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CursorState {
    /// Has just come and waits for a keyframe at or after this number.
    Waiting(u64),
    /// Was too slow; what passes before the next keyframe is lost to it.
    Lagging(Position),
    /// Is sent this packet next.
    At(Position),
}

/// A packet's number, and what of the stream came before it: its log may forget the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    number: u64,
    before: StreamVolume,
}

impl Position {
    fn of(log: &Log, number: u64) -> Self {
        Self { number, before: log.before(number) }
    }
}

impl Cursor {
    /// A viewer that comes now: at the cached keyframe, or waiting for the next one.
    pub(crate) fn new(log: &Log) -> Self {
        let cached = if log.history().gop_cache { log.last_keyframe() } else { None };
        let place = CursorState::Waiting(cached.unwrap_or_else(|| log.end()));
        Self { place, opened: None, preface: None, lost: StreamVolume::default() }
    }

    /// Takes the viewer to the stream's next publication. What it was not yet sent of this one is lost.
    pub(crate) fn renew(&mut self, log: &Log) {
        if let CursorState::At(position) | CursorState::Lagging(position) = self.place {
            self.lose(position, Position::of(log, log.end()));
        }
        self.place = CursorState::Waiting(log.end());
        self.preface = None;
        self.opened = None;
    }

    /// Finds the place to go on from: a keyframe for a viewer that waits for one or is too far behind.
    pub(crate) fn settle(&mut self, log: &Log, now: Moment) {
        match self.place {
            CursorState::Waiting(from) => {
                if let Some(keyframe) = log.keyframe_from(from) {
                    self.start(log, Position::of(log, keyframe));
                }
            }
            CursorState::At(position) if !log.is_stale(position.number, now) => {}
            CursorState::At(position) => match log.last_keyframe() {
                Some(keyframe) if keyframe > position.number => self.skip(log, position, keyframe),
                _ if position.number < log.start() => self.lag(log, position),
                // Late, but in the middle of the latest group: there is nowhere to skip to.
                _ => {}
            },
            CursorState::Lagging(position) => self.lag(log, position),
        }
    }

    fn lag(&mut self, log: &Log, position: Position) {
        match log.keyframe_from(position.number) {
            Some(keyframe) => self.skip(log, position, keyframe),
            None => {
                let end = Position::of(log, log.end());
                self.lose(position, end);
                self.place = CursorState::Lagging(end);
            }
        }
    }

    fn skip(&mut self, log: &Log, from: Position, keyframe: u64) {
        let position = Position::of(log, keyframe);
        self.lose(from, position);
        self.start(log, position);
    }

    fn start(&mut self, log: &Log, keyframe: Position) {
        let opening = log.get(keyframe.number).and_then(|entry| entry.opening.as_ref());
        let under_way = self.preface.take();
        self.preface = opening.filter(|opening| self.opened != Some(opening.version())).map(|opening| {
            let version = opening.version();
            let sent = under_way.filter(|other| other.version == version).map_or(0, |other| other.sent);
            Preface { version, packets: opening.packets().collect(), sent }
        });
        self.place = CursorState::At(keyframe);
    }

    fn lose(&mut self, from: Position, to: Position) {
        self.lost.units += to.before.units - from.before.units;
        self.lost.bytes += to.before.bytes - from.before.bytes;
    }

    /// The packet that comes next, if it is one of the log and nothing goes before it.
    pub(crate) fn number(&self) -> Option<u64> {
        match self.place {
            CursorState::At(position) if self.preface.is_none() => Some(position.number),
            _ => None,
        }
    }

    /// What comes next, in order; fills `next` and says how many.
    pub(crate) fn gather<'a>(&'a self, log: &'a Log, next: &mut [Option<&'a Packet>]) -> usize {
        let CursorState::At(position) = self.place else { return 0 };
        let preface = self.preface.iter().flat_map(|preface| &preface.packets[preface.sent..]);
        let packets = preface.chain(log.from(position.number).map(|entry| &entry.packet));
        next.iter_mut().zip(packets).map(|(place, packet)| *place = Some(packet)).count()
    }

    /// Notes that the first `packets` of the gathered packets are on their way.
    pub(crate) fn advance(&mut self, log: &Log, mut packets: usize) {
        let CursorState::At(position) = self.place else { return };
        if packets == 0 {
            return;
        }
        if let Some(preface) = &mut self.preface {
            let taken = packets.min(preface.packets.len() - preface.sent);
            preface.sent += taken;
            packets -= taken;
            if preface.sent == preface.packets.len() {
                self.opened = Some(preface.version);
                self.preface = None;
            }
        }
        self.place = CursorState::At(Position::of(log, position.number + packets as u64));
    }

    /// Whether the viewer waits for a keyframe.
    pub(crate) fn is_waiting(&self) -> bool {
        !matches!(self.place, CursorState::At(_))
    }

    /// Whether the viewer has been given everything that it will get of what the log holds.
    pub(crate) fn is_done(&self, log: &Log) -> bool {
        match self.place {
            CursorState::Waiting(_) | CursorState::Lagging(_) => true,
            CursorState::At(position) => position.number >= log.end(),
        }
    }

    /// Hands out what the viewer was not sent since the last call, because it was too slow.
    pub(crate) fn take_lost(&mut self) -> StreamVolume {
        std::mem::take(&mut self.lost)
    }
}
