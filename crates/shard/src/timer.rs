//! The deadlines of all sessions of a shard.

use crate::SessionId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;
use weir_metrics::Moment;

/// Deadlines at multiples of this cost the least: sessions with the same one are woken together and kept in a list, in
/// constant time; other deadlines are kept in a heap.
pub const TICK: Duration = Duration::from_millis(20);

/// How many ticks ahead the lists reach: 2.56 s. One word of 128 bits has a bit for each.
const TICKS: u64 = u128::BITS as u64;

/// A queue of deadlines, one a session. Moving a deadline later costs nothing, and a playing client does that with every
/// read: its early entry stays, and is queued again at the new moment when it becomes the first, so that no thread wakes
/// for it.
#[derive(Debug, Default)]
pub(crate) struct TimerQueue {
    ticks: Ticks,
    heap: BinaryHeap<Reverse<(Moment, SessionId)>>,
    /// Sessions that have ended while they had an entry, since the heap was last rid of such entries.
    ended: usize,
}

/// Entries of ended sessions that are left where they are, whatever their share: clearing a short heap gains nothing.
const FEW: usize = 64;

/// What a session keeps of its deadline.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deadline {
    at: Option<Moment>,
    queued: Option<Moment>,
}

/// Where the queue finds the deadlines of its sessions.
pub(crate) trait Deadlines {
    /// The deadline of a session that lives.
    fn of(&mut self, id: SessionId) -> Option<&mut Deadline>;
}

impl TimerQueue {
    /// Sets or clears the deadline of a session.
    #[inline]
    pub(crate) fn set(&mut self, id: SessionId, deadline: &mut Deadline, at: Option<Moment>) {
        deadline.at = at;
        if let Some(at) = at
            && deadline.queued.is_none_or(|queued| at < queued)
        {
            deadline.queued = Some(at);
            if !self.ticks.push(at, id) {
                self.heap.push(Reverse((at, id)));
            }
        }
    }

    /// A session ends. Its entry would otherwise stay until it is due: ten minutes for each link that a server accepted.
    #[inline]
    pub(crate) fn forget(&mut self, deadline: Deadline) {
        self.ended += usize::from(deadline.queued.is_some());
    }

    /// The next deadline.
    pub(crate) fn poll_timeout(&mut self, deadlines: &mut impl Deadlines) -> Option<Moment> {
        if self.ended > self.heap.len() / 2 + FEW {
            self.clear_ended(deadlines);
        }
        self.first(deadlines).map(|(at, _)| at)
    }

    /// Drops the entries of the heap that are no session's any more. There have been as many ends as half of the heap's entries, so
    /// that an end costs constant time on average. The lists are left alone: they reach 2.56 s ahead.
    fn clear_ended(&mut self, deadlines: &mut impl Deadlines) {
        self.heap.retain(|Reverse((at, id))| deadlines.of(*id).is_some_and(|it| it.queued == Some(*at)));
        self.heap.shrink_to(self.heap.len() * 2);
        self.ended = 0;
    }

    /// A deadline that has passed; it is over now.
    pub(crate) fn pop(&mut self, now: Moment, deadlines: &mut impl Deadlines) -> Option<(Moment, SessionId)> {
        let (at, id) = self.first(deadlines).filter(|(at, _)| *at <= now)?;
        self.drop_first();
        *deadlines.of(id)? = Deadline::default();
        Some((at, id))
    }

    /// The first entry that is its session's deadline, neither moved nor cleared.
    fn first(&mut self, deadlines: &mut impl Deadlines) -> Option<(Moment, SessionId)> {
        loop {
            let (at, id) = self.first_entry()?;
            let deadline = deadlines.of(id).filter(|deadline| deadline.queued == Some(at));
            if deadline.as_ref().is_some_and(|deadline| deadline.at == Some(at)) {
                return Some((at, id));
            }
            self.drop_first();
            if let Some(deadline) = deadline {
                deadline.queued = None;
                self.set(id, deadline, deadline.at);
            }
        }
    }

    fn first_entry(&self) -> Option<(Moment, SessionId)> {
        self.first_listed().or_else(|| self.heap.peek().map(|Reverse(entry)| *entry))
    }

    /// The first entry if it is in a list.
    fn first_listed(&self) -> Option<(Moment, SessionId)> {
        let sorted = self.heap.peek().map(|Reverse((at, _))| *at);
        self.ticks.first().filter(|(listed, _)| sorted.is_none_or(|sorted| *listed <= sorted))
    }

    fn drop_first(&mut self) {
        match self.first_listed() {
            Some(_) => self.ticks.drop_first(),
            None => drop(self.heap.pop()),
        }
    }
}

/// Entries at ticks that are near, as a ring: tick *t* has its list at *t* modulo [`TICKS`], so that `TICKS` consecutive ticks,
/// from `first` on, have a list each, and moving on frees the lists of past ticks for ticks ahead.
///
/// `first` only grows while the ring has entries, because a list would otherwise mean two ticks. An empty ring is placed
/// by its next entry, half of its length before it, so that earlier deadlines which come later find room as well.
/// What is outside goes into the heap.
#[derive(Debug)]
struct Ticks {
    lists: [Vec<SessionId>; TICKS as usize],
    /// Bit *t* modulo [`TICKS`] is set if tick *t* has entries.
    occupied: u128,
    /// No entry is before this tick.
    first: u64,
}

impl Default for Ticks {
    fn default() -> Self {
        Self { lists: [const { Vec::new() }; TICKS as usize], occupied: 0, first: 0 }
    }
}

impl Ticks {
    /// Takes an entry if it is at a tick within the ring.
    fn push(&mut self, at: Moment, id: SessionId) -> bool {
        let tick = at.as_nanos() / TICK.as_nanos() as u64;
        if self.occupied == 0 {
            self.first = tick.saturating_sub(TICKS / 2);
        }
        let fits = tick * TICK.as_nanos() as u64 == at.as_nanos()
            && (self.first..self.first + TICKS).contains(&tick);
        if fits {
            self.lists[(tick % TICKS) as usize].push(id);
            self.occupied |= 1 << (tick % TICKS);
        }
        fits
    }

    /// The first tick that has entries: rotated so that the bit of `first` is the lowest, the number of zeros below the lowest set
    /// bit is the distance to it.
    fn first_tick(&self) -> Option<u64> {
        let ahead = self.occupied.rotate_right((self.first % TICKS) as u32).trailing_zeros();
        (self.occupied != 0).then(|| self.first + u64::from(ahead))
    }

    fn first(&self) -> Option<(Moment, SessionId)> {
        let tick = self.first_tick()?;
        let id = self.lists[(tick % TICKS) as usize].last()?;
        Some((Moment::from_nanos(tick * TICK.as_nanos() as u64), *id))
    }

    fn drop_first(&mut self) {
        let Some(tick) = self.first_tick() else { return };
        let list = &mut self.lists[(tick % TICKS) as usize];
        list.pop();
        self.first = tick;
        if list.is_empty() {
            self.occupied &= !(1 << (tick % TICKS));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sessions and their deadlines, by slab key.
    struct Sessions(Vec<(SessionId, Deadline)>);

    impl Deadlines for Sessions {
        fn of(&mut self, id: SessionId) -> Option<&mut Deadline> {
            self.0.get_mut(id.key as usize).filter(|(owner, _)| *owner == id).map(|(_, deadline)| deadline)
        }
    }

    impl Sessions {
        fn new(count: u32) -> Self {
            Self((0..count).map(|key| (SessionId::made_up(key), Deadline::default())).collect())
        }

        fn set(&mut self, key: usize, at: Option<Moment>, queue: &mut TimerQueue) {
            let (id, deadline) = &mut self.0[key];
            queue.set(*id, deadline, at);
        }
    }

    fn at(n: u64) -> Moment {
        Moment::from_nanos(n)
    }

    #[test]
    fn a_deadline_passes_once_at_its_last_setting() {
        let (mut queue, mut sessions) = (TimerQueue::default(), Sessions::new(2));
        for moment in [10, 30, 20] {
            sessions.set(1, Some(at(moment)), &mut queue);
        }
        assert_eq!(queue.poll_timeout(&mut sessions), Some(at(20)), "nobody wakes at 10");
        let mut passed = Vec::new();
        for now in 0..40 {
            while queue.pop(at(now), &mut sessions).is_some() {
                passed.push(now);
            }
        }
        assert_eq!(passed, [20]);
    }

    #[test]
    fn an_earlier_setting_overtakes_and_a_cleared_one_is_silent() {
        let (mut queue, mut sessions) = (TimerQueue::default(), Sessions::new(2));
        sessions.set(1, Some(at(30)), &mut queue);
        sessions.set(1, Some(at(5)), &mut queue);
        assert_eq!(queue.pop(at(5), &mut sessions), Some((at(5), SessionId::made_up(1))));
        sessions.set(1, Some(at(40)), &mut queue);
        sessions.set(1, None, &mut queue);
        assert_eq!(queue.poll_timeout(&mut sessions), None);
    }

    #[test]
    fn entries_of_sessions_that_have_ended_do_not_stay_until_they_are_due() {
        let (mut queue, mut sessions) = (TimerQueue::default(), Sessions::new(100));
        let due = |round: u64, key: usize| at(600_000_000_001 + round * 1_000 + key as u64);
        for round in 0..1_000 {
            for key in 0..100 {
                let (id, deadline) = &mut sessions.0[key];
                queue.forget(std::mem::take(deadline));
                id.generation += 1;
                sessions.set(key, Some(due(round, key)), &mut queue);
            }
            assert_eq!(queue.poll_timeout(&mut sessions), Some(due(round, 0)));
            assert!(queue.heap.len() < 1_000, "{} entries of 100 sessions", queue.heap.len());
        }
        assert!(queue.heap.capacity() < 4_000, "room for {}", queue.heap.capacity());
        let passed = std::iter::from_fn(|| queue.pop(at(u64::MAX), &mut sessions));
        assert!(passed.map(|(at, _)| at).eq((0..100).map(|key| due(999, key))));
    }

    /// A moment from now that is often a tick, seldom a far one.
    fn ahead() -> impl Strategy<Value = u64> {
        let tick = TICK.as_nanos() as u64;
        prop_oneof![
            6 => (0..2 * TICKS).prop_map(move |ticks| ticks * tick),
            3 => 0..2 * TICKS * tick,
            1 => (0..1_000 * TICKS).prop_map(move |ticks| ticks * tick),
        ]
    }

    #[derive(Clone, Debug)]
    enum Step {
        Set(Option<u64>),
        /// The session ends; its slab key has another one.
        End,
        /// Time passes up to the next deadline.
        Wait,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => ahead().prop_map(|ahead| Step::Set(Some(ahead))),
            1 => Just(Step::Set(None)),
            1 => Just(Step::End),
            5 => Just(Step::Wait),
        ]
    }

    proptest! {
        #[test]
        fn deadlines_pass_in_order_each_when_it_is_due(
            steps in prop::collection::vec((0usize..8, step()), 1..200),
        ) {
            let (mut queue, mut sessions) = (TimerQueue::default(), Sessions::new(8));
            let mut expected: [Option<Moment>; 8] = [None; 8];
            let mut now = Moment::default();
            for (key, step) in steps {
                match step {
                    Step::Set(setting) => {
                        // By the tick that has just been: many are set by a moment that is a tick.
                        let past = now.as_nanos() - now.as_nanos() % TICK.as_nanos() as u64;
                        let setting = setting.map(|ahead| at(past + ahead));
                        sessions.set(key, setting, &mut queue);
                        expected[key] = setting;
                    }
                    Step::End => {
                        let (id, deadline) = &mut sessions.0[key];
                        id.generation += 1;
                        queue.forget(std::mem::take(deadline));
                        expected[key] = None;
                    }
                    Step::Wait => now = expected.iter().flatten().min().map_or(now, |next| now.max(*next)),
                }
                let next = expected.iter().flatten().min().copied();
                prop_assert_eq!(queue.poll_timeout(&mut sessions), next);
                let mut last = Moment::default();
                while let Some((passed, id)) = queue.pop(now, &mut sessions) {
                    prop_assert!(last <= passed);
                    last = passed;
                    prop_assert_eq!(expected[id.key as usize].take(), Some(passed));
                }
                prop_assert!(expected.iter().flatten().all(|left| *left > now));
            }
        }
    }
}
