//! RTMP over TLS: whom weir trusts.

use crate::support::{NodeExporter, Publishing, air, config, measure, says, shared, soon};
use std::path::PathBuf;
use tempfile::TempDir;
use weir_origin::{ANY_PORT, Identity, Origin, OriginConfig, RTMP};

struct Certificate {
    _directory: TempDir,
    chain: PathBuf,
    key: PathBuf,
}

fn certificate(names: &[&str]) -> Certificate {
    let directory = tempfile::tempdir().unwrap();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let (chain, key) = (directory.path().join("chain.pem"), directory.path().join("key.pem"));
    std::fs::write(&chain, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    Certificate { _directory: directory, chain, key }
}

fn secure_origin(certificate: &Certificate) -> (Origin, String) {
    let identity = Identity { chain: certificate.chain.clone(), key: certificate.key.clone() };
    let config = OriginConfig { listen: Vec::new(), ..config(&[]) };
    let origin = Origin::start(&config.listening_secure(&RTMP, ANY_PORT, identity)).unwrap();
    let url = format!("rtmps://{}/live/a", origin.address("rtmps").unwrap());
    (origin, url)
}

#[test]
fn a_certificate_is_trusted_by_its_file_or_by_request_and_not_else() {
    let _machine = shared();
    let certificate = certificate(&["127.0.0.1", "localhost"]);
    let (origin, url) = secure_origin(&certificate);
    let cacert = certificate.chain.to_str().unwrap();
    let _publishing = Publishing::start(&url, &["--gop", "1s", "--cacert", cacert]);
    soon("the stream is on air", || origin.counts().stream("live/a").is_some_and(|s| s.received.video > 0));

    let load = ["play", &url, "-c", "3", "-d", "2s", "--warmup", "0s", "--drain", "200ms"];
    for trust in [&["--cacert", cacert][..], &["--insecure"]] {
        let run = measure(load.iter().chain(trust));
        assert_eq!((run.code, run.well(), run.total("played")), (0, 3, 3.0), "{:?}", run.failures());
        assert!(run.total("frames") > 0.0);
        assert_eq!(run.total("lost"), 0.0);
    }
    let run = measure(load);
    let (kind, clients, side, words) = run.failure();
    assert_eq!((kind.as_str(), clients, side.as_str()), ("tls_failed", 3, "protocol"));
    assert!(words.to_lowercase().contains("certificate"), "{words}");
    assert_eq!(run.code, 99);
}

#[test]
fn a_certificate_of_another_name_is_not_taken() {
    let _machine = shared();
    let certificate = certificate(&["elsewhere.example"]);
    let (_origin, url) = secure_origin(&certificate);
    let cacert = certificate.chain.to_str().unwrap();
    let load =
        ["play", &url, "-c", "2", "-d", "1s", "--warmup", "0s", "--drain", "200ms", "--cacert", cacert];
    assert_eq!(measure(load).failure().0, "tls_failed");
}

#[test]
fn a_plain_client_of_a_tls_port_and_the_reverse_fail_by_name() {
    let _machine = shared();
    let certificate = certificate(&["127.0.0.1"]);
    let (_secure, url) = secure_origin(&certificate);
    let plain = Origin::start(&config(&[])).unwrap();
    let load = ["-c", "2", "-d", "3s", "--timeout", "1s", "--warmup", "0s", "--drain", "200ms", "--insecure"];
    let run = measure(["play", &url.replace("rtmps", "rtmp")].iter().copied().chain(load));
    assert_eq!(run.slots("failed"), 2, "{:?}", run.failures());
    let url = format!("rtmps://{}/live/a", plain.address("rtmp").unwrap());
    let run = measure(["play", &url].iter().copied().chain(load));
    assert_eq!(run.slots("failed"), 2, "{:?}", run.failures());
    assert!(
        run.failures()
            .keys()
            .all(|kind| kind == "tls_failed" || kind == "connect_timeout" || kind == "closed_by_peer"),
        "{:?}",
        run.failures()
    );
}

#[test]
fn insecure_is_about_the_server_that_is_measured_and_not_about_those_that_are_asked() {
    let _machine = shared();
    let certificate = certificate(&["127.0.0.1"]);
    let settings = certificate.chain.with_file_name("web.yml");
    let (chain, key) = (certificate.chain.display(), certificate.key.display());
    std::fs::write(&settings, format!("tls_server_config: {{cert_file: {chain}, key_file: {key}}}\n"))
        .unwrap();
    let exporter = NodeExporter::secure(&settings);
    let air = air(&config(&[]));
    let url = exporter.secure_url();
    let load = ["play", &air.url, "-d", "2s", "--warmup", "0s", "--drain", "200ms", "--node-exporter", &url];

    let said = says(load.iter().chain(&["--insecure"]));
    // Before anything is measured.
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{}", said.err);
    assert!(said.err.contains("certificate"), "{}", said.err);

    let run = measure(load.iter().chain(&["--cacert", certificate.chain.to_str().unwrap()]));
    assert_eq!((run.code, run.total("played")), (0, 1.0), "{}", run.err);
    let mut series = run.summary["series"].as_array().unwrap().iter();
    assert!(series.any(|second| second["machines"][1]["load1"].is_number()), "{}", run.summary["series"]);
}
