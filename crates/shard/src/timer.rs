//! The deadlines of all sessions of a shard.

use crate::SessionId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use weir_metrics::Moment;

/// A queue of deadlines, one a session. Moving a deadline later costs nothing: the early entry
/// stays and is looked at again when it comes up.
#[derive(Debug, Default)]
pub(crate) struct TimerQueue {
    heap: BinaryHeap<Reverse<(Moment, SessionId)>>,
}

/// What a session keeps of its deadline.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deadline {
    at: Option<Moment>,
    queued: Option<Moment>,
}

impl TimerQueue {
    /// Sets or clears the deadline of a session.
    pub(crate) fn set(&mut self, id: SessionId, deadline: &mut Deadline, at: Option<Moment>) {
        deadline.at = at;
        if let Some(at) = at
            && deadline.queued.is_none_or(|queued| at < queued)
        {
            deadline.queued = Some(at);
            self.heap.push(Reverse((at, id)));
        }
    }

    /// When the next entry comes up; some session's deadline is then, or later.
    pub(crate) fn next(&self) -> Option<Moment> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// An entry that is due. The caller passes the session's deadline, if it still lives, to [`Self::fire`].
    pub(crate) fn pop(&mut self, now: Moment) -> Option<(Moment, SessionId)> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }

    /// Whether the entry of `queued` means that the session's deadline passed; otherwise it is queued again if needed.
    pub(crate) fn fire(
        &mut self,
        id: SessionId,
        deadline: &mut Deadline,
        queued: Moment,
        now: Moment,
    ) -> bool {
        if deadline.queued != Some(queued) {
            return false;
        }
        deadline.queued = None;
        match deadline.at {
            Some(at) if at <= now => {
                deadline.at = None;
                true
            }
            later => {
                self.set(id, deadline, later);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: u64) -> Moment {
        Moment::from_nanos(n)
    }

    #[test]
    fn a_deadline_fires_once_at_its_last_setting() {
        let (mut queue, mut deadline) = (TimerQueue::default(), Deadline::default());
        let id = SessionId::made_up(1);
        queue.set(id, &mut deadline, Some(at(10)));
        queue.set(id, &mut deadline, Some(at(30)));
        queue.set(id, &mut deadline, Some(at(20)));
        let mut fired = Vec::new();
        for now in 0..40 {
            while let Some((queued, id)) = queue.pop(at(now)) {
                if queue.fire(id, &mut deadline, queued, at(now)) {
                    fired.push(now);
                }
            }
        }
        assert_eq!(fired, [20]);
    }

    #[test]
    fn an_earlier_setting_overtakes_and_a_cleared_one_is_silent() {
        let (mut queue, mut deadline) = (TimerQueue::default(), Deadline::default());
        let id = SessionId::made_up(1);
        queue.set(id, &mut deadline, Some(at(30)));
        queue.set(id, &mut deadline, Some(at(5)));
        let (queued, _) = queue.pop(at(5)).unwrap();
        assert!(queue.fire(id, &mut deadline, queued, at(5)));
        queue.set(id, &mut deadline, Some(at(40)));
        queue.set(id, &mut deadline, None);
        while let Some((queued, id)) = queue.pop(at(100)) {
            assert!(!queue.fire(id, &mut deadline, queued, at(100)));
        }
    }
}
