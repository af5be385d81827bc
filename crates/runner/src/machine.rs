//! The target's machine: how it is to be read, and whether it is this one.

use crate::error::{ErrorKind, RunError};
use std::net::{IpAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;
use weir_engine::scenario::Scenario;
use weir_http::HttpTrust;
use weir_observe::{Interfaces, MachineError, MachineFacts, Remote, Sampler};
use weir_setting::{BASE, NODE_EXPORTER, PROMETHEUS};

/// The step of mirakc's measurement, which is that of ten minutes and more.
const LONGEST_STEP: Duration = Duration::from_secs(10);
const SHORTEST_STEP: Duration = Duration::from_secs(1);

/// Time between two points of a load of this length: a sixtieth of it, in whole seconds.
fn step(length: Duration) -> Duration {
    Duration::from_secs(length.as_secs() / 60).clamp(SHORTEST_STEP, LONGEST_STEP)
}

/// Which interfaces count: those of the scenario, else `lo` for targets that are reached through it.
fn interfaces(scenario: &Scenario, targets: &[IpAddr]) -> Interfaces {
    if !scenario.interfaces.is_empty() {
        return scenario.interfaces.iter().cloned().collect();
    }
    let loopback = !targets.is_empty() && targets.iter().all(IpAddr::is_loopback);
    if loopback { Interfaces::loopback() } else { Interfaces::default() }
}

/// Lets the sampler read the machine in every way that the scenario says, `/proc` among them where a
/// base was asked for and the target is on this machine; says which those are.
pub fn watch(
    sampler: &mut Sampler,
    scenario: &Scenario,
    targets: &[IpAddr],
    length: Duration,
    wrong: ErrorKind,
) -> Result<Vec<MachineFacts>, RunError> {
    let interfaces = interfaces(scenario, targets);
    let mut machines = Vec::new();
    let is_here = !scenario.watch.is_empty() || targets.iter().any(is_here);
    if !scenario.base().is_zero() && is_here {
        machines.push(MachineFacts::of_this_machine(interfaces.clone()));
    }
    // The machine's servers are not measured: `insecure` is not about them.
    let trust = trust(false, scenario.cacert.as_deref());
    let words = |error: MachineError| failure(&error, wrong);
    if let Some(url) = &scenario.node_exporter {
        sampler.watch_machine(Remote::node_exporter(url, interfaces.clone(), &trust).map_err(words)?);
    }
    let instance = scenario.prometheus_instance.as_deref();
    if let Some(url) = &scenario.prometheus {
        let step = step(length);
        sampler.watch_machine(Remote::prometheus(url, instance, interfaces, step, &trust).map_err(words)?);
    } else if instance.is_some() {
        return Err(RunError::new(wrong, "`prometheus_instance` says nothing without `prometheus`"));
    }
    machines.extend(sampler.machines().cloned());
    let asked =
        !scenario.interfaces.is_empty() || scenario.base.as_ref().is_some_and(|it| !it.get().is_zero());
    if machines.is_empty() && asked {
        let remedy = if is_here {
            format!("give {BASE} a time, as in {}", BASE.to("3s"))
        } else {
            format!("give {NODE_EXPORTER} or {PROMETHEUS}")
        };
        let line =
            format!("`base` and `interfaces` are of the target's machine, and nothing reads it: {remedy}");
        return Err(RunError::new(wrong, line));
    }
    Ok(machines)
}

/// The same of a machine that is watched alone, without a load: every second, or as often as it is asked.
///
/// # Errors
/// As of [`watch`].
pub fn watch_alone(sampler: &mut Sampler, places: &MachinePlaces<'_>) -> Result<(), RunError> {
    let words = |error: MachineError| failure(&error, ErrorKind::Usage);
    if let Some(url) = places.node_exporter {
        let exporter = Remote::node_exporter(url, places.interfaces.clone(), places.trust);
        sampler.watch_machine(exporter.map_err(words)?);
    }
    if let Some(url) = places.prometheus {
        let interfaces = places.interfaces.clone();
        let prometheus = Remote::prometheus(url, places.instance, interfaces, SHORTEST_STEP, places.trust);
        sampler.watch_machine(prometheus.map_err(words)?);
    }
    Ok(())
}

/// Where the figures of a machine are.
#[derive(Clone, Debug)]
pub struct MachinePlaces<'a> {
    /// URL of its node_exporter.
    pub node_exporter: Option<&'a str>,
    /// URL of a Prometheus that asks it.
    pub prometheus: Option<&'a str>,
    /// What the Prometheus calls it, if it asks several.
    pub instance: Option<&'a str>,
    /// The interfaces that count.
    pub interfaces: Interfaces,
    /// The certificates that both may show.
    pub trust: &'a HttpTrust,
}

/// A server that gives no answer is not there, as any other; all else is as `wrong` as the place that names it.
fn failure(error: &MachineError, wrong: ErrorKind) -> RunError {
    RunError::new(if error.is_silence() { ErrorKind::TargetDied } else { wrong }, error.to_string())
}

/// Which certificates an HTTP server may show: one that is measured, or all that `weir watch` reads. `insecure` holds for no
/// others: a Prometheus may be asked with a password, and is no target.
pub fn trust(insecure: bool, cacert: Option<&Path>) -> HttpTrust {
    match cacert {
        _ if insecure => HttpTrust::Anyone,
        Some(path) => HttpTrust::File(path.to_owned()),
        None => HttpTrust::System,
    }
}

/// Whether an address is this machine's: only its own can be bound.
pub fn is_here(address: &IpAddr) -> bool {
    UdpSocket::bind((*address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn this_machine_is_known_by_its_addresses() {
        assert!(addresses(&["127.0.0.1", "127.0.0.9"]).iter().all(is_here));
        assert!(!addresses(&["192.0.2.1", "2001:db8::1"]).iter().any(is_here));
    }

    #[test]
    fn ten_minutes_have_the_classic_step_and_a_minute_a_second() {
        let of = |seconds| step(Duration::from_secs(seconds)).as_secs();
        assert_eq!([of(5), of(60), of(300), of(600), of(7_200)], [1, 1, 5, 10, 10]);
    }

    #[test]
    fn a_target_on_loopback_counts_loopback_and_the_scenario_has_the_last_word() {
        let of = |scenario: &Scenario, on: &[&str]| interfaces(scenario, &addresses(on)).to_string();
        let mut scenario = Scenario::default();
        assert_eq!(of(&scenario, &["127.0.0.1", "::1"]), "lo");
        assert_eq!(of(&scenario, &["127.0.0.1", "192.0.2.1"]), "eth*, en*");
        assert_eq!(of(&scenario, &[]), "eth*, en*");
        scenario.interfaces = vec!["wlan0".parse().unwrap()];
        assert_eq!(of(&scenario, &["127.0.0.1"]), "wlan0");
    }

    #[test]
    fn what_would_read_nothing_is_refused_with_what_to_do() {
        let refused = |text: &str, on: &[&str]| {
            let scenario = Scenario::parse(text).unwrap();
            let mut sampler = Sampler::new([]).unwrap();
            let minute = Duration::from_secs(60);
            watch(&mut sampler, &scenario, &addresses(on), minute, ErrorKind::Usage).unwrap_err().to_string()
        };
        assert!(refused("{base: 3s}", &["192.0.2.1"]).contains("`node_exporter`"));
        assert!(refused("{interfaces: [eth0]}", &["127.0.0.1"]).contains("`base: 3s`"));
        assert!(refused("{prometheus_instance: 'a:9100'}", &["127.0.0.1"]).contains("without `prometheus`"));
    }
}
