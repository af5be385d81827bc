//! What an agent's owner lets it do: which targets it may load, and with how many clients. A scenario comes from someone
//! else, and can name what it likes.

use ipnet::IpNet;
use std::net::{IpAddr, ToSocketAddrs};
use weir_clients::Workload;
use weir_engine::WorkloadFacts;
use weir_engine::scenario::{Scenario, WorkloadSpec};

/// Most threads that a scenario may ask for.
const MOST_SHARDS: u32 = 256;

/// What an agent may do.
#[derive(Clone, Debug)]
pub(super) struct Permits {
    only: Vec<IpNet>,
    most: Option<u32>,
}

impl Permits {
    /// These networks, or this machine alone.
    pub(super) fn new(only: &[IpNet], most: Option<u32>) -> Self {
        let only = if only.is_empty() {
            ["127.0.0.0/8", "::1/128"].iter().filter_map(|net| net.parse().ok()).collect()
        } else {
            only.to_vec()
        };
        Self { only, most }
    }

    /// The networks, as they are shown.
    pub(super) fn only(&self) -> Vec<String> {
        self.only.iter().map(ToString::to_string).collect()
    }

    fn allows(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.only.iter().any(|net| net.contains(&address))
    }

    fn check(&self, address: IpAddr) -> Result<(), String> {
        if self.allows(address) {
            return Ok(());
        }
        Err(format!(
            "its owner lets it load {} only, and {address} is not there; start it with --only",
            self.only().join(", ")
        ))
    }

    /// Refuses a scenario that asks for more than clients of a protocol, before anything is asked of a server.
    pub(super) fn check_scenario(&self, scenario: &Scenario) -> Result<(), String> {
        let asks_for_more = !scenario.before.is_empty()
            || !scenario.during.is_empty()
            || !scenario.after.is_empty()
            || scenario.background.is_some()
            || !scenario.watch.is_empty()
            || scenario.prometheus.is_some()
            || scenario.node_exporter.is_some()
            || scenario.workloads.iter().any(|it| !it.probe.0.is_empty());
        if asks_for_more {
            return Err("a plan names clients of protocols, and this one names more".to_owned());
        }
        if scenario.shards.is_some_and(|shards| shards > MOST_SHARDS) {
            return Err(format!("it asks for more than {MOST_SHARDS} threads"));
        }
        let clients = |it: &WorkloadSpec| [&it.play.0[..], &it.publish.0[..], &it.ingest.0[..]].concat();
        let mut urls: Vec<String> = scenario.workloads.iter().flat_map(clients).collect();
        for into in scenario.workloads.iter().filter_map(|it| it.into.as_ref()) {
            let places = into.save.iter().chain(&into.schema_registry).filter(|place| place.contains("://"));
            for place in places {
                check_place(place)?;
                urls.push(place.clone());
            }
        }
        for url in &urls {
            let host = host(url).ok_or("a URL without a host")?;
            let addresses = (host, 0).to_socket_addrs().map_err(|error| format!("{host}: {error}"))?;
            for address in addresses {
                self.check(address.ip())?;
            }
        }
        Ok(())
    }

    /// Refuses what was found behind the URLs.
    pub(super) fn check_workloads(&self, workloads: &[(WorkloadFacts, Workload)]) -> Result<(), String> {
        for (_, workload) in workloads {
            for (client, _) in (0..).zip(workload.targets()) {
                self.check(workload.endpoint(client).address.ip())?;
            }
        }
        Ok(())
    }

    /// Refuses more clients at once than are allowed.
    pub(super) fn check_clients(&self, clients: u64) -> Result<(), String> {
        match self.most {
            Some(most) if clients > u64::from(most) => Err(format!(
                "its part has {clients} clients, and its owner lets it have {most}; use more agents, or start it with another --most"
            )),
            _ => Ok(()),
        }
    }
}

/// Refuses a place to save to, or a registry, that may lead elsewhere than its host says, or that names files of this machine: of a
/// database's URL an agent takes `sslmode` alone.
fn check_place(place: &str) -> Result<(), String> {
    let (_, rest) = place.split_once("://").unwrap_or(("", place));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = rest.split('/').next().unwrap_or_default();
    let is_plain = rest.matches('@').count() == authority.matches('@').count()
        && authority.matches('@').count() <= 1
        && !authority.contains([',', '%', '#']);
    let is_known = |pair: &str| pair.is_empty() || pair.starts_with("sslmode=");
    if is_plain && query.split('&').all(is_known) {
        return Ok(());
    }
    Err("an agent takes a database by postgres://user@host:port/database, with ?sslmode= and nothing else behind it, one host, and \
         its password in a file (save_password_file)"
        .to_owned())
}

/// The host of a URL, without the brackets of an IPv6 literal.
pub(super) fn host(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let place = rest.split(['/', '?', '#']).next()?;
    let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
    let host = match place.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None => place.split(':').next()?,
    };
    (!host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(permits: &Permits, text: &str) -> Option<String> {
        permits.check_scenario(&Scenario::parse(text).unwrap()).err()
    }

    #[test]
    fn an_agent_loads_this_machine_alone_unless_its_owner_says_more() {
        let play = |url: &str| format!("workloads: [{{play: '{url}', duration: 1s}}]");
        let here = Permits::new(&[], None);
        assert_eq!(refusal(&here, &play("rtmp://127.0.0.1/live/a")), None);
        assert_eq!(refusal(&here, &play("rtmp://user:pw@[::1]:1935/live/a")), None);
        let said = refusal(&here, &play("rtmp://10.1.2.3/live/a")).unwrap();
        assert!(said.contains("127.0.0.0/8, ::1/128 only, and 10.1.2.3 is not there"), "{said}");
        // What is before the last @ is no host, and a mapped address is the one that it stands for.
        assert!(refusal(&here, &play("rtmp://127.0.0.1@10.1.2.3/live/a")).is_some());
        assert!(refusal(&here, &play("rtmp://[::ffff:10.1.2.3]/live/a")).is_some());
        let lab = Permits::new(&["10.0.0.0/8".parse().unwrap()], None);
        assert_eq!(refusal(&lab, &play("rtmp://10.1.2.3/live/a")), None);
        assert!(refusal(&lab, &play("rtmp://127.0.0.1/live/a")).is_some());
    }

    #[test]
    fn an_agent_saves_where_its_owner_lets_it_load_and_nowhere_else() {
        let here = Permits::new(&[], None);
        let save = |place: &str| {
            let text = format!(
                "workloads: [{{ingest: 'mqtt://127.0.0.1/$share/g/a', duration: 1s, into: {{save: '{place}'}}}}]"
            );
            refusal(&here, &text)
        };
        assert_eq!(save("postgres://me@127.0.0.1:5432/d?sslmode=require"), None);
        for elsewhere in [
            "postgres://me@10.1.2.3/d",
            "postgres://me@127.0.0.1/d?host=10.1.2.3",
            "postgres://me@127.0.0.1/d?sslmode=require&hostaddr=10.1.2.3",
            "postgres://me@127.0.0.1/d?sslrootcert=/etc/shadow",
            "postgres://127.0.0.1/d@10.1.2.3/d",
            "postgres://127.0.0.1,10.1.2.3/d",
            "postgres:///d?host=/run",
            "postgres://%2Frun/d",
        ] {
            assert!(save(elsewhere).is_some(), "{elsewhere}");
        }
        let probe = "workloads: [{probe: 'sql:postgres://127.0.0.1/d#t', duration: 1s}]";
        assert!(refusal(&here, probe).is_some());
    }

    #[test]
    fn a_plan_names_clients_of_protocols_and_nothing_else() {
        let here = Permits::new(&[], None);
        for more in [
            "before: [{run: 'touch /tmp/x'}]",
            "during: [{at: 1s, restart: x}]",
            "after: [{run: 'touch /tmp/x'}]",
            "watch: ['pid=1']",
            "prometheus: 'http://127.0.0.1:1'",
            "node_exporter: 'http://127.0.0.1:1'",
            "background: {to: '127.0.0.1:1'}",
            "shards: 100000",
        ] {
            let text = format!("{{{more}, workloads: [{{play: 'rtmp://127.0.0.1/live/a', duration: 1s}}]}}");
            assert!(refusal(&here, &text).is_some(), "{more}");
        }
    }

    #[test]
    fn an_agent_has_no_more_clients_than_its_owner_lets_it_have() {
        let permits = Permits::new(&[], Some(10));
        assert_eq!(permits.check_clients(10), Ok(()));
        assert!(permits.check_clients(11).unwrap_err().contains("11 clients"));
    }
}
