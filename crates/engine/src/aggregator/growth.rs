//! How the watched processes grew over a run: which samples, and how many clients had come by then.

use super::{Aggregator, StageAggregator, WorkloadAggregator};
use crate::machine::growth::{Moment, Residue, TargetGrowth, growth, settled};
use crate::summary::Role;
use std::ops::Range;
use weir_observe::{ProcessSample, Sample};

/// A window as long as this is looked at for growth, also if no client came in another's place.
const LONG_SECONDS: u32 = 300;

impl Aggregator {
    /// One entry a target, in the order of `--watch`. Slopes come from the longest window; nothing is said of runs that are
    /// short and whose clients stay.
    pub(super) fn growths(&self) -> Vec<TargetGrowth> {
        let Some(window) = self.longest_window() else { return Vec::new() };
        let count = self.samples.items().iter().map(|sample| sample.targets.len()).max().unwrap_or(0);
        let begun = self.begun_before();
        let generation = self.generation(&window);
        (0..count).filter_map(|target| self.growth_of(target, &window, &begun, generation)).collect()
    }

    /// How many clients are a generation of those that follow each other in this window; none if they stay.
    fn generation(&self, window: &Range<u32>) -> f64 {
        let follow = self.workloads.iter().filter(|it| it.turnover.is_some() && !it.facts.background);
        let stages = follow.flat_map(|it| it.stages.iter().filter(|it| it.span.window_begin == window.start));
        stages.map(|stage| f64::from(stage.span.clients)).sum()
    }

    fn longest_window(&self) -> Option<Range<u32>> {
        let measured = |it: &&WorkloadAggregator| it.facts.role != Role::Ingest && !it.facts.background;
        let workloads = || self.workloads.iter().filter(measured);
        let turns_over = workloads().any(|it| it.turnover.is_some());
        let window = |stage: &StageAggregator| stage.span.window_begin..stage.window_end();
        let longest = workloads()
            .flat_map(|it| &it.stages)
            .map(window)
            .max_by_key(|it| it.end.saturating_sub(it.start))?;
        (turns_over || longest.len() as u32 >= LONG_SECONDS).then_some(longest)
    }

    fn growth_of(
        &self,
        target: usize,
        window: &Range<u32>,
        begun: &[BlockOfStarts],
        generation: f64,
    ) -> Option<TargetGrowth> {
        let within = f64::from(window.start)..=f64::from(window.end) + 0.5;
        let samples: Vec<(f64, &Sample)> = self
            .samples
            .items()
            .iter()
            .map(|sample| (self.seconds_of(sample), sample))
            .filter(|(seconds, sample)| within.contains(seconds) && target < sample.targets.len())
            .collect();
        // What was read last stands in each sample after it, as if nothing had grown.
        if samples.last().is_some_and(|(_, sample)| sample.targets[target].is_unheard(sample.at_ns)) {
            return None;
        }
        let moments = |value: fn(&ProcessSample) -> Option<f64>| {
            let moment = |(seconds, sample): &(f64, &Sample)| {
                let value = value(&sample.targets[target].process)?;
                Some(Moment { seconds: *seconds, served: begun_by(*seconds, begun), value })
            };
            samples.iter().filter_map(moment).collect::<Vec<_>>()
        };
        let memory = moments(|process| Some(process.rss_bytes as f64));
        let descriptors = moments(|process| process.descriptors.map(|count| count as f64));
        let used = settled(&memory, generation);
        let (first, last) = (used.first()?, used.last()?);
        Some(TargetGrowth {
            target: samples.last()?.1.targets[target].watch.to_string(),
            begin_seconds: first.seconds,
            end_seconds: last.seconds,
            clients: (last.served - first.served).round() as u64,
            memory: growth(used, generation),
            descriptors: growth(settled(&descriptors, generation), generation),
            residue: self.residue(target),
        })
    }

    /// What stayed at the last look, which is behind the drain.
    fn residue(&self, target: usize) -> Option<Residue> {
        let ended = self.stopped_seconds.unwrap_or(self.plan.length.as_secs_f64());
        let of = |sample: &Sample| sample.targets.get(target).map(|it| it.process.clone());
        let (before, last) = (of(self.samples.items().first()?)?, self.samples.items().last()?);
        let after = of(last)?;
        let after_seconds = self.seconds_of(last) - ended;
        let descriptors = before.descriptors.zip(after.descriptors);
        (after_seconds > 0.0).then(|| Residue {
            clients: self.begun.iter().map(|(_, begun)| begun).sum(),
            after_seconds,
            memory_bytes: (after.rss_bytes as i64).saturating_sub(before.rss_bytes as i64),
            descriptors: descriptors.map(|(before, after)| (after as i64).saturating_sub(before as i64)),
        })
    }

    fn seconds_of(&self, sample: &Sample) -> f64 {
        (sample.at_ns as f64 - self.origin_ns as f64) * 1e-9
    }

    /// For each block of seconds in which clients began: the block, and how many had begun before it and in it.
    fn begun_before(&self) -> Vec<BlockOfStarts> {
        let sums = self.begun.iter().scan(0, |sum, (seconds, begun)| {
            let before = *sum;
            *sum += begun;
            Some(BlockOfStarts { seconds, before, begun })
        });
        sums.collect()
    }
}

/// Clients that began in a block of seconds.
struct BlockOfStarts {
    seconds: Range<u32>,
    /// How many had begun before.
    before: u64,
    begun: u64,
}

/// How many clients had begun by a moment: those of a block came evenly in it.
fn begun_by(seconds: f64, blocks: &[BlockOfStarts]) -> f64 {
    let begins = blocks.partition_point(|it| f64::from(it.seconds.start) <= seconds);
    let Some(block) = begins.checked_sub(1).map(|at| &blocks[at]) else { return 0.0 };
    let passed = (seconds - f64::from(block.seconds.start)) / block.seconds.len().max(1) as f64;
    block.before as f64 + block.begun as f64 * passed.clamp(0.0, 1.0)
}
