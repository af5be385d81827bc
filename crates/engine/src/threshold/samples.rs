//! Whether a plan has enough of what a threshold is judged on: a percentile needs values above it, a rate whole groups of
//! pictures.

use super::{Statistic, Subject, Threshold};
use crate::declared;
use crate::plan::{Plan, StageSpan};
use crate::scenario::Scenario;
use crate::scenario::role::Role;
use weir_metrics::several;

/// Shortest window of a ratio of rates: two groups of pictures of 2 s, as weir and most encoders make them. A shorter one holds
/// a keyframe more or less, which is a third of it and more.
const TWO_GROUPS_SECONDS: u32 = 4;

impl Scenario {
    /// One line on each threshold of the user for which the plan is too short, or too small.
    pub fn too_short(&self, plan: &Plan) -> Vec<String> {
        self.thresholds.iter().filter_map(|threshold| threshold.too_short(self, plan)).collect()
    }
}

impl Threshold {
    fn too_short(&self, scenario: &Scenario, plan: &Plan) -> Option<String> {
        let lives = plan.lives();
        let role = |span: &StageSpan| scenario.workloads.get(usize::from(span.workload))?.verb().ok();
        let asked = plan.stages.iter().filter(|span| {
            let is_of_media = role(span).is_some_and(|(role, _)| role != Role::Ingest);
            is_of_media && !scenario.workloads[usize::from(span.workload)].background
        });
        if let Subject::Ratio(ratio) = self.subject
            && ratio.of_stage().is_some()
        {
            let window =
                asked.filter(|it| it.clients > 0).map(|it| it.window_end.saturating_sub(it.window_begin));
            let shortest = window.min().filter(|seconds| *seconds < TWO_GROUPS_SECONDS)?;
            return Some(format!(
                "threshold '{}': a window of {shortest} s is less than two groups of pictures ({TWO_GROUPS_SECONDS} s), so that a keyframe more or less decides; hold each stage for 10 s beyond the warm-up",
                self.text
            ));
        }
        let (needed, above) = self.statistic.and_then(needed)?;
        let Subject::Figure(name) = &self.subject else { return None };
        if !declared::figure(name).is_some_and(weir_metrics::Figure::is_of_each_client) {
            return None;
        }
        // A publisher beside viewers is there for them: what is asked is about those.
        let is_play = |span: &&StageSpan| role(span).is_some_and(|(role, _)| role == Role::Play);
        let has_viewers = asked.clone().any(|span| is_play(&span));
        let asked = asked.filter(|span| !has_viewers || is_play(span));
        // Where clients follow each other there are more of them than a stage holds.
        let counted = asked.filter(|it| !lives.contains_key(&it.workload)).map(|span| starts(plan, span));
        let fewest = counted.filter(|clients| *clients > 0).min().filter(|clients| *clients < needed)?;
        Some(format!(
            "threshold '{}': with {} {above} is the maximum: use max, or {}",
            self.text,
            several(fewest as u64, "client"),
            several(needed as u64, "client")
        ))
    }
}

/// How many values a percentile needs for one of them to lie above it, and how it is called.
fn needed(statistic: Statistic) -> Option<(usize, &'static str)> {
    match statistic {
        Statistic::P90 => Some((10, "p90")),
        Statistic::P95 => Some((20, "p95")),
        Statistic::P99 => Some((100, "p99")),
        Statistic::P999 => Some((1_000, "p999")),
        _ => None,
    }
}

/// How many clients the plan starts in a stage.
fn starts(plan: &Plan, span: &StageSpan) -> usize {
    let slots = plan.slots.iter().filter(|slot| slot.workload == span.workload);
    slots.filter(|slot| (span.begin..span.end).contains(&slot.start)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<String> {
        let scenario = Scenario::parse(text).unwrap();
        scenario.too_short(&scenario.plan().unwrap())
    }

    #[test]
    fn a_percentile_of_too_few_clients_is_said_before_the_run() {
        let scenario = |clients: u32, threshold: &str| {
            format!(
                "{{workloads: [{{play: 'rtmp://h/a/b', clients: {clients}, duration: 30s}}], thresholds: ['{threshold}']}}"
            )
        };
        let lines = said(&scenario(50, "startup.p999 < 1s"));
        assert_eq!(
            lines,
            ["threshold 'startup.p999 < 1s': with 50 clients p999 is the maximum: use max, or 1,000 clients"]
        );
        assert_eq!(said(&scenario(100, "startup.p99 < 1s")), [""; 0]);
        assert_eq!(said(&scenario(1, "connect.p90 < 1s")).len(), 1);
        // How many frames there will be is not known, and clients that follow each other are many.
        assert_eq!(said(&scenario(1, "latency.p99 < 1s")), [""; 0]);
        let turnover = "{workloads: [{play: 'rtmp://h/a/b', clients: 5, duration: 30s, life: 2s}], thresholds: ['startup.p99 < 1s']}";
        assert_eq!(said(turnover), [""; 0]);
        // README's own scenario: what is asked is about the viewers, and not about the one publisher that is there for them.
        let beside = |clients: u32| {
            format!(
                "{{workloads: [{{publish: 'rtmp://h/a/b'}}, {{play: 'rtmp://h/a/b', clients: {clients}, duration: 30s}}], thresholds: ['startup.p99 < 3s']}}"
            )
        };
        assert_eq!(said(&beside(200)), [""; 0]);
        assert_eq!(said(&beside(20)).len(), 1);
    }

    #[test]
    fn a_rate_over_less_than_two_groups_of_pictures_is_said_before_the_run() {
        let scenario = |hold: u32| {
            format!(
                "{{warmup: 2s, workloads: [{{play: 'rtmp://h/a/b', clients: 5, duration: {hold}s}}], thresholds: ['bitrate.ratio >= 95%']}}"
            )
        };
        let lines = said(&scenario(5));
        assert_eq!(lines.len(), 1);
        assert!(lines[0].contains(" s is less than two groups of pictures (4 s)"), "{}", lines[0]);
        assert_eq!(said(&scenario(12)), [""; 0]);
    }
}
