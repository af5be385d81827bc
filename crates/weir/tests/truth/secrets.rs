//! Passwords, tokens and keys stay where they are.

use crate::support::{KilledOnDrop, config, shared, soon, start_measuring, weir};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use weir_origin::{ANY_PORT, IceServer, Origin, OriginConfig, RTC};

/// Nothing else in a run looks like this.
const SECRET: &str = "s3cr3tw0rd";

#[test]
fn no_secret_of_a_url_or_of_the_target_is_in_any_artefact_or_output() {
    let _machine = shared();
    let origin = Origin::start(&config(&["close viewer=2 at=500ms"])).unwrap();
    let address = origin.address("rtmp").unwrap();
    let url = format!("rtmp://{address}/live/a?key={SECRET}&token={SECRET}");
    let with_user = format!("rtmp://{SECRET}user:{SECRET}@{address}/live/a?key={SECRET}&token={SECRET}");
    // A target whose command line holds secrets; its arguments are not for sh.
    let mut command = Command::new("sh");
    command.args(["-c", "sleep 60; :", "server", &format!("--password={SECRET}"), "--token", SECRET]);
    command.args([&url, &with_user]);
    let target = KilledOnDrop::start(&mut command);
    let watch = format!("pid={}", target.pid());

    let mut command = weir();
    command.args(["publish", &url, "-d", "60s", "--warmup", "0s", "--gop", "1s", "-v"]);
    let publishing = start_measuring(&mut command);
    soon("the stream is on air", || origin.counts().streams.iter().any(|stream| stream.received.video > 0));
    let mut command = weir();
    command.args(["play", &url, "-c", "3", "-d", "3s", "--warmup", "0s", "--drain", "200ms", "-v"]);
    command.args(["--watch", &watch]);
    let nobody = crate::support::free_port();
    let pushing = format!("http://{SECRET}user:{SECRET}@127.0.0.1:{nobody}/write?token={SECRET}");
    command.args(["--push-metrics", &pushing]);
    let watched = start_measuring(&mut command).finish();
    assert_eq!((watched.total("played"), watched.slots("failed")), (3.0, 1));
    publishing.process.interrupt();
    let published = publishing.finish();

    for run in [&watched, &published] {
        let parent = run.directory().parent().unwrap();
        let leaks = files(parent).filter(|path| {
            let bytes = std::fs::read(path).unwrap();
            String::from_utf8_lossy(&bytes).contains(SECRET)
        });
        let leaks: Vec<_> = leaks.collect();
        assert!(leaks.is_empty(), "a secret is in {leaks:?}");
    }
}

/// The name of a stream is the key of whoever publishes it.
#[test]
fn the_key_of_a_stream_is_a_number_in_all_that_is_said_and_written() {
    let _machine = shared();
    let origin =
        Origin::start(&config(&[&format!("reject phase=play viewer=3 words=no {SECRET}0 here")])).unwrap();
    let address = origin.address("rtmp").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("lab.yaml");
    let text = format!(
        "warmup: 0s\ndrain: 200ms\nworkloads:\n  - {{publish: 'rtmp://{address}/live/{SECRET}{{i}}', streams: 2, bitrate: 400kbps, gop: 1s}}\n  \
         - {{play: 'rtmp://{address}/live/{SECRET}{{i}}', streams: 2, clients: 3, delay: 500ms, duration: 3s}}\n"
    );
    std::fs::write(&file, text).unwrap();
    let mut command = weir();
    command.args(["run".as_ref(), file.as_os_str(), "-v".as_ref()]);
    let run = start_measuring(&mut command).finish();
    let targets = |number: usize| run.workloads()[number]["targets"].clone();
    let expected =
        serde_json::json!([format!("rtmp://{address}/live/…1"), format!("rtmp://{address}/live/…2")]);
    assert_eq!((targets(0), targets(1)), (expected.clone(), expected));
    // A publisher and its viewers are still found together: three times what it sent in the same seconds, a keyframe
    // more or less.
    let expected = run.workloads()[1]["stages"][0]["expected_bps"].as_f64().unwrap();
    assert!((0.9e6..1.6e6).contains(&expected), "{expected}");
    assert_eq!(run.workloads()[1]["slots"]["failed"], 1);
    let leaks: Vec<_> = files(run.directory().parent().unwrap())
        .filter(|path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).contains(SECRET))
        .collect();
    assert!(leaks.is_empty(), "a key is in {leaks:?}");
    for path in files(run.directory()).chain([run.directory().to_owned()]) {
        let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
    }
    let url = format!("rtmp://{address}/live/{SECRET}");
    let mut command = weir();
    command.args(["publish", &url, "-d", "1s", "--warmup", "0s", "--drain", "200ms", "--show-keys"]);
    let run = start_measuring(&mut command).finish();
    assert_eq!(run.workloads()[0]["targets"][0], url.as_str());
}

#[test]
fn no_secret_is_in_what_weir_says_about_a_url_that_is_wrong() {
    for url in [
        format!("gopher://u:{SECRET}@h/live/a?key={SECRET}"),
        format!("rtmp://u:{SECRET}@h:x/live/a?key={SECRET}"),
        format!("rtmp://u:{SECRET}@h/live/a?key={SECRET}"),
        format!("rtmp://no-such-host.invalid/live/a?key={SECRET}"),
        format!("rtmp://127.0.0.1/live?key={SECRET}"),
        format!("http://u:{SECRET}@no-such-host.invalid/a.ts?key={SECRET}"),
    ] {
        let said = crate::support::says(["play", &url]);
        assert_eq!(said.code, Some(2));
        assert!(!said.err.contains(SECRET), "{}", said.err);
    }
}

#[test]
fn the_secret_of_a_relay_is_in_no_output_of_who_is_told_it_or_tells_it() {
    let _machine = shared();
    let turn = IceServer {
        urls: vec![format!("turn:127.0.0.1:{}?transport=tcp", crate::support::free_port())],
        username: format!("{SECRET}user"),
        credential: SECRET.to_owned(),
    };
    let config = OriginConfig { turn: Some(turn), ..config(&[]) };
    let origin = Origin::start(&config.listening(&RTC, ANY_PORT)).unwrap();
    let url = format!("ws://{}/live/a?transport=tcp", origin.address("rtc").unwrap());
    let mut command = weir();
    command.args(["play", &url, "-c", "2", "-d", "1s", "--warmup", "0s", "--drain", "200ms", "-v"]);
    let run = start_measuring(&mut command).finish();
    assert_eq!(&*run.failure().0, "connection_refused");
    let leaks: Vec<_> = files(run.directory().parent().unwrap())
        .filter(|path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).contains(SECRET))
        .collect();
    assert!(leaks.is_empty(), "a secret is in {leaks:?}");
    for turn in [format!("turn:me:{SECRET}"), format!("stun:me:{SECRET}@host"), format!("turn:{SECRET}@host")]
    {
        let said = crate::support::says(["origin", "--rtc", "127.0.0.1:0", "--turn", &turn]);
        assert_eq!((said.code, said.err.contains("turn:USER:PASSWORD@HOST")), (Some(2), true));
        assert!(!said.err.contains(SECRET), "{}", said.err);
    }
}

/// Every file below a directory: the run's, and what weir said.
fn files(directory: &Path) -> impl Iterator<Item = std::path::PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(next) = left.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { left.push(path) } else { found.push(path) }
        }
    }
    assert!(found.len() >= 10, "{found:?}");
    found.into_iter()
}
