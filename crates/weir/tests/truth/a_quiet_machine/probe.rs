//! How long another consumer takes is what its table says.

use crate::probe::{LOSSLESS, consumer, wait_for_table};
use crate::support::experiment::{ASKED, Asked, Experiment};
use crate::support::{Mosquitto, Postgresql, quiet, undisturbed};

#[test]
fn a_table_that_another_consumer_fills_is_asked_until_all_is_there() {
    let _machine = quiet();
    undisturbed(|| {
        let (broker, server) = (Mosquitto::with(LOSSLESS), Postgresql::start());
        let file = server.password_file();
        let other = consumer(
            &broker.url("e/avro/+"),
            &server.place(),
            &["--save-password-file", file.to_str().unwrap()],
        );
        wait_for_table(&server);
        let probe = format!("sql:{}#other", server.place());
        let into = format!("save_password_file: {}", file.display());
        let asked = Asked {
            probe: Some(&probe),
            into: &into,
            rate: "300/s",
            settle: "500ms",
            rest: "repeat: 2",
            ..ASKED
        };
        let ran = Experiment::of(&broker.address(), &asked).run();
        let theirs = other.stop();
        let told = format!("{}{}{:#}\n{:#?}", ran.said.err, theirs.err, theirs.summary, ran.ingested);
        assert_eq!(ran.said.code, Some(0), "{told}");
        assert_eq!(
            (ran.total("published"), ran.total("counted"), ran.total("lost")),
            (600, 600, 0),
            "{told}"
        );
        for repetition in &ran.ingested {
            assert_eq!((&repetition["classic"][0], &repetition["classic"][1]), (&0.into(), &300.into()));
            let stretch = |edge| repetition["commit"][edge].as_f64().unwrap();
            assert!(stretch("last_seconds") - stretch("first_seconds") > 0.8, "{repetition:#}");
            assert!(repetition["decode_seconds"].is_null());
        }
        assert_eq!(theirs.total("saved"), 600, "{told}");
    });
}
