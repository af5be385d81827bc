//! What cannot be run is refused in one line, before anything runs.

use crate::support::says;

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
        let said = says(["play", url, "-d", "1s"]);
        assert_eq!(said.code, Some(2), "{url}: {}", said.err);
        assert!(said.err.contains(words), "{url}: {}", said.err);
        assert_eq!((said.err.lines().count(), said.out.as_str()), (1, ""), "{url}: {}", said.err);
    }
}

#[test]
fn a_directory_that_holds_something_is_never_written_over() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("mine"), "precious").unwrap();
    let said =
        says(["play", "rtmp://127.0.0.1:9/live/a", "-d", "1s", "-o", directory.path().to_str().unwrap()]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(said.err.contains("is not empty"), "{}", said.err);
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_word_that_is_no_quantity_is_refused_where_it_stands() {
    for arguments in [
        ["-d", "soon"],
        ["-c", "0"],
        ["--arrival", "fast"],
        ["--stage", "500"],
        ["--watch", "nginx"],
        ["--tag", "lab"],
        ["--bind-addr", "home"],
        ["--expect", "much"],
    ] {
        let said = says(["play", "rtmp://127.0.0.1:9/live/a"].iter().chain(&arguments));
        assert_eq!(said.code, Some(2), "{arguments:?}: {}", said.err);
        assert!(said.err.contains(arguments[0].trim_start_matches('-')), "{arguments:?}: {}", said.err);
    }
}

#[test]
fn what_would_be_of_no_use_is_refused_with_what_to_do() {
    let (rtmp, template) = ("rtmp://127.0.0.1:9/live/a", "rtmp://127.0.0.1:9/live/{i}");
    for (arguments, words) in [
        (&["play", rtmp, "--streams", "3"][..], "no {i} in a URL"),
        (&["play", template, "-c", "3"], "say how many with --streams N"),
        (&["publish", "rtmp://127.0.0.1:9/live/{x}"], "{x} stands for nothing; known here: {i} ("),
        (&["play", rtmp, "--bind-addr", "::1"], "of the target's family"),
        (&["play", "rtmp://[::1]:9/live/a", "--bind-addr", "127.0.0.1"], "of the target's family"),
        (&["play", rtmp, "--bind-addr", "192.0.2.1"], "give an address of this machine"),
        (&["play", rtmp, "--timeout", "0s"], "a timeout of 0s"),
        (&["play", rtmp, "--stage", "5@0s"], "5 clients held for 0s"),
        (&["play", rtmp, "--json", "-", "--format", "html"], "both write to stdout"),
        (&["report", "/tmp", "--json", "-", "--format", "csv"], "both write to stdout"),
        (&["publish", rtmp, "--fps", "1000"], "ask for 722 kbit/s"),
        (&["play", rtmp, "-c", "100000000"], "100000000 clients need 382 GiB of memory"),
        (&["publish", template, "--streams", "4000000000"], "4000000000 streams need"),
        (&["play", "rtpm://127.0.0.1:9/live/a"], "did you mean rtmp://?"),
        (
            &["play", rtmp, "--token-file", "/nonexistent"],
            "--token-file (`token_file`) is an option of whep+http:// and whep+https://",
        ),
        (
            &["play", rtmp, "--password-file", "/nonexistent"],
            "means nothing to rtmp:// and rtmps://; leave it out; `play` has witness_every, decode, buffer",
        ),
        (&["play", rtmp, "--qos", "1"], "--qos (`qos`) is an option of mqtt://"),
        (&["publish", rtmp, "--user", "me"], "--user (`user`) is an option of mqtt:// and mqtts://"),
        (
            &["publish", rtmp, "--payload", "file:/nonexistent"],
            "--payload (`payload`) is an option of mqtt://",
        ),
        (
            &["publish", "mqtt://127.0.0.1:9/t", "--file", "/nonexistent.flv"],
            "--file (`file`) is an option of rtmp://",
        ),
        (&["play", rtmp, "--cacert", "/nonexistent.pem"], "--cacert (`cacert`) is of TLS"),
    ] {
        let said = says(arguments);
        assert_eq!(said.code, Some(2), "{arguments:?}: {}", said.err);
        assert!(said.err.contains(words), "{arguments:?}: {}", said.err);
        assert_eq!((said.err.lines().count(), said.out.as_str()), (1, ""), "{arguments:?}: {}", said.err);
    }
    // The parser of arguments takes more lines.
    let said = says(["publish", rtmp, "--gop", "0s"]);
    assert!(said.code == Some(2) && said.err.contains("a gop of 0s has no keyframe"), "{}", said.err);
    let said = says(["play", rtmp, "--insecure", "--cacert", "/no/such.pem"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(said.err.contains("'--insecure' cannot be used with '--cacert <FILE>'"), "{}", said.err);
}

#[test]
fn a_certificate_and_a_key_that_cannot_be_read_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(at("chain.pem"), made.cert.pem()).unwrap();
    std::fs::write(at("empty.pem"), "").unwrap();
    for (cert, key, words) in [
        ("none.pem", "none.key", "none.pem: "),
        ("empty.pem", "none.key", "give a PEM file with certificates"),
        ("chain.pem", "none.key", "none.key: "),
        ("chain.pem", "empty.pem", "give a PEM file with the certificate's private key"),
    ] {
        let said = says(["origin", "--rtmp", ":0", "--cert", &at(cert), "--key", &at(key)]);
        assert_eq!(said.code, Some(2), "{}", said.err);
        assert!(said.err.contains(words), "{cert} {key}: {}", said.err);
    }
}

#[test]
fn a_file_that_cannot_be_published_is_named() {
    let said = says(["publish", "rtmp://127.0.0.1:9/live/a", "--file", "/no/such/clip.flv"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(said.err.contains("/no/such/clip.flv"), "{}", said.err);
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
}

#[test]
fn a_directory_that_is_no_run_cannot_be_reported() {
    let directory = tempfile::tempdir().unwrap();
    let said = says(["report", directory.path().to_str().unwrap()]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(said.err.contains("is not a run directory: there is no run.json in it"), "{}", said.err);
}
