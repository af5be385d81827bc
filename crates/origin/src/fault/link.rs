//! The faults of one accepted link, and of the viewer or publisher that it carries.

use super::script::{LinkEnd, Script, ScriptedAnswer};
use super::{Fault, LinkPhase, Subject};
use crate::worker::Worker;
use std::time::Duration;
use weir_metrics::Moment;

/// What goes wrong on a link before anything is sent over it, and when the link is ended.
#[derive(Debug)]
pub(crate) struct LinkFaults(Option<Box<Script>>);

impl LinkFaults {
    /// Those of link `number`.
    pub(crate) fn of(faults: &[Fault], number: u64) -> Self {
        Self(Script::of(faults, Subject::Link(number)))
    }

    /// The link was accepted.
    pub(crate) fn begin(&mut self, now: Moment) {
        if let Some(script) = &mut self.0 {
            script.begin(now);
        }
    }

    /// The scripted answer at a phase, for the link or for `who`, which asks with these credentials.
    pub(crate) fn answer(
        &mut self,
        phase: LinkPhase,
        who: Option<Subject>,
        offered: Option<&str>,
        worker: &mut Worker,
        now: Moment,
    ) -> Option<ScriptedAnswer> {
        let mut own = who.and_then(|who| Script::of(&worker.settings().faults, who));
        for script in [&mut self.0, &mut own].into_iter().flatten() {
            if let Some(answer) = script.answer(phase, offered, worker.present(), now) {
                worker.note(script.take_effects());
                return Some(answer);
            }
        }
        None
    }

    /// The latency that the origin asks for in its handshake.
    pub(crate) fn latency(&mut self, worker: &mut Worker, now: Moment) -> Option<Duration> {
        let script = self.0.as_mut()?;
        let latency = script.latency(now)?;
        worker.note(script.take_effects());
        Some(latency)
    }

    /// Whether the link has to be ended now.
    pub(crate) fn cut(&mut self, worker: &mut Worker, now: Moment) -> Option<LinkEnd> {
        let script = self.0.as_mut()?;
        let cut = script.cut(now)?;
        worker.note(script.take_effects());
        Some(cut)
    }

    /// When [`Self::cut`] has to be asked again.
    pub(crate) fn next_cut(&self) -> Option<Moment> {
        self.0.as_ref().and_then(|script| script.next_cut())
    }
}
