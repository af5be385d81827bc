//! RTMP and RTSP over TLS: whom weir trusts.

use crate::support::{Publishing, config, measure};
use std::path::PathBuf;
use tempfile::TempDir;
use weir_origin::{ANY_PORT, Identity, Origin, OriginConfig, RTMP, RTSP, Server};
use weir_runner::ErrorKind::Thresholds;
use weir_testing::soon;

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
    secure_origin_of(&RTMP, certificate)
}

/// An origin that listens for this by TLS alone, and its streams' URL.
fn secure_origin_of(server: &'static Server, certificate: &Certificate) -> (Origin, String) {
    let scheme = server.secure_name.unwrap();
    let identity = Identity { chain: certificate.chain.clone(), key: certificate.key.clone() };
    let config = OriginConfig { listen: Vec::new(), ..config(&[]) };
    let origin = Origin::start(&config.listening_secure(server, ANY_PORT, identity)).unwrap();
    let url = format!("{scheme}://{}/live/a", origin.address(scheme).unwrap());
    (origin, url)
}

#[test]
fn a_certificate_is_trusted_by_its_file_or_by_request_and_not_else() {
    for server in [&RTMP, &RTSP] {
        trusted_by_its_file_or_by_request(server);
    }
}

fn trusted_by_its_file_or_by_request(server: &'static Server) {
    let certificate = certificate(&["127.0.0.1", "localhost"]);
    let (origin, url) = secure_origin_of(server, &certificate);
    let cacert = certificate.chain.to_str().unwrap();
    let _publishing = Publishing::of(&format!(
        "cacert: '{cacert}'\nworkloads: [{{publish: '{url}', duration: 300s, gop: 1s}}]"
    ));
    soon("the stream is on air", || origin.counts().stream("live/a").is_some_and(|s| s.received.video > 0));

    let play =
        |trust: &str| measure(&format!("{trust}\nworkloads: [{{play: '{url}', clients: 3, duration: 2s}}]"));
    for trust in [&*format!("cacert: '{cacert}'"), "insecure: true"] {
        let run = play(trust);
        assert_eq!((run.missed, run.well(), run.total("played")), (None, 3, 3.0), "{:?}", run.failures());
        assert!(run.total("frames") > 0.0);
        assert_eq!(run.total("lost"), 0.0);
    }
    let run = play("");
    let (kind, clients, side, words) = run.failure();
    assert_eq!((kind.as_str(), clients, side.as_str()), ("tls_failed", 3, "protocol"));
    assert!(words.to_lowercase().contains("certificate"), "{words}");
    assert_eq!(run.missed, Some(Thresholds));
}

#[test]
fn a_certificate_of_another_name_is_not_taken() {
    let certificate = certificate(&["elsewhere.example"]);
    let (_origin, url) = secure_origin(&certificate);
    let cacert = certificate.chain.to_str().unwrap();
    let run =
        measure(&format!("cacert: '{cacert}'\nworkloads: [{{play: '{url}', clients: 2, duration: 1s}}]"));
    assert_eq!(run.failure().0, "tls_failed");
}

#[test]
fn a_plain_client_of_a_tls_port_and_the_reverse_fail_by_name() {
    let certificate = certificate(&["127.0.0.1"]);
    let (_secure, url) = secure_origin(&certificate);
    let plain = Origin::start(&config(&[])).unwrap();
    let play = |url: &str| {
        measure(&format!(
            "insecure: true\nworkloads: [{{play: '{url}', clients: 2, duration: 3s, timeout: 1s}}]"
        ))
    };
    let run = play(&url.replace("rtmps", "rtmp"));
    assert_eq!(run.slots("failed"), 2, "{:?}", run.failures());
    let url = format!("rtmps://{}/live/a", plain.address("rtmp").unwrap());
    let run = play(&url);
    assert_eq!(run.slots("failed"), 2, "{:?}", run.failures());
    assert!(
        run.failures()
            .keys()
            .all(|kind| kind == "tls_failed" || kind == "connect_timeout" || kind == "closed_by_peer"),
        "{:?}",
        run.failures()
    );
}
