//! Whom weir trusts beside the server that is measured.

use crate::support::{NodeExporter, air, config, measure, says, shared};
use std::path::PathBuf;
use tempfile::TempDir;

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
