//! From a workload that saves messages, or asks another program that does, to a consumer that is ready to be started.

use crate::generators::Generators;
use crate::ingester::settings;
use crate::machine::trust;
use crate::tls::TlsOptions;
use std::sync::Arc;
use std::time::Duration;
use weir_clients::mqtt::{MqttSource, MqttVersion, PublishTimes, Qos, is_random, nameless_session};
use weir_clients::{Workload, shown};
use weir_consumer::{MakeIngester, Probe, Tables};
use weir_engine::WorkloadFacts;
use weir_engine::ingest::{self, AgentCounts, Consuming, Messages, Share};
use weir_engine::plan::Plan;
use weir_engine::scenario::{Scenario, Span, WorkloadSpec};
use weir_engine::summary::Role;
use weir_protocols::mqtt::Dialogue;
use weir_protocols::{first_line, of_url};

/// The figure of publishers that counts what the broker has acknowledged.
const ACKNOWLEDGED: &str = "mqtt.acknowledged";

/// How long an ingester's session at the broker outlives its agent: a lost one is noticed after 3 s, and taken over then.
const SESSION: Duration = Duration::from_secs(60);

/// How much longer what agents count is waited for: it comes once a second, and a lost one is noticed after 3 s.
const TOLD_LATE: Duration = Duration::from_secs(5);

/// Stores that agents may save into: those that all of them reach, and the coordinator as well.
const SHARED_STORES: [&str; 2] = ["postgres://", "postgresql://"];

/// What is known of a workload that saves.
///
/// # Errors
/// None here: a library without databases knows none.
pub(crate) fn workload(spec: &WorkloadSpec) -> Result<(WorkloadFacts, Workload), String> {
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
        warnings: Vec::new(),
    };
    Ok((facts, Workload::without_clients(ingest::SCHEMA)))
}

/// The consumer of a scenario's messages, if it has one.
pub(crate) fn consuming(
    scenario: &Scenario,
    plan: &Plan,
    times: Arc<PublishTimes>,
    generators: &Generators,
) -> Result<Option<Consuming>, String> {
    let Some((workload, spec)) = (0..).zip(&scenario.workloads).find(|(_, spec)| spec.saves()) else {
        return Ok(None);
    };
    let wrong = |line: String| format!("workload '{}': {line}", spec.label());
    let into = spec.into.clone().unwrap_or_default();
    let own = plan.slots.iter().filter(|slot| slot.workload == workload);
    let numbers: Vec<u32> = own.map(|slot| slot.client).collect();
    let is_part = matches!(generators, Generators::Part(_));
    if is_part && numbers.is_empty() {
        return Ok(None);
    }
    // What other agents publish comes to this one as well.
    let publishing = (0..).zip(&scenario.workloads).filter(|(_, it)| !is_part && publishes_messages(it));
    let publishing: Vec<_> = publishing.collect();
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
        settle: into.settle.as_ref().map_or(Duration::from_secs(if disturbed { 5 } else { 1 }), Span::get),
        timeout,
        share: Share::Whole,
        ingesters: numbers.len() as u64,
        name: String::new(),
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
            probe.consumer(into.format.unwrap_or_else(|| "avro".to_owned()), count, timeout, weir_files::warn)
        }
        None => {
            let tls = TlsOptions::by(scenario).client_tls()?;
            let url = spec.ingest.0.first().map_or("", String::as_str);
            let source = MqttSource::find(url, &tls).map_err(|error| wrong(error.to_string()))?;
            // A registry may be asked with a password, and is no target: `insecure` does not hold for it.
            let registry = trust(false, scenario.cacert.as_deref());
            let mut mqtt = Dialogue::read(&spec.options).map_err(|error| wrong(error.to_string()))?;
            // Below it has a name, which is this run's alone.
            let options = mqtt.options(Qos::AtLeastOnce, 1).map_err(|error| wrong(error.to_string()))?;
            if options.leaves_sessions() {
                return Err(wrong(nameless_session()));
            }
            let save = into.save.as_deref().unwrap_or_default();
            check_several(save, source.filter(), numbers.len(), generators).map_err(&wrong)?;
            let empty = into.empty;
            let at_agents = *generators != Generators::Here;
            // All agents, and the coordinator, call an ingester the same.
            let name = mqtt.connection.connect.client_id.take();
            let name = name.unwrap_or_else(|| format!("weir-{:016x}", fastrand::u64(..)));
            if at_agents && [&*name, source.filter()].into_iter().any(is_random) {
                let words = "agents call an ingester by the same name, and give it the same filter: leave {random:N} out of client_id and URL";
                return Err(wrong(words.to_owned()));
            }
            messages.name.clone_from(&name);
            mqtt.connection.connect.client_id = Some(name);
            let is_one = !at_agents && numbers.len() == 1;
            let make = move |number: u32| {
                let number = (!is_one).then_some(number);
                let (mut settings, decode) =
                    settings(&source, number, &into, &mqtt, &registry).map_err(|error| error.to_string())?;
                // A member of a shared subscription that is away would be given messages of the next run.
                settings.source.ends_session = true;
                let options = &mut settings.source.options;
                if at_agents {
                    if options.version != MqttVersion::V5 {
                        return Err(
                            "mqtt_version: agents need 5, whose sessions outlive a lost agent until \
                                    another goes on with them"
                                .to_owned(),
                        );
                    }
                    options.session_expiry = SESSION.as_secs() as u32;
                }
                Ok((settings, decode))
            };
            // What is wrong with it is better known before.
            messages.broker = make(0).map_err(&wrong)?.0.source.name;
            let make: Box<MakeIngester> = Box::new(make);
            match generators {
                Generators::Here => {
                    weir_consumer::ingesters(make, numbers, Tables::Here { empty }, timeout, weir_files::warn)
                }
                Generators::Part(_) => {
                    messages.share = Share::Part;
                    weir_consumer::ingesters(make, numbers, Tables::AtCoordinator, timeout, weir_files::warn)
                }
                Generators::Elsewhere => {
                    messages.settle += TOLD_LATE;
                    let publishers = publishing.iter().map(|(number, _)| *number).collect();
                    let counts = Arc::new(AgentCounts::new(workload, publishers, Some(ACKNOWLEDGED)));
                    messages.share = Share::Agents(counts.clone());
                    weir_consumer::agent_ingesters(make, empty, counts, weir_files::warn)
                }
            }
        }
    };
    Ok(Some(Consuming { make, messages }))
}

/// Several ingesters share one subscription, and save into a store that takes from several; agents into one that all reach.
fn check_several(save: &str, filter: &str, count: usize, generators: &Generators) -> Result<(), String> {
    if *generators == Generators::Here && count == 1 {
        return Ok(());
    }
    if count > 1 && !filter.starts_with("$share/") {
        return Err(format!(
            "each of {count} ingesters would get all messages; share them: mqtt://host/$share/NAME/{filter}"
        ));
    }
    if !SHARED_STORES.iter().any(|scheme| save.starts_with(scheme)) {
        let who = if *generators == Generators::Here { "several ingesters" } else { "agents" };
        return Err(format!("into: {who} save into one database: `save: postgres://user@host/database`"));
    }
    Ok(())
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
