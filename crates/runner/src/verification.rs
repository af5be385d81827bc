//! `publish --verify`: one viewer a published stream. The default thresholds ask it for pictures and sound, and one
//! of them at a time is decoded if there is an ffmpeg.

use std::time::Duration;
use weir_engine::scenario::{Scenario, StageSpec, WorkloadSpec};
use weir_protocols::Given;

/// How long after its publisher a viewer begins: the stream is on air, and a server has cut its first group of pictures.
const DELAY: Duration = Duration::from_secs(2);

/// Adds the viewers of all streams that the first workload publishes in its one stage. Each begins a little after the
/// publisher of its stream, and all leave with the publishers.
pub fn add(scenario: &mut Scenario) {
    let Some(publish) = scenario.workloads.first() else { return };
    let streams = (publish.publish.0.len() as u32).saturating_mul(publish.streams.unwrap_or(1));
    let viewers = WorkloadSpec {
        name: Some("verify".to_owned()),
        play: publish.publish.clone(),
        streams: publish.streams,
        stages: vec![StageSpec::default()],
        options: Given::default().with("decode", "1"),
        ..WorkloadSpec::default()
    };
    let endless = publish.duration.clone().filter(|duration| duration.get().is_zero());
    let arrival = publish.arrival.clone();
    scenario.workloads.push(viewers);
    // A schedule that is wrong is refused with the rest of the scenario.
    let Ok(schedules) = scenario.schedules() else { return };
    let Some(publishers) = schedules.first().and_then(|schedule| schedule.stages.first()) else { return };
    // Streams without a publisher are not played, and one with several is played once.
    let clients = streams.min(publishers.clients);
    let delay = DELAY.min(publishers.hold / 2);
    let ramp = publishers.ramp.mul_f64(f64::from(clients) / f64::from(publishers.clients.max(1)));
    let hold = publishers.ramp + publishers.hold - delay - ramp;
    if let Some(viewers) = scenario.workloads.last_mut() {
        viewers.delay = Some(delay.into());
        if endless.is_some() {
            // What has no end has none to agree on.
            (viewers.clients, viewers.duration, viewers.arrival) = (Some(clients), endless, arrival);
            viewers.stages.clear();
        } else {
            viewers.stages = vec![StageSpec { clients, hold: hold.into(), ramp: Some(ramp.into()) }];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_engine::plan::PlannedSlot;

    /// Publishers with these fields in their workload, and their viewers.
    fn verified(fields: &str) -> Scenario {
        let text = format!("{{workloads: [{{publish: 'rtmp://h/a/s{{i}}', {fields}}}]}}");
        let mut scenario = Scenario::parse(&text).unwrap();
        add(&mut scenario);
        scenario
    }

    /// The planned publishers and viewers.
    fn plan(scenario: &Scenario) -> [Vec<PlannedSlot>; 2] {
        assert_eq!(scenario.workloads[1].play, scenario.workloads[0].publish);
        for asked in ["rtmp.audio_frames > 0", "decoded.ratio >= 99%"] {
            assert!(scenario.asked().iter().any(|it| it.text() == asked), "{asked}");
        }
        let plan = scenario.plan().unwrap();
        [0, 1].map(|number| plan.slots.iter().filter(|slot| slot.workload == number).copied().collect())
    }

    #[test]
    fn each_viewer_begins_after_its_publisher_and_leaves_with_it() {
        let seconds = Duration::from_secs_f64;
        for (fields, viewers, delay, end) in [
            ("streams: 3, duration: 10s", 3, 2.0, 10.0),
            ("streams: 100, duration: 30s, arrival: 5/s", 100, 2.0, 50.0),
            ("streams: 9, clients: 4, duration: 1s", 4, 0.5, 1.0),
            ("streams: 2, clients: 8, duration: 5s, arrival: 2/s", 2, 2.0, 9.0),
        ] {
            let [publishing, viewing] = plan(&verified(fields));
            assert_eq!(viewing.len(), viewers, "{fields}");
            for (publisher, viewer) in publishing.iter().zip(&viewing) {
                let after = viewer.start - publisher.start;
                assert_eq!((viewer.client, after), (publisher.client, seconds(delay)), "{fields}");
                assert_eq!((viewer.stop, publisher.stop), (seconds(end), seconds(end)), "{fields}");
            }
        }
    }

    #[test]
    fn an_endless_run_is_verified_to_its_end() {
        let scenario = verified("streams: 2, duration: 0s");
        let written = serde_json::to_string(&scenario).unwrap();
        let read: Scenario =
            serde_json::from_str(&written).expect("`weir report` reads what is written down");
        let plan = read.plan().unwrap();
        assert_eq!(plan, scenario.plan().unwrap());
        let year = Duration::from_secs(365 * 86_400);
        assert!(plan.slots.len() == 4 && plan.slots.iter().all(|slot| slot.stop > year));
    }
}
