//! One workload: its stages, its readers, its servers, and the whole of it.

use super::blocks::Blocks;
use super::slice::{Slice, SliceTotals};
use super::stage::StageAggregator;
use crate::agents::clients::OpenClients;
use crate::clients::channel::Readers;
use crate::clients::servers::ServerTotals;
use crate::ingest::{Imbalance, Ingested};
use crate::plan::{StageSpan, Turnover};
use crate::scenario::facts::WorkloadFacts;
use crate::scenario::role::Role;
use crate::seconds::edges::{Edge, Patience};
use crate::seconds::outage::{Blackouts, Outage, TrackOutages};
use crate::seconds::startup_map::StartupCounts;
use crate::seconds::steadiness::{self, Starvation};
use crate::seconds::totals::Totals;
use crate::summary::{
    FailureCount, Figures, MessageRate, Reason, Slots, StageSummary, TurnoverSummary, WorkloadSummary,
};
use crate::threshold::{Scope, Threshold};
use crate::verdict::{self, counts};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::{AddAssign, Range};
use std::time::Duration;
use weir_clients::{MOST_TRACKS, TrackFormat};
use weir_metrics::common::{
    COUNT_END, EXITS_BEFORE_START, FAILED, FRAMES, KEYFRAME_WAITS, LATE, LATENCY, MEDIA, MISSED,
    NEGATIVE_LATENCIES, ON_TIME, PLANNED, PLAYED, PLAYING, SOCKET_DROPS, SOURCE_TIME, STARTED, STARTUP,
    UNITS, UNITS_SHORT, WALL_LATENCIES,
};
use weir_metrics::{BitRate, Interval, Schema, Side, Unit, several};
use weir_observe::{Environment, UsageSummary};

#[derive(Debug)]
pub(super) struct WorkloadAggregator {
    pub(super) facts: WorkloadFacts,
    /// For how long a client stays before another comes in its place.
    pub(super) turnover: Option<Turnover>,
    pub(super) total: Totals,
    pub(super) stages: Vec<StageAggregator>,
    pub(super) readers: Readers,
    pub(super) starvation: Starvation,
    /// Of pictures, and of sound.
    pub(super) outages: [TrackOutages; 2],
    pub(super) blackouts: Blackouts,
    /// What became of the messages that it saved.
    pub(super) ingested: Option<Ingested>,
    /// Of each of its servers, if it has several, over the whole run.
    pub(super) servers: Vec<ServerTotals>,
    /// What the tracks of its streams are.
    tracks: BTreeSet<TrackFormat>,
    seconds: Blocks<SecondSums>,
    startups: StartupCounts,
    /// What its viewers had got when the latest second ended, if it ended with an edge.
    edge: Option<Edge>,
    /// Clients that are gone with their agent.
    let_go: OpenClients,
}

/// How far a second's pictures may be from the mean and still be of a source that has as many in each: this part of it, and this many, since
/// a second begins between two of them.
const STEADY_RATE: f64 = 0.2;
const STEADY_FRAMES: f64 = 1.5;

/// The share of seconds that may be farther: publishers start, and are late and catch up.
const UNSTEADY_SHARE: f64 = 0.1;

/// What is kept of each second.
#[derive(Clone, Copy, Debug, Default)]
struct SecondSums {
    media: u64,
    /// Pictures.
    frames: u64,
    /// Clients that played or published.
    playing: u64,
    seconds: u32,
}

impl AddAssign for SecondSums {
    fn add_assign(&mut self, other: Self) {
        self.media = self.media.saturating_add(other.media);
        self.frames = self.frames.saturating_add(other.frames);
        self.playing = self.playing.saturating_add(other.playing);
        self.seconds = self.seconds.saturating_add(other.seconds);
    }
}

/// What a source sends to one client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub(super) bps: f64,
    /// Video frames a second, where it has pictures, and as many in each.
    pub(super) fps: Option<f64>,
}

impl WorkloadAggregator {
    pub(super) fn new(
        facts: WorkloadFacts,
        schema: Schema,
        turnover: Option<Turnover>,
        spans: impl Iterator<Item = StageSpan>,
        edges: Vec<u32>,
    ) -> Self {
        Self {
            turnover,
            total: Totals::new(schema),
            stages: spans.map(|span| StageAggregator::new(span, schema, turnover.is_some())).collect(),
            readers: Readers::default(),
            starvation: Starvation::default(),
            outages: TrackOutages::of_both(),
            blackouts: Blackouts::default(),
            tracks: BTreeSet::new(),
            ingested: None,
            servers: facts.servers.iter().map(|_| ServerTotals::new(schema)).collect(),
            seconds: Blocks::new(edges),
            startups: StartupCounts::default(),
            edge: None,
            let_go: OpenClients::default(),
            facts,
        }
    }

    /// Takes note of what a track of its streams is.
    pub(super) fn take_track(&mut self, track: &TrackFormat) {
        if self.tracks.len() < MOST_TRACKS {
            self.tracks.insert(track.clone());
        }
    }

    /// Adds a second, or several that are one interval; those that are not `steady`, since the run was being stopped, to no
    /// window.
    pub(super) fn add(&mut self, interval: &Interval, steady: bool, slice_seconds: Option<u32>) {
        let (second, seconds, figures) = (interval.key.second, interval.seconds(), &interval.figures);
        let edge = std::mem::replace(&mut self.edge, Edge::of(figures));
        self.total.add(interval);
        self.startups.add(second, figures.spread(STARTUP));
        let (media, frames) = (figures.counter(MEDIA), figures.counter(FRAMES));
        let playing = interval.level_of(PLAYING).sum;
        self.seconds.add(second..interval.end(), SecondSums { media, frames, playing, seconds });
        // What begins after the last stage's end (a slow startup) still belongs to that stage.
        let stage =
            self.stages.iter_mut().rev().find(|stage| stage.span.begin.as_secs() <= u64::from(second));
        let Some(stage) = stage else { return };
        stage.whole.add(interval);
        let (begin, end) = (stage.span.window_begin, stage.span.window_end);
        if steady && (begin..end).contains(&second) {
            stage.add_to_window(edge.as_ref(), interval);
            if let Some(length) = slice_seconds {
                stage.add_to_slice(length, media as f64, edge.as_ref(), interval);
            }
        }
    }

    /// The share of its time in which a place has a client, by plan: less than 1 of publishers that stop and come back.
    pub(super) fn presence(&self) -> f64 {
        self.turnover.map_or(1.0, Turnover::presence)
    }

    /// Media bits a second of one of its clients, over these seconds.
    pub(super) fn client_bps_in(&self, seconds: Range<u32>) -> Option<f64> {
        let mut sums = SecondSums::default();
        self.seconds.of(seconds).for_each(|block| sums += block);
        (sums.media > 0 && sums.playing > 0).then(|| sums.media as f64 * 8.0 / sums.playing as f64)
    }

    /// Pictures a second of one of its clients, over these seconds, if they have as many in nearly all of them: where they have not, viewers
    /// that are a little behind have others in the same time.
    pub(super) fn client_fps_in(&self, seconds: Range<u32>) -> Option<f64> {
        let blocks: Vec<_> = self.seconds.of(seconds).filter(|block| block.playing > 0).collect();
        let mut sums = SecondSums::default();
        blocks.iter().for_each(|&block| sums += block);
        let mean = sums.frames as f64 / sums.playing as f64;
        let differs = |block: &&SecondSums| {
            let frames = block.frames as f64 / block.playing as f64;
            (frames - mean).abs() > (mean * STEADY_RATE).max(STEADY_FRAMES / f64::from(block.seconds))
        };
        let differing: u32 = blocks.iter().filter(differs).map(|block| block.seconds).sum();
        let is_steady = f64::from(differing) <= f64::from(sums.seconds) * UNSTEADY_SHARE;
        (sums.frames > 0 && is_steady).then(|| mean * self.presence())
    }

    /// Media bytes of each second of a stage's window; of a long run in the mean of each block of seconds.
    fn media_of(&self, stage: &StageAggregator) -> Vec<f64> {
        let blocks = self.seconds.of(stage.span.window_begin..stage.window_end());
        blocks.map(|block| block.media as f64 / f64::from(block.seconds.max(1))).collect()
    }

    /// What the source sends for one client: the scenario's word, else what the run's own publisher
    /// sent, else the stream's rate by its own clock.
    pub(super) fn client_bps(&self, published: Option<Source>, stretch: &Totals) -> Option<f64> {
        let said = self.facts.expect.map(BitRate::bps);
        match self.facts.role {
            Role::Publish | Role::Ingest => said,
            // What the streams send to the peer does not come back.
            Role::Play if self.facts.background => said,
            Role::Play => said
                .or(published.map(|source| source.bps))
                .or_else(|| stretch.source_bps())
                .or_else(|| self.total.source_bps()),
        }
    }

    /// How many messages a second `units` in `seconds` are, where its clients send or receive messages, beside what that
    /// many publishers are to send.
    pub(super) fn messages(&self, clients: f64, units: u64, seconds: f64) -> Option<MessageRate> {
        let has = self.facts.role != Role::Ingest && weir_protocols::has_messages(&self.facts.protocol);
        (has && seconds > 0.0).then(|| MessageRate {
            offered_per_second: self.facts.messages_per_second.map(|rate| rate * clients * self.presence()),
            actual_per_second: units as f64 / seconds,
        })
    }

    /// When the last of its publishers had sent its count, in seconds of the run, if each of them has one, and all of it was sent.
    pub(super) fn count_end(&self) -> Option<f64> {
        let Slots { planned, on_time, late, .. } = self.slots();
        let end = self.total.figures.gauge(COUNT_END);
        let is_over = end > 0 && on_time + late == planned && self.total.figures.counter(UNITS_SHORT) == 0;
        is_over.then(|| end as f64 * Unit::Micros.scale())
    }

    /// Video frames a second of the source, where its viewers have pictures.
    fn source_fps(&self, published: Option<Source>, stretch: &Totals) -> Option<f64> {
        if self.facts.role != Role::Play || self.facts.background {
            return None;
        }
        let published = published.and_then(|source| source.fps);
        // What was known at other times is not held against a stretch in which it was not.
        published.or_else(|| if stretch.has_media_time() { stretch } else { &self.total }.source_fps())
    }

    /// Sets what there is to say of the frames of a stretch, by whole bursts: frames that were due at its end and came behind it are not
    /// missing, and those that were due before it are not of it. The rate of the source is one of pictures alone.
    fn set_frames(
        &self,
        row: &mut StageSummary,
        published: Option<Source>,
        stretch: &Totals,
        patience: Patience,
    ) {
        let Some(bursts) = stretch.whole_bursts(patience).filter(|_| stretch.seconds > 0) else { return };
        row.source_fps = self.source_fps(published, stretch);
        row.frames_due = stretch.figures.counter(FRAMES) as f64 * (bursts.pictures - 1.0);
    }

    /// These clients are gone with their agent: they were neither planned nor played, and did not wait for a keyframe.
    pub(super) fn let_go(&mut self, open: OpenClients) {
        self.let_go.begun += open.begun;
        self.let_go.played += open.played;
        self.let_go.waiting += open.waiting;
    }

    /// Whether its clients are viewers of streams, which have a media time: messages come when they come.
    pub(super) fn views_streams(&self) -> bool {
        self.facts.role == Role::Play && !self.facts.background && self.total.has_media_time()
    }

    /// Whether a second in these, or beside them, has no client that plays or publishes.
    pub(super) fn is_away_in(&self, seconds: Range<u32>) -> bool {
        self.seconds.of(seconds.start.saturating_sub(1)..seconds.end + 1).any(|block| block.playing == 0)
    }

    /// All that was counted, without the clients that were let go.
    fn counted(&self) -> Cow<'_, Totals> {
        let OpenClients { begun, played, waiting } = self.let_go;
        if begun == 0 {
            return Cow::Borrowed(&self.total);
        }
        let mut total = self.total.clone();
        let gone = [(PLANNED, begun), (STARTED, begun), (PLAYED, played), (KEYFRAME_WAITS, waiting)];
        for (counter, gone) in gone {
            let counted = total.figures.counter(counter);
            total.figures.recount(counter, counted.saturating_sub(gone));
        }
        Cow::Owned(total)
    }

    /// Datagrams for which sockets of weir's own had no room.
    pub(super) fn socket_drops(&self) -> u64 {
        self.total.figures.counter(SOCKET_DROPS)
    }

    /// Datagrams with media.
    pub(super) fn datagrams(&self) -> u64 {
        weir_protocols::datagrams(&self.facts.protocol, &self.total.figures)
    }

    /// Datagrams that were sent and never acknowledged, where that is counted.
    pub(super) fn given_up(&self) -> u64 {
        weir_protocols::given_up(&self.facts.protocol, &self.total.figures)
    }

    pub(super) fn summary(
        &self,
        number: u16,
        published: &[Option<Source>],
        usages: &[Option<UsageSummary>],
        environment: &Environment,
        ended: Option<Duration>,
        count_end: Option<f64>,
    ) -> (WorkloadSummary, Vec<Reason>) {
        let total = self.counted();
        let mut reasons = verdict::of_workload(&self.facts.protocol, &total.figures, self.slots());
        let own = weir_protocols::own_excesses(&self.facts.protocol, &total.figures);
        reasons.extend(own.into_iter().map(verdict::of_own_excess));
        reasons.extend(self.ingested.as_ref().and_then(verdict::of_account));
        let patience = Patience::of(&self.total.figures);
        let mut stages = Vec::new();
        for ((stage, usage), published) in self.stages.iter().zip(usages).zip(published) {
            let client_bps = self.client_bps(*published, &stage.window);
            let mut row = stage.summary(client_bps, patience, usage.as_ref(), environment, ended, count_end);
            row.window_is_void = self.is_void(stage, &self.media_of(stage));
            let units = stage.window.figures.counter(UNITS);
            let planned = f64::from(row.clients) - row.lost_mean;
            let seconds = stage.window.rate_seconds(stage.span.window_begin, count_end);
            row.messages = self.messages(planned, units, seconds).filter(|_| stage.window.seconds > 0);
            let frame_time = self.facts.frame_time_seconds;
            self.set_frames(&mut row, *published, &stage.window, patience);
            let judged = usage.as_ref().filter(|_| stage.window.seconds > 0);
            reasons.extend(verdict::of_stage(number, &row, judged, &environment.cpu, frame_time));
            stages.push(row);
        }
        let mut failures: Vec<FailureCount> = self
            .total
            .figures
            .failures()
            .map(|(kind, clients)| FailureCount { kind, side: kind.side(), clients, words: String::new() })
            .collect();
        failures.sort_by_key(|failure| std::cmp::Reverse(failure.clients));
        let servers = self.facts.servers.iter().zip(&self.servers);
        let summary = WorkloadSummary {
            failures,
            servers: servers.map(|(name, it)| it.summary(name)).collect(),
            outages: self.outages().copied().collect(),
            tracks: self.tracks.iter().cloned().collect(),
            ingested: self.ingested.clone(),
            clock_uncertainty_seconds: self.clock_uncertainty(),
            turnover: self.turnover(),
            startup_map: self.startups.map(),
            ..self.summary_of(stages, Figures(total.figures(|_| true)))
        };
        (summary, reasons)
    }

    /// Judges a slice of `stage`, of whose source this is known up to the slice's end. What is counted in the slice, its levels
    /// and its distributions are its own. A share of the clients (`failed.ratio` and its like) is of all up to now, since a
    /// client that has failed does not come back; what begins in the ramp (`startup.p99`) and what is a share of the source's
    /// rate (`bitrate.ratio`, `frames.ratio`) are of the stage up to now.
    pub(super) fn judge_slice(
        &self,
        stage: &StageAggregator,
        slice: &SliceTotals,
        source: Option<Source>,
        thresholds: &[Threshold],
    ) -> Slice {
        let patience = Patience::of(&self.total.figures);
        let mut row = stage.row(&slice.totals, slice.begin, None, patience, None);
        row.window_is_void = self.is_void(stage, &slice.media);
        let has_pictures = self.source_fps(source, &stage.window).is_some();
        // How many keyframes lie in a few seconds is chance, and they are later at the viewers than at their publisher: of a stream with
        // pictures the rate is that of the same bytes by their own clock, and the frames that are missing show in `frames.ratio`.
        let expected = self.client_bps(source.filter(|_| !has_pictures), &stage.window);
        let mut so_far = stage.row(&stage.window, stage.span.window_begin, expected, patience, None);
        self.set_frames(&mut so_far, source, &stage.window, patience);
        so_far.window_is_void = row.window_is_void;
        let of = |row: &StageSummary, totals: &Totals| {
            [self.summary_of(vec![row.clone()], Figures(totals.figures(|_| true)))]
        };
        let (of_slice, of_run, of_stage) =
            (of(&row, &slice.totals), of(&row, &self.total), of(&so_far, &stage.window));
        let judge = |threshold: &Threshold| {
            threshold.judge(match threshold.scope() {
                Scope::Slice => &of_slice,
                Scope::Clients => &of_run,
                Scope::SourceRate => &of_stage,
            })
        };
        Slice {
            stage: stage.span.stage,
            clients: stage.span.clients,
            playing: row.playing_mean,
            waiting: slice.totals.waiting_mean(),
            actual_bps: row.actual_bps,
            units_per_second: slice.totals.figures.counter(UNITS) as f64
                / f64::from(slice.totals.seconds.max(1)),
            own_faults: 0,
            results: thresholds.iter().map(judge).collect(),
        }
    }

    /// Clients that weir did not start, or that failed on this machine, up to now.
    pub(super) fn own_faults(&self) -> u64 {
        let local = self.total.figures.failures().filter(|(kind, _)| kind.side() == Side::Local);
        self.total.figures.counter(MISSED) + local.map(|(_, clients)| clients).sum::<u64>()
    }

    /// What thresholds are judged on.
    fn summary_of(&self, stages: Vec<StageSummary>, total: Figures) -> WorkloadSummary {
        WorkloadSummary {
            name: self.facts.name.clone(),
            // How many of the clients that were lost with their agent had stalled is unknown.
            stall_free_ratio: total
                .stall_free_ratio()
                .filter(|_| self.facts.role == Role::Play && self.let_go.begun == 0),
            role: self.facts.role,
            background: self.facts.background,
            targets: self.facts.targets.clone(),
            stages,
            total,
            slots: self.slots(),
            failures: Vec::new(),
            servers: Vec::new(),
            outages: Vec::new(),
            tracks: Vec::new(),
            channels: Vec::new(),
            clients: None,
            ingested: None,
            clock_uncertainty_seconds: None,
            turnover: None,
            startup_map: None,
        }
    }

    /// How clients followed each other, if they did.
    fn turnover(&self) -> Option<TurnoverSummary> {
        let turnover = self.turnover?;
        let windows = || self.stages.iter().map(|stage| &stage.window);
        let begun: u64 = windows().map(|window| window.figures.counter(STARTED)).sum();
        let seconds: u32 = windows().map(|window| window.seconds).sum();
        Some(TurnoverSummary {
            life: turnover.life,
            pause_seconds: turnover.pause.as_secs_f64(),
            started: self.total.figures.counter(STARTED),
            starts_per_second: (seconds > 0).then(|| begun as f64 / f64::from(seconds)),
            exits_before_start: self.total.figures.counter(EXITS_BEFORE_START),
        })
    }

    fn outages(&self) -> impl Iterator<Item = &Outage> {
        self.outages.iter().flat_map(TrackOutages::found)
    }

    /// Zero if every latency was measured by the monotonic clock that both ends share. The offset of wall clocks is not measured
    /// here, so that their uncertainty is unknown.
    fn clock_uncertainty(&self) -> Option<f64> {
        let figures = &self.total.figures;
        (!figures.signed(LATENCY).is_empty() && figures.counter(WALL_LATENCIES) == 0).then_some(0.0)
    }

    /// Whether any latency was measured.
    pub(super) fn has_latency(&self) -> bool {
        !self.total.figures.signed(LATENCY).is_empty()
    }

    fn slots(&self) -> Slots {
        let total = self.counted();
        let count = |counter| total.figures.counter(counter);
        let (on_time, late, missed, failed) = (count(ON_TIME), count(LATE), count(MISSED), count(FAILED));
        Slots { planned: count(PLANNED), on_time, late, missed, failed }
    }

    /// Whether the media of viewers of a stream stopped, or began, in a stage's window. Streams have a rate of their own;
    /// messages come when they come.
    fn is_void(&self, stage: &StageAggregator, media: &[f64]) -> bool {
        let streams = self.facts.role == Role::Play && self.total.figures.counter(SOURCE_TIME) > 0;
        streams && stage.span.clients > 0 && steadiness::is_void(media)
    }

    /// `by_count`: the run was over when all messages were accounted for, however soon that was.
    pub(super) fn warnings(&self, by_count: bool) -> Vec<String> {
        let starved = self.starvation.line(self.facts.timeout_seconds);
        let known = self.facts.warnings.iter().cloned().chain(starved);
        let mut warnings: Vec<_> = known.map(|line| format!("{}: {line}", self.facts.name)).collect();
        warnings.extend(counts::warnings(&self.facts.name, &self.total.figures));
        let excesses = weir_protocols::warnings(&self.facts.protocol, &self.total.figures);
        warnings.extend(excesses.into_iter().map(|line| format!("{}: {line}", self.facts.name)));
        let negative = self.total.figures.counter(NEGATIVE_LATENCIES);
        if negative > 0 {
            let latency = self.total.figures.signed(LATENCY);
            let least = latency.min() as f64 * Unit::Micros.scale();
            warnings.push(format!(
                "{}: {negative} of {} latencies are below zero, down to {:.1} ms: the clocks of publisher and viewers disagree by that much at least; set both by one time server",
                self.facts.name,
                latency.len(),
                least * 1e3
            ));
        }
        warnings.extend(self.readers.thinned().map(|line| format!("{}: {line}", self.facts.name)));
        if let Some(ingested) = &self.ingested {
            let of_stage = |it: &Imbalance| format!("{}: {}: {}", self.facts.name, it.stage.name(), it.text);
            warnings.extend(ingested.imbalances.iter().map(of_stage));
            warnings.extend(ingested.remarks.iter().map(|remark| format!("{}: {remark}", self.facts.name)));
        }
        // A window in which no client ever played is not called too short.
        let is_measured = !self.facts.background && !by_count && self.total.figures.counter(PLAYED) > 0;
        let measured = self.stages.iter().filter(|_| is_measured);
        for stage in measured {
            let clients = several(stage.span.clients.into(), "client");
            let place = format!("{}, stage of {clients}", self.facts.name);
            let seconds = stage.window.seconds;
            if stage.span.without_warmup {
                warnings.push(format!(
                    "{place}: its hold has no whole second behind the warm-up, so that its figures come from all of its {seconds} s, beginning included; hold each stage for 10 s beyond the warm-up at the least"
                ));
            } else if seconds < 10 {
                warnings.push(format!(
                    "{place}: the figures come from {seconds} s; hold each stage for 10 s beyond the warm-up at the least"
                ));
            }
            if self.is_void(stage, &self.media_of(stage)) {
                warnings.push(format!(
                    "{place}: no media came in half of the window or in all of it: its rates do not describe the target"
                ));
            } else if let Some(change) = steadiness::unsteadiness(&self.media_of(stage)) {
                warnings.push(format!(
                    "{place}: no steady state, the window's halves differ by {:.0} %",
                    change * 100.0
                ));
            }
        }
        warnings
    }
}
