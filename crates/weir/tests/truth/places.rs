//! Where clients go: IPv6, several streams, several servers, several local addresses.

use crate::support::{Air, Publishing, air, config, measure, says, shared, soon};
use std::collections::BTreeMap;
use weir_origin::{Origin, OriginConfig, RTMP};

#[test]
fn a_server_on_ipv6_is_published_to_and_played() {
    let _machine = shared();
    let here = OriginConfig::default().listening(&RTMP, "[::1]:0".parse().unwrap());
    let origin = Origin::start(&OriginConfig { listen: here.listen, ..config(&[]) })
        .expect("there is no IPv6 on this machine's loopback");
    let url = format!("rtmp://{}/live/a", origin.address("rtmp").unwrap());
    assert!(url.starts_with("rtmp://[::1]:"), "{url}");
    let _publishing = Publishing::start(&url, &["--gop", "1s"]);
    soon("the stream is on air", || origin.counts().stream("live/a").is_some_and(|s| s.received.video > 0));
    let run = measure(["play", &url, "-c", "3", "-d", "2s", "--warmup", "0s", "--drain", "200ms"]);
    assert_eq!((run.code, run.well(), run.total("played")), (0, 3, 3.0));
    // The stream is not named: what stands there may be a key.
    assert_eq!(run.workloads()[0]["targets"][0], url.replace("/live/a", "/live/…1"));
    assert!(origin.counts().viewers.iter().all(|viewer| viewer.peer.is_ipv6()));
}

#[test]
fn six_viewers_of_three_streams_are_two_of_each() {
    let _machine = shared();
    let origin = Origin::start(&config(&[])).unwrap();
    let url = format!("rtmp://{}/live/s{{i}}", origin.address("rtmp").unwrap());
    let _publishing = Publishing::start(&url, &["--gop", "1s", "--streams", "3"]);
    soon("three streams are on air", || {
        origin.counts().streams.iter().filter(|stream| stream.live && stream.received.video > 0).count() == 3
    });
    let run = measure([
        "play",
        &url,
        "--streams",
        "3",
        "-c",
        "6",
        "-d",
        "2s",
        "--warmup",
        "0s",
        "--drain",
        "200ms",
    ]);
    assert_eq!((run.well(), run.total("played")), (6, 6.0));
    let mut viewers = BTreeMap::new();
    for viewer in origin.counts().viewers {
        *viewers.entry(viewer.stream.to_string()).or_insert(0) += 1;
    }
    let expected = ["live/s0", "live/s1", "live/s2"].map(|name| (name.to_owned(), 2));
    assert_eq!(viewers, BTreeMap::from(expected));
}

#[test]
fn viewers_take_servers_and_local_addresses_in_turn() {
    let _machine = shared();
    let (one, other) = (air(&config(&[])), air(&config(&[])));
    let run = measure([
        "play",
        &one.url,
        &other.url,
        "-c",
        "6",
        "-d",
        "2s",
        "--warmup",
        "0s",
        "--drain",
        "200ms",
        "--bind-addr",
        "127.0.0.2",
        "--bind-addr",
        "127.0.0.3",
        "--bind-addr",
        "127.0.0.4",
    ]);
    assert_eq!((run.well(), run.total("played")), (6, 6.0));
    let mut from = BTreeMap::new();
    for air in [&one, &other] {
        let counts = air.origin.counts();
        assert_eq!(counts.viewers.len(), 3);
        for viewer in counts.viewers {
            *from.entry(viewer.peer.ip().to_string()).or_insert(0) += 1;
        }
    }
    let expected = ["127.0.0.2", "127.0.0.3", "127.0.0.4"].map(|ip| (ip.to_owned(), 2));
    assert_eq!(from, BTreeMap::from(expected));
}

#[test]
fn each_of_several_servers_has_a_row_beside_the_sum() {
    let _machine = shared();
    let (well, mean) = (air(&config(&[])), air(&config(&["reject phase=play viewers=1..2"])));
    let arguments = ["-c", "8", "-d", "2s", "--warmup", "0s", "--drain", "200ms", "--shards", "2"];
    let run = measure(["play", &well.url, &mean.url].into_iter().chain(arguments));
    let server = |air: &Air| air.origin.address("rtmp").unwrap().to_string();
    let rows = run.workloads()[0]["servers"].as_array().unwrap().clone();
    let row = |row: &serde_json::Value| {
        let count = |key: &str| row[key].as_u64().unwrap();
        (row["server"].as_str().unwrap().to_owned(), count("planned"), count("played"), count("failed"))
    };
    let expected = vec![(server(&well), 4, 4, 0), (server(&mean), 4, 2, 2)];
    assert_eq!(rows.iter().map(row).collect::<Vec<_>>(), expected);
    let media = |row: &serde_json::Value| row["media_bytes"].as_f64().unwrap();
    assert_eq!(rows.iter().map(media).sum::<f64>(), run.total("media"));
    assert_eq!(rows[1]["startup"]["count"], 2);
    // The same is read back from the run directory, and shown.
    let again = says(["report", run.directory().to_str().unwrap(), "--json", "-"]);
    let again: serde_json::Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!(again["workloads"][0]["servers"], run.workloads()[0]["servers"]);
    let text = std::fs::read_to_string(run.directory().join("report.txt")).unwrap();
    assert!(text.contains(&server(&mean)) && text.contains(&server(&well)), "{text}");
    // Several streams of one server are one server.
    let other = well.url.replace("/live/a", "/live/b");
    let run =
        measure(["play", &well.url, &other, "-c", "2", "-d", "1s", "--timeout", "500ms", "--warmup", "0s"]);
    assert!(run.workloads()[0]["servers"].is_null());
}
