//! A server with services, as Mirakurun has them: found, read at once, and named in the report.

use crate::support::{free_port, measure, says, shared};
use crate::transport::{BIT_RATE, Framing, Response, Server, stream, without};
use serde_json::json;

/// Three services of two types; the second one's stream lacks packets.
fn server() -> Server {
    let intact = Response { pace: Some(BIT_RATE), ..Response::ok(Framing::Chunked, stream(20)) };
    let lossy = Response {
        pace: Some(BIT_RATE),
        ..Response::ok(Framing::Chunked, without(&stream(20), &[(500, 3), (1_100, 4)]))
    };
    let services = [(1_u64, "GR", "27", "One"), (2, "GR", "26", "Two"), (3, "BS", "BS1_0", "Three")];
    let services: Vec<_> = services
        .map(|(id, kind, channel, name)| {
            json!({ "id": id, "serviceId": id, "networkId": 0, "name": name, "type": 1,
                "channel": { "type": kind, "channel": channel } })
        })
        .into();
    let json = |value: serde_json::Value| Response::ok(Framing::Length, value.to_string().into_bytes());
    let services = json(services.into());
    let version = json(json!({ "current": "3.9.0-beta.5" }));
    Server::start(move |request| match request.split(' ').nth(1).unwrap() {
        "/api/services" => services.clone(),
        "/api/version" => version.clone(),
        "/api/services/2/stream?decode=1" => lossy.clone(),
        "/api/services/2/stream?decode=0&pre-filters[0]=a&post-filters[0]=b%26"
            if request.contains("\r\nX-Mirakurun-Priority: -1\r\n") =>
        {
            intact.clone()
        }
        path if path.ends_with("/stream?decode=1") => intact.clone(),
        _ => Response::refusal("404 Not Found"),
    })
}

#[test]
fn flags_ask_for_one_service_and_say_how_it_is_read() {
    let _machine = shared();
    let server = server();
    let url = format!("mirakurun+{}", server.url(""));
    let options = "--service Two --no-decode --priority -1 --pre-filter a --post-filter b& -c 2";
    let load = ["-d", "3s", "--warmup", "0s", "--drain", "500ms"];
    let run = measure(["play", &url].into_iter().chain(options.split(' ')).chain(load));
    assert_eq!((run.code, run.well(), run.total("ts.lost_packets")), (0, 2, 0.0));
}

#[test]
fn a_scenario_reads_services_too_and_takes_another_server() {
    let _machine = shared();
    let server = server();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("services.yaml");
    let scenario =
        "workloads: [{play: 'mirakurun+http://nobody.invalid', channel_type: GR, services: 2, duration: 3s}]
warmup: 0s
thresholds: ['ts.lost_packets == 0']";
    std::fs::write(&file, scenario).unwrap();
    let target = server.address.to_string();
    let run = measure(["run", file.to_str().unwrap(), "--target", &target]);
    assert_eq!((run.code, run.well(), run.total("ts.lost_packets")), (99, 2, 7.0));
}

#[test]
fn what_cannot_be_found_is_one_line_and_no_run() {
    let _machine = shared();
    let server = server();
    let url = format!("mirakurun+http://me:secret@{}", server.address);
    let nobody = format!("mirakurun+http://127.0.0.1:{}", free_port());
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("services.yaml");
    std::fs::write(&file, format!("workloads: [{{play: '{url}', services: 9, duration: 3s}}]")).unwrap();
    let file = file.to_str().unwrap();
    for (arguments, code, words) in [
        (vec!["play", &nobody, "--services", "1"], 97, "connection refused"),
        (vec!["play", &url, "--services", "9"], 2, "9 services are asked for and there are 3"),
        (vec!["play", &url], 2, "--services 8"),
        (vec!["run", file], 104, "9 services are asked for and there are 3"),
    ] {
        let output = directory.path().join("run");
        let said = says(arguments.iter().copied().chain(["-o", output.to_str().unwrap()]));
        assert_eq!(said.code, Some(code), "{}", said.err);
        assert!(said.err.contains(words) && said.err.trim().lines().count() == 1, "{}", said.err);
        assert!(!said.err.contains("secret"), "{}", said.err);
        assert!(!output.exists(), "nothing was run");
    }
}
