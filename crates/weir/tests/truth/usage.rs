//! What cannot be run is refused in one line, before anything runs.

use crate::support::says;

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
    let rtmp = "rtmp://127.0.0.1:9/live/a";
    for (arguments, words) in [
        (&["play", rtmp, "--streams", "3"][..], "no {i} in a URL"),
        (&["play", rtmp, "--bind-addr", "192.0.2.1"], "give an address of this machine"),
        (&["play", rtmp, "--stage", "5@0s"], "5 clients held for 0s"),
        (&["play", rtmp, "--json", "-", "--format", "html"], "both write to stdout"),
        (&["report", "/tmp", "--json", "-", "--format", "csv"], "both write to stdout"),
        (
            &["publish", rtmp, "--payload", "file:/nonexistent"],
            "--payload (`payload`) is an option of mqtt://",
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
