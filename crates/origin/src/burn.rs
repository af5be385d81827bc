//! CPU time that is used because a fault says so: a known share of a core, by a thread of its own or for each viewer or publisher.

use crate::fault::{Action, Fault};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_metrics::Moment;
use weir_shard::clock;

/// The share is used up in each of these spans.
const SPAN: Duration = Duration::from_millis(50);

/// The most that a worker is credited with when it has used more than its clients cost, as for keyframes that all of
/// them get at once.
const MOST_CREDIT: f64 = 1.0;

/// The longest time that a worker uses at a stretch: stalls show, and whoever wants it to end is heard.
const LONGEST_STRETCH: Duration = Duration::from_secs(3);

/// Starts a thread named `name` that uses `share` of CPU time in every second until `stop`.
pub(crate) fn burn(name: &str, share: Duration, stop: Arc<AtomicBool>) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        let began = clock::now();
        while !stop.load(Ordering::Relaxed) {
            let elapsed = clock::now().since(began);
            // Both sides from the beginning: what one span overshoots, the next makes good.
            let owed = elapsed.as_secs_f64() * share.as_secs_f64();
            if clock::thread_cpu().as_secs_f64() < owed {
                spin();
            } else {
                std::thread::sleep(SPAN / 10);
            }
        }
    })
}

/// Who is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clients {
    pub(crate) viewers: usize,
    pub(crate) publishers: usize,
}

/// The CPU time that a worker uses for its viewers and publishers, what it does for them anyway included.
///
/// So one worker carries one second divided by a share, whatever a client costs it otherwise. With more, each turn of its
/// loop takes longer than the one before by the same factor, up to three seconds, so that all of them fall behind as fast as the
/// load is beyond that limit.
#[derive(Debug)]
pub(crate) struct ClientCost {
    /// For each viewer in every second, and for each publisher.
    of_viewer: f64,
    of_publisher: f64,
    /// Up to when clients have been paid for, and what the thread had used then.
    paid_until: Moment,
    used: Duration,
    /// Seconds that were used beyond what was owed.
    credit: f64,
}

impl ClientCost {
    /// What faults say of it, if they do; several add up.
    pub(crate) fn of(faults: &[Fault], now: Moment, used: Duration) -> Option<Self> {
        let (mut of_viewer, mut of_publisher) = (None, None);
        for fault in faults {
            let (sum, share) = match fault.action {
                Action::BurnForViewers { share } => (&mut of_viewer, share),
                Action::BurnForPublishers { share } => (&mut of_publisher, share),
                _ => continue,
            };
            *sum = Some(sum.unwrap_or(0.0) + share.as_secs_f64());
        }
        of_viewer.or(of_publisher)?;
        let [of_viewer, of_publisher] = [of_viewer, of_publisher].map(Option::unwrap_or_default);
        Some(Self { of_viewer, of_publisher, paid_until: now, used, credit: 0.0 })
    }

    /// Uses what is owed for clients until now on this thread.
    pub(crate) fn use_up(&mut self, clients: Clients) {
        let used = clock::thread_cpu();
        let until = used + self.owed(clients, clock::now(), used);
        while clock::thread_cpu() < until {
            spin();
        }
        self.used = clock::thread_cpu();
    }

    /// What is still to be used for the time until `now`, of which the thread has used up to `used` already.
    fn owed(&mut self, clients: Clients, now: Moment, used: Duration) -> Duration {
        let share = self.of_viewer * clients.viewers as f64 + self.of_publisher * clients.publishers as f64;
        let cost = now.since(self.paid_until).as_secs_f64() * share;
        let balance = self.credit + used.saturating_sub(self.used).as_secs_f64() - cost;
        self.paid_until = now;
        self.used = used;
        self.credit = balance.clamp(0.0, MOST_CREDIT);
        Duration::from_secs_f64((-balance).max(0.0)).min(LONGEST_STRETCH)
    }
}

/// A few microseconds of CPU time.
fn spin() {
    for n in 0..10_000_u32 {
        std::hint::black_box(n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A worker whose every turn serves for 1 ms after it has slept until the next multiple of 20 ms, on clocks made up:
    /// seconds that passed, seconds that it used, and how long its last turn took.
    fn after_ten_seconds(viewers: usize, share: Duration) -> (f64, f64, f64) {
        let faults = [Fault { action: Action::BurnForViewers { share }, whom: crate::fault::Whom::Origin }];
        let began = Moment::from_nanos(0);
        let mut cost = ClientCost::of(&faults, began, Duration::ZERO).unwrap();
        let (mut now, mut used, mut turn) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        while now < 10_000 * MS {
            let start = now;
            let next = 20 * MS * (now.as_nanos() / (20 * MS).as_nanos() + 1) as u32;
            // It sleeps only while it owes nothing.
            now = if turn > 20 * MS { now } else { next } + MS;
            used += MS;
            let owed = cost.owed(Clients { viewers, publishers: 0 }, began + now, used);
            now += owed;
            used += owed;
            cost.used = used;
            turn = now - start;
        }
        (now.as_secs_f64(), used.as_secs_f64(), turn.as_secs_f64())
    }

    #[test]
    fn viewers_cost_their_share_and_no_more_with_what_is_done_for_them() {
        for (viewers, share) in [(10, 10 * MS), (99, 10 * MS), (400, 2 * MS)] {
            let (passed, used, turn) = after_ten_seconds(viewers, share);
            let asked = viewers as f64 * share.as_secs_f64();
            assert!((used / passed - asked).abs() < 0.01, "{viewers}: {used} of {passed} s");
            assert!(turn < 0.05, "{viewers} are sent what they get in time: {turn}");
        }
    }

    #[test]
    fn what_is_done_anyway_is_all_where_it_is_more() {
        let (passed, used, _) = after_ten_seconds(1, MS);
        assert!((used / passed - 0.05).abs() < 0.002, "{used} of {passed} s");
    }

    #[test]
    fn beyond_a_core_turns_grow_longer_and_longer() {
        let (_, _, turn) = after_ten_seconds(110, 10 * MS);
        assert!(turn > 0.5, "{turn}");
        let (_, _, turn) = after_ten_seconds(105, 10 * MS);
        assert!(turn > 0.25, "{turn}");
    }

    #[test]
    fn no_turn_is_so_long_that_the_worker_cannot_be_ended() {
        let (_, _, turn) = after_ten_seconds(10_000, 25 * MS);
        assert!(turn <= 3.1, "{turn}");
    }

    #[test]
    fn without_the_fault_nothing_is_used() {
        assert!(ClientCost::of(&[], Moment::from_nanos(0), Duration::ZERO).is_none());
    }

    #[test]
    fn publishers_cost_theirs_beside_what_viewers_cost() {
        let fault = |action| Fault { action, whom: crate::fault::Whom::Origin };
        let faults =
            [Action::BurnForViewers { share: MS }, Action::BurnForPublishers { share: 5 * MS }].map(fault);
        let began = Moment::from_nanos(0);
        let mut cost = ClientCost::of(&faults, began, Duration::ZERO).unwrap();
        let clients = Clients { viewers: 10, publishers: 20 };
        let owed = cost.owed(clients, began + 1_000 * MS, Duration::ZERO);
        assert_eq!(owed.as_millis(), 110);
    }
}
