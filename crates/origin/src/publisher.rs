//! One publication of a stream, whatever protocol it comes in by: the name is taken, packets go into
//! the log of this worker and to the other workers, faults of the stream act on the way.

use crate::fault::{Gate, GateFront, GateUnit, LinkEnd, Script, Subject};
use crate::hls::Segmenter;
use crate::pictures::Pictures;
use crate::stream::{Opening, Packet, Remake};
use crate::worker::{Arrival, StreamKey, Worker};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use weir_metrics::{BitRate, Moment};
use weir_shard::{SessionId, clock};

/// The faults of a stream, and the packets that they hold back.
type StreamFaults = (Script, Gate<Option<Arc<Opening>>>);

#[derive(Debug)]
pub(crate) struct Publisher {
    name: Arc<str>,
    /// Whether somebody sends it, and not the origin itself.
    is_peer: bool,
    publication: u64,
    stream: StreamKey,
    /// Faults of the publisher's connection.
    script: Option<Box<Script>>,
    /// Faults of the stream.
    gate: Option<Box<StreamFaults>>,
    remake: Remake,
    /// What the other workers have not been sent yet.
    shipment: Vec<Arrival>,
    /// Makes segments of it, if it is served by HLS.
    segmenter: Option<Box<Segmenter>>,
    seen_video_keyframe: bool,
    /// The version of the decoder settings that viewers were told of last.
    described: Option<u64>,
    heard: Moment,
}

impl Publisher {
    /// Takes the name; `None` when another one has it. `number` is the publisher's, if it is a
    /// peer. [`Self::flush`] follows.
    pub(crate) fn claim(
        name: &Arc<str>,
        number: Option<u64>,
        remake: Remake,
        worker: &mut Worker,
        now: Moment,
    ) -> Option<Self> {
        let settings = worker.settings().clone();
        let publication = settings.registry.claim(name)?;
        if number.is_some() {
            worker.add_publisher();
        }
        let stream = worker.begin(name, publication);
        worker.announce(name, publication, number.is_some());
        let script = number.and_then(|number| Script::of(&settings.faults, Subject::Publisher(number)));
        let gate = Script::of(&settings.faults, Subject::Stream(name.clone()))
            .map(|script| Box::new((*script, Gate::new())));
        let segmenter = settings
            .hls
            .as_ref()
            .filter(|_| number.is_some())
            .map(|shelves| Box::new(Segmenter::new(shelves, name, worker, now, clock::wall_nanos())));
        Some(Self {
            name: name.clone(),
            is_peer: number.is_some(),
            publication,
            stream,
            script,
            gate,
            remake,
            shipment: Vec::new(),
            segmenter,
            seen_video_keyframe: false,
            described: None,
            heard: now,
        })
    }

    /// Takes the next packet.
    pub(crate) fn take(
        &mut self,
        packet: Packet,
        opening: Option<Arc<Opening>>,
        worker: &mut Worker,
        now: Moment,
    ) -> Option<LinkEnd> {
        use crate::stream::Kind;
        self.heard = now;
        let counts = worker.stream_counts(self.stream);
        counts.received.count(&packet);
        if packet.kind == Kind::Video {
            self.seen_video_keyframe |= packet.keyframe;
            if !self.seen_video_keyframe {
                counts.undecodable.count(&packet);
                return None;
            }
        }
        if let Some(opening) = &opening
            && self.described != Some(opening.version())
        {
            self.described = Some(opening.version());
            let pictures = Pictures::of(opening, &packet);
            worker.settings().registry.describe(&self.name, self.publication, pictures);
        }
        let cut = self.script.as_mut().and_then(|script| {
            let cut = script.rule(&packet, now).cut;
            worker.note(script.take_effects());
            cut
        });
        if cut.is_some() {
            return cut;
        }
        let Some(gate) = &mut self.gate else {
            self.publish(Arrival { arrived: now, packet, opening }, worker);
            return None;
        };
        let (script, gate) = &mut **gate;
        let dropped = &mut worker.stream_counts(self.stream).dropped;
        script.rule_each(&packet, now, &mut |part, ruling| {
            if ruling.dropped {
                dropped.count(&part);
            }
            let owner = match &opening {
                Some(opening) if ruling.shift != 0 => Some(Arc::new(opening.moved(ruling.shift))),
                opening => opening.clone(),
            };
            let packet = (self.remake)(&part, ruling.shift);
            gate.push(GateUnit { packet, owner }, &ruling, now);
        });
        worker.note(script.take_effects());
        self.release(worker, now);
        None
    }

    /// Lets through what a fault held back until now.
    pub(crate) fn release(&mut self, worker: &mut Worker, now: Moment) {
        let Some(mut gate) = self.gate.take() else { return };
        while let GateFront::Units(units) = gate.1.front(Some(&mut gate.0), now) {
            for _ in 0..units {
                if let Some(GateUnit { packet, owner }) = gate.1.pop() {
                    self.publish(Arrival { arrived: now, packet, opening: owner }, worker);
                }
            }
        }
        worker.note(gate.0.take_effects());
        self.gate = Some(gate);
    }

    fn publish(&mut self, arrival: Arrival, worker: &mut Worker) {
        if let Some(segmenter) = &mut self.segmenter {
            segmenter.take(&arrival.packet, arrival.arrived, worker);
        }
        if worker.has_peers() {
            self.shipment.push(arrival.clone());
        }
        worker.push(self.stream, arrival);
    }

    /// Passes on to the other workers what came, and returns which viewers have to be woken. To be called after
    /// each batch.
    #[must_use]
    pub(crate) fn flush(&mut self, worker: &mut Worker) -> Vec<SessionId> {
        if !self.shipment.is_empty() {
            worker.ship(self.publication, std::mem::take(&mut self.shipment));
        }
        worker.take_wakes(self.stream)
    }

    /// Whether the connection has to end now, because of a fault.
    pub(crate) fn cut(&mut self, worker: &mut Worker, now: Moment) -> Option<LinkEnd> {
        let script = self.script.as_mut()?;
        let cut = script.cut(now);
        worker.note(script.take_effects());
        cut
    }

    /// Whether a fault keeps back the next acknowledgement, of a protocol that acknowledges no single packet.
    pub(crate) fn withholds_next(&mut self, worker: &mut Worker, now: Moment) -> bool {
        let Some(script) = &mut self.script else { return false };
        let withholds = script.withholds_next(now);
        worker.note(script.take_effects());
        withholds
    }

    /// How fast the publisher is read from, if a fault says so.
    pub(crate) fn read_rate(&self) -> Option<BitRate> {
        self.script.as_ref()?.read_rate()
    }

    /// Notes that it is not read from before `until`: until then its silence is ours.
    pub(crate) fn paced(&mut self, until: Moment, worker: &mut Worker, now: Moment) {
        self.heard = until;
        if let Some(script) = &mut self.script {
            script.paced(now);
            worker.note(script.take_effects());
        }
    }

    /// When [`Self::release`], [`Self::cut`] and [`Self::is_silent`] have to be asked again.
    pub(crate) fn deadline(&mut self, worker: &Worker, now: Moment) -> Moment {
        let mut deadline = self.heard + worker.settings().patience.publisher;
        if let Some(gate) = &mut self.gate
            && let GateFront::Wait(Some(at)) = gate.1.front(Some(&mut gate.0), now)
        {
            deadline = deadline.min(at);
        }
        let cut = self.script.as_ref().and_then(|script| script.next_cut());
        cut.map_or(deadline, |cut| deadline.min(cut))
    }

    /// Whether it has sent nothing for too long.
    pub(crate) fn is_silent(&self, worker: &Worker, now: Moment) -> bool {
        now >= self.heard + worker.settings().patience.publisher
    }

    /// Ends the publication and gives the name free. What a fault still holds goes out first. Says which
    /// viewers have to be woken.
    #[must_use]
    pub(crate) fn end(mut self, worker: &mut Worker, now: Moment) -> Vec<SessionId> {
        if let Some(gate) = self.gate.take() {
            let (_, mut gate) = *gate;
            gate.finish();
            while gate.len() > 0 {
                if let Some(GateUnit { packet, owner }) = gate.pop() {
                    self.publish(Arrival { arrived: now, packet, opening: owner }, worker);
                }
            }
        }
        let mut wakes = self.flush(worker);
        let settings = worker.settings().clone();
        if let Some((segmenter, shelves)) = self.segmenter.take().zip(settings.hls.as_ref()) {
            segmenter.end(shelves);
        }
        if self.is_peer {
            worker.remove_publisher();
        }
        worker.end(self.publication);
        worker.announce_end(self.publication);
        worker.settings().registry.release(&self.name, self.publication);
        wakes.extend(worker.take_wakes(self.stream));
        wakes
    }

    /// Whether no reader is left; the name is free then, and [`Self::end`] follows.
    pub(crate) fn is_unattended(&self, worker: &Worker, audience: &AtomicU64) -> bool {
        worker.settings().registry.release_unattended(&self.name, self.publication, audience)
    }
}
