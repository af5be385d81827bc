//! How many viewers this machine carries beside the origin that serves them: doubled until something gives.

use super::Consultation;
use super::loopback::{LoopbackRun, StepResults};
use crate::origin_process::OriginProcess;
use crate::prepare::{OWN_DESCRIPTORS, raise_descriptors};
use crate::{ErrorKind, RunError};
use std::time::Duration;
use weir_engine::summary::{StageSummary, VerdictState};
use weir_metrics::{BitRate, several};
use weir_protocols::Given;

/// Clients of the first step; each next one doubles.
const FIRST_STEP: u32 = 500;
/// How long a step is held.
const HOLD: Duration = Duration::from_secs(5);
/// Share of the stream that has to arrive.
const ENOUGH: f64 = 0.98;
/// The stream of the classic benchmarks.
const STREAM: &str = "235kbps";

/// Doubles the viewers of one stream until weir, not the origin, is at its limit, or there are `most`. The kind of what was missed, if
/// nothing is known of this machine.
///
/// # Errors
/// Nothing was measured.
pub fn ceiling(most: u32, consultation: Consultation<'_>) -> Result<Option<ErrorKind>, RunError> {
    let Consultation { program, interrupt, say } = consultation;
    say("")?;
    say(&format!("RTMP viewers of one {STREAM} stream from the built-in origin on this machine:"))?;
    // A step for which there are no descriptors would end in an error and say nothing of those before it.
    let most =
        most.min(raise_descriptors().saturating_sub(OWN_DESCRIPTORS).try_into().unwrap_or(u32::MAX)).max(1);
    let origin = OriginProcess::start(program, &[], &["rtmp"])?;
    let mut held = 0;
    let mut clients = FIRST_STEP.min(most);
    loop {
        let url = format!("rtmp://{}/live/doctor-{clients}", origin.address("rtmp"));
        let run = LoopbackRun {
            publish: Some((url.clone(), Given::default().with("bitrate", STREAM))),
            play: url,
            viewers: Given::default(),
            delay: Duration::from_secs(1),
            steps: vec![clients],
            ramp: Duration::from_secs(2),
            hold: HOLD,
            watch: origin.watch(),
        };
        let measured = run.measure(interrupt)?;
        let Some(step) = measured.steps.last() else { return Ok(Some(ErrorKind::Invalid)) };
        say(&describe(step, &measured))?;
        if let Some(fault) = measured.fault(step, ENOUGH) {
            let held_words = several(held.into(), "viewer");
            say(&format!("  ceiling: {held_words}; the step to {clients} failed: {fault}"))?;
            return Ok((held == 0).then_some(ErrorKind::Invalid));
        }
        held = clients;
        if clients >= most {
            say(&format!("  ceiling: at least {}, not reached", several(held.into(), "viewer")))?;
            return Ok(None);
        }
        clients = (clients * 2).min(most);
    }
}

fn describe(row: &StageSummary, measured: &StepResults) -> String {
    let generator = row.generator.as_ref().map_or(0.0, |generator| generator.cpu_percent);
    let origin = row.targets.first().map_or(0.0, |target| target.cpu_percent);
    let verdict = match measured.verdict.state {
        VerdictState::Valid => "valid",
        VerdictState::Degraded => "degraded",
        VerdictState::NothingMeasured => "nothing measured",
        VerdictState::Invalid => "invalid",
    };
    format!(
        "  {:>6} viewers · {} of {} · weir {generator:.0} % of a core, {:.3} ms CPU a viewer-second · origin {origin:.0} % · {verdict}",
        row.clients,
        BitRate::from_bps(row.actual_bps),
        BitRate::from_bps(row.expected_bps.unwrap_or_default()),
        generator * 10.0 / row.playing_mean.max(1.0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn measured(actual: f64, window: u32, reasons: &Value) -> StepResults {
        let row = json!({
            "stage": 0, "clients": 500, "begin_seconds": 0, "end_seconds": 8, "window_begin_seconds": 3,
            "window_end_seconds": 3 + window, "playing_mean": 500, "expected_bps": 1e8, "actual_bps": actual,
            "figures": {}, "targets": [], "generator": null, "host": null, "verdict": "valid"
        });
        let state = reasons.get(0).map_or(json!("valid"), |worst| worst["state"].clone());
        let verdict = json!({ "state": state, "reasons": reasons });
        StepResults {
            steps: vec![serde_json::from_value(row).unwrap()],
            verdict: serde_json::from_value(verdict).unwrap(),
        }
    }

    #[test]
    fn a_step_that_failed_says_why() {
        let reason = |state: &str| {
            json!([{
                "state": state, "check": "generator_thread", "stage": null, "measured": 0.99, "limit": 0.95,
                "text": "a thread was busy", "remedy": "give weir more cores"
            }])
        };
        let fault = |actual, window, reasons| {
            let measured = measured(actual, window, &reasons);
            measured.fault(&measured.steps[0], ENOUGH)
        };
        assert_eq!(fault(1e8, 5, json!([])), None);
        assert_eq!(fault(1e8, 5, reason("degraded")), None, "it held, if with care");
        assert_eq!(
            fault(1e8, 5, reason("invalid")).as_deref(),
            Some("a thread was busy. Remedy: give weir more cores")
        );
        assert!(
            fault(9e7, 5, json!([])).is_some_and(|words| words.starts_with("90.0 % of the stream arrived"))
        );
        assert!(fault(0.0, 0, json!([])).is_some_and(|words| words.starts_with("no viewer played")));
        let degraded = measured(1e8, 5, &reason("degraded"));
        assert!(describe(&degraded.steps[0], &degraded).ends_with("· degraded"));
    }
}
