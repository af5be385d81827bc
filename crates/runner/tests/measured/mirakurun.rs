//! A server with services, as Mirakurun has them: found, read at once, and named in the report.

use crate::support::{Run, measure, recomputed_as, refusal};
use crate::transport::{BIT_RATE, Framing, Response, Server, stream, without};
use serde_json::json;
use weir_runner::ErrorKind::{Scenario, TargetDied, Thresholds};
use weir_testing::free_port;

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

/// Readers for three seconds, with these keys, and what else is said.
fn read(url: &str, keys: &str, rest: &str) -> Run {
    measure(&format!("{rest}\ndrain: 500ms\nworkloads: [{{play: '{url}', duration: 3s, {keys}}}]"))
}

#[test]
fn services_are_found_read_at_once_and_named() {
    let server = server();
    let url = format!("mirakurun+{}", server.url(""));
    let run = read(&url, "services: 3", "");
    assert_eq!(
        (run.missed, run.slots("planned"), run.well()),
        (Some(Thresholds), 3, 3),
        "{:?}",
        run.failures()
    );
    assert_eq!((run.total("ts.lost_packets"), run.total("ts.gap_events")), (7.0, 2.0));
    let channels = run.workloads()[0]["channels"].as_array().unwrap();
    let drops = |channel: &serde_json::Value| channel["figures"][2]["total"].as_u64();
    assert_eq!(channels.iter().map(drops).collect::<Vec<_>>(), [Some(0), Some(2), Some(0)]);
    let said = recomputed_as("text", run.directory());
    for words in ["GR/27 One", "GR/26 Two", "BS/BS1_0 Three", "version 3.9.0-beta.5, by itself", "#DROPS"] {
        assert!(said.contains(words), "{words} is not in {said}");
    }
    let keys =
        "service: [Two], no_decode: true, priority: -1, pre_filters: [a], post_filters: ['b&'], clients: 2";
    let run = read(&url, keys, "");
    assert_eq!((run.missed, run.well(), run.total("ts.lost_packets")), (None, 2, 0.0));
}

#[test]
fn a_service_that_is_refused_fails_the_run_and_is_named() {
    let server = server();
    let url = format!("mirakurun+{}", server.url(""));
    // Two services, one reader each without being told how many; the server knows no filter 'x'.
    let run = read(&url, "channel_type: GR", "");
    assert_eq!((run.missed, run.slots("planned"), run.well()), (Some(Thresholds), 2, 2), "lost packets");
    let all = read(&url, "services: 3", "thresholds: ['ts.lost_packets < 9']");
    assert_eq!(all.missed, None, "fewer than nine were allowed");
    let run = read(&url, "services: 3, pre_filters: [x]", "");
    assert_eq!((run.missed, run.slots("failed")), (Some(Thresholds), 3));
    let channels = run.workloads()[0]["channels"].as_array().unwrap().clone();
    let failed = |channel: &serde_json::Value| (channel["readers"].as_u64(), channel["failed"].as_u64());
    assert_eq!(channels.iter().map(failed).collect::<Vec<_>>(), [(Some(0), Some(1)); 3]);
    let error =
        refusal(&format!("workloads: [{{play: '{}', services: 2, duration: 1s}}]", server.url("/x.ts")));
    assert_eq!(error.kind(), Scenario);
    let words = error.to_string();
    assert!(words.contains("`services` is an option of mirakurun+http:// and"), "{words}");
}

#[test]
fn what_cannot_be_found_is_one_line_and_no_run() {
    let server = server();
    let url = format!("mirakurun+http://me:secret@{}", server.address);
    let nobody = format!("mirakurun+http://127.0.0.1:{}", free_port());
    let page = format!("mirakurun+{}", server.url("/api/services/1/stream?decode=1"));
    for (url, keys, kind, words) in [
        (&nobody, "services: 1, ", TargetDied, "connection refused"),
        (&page, "services: 1, ", TargetDied, "the server answers 404 Not Found"),
        (&url, "services: 9, ", Scenario, "9 services are asked for and there are 3"),
        (&url, "service: [Four], ", Scenario, "no service or channel is 'Four'; it has GR/27 One (1)"),
        (&url, "", Scenario, "`services: 8`"),
    ] {
        let error = refusal(&format!("workloads: [{{play: '{url}', {keys}duration: 3s}}]"));
        let said = error.to_string();
        assert_eq!(error.kind(), kind, "{said}");
        assert!(said.contains(words) && said.trim().lines().count() == 1, "{said}");
        assert!(!said.contains("secret"), "{said}");
    }
}
