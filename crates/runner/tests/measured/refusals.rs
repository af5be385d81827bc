//! What cannot be run is refused in one line, before anything runs.

use crate::support::refusal;
use std::path::Path;
use weir_runner::ErrorKind::{Scenario, Usage};
use weir_runner::{Run, recompute, run_directory};

/// The one line that says why a workload is refused, and further keys of its scenario.
fn refused(workload: &str, rest: &str) -> String {
    let error = refusal(&format!("{rest}\nworkloads: [{{{workload}}}]"));
    assert_eq!(error.kind(), Scenario, "{workload}: {error}");
    assert_eq!(error.to_string().lines().count(), 1, "{workload}: {error}");
    error.to_string()
}

#[test]
fn a_url_that_leads_nowhere_is_one_line_that_says_why() {
    for (url, words) in [
        ("live/a", "no scheme"),
        ("gopher://host/live/a", "cannot play gopher://; known: rtmp://, rtmps://"),
        ("rtmp:///live/a", "no host"),
        ("rtmp://127.0.0.1", "rtmp://host/app/stream"),
        ("rtmp://me:word@127.0.0.1:9/live", "rtmp://host/app/stream"),
        ("rtmp://127.0.0.1:0/live/a", "'0' is not a port"),
        ("rtmp://127.0.0.1:99999/live/a", "'99999' is not a port"),
        ("rtmp://no-such-host.invalid/live/a", "no-such-host.invalid has no address"),
    ] {
        let line = refused(&format!("play: '{url}', duration: 1s"), "");
        assert!(line.contains(words), "{url}: {line}");
    }
}

#[test]
fn what_would_be_of_no_use_is_refused_with_what_to_do() {
    let (rtmp, template) = ("'rtmp://127.0.0.1:9/live/a'", "'rtmp://127.0.0.1:9/live/{i}'");
    for (workload, rest, words) in [
        (format!("play: {rtmp}, streams: 3"), "", "no {i} in a URL"),
        (format!("play: {template}, clients: 3"), "", "say how many with `streams: N`"),
        (
            "publish: 'rtmp://127.0.0.1:9/live/{x}'".to_owned(),
            "",
            "{x} stands for nothing; known here: {i} (",
        ),
        (format!("play: {rtmp}"), "bind_addr: ['::1']", "of the target's family"),
        ("play: 'rtmp://[::1]:9/live/a'".to_owned(), "bind_addr: [127.0.0.1]", "of the target's family"),
        (format!("play: {rtmp}"), "bind_addr: [192.0.2.1]", "give an address of this machine"),
        (format!("play: {rtmp}, timeout: 0s"), "", "a timeout of 0s"),
        (format!("publish: {rtmp}, fps: 1000"), "", "ask for 722 kbit/s"),
        (format!("play: {rtmp}, clients: 100000000"), "", "100000000 clients need 382 GiB of memory"),
        (format!("publish: {template}, streams: 4000000000"), "", "4000000000 streams need"),
        ("play: 'rtpm://127.0.0.1:9/live/a'".to_owned(), "", "did you mean rtmp://?"),
        (
            format!("play: {rtmp}, token_file: /nonexistent"),
            "",
            "`token_file` is an option of whep+http:// and whep+https://",
        ),
        (
            format!("play: {rtmp}, password_file: /nonexistent"),
            "",
            "means nothing to rtmp:// and rtmps://; leave it out; `play` has witness_every, decode, buffer",
        ),
        (format!("play: {rtmp}, qos: 1"), "", "`qos` is an option of mqtt://"),
        (format!("publish: {rtmp}, user: me"), "", "`user` is an option of mqtt:// and mqtts://"),
        (format!("publish: {rtmp}, payload: 'file:/nonexistent'"), "", "`payload` is an option of mqtt://"),
        (
            "publish: 'mqtt://127.0.0.1:9/t', file: /nonexistent.flv".to_owned(),
            "",
            "`file` is an option of rtmp://",
        ),
        (format!("play: {rtmp}"), "cacert: /nonexistent.pem", "`cacert` is of TLS"),
    ] {
        let line = refused(&format!("{workload}, duration: 1s"), rest);
        assert!(line.contains(words), "{workload}: {line}");
    }
    let line = refused(&format!("play: {rtmp}, stages: [{{clients: 5, hold: 0s}}]"), "");
    assert!(line.contains("5 clients held for 0s"), "{line}");
}

#[test]
fn a_file_that_cannot_be_published_is_named() {
    let line = refused("publish: 'rtmp://127.0.0.1:9/live/a', duration: 1s, file: /no/such/clip.flv", "");
    assert!(line.contains("/no/such/clip.flv"), "{line}");
}

#[test]
fn a_directory_that_holds_something_is_never_written_over() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("mine"), "precious").unwrap();
    let run = Run::play("rtmp://127.0.0.1:9/live/a").directory(directory.path());
    let taken = run_directory::directory(Some(directory.path()), "play", 0).unwrap_err();
    for error in [run.run().unwrap_err(), taken] {
        assert_eq!(error.kind(), Usage, "{error}");
        assert!(error.to_string().contains("is not empty"), "{error}");
    }
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_directory_that_is_no_run_cannot_be_summed_up() {
    let directory = tempfile::tempdir().unwrap();
    for path in [directory.path(), Path::new("/no/such/run")] {
        let Err(error) = recompute::of_run(path) else { panic!("{}", path.display()) };
        assert_eq!(error.kind(), Usage, "{error}");
        let words = error.to_string();
        assert!(words.contains("is not a run directory: there is no run.json in it"), "{words}");
    }
}
