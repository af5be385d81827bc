//! What the clients of a load, and the publishers of what they play, met while it was held: whether it says anything about the
//! target, and whether the target said its limit itself.

use super::search::VoidCause;
use weir_engine::summary::{FailureCount, Point, StageSummary, Summary};
use weir_metrics::{Failure, Side};

/// The clients of one stage of a trial.
pub(super) struct StageClients<'a> {
    summary: &'a Summary,
    workload: usize,
    stage: &'a StageSummary,
}

impl<'a> StageClients<'a> {
    pub(super) fn of(summary: &'a Summary, workload: usize, stage: &'a StageSummary) -> Self {
        Self { summary, workload, stage }
    }

    /// Whether none of them ever played.
    pub(super) fn is_empty(&self) -> bool {
        self.whole().all(|point| self.playing(point) == 0)
    }

    /// How many of `load` clients played in each second of the window while the target refused all others.
    pub(super) fn admitted(&self, load: u32) -> Option<u32> {
        let window = self.stage.window_begin_seconds..self.stage.window_end_seconds;
        let mut playing =
            self.points().filter(|point| window.contains(&point.second)).map(|it| self.playing(it));
        let first = playing.next()?;
        let failures = self.failures();
        let refused: u64 = failures.iter().filter(|it| is_refusal(it.kind)).map(|it| it.clients).sum();
        let is_all = first > 0 && first + refused == u64::from(load);
        (is_all && playing.all(|it| it == first)).then(|| u32::try_from(first).ok())?
    }

    /// Why there was nothing to play, if it was so, and whose fault that was. `publishers` are the workloads of this run that
    /// publish it; without any, it comes from elsewhere.
    pub(super) fn without_source(&self, publishers: &[usize]) -> Option<(VoidCause, String)> {
        for at in publishers {
            let Some(workload) = self.summary.workloads.get(*at) else { continue };
            let failed =
                self.until_end().any(|point| point.workloads.get(*at).is_some_and(|it| it.failed > 0));
            let Some(first) = workload.failures.first().filter(|_| failed) else { continue };
            let why = if first.words.is_empty() { first.kind.key() } else { &first.words };
            return Some(match first.side {
                Side::Remote => (VoidCause::Publisher, format!("the server dropped the publisher ({why})")),
                Side::Local | Side::Protocol => (VoidCause::Source, format!("the publisher failed ({why})")),
            });
        }
        let ended: u64 = self.failures().iter().filter(|it| is_of_source(it.kind)).map(|it| it.clients).sum();
        let all: u64 = self.failures().iter().map(|it| it.clients).sum();
        let last = self.whole().last()?;
        let is_over = publishers.is_empty() && self.playing(last) == 0 && ended * 2 > all;
        let of_what = self.failures().iter().find(|it| is_of_source(it.kind)).map_or("", |it| it.kind.key());
        is_over.then(|| (VoidCause::Source, format!("there was nothing to play ({of_what})")))
    }

    fn failures(&self) -> &'a [FailureCount] {
        self.summary.workloads.get(self.workload).map_or(&[], |it| &it.failures)
    }

    fn points(&self) -> impl Iterator<Item = &'a Point> {
        self.summary.series.iter()
    }

    /// Seconds up to its end.
    fn until_end(&self) -> impl Iterator<Item = &'a Point> {
        let end = self.stage.end_seconds;
        self.points().filter(move |point| f64::from(point.second) < end)
    }

    /// Seconds from its ramp on.
    fn whole(&self) -> impl Iterator<Item = &'a Point> {
        let begin = self.stage.begin_seconds.floor();
        self.until_end().filter(move |point| f64::from(point.second) >= begin)
    }

    fn playing(&self, point: &Point) -> u64 {
        point.workloads.get(self.workload).map_or(0, |it| it.playing)
    }
}

/// Whether a server that has no room, or its host, answers so: at once, and in some words of its protocol or with the end of
/// the link.
fn is_refusal(kind: Failure) -> bool {
    matches!(
        kind,
        Failure::Rejected
            | Failure::Unavailable
            | Failure::Unauthorized
            | Failure::RedirectFailed
            | Failure::CounterOffer
            | Failure::SubscriptionRefused
            | Failure::Disconnected
            | Failure::ConnectionRefused
            | Failure::ClosedByPeer
            | Failure::Reset
    )
}

/// Whether a stream that nobody publishes any more looks so to a viewer.
fn is_of_source(kind: Failure) -> bool {
    matches!(kind, Failure::StreamEnded | Failure::StreamNotFound | Failure::NoMedia)
}
