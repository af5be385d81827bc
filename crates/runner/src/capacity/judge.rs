//! What looks on while a trial runs: it judges each slice, and says when enough was seen.

use crate::observer::Observer;
use std::time::{Duration, Instant};
use weir_answers::capacity::TrialSlices;
use weir_engine::aggregator::Aggregator;
use weir_engine::run::{Prepared, Watcher};
use weir_engine::summary::Summary;
use weir_engine::threshold::Threshold;

/// Judges a trial while it runs, beside who looks on.
pub(super) struct Judge<'a> {
    pub(super) watcher: &'a mut dyn Observer,
    pub(super) slices: &'a mut TrialSlices,
    pub(super) thresholds: Vec<Threshold>,
    pub(super) judged: Vec<usize>,
    pub(super) deadline: Instant,
    pub(super) presence: ServerPresence,
}

/// Whether the server of a search is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerPresence {
    /// No client plays yet, and not all have failed.
    Awaited,
    /// Every client of the first load has failed without an answer.
    None,
    /// It is there, or was.
    Known,
}

impl ServerPresence {
    /// After a second at whose end this many play of those that are planned, and this many have failed, most of them so.
    fn after(
        self,
        playing: u64,
        planned: u64,
        failed: u64,
        commonest: Option<(weir_metrics::Failure, u64)>,
    ) -> Self {
        match (self, commonest) {
            (Self::Awaited, _) if playing > 0 => Self::Known,
            (Self::Awaited, Some((kind, clients)))
                if kind.is_silence() && clients == failed && failed >= planned =>
            {
                Self::None
            }
            _ => self,
        }
    }
}

impl Watcher for Judge<'_> {
    fn second(&mut self, second: u32, aggregator: &Aggregator) {
        self.watcher.second(second, aggregator);
        let points = aggregator.latest().map_or(&[][..], |(_, points)| points);
        let playing = points.iter().map(|it| it.playing).sum();
        let planned = points.iter().map(|it| u64::from(it.planned)).sum();
        let commonest = aggregator.commonest_failure().map(|(kind, clients, _)| (kind, clients));
        self.presence = self.presence.after(playing, planned, aggregator.failed(), commonest);
        let slices =
            self.judged.iter().filter_map(|at| aggregator.judge_slice(*at as u16, second, &self.thresholds));
        if let Some(slice) = slices.reduce(|slice, other| slice.judged_with(&other)) {
            self.slices.add(&slice);
        }
    }

    fn tick(&mut self, elapsed: Duration) {
        self.watcher.tick(elapsed);
    }

    fn lag(&mut self, agent: &str, behind: Duration) {
        self.watcher.lag(agent, behind);
    }

    fn has_seen_enough(&self) -> bool {
        self.presence == ServerPresence::None || self.slices.is_lost() || Instant::now() > self.deadline
    }
}

impl Observer for Judge<'_> {
    fn line(&mut self, line: &str) {
        self.watcher.line(line);
    }

    fn begins(&mut self, prepared: &Prepared, length: Duration) {
        self.watcher.begins(prepared, length);
    }

    fn ended(&mut self, summary: Option<&Summary>) {
        self.watcher.ended(summary);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_not_there_is_known_as_soon_as_everybody_has_failed_without_an_answer() {
        let after = |playing, failed, kind| ServerPresence::Awaited.after(playing, 10, failed, kind);
        let refused = |clients| Some((weir_metrics::Failure::ConnectionRefused, clients));
        assert_eq!(after(0, 10, refused(10)), ServerPresence::None);
        assert_eq!(after(0, 9, refused(9)), ServerPresence::Awaited, "one is still to come");
        assert_eq!(after(1, 10, refused(10)), ServerPresence::Known);
        assert_eq!(after(0, 10, refused(6)), ServerPresence::Awaited, "others were answered");
        assert_eq!(after(0, 10, Some((weir_metrics::Failure::StreamNotFound, 10))), ServerPresence::Awaited);
        assert_eq!(
            ServerPresence::Known.after(0, 10, 10, refused(10)),
            ServerPresence::Known,
            "it was there"
        );
    }
}
