//! From a workload that saves messages, or asks another program that does, to a consumer that is ready to be started.

use crate::ingest::{asked, settings};
use crate::load::span_or;
use crate::machine::trust;
use crate::tls::TlsOptions;
use std::sync::Arc;
use std::time::Duration;
use weir_clients::mqtt::{MqttSource, PublishTimes};
use weir_clients::{Workload, shown};
use weir_consumer::Probe;
use weir_engine::WorkloadFacts;
use weir_engine::ingest::{self, Consuming, Messages};
use weir_engine::plan::Plan;
use weir_engine::scenario::{Scenario, Span, WorkloadSpec};
use weir_engine::summary::Role;
use weir_protocols::{first_line, of_url};

/// What is known of a workload that saves.
pub(crate) fn workload(spec: &WorkloadSpec) -> (WorkloadFacts, Workload) {
    let url = spec.ingest.0.iter().chain(&spec.probe.0).map(|url| shown(url));
    let save = spec.into.iter().filter_map(|into| into.save.as_deref());
    let save = save.filter(|_| spec.probe.0.is_empty());
    let save = save.map(|save| if save.contains("://") { shown(save) } else { save.to_owned() });
    let facts = WorkloadFacts {
        name: spec.label(),
        role: Role::Ingest,
        protocol: ingest::PROTOCOL.to_owned(),
        targets: url.chain(save).collect(),
        expect: None,
        frame_time_seconds: None,
        messages_per_second: None,
        timeout_seconds: 0.0,
        background: spec.background,
        servers: Vec::new(),
    };
    (facts, Workload::without_clients(ingest::SCHEMA))
}

/// The consumer of a scenario's messages, if it has one.
pub(crate) fn consuming(
    scenario: &Scenario,
    plan: &Plan,
    times: Arc<PublishTimes>,
) -> Result<Option<Consuming>, String> {
    let Some((workload, spec)) = (0..).zip(&scenario.workloads).find(|(_, spec)| spec.saves()) else {
        return Ok(None);
    };
    let wrong = |line: String| format!("workload '{}': {line}", spec.label());
    let into = spec.into.clone().unwrap_or_default();
    let publishing: Vec<_> =
        (0..).zip(&scenario.workloads).filter(|(_, it)| publishes_messages(it)).collect();
    let clients = |number: u16| plan.slots.iter().filter(|slot| slot.workload == number).count() as u64;
    let counts = publishing.iter().map(|(number, it)| Some(clients(*number) * it.output()?.count?));
    let count = counts.sum::<Option<u64>>().filter(|_| !publishing.is_empty());
    let timeout = spec.timeout.as_ref().map_or(Duration::from_secs(30), Span::get);
    let disturbed = scenario.workloads.iter().any(|it| it.background);
    let mut messages = Messages {
        workload,
        times,
        publishers: publishing.iter().map(|(number, _)| clients(*number)).sum(),
        count,
        acknowledges: publishing.iter().any(|(_, it)| it.output().is_some_and(|output| output.acknowledged)),
        broker: publishing.first().map_or_else(String::new, |(_, it)| broker(&it.publish.0[0])),
        // On a full wire a lost segment comes again after seconds.
        settle: span_or(into.settle.as_ref(), Duration::from_secs(if disturbed { 5 } else { 1 })),
        timeout,
    };
    let make = match spec.probe.0.first() {
        Some(probe) => {
            if into.durability.is_some() {
                return Err(wrong("durability: what another consumer commits is its own affair".to_owned()));
            }
            let password = match &into.save_password_file {
                Some(path) => Some(first_line(path).map_err(|error| wrong(error.to_string()))?),
                None => std::env::var("PGPASSWORD").ok(),
            };
            let trust = trust(scenario.insecure, scenario.cacert.as_deref());
            let probe = Probe::parse(probe, &trust, password.as_deref());
            let probe = probe.map_err(|error| wrong(format!("probe: {error}")))?;
            let count = count.ok_or_else(|| {
                wrong("it is told how many messages there will be: give the publishers a `count`".to_owned())
            })?;
            probe.consumer(into.format.unwrap_or_else(|| "avro".to_owned()), count, timeout)
        }
        None => {
            let tls = TlsOptions::by(scenario).client_tls()?;
            let url = spec.ingest.0.first().map_or("", String::as_str);
            let source = MqttSource::find(url, &tls).map_err(|error| wrong(error.to_string()))?;
            // A registry may be asked with a password, and is no target: `insecure` does not hold for it.
            let registry = trust(false, scenario.cacert.as_deref());
            let subscription = asked(&spec.options).map_err(&wrong)?;
            let (settings, decode) = settings(source, &into, &subscription, &registry)
                .map_err(|error| wrong(error.to_string()))?;
            messages.broker.clone_from(&settings.source.name);
            weir_consumer::ingester(settings, decode, into.empty, timeout)
        }
    };
    Ok(Some(Consuming { make, messages }))
}

/// Whether it publishes what is to be saved.
fn publishes_messages(spec: &WorkloadSpec) -> bool {
    let is_ingested = |url: &String| of_url(url).is_some_and(|protocol| protocol.ingest.is_some());
    !spec.background && spec.publish.0.iter().any(is_ingested)
}

/// A broker as it is called in messages: without user, password and topic.
fn broker(url: &str) -> String {
    let url = shown(url);
    let path = url.find("://").and_then(|at| url[at + 3..].find('/').map(|slash| at + 3 + slash));
    url[..path.unwrap_or(url.len())].to_owned()
}
