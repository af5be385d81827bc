//! Where units wait because of a fault.

use super::CountedUnit;
use super::script::{LinkEnd, Ruling, Script};
use crate::stream::Packet;
use std::collections::VecDeque;
use weir_metrics::Moment;

/// The way of units between a stream and a link (or a publisher and a stream), with the faults of a
/// [`Script`] on it. Units come out in the order and at the times that the script wants.
#[derive(Debug)]
pub(crate) struct Gate<T> {
    queue: VecDeque<(Moment, Item<T>)>,
    /// A unit that goes after the next one that counts the same way.
    swapped: Option<(CountedUnit, Unit<T>)>,
    /// When the last one in the queue may go: nothing overtakes.
    last: Moment,
}

#[derive(Debug)]
enum Item<T> {
    Unit(Unit<T>),
    LinkEnd(LinkEnd),
}

/// A unit on its way, with what its owner wants to know when it comes out.
#[derive(Clone, Debug)]
pub(crate) struct Unit<T> {
    pub(crate) packet: Packet,
    pub(crate) owner: T,
}

/// What [`Gate::front`] finds.
#[derive(Debug)]
pub(crate) enum GateFront {
    /// This number of units may go.
    Units(usize),
    /// The connection ends.
    LinkEnd(LinkEnd),
    /// Nothing may go before this time; with no time, nothing waits.
    Wait(Option<Moment>),
}

impl<T: Clone> Gate<T> {
    pub(crate) fn new() -> Self {
        Self { queue: VecDeque::new(), swapped: None, last: Moment::default() }
    }

    /// Takes a unit with what was ruled about it.
    pub(crate) fn push(&mut self, unit: Unit<T>, ruling: &Ruling, now: Moment) {
        let at = (now + ruling.wait).max(self.last);
        self.last = at;
        if let Some(cut) = ruling.cut {
            self.queue.push_back((at, Item::LinkEnd(cut)));
            return;
        }
        if ruling.dropped {
            return;
        }
        let after = self.swapped.take_if(|(counted, _)| counted.includes(&unit.packet));
        match ruling.swapped {
            Some(counted) if after.is_none() => self.swapped = Some((counted, unit)),
            _ => {
                let again = std::iter::repeat_n(unit, 1 + ruling.again as usize);
                self.queue.extend(again.map(|unit| (at, Item::Unit(unit))));
            }
        }
        self.queue.extend(after.map(|(_, unit)| (at, Item::Unit(unit))));
    }

    /// Lets a swapped unit go that nothing followed: the stream has ended.
    pub(crate) fn finish(&mut self) {
        let last = self.last;
        self.queue.extend(self.swapped.take().map(|(_, unit)| (last, Item::Unit(unit))));
    }

    /// What may happen now.
    pub(crate) fn front(&self, script: Option<&mut Script>, now: Moment) -> GateFront {
        let Some((at, item)) = self.queue.front() else { return GateFront::Wait(None) };
        if let Some(end) = script.and_then(|script| script.stalled(now)) {
            return GateFront::Wait(Some(end));
        }
        match item {
            _ if *at > now => GateFront::Wait(Some(*at)),
            Item::LinkEnd(cut) => GateFront::LinkEnd(*cut),
            Item::Unit(_) => {
                let ready = |entry: &&(Moment, Item<T>)| entry.0 <= now && matches!(entry.1, Item::Unit(_));
                GateFront::Units(self.queue.iter().take_while(ready).count())
            }
        }
    }

    /// The units at the front.
    pub(crate) fn units(&self) -> impl Iterator<Item = &Unit<T>> {
        self.queue.iter().map_while(|(_, item)| match item {
            Item::Unit(unit) => Some(unit),
            Item::LinkEnd(_) => None,
        })
    }

    /// Takes the first unit out.
    pub(crate) fn pop(&mut self) -> Option<Unit<T>> {
        match self.queue.pop_front()?.1 {
            Item::Unit(unit) => Some(unit),
            Item::LinkEnd(_) => None,
        }
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.queue.len() + usize::from(self.swapped.is_some())
    }
}
