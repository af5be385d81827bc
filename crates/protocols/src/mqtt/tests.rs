//! Options as a person writes them, and what becomes of them.

use super::*;
use std::io::Write;
use weir_clients::mqtt::Will;

fn given(options: &[(&str, &str)]) -> Given {
    options.iter().fold(Given::default(), |given, (name, text)| given.with(name, *text))
}

#[test]
fn texts_become_options() {
    let given = given(&[
        ("mqtt_version", "3.1.1"),
        ("qos", "1"),
        ("rate", "10000/s"),
        ("count", "5000"),
        ("payload", "size:955"),
        ("will", "gone/x=bye=bye"),
    ]);
    let made = options(&given, &RunContext::default()).unwrap();
    assert_eq!((made.version, made.qos), (MqttVersion::V311, Qos::AtLeastOnce));
    let will = made.will.unwrap();
    assert_eq!((&*will.topic, &*will.payload, will.qos), ("gone/x", &b"bye=bye"[..], Qos::AtMostOnce));
    let output = output(&given, 0);
    assert_eq!(output.bit_rate.unwrap().bps(), 76.4e6);
    assert_eq!((output.count, output.about), (Some(5_000), Some(Duration::from_millis(500))));
    assert!(output.acknowledged);
}

#[test]
fn what_belongs_to_wills_subscriptions_and_arrivals_becomes_options() {
    let given = given(&[
        ("will", "gone={}"),
        ("will_qos", "2"),
        ("will_retain", "true"),
        ("will_delay", "5s"),
        ("arrivals", "poisson"),
        ("payload", "size:100-2000"),
        ("no_local", "true"),
        ("retain_as_published", "true"),
        ("retain_handling", "never"),
        ("header", "X-Token: a"),
    ]);
    let made = options(&given, &RunContext::default()).unwrap();
    let Will { qos, retain, delay, .. } = made.will.unwrap();
    assert_eq!((qos, retain, delay), (Qos::ExactlyOnce, true, Duration::from_secs(5)));
    assert!(!made.given.is_empty());
    let messages: Messages = given.read().unwrap();
    assert_eq!(
        (messages.arrivals, messages.filling().unwrap()),
        (Arrivals::Poisson, Filling::Sizes(100..=2_000))
    );
    let asked: Subscriptions = given.read().unwrap();
    let retain_handling = RetainHandling::Never;
    let settings = SubscriptionSettings { no_local: true, retain_as_published: true, retain_handling };
    assert_eq!(asked.settings(), settings);
}

#[test]
fn a_list_of_users_is_read_and_its_passwords_are_in_no_error() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let read = |file: &tempfile::NamedTempFile| {
        options(&given(&[("credentials", file.path().to_str().unwrap())]), &RunContext::default())
    };
    assert!(read(&file).unwrap_err().to_string().contains("no user is in it"));
    file.write_all(b"kim,s3cr3t\n\"lee, jr\",\"a\"\"b\"\nmax\n").unwrap();
    let credentials = read(&file).unwrap().credentials;
    let pairs: Vec<_> = credentials.iter().map(|it| (&*it.user, &*it.password)).collect();
    assert_eq!(pairs, [("kim", "s3cr3t"), ("lee, jr", "a\"b"), ("max", "")]);
    for line in [&b"kim,s3cr3t,more\n"[..], b",s3cr3t\n", b"kim,s3cr3t\xFF\n"] {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(line).unwrap();
        let said = read(&file).unwrap_err().to_string();
        assert!(said.contains("USER,PASSWORD") && !said.contains("s3cr3t"), "{said}");
    }
}

#[test]
fn the_password_of_a_file_is_that_of_the_user_of_a_flag_and_of_one_in_the_url() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"s3cr3t\n").unwrap();
    let path = file.path().to_str().unwrap();
    let of = |options: &[(&str, &str)]| super::options(&given(options), &RunContext::default()).unwrap();
    let made = of(&[("password_file", path)]);
    assert_eq!((made.credentials.len(), made.password.map(|it| it.0)), (0, Some("s3cr3t".to_owned())));
    let made = of(&[("password_file", path), ("user", "kim")]);
    assert_eq!((&*made.credentials[0].user, &*made.credentials[0].password), ("kim", "s3cr3t"));
}

#[test]
fn what_is_wrong_says_how_to_write_it() {
    for (options, words) in [
        (&[("mqtt_version", "4.0")][..], "write 5 or 3.1.1"),
        (&[("qos", "3")], "0..=2"),
        (&[("payload", "955")], "size:BYTES, size:LEAST-MOST, file:PATH, dir:PATH, template:PATH, avro:"),
        (&[("user_property", "x")], "NAME=VALUE"),
        (&[("topic_alias", "true"), ("mqtt_version", "3.1.1")], "speak version 5"),
        (&[("credentials", "/no/such/file")], "/no/such/file"),
        (&[("credentials", "/no/such/file"), ("user", "kim")], "leave user and password_file out"),
        (&[("payload", "size:x")], "size:955"),
        (&[("records", "2")], "leave records out"),
        (&[("payload", "json:a.avsc"), ("avro_encoding", "container")], "write avro:FILE.avsc"),
        (
            &[("payload", "avro:a.avsc"), ("avro_encoding", "x")],
            "write schemaless, single-object, confluent, apicurio or container",
        ),
        (&[("payload", "avro:a.avsc"), ("avro_encoding", "confluent")], "give it by `schema_id`"),
        (&[("payload", "avro:a.avsc"), ("schema_id", "7")], "name one, or leave it out"),
        (
            &[("payload", "avro:a"), ("avro_encoding", "confluent"), ("schema_id", "4294967296")],
            "write apicurio",
        ),
        (&[("will", "x")], "TOPIC=TEXT"),
        (&[("will_delay", "5s")], "give one by `will"),
        (&[("will", "a=b"), ("will_delay", "5s"), ("mqtt_version", "3.1.1")], "speak version 5"),
        (&[("arrivals", "often")], "write even, random or poisson"),
        (&[("payload", "size:9-1")], "size:100-2000"),
        (&[("header", "X: y")], "write mqtt+ws://"),
        (&[("rate", "fast")], "rate"),
    ] {
        let (given, run) = (given(options), RunContext::default());
        let making = Making {
            urls: &["mqtt://127.0.0.1/t".to_owned()],
            options: PublishOptions::default(),
            given: &given,
            run: &run,
        };
        let error = publish(making).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}
