//! One generator thread: starts its slots in time, turns its shard, hands out an interval a second.

use crate::plan::starts::Starts;
use crate::plan::{Plan, PlannedLife, PlannedSlot};
use crate::run::cells::Cells;
use crate::run::coordinator_message::{CoordinatorMessage, ThreadReport};
use crate::seconds::arrivals::Arrivals;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;
use weir_clients::{ClientShard, PlannedStart, ShardRecorder, Turn, Workload};
use weir_metrics::common::{
    COUNT_END, EDGE_AGE, EXITS_BEFORE_START, LAST_CUT_OFF, LAST_PICTURE, LAST_RETURN, LAST_SOUND, LATE_TURNS,
    MEDIA, MISSED, ON_TIME, PLANNED, RECEIVED, SHARD_BUSY, SHARD_WAIT, STARTED, TURN_LAG,
};
use weir_metrics::{Moment, Recorder};
use weir_shard::{Endpoint, SessionId, clock};

/// Slots started between two turns of the loop, so that running clients keep their turn.
const STARTS_A_TURN: usize = 32;
/// Longest sleep, so that a stop is noticed.
const LONGEST_TURN: Duration = Duration::from_millis(50);
/// Clients of the crowd that are asked at a second's end how much waits for them. Up to this many, all are, and the
/// second is exact; of more a sample of this size is, whose mean is good to 3 % of what waits, and what waits is less
/// than a second of the streams.
const ASKED: usize = 500;

/// What a generator thread does.
pub(crate) struct GeneratorConfig {
    /// Its segment of the plan.
    pub(crate) plan: Plan,
    /// All workloads of the run.
    pub(crate) workloads: Arc<[Workload]>,
    /// Seconds of the slices that windows are cut into, if they are.
    pub(crate) slice_seconds: Option<u32>,
    /// Beginning of second 0.
    pub(crate) origin: Moment,
    /// Time for goodbyes after the plan's end.
    pub(crate) drain: Duration,
    /// Set when the run must end now.
    pub(crate) stop: Arc<AtomicBool>,
    /// Where intervals go.
    pub(crate) reports: Sender<CoordinatorMessage>,
    /// Its number among the generator threads of this run.
    pub(crate) number: usize,
    /// How many generator threads the run has.
    pub(crate) threads: usize,
    /// Whether it drives what only disturbs the others: how busy it is says nothing about them.
    pub(crate) background: bool,
}

struct Generator {
    config: GeneratorConfig,
    shard: ClientShard,
    starts: Starts,
    stops: BinaryHeap<Reverse<(Moment, SessionId)>>,
    second: u32,
    busy: Busy,
    cells: Cells,
    /// One a cell.
    arrivals: Vec<Arrivals>,
    /// The cell of each session, by its index.
    cell_of: Vec<u16>,
}

/// Runs a generator thread to its plan's end.
///
/// # Errors
/// The event loop could not be made, or failed.
pub(crate) fn run(config: GeneratorConfig) -> std::io::Result<()> {
    let cells = Cells::of(config.workloads.iter());
    let mut shard = ClientShard::new(ShardRecorder::new(cells.schemas()))?;
    shard.set_thread(config.number, config.threads);
    let mut generator = Generator {
        shard,
        starts: Starts::of(&config.plan),
        stops: BinaryHeap::new(),
        second: 0,
        busy: Busy::start(),
        arrivals: vec![Arrivals::new(config.origin); cells.schemas().count()],
        cell_of: Vec::new(),
        cells,
        config,
    };
    generator.work()
}

impl Generator {
    fn work(&mut self) -> std::io::Result<()> {
        let end = self.config.origin + self.config.plan.length;
        let mut ending: Option<Moment> = None;
        loop {
            let now = clock::now();
            if now >= self.second_end() {
                // All that is counted on both sides of an edge is read, so that counts of bytes and frames are of the same bytes.
                let is_edge = self.config.plan.is_edge(self.second + 1, self.config.slice_seconds);
                if is_edge {
                    self.shard.sweep(self.second_end());
                }
                self.report(if is_edge { SecondEnd::Edge } else { SecondEnd::Within });
            }
            if ending.is_none() && (now >= end || self.config.stop.load(Ordering::Relaxed)) {
                self.stop_all(now);
                ending = Some(now + self.config.drain);
            }
            if ending.is_none() {
                // A client that leaves makes room for the one that replaces it.
                self.stop_due(now);
                self.start_due(now);
            }
            if ending.is_some_and(|by| now >= by || self.shard.is_empty() && !self.is_decoding()) {
                // Clients that still wait for something end without it: each planned start has an end in the figures.
                self.shard.stop_all();
                self.report(SecondEnd::Last);
                return Ok(());
            }
            let until = self.next_moment(ending).min(now + LONGEST_TURN);
            self.shard.turn(until)?;
        }
    }

    /// Whether what viewers were given is still being decoded.
    fn is_decoding(&self) -> bool {
        self.config.workloads.iter().filter_map(|it| it.decoders.as_ref()).any(|it| it.is_busy())
    }

    fn second_end(&self) -> Moment {
        self.config.origin + Duration::from_secs(u64::from(self.second) + 1)
    }

    fn next_moment(&self, ending: Option<Moment>) -> Moment {
        let start = self.starts.peek().filter(|_| ending.is_none());
        let start = start.map(|planned| self.config.origin + planned.start);
        let stop = self.stops.peek().map(|Reverse((at, _))| *at);
        [start, stop, ending].into_iter().flatten().fold(self.second_end(), Moment::min)
    }

    fn start_due(&mut self, now: Moment) {
        for _ in 0..STARTS_A_TURN {
            let Some(planned) = self.pop_due(now) else { return };
            self.start(planned, now);
        }
    }

    /// The next start whose time has come. Threads are ready before the run's first moment, and nothing is due before that.
    fn pop_due(&mut self, now: Moment) -> Option<PlannedLife> {
        let origin = self.config.origin;
        if now < origin { None } else { self.starts.pop_due(now.since(origin)) }
    }

    fn planned_start(&self, planned: &PlannedLife) -> PlannedStart {
        let PlannedSlot { client, workload, turnover, .. } = planned.slot;
        let server = self.config.workloads[usize::from(workload)].server(client);
        let cell = self.cells.cell(workload, server);
        let turn = Turn { number: planned.turn, mean_life: turnover.map(|turnover| turnover.life.mean()) };
        PlannedStart { client, workload, cell, at: self.config.origin + planned.start, turn }
    }

    fn start(&mut self, planned: PlannedLife, now: Moment) {
        let slot = self.planned_start(&planned);
        let stop = self.config.origin + planned.stop;
        self.shard.recorder().of(slot).count(PLANNED, 1);
        if stop <= now {
            // A life may be shorter than a turn of the loop: it was over before anyone could be late for it.
            let was_on_time = slot.turn.mean_life.is_some() && now <= slot.at + weir_clients::ON_TIME;
            let recorder = self.shard.recorder().of(slot);
            let counters = if was_on_time { &[ON_TIME, STARTED, EXITS_BEFORE_START][..] } else { &[MISSED] };
            counters.iter().for_each(|counter| recorder.count(*counter, 1));
            return;
        }
        let workload = &self.config.workloads[usize::from(slot.workload)];
        let endpoint = Endpoint { from: planned.slot.from, ..workload.endpoint(slot.client).clone() };
        let session = workload.start(slot, now, self.shard.recorder());
        // A link that cannot be opened has reported that to its session, which has recorded the failure.
        if let Ok(id) = self.shard.open(&endpoint, session) {
            self.stops.push(Reverse((stop, id)));
            if self.cell_of.len() <= id.index() {
                self.cell_of.resize(id.index() + 1, 0);
            }
            self.cell_of[id.index()] = slot.cell;
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
        while let Some(planned) = self.pop_due(now) {
            let slot = self.planned_start(&planned);
            let figures = self.shard.recorder().of(slot);
            figures.count(PLANNED, 1);
            figures.count(MISSED, 1);
        }
        self.starts = Starts::of(&Plan::default());
        for Reverse((_, id)) in std::mem::take(&mut self.stops) {
            self.shard.stop(id);
        }
    }

    fn report(&mut self, end: SecondEnd) {
        let ((busy, waited), lag) = (self.busy.lap(), self.shard.take_lag());
        let closed = if end == SecondEnd::Last { clock::now() } else { self.second_end() };
        self.shard.recorder().book_times(closed);
        let mut figures = self.shard.recorder().take_figures();
        self.count_arrivals(&mut figures, end);
        // Cells of workloads come first, and those of single servers behind them.
        for (recorder, workload) in figures.iter_mut().zip(self.config.workloads.iter()) {
            if let Some(decoders) = &workload.decoders {
                decoders.book(recorder);
            }
        }
        let origin = self.config.origin;
        let since = |at: Option<Moment>| at.map_or(0, |at| at.since(origin).as_micros() as u64);
        for (recorder, latest) in figures.iter_mut().zip(self.shard.recorder().latest()) {
            let [picture, sound] = latest.frames;
            recorder.set(LAST_CUT_OFF, since(latest.cut_off));
            recorder.set(LAST_RETURN, since(latest.returned));
            recorder.set(COUNT_END, since(latest.count_end));
            recorder.set(LAST_PICTURE, since(picture));
            recorder.set(LAST_SOUND, since(sound));
        }
        if !self.config.background {
            // Of a thread, whatever its clients do: once a workload.
            for recorder in figures.iter_mut().take(self.config.workloads.len()) {
                recorder.set(SHARD_BUSY, busy.as_micros() as u64);
                recorder.set(SHARD_WAIT, waited.as_micros() as u64);
                recorder.set(TURN_LAG, lag.longest.as_micros() as u64);
                recorder.set(LATE_TURNS, lag.late.as_micros() as u64);
            }
        }
        let report = ThreadReport {
            shard: self.config.number,
            second: self.second,
            figures,
            failures: self.shard.recorder().take_failures(),
            deserted: self.shard.is_empty() && self.starts.is_empty(),
            gaps: self.shard.recorder().take_gaps(),
            client_records: self.shard.recorder().take_client_records(),
            tracks: self.shard.recorder().take_tracks(),
            consumer_end: None,
            last: end == SecondEnd::Last,
        };
        self.second += 1;
        // A coordinator that is gone needs no report.
        let _ = self.config.reports.send(CoordinatorMessage::Thread(report));
    }
}

impl Generator {
    /// Puts in the place of the media that was read in a second what came in it.
    fn count_arrivals(&mut self, figures: &mut [Recorder], second: SecondEnd) {
        let (end, mut unread) = (self.second_end(), vec![0; figures.len()]);
        if second == SecondEnd::Within {
            self.shard.unread(ASKED, &mut |id, bytes, sessions| {
                let cell = self.cell_of.get(id.index()).map_or(0, |cell| usize::from(*cell));
                unread[cell] += (bytes * sessions) as u64;
            });
        }
        let now = clock::now();
        for ((arrivals, recorder), unread) in self.arrivals.iter_mut().zip(figures).zip(unread) {
            let (media, received) = (recorder.counter(MEDIA), recorder.counter(RECEIVED));
            let came = match second {
                SecondEnd::Last => arrivals.rest(media),
                // Each viewer has said when the last of it came.
                SecondEnd::Edge if !recorder.signed(EDGE_AGE).is_empty() => {
                    arrivals.edge(end, media, received)
                }
                SecondEnd::Edge | SecondEnd::Within => arrivals.second(end, now, media, received, unread),
            };
            recorder.recount(MEDIA, came);
        }
    }
}

/// What a second ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SecondEnd {
    /// Nothing: the next goes on as it did.
    Within,
    /// An edge of what is judged.
    Edge,
    /// The end of the thread.
    Last,
}

/// How much of its time this thread ran or waited for a CPU.
struct Busy {
    before: Times,
    at: Moment,
}

/// What a thread's time went into so far.
#[derive(Clone, Copy)]
struct Times {
    ran: Duration,
    waited: Duration,
}

impl Busy {
    fn start() -> Self {
        Self { before: Times::read(), at: clock::now() }
    }

    /// Of each second since the last call, how much it ran or waited, and how much it waited.
    fn lap(&mut self) -> (Duration, Duration) {
        let (times, now) = (Times::read(), clock::now());
        let before = std::mem::replace(&mut self.before, times);
        let passed = now.since(std::mem::replace(&mut self.at, now)).as_secs_f64().max(1e-3);
        let waited = times.waited.saturating_sub(before.waited);
        let busy = times.ran.saturating_sub(before.ran) + waited;
        (busy.div_f64(passed), waited.div_f64(passed))
    }
}

impl Times {
    /// Of this thread, from `/proc/thread-self/schedstat` (fields 1 and 2, nanoseconds); the CPU time alone where the
    /// kernel does not count waits.
    fn read() -> Self {
        std::fs::read_to_string("/proc/thread-self/schedstat")
            .ok()
            .and_then(|text| {
                let mut fields = text.split_ascii_whitespace().map(str::parse).map_while(Result::ok);
                let mut next = || fields.next().map(Duration::from_nanos);
                Some(Self { ran: next()?, waited: next()? })
            })
            .unwrap_or_else(|| Self { ran: clock::thread_cpu(), waited: Duration::ZERO })
    }
}
