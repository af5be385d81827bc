//! The faults that playlists and segments have of their own.

use super::script::Script;
use super::{Action, Effect, What};
use crate::stream::{Kind, Packet};
use weir_metrics::Moment;

impl Script {
    /// Whether segments of the stream may be named and not be there.
    pub(crate) fn leaves_gaps(&self) -> bool {
        self.active.iter().any(|active| matches!(active.action, Action::Gap(_)))
    }

    /// Whether the next segment is named and not there.
    pub(crate) fn leaves_gap(&mut self, now: Moment) -> bool {
        self.befalls(now, |action| match action {
            Action::Gap(pick) => Some((*pick, |unit| What::Gap { unit })),
            _ => None,
        })
    }

    /// Whether the next reload that would wait is answered at once.
    pub(crate) fn answers_early(&mut self, now: Moment) -> bool {
        self.befalls(now, |action| match action {
            Action::Early(pick) => Some((*pick, |unit| What::Early { unit })),
            _ => None,
        })
    }

    /// The status that the next segment or part is answered with, if a fault has one for it.
    pub(crate) fn status(&mut self, unit: &Packet, now: Moment) -> Option<u16> {
        let mut answered = None;
        for active in &mut self.active {
            let Action::Status { pick, code } = active.action else { continue };
            if let Some(unit) = active.meets(pick, unit) {
                answered = answered.or(Some(code));
                let (fault, subject) = (active.fault, self.subject.clone());
                let what = What::Answered { unit, status: code };
                self.effects.push(Effect { at: now, fault, subject, what });
            }
        }
        answered
    }

    /// How many packets are not to be in the next segment or part, which has so many.
    pub(crate) fn packets_lost(&mut self, unit: &Packet, there: usize, now: Moment) -> usize {
        let mut lost = 0;
        for active in &mut self.active {
            let Action::Lose { pick, packets } = active.action else { continue };
            let Some(unit) = active.meets(pick, unit) else { continue };
            let packets = packets.min(there - lost);
            if packets > 0 {
                lost += packets;
                let (fault, subject) = (active.fault, self.subject.clone());
                let what = What::LostPackets { unit, packets };
                self.effects.push(Effect { at: now, fault, subject, what });
            }
        }
        lost
    }

    /// Until when playlists stand still, if they do now.
    pub(crate) fn stale_until(&self, now: Moment) -> Option<Moment> {
        let began = self.began?;
        let ends = self.active.iter().filter_map(|active| match active.action {
            Action::Stale { at, span } if began + at <= now && now < began + at + span => {
                Some(began + at + span)
            }
            _ => None,
        });
        ends.max()
    }

    /// The same, when a viewer asks for a playlist.
    pub(crate) fn is_stale(&mut self, now: Moment) -> bool {
        let Some(until) = self.stale_until(now) else { return false };
        for active in &mut self.active {
            if matches!(active.action, Action::Stale { .. }) && active.once() {
                let (fault, subject) = (active.fault, self.subject.clone());
                self.effects.push(Effect { at: now, fault, subject, what: What::Stale { until } });
            }
        }
        true
    }

    /// Counts one more for the faults that `chosen` picks. Whether one of them means it.
    fn befalls(
        &mut self,
        now: Moment,
        chosen: impl Fn(&Action) -> Option<(super::Pick, fn(u64) -> What)>,
    ) -> bool {
        let one = Packet::unit(Kind::Data, true, 0, 0, Vec::new());
        let mut is_meant = false;
        for active in &mut self.active {
            let Some((pick, what)) = chosen(&active.action) else { continue };
            if let Some(unit) = active.meets(pick, &one) {
                is_meant = true;
                let (fault, subject) = (active.fault, self.subject.clone());
                self.effects.push(Effect { at: now, fault, subject, what: what(unit) });
            }
        }
        is_meant
    }
}
