//! From the flags of `play`, `publish` and `capacity` to the scenario that they stand for.

use crate::args::{Capacity, ClientOptions, Load, Play, Publish, RunOptions};
use std::time::Duration;
use weir_engine::scenario::{LoadKind, OneOrMany, Scenario, Span, WorkloadSpec};
use weir_runner::{url_lists, verification};

/// How long clients are held by default.
const DEFAULT_HOLD: Duration = Duration::from_secs(30);

/// `weir play`.
pub(crate) fn of_play(args: &Play) -> Scenario {
    let workload = WorkloadSpec {
        play: url_lists::written(&args.urls, args.urls_file.as_deref()),
        expect: args.expect.clone(),
        options: args.options.given().clone(),
        ..workload(&args.load)
    };
    scenario("play", workload, &args.load.of_clients, &args.run)
}

/// `weir capacity` of a URL: its viewers, or publishers, whose number is still to be said.
pub(crate) fn of_capacity(args: &Capacity) -> Scenario {
    let url = OneOrMany(vec![args.what.clone()]);
    let (play, publish) = match args.search.of {
        Some(LoadKind::Messages | LoadKind::Publishers) => (OneOrMany::default(), url),
        _ => (url, OneOrMany::default()),
    };
    let workload = WorkloadSpec {
        play,
        publish,
        expect: args.expect.clone(),
        options: args.options.given().clone(),
        streams: args.of_clients.streams,
        timeout: args.of_clients.timeout.clone(),
        resolve: args.of_clients.resolve,
        ..WorkloadSpec::default()
    };
    scenario("capacity", workload, &args.of_clients, &args.run)
}

/// `weir publish`.
pub(crate) fn of_publish(args: &Publish) -> Scenario {
    let publish = url_lists::written(&args.urls, args.urls_file.as_deref());
    let options = args.options.given().clone();
    let mut workload = WorkloadSpec { publish, options, republish: args.republish, ..workload(&args.load) };
    let mut load = args.load.clone();
    if workload.output().is_some_and(|output| output.count.is_some()) && load.stages.is_empty() {
        // All of a count is to be in the figures.
        load.of_clients.warmup.get_or_insert(Duration::ZERO.into());
        // The run ends with the count, unless a duration bounds it.
        workload.duration.clone_from(&load.duration);
    }
    let mut scenario = scenario("publish", workload, &load.of_clients, &args.run);
    if args.verify {
        verification::add(&mut scenario);
    }
    scenario
}

fn workload(load: &Load) -> WorkloadSpec {
    let single = load.stages.is_empty();
    WorkloadSpec {
        streams: load.of_clients.streams,
        clients: load.clients,
        duration: single.then(|| load.duration.clone().unwrap_or_else(|| DEFAULT_HOLD.into())),
        arrival: load.arrival.clone(),
        life: load.life,
        stages: load.stages.clone(),
        timeout: load.of_clients.timeout.clone(),
        resolve: load.of_clients.resolve,
        ..WorkloadSpec::default()
    }
}

fn scenario(verb: &str, workload: WorkloadSpec, clients: &ClientOptions, run: &RunOptions) -> Scenario {
    let mut scenario = Scenario {
        name: clients.name.clone().unwrap_or_else(|| verb.to_owned()),
        workloads: vec![workload],
        warmup: clients.warmup.clone(),
        drain: clients.drain.clone(),
        bind_addr: clients.bind_addr.clone(),
        seed: clients.seed,
        insecure: clients.tls.insecure,
        cacert: clients.tls.cacert.clone(),
        cert: clients.tls.cert.clone(),
        key: clients.tls.key.clone(),
        ..Scenario::default()
    };
    add_options(&mut scenario, run);
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
    scenario.accept.extend(run.accept.iter().copied());
    scenario.tags.extend(run.tags.iter().cloned());
    scenario.shards = run.shards.or(scenario.shards);
    scenario.show_keys |= run.show_keys;
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
            scenario.asked().iter().map(|it| it.text().to_owned()).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(
            asked(&["rtmp://h/a/b"]),
            "bitrate.ratio >= 90%, frames.ratio >= 90%, stalled.ratio <= 1%, starved.ratio <= 1%, blackouts == 0, drift.growth <= 1s, failed.ratio <= 1%, played.ratio >= 99%"
        );
        assert_eq!(
            asked(&["mirakurun+http://h", "--threshold", "ts.lost_packets <= 9"]),
            "ts.lost_packets <= 9, bitrate.ratio >= 90%, stalled.ratio <= 1%, starved.ratio <= 1%, blackouts == 0, failed.ratio == 0, drift.growth <= 1s, played.ratio >= 99%"
        );
    }

    #[test]
    fn a_count_ends_when_it_is_reached_unless_a_duration_bounds_it() {
        let plan = |bound: &[&str]| {
            let words = ["weir", "publish", "mqtt://127.0.0.1/a", "--count", "500", "--rate", "10/s"];
            let Verb::Publish(args) = Cli::try_parse_from(words.iter().chain(bound)).unwrap().verb else {
                panic!("publish")
            };
            let scenario = of_publish(&args);
            assert!(scenario.asked().iter().any(|it| it.text() == "units_short == 0"));
            let plan = scenario.plan().unwrap();
            (plan.about, plan.length > Duration::from_secs(100 * 86_400), plan.stages[0].window_begin)
        };
        assert_eq!(plan(&[]), (Some(Duration::from_secs(50)), true, 1));
        assert_eq!(plan(&["-d", "3s"]), (None, false, 1));
    }

    #[test]
    fn checks_are_accepted_by_a_flag_and_by_a_scenario() {
        let words = ["weir", "play", "rtmp://h/a/b", "--accept", "steal,generator-pause"];
        let Verb::Play(args) = Cli::try_parse_from(words).unwrap().verb else { panic!("play") };
        let mut scenario = Scenario::parse("accept: [cpu_throttling]").unwrap();
        add_options(&mut scenario, &args.run);
        let names: Vec<_> = scenario.accept.iter().map(|check| check.name()).collect();
        assert_eq!(names, ["cpu_throttling", "cpu_steal", "generator_pause"]);
        let wrong = Cli::try_parse_from(["weir", "play", "rtmp://h/a/b", "--accept", "stael"]);
        assert!(wrong.unwrap_err().to_string().contains("there is no check 'stael'"));
    }
}
