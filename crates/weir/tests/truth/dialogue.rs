//! What clients say and hear can be looked at, and holds no secret.

use crate::support::{config, says, shared, soon, start_measuring, weir};
use weir_origin::{ANY_PORT, MQTT, Origin, RTC};

/// Nothing else in a run looks like this.
const SECRET: &str = "s3cr3tw0rd";

/// What two clients say on stderr.
fn said(url: &str, log: Option<&str>, flag: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let mut command = weir();
    command.current_dir(directory.path());
    command.args(["play", url, "-c", "2", "-d", "2s", "--warmup", "0s", "--drain", "200ms", flag]);
    match log {
        Some(log) => command.env("WEIR_LOG", log),
        None => command.env_remove("WEIR_LOG"),
    };
    String::from_utf8(command.output().unwrap().stderr).unwrap()
}

#[test]
fn dialogues_are_shown_when_they_are_asked_for() {
    let _machine = shared();
    let origin = Origin::start(&config(&[]).listening(&RTC, ANY_PORT).listening(&MQTT, ANY_PORT)).unwrap();
    let at = |server| origin.address(server).unwrap();
    let stream = format!("rtmp://{}/live/{SECRET}", at("rtmp"));
    let mut command = weir();
    let publishing = start_measuring(command.args(["publish", &stream, "-d", "90s", "--gop", "1s"]));
    soon("the stream is on air", || origin.counts().streams.iter().any(|stream| stream.received.video > 0));

    let status = "DEBUG rtmp: onStatus client=2 level=\"status\" code=\"NetStream.Play.Start\"";
    let steps =
        ["DEBUG client: accepted, waits for media client=1", "DEBUG client: ends as planned client=2"];
    let rtmp = said(&stream, None, "-vv");
    assert!(rtmp.contains(status) && steps.iter().all(|step| rtmp.contains(step)), "{rtmp}");
    for quiet in [
        said(&stream, None, "-v"),
        said(&stream, Some("off"), "-vv"),
        said(&stream, Some("rtc=debug"), "-vv"),
    ] {
        assert!(!quiet.contains("DEBUG") && quiet.contains("2 of 2 play"), "{quiet}");
    }
    let rtc =
        said(&format!("whep+http://{}/live/{SECRET}?token={SECRET}", at("rtc")), Some("rtc=debug"), "-v");
    let steps =
        ["offers (POST) client=1", "answered client=2", "ICE has a path client=1", "DTLS has keys client=2"];
    assert!(steps.iter().all(|step| rtc.contains(&format!("DEBUG rtc: {step}"))), "{rtc}");
    assert!(!rtc.contains("DEBUG client"), "{rtc}");
    let mqtt = said(&format!("mqtt://me:{SECRET}@{}/{SECRET}/#", at("mqtt")), Some("debug"), "-v");
    let steps = ["CONNACK, accepted client=2", "SUBACK client=1 reasons=[Success]"];
    assert!(steps.iter().all(|step| mqtt.contains(&format!("DEBUG mqtt: {step}"))), "{mqtt}");
    let http =
        said(&format!("http+flv://me:{SECRET}@{}/live/a.flv?token={SECRET}", at("rtc")), Some("debug"), "-v");
    assert!(http.contains("DEBUG http: answered client=1 status="), "{http}");
    assert!(http.contains("DEBUG client: failed client=2 failure="), "{http}");
    for (dialogue, what) in [(rtmp, "rtmp"), (rtc, "rtc"), (mqtt, "mqtt"), (http, "http")] {
        // The live line and the reason at the end hide them already; the dialogue has them nowhere.
        let leaks: Vec<_> = dialogue.lines().filter(|line| line.contains(SECRET)).collect();
        assert!(leaks.is_empty(), "{what}: {leaks:?}");
    }
    publishing.process.interrupt();
    publishing.finish();
}

#[test]
fn a_dialogue_that_there_is_not_is_refused_with_those_that_there_are() {
    let _machine = shared();
    let mut command = weir();
    let output =
        command.args(["play", "rtmp://127.0.0.1:1/a/b"]).env("WEIR_LOG", "rtx=debug").output().unwrap();
    let words = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{words}");
    assert!(words.starts_with("weir: WEIR_LOG=rtx=debug: give a level"), "{words}");
    assert_eq!(words.lines().count(), 1, "{words}");
    assert!(says(["play", "--help"]).out.contains("-vv"));
}
