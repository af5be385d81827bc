//! A service that plays.

use super::programme::{PACKET, Player};
use crate::publisher::Publisher;
use crate::stream::{Kind, Packet};
use crate::worker::{Source, Worker};
use std::sync::atomic::Ordering;
use std::time::Duration;
use weir_metrics::Moment;
use weir_shard::{SessionId, Shard};
use weir_ts::remux::shift;
use weir_web::{CHUNK_END, begin_chunk};

/// From one piece of the stream to the next.
const TICK: Duration = Duration::from_millis(10);
/// Packets of one piece at the most, after a pause of the thread.
const PIECE: u64 = 4_096;

/// A service that plays.
#[derive(Debug)]
pub(crate) struct Tuner {
    station: usize,
    publisher: Publisher,
    player: Player,
    began: Moment,
    /// Packets that were played.
    played: u64,
    next: Moment,
    piece: Vec<u8>,
}

/// A reader comes to a service: the tuner is opened on this worker unless it plays already.
pub(crate) fn attend(station: usize, worker: &mut Worker, now: Moment) {
    let settings = worker.settings().clone();
    let Some(tuned) = settings.tuners.as_ref().map(|tuners| &tuners.stations[station]) else { return };
    settings.registry.attend(&tuned.audience);
    if let Some(publisher) = Publisher::claim(&tuned.name, None, remake, worker, now) {
        let player = Player::new(&tuned.programme);
        let (played, piece) = (0, Vec::new());
        worker.sources.push(Box::new(Tuner {
            station,
            publisher,
            player,
            began: now,
            played,
            next: next_tick(now),
            piece,
        }));
    }
}

/// A reader leaves a service; a tuner without readers closes at its next tick.
pub(crate) fn leave(station: usize, worker: &Worker) {
    if let Some(tuners) = &worker.settings().tuners {
        tuners.stations[station].audience.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Plays what is due on this worker. Says when to call again.
pub(crate) fn play_due(shard: &mut Shard<Worker>, now: Moment) -> Option<Moment> {
    let worker = &mut shard.world;
    let next = worker.sources.iter().map(|source| source.due()).min()?;
    if next > now {
        return Some(next);
    }
    let mut wakes = Vec::new();
    let mut open = Vec::with_capacity(worker.sources.len());
    for source in std::mem::take(&mut worker.sources) {
        if source.due() > now {
            open.push(source);
        } else {
            open.extend(source.play(worker, now, &mut wakes));
        }
    }
    worker.sources = open;
    let next = worker.sources.iter().map(|source| source.due()).min();
    shard.wake_all(wakes);
    next
}

/// The first tick after `now`: one grid for all tuners, so that a thread wakes once for all of its own.
fn next_tick(now: Moment) -> Moment {
    let tick = TICK.as_nanos() as u64;
    Moment::from_nanos((now.as_nanos() / tick + 1) * tick)
}

impl Source for Tuner {
    fn due(&self) -> Moment {
        self.next
    }

    fn play(
        mut self: Box<Self>,
        worker: &mut Worker,
        now: Moment,
        wakes: &mut Vec<SessionId>,
    ) -> Option<Box<dyn Source>> {
        let settings = worker.settings().clone();
        let audience = settings.tuners.as_ref().map(|tuners| &tuners.stations[self.station].audience);
        let unattended = audience.is_none_or(|audience| {
            audience.load(Ordering::Relaxed) == 0 && self.publisher.is_unattended(worker, audience)
        });
        if unattended {
            wakes.extend(self.publisher.end(worker, now));
            return None;
        }
        wakes.extend(self.play_until(worker, now));
        Some(self)
    }
}

impl Tuner {
    /// Plays up to now. Says which readers have to be woken.
    fn play_until(&mut self, worker: &mut Worker, now: Moment) -> Vec<SessionId> {
        let due = self.player.due(now.since(self.began));
        while self.played < due {
            let packets = (due - self.played).min(PIECE);
            self.played += packets;
            let packet = self.piece(packets as usize);
            // Faults end links; a tuner has none.
            let _ = self.publisher.take(packet, None, worker, now);
        }
        self.publisher.release(worker, now);
        self.next = next_tick(now);
        self.publisher.flush(worker)
    }

    /// The next packets of the stream.
    fn piece(&mut self, packets: usize) -> Packet {
        self.piece.clear();
        let player = &mut self.player;
        frame(packets, packets * PACKET, &mut self.piece, |piece| player.play(packets, piece))
    }
}

/// Packets as links want them: with the framing of HTTP's chunked coding around them (RFC 9112, section 7.1)
/// for those that do.
fn frame(packets: usize, length: usize, piece: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) -> Packet {
    begin_chunk(length, piece);
    let before = piece.len();
    fill(piece);
    piece.extend_from_slice(CHUNK_END);
    Packet::units(Kind::Transport, packets, &piece[..], (before, CHUNK_END.len()))
}

/// A packet, or a part of one, as links want it, its times moved by `by` microseconds.
pub(crate) fn remake(packet: &Packet, by: i64) -> Packet {
    if by == 0 && !packet.is_bare() {
        return packet.clone();
    }
    let mut piece = Vec::with_capacity(packet.bare().len() + 16);
    frame(packet.units as usize, packet.bare().len(), &mut piece, |piece| {
        let begin = piece.len();
        piece.extend_from_slice(packet.bare());
        if packet.units > 0 && by != 0 {
            let (packets, _) = piece[begin..].as_chunks_mut::<PACKET>();
            packets.iter_mut().for_each(|packet| shift(packet, by * 27));
        }
    })
}
