//! A scenario that is pointed at another server.

use crate::machine;
use std::net::ToSocketAddrs;
use weir_engine::scenario::Scenario;
use weir_observe::Watch;
use weir_setting::{NODE_EXPORTER, PROMETHEUS};

/// Puts `target` (`host:port`) in the place of the server in every URL. The server is most often one of the same kind, so
/// its processes are watched unless others are asked for; the machine's figures would be another machine's. A port that is
/// watched is the server's, and that of the target from now on; if nothing of this machine can listen there, it is left
/// out, of which a line tells.
pub fn retarget(scenario: &mut Scenario, target: &str, watches: bool) -> Option<String> {
    if watches {
        scenario.watch.clear();
    }
    let left_out = retarget_ports(&mut scenario.watch, target);
    (scenario.prometheus, scenario.prometheus_instance, scenario.node_exporter) = (None, None, None);
    let urls = scenario
        .workloads
        .iter_mut()
        .flat_map(|it| it.play.0.iter_mut().chain(&mut it.publish.0).chain(&mut it.ingest.0));
    for url in urls {
        if let Some((scheme, rest)) = url.split_once("://") {
            let path = rest.find(['/', '?', '#']).map_or("", |at| &rest[at..]);
            *url = format!("{scheme}://{target}{path}");
        }
    }
    left_out
}

fn retarget_ports(watch: &mut Vec<String>, target: &str) -> Option<String> {
    let is_port = |text: &String| matches!(text.parse(), Ok(Watch::Port(_)));
    if !watch.iter().any(is_port) {
        return None;
    }
    if is_elsewhere(target) {
        let ports: Vec<String> = watch.extract_if(.., |text| is_port(text)).collect();
        return Some(format!(
            "watch: {} is left out: {target} is not on this machine; {NODE_EXPORTER} and {PROMETHEUS} watch another",
            ports.join(", ")
        ));
    }
    if let Some(port) = target.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok()) {
        watch.iter_mut().filter(|text| is_port(text)).for_each(|text| *text = Watch::Port(port).to_string());
    }
    None
}

/// Whether all addresses of a `host:port` are other machines'. A name without an address is refused later, by itself.
fn is_elsewhere(target: &str) -> bool {
    let host = target.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or_else(
        || target.rsplit_once(':').filter(|(host, _)| !host.contains(':')).map_or(target, |(host, _)| host),
        |(host, _)| host,
    );
    let addresses = (host, 0).to_socket_addrs().map_or_else(|_| Vec::new(), Iterator::collect);
    !addresses.is_empty() && !addresses.iter().any(|address| machine::is_here(&address.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_is_pointed_at_another_server() {
        let text = "{watch: [name=a], prometheus: 'http://p', node_exporter: 'http://a:9100', workloads: \
            [{play: ['rtmp://a:1/live/x', 'rtmp://b/live/y'], duration: 1s}]}";
        let mut scenario = Scenario::parse(text).unwrap();
        let mut other = scenario.clone();
        retarget(&mut scenario, "127.0.0.1:9", false);
        assert_eq!((&scenario.watch[..], &scenario.prometheus), (&["name=a".to_owned()][..], &None));
        retarget(&mut other, "127.0.0.1:9", true);
        assert_eq!((other.watch.len(), &other.prometheus, &other.node_exporter), (0, &None, &None));
        assert_eq!(scenario.workloads[0].play.0, ["rtmp://127.0.0.1:9/live/x", "rtmp://127.0.0.1:9/live/y"]);
    }

    #[test]
    fn a_watched_port_follows_the_target_on_this_machine_and_is_left_out_elsewhere() {
        let text = "{watch: [port=40772, name=mirakc], workloads: \
            [{play: 'mirakurun+http://127.0.0.1:40772', duration: 1s}]}";
        // TEST-NET-1 (RFC 5737) is nobody's.
        for (target, watched, told) in [
            ("127.0.0.1:8080", &["port=8080", "name=mirakc"][..], false),
            ("127.0.0.1", &["port=40772", "name=mirakc"], false),
            ("192.0.2.1:8080", &["name=mirakc"], true),
            ("192.0.2.1", &["name=mirakc"], true),
        ] {
            let mut scenario = Scenario::parse(text).unwrap();
            let line = retarget(&mut scenario, target, false);
            let found: Vec<&str> = scenario.watch.iter().map(String::as_str).collect();
            assert_eq!((&found[..], line.is_some()), (watched, told), "{target}");
        }
    }
}
