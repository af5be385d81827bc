//! Sessions whose sockets are not read at every event but together, every 60 ms.

use crate::SessionId;
use crate::timer::TICK;
use weir_metrics::Moment;

/// Rounds, one a [`TICK`], until a session has its turn again, so that not all are read at one moment.
const ROUNDS: u64 = 3;

/// Sessions that are read every 60 ms, each in its round.
#[derive(Debug, Default)]
pub(crate) struct BatchedReads {
    members: [Vec<SessionId>; ROUNDS as usize],
    /// The last step whose sessions were read.
    done: u64,
}

impl BatchedReads {
    /// A session joins the batched reads.
    pub(crate) fn join(&mut self, id: SessionId, now: Moment) {
        if self.members.iter().all(Vec::is_empty) {
            self.done = step_of(now);
        }
        self.members[round_of(id.key.into())].push(id);
    }

    /// When the next round is.
    pub(crate) fn poll_timeout(&self) -> Option<Moment> {
        let mut steps = (self.done + 1..).take(ROUNDS as usize);
        let next = steps.find(|step| !self.members[round_of(*step)].is_empty())?;
        Some(Moment::from_nanos(next * TICK.as_nanos() as u64))
    }

    /// When the turn of a session comes next, from `at` on.
    pub(crate) fn turn_from(id: SessionId, at: Moment) -> Moment {
        let step = at.as_nanos().div_ceil(TICK.as_nanos() as u64);
        let mut steps = (step..).take(ROUNDS as usize);
        let turn = steps.find(|step| round_of(*step) == round_of(id.key.into())).unwrap_or(step);
        Moment::from_nanos(turn * TICK.as_nanos() as u64)
    }

    /// A session leaves them.
    pub(crate) fn leave(&mut self, id: SessionId) {
        self.members[round_of(id.key.into())].retain(|member| *member != id);
    }

    /// Takes the sessions out whose turn has come; they have to join again for their next.
    pub(crate) fn take(&mut self, now: Moment, taken: &mut Vec<SessionId>) {
        let last = step_of(now);
        let first = (self.done + 1).max((last + 1).saturating_sub(ROUNDS));
        self.done = last.max(self.done);
        for step in first..=last {
            taken.append(&mut self.members[round_of(step)]);
        }
    }
}

fn step_of(now: Moment) -> u64 {
    now.as_nanos() / TICK.as_nanos() as u64
}

fn round_of(number: u64) -> usize {
    (number % ROUNDS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn each_has_its_turn_once_in_three_steps_and_in_a_round_of_its_own() {
        let mut batched_reads = BatchedReads::default();
        assert_eq!(batched_reads.poll_timeout(), None);
        let ids: Vec<_> = (0..9).map(SessionId::made_up).collect();
        ids.iter().for_each(|id| batched_reads.join(*id, at(1_001)));
        let mut turns = Vec::new();
        for _ in 0..9 {
            let now = batched_reads.poll_timeout().unwrap();
            let mut taken = Vec::new();
            batched_reads.take(now, &mut taken);
            assert_eq!(taken.len(), 3);
            for id in taken {
                turns.push((id, now));
                batched_reads.join(id, now);
            }
        }
        for id in ids {
            let of: Vec<_> = turns.iter().filter(|turn| turn.0 == id).map(|turn| turn.1).collect();
            assert_eq!(of[1].since(of[0]), Duration::from_millis(60));
        }
    }

    #[test]
    fn a_turn_is_known_before_it_comes() {
        let mut batched_reads = BatchedReads::default();
        let id = SessionId::made_up(3);
        batched_reads.join(id, at(1_001));
        let turn = batched_reads.poll_timeout().unwrap();
        assert_eq!(turn, at(1_020));
        let from = |millis| BatchedReads::turn_from(id, at(millis));
        assert_eq!([from(961), from(1_019), from(1_020), from(1_021)], [turn, turn, turn, at(1_080)]);
    }

    #[test]
    fn a_round_that_was_missed_is_held_once_and_who_has_left_is_not_in_it() {
        let mut batched_reads = BatchedReads::default();
        (0..4).for_each(|key| batched_reads.join(SessionId::made_up(key), at(0)));
        batched_reads.leave(SessionId::made_up(2));
        let mut taken = Vec::new();
        batched_reads.take(at(5_000), &mut taken);
        assert_eq!((taken.len(), batched_reads.poll_timeout()), (3, None));
    }
}
