//! What ffmpeg decodes of what viewers of each protocol receive from the origin; and a run without an ffmpeg.

use crate::support::{CHECKS_OF_THE_MACHINE, Run, air, config, measure, shared, start_measuring, weir};
use weir_clients::BitRate;
use weir_origin::{ANY_PORT, ChannelType, Material, Service};
use weir_protocols::{Serve, of_scheme};

/// Frames handed in and decoded by the viewers of a run, and whether all but one in a hundred were asked for and came.
fn decoded(run: &Run) -> (f64, f64, bool) {
    let thresholds = run.summary["thresholds"].as_array().unwrap();
    let asked = thresholds.iter().find(|it| it["expression"] == "decoded.ratio >= 99%");
    (run.total("handed_in"), run.total("decoded"), asked.is_some_and(|it| it["passed"] == true))
}

fn warns(run: &Run, words: &str) -> bool {
    run.summary["warnings"].as_array().unwrap().iter().any(|it| it.as_str().unwrap().contains(words))
}

#[test]
fn what_viewers_of_each_protocol_receive_is_decoded_whole() {
    let _machine = shared();
    let listening = |scheme: &str| of_scheme(scheme).unwrap().serve.unwrap();
    let mut serving = config(&[]);
    for scheme in ["http+flv", "whep+http", "http"] {
        let Serve { server, .. } = listening(scheme);
        serving = serving.listening(server, ANY_PORT);
    }
    let pictures = Material::Synthetic(BitRate::from_bps(2_000_000.0));
    serving.tuners.services = vec![Service::numbered(1, ChannelType::Gr, pictures)];
    let air = air(&serving);
    let rtmp = air.origin.address("rtmp").unwrap();
    let flv = air.origin.address("http-flv").unwrap();
    let rtc = air.origin.address("rtc").unwrap();
    let ts = air.origin.address("http").unwrap();
    for url in [
        format!("rtmp://{rtmp}/live/a"),
        format!("http+flv://{flv}/live/a.flv"),
        format!("whep+http://{rtc}/live/a"),
        format!("http://{ts}/1.ts"),
    ] {
        let flags = ["play", &url, "-c", "2", "-d", "6s", "--warmup", "0s", "--drain", "10s", "--decode"];
        let run = measure(flags);
        let (handed_in, decoded, passed) = decoded(&run);
        assert!(handed_in >= 50.0 && decoded == handed_in && passed, "{url}: {decoded} of {handed_in}");
        assert!(run.total("decoder_cpu") > 0.0 && !warns(&run, "not decoded"), "{url}");
    }
}

#[test]
fn a_run_without_ffmpeg_says_that_nothing_was_decoded_and_is_not_asked() {
    let _machine = shared();
    let air = air(&config(&[]));
    let url = format!("rtmp://{}/live/a", air.origin.address("rtmp").unwrap());
    let nothing = tempfile::tempdir().unwrap();
    let mut command = weir();
    command.env("PATH", nothing.path());
    command.args(["play", &url, "-d", "3s", "--warmup", "0s", "--decode", "--accept", CHECKS_OF_THE_MACHINE]);
    let run = start_measuring(&mut command).finish();
    assert_eq!(decoded(&run), (0.0, 0.0, false));
    assert!(warns(&run, "not decoded: there was no ffmpeg"), "{}", run.summary["warnings"]);
    let thresholds = run.summary["thresholds"].as_array().unwrap();
    assert!(thresholds.iter().all(|it| it["expression"] != "decoded.ratio >= 99%"));
}
