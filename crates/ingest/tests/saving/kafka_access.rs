//! Ways into Kafka, and what keeps one out: one line with what helps.

use crate::PATIENT;
use crate::bench::kafka;
use std::time::Instant;
use weir_http::HttpTrust;
use weir_ingest::{Decode, Destination, Durability, Loader, StoreError};
use weir_testing::{KAFKA, KAFKA_3, Kafka, Listener, SESSION, soon};

const PLAIN: Listener = Listener::Login(&["PLAIN"]);
const SCRAM_256: Listener = Listener::Login(&["SCRAM-SHA-256"]);
const SCRAM_512: Listener = Listener::Login(&["SCRAM-SHA-512"]);

/// A topic, by a listener of a broker; `access` has scheme, user and password.
fn place(server: &Kafka, listener: Listener, access: &str, trust: HttpTrust) -> Destination {
    let mut destination = format!("{access}{}/ways", server.address_of(listener)).parse().unwrap();
    if let Destination::Kafka(cluster) = &mut destination {
        cluster.set_trust(trust);
    }
    destination
}

fn loader(destination: &Destination) -> Loader {
    Loader::new(destination, "unused", &Decode::raw(), Durability::Full)
}

fn save(loader: &mut Loader, number: u64) {
    let filled = loader.fill(&mut Decode::raw(), &[b"payload".to_vec()], 7, number);
    assert_eq!(filled.unwrap().rows, 1, "{loader:?}");
}

fn ways_lead_in(server: &Kafka) {
    let trust = || HttpTrust::File(server.certificate());
    let mut short = loader(&place(server, Listener::ShortLogin, "kafka://me:s3cr3t@", trust()));
    short.open(&PATIENT).unwrap();
    save(&mut short, 0);
    let saved = Instant::now();
    let ways = [
        (Listener::Tls, "kafkas://"),
        (PLAIN, "kafka://me:s3cr3t@"),
        (SCRAM_256, "kafka://me:s3cr3t@"),
        (SCRAM_512, "kafka://me:s3cr3t@"),
        (Listener::TlsLogin, "kafkas://me:s3cr3t@"),
        // This user has a password for one of the mechanisms that are offered.
        (Listener::TlsLogin, "kafkas://old:0ld@"),
    ];
    for ((listener, access), number) in ways.iter().zip(1..) {
        let mut loader = loader(&place(server, *listener, access, trust()));
        loader.open(&PATIENT).unwrap();
        save(&mut loader, number);
    }
    // The broker closes a connection whose login has ended, unless the next thing there is another login.
    soon("the login has ended", || saved.elapsed() > SESSION);
    save(&mut short, 7);
    assert_eq!(short.contents(&PATIENT).unwrap().rows, 8);
}

fn what_keeps_one_out_is_one_line(server: &Kafka) {
    let given = || HttpTrust::File(server.certificate());
    let locked = [
        (SCRAM_512, "kafka://me:wr0ng@", "does not take user and password (SCRAM-SHA-512: "),
        (PLAIN, "kafka://nobody:wr0ng@", "does not take user and password (PLAIN: "),
        (SCRAM_512, "kafka://old:0ld@", "KAFKA_PASSWORD"),
        (
            SCRAM_256,
            "kafka://me@",
            "a user without a password; give the password in the environment as KAFKA_PASSWORD",
        ),
    ];
    for (listener, access, words) in locked {
        let refused = loader(&place(server, listener, access, given())).open(&PATIENT).unwrap_err();
        assert!(matches!(&refused, StoreError::AccessDenied(line) if is_line(line, words)), "{refused:?}");
    }
    let elsewhere = [
        (Listener::Open, "kafka://me:s3cr3t@", "takes no login; leave the user out"),
        (SCRAM_256, "kafka://", "if it wants a login, name the user"),
        (Listener::Tls, "kafka://", "kafkas://"),
        (Listener::Open, "kafkas://", "write kafka:// for a listener without TLS"),
        (PLAIN, "kafka://guest:gu3st@", "kafka-acls.sh --add --allow-principal User:guest"),
    ];
    let refusals = elsewhere.map(|(listener, access, words)| (listener, access, words, given()));
    let stranger =
        (Listener::Tls, "kafkas://", "name who signed its certificate (`cacert", HttpTrust::System);
    for (listener, access, words, trust) in refusals.into_iter().chain([stranger]) {
        let refused = loader(&place(server, listener, access, trust)).open(&PATIENT).unwrap_err();
        let (StoreError::Unfit(line) | StoreError::Unavailable(line)) = &refused else {
            panic!("{refused:?}")
        };
        assert!(is_line(line, words), "{refused:?}");
    }
}

/// Whether these words are in a line, and no password is.
fn is_line(line: &str, words: &str) -> bool {
    line.contains(words)
        && !line.contains('\n')
        && ["s3cr3t", "wr0ng", "gu3st", "0ld"].iter().all(|password| !line.contains(password))
}

#[test]
fn the_last_kafka_before_4_is_got_into_and_says_what_is_wrong() {
    let server = kafka(KAFKA_3);
    ways_lead_in(&server);
    what_keeps_one_out_is_one_line(&server);
}

#[test]
fn kafka_4_is_got_into_and_says_what_is_wrong() {
    let server = kafka(KAFKA);
    ways_lead_in(&server);
    what_keeps_one_out_is_one_line(&server);
}
