//! What an agent's owner lets it do: which targets it may load, and with how many clients. A scenario comes from someone
//! else, and can name what it likes.

use ipnet::IpNet;
use std::net::{IpAddr, ToSocketAddrs};
use weir_address::networks::Networks;
use weir_clients::{Target, Workload};
use weir_engine::WorkloadFacts;
use weir_engine::scenario::{Scenario, WorkloadSpec};
use weir_http::HttpAddress;
use weir_ingest::{Destination, DestinationError};
use weir_setting::MOST;

/// Most threads that a scenario may ask for.
const MOST_SHARDS: u32 = 256;

/// What an agent may do.
#[derive(Clone, Debug)]
pub(super) struct Permits {
    only: Networks,
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
        Self { only: Networks::new(only), most }
    }

    /// Has this process keep to the networks, wherever a server or a name leads it.
    pub(super) fn restrict(&self) {
        self.only.clone().restrict();
    }

    /// The networks, as they are shown.
    pub(super) fn only(&self) -> Vec<String> {
        self.only.names()
    }

    fn check(&self, address: IpAddr) -> Result<(), String> {
        self.only.check(address).map_err(|forbidden| forbidden.to_string())
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
        let urls = scenario.workloads.iter().flat_map(clients);
        let mut hosts = urls.map(|url| host_of_clients(&url)).collect::<Result<Vec<_>, _>>()?;
        for into in scenario.workloads.iter().filter_map(|it| it.into.as_ref()) {
            if let Some(place) = &into.save {
                hosts.extend(hosts_of_place(place)?);
            }
            // Of a file there is what came with the offer.
            for registry in into.schema_registry.iter().filter(|place| place.contains("://")) {
                let address = HttpAddress::parse(registry).ok_or("a schema registry without a host")?;
                hosts.push(address.host().to_owned());
            }
        }
        for host in &hosts {
            let addresses =
                (host.as_str(), 0).to_socket_addrs().map_err(|error| format!("{host}: {error}"))?;
            for address in addresses {
                self.check(address.ip())?;
            }
        }
        Ok(())
    }

    /// Refuses what was found behind the URLs.
    pub(super) fn check_workloads(&self, workloads: &[(WorkloadFacts, Workload)]) -> Result<(), String> {
        for (_, workload) in workloads {
            workload.endpoints().try_for_each(|endpoint| self.check(endpoint.address.ip()))?;
        }
        Ok(())
    }

    /// Refuses more clients at once than are allowed.
    pub(super) fn check_clients(&self, clients: u64) -> Result<(), String> {
        match self.most {
            Some(most) if clients > u64::from(most) => Err(format!(
                "its part has {clients} clients, and its owner lets it have {most}; use more agents, or start it with another {MOST}"
            )),
            _ => Ok(()),
        }
    }
}

/// The host that the clients of a URL connect to, out of the type that they connect by: a second reading of the URL might find another
/// one than the first, and let a URL past.
fn host_of_clients(url: &str) -> Result<String, String> {
    let protocol = weir_protocols::of_url(url).ok_or("a URL of an unknown protocol")?;
    let others = protocol.suffix.map_or(&[][..], |(schemes, _)| schemes);
    let schemes = [protocol.schemes, others].concat();
    Target::parse(url, "use", &schemes).map(|target| target.host).map_err(|error| error.to_string())
}

/// The hosts of a place to save to, out of the store that connects to them. Of a database's URL an agent takes `sslmode` alone: other
/// parameters name files of this machine.
fn hosts_of_place(place: &str) -> Result<Vec<String>, String> {
    let (_, query) = place.split_once('?').unwrap_or((place, ""));
    let is_word = |text: &str| text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
    let is_known = |pair: &str| pair.is_empty() || pair.strip_prefix("sslmode=").is_some_and(is_word);
    let taken = "an agent takes a database by postgres://user@host:port/database, with ?sslmode= and nothing else behind it, and its \
                 password in a file (save_password_file)";
    if !query.split('&').all(is_known) {
        return Err(taken.to_owned());
    }
    let destination: Destination = place.parse().map_err(|error: DestinationError| error.to_string())?;
    // Brokers name others to connect to, which no look at the URL shows.
    if matches!(destination, Destination::Kafka(_)) {
        return Err(
            "an agent saves into no Kafka, whose brokers could send it to any host; save into a database"
                .to_owned(),
        );
    }
    let hosts = destination.hosts();
    // A socket of this machine is nobody's network.
    if hosts.iter().any(|host| host.starts_with('/')) { Err(taken.to_owned()) } else { Ok(hosts) }
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
        for url in ["rtmp://10.1.2.3?@127.0.0.1/live/a", "rtmp://10.1.2.3#@127.0.0.1/live/a"] {
            assert!(refusal(&here, &play(url)).is_some(), "{url}");
        }
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
            // The client library of PostgreSQL takes the first @ of all for the end of user and password, that of ClickHouse the last.
            "postgres://127.0.0.1/d?sslmode=require@10.1.2.3/d",
            "postgres://127.0.0.1/d?sslmode=require:x@127.0.0.1/d?sslrootcert=/etc/shadow",
            "postgres://127.0.0.1#@10.1.2.3/d",
            "clickhouse://127.0.0.1/d?sslmode=require@10.1.2.3/d",
            "clickhouse://127.0.0.1/d#@10.1.2.3/d",
            "kafka://127.0.0.1/t",
        ] {
            assert!(save(elsewhere).is_some(), "{elsewhere}");
        }
        let registry = |url: &str| {
            let into = format!("{{save: 'postgres://me@127.0.0.1/d', schema_registry: '{url}'}}");
            let ingest = "ingest: 'mqtt://127.0.0.1/$share/g/a', duration: 1s";
            refusal(&here, &format!("workloads: [{{{ingest}, into: {into}}}]"))
        };
        assert_eq!(registry("http://127.0.0.1:8081"), None);
        // A backslash ends the host as a slash does (WHATWG URL, "special" schemes).
        for elsewhere in
            ["http://10.1.2.3\\@127.0.0.1/", "http://127.0.0.1@10.1.2.3/", "http://10.1.2.3#@127.0.0.1/"]
        {
            assert!(registry(elsewhere).is_some(), "{elsewhere}");
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
