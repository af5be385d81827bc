//! One generator thread: starts its slots in time, turns its shard, hands out an interval a second.

use crate::plan::{Plan, PlannedSlot};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;
use weir_clients::{Account, Gap, Ledger, Remark, Slot, Workload};
use weir_metrics::common::{MISSED, PLANNED, SHARD_BUSY, TURN_LAG};
use weir_metrics::{Moment, Recorder};
use weir_shard::{Door, SessionId, Shard, clock};

/// Slots started between two turns of the loop, so that running clients keep their turn.
const STARTS_A_TURN: usize = 32;
/// Longest sleep, so that a stop is noticed.
const LONGEST_TURN: Duration = Duration::from_millis(50);

/// What a generator thread does.
pub(crate) struct Orders {
    /// Its segment of the plan.
    pub(crate) plan: Plan,
    /// All workloads of the run.
    pub(crate) workloads: Arc<[Box<dyn Workload>]>,
    /// Beginning of second 0.
    pub(crate) origin: Moment,
    /// Time for goodbyes after the plan's end.
    pub(crate) drain: Duration,
    /// Set when the run must end now.
    pub(crate) stop: Arc<AtomicBool>,
    /// Where intervals go.
    pub(crate) reports: Sender<Report>,
    /// Its number.
    pub(crate) number: usize,
    /// Whether it drives what only disturbs the others: how busy it is says nothing about them.
    pub(crate) background: bool,
}

/// What leaves a generator thread once a second.
pub(crate) struct Report {
    pub(crate) shard: usize,
    pub(crate) second: u32,
    /// One a workload.
    pub(crate) figures: Vec<Recorder>,
    pub(crate) remarks: Vec<Remark>,
    /// Whether this thread has no client, and none still to begin.
    pub(crate) deserted: bool,
    pub(crate) gaps: Vec<Gap>,
    pub(crate) accounts: Vec<Account>,
    /// Whether this was the last.
    pub(crate) last: bool,
}

struct Crew {
    orders: Orders,
    shard: Shard<Ledger>,
    /// The next slot to start.
    next: usize,
    stops: BinaryHeap<Reverse<(Moment, SessionId)>>,
    second: u32,
    busy: Busy,
}

/// Runs a generator thread to its plan's end.
///
/// # Errors
/// The event loop could not be made, or failed.
pub(crate) fn run(orders: Orders) -> std::io::Result<()> {
    let ledger = Ledger::new(orders.workloads.iter().map(|workload| workload.schema()));
    let shard = Shard::new(ledger)?;
    let mut crew = Crew { orders, shard, next: 0, stops: BinaryHeap::new(), second: 0, busy: Busy::start() };
    crew.work()
}

impl Crew {
    fn work(&mut self) -> std::io::Result<()> {
        let end = self.orders.origin + self.orders.plan.length;
        let edges = self.orders.plan.window_edges();
        let mut ending: Option<Moment> = None;
        loop {
            let now = clock::now();
            if now >= self.second_end() {
                // Counts of the crowd are exact where a window begins or ends.
                if edges.binary_search(&(self.second + 1)).is_ok() {
                    self.shard.sweep();
                }
                self.report(false);
            }
            if ending.is_none() && (now >= end || self.orders.stop.load(Ordering::Relaxed)) {
                self.stop_all(now);
                ending = Some(now + self.orders.drain);
            }
            if ending.is_none() {
                self.start_due(now);
                self.stop_due(now);
            }
            if ending.is_some_and(|by| now >= by || self.shard.is_empty()) {
                self.report(true);
                return Ok(());
            }
            let until = self.next_moment(ending).min(now + LONGEST_TURN);
            self.shard.turn(until)?;
        }
    }

    fn second_end(&self) -> Moment {
        self.orders.origin + Duration::from_secs(u64::from(self.second) + 1)
    }

    fn next_moment(&self, ending: Option<Moment>) -> Moment {
        let starts = self.orders.plan.slots.get(self.next).filter(|_| ending.is_none());
        let start = starts.map(|slot| self.orders.origin + slot.start);
        let stop = self.stops.peek().map(|Reverse((at, _))| *at);
        [start, stop, ending].into_iter().flatten().fold(self.second_end(), Moment::min)
    }

    fn start_due(&mut self, now: Moment) {
        for _ in 0..STARTS_A_TURN {
            let Some(planned) = self.orders.plan.slots.get(self.next).copied() else { return };
            if self.orders.origin + planned.start > now {
                return;
            }
            self.next += 1;
            self.start(planned, now);
        }
    }

    fn start(&mut self, planned: PlannedSlot, now: Moment) {
        let slot = Slot {
            client: planned.client,
            workload: planned.workload,
            planned: self.orders.origin + planned.start,
        };
        let stop = self.orders.origin + planned.stop;
        self.shard.world.of(slot).count(PLANNED, 1);
        if stop <= now {
            self.shard.world.of(slot).count(MISSED, 1);
            return;
        }
        let workload = &self.orders.workloads[usize::from(planned.workload)];
        let door = Door { from: planned.from, ..workload.door(planned.client).clone() };
        let session = workload.start(slot, now, &mut self.shard.world);
        // A link that cannot be begun has told its session, which has booked the failure.
        if let Ok(id) = self.shard.open(&door, session) {
            self.stops.push(Reverse((stop, id)));
        }
    }

    fn stop_due(&mut self, now: Moment) {
        while self.stops.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            if let Some(Reverse((_, id))) = self.stops.pop() {
                self.shard.stop(id);
            }
        }
    }

    /// Stops every client. Slots whose time had come and that were not begun are missed; those
    /// whose time had not come were cut off with the plan, and do not count.
    fn stop_all(&mut self, now: Moment) {
        while let Some(planned) = self.orders.plan.slots.get(self.next).copied() {
            self.next += 1;
            let start = self.orders.origin + planned.start;
            if start <= now {
                let slot = Slot { client: planned.client, workload: planned.workload, planned: start };
                let figures = self.shard.world.of(slot);
                figures.count(PLANNED, 1);
                figures.count(MISSED, 1);
            }
        }
        for Reverse((_, id)) in std::mem::take(&mut self.stops) {
            self.shard.stop(id);
        }
    }

    fn report(&mut self, last: bool) {
        let (busy, lag) = (self.busy.lap(), self.shard.take_lag());
        let mut figures = self.shard.world.take_figures();
        if !self.orders.background {
            for recorder in &mut figures {
                recorder.set(SHARD_BUSY, busy.as_micros() as u64);
                recorder.set(TURN_LAG, lag.as_micros() as u64);
            }
        }
        let report = Report {
            shard: self.orders.number,
            second: self.second,
            figures,
            remarks: self.shard.world.take_remarks(),
            deserted: self.shard.is_empty() && self.next == self.orders.plan.slots.len(),
            gaps: self.shard.world.take_gaps(),
            accounts: self.shard.world.take_accounts(),
            last,
        };
        self.shard.world.take_ended();
        self.second += 1;
        // A coordinator that is gone needs no report.
        let _ = self.orders.reports.send(report);
    }
}

/// How much of its time this thread ran, or waited for a CPU.
struct Busy {
    before: Duration,
    at: Moment,
}

impl Busy {
    fn start() -> Self {
        Self { before: Self::read(), at: clock::now() }
    }

    /// Of each second since the last call.
    fn lap(&mut self) -> Duration {
        let (total, now) = (Self::read(), clock::now());
        let used = total.saturating_sub(std::mem::replace(&mut self.before, total));
        let passed = now.since(std::mem::replace(&mut self.at, now));
        used.div_f64(passed.as_secs_f64().max(1e-3))
    }

    /// CPU time and run-queue wait of this thread, from `/proc/thread-self/schedstat`
    /// (fields 1 and 2, nanoseconds); the CPU time alone where the kernel does not count waits.
    fn read() -> Duration {
        std::fs::read_to_string("/proc/thread-self/schedstat")
            .ok()
            .and_then(|text| {
                let mut fields = text.split_ascii_whitespace().map(str::parse::<u64>);
                Some(Duration::from_nanos(fields.next()?.ok()? + fields.next()?.ok()?))
            })
            .unwrap_or_else(clock::thread_cpu)
    }
}
