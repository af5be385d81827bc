//! What the clients of one shard write in: figures, failures, and how each planned start ended.

use crate::keyframe_intervals::KeyframeIntervals;
use crate::startup_times::StartupTimes;
use crate::timeline::Track;
use crate::track_format::{MOST_TRACKS, TrackFormat};
use std::convert::Infallible;
use std::time::Duration;
use weir_metrics::{Failure, Moment, Recorder, Schema, common};
use weir_shard::{SessionId, World};

/// Remarks kept of one kind a shard and workload; the rest is only counted.
const REMARKS_OF_A_KIND: u32 = 20;

/// Gaps whose places are kept of one shard.
const MOST_GAPS: usize = 20_000;

/// One planned client start, as its client needs to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedStart {
    /// Number of the client within its workload, over all shards.
    pub client: u32,
    /// Position of the workload in the scenario.
    pub workload: u16,
    /// Where its figures are kept: a position among those of [`ShardRecorder::new`].
    pub cell: u16,
    /// When the plan wants the client to start.
    pub at: Moment,
    /// Which of those it is that come one after the other in one place.
    pub turn: Turn,
}

/// Which client it is of those that come one after the other in one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// How many were there before it.
    pub number: u32,
    /// For how long a client of this place stays in the mean; none if one client stays for all of the plan.
    pub mean_life: Option<Duration>,
}

impl PlannedStart {
    /// The number of the client in all that is written down: from 1, as in a fault (`viewer=3`).
    pub fn number(&self) -> u32 {
        self.client + 1
    }
}

/// How a planned start ended, one way only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It began within [`ON_TIME`] of its time and did not fail.
    OnTime,
    /// It began later and did not fail.
    Late,
    /// It failed.
    Failed(Failure),
}

/// How long after its planned start a client may begin and still be on time.
pub const ON_TIME: Duration = Duration::from_millis(100);

/// A client's failure for the log that a person reads; at most 20 of each kind a shard and workload are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFailure {
    /// When it happened.
    pub at: Moment,
    /// Which client of which workload.
    pub planned: PlannedStart,
    /// What kind of failure.
    pub failure: Failure,
    /// What was said, by the peer, the system, or else weir, cut to a line.
    pub words: String,
}

/// What one client has counted when it ends.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientRecord {
    /// When it ended.
    pub at: Moment,
    /// Whose it is.
    pub planned: PlannedStart,
    /// Position of what it read among its workload's targets.
    pub target: u32,
    /// Since when it has read; `None` if it never came to that.
    pub since: Option<Moment>,
    /// As what failure it ended, if it did.
    pub failure: Option<Failure>,
    /// One number for each of the columns of its protocol, in its base unit; none where nothing was measured.
    pub numbers: Vec<Option<f64>>,
}

/// A place in a stream where units are missing, so that readers of one stream can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// When its client came upon it.
    pub at: Moment,
    /// The planned start of the client that met it.
    pub planned: PlannedStart,
    /// Position of what it read among its workload's targets.
    pub target: u32,
    /// A number that is the same for all readers with the same gap.
    pub mark: u32,
    /// Where, in microseconds of the stream's own clock, the same for all its readers within a few milliseconds.
    pub place: u64,
}

/// The time that clients play, added up over them without looking at each: how many there are now times the time, less the times at which
/// they began, plus those at which they ended. All of it wraps, and differences do not mind.
#[derive(Clone, Copy, Debug, Default)]
struct TimeInState {
    begun: u64,
    taken: u64,
}

impl TimeInState {
    fn shift(&mut self, by: i64, now: Moment) {
        self.begun = self.begun.wrapping_add(micros(now).wrapping_mul(by as u64));
    }

    /// Microseconds since the last call.
    fn take(&mut self, clients: u64, now: Moment) -> u64 {
        let all = clients.wrapping_mul(micros(now)).wrapping_sub(self.begun);
        let more = all.wrapping_sub(self.taken);
        // A thread may be late for a second's end: what begins behind it is no part of it.
        if (more as i64) < 0 {
            return 0;
        }
        self.taken = all;
        more
    }
}

fn micros(now: Moment) -> u64 {
    now.as_nanos() / 1_000
}

/// When something last happened to a client of a cell.
#[derive(Clone, Copy, Debug, Default)]
pub struct Latest {
    /// One that played lost its link (the figure `cut_off`).
    pub cut_off: Option<Moment>,
    /// Such a client played again (`returned`).
    pub returned: Option<Moment>,
    /// A publisher's count of units was over.
    pub count_end: Option<Moment>,
    /// The last frame of pictures, and of sound, came to viewers that are without them, or were.
    pub frames: [Option<Moment>; 2],
}

/// The [`World`] of a shard of clients.
#[derive(Debug)]
pub struct ShardRecorder {
    recorders: Vec<Recorder>,
    /// Of each recorder: for how long its clients have played.
    played: Vec<TimeInState>,
    /// The same of waits for keyframes.
    waited: Vec<TimeInState>,
    /// Of each recorder: how long its latest clients took to play.
    startups: Vec<StartupTimes>,
    /// How far apart keyframes of each stream were.
    keyframe_intervals: KeyframeIntervals,
    /// Of each recorder.
    latest: Vec<Latest>,
    told: Vec<[u32; Failure::ALL.len()]>,
    failures: Vec<ClientFailure>,
    /// How planned starts ended, if anybody asks.
    ended: Option<Vec<(PlannedStart, Ending)>>,
    client_records: Vec<ClientRecord>,
    gaps: Vec<Gap>,
    /// How many gaps were kept so far.
    placed: usize,
    /// What tracks of workloads are, and how many of them have been handed out.
    tracks: Vec<(u16, TrackFormat)>,
    tracks_taken: usize,
}

impl ShardRecorder {
    /// One recorder a cell: a workload has one, or one for each of its servers.
    pub fn new(schemas: impl IntoIterator<Item = Schema>) -> Self {
        let recorders: Vec<_> = schemas.into_iter().map(Recorder::new).collect();
        let told = vec![[0; Failure::ALL.len()]; recorders.len()];
        Self {
            played: vec![TimeInState::default(); recorders.len()],
            waited: vec![TimeInState::default(); recorders.len()],
            startups: vec![StartupTimes::default(); recorders.len()],
            keyframe_intervals: KeyframeIntervals::default(),
            latest: vec![Latest::default(); recorders.len()],
            recorders,
            told,
            failures: Vec::new(),
            ended: None,
            client_records: Vec::new(),
            gaps: Vec::new(),
            placed: 0,
            tracks: Vec::new(),
            tracks_taken: 0,
        }
    }

    /// The same, which keeps how each planned start ended for [`Self::take_ended`]: for tests of single clients. A run has this in
    /// its figures.
    pub fn keeping_endings(mut self) -> Self {
        self.ended = Some(Vec::new());
        self
    }

    /// The figures that a client counts in.
    #[inline]
    pub fn of(&mut self, planned: PlannedStart) -> &mut Recorder {
        &mut self.recorders[usize::from(planned.cell)]
    }

    /// Books the end of a planned start.
    pub fn end(&mut self, planned: PlannedStart, ending: Ending) {
        let recorder = self.of(planned);
        match ending {
            Ending::OnTime => recorder.count(common::ON_TIME, 1),
            Ending::Late => recorder.count(common::LATE, 1),
            Ending::Failed(failure) => recorder.fail(failure),
        }
        self.ended.iter_mut().for_each(|ended| ended.push((planned, ending)));
    }

    /// A client came to play, so long after its planned start.
    pub(crate) fn note_startup(&mut self, planned: PlannedStart, startup: Duration) {
        self.startups[usize::from(planned.cell)].add(startup);
    }

    /// How long a client that is replaced by plan must have stayed for it to say anything of the server that it has not played: half of a
    /// mean life, and as long as others take. None of one that stays for all of the plan.
    pub(crate) fn patience(&self, planned: PlannedStart) -> Option<Duration> {
        let half = planned.turn.mean_life? / 2;
        Some(half.max(self.startups[usize::from(planned.cell)].needed()))
    }

    /// `by` more clients play from `now` on.
    pub fn shift_playing(&mut self, planned: PlannedStart, by: i64, now: Moment) {
        self.of(planned).shift(common::PLAYING, by);
        self.played[usize::from(planned.cell)].shift(by, now);
    }

    /// `by` more viewers wait for a keyframe from `now` on.
    pub(crate) fn shift_waiting(&mut self, planned: PlannedStart, by: i64, now: Moment) {
        self.of(planned).shift(common::WAITING, by);
        self.waited[usize::from(planned.cell)].shift(by, now);
    }

    /// Books for how long clients have played, and waited for keyframes, since the last call, up to `now`.
    pub fn book_times(&mut self, now: Moment) {
        for (recorder, played) in self.recorders.iter_mut().zip(&mut self.played) {
            recorder.count(common::PLAYED_TIME, played.take(recorder.gauge(common::PLAYING), now));
        }
        for (recorder, waited) in self.recorders.iter_mut().zip(&mut self.waited) {
            recorder.count(common::WAITED_TIME, waited.take(recorder.gauge(common::WAITING), now));
        }
    }

    /// Notes how many targets a workload has, each of them a stream.
    pub(crate) fn set_targets(&mut self, workload: u16, targets: usize) {
        self.keyframe_intervals.set_targets(workload, targets);
    }

    /// Notes that two keyframes of what this viewer plays came this far apart.
    pub(crate) fn note_keyframe_interval(&mut self, planned: PlannedStart, interval: Duration) {
        self.keyframe_intervals.note(planned.workload, planned.client, interval);
    }

    /// Notes that a keyframe of what this viewer plays came.
    pub(crate) fn keyframe_came(&mut self, planned: PlannedStart, now: Moment) {
        self.keyframe_intervals.came(planned.workload, planned.client, now);
    }

    /// How long ago the latest keyframe came to a viewer of what this one plays.
    pub(crate) fn since_keyframe(&self, planned: PlannedStart, now: Moment) -> Option<Duration> {
        self.keyframe_intervals.since_latest(planned.workload, planned.client, now)
    }

    /// The longest that keyframes of what this viewer plays were apart, if one has had two.
    pub(crate) fn keyframe_interval(&self, planned: PlannedStart) -> Option<Duration> {
        self.keyframe_intervals.longest(planned.workload, planned.client)
    }

    /// Books that a client which played has lost its link, and looks for another.
    pub fn cut_off(&mut self, planned: PlannedStart, now: Moment) {
        self.of(planned).count(common::CUT_OFF, 1);
        self.of(planned).shift(common::AWAY, 1);
        self.latest[usize::from(planned.cell)].cut_off = Some(now);
    }

    /// Books that such a client plays again.
    pub fn returned(&mut self, planned: PlannedStart, now: Moment) {
        self.of(planned).count(common::RETURNED, 1);
        self.latest[usize::from(planned.cell)].returned = Some(now);
    }

    /// Of each cell.
    pub fn latest(&self) -> &[Latest] {
        &self.latest
    }

    /// Notes the track that a viewer is without from now on, and when its last frame came.
    #[inline]
    pub fn track_ended(&mut self, planned: PlannedStart, ended: Option<(Track, Moment)>) {
        if let Some((track, at)) = ended {
            let last = &mut self.latest[usize::from(planned.cell)].frames[track as usize];
            *last = (*last).max(Some(at));
        }
    }

    /// Books that a publisher has sent all units of its count, and when the next one would have been due.
    pub fn count_reached(&mut self, planned: PlannedStart, end: Moment) {
        let latest = &mut self.latest[usize::from(planned.cell)].count_end;
        *latest = (*latest).max(Some(end));
    }

    /// Keeps the peer's words with a failure, as long as not too many of its kind were kept.
    pub fn failure(&mut self, at: Moment, planned: PlannedStart, failure: Failure, words: &str) {
        let told = &mut self.told[usize::from(planned.workload)][failure as usize];
        *told += 1;
        if *told <= REMARKS_OF_A_KIND {
            let words = words.chars().filter(|c| !c.is_control()).take(200).collect();
            self.failures.push(ClientFailure { at, planned, failure, words });
        }
    }

    /// Keeps what a client has counted in all.
    pub fn record_client(&mut self, account: ClientRecord) {
        self.client_records.push(account);
    }

    /// Keeps a place where units are missing, as long as not too many were.
    pub fn gap(&mut self, gap: Gap) {
        if self.placed < MOST_GAPS {
            self.placed += 1;
            self.gaps.push(gap);
        }
    }

    /// Notes what a track of a workload's streams is. Viewers of one stream are told the same.
    #[cold]
    pub fn track(&mut self, planned: PlannedStart, format: TrackFormat) {
        let mut of_workload = self.tracks.iter().filter(|(workload, _)| *workload == planned.workload);
        let is_known = of_workload.clone().any(|(_, known)| *known == format);
        if !is_known && of_workload.nth(MOST_TRACKS - 1).is_none() {
            self.tracks.push((planned.workload, format));
        }
    }

    /// Hands out the tracks that were found since the last call, with the positions of their workloads.
    pub fn take_tracks(&mut self) -> Vec<(u16, TrackFormat)> {
        let new = self.tracks[self.tracks_taken..].to_vec();
        self.tracks_taken = self.tracks.len();
        new
    }

    /// Hands out what clients have counted that ended since the last call.
    pub fn take_client_records(&mut self) -> Vec<ClientRecord> {
        std::mem::take(&mut self.client_records)
    }

    /// Hands out the gaps since the last call.
    pub fn take_gaps(&mut self) -> Vec<Gap> {
        std::mem::take(&mut self.gaps)
    }

    /// Hands out an interval's figures, one recorder a cell, and starts the next.
    pub fn take_figures(&mut self) -> Vec<Recorder> {
        self.recorders.iter_mut().map(Recorder::take).collect()
    }

    /// Hands out the failures since the last call.
    pub fn take_failures(&mut self) -> Vec<ClientFailure> {
        std::mem::take(&mut self.failures)
    }

    /// Hands out the planned starts that ended since the last call, if they are kept.
    pub fn take_ended(&mut self) -> Vec<(PlannedStart, Ending)> {
        self.ended.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

impl World for ShardRecorder {
    type Message = Infallible;

    fn receive(&mut self, message: Infallible, _: Moment, _: &mut Vec<SessionId>) {
        match message {}
    }
}
