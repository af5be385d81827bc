//! From the flags of `play` and `publish` to the scenario that they stand for.

use crate::args::{Content, Load, Messages, Mqtt, Play, Publish, RunOptions};
use crate::{mqtt, rtc};
use std::time::Duration;
use weir_engine::messaging::MqttSpec;
use weir_engine::peering::RtcSpec;
use weir_engine::scenario::{OneOrMany, Scenario, Span, WorkloadSpec};
use weir_engine::threshold::Threshold;

/// What is asked of a tuner server, unless thresholds ask for the same figures: all services, whole.
const WHOLE: &[&str] = &["failed.ratio == 0", "ts.lost_packets == 0"];

/// How the URL of a server begins that says itself what it has.
const DISCOVERS: &str = "mirakurun+";

/// How long clients are held when nothing is said.
const DEFAULT_HOLD: Duration = Duration::from_secs(30);

/// `weir play`.
pub(crate) fn of_play(args: &Play) -> Scenario {
    let workload = WorkloadSpec {
        play: OneOrMany(args.urls.clone()),
        witness_every: Some(args.witness_every),
        buffer: Some(args.buffer.clone()),
        expect: args.expect.clone(),
        services: args.mirakurun.services,
        service: OneOrMany(args.mirakurun.service.clone()),
        channel_type: OneOrMany(args.mirakurun.channel_type.clone()),
        no_decode: args.mirakurun.no_decode,
        priority: args.mirakurun.priority,
        pre_filters: OneOrMany(args.mirakurun.pre_filters.clone()),
        post_filters: OneOrMany(args.mirakurun.post_filters.clone()),
        mqtt: mqtt::speaks(&args.urls).then(|| mqtt_spec(&args.mqtt, None)),
        rtc: rtc::speaks(&args.urls)
            .then(|| RtcSpec { token_file: args.rtc.token_file.clone(), off: args.rtc.off.clone() }),
        ..workload(&args.load)
    };
    let mut scenario = scenario("play", workload, &args.load, &args.run);
    if args.urls.iter().any(|url| url.starts_with(DISCOVERS)) {
        let asks = |figure: &str| args.run.thresholds.iter().any(|it| it.figure() == figure);
        let whole = WHOLE.iter().flat_map(|text| text.parse::<Threshold>());
        scenario.thresholds.extend(whole.filter(|it| !asks(it.figure())));
    }
    scenario
}

/// `weir publish`.
pub(crate) fn of_publish(args: &Publish) -> Scenario {
    let publish = OneOrMany(args.urls.clone());
    let spec = mqtt::speaks(&args.urls).then(|| mqtt_spec(&args.mqtt, Some(&args.messages)));
    let mut load = args.load.clone();
    if let Some(time) = spec.as_ref().and_then(mqtt::time_for_count).filter(|_| load.stages.is_empty()) {
        // A count says how long it takes, and all of it is to be in the figures.
        load.duration.get_or_insert(time.into());
        load.warmup.get_or_insert(Duration::ZERO.into());
    }
    let rtc = rtc::speaks(&args.urls)
        .then(|| RtcSpec { token_file: args.token_file.clone(), ..RtcSpec::default() });
    let workload = WorkloadSpec { publish, mqtt: spec, rtc, ..with_content(workload(&load), &args.content) };
    scenario("publish", workload, &load, &args.run)
}

fn mqtt_spec(mqtt: &Mqtt, messages: Option<&Messages>) -> MqttSpec {
    MqttSpec {
        version: Some(mqtt.mqtt_version.clone()),
        qos: Some(mqtt.qos),
        user: mqtt.user.clone(),
        password_file: mqtt.password_file.clone(),
        client_id: mqtt.client_id.clone(),
        session: mqtt.session.clone(),
        keep_alive: Some(mqtt.keep_alive.clone()),
        window: Some(mqtt.window),
        will: mqtt.will.clone(),
        rate: messages.map(|it| it.rate.clone()),
        count: messages.and_then(|it| it.count),
        payload: messages.map(|it| it.payload.clone()),
        avro_encoding: messages.and_then(|it| it.avro_encoding.clone()),
        records: messages.and_then(|it| it.records),
        retain: messages.is_some_and(|it| it.retain),
    }
}

fn with_content(workload: WorkloadSpec, content: &Content) -> WorkloadSpec {
    let made = content.file.is_none();
    WorkloadSpec {
        bitrate: made.then(|| content.bitrate.clone()),
        audio_bitrate: made.then(|| content.audio_bitrate.clone()),
        audio_codec: made.then(|| content.audio_codec.clone()),
        fps: made.then(|| content.fps.clone()),
        gop: made.then(|| content.gop.clone()),
        size: made.then(|| content.size.clone()),
        file: content.file.clone(),
        no_stamp: content.no_stamp,
        ..workload
    }
}

fn workload(load: &Load) -> WorkloadSpec {
    let single = load.stages.is_empty();
    WorkloadSpec {
        streams: load.streams,
        clients: load.clients,
        duration: single.then(|| load.duration.clone().unwrap_or_else(|| DEFAULT_HOLD.into())),
        arrival: load.arrival.clone(),
        stages: load.stages.clone(),
        timeout: load.timeout.clone(),
        digest_handshake: load.digest_handshake,
        ..WorkloadSpec::default()
    }
}

fn scenario(verb: &str, workload: WorkloadSpec, load: &Load, run: &RunOptions) -> Scenario {
    let mut scenario = Scenario {
        name: load.name.clone().unwrap_or_else(|| verb.to_owned()),
        workloads: vec![workload],
        warmup: load.warmup.clone(),
        drain: load.drain.clone(),
        bind_addr: load.bind_addr.clone(),
        seed: load.seed,
        insecure: load.insecure,
        cacert: load.cacert.clone(),
        ..Scenario::default()
    };
    add_options(&mut scenario, run);
    // A load of which nothing ever played has measured nothing, and one that lost every client has been let down:
    // neither must pass.
    scenario.thresholds.extend(["played > 0", "failed.ratio < 100%"].iter().flat_map(|text| text.parse()));
    scenario
}

/// Adds what the flags of a run say to what a scenario says.
pub(crate) fn add_options(scenario: &mut Scenario, run: &RunOptions) {
    scenario.watch.extend(run.watch.iter().cloned());
    let machine = &run.machine;
    if let Some(url) = &machine.prometheus {
        // Another Prometheus knows other machines.
        scenario.prometheus = Some(url.clone());
        scenario.prometheus_instance.clone_from(&machine.prometheus_instance);
    }
    scenario.node_exporter = machine.node_exporter.clone().or(scenario.node_exporter.take());
    if !machine.interfaces.is_empty() {
        scenario.interfaces.clone_from(&machine.interfaces);
    }
    scenario.base = run.base.clone().or(scenario.base.take());
    scenario.thresholds.extend(run.thresholds.iter().cloned());
    scenario.abort.extend(run.abort.iter().cloned());
    scenario.tags.extend(run.tags.iter().cloned());
    scenario.shards = run.shards.or(scenario.shards);
}

/// Puts `target` (`host:port`) in the place of the server in every URL. The processes and the machine
/// that the scenario watches are another server's, so they are forgotten.
pub(crate) fn retarget(scenario: &mut Scenario, target: &str) {
    scenario.watch.clear();
    (scenario.prometheus, scenario.prometheus_instance, scenario.node_exporter) = (None, None, None);
    let experiment = scenario.experiment.iter_mut().map(|experiment| &mut experiment.publish);
    let urls = scenario.workloads.iter_mut().flat_map(|it| it.play.0.iter_mut().chain(&mut it.publish.0));
    for url in urls.chain(experiment) {
        if let Some((scheme, rest)) = url.split_once("://") {
            let path = rest.find('/').map_or("", |at| &rest[at..]);
            *url = format!("{scheme}://{target}{path}");
        }
    }
}

/// What was said, or what is usual.
pub(crate) fn span_or(said: Option<&Span>, usual: Duration) -> Duration {
    said.map_or(usual, Span::get)
}

/// A span that is a constant of the program.
pub(crate) fn span(duration: Duration) -> Option<Span> {
    Some(duration.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Verb};
    use clap::Parser;

    #[test]
    fn a_tuner_server_is_asked_for_all_unless_something_else_is() {
        let asked = |args: &[&str]| {
            let words = ["weir", "play"].iter().chain(args);
            let Verb::Play(args) = Cli::try_parse_from(words).unwrap().verb else { panic!("play") };
            let scenario = of_play(&args);
            scenario.thresholds.iter().map(|it| it.text().to_owned()).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(asked(&["rtmp://h/a/b"]), "played > 0, failed.ratio < 100%");
        assert_eq!(
            asked(&["mirakurun+http://h", "--threshold", "ts.lost_packets <= 9"]),
            "ts.lost_packets <= 9, played > 0, failed.ratio < 100%, failed.ratio == 0"
        );
    }

    #[test]
    fn a_scenario_is_pointed_at_another_server() {
        let text = "{watch: [name=a], prometheus: 'http://p', node_exporter: 'http://a:9100', workloads: \
            [{play: ['rtmp://a:1/live/x', 'rtmp://b/live/y'], duration: 1s}]}";
        let mut scenario = Scenario::parse(text).unwrap();
        retarget(&mut scenario, "127.0.0.1:9");
        assert_eq!((scenario.watch.len(), &scenario.prometheus, &scenario.node_exporter), (0, &None, &None));
        assert_eq!(scenario.workloads[0].play.0, ["rtmp://127.0.0.1:9/live/x", "rtmp://127.0.0.1:9/live/y"]);
    }
}
