//! A stage's window cut into slices of equal length, each judged on its own as soon as it is over.

use super::{Aggregator, Source, StageAggregator, Totals};
use crate::summary::{Figures, StageSummary, ThresholdResult};
use crate::threshold::{Scope, Threshold};
use weir_metrics::common::UNITS;
use weir_metrics::{Recorder, Schema};

/// Media that may be on its way when a stretch ends: servers send in bursts, of 350 ms where SRS merges writes as it is
/// advised to, so that by chance a stretch holds one burst more or less.
const BURST_SECONDS: f64 = 0.5;

/// The slice of a window that is being added up.
#[derive(Debug)]
pub(super) struct SliceTotals {
    /// Its first second.
    begin: u32,
    totals: Totals,
    /// Media bytes of each of its seconds.
    media: Vec<f64>,
}

/// What was asked of the target in a slice, and what came of it.
#[derive(Clone, Debug)]
pub struct Slice {
    /// Position of the stage within its workload.
    pub stage: u16,
    /// Clients that the stage holds.
    pub clients: u32,
    /// Clients that played, or published, in the mean of its seconds.
    pub playing: f64,
    /// Media that came, or went, in bits a second.
    pub actual_bps: f64,
    /// Messages, or other units of media, that came, or went, in a second.
    pub units_per_second: f64,
    /// The thresholds that have a value in it.
    pub results: Vec<ThresholdResult>,
}

impl Slice {
    /// The same, judged with what another workload did in the same seconds: a threshold holds if it holds for both, and one
    /// that only one of them has a value for is that one's.
    #[must_use]
    pub fn judged_with(mut self, other: &Self) -> Self {
        for (own, theirs) in self.results.iter_mut().zip(&other.results) {
            let is_decisive = match (own.value, theirs.value) {
                (_, None) => false,
                (None, Some(_)) => true,
                (Some(_), Some(_)) => own.passed && !theirs.passed,
            };
            if is_decisive {
                own.clone_from(theirs);
            }
        }
        self
    }
}

impl SliceTotals {
    fn new(begin: u32, schema: Schema) -> Self {
        Self { begin, totals: Totals::new(schema), media: Vec::new() }
    }

    fn end(&self) -> u32 {
        self.begin + self.totals.seconds
    }
}

impl StageAggregator {
    /// Adds a second of the window to the slice that it is in.
    pub(super) fn add_to_slice(&mut self, second: u32, length: u32, media: f64, figures: &Recorder) {
        let slice = self.slice.get_or_insert_with(|| SliceTotals::new(second, figures.schema()));
        if slice.totals.seconds == length {
            *slice = SliceTotals::new(second, figures.schema());
        }
        slice.totals.add(figures);
        slice.media.push(media);
    }
}

impl Aggregator {
    /// From now on each stage's window is cut into slices of so many seconds, for [`Self::judge_slice`].
    pub fn cut_into_slices(&mut self, seconds: u32) {
        self.slice_seconds = Some(seconds.max(1));
    }

    /// Judges the slice of this workload that ended with `second`, if one did. What is counted in the slice, its levels and
    /// its distributions are its own. A share of the clients (`failed.ratio` and its like) is of all up to now, since who has
    /// failed does not come back; what begins in the ramp (`startup.p99`) and what is a share of the source's rate
    /// (`bitrate.ratio`, `frames.ratio`) are of the stage up to now, and of the latter half a second of media may be on
    /// their way.
    pub fn judge_slice(&self, workload: u16, second: u32, thresholds: &[Threshold]) -> Option<Slice> {
        let length = self.slice_seconds?;
        let fold = self.workloads.get(usize::from(workload))?;
        let ends_here = |stage: &&StageAggregator| {
            let slice = stage.slice.as_ref();
            slice.is_some_and(|slice| slice.totals.seconds == length && slice.end() == second + 1)
        };
        let stage = fold.stages.iter().find(ends_here)?;
        let slice = stage.slice.as_ref()?;
        let mut row = stage.row(&slice.totals, slice.begin, None);
        row.window_is_void = fold.is_void(stage, &slice.media);
        let begin = stage.span.window_begin;
        let (fps, published) = (self.published(fold).and_then(|it| it.fps), self.publisher_of(fold));
        let bps = published.and_then(|publisher| publisher.client_bps_in(begin..slice.end()));
        let source = bps.map(|bps| Source { bps, fps }).or_else(|| self.published(fold));
        let arrived = 1.0 - BURST_SECONDS / f64::from(stage.window.seconds.max(1));
        let mut so_far =
            stage.row(&stage.window, begin, fold.client_bps(source, &stage.window).map(|bps| bps * arrived));
        so_far.source_fps = fold.source_fps(source, &stage.window).map(|fps| fps * arrived);
        so_far.window_is_void = row.window_is_void;
        let of = |row: &StageSummary, totals: &Totals| {
            [fold.summary_of(vec![row.clone()], Figures(totals.figures(|_| true)))]
        };
        let (of_slice, of_run, of_stage) =
            (of(&row, &slice.totals), of(&row, &fold.total), of(&so_far, &stage.window));
        let judge = |threshold: &Threshold| {
            threshold.judge(match threshold.scope() {
                Scope::Slice => &of_slice,
                Scope::Clients => &of_run,
                Scope::SourceRate => &of_stage,
            })
        };
        Some(Slice {
            stage: stage.span.stage,
            clients: stage.span.clients,
            playing: row.playing_mean,
            actual_bps: row.actual_bps,
            units_per_second: slice.totals.figures.counter(UNITS) as f64 / f64::from(length),
            results: thresholds.iter().map(judge).collect(),
        })
    }
}
