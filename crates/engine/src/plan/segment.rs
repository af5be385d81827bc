//! The part of a plan that one machine of several makes.

use super::{Plan, PlannedSlot, StageSpan, planned_at};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Which part of a plan one machine of several makes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Its number, from 0.
    pub index: u16,
    /// How many there are.
    pub of: u16,
    /// Its share of each workload; without any it has every `of`-th client.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<Share>,
}

/// A machine's share of the clients of a workload. Clients go round `of` places, `step` of them forward each time, and a
/// machine has those that come to its own places. Since no two of them have one place, the shares of all machines add up to
/// the workload, whatever the step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Its first place.
    pub from: u32,
    /// The place after its last one.
    pub to: u32,
    /// How many places there are.
    pub of: u32,
    /// By how many places a client is behind the one before it.
    pub step: u32,
}

impl Share {
    /// Whether it has the client of this number, by the order of their starts.
    fn has(self, number: u64) -> bool {
        let of = u64::from(self.of);
        let place = (number % of.max(1)) * u64::from(self.step) % of.max(1);
        of > 0 && (u64::from(self.from)..u64::from(self.to)).contains(&place)
    }

    /// Which part of the workload it is, from 0 to 1.
    fn fraction(self) -> f64 {
        if self.of == 0 { 0.0 } else { f64::from(self.to.saturating_sub(self.from)) / f64::from(self.of) }
    }
}

impl Segment {
    /// One of equal parts.
    pub fn equal(index: u16, of: u16) -> Self {
        Self { index, of, shares: Vec::new() }
    }

    /// The largest part of a workload that it has, from 0 to 1.
    pub fn largest_fraction(&self) -> f64 {
        let equal = 1.0 / f64::from(self.of.max(1));
        self.shares.iter().map(|share| share.fraction()).reduce(f64::max).unwrap_or(equal)
    }
}

impl Plan {
    /// The part that one machine of several makes, whose stages hold the clients of this part.
    pub fn part(&self, segment: &Segment) -> Self {
        let mut slots = self.slots.clone();
        let mut is_own = is_in(segment);
        slots.retain(|slot| is_own(slot));
        let mut part = Self { slots, stages: self.stages.clone(), ..*self };
        let held = |span: &StageSpan| {
            planned_at(&part, span.workload, span.end.saturating_sub(Duration::from_nanos(1)))
        };
        let clients: Vec<_> = part.stages.iter().map(|span| held(span) as u32).collect();
        part.stages.iter_mut().zip(clients).for_each(|(span, clients)| span.clients = clients);
        part
    }

    /// Has the planned starts of a part end at this time.
    pub(crate) fn cut(&mut self, segment: &Segment, at: Duration) {
        let mut is_own = is_in(segment);
        let own = self.slots.iter_mut().filter(|slot| is_own(slot));
        own.for_each(|slot| slot.stop = slot.stop.min(at).max(slot.start));
    }
}

/// Says of the planned starts of a plan, one after the other, whether they are in a part.
fn is_in(segment: &Segment) -> impl FnMut(&PlannedSlot) -> bool {
    let (mut position, mut numbers) = (0_usize, BTreeMap::<u16, u64>::new());
    move |slot| {
        if segment.shares.is_empty() {
            let is_own = position % usize::from(segment.of).max(1) == usize::from(segment.index);
            position += 1;
            return is_own;
        }
        let number = numbers.entry(slot.workload).or_default();
        *number += 1;
        segment.shares.get(usize::from(slot.workload)).is_some_and(|share| share.has(*number - 1))
    }
}
