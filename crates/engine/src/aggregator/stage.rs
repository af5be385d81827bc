//! One stage of a workload: the sums over its ramp and hold, and over its window.

use super::delays::Delays;
use super::slice::SliceTotals;
use crate::declared;
use crate::machine::loads::{host_load, process_load};
use crate::plan::StageSpan;
use crate::seconds::edges::{Edge, Patience};
use crate::seconds::totals::Totals;
use crate::summary::{Figures, StageSummary, VerdictState};
use std::time::Duration;
use weir_metrics::common::{FRAMES_AHEAD, PLAYING, WAITED_FRAMES, names};
use weir_metrics::{Figure, Interval, Schema};
use weir_observe::{Environment, UsageSummary};

/// Whether a figure is of what begins in a stage: it is taken from the ramp on.
fn is_of_the_ramp(name: &str) -> bool {
    name == names::STARTED || declared::figure(name).is_some_and(Figure::is_of_each_client)
}

#[derive(Debug)]
pub(super) struct StageAggregator {
    pub(super) span: StageSpan,
    /// The ramp and the hold.
    pub(super) whole: Totals,
    pub(super) window: Totals,
    /// The latest slice of the window.
    pub(super) slice: Option<SliceTotals>,
    pub(super) delays: Delays,
    /// Whether clients follow each other in the places of its workload.
    turns_over: bool,
    /// Clients that were let go, and from which second on.
    let_go: Vec<(u32, u32)>,
}

impl StageAggregator {
    pub(super) fn new(span: StageSpan, schema: Schema, turns_over: bool) -> Self {
        let (whole, window) = (Totals::new(schema), Totals::new(schema));
        Self { span, whole, window, slice: None, delays: Delays::default(), turns_over, let_go: Vec::new() }
    }

    /// Adds a second of the window, before which this was what viewers had got.
    pub(super) fn add_to_window(&mut self, edge: Option<&Edge>, interval: &Interval) {
        if self.window.seconds == 0 {
            self.window = Totals::from(edge, interval.figures.schema());
        }
        self.window.add(interval);
        self.delays.add(&self.span, interval);
    }

    /// Adds a second of the window to the slice that it is in.
    pub(super) fn add_to_slice(&mut self, length: u32, media: f64, edge: Option<&Edge>, interval: &Interval) {
        let (second, schema) = (interval.key.second, interval.figures.schema());
        let slice = self.slice.get_or_insert_with(|| SliceTotals::new(second, edge, schema));
        if slice.totals.seconds == length {
            *slice = SliceTotals::new(second, edge, schema);
        }
        slice.add(media, interval);
    }

    /// The second after the last one of the window that was run.
    pub(super) fn window_end(&self) -> u32 {
        self.span.window_begin.saturating_add(self.window.seconds)
    }

    pub(super) fn summary(
        &self,
        client_bps: Option<f64>,
        patience: Patience,
        usage: Option<&UsageSummary>,
        environment: &Environment,
        ended: Option<Duration>,
        count_end: Option<f64>,
    ) -> StageSummary {
        StageSummary {
            end_seconds: ended.map_or(self.span.end, |ended| self.span.end.min(ended)).as_secs_f64(),
            targets: usage.map_or_else(Vec::new, |usage| {
                usage
                    .targets
                    .iter()
                    .map(|target| {
                        let connections = target.connections.map(|figure| figure.max as u64);
                        process_load(target.watch.to_string(), &target.process, connections, usage.seconds)
                    })
                    .collect()
            }),
            unheard: usage
                .map_or_else(Vec::new, |usage| usage.unheard.iter().map(ToString::to_string).collect()),
            generator: usage
                .map(|usage| process_load("weir".to_owned(), &usage.generator, None, usage.seconds)),
            host: usage.map(|usage| host_load(usage, environment)),
            ..self.row(&self.window, self.span.window_begin, client_bps, patience, count_end)
        }
    }

    /// These clients are not there any more from this second on, and are not missed.
    pub(super) fn let_go(&mut self, clients: u32, second: u32) {
        self.let_go.push((clients, second));
    }

    /// How many of its clients, on the mean of a stretch, were let go.
    fn lost_mean(&self, begin: u32, seconds: u32) -> f64 {
        let end = begin.saturating_add(seconds);
        let of = |(clients, since): &(u32, u32)| {
            f64::from(*clients) * f64::from(end.saturating_sub(begin.max(*since)))
        };
        self.let_go.iter().map(of).sum::<f64>() / f64::from(seconds.max(1))
    }

    /// The figures of a stretch of the window that begins with a second, before anything was observed of processes. Its rates are those
    /// of whole bursts; where the clients have counts and the last was over at `count_end`, within the stretch, those up to then.
    pub(super) fn row(
        &self,
        stretch: &Totals,
        begin: u32,
        client_bps: Option<f64>,
        patience: Patience,
        count_end: Option<f64>,
    ) -> StageSummary {
        let bursts = stretch.whole_bursts(patience);
        let times = bursts.map_or(1.0, |bursts| bursts.media);
        let away_mean = stretch.away_mean();
        // What a server sends at once to clients that begin, and to those that come back.
        let begins = self.turns_over || away_mean > 0.0;
        // Of clients that stay what comes to those that wait for a keyframe.
        let at_once = stretch.figures.counter(if begins { FRAMES_AHEAD } else { WAITED_FRAMES });
        let rate_seconds = stretch.rate_seconds(begin, count_end);
        let mut figures = stretch.figures_over(rate_seconds, |name| !is_of_the_ramp(name));
        figures.extend(self.whole.figures(is_of_the_ramp));
        let mut row = StageSummary {
            stage: self.span.stage,
            clients: self.span.clients,
            begin_seconds: self.span.begin.as_secs_f64(),
            end_seconds: self.span.end.as_secs_f64(),
            window_begin_seconds: begin,
            window_end_seconds: begin.saturating_add(stretch.seconds),
            playing_mean: stretch.mean(PLAYING),
            window_is_void: false,
            starting_mean: if self.turns_over { stretch.starting_mean() } else { stretch.waiting_mean() },
            lost_mean: self.lost_mean(begin, stretch.seconds),
            away_mean,
            expected_bps: None,
            actual_bps: stretch.actual_bps_over(rate_seconds) * times,
            messages: None,
            source_fps: None,
            frames_ahead: at_once as f64,
            frames_due: 0.0,
            drift_growth_seconds: None,
            source_clock_ppm: None,
            figures: Figures(figures),
            targets: Vec::new(),
            unheard: Vec::new(),
            generator: None,
            host: None,
            machines: Vec::new(),
            verdict: VerdictState::Valid,
        };
        // Of clients that stay for a stage what came at once at their beginnings is little; of those that follow each other, or come
        // back, it may be more than what comes by the clock.
        let ahead = if begins { stretch.ahead_bps() } else { stretch.waited_bps() };
        let client_bps = client_bps.filter(|_| stretch.seconds > 0 && bursts.is_some());
        row.expected_bps = client_bps.map(|bps| bps * row.expected_clients() + ahead);
        row
    }
}
