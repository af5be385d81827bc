//! The faults that befall one link, viewer, publisher or stream, and how far each has come.

use super::damage::damaged;
use super::{Action, CountedUnit, Damage, Effect, Fault, LinkPhase, Pick, Subject, What, When, Whom, Why};
use crate::stream::{Kind, Packet};
use std::time::Duration;
use weir_metrics::{BitRate, Moment};
use weir_shard::Context;

/// The part of the configured faults that concerns one party. Decides unit by unit, from numbers and
/// times alone: the same input has the same outcome.
#[derive(Debug)]
pub(crate) struct Script {
    pub(super) subject: Subject,
    pub(super) active: Vec<Active>,
    /// When its first unit was, or its link's acceptance.
    pub(super) began: Option<Moment>,
    pub(super) effects: Vec<Effect>,
}

#[derive(Debug)]
pub(super) struct Active {
    pub(super) fault: usize,
    pub(super) action: Action,
    counted: u64,
    /// One more than the last repetition that is in the [`Effect`]s, for faults with one effect a repetition.
    told: u64,
}

/// What becomes of a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ruling {
    pub(crate) dropped: bool,
    /// How many times more it is sent.
    pub(crate) again: u32,
    /// It goes after the next unit that counts the same way.
    pub(crate) swapped: Option<CountedUnit>,
    pub(crate) wait: Duration,
    /// Microseconds to move the timestamp by.
    pub(crate) shift: i64,
    /// The connection ends before this unit.
    pub(crate) cut: Option<LinkEnd>,
    /// What is done to it.
    pub(crate) damages: Vec<Damage>,
}

impl Ruling {
    /// Whether units that are ruled alike may stay together.
    fn keeps(&self) -> bool {
        let Self { dropped, again, swapped, wait: _, shift: _, cut, damages } = self;
        !dropped && *again == 0 && swapped.is_none() && cut.is_none() && damages.is_empty()
    }
}

/// How a connection is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEnd {
    /// By a reset: what was not sent is lost.
    Reset,
    /// In order.
    Close,
}

impl LinkEnd {
    /// Ends a session's link.
    pub(crate) fn carry_out<W>(self, context: &mut Context<'_, W>) {
        match self {
            Self::Reset => context.reset(),
            Self::Close => context.close(),
        }
    }
}

/// What is answered at a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScriptedAnswer {
    Nothing,
    Refusal { why: Why, code: Option<String>, words: Option<String> },
}

impl CountedUnit {
    pub(crate) fn includes(self, packet: &Packet) -> bool {
        match self {
            Self::Any => packet.kind != Kind::Setup,
            Self::Video => packet.kind == Kind::Video,
            Self::Audio => packet.kind == Kind::Audio,
            Self::Keyframe => packet.kind == Kind::Video && packet.keyframe,
            Self::Pid(pid) => packet.kind == Kind::Transport && pid_of(packet) == Some(pid),
        }
    }
}

/// Hands a unit out as it was ruled, with what its damages put before it.
fn hand_out(unit: Packet, ruling: Ruling, on: &mut dyn FnMut(Packet, Ruling)) {
    if ruling.damages.is_empty() || ruling.dropped || ruling.cut.is_some() {
        return on(unit, ruling);
    }
    let mut pieces = damaged(&unit, &ruling.damages);
    let last = pieces.pop();
    for piece in pieces {
        on(piece, Ruling { wait: ruling.wait, ..Ruling::default() });
    }
    if let Some(last) = last {
        on(last, ruling);
    }
}

fn pid_of(packet: &Packet) -> Option<u16> {
    weir_ts::packet::Packet::at(packet.bare(), 0).map(|packet| packet.header().pid())
}

impl Active {
    /// Counts the unit, if the fault does; says its number if the fault means it.
    pub(super) fn meets(&mut self, pick: Pick, packet: &Packet) -> Option<u64> {
        if !pick.of.includes(packet) {
            return None;
        }
        self.counted += 1;
        pick.units.contains(self.counted).then_some(self.counted)
    }

    pub(super) fn once(&mut self) -> bool {
        std::mem::replace(&mut self.told, 1) == 0
    }
}

impl Script {
    /// The faults of `subject`; `None` when there are none.
    pub(crate) fn of(faults: &[Fault], subject: Subject) -> Option<Box<Self>> {
        let active: Vec<_> = faults
            .iter()
            .enumerate()
            .filter(|(_, fault)| match (&fault.whom, &subject) {
                (Whom::Links(range), Subject::Link(n))
                | (Whom::Viewers(range), Subject::Viewer(n))
                | (Whom::Publishers(range), Subject::Publisher(n)) => range.contains(*n),
                (Whom::Stream(name), Subject::Stream(other)) => **name == **other,
                _ => false,
            })
            .map(|(n, fault)| Active { fault: n, action: fault.action.clone(), counted: 0, told: 0 })
            .collect();
        (!active.is_empty()).then(|| Box::new(Self { subject, active, began: None, effects: Vec::new() }))
    }

    /// Starts the clock, unless it runs.
    pub(crate) fn begin(&mut self, now: Moment) {
        self.began.get_or_insert(now);
    }

    /// Whether units need to be looked at one by one.
    pub(crate) fn rules_units(&self) -> bool {
        self.active.iter().any(|active| {
            !matches!(active.action, Action::Refusal { .. } | Action::Silent(_) | Action::Read(_))
        })
    }

    /// What becomes of the units of the next packet. Those that stay together go to `on` as one.
    pub(crate) fn rule_each(&mut self, packet: &Packet, now: Moment, on: &mut dyn FnMut(Packet, Ruling)) {
        if packet.units == 1 {
            return hand_out(packet.clone(), self.rule(packet, now), on);
        }
        // A unit that is swapped goes after the next unit that counts the same way, so each unit has to be looked at.
        let together = !self.active.iter().any(|active| matches!(active.action, Action::Swap(_)));
        let mut run: Option<(u32, Ruling)> = None;
        for unit in 0..packet.units {
            let part = packet.slice(unit..unit + 1);
            let ruling = self.rule(&part, now);
            if together && run.as_ref().is_some_and(|(_, same)| *same == ruling) {
                continue;
            }
            if let Some((begin, same)) = run.take() {
                on(packet.slice(begin..unit), same);
            }
            if together && ruling.keeps() {
                run = Some((unit, ruling));
            } else {
                hand_out(part, ruling, on);
            }
        }
        match run {
            Some((0, same)) => on(packet.clone(), same),
            Some((begin, same)) => on(packet.slice(begin..packet.units), same),
            None => {}
        }
    }

    /// Whether the next message is not to be acknowledged.
    pub(crate) fn withholds(&mut self, packet: &Packet, now: Moment) -> bool {
        let mut withheld = false;
        for active in &mut self.active {
            let Action::Withhold(pick) = active.action else { continue };
            if let Some(unit) = active.meets(pick, packet) {
                withheld = true;
                let (fault, subject) = (active.fault, self.subject.clone());
                self.effects.push(Effect { at: now, fault, subject, what: What::Withheld { unit } });
            }
        }
        withheld
    }

    /// The same of a message of which nothing is known but that it is the next.
    pub(crate) fn withholds_next(&mut self, now: Moment) -> bool {
        let mut withheld = false;
        for active in &mut self.active {
            let Action::Withhold(Pick { units, of: CountedUnit::Any }) = active.action else { continue };
            active.counted += 1;
            if units.contains(active.counted) {
                withheld = true;
                let (fault, subject) = (active.fault, self.subject.clone());
                let what = What::Withheld { unit: active.counted };
                self.effects.push(Effect { at: now, fault, subject, what });
            }
        }
        withheld
    }

    /// The latency that is asked for, if a fault says so.
    pub(crate) fn latency(&mut self, now: Moment) -> Option<Duration> {
        let (fault, latency) = self.active.iter().find_map(|active| match active.action {
            Action::Latency(latency) => Some((active.fault, latency)),
            _ => None,
        })?;
        let subject = self.subject.clone();
        self.effects.push(Effect { at: now, fault, subject, what: What::AskedForLatency });
        Some(latency)
    }

    /// What becomes of the next unit.
    pub(crate) fn rule(&mut self, packet: &Packet, now: Moment) -> Ruling {
        let mut ruling = Ruling::default();
        let is_unit = packet.kind != Kind::Setup;
        if is_unit {
            self.begin(now);
        }
        let elapsed = now.since(self.began.unwrap_or(now));
        let timestamp = packet.timestamp;
        for active in &mut self.active {
            let what = match active.action {
                Action::Delay(by) => {
                    ruling.wait += by;
                    (is_unit && active.once()).then_some(What::Delayed)
                }
                Action::Jump { when, by } => {
                    let from_here = match when {
                        When::At(at) => self.began.is_some() && elapsed >= at,
                        When::Unit(pick) => active.told > 0 || active.meets(pick, packet).is_some(),
                    };
                    ruling.shift += if from_here { by } else { 0 };
                    (from_here && active.once()).then_some(What::Jumped { timestamp, by })
                }
                Action::Drop(pick) => active.meets(pick, packet).map(|unit| {
                    ruling.dropped = true;
                    What::Dropped { unit, timestamp }
                }),
                Action::Duplicate { pick, times } => active.meets(pick, packet).map(|unit| {
                    ruling.again += times;
                    What::Duplicated { unit, timestamp }
                }),
                Action::Damage { pick, damage } => active.meets(pick, packet).map(|unit| {
                    ruling.damages.push(damage);
                    What::Damaged { unit, damage }
                }),
                Action::Swap(pick) => active.meets(pick, packet).map(|unit| {
                    ruling.swapped = Some(pick.of);
                    What::Swapped { unit, timestamp }
                }),
                Action::Stall { when: When::Unit(pick), span, .. } => active.meets(pick, packet).map(|_| {
                    ruling.wait += span;
                    What::Stalled { until: now + ruling.wait }
                }),
                Action::Reset(When::Unit(pick)) => active.meets(pick, packet).map(|_| {
                    ruling.cut = Some(LinkEnd::Reset);
                    What::Reset
                }),
                Action::Close(When::Unit(pick)) => active.meets(pick, packet).map(|_| {
                    ruling.cut = Some(LinkEnd::Close);
                    What::Closed
                }),
                _ => None,
            };
            if let Some(what) = what {
                let subject = self.subject.clone();
                self.effects.push(Effect { at: now, fault: active.fault, subject, what });
            }
        }
        ruling
    }

    /// The end of the stall that holds everything back now, if there is one.
    pub(crate) fn stalled(&mut self, now: Moment) -> Option<Moment> {
        let elapsed = now.since(self.began?);
        let mut end = None;
        for active in &mut self.active {
            let Action::Stall { when: When::At(at), span, every } = active.action else { continue };
            let Some(since) = elapsed.checked_sub(at) else { continue };
            let (round, into) = match every {
                Some(every) => (
                    (since.as_nanos() / every.as_nanos()) as u64,
                    Duration::from_nanos((since.as_nanos() % every.as_nanos()) as u64),
                ),
                None => (0, since),
            };
            if into >= span {
                continue;
            }
            let until = now + (span - into);
            end = end.max(Some(until));
            if active.told <= round {
                active.told = round + 1;
                let (fault, subject) = (active.fault, self.subject.clone());
                self.effects.push(Effect { at: now, fault, subject, what: What::Stalled { until } });
            }
        }
        end
    }

    /// Whether the connection has to end now.
    pub(crate) fn cut(&mut self, now: Moment) -> Option<LinkEnd> {
        let elapsed = now.since(self.began?);
        for active in &mut self.active {
            let (at, cut, what) = match active.action {
                Action::Reset(When::At(at)) => (at, LinkEnd::Reset, What::Reset),
                Action::Close(When::At(at)) => (at, LinkEnd::Close, What::Closed),
                _ => continue,
            };
            if elapsed >= at && active.once() {
                let (fault, subject) = (active.fault, self.subject.clone());
                self.effects.push(Effect { at: now, fault, subject, what });
                return Some(cut);
            }
        }
        None
    }

    /// When [`Self::cut`] has to be asked again.
    pub(crate) fn next_cut(&self) -> Option<Moment> {
        let began = self.began?;
        let cuts = self.active.iter().filter(|active| active.told == 0);
        cuts.filter_map(|active| match active.action {
            Action::Reset(When::At(at)) | Action::Close(When::At(at)) => Some(began + at),
            _ => None,
        })
        .min()
    }

    /// The scripted answer at a phase, if there is one, to a client with these credentials while `present` viewers are there.
    pub(crate) fn answer(
        &mut self,
        phase: LinkPhase,
        offered: Option<&str>,
        present: u64,
        now: Moment,
    ) -> Option<ScriptedAnswer> {
        let (at, answer) = self.active.iter().enumerate().find_map(|(at, active)| match &active.action {
            Action::Silent(from) if *from == phase => Some((at, ScriptedAnswer::Nothing)),
            Action::Refusal { why: Why::Unauthorized { unless: Some(would_do) }, .. }
                if offered == Some(would_do) =>
            {
                None
            }
            Action::Refusal { phase: of, why, code, words, beyond }
                if *of == phase && beyond.is_none_or(|beyond| present >= beyond) =>
            {
                let (why, code, words) = (why.clone(), code.clone(), words.clone());
                Some((at, ScriptedAnswer::Refusal { why, code, words }))
            }
            _ => None,
        })?;
        let what = if answer == ScriptedAnswer::Nothing { What::Silenced } else { What::Refused };
        let (fault, subject) = (self.active[at].fault, self.subject.clone());
        self.effects.push(Effect { at: now, fault, subject, what });
        Some(answer)
    }

    /// How fast the party is read from.
    pub(crate) fn read_rate(&self) -> Option<BitRate> {
        self.active.iter().find_map(|active| match active.action {
            Action::Read(rate) => Some(rate),
            _ => None,
        })
    }

    /// Notes that reading was held up to keep to [`Self::read_rate`].
    pub(crate) fn paced(&mut self, now: Moment) {
        let paced = self.active.iter_mut().find(|active| matches!(active.action, Action::Read(_)));
        if let Some(active) = paced.filter(|active| active.told == 0) {
            active.told = 1;
            let (fault, subject) = (active.fault, self.subject.clone());
            self.effects.push(Effect { at: now, fault, subject, what: What::Paced });
        }
    }

    /// Hands out what was done since the last call.
    pub(crate) fn take_effects(&mut self) -> std::vec::Drain<'_, Effect> {
        self.effects.drain(..)
    }
}
