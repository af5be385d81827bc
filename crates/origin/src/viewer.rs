//! One viewer of a stream, whatever protocol it is sent in: where it stands, when it is sent what
//! waits, what faults do to it.

use crate::counts::UnitCounts;
use crate::fault::{Gate, GateFront, GateUnit, LinkEnd, Ruling, Script, Subject};
use crate::stream::{BATCH, Cursor, Outlet, Packet, View, WriteOutcome};
use crate::worker::{CountKey, StreamKey, Worker};
use std::io::IoSlice;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use weir_metrics::Moment;
use weir_shard::{Context, Outgoing};

/// Units that faults may hold back for one viewer. What is more waits in the stream's log, and is
/// skipped there like everything that a slow viewer does not take.
const HELD_BACK: usize = 65_536;
/// Turns that a merge period is divided into: viewers of one turn are sent to in one go.
const TURNS: u64 = 16;

/// How long packets wait on their way to another server: its viewers will wait once more.
const FORWARD_MERGE: Duration = Duration::from_millis(40);

/// Frames a packet otherwise than its stream does: for another link, at a timestamp that is later by
/// the given microseconds. `None`: this link has no use for the packet.
pub(crate) type Rewrite = Box<dyn Fn(&Packet, i64) -> Option<Packet>>;

/// Puts framed packets onto something else than the link. How many of their bytes it took.
pub(crate) type Sink = Box<dyn FnMut(&[IoSlice<'_>], &mut Outgoing<'_>) -> usize>;

/// The kind of viewer.
pub(crate) enum Watcher {
    /// A viewer, counted, with its number and address.
    /// `said` bytes went over its link before, which wants so much of each packet.
    Viewer { number: u64, peer: SocketAddr, said: u64, view: View },
    /// Another server that the stream is forwarded to.
    Forward,
}

pub(crate) struct Viewer {
    stream: StreamKey,
    counts: Option<CountKey>,
    cursor: Cursor,
    outlet: Outlet,
    /// The way for packets that cannot go from the log to the link as they are.
    faults: Option<Box<ViewerFaults>>,
    publication: u64,
    /// Whether the viewer was sent the end of this publication.
    ended: bool,
    /// Whether the stream wakes it at the next keyframe.
    listed: bool,
    merge: Duration,
    phase: Duration,
    next_turn: Moment,
    /// Since when the link takes nothing.
    blocked: Option<Moment>,
}

struct ViewerFaults {
    script: Option<Box<Script>>,
    gate: Gate<()>,
    rewrite: Rewrite,
    /// Where packets go, if not onto the link.
    sink: Option<Sink>,
}

/// How things stand after [`Viewer::pump`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It goes on as before.
    Same,
    /// The stream's next publication began.
    Begun,
    /// The publication is over, and everything of it was sent.
    Ended,
    /// A fault ends the connection.
    LinkEnd(LinkEnd),
    /// The viewer takes nothing any more.
    Stuck,
}

impl Viewer {
    /// A viewer comes to a stream. Packets go through `rewrite` if it is given, or if faults want it.
    pub(crate) fn join(
        watcher: &Watcher,
        name: &Arc<str>,
        rewrite: Option<Rewrite>,
        plain: impl FnOnce() -> Rewrite,
        context: &mut Context<'_, Worker>,
    ) -> Self {
        let id = context.id();
        let worker = &mut *context.world;
        let stream = worker.stream_of(name);
        worker.join(stream, id);
        let settings = worker.settings().clone();
        let terms = worker.stream(stream).terms;
        let (counts, script, merge, number, view) = match *watcher {
            Watcher::Viewer { number, peer, said, view } => {
                let script = Script::of(&settings.faults, Subject::Viewer(number));
                let script = script.filter(|script| script.rules_units());
                let counts = worker.count_viewer(number, peer, name);
                worker.viewer_counts(counts).link_bytes = said;
                (Some(counts), script, terms.merge, number, view)
            }
            Watcher::Forward => (None, None, terms.merge.min(FORWARD_MERGE), 0, View::Framed),
        };
        let faults = match (script, rewrite) {
            (None, None) => None,
            (script, rewrite) => {
                let rewrite = rewrite.unwrap_or_else(plain);
                Some(Box::new(ViewerFaults { script, gate: Gate::new(), rewrite, sink: None }))
            }
        };
        let stream_now = worker.stream(stream);
        Self {
            stream,
            counts,
            cursor: Cursor::new(&stream_now.log),
            outlet: Outlet::new(view),
            faults,
            publication: stream_now.publication,
            // A viewer that comes between two publications has not missed an end.
            ended: !stream_now.live,
            listed: false,
            merge,
            phase: phase(number, merge),
            next_turn: Moment::default(),
            blocked: None,
        }
    }

    /// Sends what waits, until the link takes no more. To be called at every event that concerns the
    /// stream or the link.
    pub(crate) fn pump(&mut self, context: &mut Context<'_, Worker>) -> Standing {
        let stream = context.world.stream(self.stream);
        let begun = stream.live && stream.publication != self.publication;
        if begun {
            self.publication = stream.publication;
            self.ended = false;
            self.cursor.renew(&stream.log);
        }
        if let Some(cut) = self.overdue_cut(context) {
            return Standing::LinkEnd(cut);
        }
        let drained = if self.faults.is_some() {
            match self.pump_detour(context) {
                Ok(drained) => drained,
                Err(cut) => return Standing::LinkEnd(cut),
            }
        } else {
            self.pump_straight(context)
        };
        self.book_lost(context.world);
        self.wait_for_keyframe(context);
        if begun {
            return Standing::Begun;
        }
        let stream = context.world.stream(self.stream);
        if drained && !stream.live && !self.ended && self.cursor.is_done(&stream.log) {
            self.ended = true;
            return Standing::Ended;
        }
        let patience = context.world.settings().patience.viewer;
        if self.blocked.is_some_and(|since| context.now >= since + patience) {
            return Standing::Stuck;
        }
        Standing::Same
    }

    /// From the log to the link. Says whether everything went.
    fn pump_straight(&mut self, context: &mut Context<'_, Worker>) -> bool {
        let now = context.now;
        loop {
            let (worker, mut link) = context.split();
            let (log, joined) = worker.stream_to_send(self.stream);
            self.cursor.settle(log, now);
            let mut sink = |slices: &[IoSlice<'_>]| link.write(slices);
            let (written, offered) = self.outlet.write_next(log, &mut self.cursor, joined, &mut sink);
            if !self.book_sent(worker, &written, now) {
                return false;
            }
            if offered < BATCH {
                return true;
            }
        }
    }

    /// From the log through the gate, and from there to the link.
    fn pump_detour(&mut self, context: &mut Context<'_, Worker>) -> Result<bool, LinkEnd> {
        let now = context.now;
        let Some(mut faults) = self.faults.take() else { return Ok(true) };
        if self.blocked.is_none() {
            self.fill(&mut faults, context.world, now);
        }
        let outcome = self.empty(&mut faults, context);
        if let Some(script) = &mut faults.script {
            context.world.note(script.take_effects());
        }
        self.faults = Some(faults);
        outcome
    }

    fn fill(&mut self, faults: &mut ViewerFaults, worker: &mut Worker, now: Moment) {
        let mut dropped = UnitCounts::default();
        let log = &worker.stream(self.stream).log;
        while faults.gate.len() < HELD_BACK {
            self.cursor.settle(log, now);
            let mut next = [None; BATCH];
            let gathered = self.cursor.gather(log, &mut next);
            let ViewerFaults { script, gate, rewrite, .. } = &mut *faults;
            let mut on = |packet: Packet, ruling: Ruling| {
                if ruling.dropped {
                    dropped.count(&packet);
                }
                if let Some(packet) = rewrite(&packet, ruling.shift) {
                    gate.push(GateUnit { packet, owner: () }, &ruling, now);
                }
            };
            for packet in next[..gathered].iter().flatten() {
                match script {
                    Some(script) => script.rule_each(packet, now, &mut on),
                    None => on((*packet).clone(), Ruling::default()),
                }
            }
            self.cursor.advance(log, gathered);
            if gathered < BATCH {
                break;
            }
        }
        let stream = worker.stream(self.stream);
        if !stream.live && self.cursor.is_done(&stream.log) {
            faults.gate.finish();
        }
        if let Some(counts) = self.counts {
            worker.viewer_counts(counts).dropped.add(&dropped);
        }
    }

    fn empty(
        &mut self,
        faults: &mut ViewerFaults,
        context: &mut Context<'_, Worker>,
    ) -> Result<bool, LinkEnd> {
        let now = context.now;
        loop {
            let ready = match faults.front(now) {
                GateFront::Units(ready) => ready.min(BATCH),
                GateFront::LinkEnd(cut) if self.outlet.cut().is_none() => return Err(cut),
                GateFront::LinkEnd(_) | GateFront::Wait(_) => 0,
            };
            let mut next = [None; BATCH];
            let ViewerFaults { gate, sink, .. } = &mut *faults;
            next.iter_mut().zip(gate.units().take(ready)).for_each(|(place, unit)| {
                *place = Some(&unit.packet);
            });
            let (worker, mut link) = context.split();
            let written = self.outlet.write(&next[..ready], &mut |slices| match sink {
                Some(sink) => sink(slices, &mut link),
                None => link.write(slices),
            });
            for _ in 0..written.packets {
                faults.gate.pop();
            }
            if !self.book_sent(worker, &written, now) {
                return Ok(false);
            }
            if ready == 0 {
                return Ok(faults.gate.len() == 0);
            }
        }
    }

    fn overdue_cut(&mut self, context: &mut Context<'_, Worker>) -> Option<LinkEnd> {
        let script = self.faults.as_mut()?.script.as_mut()?;
        let cut = script.cut(context.now)?;
        context.world.note(script.take_effects());
        Some(cut)
    }

    fn wait_for_keyframe(&mut self, context: &mut Context<'_, Worker>) {
        if self.cursor.is_waiting() && !self.listed {
            self.listed = true;
            let id = context.id();
            context.world.wait(self.stream, id);
        }
    }

    /// Counts what was written; says whether the link took everything.
    fn book_sent(&mut self, worker: &mut Worker, written: &WriteOutcome, now: Moment) -> bool {
        if let Some(key) = self.counts {
            let counts = worker.viewer_counts(key);
            counts.sent.add(&written.sent);
            counts.link_bytes += written.bytes as u64;
        }
        if written.whole {
            self.blocked = None;
        } else if written.bytes > 0 {
            self.blocked = Some(now);
        } else {
            self.blocked.get_or_insert(now);
        }
        written.whole
    }

    fn book_lost(&mut self, worker: &mut Worker) {
        let lost = self.cursor.take_lost();
        if let Some(key) = self.counts
            && lost.units > 0
        {
            let counts = worker.viewer_counts(key);
            counts.skipped += lost.units;
            counts.skipped_bytes += lost.bytes;
        }
    }

    /// Sends something of the protocol's own, at a packet boundary.
    pub(crate) fn send(&mut self, words: &[u8], context: &mut Context<'_, Worker>) {
        let mut bytes = words.len();
        let (rest, sent) = self.outlet.send_rest(|rest| context.send(rest));
        bytes += rest;
        context.send(words);
        if let Some(counts) = self.counts {
            let counts = context.world.viewer_counts(counts);
            counts.sent.add(&sent);
            counts.link_bytes += bytes as u64;
        }
    }

    /// Packets that are rewritten for this viewer go this way from now on, and not onto the link.
    pub(crate) fn send_by(&mut self, sink: Sink) {
        if let Some(faults) = &mut self.faults {
            faults.sink = Some(sink);
        }
    }

    /// Goes on, as a viewer does that comes now: what the stream brought since it was pumped last is over, and not lost.
    pub(crate) fn resume(&mut self, worker: &Worker) {
        self.cursor = Cursor::new(&worker.stream(self.stream).log);
        // Its link was not written to meanwhile.
        self.blocked = None;
    }

    /// Bytes that went over its link; zero for links that do not count them.
    pub(crate) fn link_bytes(&self, worker: &mut Worker) -> u64 {
        self.counts.map_or(0, |counts| worker.viewer_counts(counts).link_bytes)
    }

    /// The stream woke it: it will have to ask to be woken again.
    pub(crate) fn woken(&mut self) {
        self.listed = false;
    }

    /// When [`Self::pump`] has to be called again if nothing happens before.
    pub(crate) fn deadline(&mut self, worker: &Worker, now: Moment) -> Option<Moment> {
        let stuck = self.blocked.map(|since| since + worker.settings().patience.viewer);
        let takes_turns = !self.merge.is_zero() && !self.ended && !self.cursor.is_waiting();
        let turn = (takes_turns && self.blocked.is_none()).then(|| {
            if self.next_turn <= now {
                self.next_turn = next_turn(now, self.merge, self.phase);
            }
            self.next_turn
        });
        let fault = self.faults.as_mut().and_then(|faults| {
            let cut = faults.script.as_ref().and_then(|script| script.next_cut());
            let wait = match faults.front(now) {
                GateFront::Wait(at) => at,
                GateFront::Units(_) | GateFront::LinkEnd(_) => None,
            };
            [cut, wait].into_iter().flatten().min()
        });
        [stuck, turn, fault].into_iter().flatten().min()
    }

    /// The viewer leaves.
    pub(crate) fn leave(self, context: &mut Context<'_, Worker>) {
        let id = context.id();
        context.world.leave(self.stream, id);
        if let Some(counts) = self.counts {
            context.world.depart(counts);
        }
    }
}

impl ViewerFaults {
    fn front(&mut self, now: Moment) -> GateFront {
        self.gate.front(self.script.as_deref_mut(), now)
    }
}

/// Where in the merge period a viewer has its turn: numbers that follow each other lie far apart,
/// and any many of them are spread evenly (the van der Corput sequence).
fn phase(number: u64, merge: Duration) -> Duration {
    let turn = (number % TURNS).reverse_bits() >> (u64::BITS - TURNS.ilog2());
    Duration::from_nanos(merge.as_nanos() as u64 / TURNS * turn)
}

/// The first turn after `now`.
fn next_turn(now: Moment, merge: Duration, phase: Duration) -> Moment {
    let (now, merge, phase) = (now.as_nanos(), merge.as_nanos() as u64, phase.as_nanos() as u64);
    let rounds = (now + merge - phase) / merge;
    Moment::from_nanos(rounds * merge + phase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_spread_evenly_over_the_merge_period() {
        let merge = Duration::from_millis(640);
        for n in [1, 2, 4, 8, 16] {
            let mut phases: Vec<_> = (0..n).map(|number| phase(number, merge)).collect();
            phases.sort_unstable();
            let gaps: Vec<_> = phases.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert!(gaps.iter().all(|gap| *gap == merge / n as u32), "{n}: {phases:?}");
        }
    }

    #[test]
    fn the_next_turn_is_ahead_and_at_most_a_period_away() {
        let merge = Duration::from_millis(350);
        for number in 0..70 {
            let phase = phase(number, merge);
            for now in [0, 1, 349_999_999, 350_000_000, 1_234_567_890] {
                let now = Moment::from_nanos(now);
                let turn = next_turn(now, merge, phase);
                assert!(turn > now && turn.since(now) <= merge, "{number} {now:?} {turn:?}");
            }
        }
    }
}
