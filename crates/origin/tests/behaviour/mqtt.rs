//! mosquitto's own clients talk to the broker, in both versions; and what they are not served is said in good order.

use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use weir_origin::{ANY_PORT, MQTT, Origin, OriginConfig};

fn broker(faults: &[&str]) -> Origin {
    let faults = faults.iter().map(|line| line.parse().unwrap()).collect();
    let config = OriginConfig { faults, ..OriginConfig::default() };
    Origin::start(&config.listening(&MQTT, ANY_PORT)).unwrap()
}

/// Starts one of mosquitto's clients.
fn client(origin: &Origin, program: &str, arguments: &[&str]) -> Child {
    let port = origin.address("mqtt").unwrap().port().to_string();
    Command::new(program)
        .args(["-h", "127.0.0.1", "-p", &port])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|_| panic!("{program} is missing; apt-get install mosquitto-clients"))
}

fn lines(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}: not within a minute");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn mosquittos_clients_publish_and_subscribe() {
    for version in ["mqttv311", "mqttv5"] {
        for qos in ["0", "1", "2"] {
            let origin = broker(&[]);
            let common = ["-V", version, "-q", qos];
            let patterns = ["a/+/c", "a/#", "#"];
            let subscribers: Vec<_> = patterns
                .iter()
                .map(|pattern| {
                    let own = ["-t", pattern, "-C", "20", "-W", "60", "-F", "%t %q %p"];
                    client(&origin, "mosquitto_sub", &[&common[..], &own].concat())
                })
                .collect();
            until("all have subscribed", || origin.messages().subscribers == 3);
            let own = ["-t", "a/b/c", "-m", "hello", "--repeat", "20"];
            let sender = client(&origin, "mosquitto_pub", &[&common[..], &own].concat());
            lines(&sender.wait_with_output().unwrap());
            for subscriber in subscribers {
                let heard = lines(&subscriber.wait_with_output().unwrap());
                assert_eq!(heard, vec![format!("a/b/c {qos} hello"); 20]);
            }
            let counts = origin.messages();
            assert_eq!((counts.received, counts.received_bytes, counts.sent), (20, 100, 60));
            assert_eq!(counts.acknowledged, if qos == "0" { 0 } else { 20 });
        }
    }
}

#[test]
fn a_message_is_kept_and_a_will_is_published() {
    let origin = broker(&[]);
    let publish = |arguments: &[&str]| {
        lines(&client(&origin, "mosquitto_pub", arguments).wait_with_output().unwrap());
    };
    publish(&["-q", "1", "-r", "-t", "kept", "-m", "still here"]);
    let late = client(&origin, "mosquitto_sub", &["-t", "kept", "-C", "1", "-W", "60", "-F", "%r %p"]);
    assert_eq!(lines(&late.wait_with_output().unwrap()), ["1 still here"]);
    publish(&["-q", "1", "-r", "-t", "kept", "-n"]);
    let later = client(&origin, "mosquitto_sub", &["-t", "kept", "-C", "1", "-W", "1"]);
    assert!(!later.wait_with_output().unwrap().status.success(), "it was taken away");

    let watcher = client(&origin, "mosquitto_sub", &["-t", "gone", "-C", "1", "-W", "60"]);
    let before = origin.messages().subscribers;
    until("the watcher has subscribed", || origin.messages().subscribers >= before.max(3));
    let arguments = ["-t", "x", "--will-topic", "gone", "--will-payload", "farewell"];
    let mut dying = client(&origin, "mosquitto_sub", &arguments);
    until("the other has subscribed", || origin.messages().subscribers == 4);
    dying.kill().unwrap();
    dying.wait().unwrap();
    assert_eq!(lines(&watcher.wait_with_output().unwrap()), ["farewell"]);
}

#[test]
fn those_that_share_a_subscription_take_turns() {
    let origin = broker(&[]);
    let sharer = || {
        let arguments = ["-V", "mqttv5", "-t", "$share/g/s/#", "-C", "10", "-W", "60"];
        client(&origin, "mosquitto_sub", &arguments)
    };
    let sharers = [sharer(), sharer()];
    until("both have subscribed", || origin.messages().subscribers == 2);
    let sender = client(&origin, "mosquitto_pub", &["-q", "1", "-t", "s/x", "-m", "m", "--repeat", "20"]);
    lines(&sender.wait_with_output().unwrap());
    for sharer in sharers {
        assert_eq!(lines(&sharer.wait_with_output().unwrap()).len(), 10);
    }
}

#[test]
fn refusals_are_understood_by_mosquittos_clients() {
    let origin = broker(&["unauthorized phase=connect unless=me:secret"]);
    let refused = client(&origin, "mosquitto_pub", &["-V", "mqttv5", "-t", "a", "-m", "b"]);
    let said = String::from_utf8_lossy(&refused.wait_with_output().unwrap().stderr).into_owned();
    assert!(said.contains("ot authorized"), "{said}");
    let known = ["-u", "me", "-P", "secret", "-q", "1", "-t", "a", "-m", "b"];
    lines(&client(&origin, "mosquitto_pub", &known).wait_with_output().unwrap());
    assert_eq!(origin.messages().received, 1);
}

#[test]
fn messages_wait_for_a_subscriber_that_comes_back() {
    for (version, expiry) in [("mqttv311", &[][..]), ("mqttv5", &["-x", "60"])] {
        let origin = broker(&[]);
        let keeper = [&["-V", version, "-q", "2", "-i", "keeper", "-c", "-t", "k/#"], expiry].concat();
        lines(
            &client(&origin, "mosquitto_sub", &[&keeper[..], &["-E"]].concat()).wait_with_output().unwrap(),
        );
        for qos in ["0", "1", "2"] {
            let arguments = ["-q", qos, "-t", "k/a", "-m", "waited", "--repeat", "3"];
            lines(&client(&origin, "mosquitto_pub", &arguments).wait_with_output().unwrap());
        }
        let again = [&keeper[..], &["-C", "6", "-W", "60", "-F", "%q %p"]].concat();
        let heard = lines(&client(&origin, "mosquitto_sub", &again).wait_with_output().unwrap());
        let expected = ["1 waited", "1 waited", "1 waited", "2 waited", "2 waited", "2 waited"];
        assert_eq!(heard, expected, "{version}: those of QoS 0 are for those that are there");
    }
}
