//! PostgreSQL over TLS: whom weir trusts, as libpq's `sslmode` has it.

use crate::support::{Postgresql, Said, says};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/schemas/SimpleClass.avsc");

#[test]
fn a_server_that_wants_tls_gets_it_and_is_known_as_well_as_asked_for() {
    let server = Postgresql::start();
    let mut client = server.client();
    let directory = tempfile::tempdir().unwrap();
    let [root, other, none] =
        ["my root.pem", "other.pem", "none.pem"].map(|name| directory.path().join(name));
    std::fs::write(&root, server.only_by_tls(&mut client, &["127.0.0.1"])).unwrap();
    std::fs::write(&other, rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap().cert.pem())
        .unwrap();
    let [root, other, none] = [root, other, none].map(|path| path.to_str().unwrap().replace(' ', "%20"));
    let password = server.password_file();
    let save = |place: &str, parameters: &str| -> Said {
        let place = format!("{place}?{parameters}");
        says(
            ["codec", SCHEMA, "--records", "20", "--repetitions", "2", "--save", &place]
                .into_iter()
                .chain(["--save-password-file", password.to_str().unwrap()]),
        )
    };
    let place = server.place();
    let by_name = place.replace("127.0.0.1", "localhost");
    // The server takes nobody without TLS: a row that is there came by it.
    for (place, parameters) in [
        (&place, "application_name=prefers".to_owned()),
        (&place, "sslmode=require&channel_binding=require".to_owned()),
        (&by_name, format!("sslmode=verify-ca&sslrootcert={root}")),
        (&place, format!("sslmode=verify-full&sslrootcert={root}&channel_binding=require")),
    ] {
        client.batch_execute("DROP TABLE IF EXISTS weir_codec_avro, weir_codec_json").unwrap();
        let said = save(place, &parameters);
        assert_eq!(said.code, Some(0), "{parameters}: {}", said.err);
        let rows = client.query_one("SELECT count(*) FROM weir_codec_avro", &[]).unwrap();
        assert_eq!(rows.get::<_, i64>(0), 20, "{parameters}");
    }
    let distrust = "invalid peer certificate";
    for (place, parameters, code, words) in [
        (&place, "sslmode=disable".to_owned(), 1, "if it wants TLS, write sslmode=require"),
        (&place, "sslmode=verify-full".to_owned(), 1, distrust),
        (&place, format!("sslmode=verify-full&sslrootcert={other}"), 1, distrust),
        (&place, format!("sslmode=verify-ca&sslrootcert={other}"), 1, distrust),
        (&place, format!("sslmode=require&sslrootcert={other}"), 1, distrust),
        (&by_name, format!("sslmode=verify-full&sslrootcert={root}"), 1, "not valid for name \"localhost\""),
        (&place, format!("sslmode=verify-full&sslrootcert={none}"), 2, "--save: sslrootcert: "),
        (&place, "sslmode=always".to_owned(), 2, "--save: there is no such sslmode; write disable, prefer"),
    ] {
        let said = save(&place.replace("weir@", "weir:s3cr3t@"), &parameters);
        assert_eq!((said.code, said.err.lines().count()), (Some(code), 1), "{parameters}: {}", said.err);
        assert!(said.err.contains(words) && !said.err.contains("s3cr3t"), "{parameters}: {}", said.err);
    }
}

#[test]
fn a_server_that_wants_a_certificate_is_shown_one() {
    let server = Postgresql::start();
    let mut client = server.client();
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let authority_pem = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = Issuer::new(authority, authority_key);
    let signed = |user: &str| {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, user);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap().pem();
        let [certificate, key] = [("pem", certificate), ("key", key.serialize_pem())]
            .map(|(end, text)| file(&format!("{user}.{end}"), &text));
        format!("sslcert={certificate}&sslkey={key}")
    };
    let root = file("server.pem", &server.only_with_certificate(&mut client, &authority_pem));
    let (password, place) = (server.password_file(), server.place());
    let save = |parameters: &str| -> Said {
        let place = format!("{place}?sslmode=verify-full&sslrootcert={root}&{parameters}");
        says(
            ["codec", SCHEMA, "--records", "20", "--repetitions", "2", "--save", &place]
                .into_iter()
                .chain(["--save-password-file", password.to_str().unwrap()]),
        )
    };
    // The support's database has the user "weir".
    let said = save(&signed("weir"));
    assert_eq!(said.code, Some(0), "{}", said.err);
    let rows = client.query_one("SELECT count(*) FROM weir_codec_avro", &[]).unwrap();
    assert_eq!(rows.get::<_, i64>(0), 20);
    for (parameters, code, words) in [
        // Where passwords are asked for as well, PostgreSQL calls the certificate of another user that.
        (signed("other"), 2, "password authentication failed"),
        ("application_name=nobody".to_owned(), 1, "name yours with sslcert=FILE and sslkey=FILE"),
        ("sslcert=weir.pem".to_owned(), 2, "sslcert and sslkey belong together"),
        ("sslcert=/none.pem&sslkey=/none.key".to_owned(), 2, "/none.pem"),
    ] {
        let said = save(&parameters);
        assert_eq!((said.code, said.err.lines().count()), (Some(code), 1), "{parameters}: {}", said.err);
        assert!(said.err.contains(words), "{parameters}: {}", said.err);
    }
}
